//! Dense layers of each step as Keras writes them: steps become rows, products, and rows become steps again. Drawn at random, with near
//! misses.

use crate::fold_nets::{F32, Net, runtime};
use proptest::prelude::*;
use relayout::{Model, Options, optimize, target};
use relayout_verify::{Inputs, ModelSource, Options as Run, Tolerance, verify};

/// An op between two Reshapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Product,
    /// A Gemm, its weights by columns or not, with or without a summand.
    Gemm {
        by_columns: bool,
        summand: bool,
    },
    /// A vector is added, from the left or from the right.
    Sum {
        left: bool,
    },
    Relu,
    Softmax,
}

/// What is wrong with a near miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// Columns are among the steps.
    Columns,
    /// A number for each row is added.
    PerRow,
    /// The rows are an output as well.
    Read,
    /// Of each column, not of each row.
    Axis,
}

#[derive(Clone, Debug)]
struct Case {
    ops: Vec<Op>,
    /// Rows and columns of images, or one axis of steps.
    images: bool,
    /// The batch is not known.
    open: bool,
    /// Behind the product, rows and columns of images are one axis.
    joined: bool,
    wrong: Option<Wrong>,
}

const CHANNELS: i64 = 6;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => Just(Op::Product),
        2 => any::<[bool; 2]>().prop_map(|[by_columns, summand]| Op::Gemm { by_columns, summand }),
        2 => any::<bool>().prop_map(|left| Op::Sum { left }),
        1 => Just(Op::Relu),
        1 => Just(Op::Softmax),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let wrong = [Wrong::Columns, Wrong::PerRow, Wrong::Read, Wrong::Axis].map(Some);
    let wrong = prop_oneof![3 => Just(None), 2 => prop::sample::select(wrong.to_vec())];
    let shape = (any::<[bool; 3]>(), wrong);
    (prop::collection::vec(op(), 0..4), shape).prop_map(|(ops, ([images, open, joined], wrong))| {
        let mut ops = [&[Op::Product], ops.as_slice()].concat();
        let products = ops.iter().filter(|op| matches!(op, Op::Product | Op::Gemm { .. })).count();
        // Three products of drawn weights leave numbers so large that rounding them shows behind a Softmax.
        if products + usize::from(wrong == Some(Wrong::Columns)) > 2 {
            ops.retain(|op| *op != Op::Softmax);
        }
        Case { ops, images, open: open && wrong.is_none(), joined: images && joined, wrong }
    })
}

impl Case {
    /// Sums that would be of their own.
    fn sums(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, Op::Gemm { summand: true, .. })).count()
    }

    fn steps(&self) -> Vec<i64> {
        if self.images { vec![4, 5] } else { vec![9] }
    }

    /// A convolution of channels first, a dense layer of each place, and a convolution again.
    fn net(&self) -> Net {
        let steps = self.steps();
        let taps = vec![1; steps.len()];
        let all: i64 = steps.iter().product();
        let known = [&[2, CHANNELS], steps.as_slice()].concat();
        let net = Net::new(17);
        let net = if self.open {
            let names: Vec<String> = known.iter().skip(1).map(i64::to_string).collect();
            let names: Vec<&str> = std::iter::once("n").chain(names.iter().map(String::as_str)).collect();
            net.symbolic_input("x", F32, &names)
        } else {
            net.input("x", F32, &known)
        };
        let filters = [&[CHANNELS, CHANNELS], taps.as_slice()].concat();
        let net = net.floats("k", F32, &filters, true).floats("v", F32, &[CHANNELS], true);
        let net = net.floats("row", F32, &[2 * all, 1], true);
        let net = net.node("Conv", &["x", "k"], "c");
        let rank = known.len() as i64;
        let last: Vec<i64> = std::iter::once(0).chain(2..rank).chain([1]).collect();
        let net = net.node_with("Transpose", &["c"], "t", &[("perm", &last)]);
        let rows = if self.wrong == Some(Wrong::Columns) { [-1, CHANNELS / 2] } else { [-1, CHANNELS] };
        let net = net.ints("rows", &rows).ints("halves", &[-1, CHANNELS]).node("Reshape", &["t", "rows"], "r0");
        let (net, at) = self.chain(net);
        let back = if self.joined { vec![-1, all, CHANNELS] } else { [&[-1], steps.as_slice(), &[CHANNELS]].concat() };
        let net = net.ints("back", &back).node("Reshape", &[&at, "back"], "b");
        let rank = back.len() as i64;
        let first: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        let net = net.node_with("Transpose", &["b"], "f", &[("perm", &first)]);
        let net = net.node("Relu", &["f"], "y").output("y", F32);
        if self.wrong == Some(Wrong::Read) { net.output("p0", F32) } else { net }
    }

    fn chain(&self, mut net: Net) -> (Net, String) {
        let mut at = "r0".to_owned();
        if self.wrong == Some(Wrong::Columns) {
            // Sums of halves of rows are no sums of rows.
            net = net.floats("half", F32, &[CHANNELS / 2, CHANNELS / 2], true);
            net = net.node("MatMul", &[&at, "half"], "h").node("Reshape", &["h", "halves"], "q");
            "q".clone_into(&mut at);
        }
        for (i, op) in self.ops.iter().enumerate() {
            let (made, w) = (format!("p{i}"), format!("w{i}"));
            if matches!(op, Op::Product | Op::Gemm { .. }) {
                net = net.floats(&w, F32, &[CHANNELS, CHANNELS], true);
            }
            net = match *op {
                Op::Product => net.node("MatMul", &[&at, &w], &made),
                Op::Gemm { by_columns, summand } => {
                    let operands: &[&str] = if summand { &[&at, &w, "v"] } else { &[&at, &w] };
                    net.node("Gemm", operands, &made).int_attribute("transB", by_columns.into())
                }
                Op::Sum { left } => net.node("Add", &(if left { ["v", &at] } else { [at.as_str(), "v"] }), &made),
                Op::Relu => net.node("Relu", &[&at], &made),
                Op::Softmax => {
                    let axis = if self.wrong == Some(Wrong::Axis) { 0 } else { -1 };
                    net.node("Softmax", &[&at], &made).int_attribute("axis", axis)
                }
            };
            at = made;
        }
        if self.wrong == Some(Wrong::PerRow) {
            net = net.node("Add", &[&at, "row"], "per_row");
            "per_row".clone_into(&mut at);
        }
        if self.wrong == Some(Wrong::Axis) {
            net = net.node("Softmax", &[&at], "columns").int_attribute("axis", 0);
            "columns".clone_into(&mut at);
        }
        (net, at)
    }
}

/// How often an op occurs in a graph.
fn count(text: &str, op: &str) -> usize {
    text.matches(&format!(" = {op}(")).count()
}

fn keeps_rows(case: &Case) -> Result<(), TestCaseError> {
    let bytes = case.net().bytes();
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let onnx = target("onnx").expect("a built-in target");
    let options = Options::default().strict();
    let result = optimize(&model, onnx.as_ref(), &options).expect("it is optimized");
    let (written, text) = (result.to_bytes().expect("it is written"), result.graph().to_string());
    let sizes: &[i64] = if case.open { &[1, 2, 3] } else { &[2] };
    for &n in sizes {
        let dims = case.open.then(|| ("n".to_owned(), n)).into_iter().collect();
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&written));
        let comparison = verify(runtime(), a, b, &Inputs::Random { seed: 5, dims }, &Run::default()).expect("both run");
        prop_assert!(comparison.holds(&Tolerance::new(1e-6, 1e-5)), "{:?}: {}\n{}", case, comparison, text);
    }
    let rule = result.report().rewrites.get("rows_apart").copied().unwrap_or(0);
    prop_assert_eq!(
        rule > 0,
        case.wrong.is_none() && case.sums() + usize::from(case.joined) <= 2,
        "{:?}\n{}",
        case,
        text
    );
    if rule > 0 && !case.joined && !case.ops.contains(&Op::Softmax) {
        prop_assert_eq!((count(&text, "Transpose"), count(&text, "Reshape")), (0, 0), "{:?}\n{}", case, text);
    }
    let verdict = crate::released::verdict(&bytes, &written);
    prop_assert!(verdict.holds(), "{:?}: {}\n{}", case, verdict, text);
    Ok(())
}

#[test]
fn rows_that_are_halves_of_rows_before_are_read_as_they_are_declared() {
    for images in [false, true] {
        let ops = vec![Op::Product, Op::Sum { left: false }];
        let case = Case { ops, images, open: false, joined: false, wrong: Some(Wrong::Columns) };
        keeps_rows(&case).expect("it computes the same");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_dense_layer_of_each_step_computes_on_rows_that_are_apart(case in case()) {
        keeps_rows(&case)?;
    }
}
