//! A target for tests: `onnx` with two forms of its own, a move that it splits, and whatever passes a test gives it.

use relayout_ir::attr::Attrs;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, OpName};
use relayout_ir::layout::Layout;
use relayout_target_api::{
    Cost, Equation, Fragment, Left, Made, MoveQuery, NodeQuery, Numerics, Offer, OpQuery, Pass, Piece, Raise,
    RaisedOperand, Recognized, Refused, Target, TargetForm,
};
use relayout_targets::builtin;

pub(crate) struct Stub {
    onnx: Box<dyn Target>,
    forms: Vec<Box<dyn TargetForm>>,
    passes: Vec<Pass>,
}

impl Stub {
    pub(crate) fn new(passes: Vec<Pass>) -> Stub {
        Stub { onnx: builtin("onnx").unwrap(), forms: vec![Box::new(ThreeNodes), Box::new(TwoInOne)], passes }
    }
}

/// Mish as three nodes: `x * Tanh(Softplus(x))`. Of vectors it is dearer than the op.
struct ThreeNodes;

/// `Relu(Neg(x))` as one op. Of vectors it is dearer than both.
struct TwoInOne;

const PLAIN: u64 = 100_000;

fn offer(form: &'static str, q: &NodeQuery<'_>) -> Vec<Offer> {
    let rank = q.graph.node(q.node).operand(0).and_then(|x| q.graph.value(x).ty.rank());
    let cost = Cost::new(if rank == Some(1) { 2 * PLAIN } else { PLAIN / 2 });
    vec![Offer { form, layouts: KernelLayouts::default(), cost, becomes: None, adds_zeros: false }]
}

impl TargetForm for ThreeNodes {
    fn name(&self) -> &'static str {
        "three_nodes"
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Mish"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        offer(self.name(), q)
    }

    fn plain(&self, _q: &NodeQuery<'_>) -> Option<Cost> {
        Some(Cost::new(PLAIN))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let (graph, node) = (piece.graph, piece.graph.node(piece.node));
        let (Some(x), Some(y)) = (node.operand(0), node.result(0)) else {
            return Err(Refused::new(piece, "lacks its operand"));
        };
        let ty = graph.value(y).ty.clone();
        let mut fragment = Fragment::new(piece, self.name());
        let op = |name, operands: Vec<_>| Made::op("", name, piece.opset, operands);
        let soft = fragment.add(op("Softplus", vec![x.into()]), Left::row_major("soft", ty.clone()));
        let gate = fragment.add(op("Tanh", vec![soft]), Left::row_major("gate", ty.clone()));
        let all = fragment.add(op("Mul", vec![x.into(), gate]), Left::row_major("all", ty));
        fragment.exit(y, all);
        Ok(fragment)
    }
}

impl TargetForm for TwoInOne {
    fn name(&self) -> &'static str {
        "two_in_one"
    }

    fn ops(&self) -> &'static [&'static str] {
        &["NegRelu"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        offer(self.name(), q)
    }

    fn plain(&self, _q: &NodeQuery<'_>) -> Option<Cost> {
        Some(Cost::new(PLAIN))
    }

    fn recognizes(&self) -> &'static [&'static str] {
        &["NegRelu"]
    }

    fn raises(&self, _graph: &Graph, piece: &Recognized) -> Option<Raise> {
        Some(Raise {
            op: OpName::new("stub", "NegRelu"),
            attrs: Attrs::default(),
            operands: vec![RaisedOperand::Value(piece.value(0)?)],
        })
    }
}

/// What it recognizes.
const EQUATIONS: &[Equation] = &[Equation {
    name: "neg_relu",
    left: "(Relu (Neg ?x))",
    right: "(NegRelu ?x)",
    when: &[],
    numerics: Numerics::Reassociate,
}];

impl Target for Stub {
    fn name(&self) -> &'static str {
        "stub"
    }

    fn about(&self) -> &'static str {
        "tests"
    }

    fn layouts(&self) -> &'static str {
        "orders of whole axes"
    }

    fn dialect(&self) -> &'static str {
        "standard ONNX"
    }

    fn cost_source(&self) -> &'static str {
        "made up"
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn equations(&self) -> &[Equation] {
        EQUATIONS
    }

    fn passes(&self) -> &[Pass] {
        &self.passes
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        self.onnx.op_cost(query)
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        self.onnx.move_cost(query)
    }

    /// The last axis from before an image to behind it, in two steps.
    fn split_move(&self, query: &MoveQuery<'_>) -> Vec<[Layout; 2]> {
        let [before, between] = [[0, 3, 1, 2], [0, 1, 3, 2]].map(|perm| Layout::permutation(&perm).unwrap());
        if *query.from == before && query.to.is_row_major() {
            return vec![[before, between.clone()], [between, query.to.clone()]];
        }
        Vec::new()
    }

    fn view_cost(&self) -> Cost {
        self.onnx.view_cost()
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.onnx.pass_cost(bytes)
    }
}
