//! What the nodes of a graph ask of the extents of what they read.

use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, Node, Op};
use relayout_ir::op::read::{List, group, known_ints, list};
use std::collections::BTreeSet;

/// Something that has to hold of an extent, or of an expression of extents, for a node to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Equation {
    pub(super) strength: Strength,
    pub(super) dim: Dim,
    pub(super) need: Need,
    /// The node that asks for it, for people.
    pub(super) why: String,
}

/// Whether an equation has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// The model does not run otherwise.
    Firm,
    /// In a body that need not run.
    InBody,
    /// An extent of 1 would do as well.
    Meets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Is(i64),
    IsMultipleOf(i64),
    IsAtLeast(i64),
}

/// The equations of a graph whose types are inferred, and of its bodies, each once, in the order of the nodes.
pub(super) fn equations(graph: &Graph) -> Vec<Equation> {
    let mut found = EquationSet { seen: BTreeSet::new(), all: Vec::new() };
    found.graph(graph, Strength::Firm);
    found.all
}

struct EquationSet {
    seen: BTreeSet<(Strength, Dim, Need)>,
    all: Vec<Equation>,
}

impl EquationSet {
    fn graph(&mut self, graph: &Graph, strength: Strength) {
        for n in graph.order().unwrap_or_default() {
            let node = graph.node(n);
            Reader { graph, node, strength, found: self }.node();
            node.bodies().for_each(|body| self.graph(body, Strength::InBody));
        }
    }

    fn add(&mut self, equation: Equation) {
        let key = (equation.strength, equation.dim.clone(), equation.need);
        if !equation.dim.is_const() && self.seen.insert(key) {
            self.all.push(equation);
        }
    }
}

/// One node as it is read.
struct Reader<'a> {
    graph: &'a Graph,
    node: &'a Node,
    strength: Strength,
    found: &'a mut EquationSet,
}

impl<'a> Reader<'a> {
    fn node(&mut self) {
        let node = self.node;
        if let Op::Onnx(op) = &node.op {
            match (op.domain.as_str(), op.name.as_str()) {
                ("", "MatMul" | "MatMulInteger") | ("com.microsoft", "DynamicQuantizeMatMul") => self.product(0, 1),
                ("" | "com.microsoft", "QLinearMatMul") => self.product(0, 3),
                ("", "Gemm") | ("com.microsoft", "FusedGemm") => self.gemm(),
                ("", "Conv" | "ConvInteger") | ("com.microsoft", "FusedConv") => self.channels(1, 1, self.groups()),
                ("", "QLinearConv") => self.channels(3, 1, self.groups()),
                ("", "ConvTranspose" | "BatchNormalization" | "InstanceNormalization") => self.channels(1, 0, 1),
                ("", "LSTM" | "GRU" | "RNN") => self.recurrent(2),
                ("com.microsoft", "DynamicQuantizeLSTM") => self.recurrent(1),
                ("", "Squeeze") => self.squeezed(),
                ("", "Concat") => self.joined(),
                ("", "Split") => self.split(),
                ("", "Reshape") => self.reshaped(),
                ("", "Gather") => self.picked(),
                ("", "Expand") => self.expanded(),
                ("", name) if BROADCAST.contains(&name) => self.broadcast(),
                _ => {}
            }
        }
        for v in node.outputs.iter().flatten() {
            for dim in self.graph.value(*v).ty.shape().unwrap_or_default() {
                self.need(dim, Need::IsAtLeast(1));
            }
        }
    }

    fn shape(&self, slot: usize) -> Option<&'a [Dim]> {
        self.graph.value(self.node.operand(slot)?).ty.shape()
    }

    /// An axis of an operand, counted from the end if negative.
    fn dim(&self, slot: usize, axis: i64) -> Option<&'a Dim> {
        let shape = self.shape(slot)?;
        shape.get(place(axis, shape.len())?)
    }

    /// Numbers that the node is told by an attribute or by an operand.
    fn list(&self, name: &str) -> Option<Vec<i64>> {
        match list(self.graph, self.node, name) {
            List::Known(list) => list.iter().map(Dim::as_const).collect(),
            _ => None,
        }
    }

    fn groups(&self) -> i64 {
        group(self.node).unwrap_or(1)
    }

    fn need(&mut self, dim: &Dim, need: Need) {
        self.put(dim, need, self.strength);
    }

    fn put(&mut self, dim: &Dim, need: Need, strength: Strength) {
        let why = self.node.describe(self.graph);
        self.found.add(Equation { strength, dim: dim.clone(), need, why });
    }

    /// Both are the same number.
    fn same(&mut self, a: Option<&Dim>, b: Option<&Dim>) {
        self.alike(a, b, self.strength);
    }

    fn alike(&mut self, a: Option<&Dim>, b: Option<&Dim>, strength: Strength) {
        let (Some(a), Some(b)) = (a, b) else { return };
        match (a.as_const(), b.as_const()) {
            (Some(_), Some(_)) => {}
            (None, Some(n)) => self.put(a, Need::Is(n), strength),
            (Some(n), None) => self.put(b, Need::Is(n), strength),
            (None, None) => {
                if let Some(difference) = a.checked_sub(b) {
                    self.put(&difference, Need::Is(0), strength);
                }
            }
        }
    }

    fn product(&mut self, a: usize, b: usize) {
        let rank = self.shape(b).map_or(0, <[Dim]>::len);
        let rows = self.dim(b, if rank == 1 { 0 } else { -2 });
        self.same(self.dim(a, -1), rows);
    }

    fn gemm(&mut self) {
        let (a, b) = (i64::from(!self.node.flag("transA")), i64::from(self.node.flag("transB")));
        self.same(self.dim(0, a), self.dim(1, b));
    }

    /// The second axis of the first operand is `times` an axis of the weights.
    fn channels(&mut self, weights: usize, axis: i64, times: i64) {
        let channels = self.dim(weights, axis).and_then(|dim| dim.checked_mul(&times.into()));
        self.same(self.dim(0, 1), channels.as_ref());
    }

    /// Networks with a state: `width` is the axis of the weights that runs over the entries of what is read.
    fn recurrent(&mut self, width: i64) {
        self.same(self.dim(0, 2), self.dim(1, width));
        let (batch, before) = if self.node.flag("layout") { (0, 0) } else { (1, 1) };
        let hidden = self.dim(2, width).cloned();
        self.same(self.dim(4, 0), self.dim(0, batch));
        for state in [5, 6] {
            self.same(self.dim(state, 2), hidden.as_ref());
            self.same(self.dim(state, before), self.dim(0, batch));
            self.same(self.dim(state, 1 - before), self.dim(1, 0));
        }
    }

    fn squeezed(&mut self) {
        for axis in self.list("axes").unwrap_or_default() {
            if let Some(dim) = self.dim(0, axis) {
                self.need(dim, Need::Is(1));
            }
        }
    }

    fn joined(&mut self) {
        let Some(first) = self.shape(0) else { return };
        let Some(along) = self.node.int("axis").and_then(|axis| place(axis, first.len())) else { return };
        for slot in 1..self.node.inputs.len() {
            let Some(other) = self.shape(slot).filter(|other| other.len() == first.len()) else { continue };
            for axis in (0..first.len()).filter(|&axis| axis != along) {
                self.same(first.get(axis), other.get(axis));
            }
        }
    }

    fn split(&mut self) {
        let Some(parts) = self.list("split") else { return };
        let whole = parts.iter().try_fold(0i64, |sum, &part| sum.checked_add(part));
        if let (Some(dim), Some(whole)) = (self.dim(0, self.node.int("axis").unwrap_or(0)), whole) {
            self.need(dim, Need::Is(whole));
        }
    }

    /// As many elements as the target has, or a multiple of them.
    fn reshaped(&mut self) {
        let (Some(from), Some(target)) = (self.shape(0), self.node.operand(1)) else { return };
        let Some(target) = self.graph.value(target).contents.clone() else { return };
        let kept = |(axis, dim): (usize, &Dim)| match dim.as_const() {
            Some(0) if !self.node.flag("allowzero") => from.get(axis).cloned(),
            _ => Some(dim.clone()),
        };
        let Some(target) = target.iter().enumerate().map(kept).collect::<Option<Vec<Dim>>>() else { return };
        let open = |dim: &Dim| dim.as_const() == Some(-1);
        let told: Vec<Dim> = target.iter().filter(|dim| !open(dim)).cloned().collect();
        let (Some(elements), Some(told)) = (Dim::product(from), Dim::product(&told)) else { return };
        if !target.iter().any(open) {
            self.same(Some(&elements), Some(&told));
            return;
        }
        // What is kept as it is cancels out.
        let shared: Vec<&Dim> = from.iter().filter(|dim| !dim.is_const() && target.contains(dim)).collect();
        let without = |product: Dim| shared.iter().try_fold(product, |product, dim| product.exact_div(dim));
        if let (Some(elements), Some(Some(n))) = (without(elements), without(told).map(|told| told.as_const()))
            && n > 1
        {
            self.need(&elements, Need::IsMultipleOf(n));
        }
    }

    /// An axis is as long as the largest index that is known.
    fn picked(&mut self) {
        let indices = self.node.operand(1).and_then(|v| known_ints(self.graph, v));
        let reach = |&i: &i64| if i < 0 { i.checked_neg() } else { i.checked_add(1) };
        let longest = indices.and_then(|indices| indices.iter().filter_map(reach).max());
        if let (Some(dim), Some(n)) = (self.dim(0, self.node.int("axis").unwrap_or(0)), longest) {
            self.need(dim, Need::IsAtLeast(n));
        }
    }

    fn expanded(&mut self) {
        let to = self.node.operand(1).and_then(|v| self.graph.value(v).contents.as_deref());
        if let (Some(from), Some(to)) = (self.shape(0), to) {
            self.fits(from, to);
        }
    }

    fn broadcast(&mut self) {
        let shapes: Vec<&[Dim]> = (0..self.node.inputs.len()).filter_map(|slot| self.shape(slot)).collect();
        for (at, a) in shapes.iter().enumerate() {
            shapes[at + 1..].iter().for_each(|b| self.fits(a, b));
        }
    }

    /// Axes that meet are equal, or one of them has one element.
    fn fits(&mut self, a: &[Dim], b: &[Dim]) {
        for (a, b) in a.iter().rev().zip(b.iter().rev()) {
            if !a.is_one() && !b.is_one() && a != b {
                self.alike(Some(a), Some(b), Strength::Meets);
            }
        }
    }
}

/// Ops whose operands are of one shape but for axes of one element.
const BROADCAST: [&str; 20] = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Mod",
    "Min",
    "Max",
    "Mean",
    "Sum",
    "Where",
    "PRelu",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
];

/// The axis of a tensor of so many that a number names, from the end if it is negative.
pub(super) fn place(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}
