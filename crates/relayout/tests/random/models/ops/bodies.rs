//! If, Loop and Scan. What their bodies do lies between Transposes, so that layouts have something to gain across the border.

use super::*;
use crate::models::graft::inverse;
use crate::models::sketch::list_node;
use relayout_onnx::proto::{NodeProto, ValueInfoProto};
use std::collections::BTreeMap;

/// A body under construction.
struct Body {
    opset: i64,
    prefix: String,
    nodes: Vec<NodeProto>,
}

impl Body {
    fn new(s: &mut Sketch) -> Body {
        Body { opset: s.opset, prefix: s.name("b"), nodes: Vec::new() }
    }

    fn name(&self, base: &str) -> String {
        format!("{}.{base}", self.prefix)
    }

    /// Adds a node of one result; its name.
    fn add(&mut self, op: &str, inputs: &[&str], attributes: Vec<relayout_onnx::proto::AttributeProto>) -> String {
        let name = self.name(&self.nodes.len().to_string());
        let inputs = inputs.iter().map(|&i| i.to_owned()).collect();
        self.nodes.push(node(op, inputs, vec![name.clone()], attributes));
        name
    }

    fn transposed(&mut self, from: &str, perm: &[usize]) -> String {
        let list: Vec<i64> = perm.iter().map(|&p| p as i64).collect();
        self.add("Transpose", &[from], vec![ints("perm", &list)])
    }

    /// An op or two that keep the shape.
    fn elementwise(&mut self, dice: &mut Dice<'_>, from: &str) -> String {
        let mut at = from.to_owned();
        for _ in 0..=dice.below(2) {
            let op = dice.pick(&["Relu", "Neg", "Abs", "Identity", "Floor"]);
            at = self.add(op, &[&at], vec![]);
        }
        at
    }

    /// How far each element is below the largest along an axis.
    fn below_largest(&mut self, axis: usize, from: &str) -> String {
        let axes = [axis as i64];
        let largest = if self.opset < 18 {
            self.add("ReduceMax", &[from], vec![ints("axes", &axes)])
        } else {
            let list = self.name(&format!("{}.axes", self.nodes.len()));
            self.nodes.push(list_node(&list, &axes));
            self.add("ReduceMax", &[from, &list], vec![])
        };
        self.add("Sub", &[from, &largest], vec![])
    }

    /// A Transpose, an op or two, and the Transpose back.
    fn wrapped(&mut self, dice: &mut Dice<'_>, from: &str, perm: &[usize]) -> String {
        let mut inner = self.transposed(from, perm);
        if dice.once_in(2) {
            inner = self.below_largest(dice.below(perm.len()), &inner);
        }
        let inner = self.elementwise(dice, &inner);
        self.transposed(&inner, &inverse(perm))
    }
}

fn unshaped(name: &str, dtype: DataType) -> ValueInfoProto {
    info(name, dtype, &[], &BTreeMap::new(), false)
}

fn shaped(name: &str, dtype: DataType, shape: &[i64], dice: &mut Dice<'_>) -> ValueInfoProto {
    info(name, dtype, shape, &BTreeMap::new(), dice.once_in(2))
}

/// A value whose extents do not depend on data, of at least this rank.
fn carried(s: &mut Sketch, dice: &mut Dice<'_>, rank: usize) -> Option<Id> {
    s.choose(dice, |v| {
        v.dtype == DataType::Float && v.exact && !v.constant && (rank..=5).contains(&v.rank()) && v.elements() <= 1024
    })
}

/// An If whose branches read the value from outside.
pub(super) fn branches(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let perm = dice.permutation(v.rank());
    let condition = s.raw(DataType::Bool, &[], vec![u8::from(dice.once_in(2))]);
    let capture = s.read(x);
    // Either both branches leave the result transposed, or the pair in the first cancels.
    let plain = dice.once_in(2);
    let result = if plain { permuted(&v.shape, &perm) } else { v.shape.clone() };
    let (mut yes, mut no) = (Body::new(s), Body::new(s));
    let ends = if plain {
        let a = yes.transposed(&capture, &perm);
        let b = no.transposed(&capture, &perm);
        (yes.elementwise(dice, &a), no.add("Neg", &[&b], vec![]))
    } else {
        (yes.wrapped(dice, &capture, &perm), no.add("Neg", &[&capture], vec![]))
    };
    let out = |name: &str| unshaped(name, DataType::Float);
    let attributes = vec![
        body("then_branch", yes.nodes, vec![], vec![out(&ends.0)]),
        body("else_branch", no.nodes, vec![], vec![out(&ends.1)]),
    ];
    s.op("If", &[x], vec![condition], &[(DataType::Float, result)], EXACT, attributes)
}

/// A Loop that carries a value and stacks up what each iteration leaves.
pub(super) fn iterate(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = carried(s, dice, 2)?;
    let v = s.values[x].clone();
    let perm = dice.permutation(v.rank());
    let trips = dice.pick(&[2i64, 1, 3]);
    let count = s.raw(DataType::Int64, &[], trips.to_le_bytes().to_vec());
    let go_on = s.raw(DataType::Bool, &[], vec![1]);
    let mut b = Body::new(s);
    let (iteration, condition, state) = (b.name("i"), b.name("c"), b.name("s"));
    let goes_on = b.add("Identity", &[&condition], vec![]);
    let mut next = b.wrapped(dice, &state, &perm);
    if dice.once_in(3) {
        // What the body reads from outside.
        next = b.add("Max", &[&next, &v.name], vec![]);
    }
    let mut outputs = vec![unshaped(&goes_on, DataType::Bool), shaped(&next, DataType::Float, &v.shape, dice)];
    let mut results = vec![(DataType::Float, v.shape.clone())];
    if dice.once_in(2) {
        let left = b.transposed(&state, &perm);
        outputs.push(unshaped(&left, DataType::Float));
        results.push((DataType::Float, [vec![trips], permuted(&v.shape, &perm)].concat()));
    }
    let inputs = vec![
        info(&iteration, DataType::Int64, &[], &BTreeMap::new(), true),
        info(&condition, DataType::Bool, &[], &BTreeMap::new(), true),
        shaped(&state, DataType::Float, &v.shape, dice),
    ];
    let attributes = vec![body("body", b.nodes, inputs, outputs)];
    let name = s.read(x);
    s.op("Loop", &[x], vec![count, go_on, name], &results, EXACT, attributes)
}

/// A Scan along one axis that carries the largest so far and stacks up what it makes of each slice.
pub(super) fn scan(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    if s.opset < 9 {
        return scan_in_batches(s, dice);
    }
    let x = carried(s, dice, 3)?;
    let v = s.values[x].clone();
    let axis = dice.pick(&[0, 0, 1, v.rank() - 1]);
    let mut slice = v.shape.clone();
    let length = slice.remove(axis);
    let perm = dice.permutation(slice.len());
    let start = s.constant(dice, &slice);
    let mut b = Body::new(s);
    let (state, element) = (b.name("s"), b.name("e"));
    let wrapped = b.wrapped(dice, &element, &perm);
    let next = b.add("Max", &[&state, &wrapped], vec![]);
    let left = b.transposed(&wrapped, &perm);
    let place = if dice.once_in(3) { slice.len() } else { 0 };
    let mut stacked = permuted(&slice, &perm);
    stacked.insert(place, length);
    let inputs = vec![shaped(&state, DataType::Float, &slice, dice), shaped(&element, DataType::Float, &slice, dice)];
    let outputs = vec![unshaped(&next, DataType::Float), unshaped(&left, DataType::Float)];
    let mut attributes = vec![int("num_scan_inputs", 1), body("body", b.nodes, inputs, outputs)];
    if axis != 0 {
        attributes.push(ints("scan_input_axes", &[axis as i64]));
    }
    if place != 0 {
        attributes.push(ints("scan_output_axes", &[place as i64]));
    }
    let names = vec![s.read(start), s.read(x)];
    let results = [(DataType::Float, slice), (DataType::Float, stacked)];
    s.op("Scan", &[start, x], names, &results, EXACT, attributes)
}

/// The Scan of opset 8: axis 0 is a batch, axis 1 is taken apart, and the first operand says how long each sequence is.
fn scan_in_batches(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = carried(s, dice, 4)?;
    let v = s.values[x].clone();
    let slice = v.shape[2..].to_vec();
    let perm = dice.permutation(slice.len());
    let first = [&v.shape[..1], &slice[..]].concat();
    let start = s.constant(dice, &first);
    let mut b = Body::new(s);
    let (state, element) = (b.name("s"), b.name("e"));
    let wrapped = b.wrapped(dice, &element, &perm);
    let next = b.add("Max", &[&state, &wrapped], vec![]);
    let left = b.transposed(&wrapped, &perm);
    let whole = |name: &str| info(name, DataType::Float, &slice, &BTreeMap::new(), true);
    let turned = permuted(&slice, &perm);
    let outputs = vec![whole(&next), info(&left, DataType::Float, &turned, &BTreeMap::new(), true)];
    let attributes =
        vec![int("num_scan_inputs", 1), body("body", b.nodes, vec![whole(&state), whole(&element)], outputs)];
    let names = vec![String::new(), s.read(start), s.read(x)];
    let stacked = [&v.shape[..2], &turned[..]].concat();
    let results = [(DataType::Float, first), (DataType::Float, stacked)];
    s.op("Scan", &[start, x], names, &results, EXACT, attributes)
}
