//! Several ops after one another, in f64, with one rounding at the end.

use super::Op;
use crate::numbers::{Numbers, decode, encode};
use crate::{Tensor, bytes_of, extents};
use bytes::Bytes;
use relayout_ir::constant::{ConstSource, Constant};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Constants, and ops on what comes before them. Each part has a number, from 0 on.
#[derive(Debug, Default)]
pub struct Plan {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Given(Constant),
    Made { op: Op, operands: Vec<usize>, dtype: DType, dims: Vec<usize> },
}

/// What it takes to compute a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The numbers of the constants that are read.
    pub given: Vec<usize>,
    /// Whether an op among those that are done rounds, so that runtimes differ on the last bits of its result.
    pub rounds: bool,
    /// Whether an op may find that it has no result, such as an index that is out of range.
    pub may_fail: bool,
    /// Operations on one number each.
    pub work: u64,
    /// Bytes of the largest result on the way, in the type that the model gives it.
    pub largest: u64,
}

impl Plan {
    /// Adds a constant; `None` for element types that are not computed with.
    pub fn give(&mut self, constant: Constant) -> Option<usize> {
        decode(constant.dtype, &[]).ok()?;
        extents(&constant.dims).ok()?;
        self.parts.push(Part::Given(constant));
        Some(self.parts.len() - 1)
    }

    /// Adds what result `slot` of a node is, computed from these parts. `None` for ops that are not evaluated, for results of
    /// unknown or no extent, and for numbers that jump: these are computed from what was rounded to its own type.
    pub fn make(&mut self, graph: &Graph, node: &Node, slot: usize, operands: Vec<usize>) -> Option<usize> {
        let op = Op::recognize(graph, node, slot)?;
        let ty = &graph.value(node.result(slot)?).ty;
        let (dtype, dims) = (ty.dtype()?, extents(&ty.const_shape()?).ok()?);
        decode(dtype, &[]).ok()?;
        let of: Vec<&Part> = operands.iter().map(|&i| self.parts.get(i)).collect::<Option<_>>()?;
        let shapes: Vec<Vec<usize>> = of.iter().map(|part| part.dims()).collect();
        let empty = dims.contains(&0) || of.iter().zip(&shapes).any(|(p, s)| p.dtype().is_float() && s.contains(&0));
        let floats = of.first().is_some_and(|part| part.dtype().is_float());
        if empty || !(dtype.is_float() || op.is_exact()) || (floats && !dtype.is_float()) {
            return None;
        }
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        op.work(&shapes, &dims)?;
        self.parts.push(Part::Made { op, operands, dtype, dims });
        Some(self.parts.len() - 1)
    }

    /// The constant that a part is, if it is one.
    pub fn given(&self, at: usize) -> Option<&Constant> {
        match self.parts.get(at)? {
            Part::Given(constant) => Some(constant),
            Part::Made { .. } => None,
        }
    }

    /// What it takes to compute a part.
    pub fn needs(&self, at: usize) -> Needs {
        let mut needs = Needs::default();
        for i in self.reached(at) {
            let Some(Part::Made { op, operands, dtype, dims }) = self.parts.get(i) else {
                needs.given.push(i);
                continue;
            };
            let shapes: Vec<Vec<usize>> = operands.iter().map(|&i| self.parts[i].dims()).collect();
            let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
            let dims: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
            let size = Constant::missing(*dtype, dims, String::new()).size_bytes().unwrap_or(u64::MAX);
            needs.rounds |= !op.is_exact();
            needs.may_fail |= !op.never_fails(*dtype);
            needs.work =
                needs.work.saturating_add(op.work(&shapes, self.parts[i].dims().as_slice()).unwrap_or(u64::MAX));
            needs.largest = needs.largest.max(size);
        }
        needs
    }

    /// A part and all that it is made of, in their order.
    fn reached(&self, at: usize) -> BTreeSet<usize> {
        let (mut reached, mut left) = (BTreeSet::new(), vec![at]);
        while let Some(i) = left.pop() {
            if reached.insert(i) {
                left.extend(self.parts.get(i).into_iter().flat_map(Part::operands));
            }
        }
        reached
    }

    /// The bytes of a part, in a type: computed in f64, rounded once.
    fn bytes(&self, at: usize, dtype: DType) -> Result<Bytes, String> {
        let reached = self.reached(at);
        let mut readers: BTreeMap<usize, usize> = BTreeMap::from([(at, 1)]);
        for &operand in reached.iter().flat_map(|&i| self.parts[i].operands()) {
            *readers.entry(operand).or_default() += 1;
        }
        let mut made: BTreeMap<usize, Tensor> = BTreeMap::new();
        for i in reached {
            let part = &self.parts[i];
            let tensor = part.run(&made)?;
            made.insert(i, tensor);
            // What nobody reads any more takes no memory.
            for operand in part.operands() {
                let left = readers.get_mut(operand).ok_or("a part is missing")?;
                *left -= 1;
                if *left == 0 {
                    made.remove(operand);
                }
            }
        }
        let result = made.remove(&at).ok_or("a part is missing")?;
        if result.dtype == dtype {
            return Ok(result.bytes);
        }
        encode(&decode(result.dtype, &result.bytes)?, dtype).map(Bytes::from)
    }
}

impl Part {
    fn operands(&self) -> &[usize] {
        match self {
            Part::Given(_) => &[],
            Part::Made { operands, .. } => operands,
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Part::Given(constant) => constant.dtype,
            Part::Made { dtype, .. } => *dtype,
        }
    }

    fn dims(&self) -> Vec<usize> {
        match self {
            Part::Given(constant) => extents(&constant.dims).unwrap_or_default(),
            Part::Made { dims, .. } => dims.clone(),
        }
    }

    /// Its elements; floats are f64.
    fn run(&self, made: &BTreeMap<usize, Tensor>) -> Result<Tensor, String> {
        match self {
            Part::Given(constant) => {
                let (bytes, dims) = (bytes_of(constant)?, self.dims());
                if Some(bytes.len() as u64) != constant.size_bytes() {
                    return Err(format!("{} bytes are not {}{dims:?}", bytes.len(), constant.dtype));
                }
                if !constant.dtype.is_float() {
                    return Ok(Tensor { dtype: constant.dtype, dims, bytes });
                }
                let numbers = decode(constant.dtype, &bytes)?.floats().ok_or("a float is none")?;
                Ok(Tensor { dtype: DType::F64, dims, bytes: encode(&Numbers::F64(numbers), DType::F64)?.into() })
            }
            Part::Made { op, operands, dtype, dims } => {
                let operands: Option<Vec<&Tensor>> = operands.iter().map(|i| made.get(i)).collect();
                let dtype = if dtype.is_float() { DType::F64 } else { *dtype };
                op.run(&operands.ok_or("a part is missing")?, dtype, dims)
            }
        }
    }
}

/// A part of a plan as the contents of a constant.
#[derive(Debug)]
pub struct Rounded {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The number of the part.
    pub at: usize,
    /// The type that its numbers are rounded to: its own, or another one of floats.
    pub dtype: DType,
}

impl Rounded {
    fn given(&self) -> impl Iterator<Item = &Constant> {
        self.plan.reached(self.at).into_iter().filter_map(|i| self.plan.given(i))
    }
}

impl ConstSource for Rounded {
    fn bytes(&self) -> Result<Bytes, String> {
        self.plan.bytes(self.at, self.dtype)
    }

    fn is_available(&self) -> bool {
        self.given().all(|c| c.source.is_available())
    }

    fn is_computed(&self) -> bool {
        true
    }

    fn depth(&self) -> usize {
        self.given().map(|c| c.source.depth()).max().unwrap_or(0).saturating_add(1)
    }

    fn before_rounding(&self) -> Option<Arc<dyn ConstSource>> {
        let floats = || Rounded { plan: Arc::clone(&self.plan), at: self.at, dtype: DType::F32 };
        (self.dtype == DType::F16).then(|| Arc::new(floats()) as Arc<dyn ConstSource>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::attr::Attr;
    use relayout_ir::build::Builder;
    use relayout_ir::dim::Dim;

    /// Means of two rows and their exponents, of float32 numbers.
    fn plan() -> (Plan, [usize; 3]) {
        let mut graph = Graph::new("g");
        let mut make = Builder::new(&mut graph, 0).opset(13);
        let x = make.floats("x", &[1.0, 3.0, 0.5, 0.0], &[2, 2]).unwrap();
        let rows = [Dim::from(2), Dim::ONE];
        let m = make.op("ReduceMean", [x]).attr("axes", Attr::Ints(vec![1])).shaped("m", &rows).unwrap();
        let e = make.op("Exp", [m]).shaped("e", &rows).unwrap();
        let mut plan = Plan::default();
        let given = plan.give(graph.constant(x).unwrap().clone()).unwrap();
        let node = |v| graph.node(graph.value(v).producer().0);
        let mean = plan.make(&graph, node(m), 0, vec![given]).unwrap();
        let exponent = plan.make(&graph, node(e), 0, vec![mean]).unwrap();
        (plan, [given, mean, exponent])
    }

    #[test]
    fn parts_are_computed_in_f64_and_rounded_to_the_type_of_the_model() {
        let (plan, [given, mean, exponent]) = plan();
        let plan = Arc::new(plan);
        let of = |at| Rounded { plan: Arc::clone(&plan), at, dtype: DType::F32 }.bytes().unwrap();
        let encoded = |numbers: [f64; 2]| numbers.map(|x| (x as f32).to_le_bytes()).concat();
        assert_eq!(of(mean), encoded([2.0, 0.25]));
        assert_eq!(of(exponent), encoded([libm::exp(2.0), libm::exp(0.25)]));
        assert_eq!(of(given).len(), 16);
        let halves = Rounded { plan: Arc::clone(&plan), at: exponent, dtype: DType::F16 };
        assert_eq!(halves.bytes().unwrap().len(), 4);
        assert_eq!(halves.before_rounding().unwrap().bytes().unwrap(), of(exponent));
        assert!(halves.before_rounding().unwrap().before_rounding().is_none());
    }

    #[test]
    fn what_a_part_needs_is_what_it_is_made_of() {
        let (plan, [given, mean, exponent]) = plan();
        let needs = plan.needs(exponent);
        assert_eq!(needs, Needs { given: vec![given], rounds: true, may_fail: false, work: 10, largest: 8 });
        assert_eq!(plan.needs(given), Needs { given: vec![given], ..Needs::default() });
        assert_eq!(plan.needs(mean).work, 6);
        assert!(plan.given(given).is_some() && plan.given(mean).is_none());
    }

    #[test]
    fn bytes_that_are_missing_are_an_error_that_says_so() {
        let mut plan = Plan::default();
        let missing = Constant::missing(DType::F32, vec![2], "the weights were stripped".to_owned());
        let at = plan.give(missing).unwrap();
        let source = Rounded { plan: Arc::new(plan), at, dtype: DType::F32 };
        assert!(!source.is_available());
        assert_eq!(source.bytes(), Err("the weights were stripped".to_owned()));
    }

    #[test]
    fn types_that_are_not_computed_with_are_no_parts() {
        let nibbles = Constant::inline(DType::I4, vec![2], vec![0].into());
        assert_eq!(Plan::default().give(nibbles), None);
    }
}
