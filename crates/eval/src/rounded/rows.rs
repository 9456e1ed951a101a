//! What sums along axes. The operand is turned so that these axes come last; what they span is a row.

use super::{floats, operand, read};
use crate::Tensor;
use crate::shuffle::strides;
use relayout_ir::graph::{Graph, Node};
use relayout_ir::op::read::{epsilon, reduced};
use relayout_ir::op::{int_or_default, normalize_axis};

/// One number for each row.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    of: fn(&[f64]) -> f64,
    axes: Vec<usize>,
}

/// Softmax, or its logarithm.
#[derive(Clone, Debug)]
pub(crate) struct Softmax {
    axes: Vec<usize>,
    logarithm: bool,
}

/// Rows with their mean taken away, divided by their deviation; then scaled and shifted.
#[derive(Clone, Debug)]
pub(crate) struct Norm {
    rows: Rows,
    /// How scale and shift, operands 1 and 2, lie in the result.
    scaled: Scaled,
}

#[derive(Clone, Debug)]
enum Rows {
    /// By their own statistics: along these axes of the operand read with these extents.
    Own { dims: Vec<usize>, axes: Vec<usize>, epsilon: f64, centred: bool },
    /// By the mean and variance that operands 3 and 4 are, one for each channel.
    Told { epsilon: f64 },
    /// Divided by their norm, the sum of absolute values or the root of the sum of squares.
    Length { axis: usize, of: fn(&[f64]) -> f64 },
}

#[derive(Clone, Copy, Debug)]
enum Scaled {
    /// Not at all.
    No,
    /// They broadcast.
    Broadcast,
    /// One number for so many channels of axis 1 each.
    Channels(usize),
}

impl Reduction {
    pub(super) fn recognize(graph: &Graph, node: &Node) -> Option<Reduction> {
        let of = match node.onnx()? {
            "ReduceSum" => sum,
            "ReduceMean" => mean,
            "ReduceMax" => |row: &[f64]| extreme(row, f64::max),
            "ReduceMin" => |row: &[f64]| extreme(row, f64::min),
            "ReduceProd" => |row: &[f64]| row.iter().product(),
            "ReduceSumSquare" => squares,
            "ReduceL1" => absolutes,
            "ReduceL2" => |row: &[f64]| squares(row).sqrt(),
            "ReduceLogSum" => |row: &[f64]| libm::log(sum(row)),
            "ReduceLogSumExp" => log_sum_exp,
            _ => return None,
        };
        // What is said of a reduction along no axis differs from version to version.
        let axes = reduced(graph, node).filter(|axes| !axes.is_empty())?;
        Some(Reduction { of, axes })
    }

    pub(super) fn run(&self, x: &Tensor) -> Result<Vec<f64>, String> {
        let turned = Turned::new(x, &x.dims, &self.axes)?;
        Ok(turned.numbers.chunks(turned.row).map(self.of).collect())
    }
}

impl Softmax {
    pub(super) fn recognize(graph: &Graph, node: &Node) -> Option<Softmax> {
        let logarithm = match node.onnx()? {
            "Softmax" => false,
            "LogSoftmax" => true,
            _ => return None,
        };
        let rank = graph.value(node.operand(0)?).ty.rank()?;
        let one = node.opset >= 13;
        let axis = normalize_axis(int_or_default(node, "axis")?, rank)?;
        Some(Softmax { axes: if one { vec![axis] } else { (axis..rank).collect() }, logarithm })
    }

    pub(super) fn run(&self, x: &Tensor) -> Result<Vec<f64>, String> {
        let mut turned = Turned::new(x, &x.dims, &self.axes)?;
        for row in turned.numbers.chunks_mut(turned.row) {
            let total = log_sum_exp(row);
            for x in row {
                *x = if self.logarithm { *x - total } else { libm::exp(*x - total) };
            }
        }
        turned.back()
    }
}

impl Norm {
    pub(super) fn recognize(graph: &Graph, node: &Node) -> Option<Norm> {
        let dims: Vec<usize> = {
            let dims = graph.value(node.operand(0)?).ty.const_shape()?;
            dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?
        };
        let (rank, epsilon) = (dims.len(), f64::from(epsilon(node)?));
        let own = |dims: &[usize], axes: Vec<usize>| {
            let centred = node.onnx() != Some("RMSNormalization");
            Rows::Own { dims: dims.to_vec(), axes, epsilon, centred }
        };
        let axis = || normalize_axis(int_or_default(node, "axis")?, rank);
        let (rows, scaled) = match node.onnx()? {
            "BatchNormalization" if node.opset >= 9 && rank >= 2 => {
                let trains = node.flag("training_mode");
                // Before opset 14 a node that trains was told by its results.
                let told = !trains && (node.opset >= 14 || node.outputs.iter().skip(1).all(Option::is_none));
                let axes = (0..rank).filter(|&axis| axis != 1).collect();
                let rows = if trains { Some(own(&dims, axes)) } else { told.then_some(Rows::Told { epsilon }) };
                (rows?, Scaled::Channels(1))
            }
            "InstanceNormalization" if node.opset >= 6 && rank >= 3 => {
                (own(&dims, (2..rank).collect()), Scaled::Channels(1))
            }
            "GroupNormalization" if rank >= 2 => {
                let groups = usize::try_from(node.int("num_groups")?).ok().filter(|&g| g > 0)?;
                let each = dims[1].is_multiple_of(groups).then(|| dims[1] / groups)?;
                let rest = dims[2..].iter().product::<usize>() * each;
                // Before opset 21 scales were those of groups.
                let scaled = Scaled::Channels(if node.opset < 21 { each } else { 1 });
                (own(&[dims[0], groups, rest], vec![2]), scaled)
            }
            "LayerNormalization" | "RMSNormalization" => (own(&dims, (axis()?..rank).collect()), Scaled::Broadcast),
            "LpNormalization" => {
                let of = if node.int("p") == Some(1) { absolutes } else { |row: &[f64]| squares(row).sqrt() };
                (Rows::Length { axis: axis()?, of }, Scaled::No)
            }
            _ => return None,
        };
        Some(Norm { rows, scaled })
    }

    pub(super) fn run(&self, operands: &[&Tensor]) -> Result<Vec<f64>, String> {
        let x = operand(operands, 0)?;
        let mut numbers = match &self.rows {
            Rows::Own { dims, axes, epsilon, centred } => standardized(x, dims, axes, *epsilon, *centred)?,
            Rows::Told { epsilon } => {
                let (mean, variance) = (channels(operands, 3, 1)?, channels(operands, 4, 1)?);
                let each = floats(x)?.into_iter().zip(mean).zip(variance);
                each.map(|((x, mean), variance)| (x - mean) / (variance + epsilon).sqrt()).collect()
            }
            Rows::Length { axis, of } => {
                let mut turned = Turned::new(x, &x.dims, &[*axis])?;
                for row in turned.numbers.chunks_mut(turned.row) {
                    let length = of(row);
                    // A row of zeros stays one.
                    for x in row.iter_mut().filter(|_| length > 0.0) {
                        *x /= length;
                    }
                }
                turned.back()?
            }
        };
        for (slot, apply) in [(1, (|x, by| x * by) as fn(f64, f64) -> f64), (2, |x, by| x + by)] {
            let by = match self.scaled {
                Scaled::Channels(each) => channels(operands, slot, each)?,
                Scaled::Broadcast if slot < operands.len() => super::spread(operand(operands, slot)?, &x.dims)?,
                _ => continue,
            };
            numbers = numbers.into_iter().zip(by).map(|(x, by)| apply(x, by)).collect();
        }
        Ok(numbers)
    }
}

/// An operand that has one number for so many channels each, for every element of the first operand.
fn channels(operands: &[&Tensor], slot: usize, each: usize) -> Result<Vec<f64>, String> {
    let (x, by) = (operand(operands, 0)?, operand(operands, slot)?);
    let count: usize = by.dims.iter().product();
    let mut dims = x.dims.clone();
    if dims.len() < 2 || count.checked_mul(each) != Some(dims[1]) {
        return Err(format!("{count} numbers are not those of {:?}", x.dims));
    }
    let mut strides = vec![0; dims.len() + 1];
    strides[1] = 1;
    dims.splice(1..2, [count, each]);
    read(by, &dims, &strides)
}

fn standardized(x: &Tensor, dims: &[usize], axes: &[usize], epsilon: f64, centred: bool) -> Result<Vec<f64>, String> {
    let mut turned = Turned::new(x, dims, axes)?;
    for row in turned.numbers.chunks_mut(turned.row) {
        let middle = if centred { mean(row) } else { 0.0 };
        for x in row.iter_mut() {
            *x -= middle;
        }
        let deviation = (squares(row) / row.len() as f64 + epsilon).sqrt();
        for x in row {
            *x /= deviation;
        }
    }
    turned.back()
}

/// Numbers with some axes last.
struct Turned {
    numbers: Vec<f64>,
    /// How many numbers a row has, at least 1.
    row: usize,
    /// Strides, in what was turned, of the axes as they were.
    back: Vec<i64>,
    dims: Vec<usize>,
}

impl Turned {
    /// An operand read with these extents.
    fn new(x: &Tensor, dims: &[usize], axes: &[usize]) -> Result<Turned, String> {
        let own = strides(dims);
        let kept = (0..dims.len()).filter(|axis| !axes.contains(axis));
        let order: Vec<usize> = kept.chain(axes.iter().copied()).collect();
        let turned: Vec<usize> = order.iter().filter_map(|&axis| dims.get(axis).copied()).collect();
        if turned.len() != dims.len() {
            return Err(format!("{axes:?} are not axes of {dims:?}"));
        }
        let by: Vec<i64> = order.iter().map(|&axis| own[axis]).collect();
        let numbers = read(x, &turned, &by)?;
        let now = strides(&turned);
        let mut back = vec![0; dims.len()];
        for (place, &axis) in order.iter().enumerate() {
            back[axis] = now[place];
        }
        let row = axes.iter().map(|&axis| dims[axis]).product::<usize>().max(1);
        Ok(Turned { numbers, row, back, dims: dims.to_vec() })
    }

    /// The numbers as they were before.
    fn back(self) -> Result<Vec<f64>, String> {
        let flat = vec![self.numbers.len()];
        read(&super::tensor(self.numbers, &flat)?, &self.dims, &self.back)
    }
}

fn sum(row: &[f64]) -> f64 {
    row.iter().sum()
}

fn mean(row: &[f64]) -> f64 {
    sum(row) / row.len() as f64
}

fn squares(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum()
}

fn absolutes(row: &[f64]) -> f64 {
    row.iter().map(|x| x.abs()).sum()
}

/// The first or last of a row by this order; no number if one is none.
fn extreme(row: &[f64], of: fn(f64, f64) -> f64) -> f64 {
    let first = row.first().copied().unwrap_or(f64::NAN);
    row.iter().fold(first, |most, &x| if most.is_nan() || x.is_nan() { f64::NAN } else { of(most, x) })
}

fn log_sum_exp(row: &[f64]) -> f64 {
    let most = extreme(row, f64::max);
    if !most.is_finite() {
        return most;
    }
    most + libm::log(row.iter().map(|x| libm::exp(x - most)).sum())
}
