//! Pieces of several nodes in a decision: they may overlap, and what is between may be read from outside.

use relayout_ir::attr::Attrs;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, OpName};
use relayout_ir::model::Model;
use relayout_ir::text::parse;
use relayout_passes::decide::{Decision, Grounds, Scopes};
use relayout_passes::pipeline::{Before, PipelineOptions, prepare};
use relayout_solve::Limits;
use relayout_target_api::hints::Hints;
use relayout_target_api::{
    Cost, MoveQuery, NodeQuery, Numerics, Offer, OpQuery, Raise, Raised, RaisedOperand, Recognized, Target, TargetForm,
};
use std::collections::BTreeMap;

/// What every node costs.
const NODE: u64 = 100;

/// A target on which `Relu(Neg(x))` and `Abs(Neg(x))` are one op each, at a price of its own.
struct Fusing {
    forms: Vec<Box<dyn TargetForm>>,
}

struct Fused {
    last: &'static str,
    cost: u64,
}

/// What the nodes cost as they are.
struct Plain;

fn fusing(relu: u64, abs: u64) -> Fusing {
    let forms: Vec<Box<dyn TargetForm>> =
        vec![Box::new(Fused { last: "Relu", cost: relu }), Box::new(Fused { last: "Abs", cost: abs }), Box::new(Plain)];
    Fusing { forms }
}

impl TargetForm for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Neg", "Relu", "Abs"]
    }

    fn offers(&self, _q: &NodeQuery<'_>) -> Vec<Offer> {
        Vec::new()
    }

    fn plain(&self, _q: &NodeQuery<'_>) -> Option<Cost> {
        Some(Cost::new(NODE))
    }
}

impl TargetForm for Fused {
    fn name(&self) -> &'static str {
        self.last
    }

    fn ops(&self) -> &'static [&'static str] {
        match self.last {
            "Relu" => &["NegRelu"],
            _ => &["NegAbs"],
        }
    }

    fn offers(&self, _q: &NodeQuery<'_>) -> Vec<Offer> {
        let (layouts, cost) = (KernelLayouts::default(), Cost::new(self.cost));
        vec![Offer { form: self.last, layouts, cost, becomes: None, adds_zeros: false }]
    }

    fn plain(&self, _q: &NodeQuery<'_>) -> Option<Cost> {
        Some(Cost::new(2 * NODE))
    }

    /// Every Neg that is read so, whoever else reads it.
    fn pieces(&self, graph: &Graph, nodes: &[NodeId], _: &[Recognized]) -> Vec<Raised> {
        let raised = |&n: &NodeId| {
            let node = graph.node(n);
            let neg = graph.value(node.operand(0)?).producer().0;
            let fits = node.onnx() == Some(self.last) && graph.node(neg).onnx() == Some("Neg");
            let x = graph.node(neg).operand(0).filter(|_| fits)?;
            let (op, operands) = (OpName::new("stub", self.ops()[0]), vec![RaisedOperand::Value(x)]);
            let raise = Raise { op, attrs: Attrs::default(), operands };
            Some(Raised { nodes: vec![neg, n], result: node.result(0)?, raise })
        };
        nodes.iter().filter_map(raised).collect()
    }
}

impl Target for Fusing {
    fn name(&self) -> &'static str {
        "fusing"
    }

    fn about(&self) -> &'static str {
        "tests"
    }

    fn layouts(&self) -> &'static str {
        "row-major"
    }

    fn dialect(&self) -> &'static str {
        "none"
    }

    fn cost_source(&self) -> &'static str {
        "made up"
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn op_cost(&self, _query: &OpQuery<'_>) -> Option<Cost> {
        Some(Cost::ZERO)
    }

    fn move_cost(&self, _query: &MoveQuery<'_>) -> Option<Cost> {
        Some(Cost::new(NODE))
    }

    fn view_cost(&self) -> Cost {
        Cost::ZERO
    }

    fn pass_cost(&self, _bytes: u64) -> Cost {
        Cost::ZERO
    }
}

/// What is decided: the cost of all nodes, whether it is known to be the least, and the results of pieces that are one op.
fn decided(text: &str, target: &Fusing) -> (u64, bool, Vec<String>) {
    let graph = parse(text).expect("a graph");
    let mut model = Model { graph, opsets: BTreeMap::from([(String::new(), 17)]), ..Model::default() };
    let (_, hints) = prepare(&mut model, target, &PipelineOptions::default(), Before::Everything).expect("runs");
    let hints: Hints = hints;
    let scopes = Scopes::of(&model.graph).with_pieces(target, Numerics::Reassociate).expect("sound");
    let limits = Limits::default();
    let grounds = Grounds { target, hints: &hints, numerics: Numerics::Reassociate, least_gain: 0 };
    let decision = Decision::of(&scopes, grounds, &limits).expect("decides");
    let raised = decision.plan().raised(0).map(|piece| model.graph.value(piece.result).name.clone()).collect();
    (decision.whole_cost().get(), decision.record().optimal, raised)
}

const ONE: &str = "graph g opset=17
  %x: f32[2,3] = input
  %n: f32[2,3] = Neg(%x)
  %y: f32[2,3] = Relu(%n)
  output %y
";

const TWO: &str = "graph g opset=17
  %x: f32[2,3] = input
  %n: f32[2,3] = Neg(%x)
  %y: f32[2,3] = Relu(%n)
  %z: f32[2,3] = Abs(%n)
  output %y
  output %z
";

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn a_piece_is_one_op_where_that_is_cheaper_than_its_nodes() {
    assert_eq!(decided(ONE, &fusing(150, 0)), (150, true, names(&["y"])));
    assert_eq!(decided(ONE, &fusing(201, 0)), (200, true, names(&[])));
    assert_eq!(decided(ONE, &fusing(200, 0)), (200, true, names(&[])), "a tie keeps the file's nodes");
}

#[test]
fn what_is_between_runs_as_long_as_somebody_else_reads_it() {
    let read = format!("{ONE}  output %n\n");
    // The node before stays, at 100: the op is worth less than 100.
    assert_eq!(decided(&read, &fusing(150, 0)), (200, true, names(&[])));
    assert_eq!(decided(&read, &fusing(90, 0)), (190, true, names(&["y"])));
}

#[test]
fn pieces_that_overlap_are_chosen_together() {
    assert_eq!(decided(TWO, &fusing(400, 400)), (300, true, names(&[])));
    // Either alone would keep the node that both have: 140 + 100 + 100.
    assert_eq!(decided(TWO, &fusing(140, 400)), (300, true, names(&[])));
    assert_eq!(decided(TWO, &fusing(140, 140)), (280, true, names(&["y", "z"])));
    assert_eq!(decided(TWO, &fusing(90, 400)), (290, true, names(&["y"])));
    assert_eq!(decided(TWO, &fusing(90, 205)), (290, true, names(&["y"])));
    assert_eq!(decided(TWO, &fusing(90, 195)), (285, true, names(&["y", "z"])));
}
