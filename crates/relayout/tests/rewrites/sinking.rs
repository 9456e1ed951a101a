//! The families of ops that other optimizers test their moves of Transposes on, and the networks that they convert between layouts.
//! The lists are those of `OpenVINO`'s transpose sinking and of TVM's layout conversion; the models are our own.

use crate::common;
use crate::fold_nets::{BOOL, F32, I64, Net};
use prost::Message;
use relayout::target;
use relayout_onnx::proto::ModelProto;
use relayout_verify::Tolerance;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const TO_CHANNELS_FIRST: (&str, &[i64]) = ("perm", &[0, 3, 1, 2]);
const TO_CHANNELS_LAST: (&str, &[i64]) = ("perm", &[0, 2, 3, 1]);

/// Transposes of a file. Targets with functions move by calls of them, which the report counts.
fn transposes(bytes: &[u8]) -> usize {
    let model = ModelProto::decode(bytes).expect("a model");
    model.graph.iter().flat_map(|g| &g.node).filter(|n| n.op_type.as_deref() == Some("Transpose")).count()
}

/// Why what a target makes of a model does not run as it does, or moves another number of times than `left`.
fn problem(name: &str, bytes: &[u8], left: usize) -> Option<String> {
    let target = target(name).expect("a built-in target");
    let made = match common::optimized_for(target.as_ref(), bytes, &BTreeMap::new()) {
        Ok(made) => made,
        Err(why) => return Some(why),
    };
    let compared = common::compared(bytes, &made.bytes, &BTreeMap::new());
    if let Err(why) = compared.and_then(|c| common::judged(&c, Some(Tolerance::default()))) {
        return Some(why);
    }
    let found = if name == "onnx" { transposes(&made.bytes) } else { made.report.moves().count() };
    (found != left).then(|| format!("{found} moves, not {left}"))
}

/// Holds models to a number of moves for a target. Each has its name first.
fn hold(target: &str, cases: Vec<(String, Net, usize)>) {
    let mut problems = String::new();
    for (name, net, left) in cases {
        if let Some(why) = problem(target, &net.bytes(), left) {
            let _ = writeln!(problems, "{name}: {why}");
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// An image channels last that an op reads channels first as `a`. The op leaves `b`, which goes back to channels last.
fn around(op: impl FnOnce(Net) -> Net) -> Net {
    let net = Net::new(17).input("x", F32, &[2, 6, 5, 8]).node_with("Transpose", &["x"], "a", &[TO_CHANNELS_FIRST]);
    op(net).node_with("Transpose", &["b"], "y", &[TO_CHANNELS_LAST]).output("y", F32)
}

/// The same of an op whose result has other axes, and so is an output.
fn into(op: impl FnOnce(Net) -> Net, dtype: i32) -> Net {
    let net = Net::new(17).input("x", F32, &[2, 6, 5, 8]).node_with("Transpose", &["x"], "a", &[TO_CHANNELS_FIRST]);
    op(net).output("y", dtype)
}

#[test]
fn unary_ops_let_transposes_pass() {
    const NAMES: [&str; 37] = [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Clip",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "LeakyRelu",
        "Log",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
        "Celu",
        "Mish",
    ];
    let case = |name: &&str| {
        let opset = if *name == "Mish" { 18 } else { 17 };
        let net = Net::new(opset)
            .input("x", F32, &[2, 6, 5, 8])
            .node_with("Transpose", &["x"], "a", &[TO_CHANNELS_FIRST])
            .node(name, &["a"], "b")
            .node_with("Transpose", &["b"], "y", &[TO_CHANNELS_LAST])
            .output("y", F32);
        ((*name).to_owned(), net, 0)
    };
    hold("onnx", NAMES.iter().map(case).collect());
}

#[test]
fn binary_ops_let_transposes_pass_beside_values_and_constants() {
    let mut cases = Vec::new();
    for op in ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu"] {
        let shapes: [(&str, &[i64]); 4] =
            [("a scalar", &[]), ("channels", &[8, 1, 1]), ("columns", &[5]), ("an image", &[2, 8, 6, 5])];
        for (what, dims) in shapes {
            let net = around(|net| net.floats("c", F32, dims, false).node(op, &["a", "c"], "b"));
            cases.push((format!("{op} with {what}"), net, 0));
        }
        if op != "PRelu" {
            let net = around(|net| {
                let net = net.input("z", F32, &[2, 6, 5, 8]);
                net.node_with("Transpose", &["z"], "d", &[TO_CHANNELS_FIRST]).node(op, &["a", "d"], "b")
            });
            cases.push((format!("{op} with a value that is moved alike"), net, 0));
        }
    }
    for op in ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"] {
        let net = Net::new(17)
            .input("x", F32, &[2, 6, 5, 8])
            .floats("c", F32, &[8, 1, 1], true)
            .node_with("Transpose", &["x"], "a", &[TO_CHANNELS_FIRST])
            .node(op, &["a", "c"], "b")
            .node_with("Transpose", &["b"], "y", &[TO_CHANNELS_LAST])
            .output("y", BOOL);
        cases.push((op.to_owned(), net, 0));
    }
    hold("onnx", cases);
}

/// Ops that move data along named axes.
fn movements() -> Vec<(&'static str, Net)> {
    let lists = |net: Net, lists: &[(&str, &[i64])]| lists.iter().fold(net, |net, (name, list)| net.ints(name, list));
    vec![
        ("Pad", around(|n| lists(n, &[("p", &[0, 1, 2, 0, 0, 1, 0, 3])]).node("Pad", &["a", "p"], "b"))),
        (
            "Pad with its border",
            around(|n| {
                lists(n, &[("p", &[0, 0, 2, 1, 0, 0, 1, 3])])
                    .node("Pad", &["a", "p"], "b")
                    .text_attribute("mode", "edge")
            }),
        ),
        (
            "Slice",
            around(|n| {
                let n = lists(n, &[("s", &[1, 0]), ("e", &[7, 4]), ("i", &[1, -1]), ("t", &[2, 1])]);
                n.node("Slice", &["a", "s", "e", "i", "t"], "b")
            }),
        ),
        ("Tile", around(|n| lists(n, &[("r", &[1, 2, 1, 3])]).node("Tile", &["a", "r"], "b"))),
        ("Gather", around(|n| lists(n, &[("i", &[3, 0, 5])]).node_with("Gather", &["a", "i"], "b", &[("axis", &[1])]))),
        ("CumSum", around(|n| n.int("i", 1).node("CumSum", &["a", "i"], "b"))),
        ("Expand", around(|n| lists(n, &[("s", &[2, 8, 6, 5])]).node("Expand", &["a", "s"], "b"))),
        (
            "Resize",
            around(|n| {
                n.values("s", F32, &[4], &[1.0, 1.0, 2.0, 2.0])
                    .node("Resize", &["a", "", "s"], "b")
                    .text_attribute("mode", "nearest")
            }),
        ),
        ("Softmax", around(|n| n.node_with("Softmax", &["a"], "b", &[("axis", &[1])]))),
        ("LogSoftmax", around(|n| n.node_with("LogSoftmax", &["a"], "b", &[("axis", &[-1])]))),
        ("Cast", around(|n| n.node_with("Cast", &["a"], "b", &[("to", &[1])]))),
    ]
}

#[test]
fn ops_along_an_axis_let_transposes_pass() {
    hold("onnx", movements().into_iter().map(|(name, net)| (name.to_owned(), net, 0)).collect());
}

#[test]
fn transposes_stay_around_an_op_whose_axes_have_to_be_the_first_two() {
    let axes: [(&str, &[i64]); 2] = [("batch_axis", &[0]), ("time_axis", &[1])];
    let net = around(|n| n.ints("l", &[3, 8]).node_with("ReverseSequence", &["a", "l"], "b", &axes));
    hold("onnx", vec![("ReverseSequence".to_owned(), net, 2)]);
}

#[test]
fn transposes_pass_where_values_meet_and_part() {
    let second = |n: Net| n.input("z", F32, &[2, 6, 5, 8]).node_with("Transpose", &["z"], "d", &[TO_CHANNELS_FIRST]);
    let concat = around(|n| second(n).node_with("Concat", &["a", "d"], "b", &[("axis", &[1])]));
    let constant =
        around(|n| n.floats("c", F32, &[2, 3, 6, 5], true).node_with("Concat", &["a", "c"], "b", &[("axis", &[1])]));
    let split = around(|n| {
        let n = n.node_with("Split", &["a"], "b", &[("axis", &[1])]).also("c");
        n.node_with("Transpose", &["c"], "w", &[TO_CHANNELS_LAST]).output("w", F32)
    });
    let chosen = around(|n| {
        let n = second(n).input("m", BOOL, &[2, 6, 5, 8]);
        n.node_with("Transpose", &["m"], "k", &[TO_CHANNELS_FIRST]).node("Where", &["k", "a", "d"], "b")
    });
    let forked = around(|n| {
        let n = n.node("Relu", &["a"], "b");
        n.node("Sigmoid", &["a"], "e").node_with("Transpose", &["e"], "w", &[TO_CHANNELS_LAST]).output("w", F32)
    });
    hold(
        "onnx",
        [
            ("Concat", concat),
            ("Concat with a constant", constant),
            ("Split", split),
            ("Where", chosen),
            ("a fork", forked),
        ]
        .map(|(name, net)| (name.to_owned(), net, 0))
        .into(),
    );
}

#[test]
fn reductions_and_what_drops_axes_take_transposes_in() {
    let mut cases = Vec::new();
    for op in ["ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"] {
        let kept = around(|n| n.node_with(op, &["a"], "b", &[("axes", &[2, 3]), ("keepdims", &[1])]));
        cases.push((format!("{op} that keeps axes"), kept, 0));
        let dropped = into(|n| n.node_with(op, &["a"], "y", &[("axes", &[2, 3]), ("keepdims", &[0])]), F32);
        cases.push((format!("{op} that drops axes"), dropped, 0));
    }
    let sum = into(|n| n.ints("i", &[2, 3]).node_with("ReduceSum", &["a", "i"], "y", &[("keepdims", &[0])]), F32);
    cases.push(("ReduceSum".to_owned(), sum, 0));
    for op in ["ArgMax", "ArgMin"] {
        let net = into(
            |n| {
                n.node_with(op, &["a"], "c", &[("axis", &[1]), ("keepdims", &[0])]).node_with(
                    "Cast",
                    &["c"],
                    "y",
                    &[("to", &[7])],
                )
            },
            I64,
        );
        cases.push((op.to_owned(), net, 0));
    }
    cases.push(("Shape".to_owned(), into(|n| n.node("Shape", &["a"], "y"), I64), 0));
    let squeezed = around(|n| {
        let n = n.ints("i", &[2]).node("Unsqueeze", &["a", "i"], "c").node("Relu", &["c"], "d");
        n.node("Squeeze", &["d", "i"], "b")
    });
    cases.push(("Unsqueeze and Squeeze".to_owned(), squeezed, 0));
    hold("onnx", cases);
}

/// A convolution of images channels first with 8 filters, and what follows. The last value is `b`.
fn convolved(then: impl FnOnce(Net) -> Net) -> Net {
    then(conv(Net::new(17).input("x", F32, &[1, 8, 12, 12]), "w0", ["x", "a"], 8)).output("b", F32)
}

/// A convolution of 8 channels with so many filters.
fn conv(net: Net, w: &str, [x, y]: [&str; 2], filters: i64) -> Net {
    net.floats(w, F32, &[filters, 8, 3, 3], true).node_with("Conv", &[x, w], y, &[("pads", &[1, 1, 1, 1])])
}

/// A network's name, the network, and the moves that are left of it where convolutions run channels last.
type Network = (&'static str, Net, usize);

fn of_several_convolutions() -> Vec<Network> {
    let joined = |op| convolved(|n| conv(n, "w1", ["a", "c"], 8).node(op, &["a", "c"], "b"));
    let concat = |n| conv(n, "w1", ["a", "c"], 4).node_with("Concat", &["a", "c"], "b", &[("axis", &[1])]);
    let depthwise =
        |n: Net| n.floats("w1", F32, &[8, 1, 3, 3], true).node_with("Conv", &["a", "w1"], "b", &[("group", &[8])]);
    let transposed = |n: Net| {
        n.floats("w1", F32, &[8, 8, 2, 2], true).node_with("ConvTranspose", &["a", "w1"], "b", &[("strides", &[2, 2])])
    };
    vec![
        ("two convolutions", convolved(|n| conv(n.node("Relu", &["a"], "c"), "w1", ["c", "b"], 8)), 2),
        ("a residual sum", joined("Add"), 2),
        ("a product of images", joined("Mul"), 2),
        ("a Concat of channels", convolved(concat), 2),
        ("a depthwise convolution", convolved(depthwise), 2),
        ("a transposed convolution", convolved(transposed), 2),
    ]
}

fn of_one_convolution() -> Vec<Network> {
    let biased = |n: Net| n.floats("k", F32, &[8, 1, 1], true).node("Add", &["a", "k"], "c").node("Relu", &["c"], "b");
    let scaled =
        |n: Net| n.node("GlobalAveragePool", &["a"], "c").node("Sigmoid", &["c"], "d").node("Mul", &["a", "d"], "b");
    let pool = |n: Net| n.node_with("MaxPool", &["a"], "b", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])]);
    let halves = |n: Net| n.node_with("Split", &["a"], "c", &[("axis", &[1])]).also("d").node("Add", &["c", "d"], "b");
    let cut = |n: Net| {
        let n = n.ints("s", &[2]).ints("e", &[9]).ints("i", &[2]);
        n.node("Slice", &["a", "s", "e", "i"], "c").node("Relu", &["c"], "b")
    };
    let resized = |n: Net| {
        let n = n.values("s", F32, &[4], &[1.0, 1.0, 2.0, 2.0]).node("Resize", &["a", "", "s"], "b");
        n.text_attribute("mode", "nearest")
    };
    let normalized = |n: Net| {
        let n = ["g", "h", "m"].iter().fold(n, |n, name| n.floats(name, F32, &[8], true)).floats("v", F32, &[8], false);
        n.node("BatchNormalization", &["a", "g", "h", "m", "v"], "b")
    };
    let softmax = |n: Net| n.node_with("Softmax", &["a"], "b", &[("axis", &[1])]);
    let mean = |n: Net| n.node_with("ReduceMean", &["a"], "b", &[("axes", &[2, 3]), ("keepdims", &[0])]);
    let classes = |n: Net| {
        let n = n.node("GlobalAveragePool", &["a"], "c").node("Flatten", &["c"], "d");
        n.floats("m", F32, &[8, 5], true).node("MatMul", &["d", "m"], "b")
    };
    vec![
        ("a bias and a Relu", convolved(biased), 2),
        ("a scale of channels by pooled ones", convolved(scaled), 2),
        ("a pool", convolved(pool), 2),
        ("halves of the channels", convolved(halves), 2),
        ("a cut", convolved(cut), 2),
        ("a Resize", convolved(resized), 2),
        ("a BatchNormalization", convolved(normalized), 2),
        ("a Softmax of channels", convolved(softmax), 2),
        ("a mean over rows and columns", convolved(mean), 1),
        ("classes", convolved(classes), 1),
    ]
}

fn networks() -> Vec<Network> {
    [of_several_convolutions(), of_one_convolution()].concat()
}

#[test]
fn networks_move_once_in_and_once_out() {
    hold("nhwc", networks().into_iter().map(|(name, net, left)| (name.to_owned(), net, left)).collect());
}

#[test]
fn networks_run_in_blocks_and_for_devices_too() {
    for name in ["ort-cpu", "cuda-tensorcore", "x86-avx512", "ort-nhwc"] {
        let target = target(name).expect("a built-in target");
        for (what, net, _) in networks() {
            let outcome = common::optimized_for(target.as_ref(), &net.bytes(), &BTreeMap::new());
            let compared = outcome.and_then(|made| common::compared(&net.bytes(), &made.bytes, &BTreeMap::new()));
            let judged = compared.and_then(|c| common::judged(&c, Some(Tolerance::default())));
            assert!(judged.is_ok(), "{what} for {name}: {judged:?}");
        }
    }
}
