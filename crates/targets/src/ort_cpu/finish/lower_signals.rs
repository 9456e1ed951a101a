//! Blocked signals, `[N, C, L]`, as images of one row, `[N, C, 1, L]`: ONNX Runtime's blocked ops take images only.
//!
//! ```text
//! N C/16 L C%16        N C/16 1 L C%16
//! Conv, kernel k       Conv, kernel 1 k
//! ```
//!
//! An op of blocked signals becomes the same op of images, and so do moves, sums and activations between such ops; what is written
//! of images later is then written of these. A Reshape, which moves nothing, stands where the value is read or made as a signal.

use crate::ort_cpu::nodes::constant_behind_moves;
use crate::shared::nodes::insert_reshape;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, KernelLayouts, Renumber, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, Use, ValueId};
use relayout_ir::layout::{Factor, Layout};
use relayout_ir::op::{NCHWC, bind, normalize_axis};
use relayout_ir::storage::{blocked_axes, reshape_target, storage_shape};
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};
use rustc_hash::{FxHashMap, FxHashSet};

/// The pass's name.
const NAME: &str = "lower_signals";
/// Axes of a signal.
const RANK: usize = 3;
/// Where the columns of a signal of channels-first origin stand.
const COLUMNS: usize = 2;

/// For each operand and result of a node that becomes one of an image, where its columns stand. The rows come before them.
#[derive(Clone, Debug)]
struct Slots {
    ins: Vec<Option<usize>>,
    outs: Vec<Option<usize>>,
}

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new(NAME, Slot::Write, "what is written of images is then written of signals")
        .needs(&[Fact::Layouts])
        .after(&["raise_to_digits"])
        .before(&["write_forms"]);
    Pass::on_each_graph(is, |graph, _| lower_signals(graph))
}

/// Makes blocked signals images.
fn lower_signals(graph: &mut Graph) -> Result<(), PassError> {
    let order = graph.order().unwrap_or_default();
    let slots: FxHashMap<NodeId, Slots> = order.iter().filter_map(|&n| Some((n, slots(graph, n)?))).collect();
    let mut lift = Lift { graph, slots, images: FxHashSet::default(), made: FxHashMap::default() };
    order.into_iter().try_for_each(|n| lift.node(n))
}

/// Where the columns of a signal stand that is in blocks of its channels.
fn columns(graph: &Graph, v: ValueId) -> Option<usize> {
    let (axes, _) = blocked_axes(&graph.value(v).layout)?;
    axes.h.is_none().then_some(axes.w)
}

/// What becomes of a node's operands and results, if it becomes one of images.
fn slots(graph: &Graph, n: NodeId) -> Option<Slots> {
    let node = graph.node(n);
    let (x, y) = (node.operand(0)?, node.result(0)?);
    let mut slots = Slots { ins: vec![None; node.inputs.len()], outs: vec![None; node.outputs.len()] };
    let [from, to] = [columns(graph, x), columns(graph, y)];
    (slots.ins[0], slots.outs[0]) = match (&node.op, &node.form) {
        (Op::Relayout, _) => {
            let at = from.or(to).or_else(|| packs_weights(graph, y).then_some(COLUMNS));
            (Some(at?), at)
        }
        (Op::Onnx(_), Form::View(View::Transpose(perm))) => {
            let left = from.and_then(|at| perm.iter().position(|&p| p == at));
            let at = from.or_else(|| perm.get(to?).copied())?;
            (Some(at), Some(left.or(to)?))
        }
        (Op::Onnx(_), Form::Kernel(layouts)) => return of_kernel(graph, node, layouts, slots),
        (Op::Onnx(_), Form::Axes(bound)) => {
            let joins = matches!(bound.renumber[..], [Renumber::AxisAttr(..)]) && named(node, &["Concat", "Split"]);
            (bound.renumber.is_empty() || joins).then_some(())?;
            return of_alike(graph, node, slots);
        }
        _ => return None,
    };
    Some(slots)
}

fn named(node: &Node, names: &[&str]) -> bool {
    matches!(&node.op, Op::Onnx(op) if names.contains(&op.name.as_str()))
}

/// Whether every reader of a value is a convolution of blocked signals whose weights it is.
fn packs_weights(graph: &Graph, v: ValueId) -> bool {
    let reads = |u: &Use| u.slot == 1 && named(graph.node(u.node), &["Conv"]) && slots(graph, u.node).is_some();
    let uses = graph.uses(v);
    !graph.is_output(v) && !uses.is_empty() && uses.iter().all(reads)
}

fn of_kernel(graph: &Graph, node: &Node, layouts: &KernelLayouts, mut slots: Slots) -> Option<Slots> {
    let Op::Onnx(op) = &node.op else { return None };
    let blocked = |v: Option<ValueId>| columns(graph, v?);
    let y = node.result(0);
    match (op.domain.as_str(), op.name.as_str()) {
        ("" | NCHWC, "Conv") => {
            slots.outs[0] = Some(blocked(y).filter(|&at| at == COLUMNS)?);
            slots.ins.iter_mut().take(2).for_each(|slot| *slot = Some(COLUMNS));
        }
        (NCHWC, _) | ("", "Add" | "Sub" | "Mul" | "Div" | "BatchNormalization" | "ReduceMean" | "ReduceMax") => {
            for ((slot, &v), layout) in slots.ins.iter_mut().zip(&node.inputs).zip(&layouts.ins) {
                *slot = layout.as_ref().and_then(|_| blocked(v));
            }
            slots.outs[0] = blocked(y);
        }
        _ => return None,
    }
    (slots.ins[0].is_some() || slots.outs[0].is_some()).then_some(slots)
}

/// An op that treats all elements alike, or joins or splits channels, of signals that all lie alike.
fn of_alike(graph: &Graph, node: &Node, mut slots: Slots) -> Option<Slots> {
    let y = node.result(0)?;
    let (at, layout) = (columns(graph, y)?, &graph.value(y).layout);
    let alike = |v: Option<ValueId>| v.filter(|&v| graph.value(v).layout == *layout).map(|_| at);
    let one = |v: ValueId| graph.value(v).ty.shape().is_some_and(|shape| shape.iter().all(Dim::is_one));
    let list = |v: ValueId| graph.value(v).ty.rank() == Some(1) && named(node, &["Split"]);
    for (slot, &v) in slots.ins.iter_mut().zip(&node.inputs) {
        *slot = alike(v);
        (slot.is_some() || v.is_none_or(|v| one(v) || list(v))).then_some(())?;
    }
    for (slot, &v) in slots.outs.iter_mut().zip(&node.outputs) {
        *slot = alike(v);
        (slot.is_some() || v.is_none()).then_some(())?;
    }
    Some(slots)
}

struct Lift<'g> {
    graph: &'g mut Graph,
    slots: FxHashMap<NodeId, Slots>,
    /// Values that are images by now.
    images: FxHashSet<ValueId>,
    /// Images that Reshapes make of signals, by where their columns stand.
    made: FxHashMap<(ValueId, usize), ValueId>,
}

impl Lift<'_> {
    fn node(&mut self, n: NodeId) -> Result<(), PassError> {
        let Some(Slots { ins, outs }) = self.slots.get(&n).cloned() else { return Ok(()) };
        let mut inputs = self.graph.node(n).inputs.clone();
        let scales = named(self.graph.node(n), &["Add", "Sub", "Mul", "Div"]);
        let filled = ins.iter().chain(&outs).flatten().next().copied();
        for (input, at) in inputs.iter_mut().zip(&ins) {
            let Some(v) = *input else { continue };
            *input = match (at, filled) {
                (Some(at), _) => Some(self.image(n, v, *at)?),
                (None, Some(columns)) if scales => Some(self.per_channel(n, v, columns)?),
                _ => Some(v),
            };
        }
        self.graph.set_inputs(n, inputs);
        self.attributes(n, &outs);
        let outputs = self.graph.node(n).outputs.clone();
        for (v, at) in outputs.into_iter().zip(&outs) {
            if let (Some(v), Some(at)) = (v, at) {
                self.becomes_image(n, v, *at)?;
            }
        }
        let form = self.form(n, &ins, &outs);
        self.graph.set_form(n, form);
        Ok(())
    }

    /// What the node means for layouts now.
    fn form(&self, n: NodeId, ins: &[Option<usize>], outs: &[Option<usize>]) -> Form {
        let of = |layouts: &[Option<Layout>], slots: &[Option<usize>]| {
            let with = |(i, layout): (usize, &Option<Layout>)| {
                let at = slots.get(i).copied().flatten();
                at.zip(layout.as_ref()).map(|(at, l)| with_rows(l, at)).or_else(|| layout.clone())
            };
            layouts.iter().enumerate().map(with).collect()
        };
        match &self.graph.node(n).form {
            Form::Kernel(layouts) => {
                Form::Kernel(Box::new(KernelLayouts { ins: of(&layouts.ins, ins), outs: of(&layouts.outs, outs) }))
            }
            Form::View(View::Transpose(perm)) => match (ins.first(), outs.first()) {
                (Some(Some(from)), Some(Some(to))) => Form::View(View::Transpose(perm_with_rows(perm, *from, *to))),
                _ => Form::View(View::Transpose(perm.clone())),
            },
            Form::Axes(_) => bind(self.graph, n),
            form => form.clone(),
        }
    }

    /// Attributes that speak of axes.
    fn attributes(&mut self, n: NodeId, outs: &[Option<usize>]) {
        let node = self.graph.node(n);
        let mut changed: Vec<(&str, Attr)> = Vec::new();
        for (name, row) in [("kernel_shape", 1), ("strides", 1), ("dilations", 1)] {
            if let Some(&[along]) = node.ints(name) {
                changed.push((name, Attr::Ints(vec![row, along])));
            }
        }
        if let Some(&[before, behind]) = node.ints("pads") {
            changed.push(("pads", Attr::Ints(vec![0, before, 0, behind])));
        }
        let joined = node.int("axis").and_then(|axis| normalize_axis(axis, RANK)).zip(outs.first().copied().flatten());
        if let Some((axis, columns)) = joined.filter(|_| matches!(node.form, Form::Axes(_))) {
            changed.push(("axis", Attr::Int((axis + usize::from(axis >= columns)) as i64)));
        }
        let attrs = self.graph.attrs_mut(n);
        for (name, attr) in changed {
            attrs.insert(name.to_owned(), attr);
        }
    }

    /// The image that a signal is.
    fn image(&mut self, n: NodeId, v: ValueId, at: usize) -> Result<ValueId, PassError> {
        if self.images.contains(&v) {
            return Ok(v);
        }
        if let Some(&image) = self.made.get(&(v, at)) {
            return Ok(image);
        }
        // What is made wider is read as a constant.
        let widened = self.graph.node(n).onnx() == Some("Conv") && self.graph.node(n).inputs.get(1) == Some(&Some(v));
        if let Some(constant) = constant_behind_moves(self.graph, v).filter(|w| widened && w.pending.is_none()) {
            return self.constant(n, v, constant, at);
        }
        let value = self.graph.value(v);
        let (ty, layout) = (type_with_rows(&value.ty, at), with_rows(&value.layout, at));
        let image = if value.layout.is_row_major() {
            let (name, opset) = (format!("{}.image", value.name), self.graph.node(n).opset);
            let rank = self.graph.node(value.producer().0).rank.min(self.graph.node(n).rank);
            let mut make = Builder::new(self.graph, rank).opset(opset);
            make.op("Reshape", [v]).form(Form::View(View::Reshape)).result(&name, ty)?
        } else {
            let target = self.target((v, &value.layout), (&ty, &layout), n)?;
            insert_reshape(self.graph, n, v, &target, (ty, layout), (vec![], vec![]), None)?
        };
        self.made.insert((v, at), image);
        Ok(image)
    }

    /// A number per channel, or one, as it is broadcast over an image.
    fn per_channel(&mut self, n: NodeId, v: ValueId, at: usize) -> Result<ValueId, PassError> {
        let Some(constant) = self.graph.constant(v).cloned() else { return Ok(v) };
        let Some(at) = (at + constant.dims.len()).checked_sub(RANK).filter(|_| !constant.dims.is_empty()) else {
            return Ok(v);
        };
        self.constant(n, v, constant, at)
    }

    /// A constant with rows before this axis.
    fn constant(&mut self, n: NodeId, v: ValueId, constant: Constant, at: usize) -> Result<ValueId, PassError> {
        let mut dims = constant.dims.clone();
        dims.insert(at.min(dims.len()), 1);
        let name = format!("{}.image", self.graph.value(v).name);
        Ok(Builder::at(self.graph, n).constant(&name, Constant { dims, ..constant })?)
    }

    /// Makes the result of a node an image, and lets those who read a signal have it.
    fn becomes_image(&mut self, n: NodeId, v: ValueId, at: usize) -> Result<(), PassError> {
        let value = self.graph.value(v);
        let signal = (value.ty.clone(), value.layout.clone());
        let image = (type_with_rows(&signal.0, at), with_rows(&signal.1, at));
        (*self.graph.value_mut(v).ty, *self.graph.value_mut(v).layout) = image.clone();
        self.images.insert(v);
        let lifted = |u: &Use| self.slots.get(&u.node).is_some_and(|s| s.ins.get(u.slot).copied().flatten().is_some());
        let uses: Vec<Use> = self.graph.uses(v).into_iter().filter(|u| !lifted(u)).collect();
        let outputs = self.graph.output_places(v).to_vec();
        if uses.is_empty() && outputs.is_empty() {
            return Ok(());
        }
        let target = self.target((v, &image.1), (&signal.0, &signal.1), n)?;
        insert_reshape(self.graph, n, v, &target, signal, (uses, outputs), Some(v)).map(drop)
    }

    /// What a Reshape of a value to this type and layout says.
    fn target(&self, (v, from): (ValueId, &Layout), to: (&Type, &Layout), n: NodeId) -> Result<Vec<i64>, PassError> {
        let stored = self.graph.storage_shape(v, from);
        let wanted = to.0.shape().and_then(|s| storage_shape(s, to.1, self.graph.storage));
        stored.zip(wanted).and_then(|(from, to)| reshape_target(&from, &to)).ok_or_else(|| {
            let first = format!("{} can't be an image of one row", self.graph.node(n).describe(self.graph));
            PassError::invalid(NAME, first)
        })
    }
}

/// A type with an axis of rows before the columns.
fn type_with_rows(ty: &Type, at: usize) -> Type {
    let shape = ty.shape().map(|shape| {
        let mut shape = shape.to_vec();
        shape.insert(at.min(shape.len()), Dim::ONE);
        shape
    });
    Type::Tensor(TensorType { dtype: ty.dtype(), shape })
}

/// The layout with an axis of rows before the columns, outside of them.
fn with_rows(layout: &Layout, at: usize) -> Layout {
    let moved = |axis: u8| axis + u8::from(usize::from(axis) >= at);
    let mut factors: Vec<Factor> = layout.factors().iter().map(|f| Factor { axis: moved(f.axis), ..*f }).collect();
    let columns = layout.factors().iter().position(|f| usize::from(f.axis) == at).unwrap_or(factors.len());
    factors.insert(columns, Factor::whole(at as u8));
    let maps = (0..layout.rank()).filter_map(|axis| Some((moved(axis as u8), layout.slot_map(axis)?.to_vec())));
    Layout::new(layout.rank() + 1, factors, maps).unwrap_or_else(|_| Layout::row_major(layout.rank() + 1))
}

/// The permutation with an axis of rows before the columns of the operand, and before those of the result.
fn perm_with_rows(perm: &[usize], from: usize, to: usize) -> Vec<usize> {
    let mut perm: Vec<usize> = perm.iter().map(|&p| p + usize::from(p >= from)).collect();
    perm.insert(to, from);
    perm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_before_columns() {
        let read = |text: &str| -> Layout { text.parse().unwrap() };
        for (signal, at, image) in [
            ("a b/16 c b%16", 2, "a b/16 c d b%16"),
            ("a c/16 b c%16", 1, "a d/16 b c d%16"),
            ("a c b", 2, "a c d b"),
            ("a c b[9:16]", 2, "a c d b[9:16]"),
            ("a b[9:16] c", 1, "a b c[9:16] d"),
        ] {
            assert_eq!(with_rows(&read(signal), at), read(image), "{signal}");
        }
        assert_eq!(perm_with_rows(&[0, 2, 1], 2, 1), [0, 2, 3, 1]);
        assert_eq!(perm_with_rows(&[0, 2, 1], 1, 2), [0, 3, 1, 2]);
    }
}
