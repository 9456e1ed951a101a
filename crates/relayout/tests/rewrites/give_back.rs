//! A rewrite that fails is given back: what it was about stays as it was, the rest of the gain is kept, and the report says what and why.
//! The target is `onnx` with a pass that is wrong on purpose.

use crate::fold_nets::{BOOL, F32, Net, compare};
use prost::Message;
use relayout::ir::graph::OpName;
use relayout::ir::layout::Layout;
use relayout::proof::Unproved;
use relayout::{Error, Model, Optimized, Options, Target, optimize};
use relayout_onnx::proto::ModelProto;
use relayout_target_api::{Cost, Declared, Fact, MoveQuery, OpQuery, Pass, PassError, Slot, TargetForm};
use relayout_targets::builtin;

/// `onnx`, and passes that a test gives it.
struct Faulty {
    onnx: Box<dyn Target>,
    passes: Vec<Pass>,
}

impl Target for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
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
        self.onnx.forms()
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

    fn view_cost(&self) -> Cost {
        self.onnx.view_cost()
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.onnx.pass_cost(bytes)
    }
}

/// How a pass is wrong about nodes of an op.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It leaves a value in a layout that its neighbours don't have.
    Graph,
    /// It says that it can't go on, and not why.
    Refusal,
    /// It makes another op of it, and nobody sees that.
    Numbers,
}

/// A target whose last pass is wrong about each node of this op; `""` for all nodes, whether they may be changed or not.
fn faulty(op: &'static str, fault: Fault) -> Faulty {
    let is = Declared::new("break_it", Slot::Finish, "is wrong, for tests").needs(&[Fact::Packed]);
    let pass = Pass::on_each_graph(is, move |graph, _| {
        let bad: Vec<_> = graph.nodes().filter(|&n| graph.node(n).onnx() == Some(op)).collect();
        if op.is_empty() {
            return Err(PassError::invalid("break_it", "nothing suits it".to_owned()));
        }
        for n in bad {
            match fault {
                Fault::Refusal => return Err(PassError::invalid("break_it", "it does not suit".to_owned())),
                Fault::Numbers => graph.set_op(n, OpName::onnx("Softsign"), graph.node(n).opset),
                Fault::Graph => {
                    let y = graph.node(n).result(0).expect("it has a result");
                    *graph.value_mut(y).layout = Layout::permutation(&[3, 2, 1, 0]).expect("a permutation");
                }
            }
        }
        Ok(())
    });
    Faulty { onnx: builtin("onnx").expect("a built-in target"), passes: vec![pass] }
}

/// Between two Transposes each: a Relu, a Sigmoid and a Softmax.
fn branches() -> Net {
    let net = Net::new(17).input("x", F32, &[1, 4, 6, 8]);
    [("Relu", "a"), ("Sigmoid", "b"), ("Softmax", "c"), ("Tanh", "d")].into_iter().fold(net, |net, (op, y)| {
        let (turned, done) = (format!("{y}.turned"), format!("{y}.done"));
        let net = net.node_with("Transpose", &["x"], &turned, &[("perm", &[0, 3, 1, 2])]);
        let net = net.node(op, &[&turned], &done);
        net.node_with("Transpose", &[&done], y, &[("perm", &[0, 2, 3, 1])]).output(y, F32)
    })
}

fn made(target: &Faulty, bytes: &[u8], options: &Options) -> Result<Optimized, Error> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    optimize(&model, target, options)
}

fn transposes(bytes: &[u8]) -> usize {
    let model = ModelProto::decode(bytes).expect("a model");
    model.graph.iter().flat_map(|g| &g.node).filter(|n| n.op_type.as_deref() == Some("Transpose")).count()
}

fn transposes_of_branches(bytes: &[u8]) -> usize {
    let model = ModelProto::decode(bytes).expect("a model");
    let nodes = model.graph.iter().flat_map(|g| &g.node);
    let bodies = nodes.flat_map(|n| &n.attribute).filter_map(|a| a.g.as_ref());
    bodies.flat_map(|g| &g.node).filter(|n| n.op_type.as_deref() == Some("Transpose")).count()
}

#[test]
fn the_rest_is_gained_and_the_report_says_what_stays() {
    let bytes = branches().bytes();
    for (op, fault, left) in
        [("Sigmoid", Fault::Graph, 2..=2), ("Softmax", Fault::Graph, 2..=2), ("Tanh", Fault::Refusal, 2..=6)]
    {
        let target = faulty(op, fault);
        let result = made(&target, &bytes, &Options::default()).expect("it is given back");
        let written = result.to_bytes().expect("it is written");
        assert!(left.contains(&transposes(&written)), "{op}: {} are left", transposes(&written));
        assert!(compare(&bytes, &written).exact, "{op}");
        let notes = &result.report().notes;
        // A fault that names no node is found by halves, so more stays.
        let named =
            |note: &String| note.contains(op) || matches!(fault, Fault::Refusal) && note.contains("does not suit");
        assert!(notes.iter().any(|note| note.contains("a rewrite failed") && named(note)), "{op}: {notes:?}");
        assert_eq!(notes.len(), 1, "{op}: {notes:?}");
        // The same again, and nothing is left to do.
        let again =
            made(&target, &bytes, &Options::default()).expect("it is given back").to_bytes().expect("it is written");
        assert_eq!(again, written, "{op}");
        let settled = made(&target, &written, &Options::default()).expect("it is given back");
        assert!(!settled.report().changed, "{op}");
        let strict = made(&target, &bytes, &Options::default().strict()).expect_err("a fault is an error");
        assert!(strict.to_string().contains("break_it"), "{strict}");
    }
}

#[test]
fn what_is_shown_to_compute_something_else_is_given_back() {
    let (bytes, target) = (branches().bytes(), faulty("Sigmoid", Fault::Numbers));
    let made = |unproved| made(&target, &bytes, &Options::default().unproved(unproved));
    // Nobody looks, so it is wrong.
    let wrong = made(Unproved::Allow).expect("nobody looks");
    assert!(!compare(&bytes, &wrong.to_bytes().expect("it is written")).exact && wrong.report().proof.is_none());
    let back = made(Unproved::GiveBack).expect("it is given back");
    let written = back.to_bytes().expect("it is written");
    assert!(compare(&bytes, &written).exact);
    assert!(transposes(&written) < 4, "the rest of the gain is kept");
    let (notes, proof) = (&back.report().notes, back.report().proof.as_ref());
    assert!(notes.iter().any(|note| note.contains("a rewrite failed") && note.contains("Softsign")), "{notes:?}");
    assert!(proof.is_some_and(|proof| proof.proved), "{proof:?}");
    assert!(back.report().line().ends_with("; proved for all sizes"), "{}", back.report().line());
    let loud = made(Unproved::Loud).expect("it is said");
    assert!(loud.report().line().ends_with("; UNPROVED"), "{}", loud.report().line());
    let why = loud.report().proof.as_ref().and_then(|proof| proof.why.as_ref());
    assert!(why.is_some_and(|why| why.contains("Softsign")), "{why:?}");
    let failed = made(Unproved::Fail).expect_err("it is an error").to_string();
    assert!(failed.starts_with("UNPROVED: ") && failed.contains("Softsign"), "{failed}");
    let kept = made(Unproved::KeepInput).expect("the model is kept");
    assert_eq!(kept.to_bytes().expect("it is written"), bytes);
    assert!(kept.report().kept.as_ref().is_some_and(|why| why.contains("Softsign")), "{:?}", kept.report().kept);
    let strict = Options::default().unproved(Unproved::GiveBack).strict();
    assert!(self::made(&target, &bytes, &strict).is_err(), "a fault is an error");
}

#[test]
fn a_model_of_which_nothing_is_proved_comes_out_as_it_was() {
    let bytes = Net::new(17).input("x", F32, &[1, 4]).node("Relu", &["x"], "y").output("y", F32).bytes();
    let is = Declared::new("break_it", Slot::Finish, "is wrong, for tests").needs(&[Fact::Packed]);
    let pass = Pass::on_each_graph(is, move |graph, _| {
        // It looks at no mark.
        let relu: Vec<_> = graph.nodes().filter(|&n| format!("{:?}", graph.node(n).op).contains("Relu")).collect();
        for n in relu {
            graph.set_op(n, OpName::onnx("Neg"), 17);
        }
        Ok(())
    });
    let target = Faulty { onnx: builtin("onnx").expect("a built-in target"), passes: vec![pass] };
    let back = made(&target, &bytes, &Options::default().unproved(Unproved::GiveBack)).expect("it is given back");
    assert_eq!(back.to_bytes().expect("it is written"), bytes);
    assert!(!back.report().changed && back.report().kept.is_some(), "{:?}", back.report());
}

#[test]
fn a_model_that_nothing_suits_comes_out_as_it_was() {
    let bytes = branches().bytes();
    let result = made(&faulty("", Fault::Refusal), &bytes, &Options::default()).expect("it is given back");
    assert_eq!(result.to_bytes().expect("it is written"), bytes);
    let kept = result.report().kept.clone().unwrap_or_default();
    assert!(kept.contains("a rewrite failed") && kept.contains("nothing suits it"), "{kept}");
    assert!(result.report().summary().starts_with("unchanged: a rewrite failed"), "{}", result.report().summary());
}

/// A target with a pass that is wrong about several ops, each by itself.
fn faulty_twice(first: &'static str, second: &'static str) -> Faulty {
    let Faulty { onnx, passes } = faulty(first, Fault::Graph);
    let is = Declared::new("break_more", Slot::Finish, "is wrong too, for tests").needs(&[Fact::Packed]);
    let more = Pass::on_each_graph(is, move |graph, _| {
        let bad: Vec<_> = graph.nodes().filter(|&n| graph.node(n).onnx() == Some(second)).collect();
        match bad.first() {
            Some(&n) => Err(PassError::Invalid {
                pass: "break_more",
                first: format!("{second} does not suit"),
                count: 1,
                ranks: vec![graph.node(n).rank],
            }),
            None => Ok(()),
        }
    });
    Faulty { onnx, passes: passes.into_iter().chain([more]).collect() }
}

#[test]
fn two_faults_are_given_back_and_the_rest_is_gained() {
    let bytes = branches().bytes();
    let result = made(&faulty_twice("Sigmoid", "Tanh"), &bytes, &Options::default()).expect("both are given back");
    let written = result.to_bytes().expect("it is written");
    // Those of Relu and Softmax are gone.
    assert!(transposes(&written) <= 4, "{} are left", transposes(&written));
    assert!(compare(&bytes, &written).exact);
    let notes = result.report().notes.join("\n");
    assert!(notes.contains("Sigmoid") && notes.contains("Tanh"), "{notes}");
}

/// A node of this op between two Transposes that cancel out, as a whole graph or as a part of one.
fn turned(net: Net, op: &str, y: &str) -> Net {
    let (first, second) = (format!("{y}.turned"), format!("{y}.done"));
    let net = net.node_with("Transpose", &["x"], &first, &[("perm", &[0, 3, 1, 2])]).node(op, &[&first], &second);
    net.node_with("Transpose", &[&second], y, &[("perm", &[0, 2, 3, 1])]).output(y, F32)
}

/// One of them in each branch of an If, and one outside of it.
fn in_branches() -> Vec<u8> {
    let (then, other) = (turned(Net::new(17), "Softmax", "p"), turned(Net::new(17), "Tanh", "q"));
    let net = Net::new(17).input("x", F32, &[1, 4, 6, 8]).input("c", BOOL, &[]);
    turned(net.branches("c", "y", &then, &other).output("y", F32), "Relu", "z").bytes()
}

#[test]
fn a_fault_in_a_body_leaves_the_node_that_holds_it() {
    let bytes = in_branches();
    let result = made(&faulty("Softmax", Fault::Graph), &bytes, &Options::default()).expect("it is given back");
    let written = result.to_bytes().expect("it is written");
    // Those of the Relu are gone, and the If is as it was.
    assert_eq!((transposes(&written), transposes_of_branches(&written)), (0, 4));
    let notes = result.report().notes.join("\n");
    assert!(notes.contains("If"), "{notes}");
    let refused = Faulty { passes: vec![refuses_in_bodies("Softmax")], ..faulty("Softmax", Fault::Graph) };
    let result = made(&refused, &bytes, &Options::default()).expect("it is given back");
    let written = result.to_bytes().expect("it is written");
    assert_eq!((transposes(&written), transposes_of_branches(&written)), (0, 4));
}

/// A pass that can't go on at a node, and names it by its place in its own graph.
fn refuses_in_bodies(op: &'static str) -> Pass {
    let is = Declared::new("refuse_it", Slot::Finish, "is wrong, for tests").needs(&[Fact::Packed]);
    Pass::on_each_graph(is, move |graph, _| {
        let bad = graph.nodes().find(|&n| graph.node(n).onnx() == Some(op));
        bad.map_or(Ok(()), |n| {
            let first = "it does not suit".to_owned();
            Err(PassError::Invalid { pass: "refuse_it", first, count: 1, ranks: vec![graph.node(n).rank] })
        })
    })
}

#[test]
fn a_summary_of_an_unchanged_model_says_what_was_given_back() {
    let net = Net::new(17).input("x", F32, &[1, 4, 6, 8]);
    let net = net.node_with("Transpose", &["x"], "a", &[("perm", &[0, 3, 1, 2])]).node("Tanh", &["a"], "b");
    let bytes = net.node_with("Transpose", &["b"], "y", &[("perm", &[0, 2, 3, 1])]).output("y", F32).bytes();
    let result = made(&faulty("Tanh", Fault::Graph), &bytes, &Options::default()).expect("it is given back");
    assert!(!result.report().changed);
    let summary = result.report().summary();
    assert!(summary.starts_with("unchanged: a rewrite failed") && summary.contains("Tanh"), "{summary}");
}

#[test]
fn a_fault_of_the_second_round_is_said() {
    let bytes = branches().bytes();
    let is = Declared::new("break_later", Slot::Finish, "is wrong, for tests").needs(&[Fact::Packed]);
    // Once the Transposes around it are gone, its operand is the input.
    let later = Pass::on_each_graph(is, |graph, _| {
        let bad = graph.nodes().find(|&n| {
            let node = graph.node(n);
            let own = graph.nodes().all(|t| graph.node(t).onnx() != Some("Transpose"));
            own && node.onnx() == Some("Tanh")
                && graph.value(node.operand(0).expect("an operand")).layout.is_row_major()
        });
        bad.map_or(Ok(()), |n| {
            let first = "it does not suit any more".to_owned();
            Err(PassError::Invalid { pass: "break_later", first, count: 1, ranks: vec![graph.node(n).rank] })
        })
    });
    let target = Faulty { passes: vec![later], ..faulty("Tanh", Fault::Graph) };
    let result = made(&target, &bytes, &Options::default()).expect("it is given back");
    let written = result.to_bytes().expect("it is written");
    assert!(compare(&bytes, &written).exact);
    let notes = result.report().notes.join("\n");
    assert!(notes.contains("Tanh") && notes.contains("any more"), "{notes}");
}
