//! Ops whose results are rounded, evaluated in f64.
//!
//! | Module | Has |
//! |---|---|
//! | `function` | functions of one number, and of two |
//! | `rows` | what sums along axes: reductions, Softmax, normalizations |
//! | `product` | sums of products: MatMul, Gemm, Conv, Einsum |
//! | `plan` | several ops after one another, with one rounding at the end |

mod function;
mod plan;
mod product;
mod rows;

pub use plan::{Needs, Plan, Rounded};

use crate::numbers::{Numbers, decode, encode};
use crate::shuffle::{broadcast, pick};
use crate::{Step, Tensor};
use function::{Function, Pair};
use product::Product;
use relayout_ir::dim::element_count;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node};
use rows::{Norm, Reduction, Softmax};

/// One op on constants. Operands and results that are floats are `DType::F64` here, whatever they are in the model.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// One that moves elements, or computes with them as f64 does.
    Exact(Step),
    /// A conversion to a narrower float, which rounds where the model says so.
    Narrow(DType),
    /// A conversion that changes nothing in f64.
    Same,
    /// Element by element.
    Each(Function),
    /// All operands, element by element, from the left.
    Pairs(Pair),
    /// Their sum, divided by how many they are.
    Mean,
    /// Not below one operand and not above another, by their places.
    Clip([Option<usize>; 2]),
    /// Along axes.
    Reduce(Reduction),
    /// Along axes.
    Softmax(Softmax),
    /// Along axes.
    Norm(Norm),
    /// Sums of products.
    Product(Product),
}

impl Op {
    /// What computes result `slot` of a node; `None` for ops that are not evaluated.
    pub(crate) fn recognize(graph: &Graph, node: &Node, slot: usize) -> Option<Op> {
        let rounded = || Op::rounded(graph, node).filter(|_| slot == 0);
        rounded().or_else(|| Step::recognize(graph, node, slot).and_then(Op::exact))
    }

    /// Steps that f64 numbers take as well.
    fn exact(step: Step) -> Option<Op> {
        let taken = match &step {
            Step::View
            | Step::Transpose(_)
            | Step::Expand
            | Step::Tile
            | Step::Box(_)
            | Step::Gather(_)
            | Step::Concat(_)
            | Step::Fill(_)
            | Step::Where
            | Step::Scatter => true,
            Step::Binary(op) => op.is_arithmetic(),
            Step::Unary(op) => op.is_continuous(),
            // Those of the first kind are evaluated here in their own way, and quantized numbers are left to the runtime.
            Step::Largest(_) | Step::Clip { .. } | Step::Cast | Step::Dequantize(_) => false,
        };
        taken.then_some(Op::Exact(step))
    }

    fn rounded(graph: &Graph, node: &Node) -> Option<Op> {
        let name = node.onnx()?;
        if let Some(function) = Function::recognize(graph, node) {
            return Some(Op::Each(function));
        }
        Some(match name {
            "Pow" => Op::Pairs(Pair::Power),
            // Before opset 8 operands were as large as each other, which is a case of what broadcasts.
            "Min" => Op::Pairs(Pair::Least),
            "Max" => Op::Pairs(Pair::Largest),
            "Sum" => Op::Pairs(Pair::Sum),
            "Mean" => Op::Mean,
            "Clip" if node.opset >= 11 => {
                let low = node.operand(1).map(|_| 1);
                Op::Clip([low, node.operand(2).map(|_| 1 + usize::from(low.is_some()))])
            }
            "Cast" | "CastLike" => {
                let dtype = |v: Option<_>| graph.value(v?).ty.dtype();
                let (from, to) = (dtype(node.operand(0))?, dtype(node.result(0))?);
                narrowing(from, to)?
            }
            _ => {
                return Reduction::recognize(graph, node)
                    .map(Op::Reduce)
                    .or_else(|| Softmax::recognize(graph, node).map(Op::Softmax))
                    .or_else(|| Norm::recognize(graph, node).map(Op::Norm))
                    .or_else(|| Product::recognize(graph, node).map(Op::Product));
            }
        })
    }

    /// Whether [`Step`] computes this op in the type of the model, with the bits of every runtime.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Op::Exact(_) | Op::Same | Op::Narrow(_))
    }

    /// Whether it has a result of this type whatever the operands hold.
    pub(crate) fn never_fails(&self, result: DType) -> bool {
        match self {
            Op::Exact(Step::Gather(_) | Step::Scatter) => false,
            // Integers may be divided by zero.
            Op::Exact(Step::Binary(_)) => result.is_float(),
            _ => true,
        }
    }

    /// Multiplications, or other operations on one number, that it takes; `None` where they are too many to count.
    pub(crate) fn work(&self, operands: &[&[usize]], dims: &[usize]) -> Option<u64> {
        let count = |dims: &[usize]| element_count(dims.iter().map(|&d| d as u64));
        if let Op::Product(product) = self {
            return count(dims)?.checked_mul(product.summands(operands)?);
        }
        operands.iter().try_fold(count(dims)?, |sum, dims| sum.checked_add(count(dims)?))
    }

    /// The result, of these extents.
    ///
    /// # Errors
    /// A sentence that says what the op can't do with these operands.
    pub(crate) fn run(&self, operands: &[&Tensor], dtype: DType, dims: &[usize]) -> Result<Tensor, String> {
        let made = |numbers: Vec<f64>| tensor(numbers, dims);
        match self {
            Op::Exact(step) => {
                let owned: Vec<Tensor> = operands.iter().map(|&t| t.clone()).collect();
                let bytes = exactly(step, &owned, dtype, dims)?;
                Ok(Tensor { dtype, dims: dims.to_vec(), bytes: bytes.into() })
            }
            Op::Same => made(numbers(operands, 0)?),
            Op::Narrow(to) => {
                let bytes = encode(&Numbers::F64(numbers(operands, 0)?), *to)?;
                made(decode(*to, &bytes)?.floats().ok_or("a float is none")?)
            }
            Op::Each(function) => made(numbers(operands, 0)?.into_iter().map(|x| function.apply(x)).collect()),
            Op::Pairs(pair) => made(folded(operands, dims, *pair)?),
            Op::Mean => {
                let count = operands.len() as f64;
                made(folded(operands, dims, Pair::Sum)?.into_iter().map(|sum| sum / count).collect())
            }
            Op::Clip([low, high]) => {
                let mut x = numbers(operands, 0)?;
                for (bound, pair) in [(low, Pair::Largest), (high, Pair::Least)] {
                    if let &Some(slot) = bound {
                        let bound = spread(operand(operands, slot)?, dims)?;
                        x = x.into_iter().zip(bound).map(|(x, b)| pair.apply(x, b)).collect();
                    }
                }
                made(x)
            }
            Op::Reduce(reduction) => made(reduction.run(operand(operands, 0)?)?),
            Op::Softmax(softmax) => made(softmax.run(operand(operands, 0)?)?),
            Op::Norm(norm) => made(norm.run(operands)?),
            Op::Product(product) => made(product.run(operands, dims)?),
        }
    }
}

/// What a conversion between floats does; `None` for others.
fn narrowing(from: DType, to: DType) -> Option<Op> {
    let bits = |dtype| match dtype {
        DType::F16 | DType::BF16 => Some(16),
        DType::F32 => Some(32),
        DType::F64 => Some(64),
        _ => None,
    };
    let (before, after) = (bits(from)?, bits(to)?);
    Some(if from == to || after > before { Op::Same } else { Op::Narrow(to) })
}

/// Divisions by zero have a result in floats, and integers are not computed with here.
fn exactly(step: &Step, operands: &[Tensor], dtype: DType, dims: &[usize]) -> Result<Vec<u8>, String> {
    match step {
        // Its value is told in the type of the model.
        Step::Fill(one) if dtype == DType::F64 => {
            let number = decode(one.dtype, &one.source.bytes()?)?.floats();
            let number = number.and_then(|n| n.first().copied()).ok_or("the value is not a float")?;
            encode(&Numbers::F64(vec![number; dims.iter().product()]), dtype)
        }
        step => step.run(operands, dtype, dims),
    }
}

fn folded(operands: &[&Tensor], dims: &[usize], pair: Pair) -> Result<Vec<f64>, String> {
    let (first, rest) = operands.split_first().ok_or("there is no operand")?;
    rest.iter().try_fold(spread(first, dims)?, |sum, next| {
        Ok(sum.into_iter().zip(spread(next, dims)?).map(|(a, b)| pair.apply(a, b)).collect())
    })
}

fn operand<'t>(operands: &[&'t Tensor], slot: usize) -> Result<&'t Tensor, String> {
    operands.get(slot).copied().ok_or_else(|| format!("operand {slot} is missing"))
}

/// The numbers of an operand.
fn numbers(operands: &[&Tensor], slot: usize) -> Result<Vec<f64>, String> {
    floats(operand(operands, slot)?)
}

fn floats(x: &Tensor) -> Result<Vec<f64>, String> {
    match decode(x.dtype, &x.bytes)? {
        Numbers::F64(numbers) => Ok(numbers),
        _ => Err(format!("{} is computed with as it is", x.dtype)),
    }
}

/// The numbers of an operand, broadcast.
fn spread(x: &Tensor, dims: &[usize]) -> Result<Vec<f64>, String> {
    read(x, dims, &broadcast(&x.dims, dims)?)
}

/// The numbers of an operand, read with these strides.
fn read(x: &Tensor, dims: &[usize], strides: &[i64]) -> Result<Vec<f64>, String> {
    floats(&Tensor { dtype: x.dtype, dims: dims.to_vec(), bytes: pick(&x.bytes, x.width()?, dims, 0, strides)?.into() })
}

fn tensor(numbers: Vec<f64>, dims: &[usize]) -> Result<Tensor, String> {
    if numbers.len() != dims.iter().product::<usize>() {
        return Err(format!("{} numbers were computed for {dims:?}", numbers.len()));
    }
    Ok(Tensor { dtype: DType::F64, dims: dims.to_vec(), bytes: encode(&Numbers::F64(numbers), DType::F64)?.into() })
}
