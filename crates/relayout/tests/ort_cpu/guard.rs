//! Files of target `ort-cpu` on the other kind of host: whatever op of the blocked dialect a file has, a host of another block refuses
//! it, and the host that it was made for runs it. Each is made for both blocks and run at two levels of the runtime's rewrites, so a
//! host with blocks of 16 is shown files for 8, and one with blocks of 8 files for 16.

use crate::fold_nets::{BOOL, F32, I64, Net, runtime};
use prost::Message;
use relayout::{IoLayout, Model, Options, optimize};
use relayout_onnx::proto::{GraphProto, ModelProto, NodeProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, Level, ModelSource, Tolerance, example_inputs, run, save_as_loaded, verify};
use std::collections::BTreeMap;

const DOMAIN: &str = "com.microsoft.nchwc";

/// A model, and which of its ends the caller has in blocks.
struct Case {
    name: &'static str,
    net: Net,
    ends: &'static [&'static str],
    /// The op of the dialect that it is about.
    op: &'static str,
}

/// `x` of 48 channels in blocks, one op, `y` in blocks.
fn one(op: &'static str, attributes: &[(&str, &[i64])], extents: [i64; 4]) -> Case {
    let net = Net::new(17).input("x", F32, &[1, 48, 8, 8]).node_with(op, &["x"], "y", attributes);
    Case { name: op, net: net.output_of("y", F32, &extents), ends: &["x", "y"], op }
}

fn pool(op: &'static str) -> Case {
    one(op, &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])], [1, 48, 4, 4])
}

/// Heads of as many columns as a block has, of `x` to `y`: reorders move them, and there is no convolution. Other names begin with
/// `own`.
fn heads(net: Net, block: i64, own: &str) -> Net {
    let own = |name: &str| format!("{own}{name}");
    let [w, w2, k, s1, s2] = ["w", "w2", "k", "s1", "s2"].map(own);
    let [a, b, c, d, e, f, y] = ["a", "b", "c", "d", "e", "f", "y"].map(own);
    net.floats(&w, F32, &[24, 4 * block], true)
        .floats(&w2, F32, &[block, 3 * block], true)
        .floats(&k, F32, &[1, 3, 4, block, 5], true)
        .ints(&s1, &[1, 900, 4, block])
        .ints(&s2, &[1, 900, 4, 3, block])
        .node("MatMul", &["x", &w], &a)
        .node("Reshape", &[&a, &s1], &b)
        .node("MatMul", &[&b, &w2], &c)
        .node("Reshape", &[&c, &s2], &d)
        .node_with("Transpose", &[&d], &e, &[("perm", &[0, 3, 2, 1, 4])])
        .node("MatMul", &[&e, &k], &f)
        .node_with("ReduceMax", &[&f], &y, &[("axes", &[0, 1, 2, 3])])
        .output_of(&y, F32, &[1, 1, 1, 1, 5])
}

fn cases(block: Block) -> Vec<Case> {
    let softmax = Net::new(17).input("x", F32, &[1, 48, 8, 8]).node_with("Softmax", &["x"], "y", &[("axis", &[3])]);
    let conv = Net::new(17)
        .input("x", F32, &[1, 48, 8, 8])
        .floats("w", F32, &[32, 48, 3, 3], true)
        .node_with("Conv", &["x", "w"], "y", &[("pads", &[1, 1, 1, 1])])
        .output_of("y", F32, &[1, 32, 8, 8]);
    let upsample = Net::new(17)
        .input("x", F32, &[1, 48, 8, 8])
        .values("scales", F32, &[4], &[1.0, 1.0, 2.0, 2.0])
        .node_with("Resize", &["x", "", "scales"], "y", &[])
        .output_of("y", F32, &[1, 48, 16, 16]);
    vec![
        Case {
            name: "heads",
            net: heads(Net::new(17).input("x", F32, &[1, 900, 24]), block.channels() as i64, ""),
            ends: &[],
            op: "ReorderInput",
        },
        Case { name: "packed", net: softmax_packed(), ends: &["y"], op: "ReorderInput" },
        Case { name: "unpacked", net: softmax.output_of("y", F32, &[1, 48, 8, 8]), ends: &["x"], op: "ReorderOutput" },
        Case { name: "conv", net: conv, ends: &["x", "y"], op: "Conv" },
        Case { name: "upsample", net: upsample, ends: &["x", "y"], op: "Upsample" },
        pool("MaxPool"),
        pool("AveragePool"),
        one("GlobalMaxPool", &[], [1, 48, 1, 1]),
        one("GlobalAveragePool", &[], [1, 48, 1, 1]),
    ]
}

fn softmax_packed() -> Net {
    let net = Net::new(17).input("x", F32, &[1, 48, 8, 8]).node_with("Softmax", &["x"], "y", &[("axis", &[3])]);
    net.output_of("y", F32, &[1, 48, 8, 8])
}

/// What is made of a case for a block, and the report.
fn made(case: &Case, target: &OrtCpu) -> Vec<u8> {
    let model = Model::from_bytes(case.net.bytes().into(), None).expect("it opens");
    let end = |name: &str| -> IoLayout {
        format!("{name}:NCHW->NCHW{}c", target.block().channels()).parse().expect("it is a layout")
    };
    let options = case.ends.iter().fold(Options::default(), |options, &name| match name {
        "x" => options.input(end("x")),
        _ => options.output(end("y")),
    });
    optimize(&model, target, &options).expect("it is optimized").to_bytes().expect("it is written")
}

fn blocked<'g>(graph: &'g GraphProto, op: &str) -> impl Iterator<Item = &'g NodeProto> {
    graph.node.iter().filter(move |n| n.domain() == DOMAIN && n.op_type() == op)
}

#[test]
fn every_file_with_a_blocked_op_runs_on_hosts_of_its_block_only() {
    for block in [Block::B8, Block::B16] {
        for case in cases(block) {
            let bytes = made(&case, &OrtCpu::new(block).expect("a built-in target"));
            let file = ModelProto::decode(&bytes[..]).expect("a model");
            let graph = file.graph.as_ref().expect("a graph");
            let own = blocked(graph, case.op).filter(|n| !n.input[0].starts_with("host."));
            assert!(own.count() > 0, "{}: no {} is written: {:?}", case.name, case.op, graph.node);
            if block == Block::of_host() {
                let inputs = Inputs::Random { seed: 3, dims: BTreeMap::new() };
                let before = case.net.bytes();
                let [a, b] = [&before, &bytes].map(|bytes| ModelSource::Bytes(bytes));
                let seen = verify(runtime(), a, b, &inputs, &relayout_verify::Options::default());
                let seen = seen.unwrap_or_else(|e| panic!("{}: {e}", case.name));
                assert!(seen.holds(&Tolerance::new(2e-5, 2e-4)), "{}: {seen}", case.name);
            } else {
                refused(case.name, block, &bytes, true);
            }
        }
    }
}

/// A host of another block stops at a Reshape: the guard's, or without `first` also one that views something in blocks.
fn refused(name: &str, block: Block, bytes: &[u8], first: bool) {
    let random = Inputs::Random { seed: 3, dims: BTreeMap::new() };
    let feeds = example_inputs(runtime(), ModelSource::Bytes(bytes), &random).expect("it has inputs");
    for level in [Level::Disabled, Level::All] {
        let ran = run(runtime(), ModelSource::Bytes(bytes), &feeds, level);
        let said = ran.map(|_| ()).expect_err(&format!("{name}, {level:?}: it runs")).to_string();
        let guard = format!("requested shape:{{{}}}", 20_u64.next_multiple_of(block.channels()));
        let requested = said.split("requested shape:").nth(1).unwrap_or_default();
        let view = !first && requested.contains(&format!(",{}}}", block.channels()));
        assert!(said.contains("Reshape") && (said.contains(&guard) || view), "{name}, {level:?}: {said}");
    }
}

#[test]
fn a_guard_is_read_off_no_value_twice_and_left_out_where_it_is_not_wanted() {
    for case in cases(Block::B16) {
        let zeros = |bytes: &[u8]| {
            let file = ModelProto::decode(bytes).expect("a model");
            file.graph
                .iter()
                .flat_map(|g| blocked(g, "ReorderInput"))
                .filter(|n| n.input[0].starts_with("host."))
                .count()
        };
        let target = OrtCpu::new(Block::B16).expect("a built-in target");
        assert_eq!(zeros(&made(&case, &target)), 1, "{}", case.name);
        assert_eq!(zeros(&made(&case, &target.unguarded())), 0, "{}", case.name);
    }
}

/// How many guards each graph has: the main graph, and its bodies one after the other.
fn guards(graph: &GraphProto) -> Vec<usize> {
    let own = blocked(graph, "ReorderInput").filter(|n| n.input[0].starts_with("host.")).count();
    let bodies = graph.node.iter().flat_map(|n| &n.attribute).filter_map(|a| a.g.as_deref()).flat_map(guards);
    std::iter::once(own).chain(bodies).collect()
}

/// Heads in both branches of an If; `more` comes before it.
fn branches(block: i64, more: impl Fn(Net) -> Net) -> Net {
    let net = Net::new(17).input("flag", BOOL, &[]).input("x", F32, &[1, 900, 24]);
    let [then, other] = ["then.", "else."].map(|own| heads(Net::new(17), block, own));
    more(net).branches("flag", "z", &then, &other)
}

fn of_net(net: &Net, block: Block) -> Vec<u8> {
    let target = OrtCpu::new(block).expect("a built-in target");
    made(&Case { name: "branches", net: net.clone(), ends: &[], op: "ReorderInput" }, &target)
}

#[test]
fn branches_have_guards_of_their_own_where_nothing_around_them_has_one() {
    for block in [Block::B8, Block::B16] {
        let channels = block.channels() as i64;
        let alone = branches(channels, |net| net).output_of("z", F32, &[1, 1, 1, 1, 5]);
        let conv = |net: Net| {
            net.input("image", F32, &[1, 64, 28, 28])
                .floats("cw", F32, &[64, 64, 3, 3], true)
                .node_with("Conv", &["image", "cw"], "c", &[("pads", &[1, 1, 1, 1])])
                .node_with("Conv", &["c", "cw"], "y", &[("pads", &[1, 1, 1, 1])])
                .output_of("y", F32, &[1, 64, 28, 28])
        };
        let both = branches(channels, conv).output_of("z", F32, &[1, 1, 1, 1, 5]);
        for (net, wanted) in [(alone, [0, 1, 1]), (both, [1, 0, 0])] {
            let bytes = of_net(&net, block);
            let file = ModelProto::decode(&bytes[..]).expect("a model");
            assert_eq!(guards(file.graph.as_ref().expect("a graph")), wanted, "{block:?}");
            if block != Block::of_host() {
                // A branch with views of its own may run before what has the guard of the graph around it.
                refused("branches", block, &bytes, wanted[0] == 0);
            }
        }
    }
}

#[test]
fn a_loop_has_a_guard_of_its_own() {
    let extents = [1, 64, 28, 28];
    let body = Net::new(17)
        .input("i", I64, &[])
        .input("go", BOOL, &[])
        .input("s", F32, &extents)
        .floats("bw", F32, &[64, 64, 3, 3], true)
        .node_with("Conv", &["s", "bw"], "d", &[("pads", &[1, 1, 1, 1])])
        .node_with("Conv", &["d", "bw"], "e", &[("pads", &[1, 1, 1, 1])])
        .node("Identity", &["go"], "on")
        .output_of("on", BOOL, &[])
        .output_of("e", F32, &extents);
    let net = Net::new(17)
        .input("times", I64, &[])
        .input("x", F32, &extents)
        .floats("w", F32, &[64, 64, 3, 3], true)
        .node_with("Conv", &["x", "w"], "c", &[("pads", &[1, 1, 1, 1])])
        .node_with("Conv", &["c", "w"], "y", &[("pads", &[1, 1, 1, 1])])
        .node_of_bodies("Loop", &["times", "", "y"], "z", &[("body", &body)])
        .output_of("z", F32, &extents);
    for block in [Block::B8, Block::B16] {
        let file = ModelProto::decode(&of_net(&net, block)[..]).expect("a model");
        assert_eq!(guards(file.graph.as_ref().expect("a graph")), [1, 1], "{block:?}");
    }
}

#[test]
fn convolutions_in_branches_with_weights_outside_stay_plain_without_a_shield() {
    let pads: [(&str, &[i64]); 1] = [("pads", &[1, 1, 1, 1])];
    let branch = |weights: &str, own: &str| {
        let [d, e] = ["d", "e"].map(|name| format!("{own}{name}"));
        let net = Net::new(17).node_with("Conv", &["y", weights], &d, &pads).node("Relu", &[&d], &e);
        net.output_of(&e, F32, &[1, 64, 28, 28])
    };
    let net = Net::new(17)
        .input("flag", BOOL, &[])
        .input("x", F32, &[1, 64, 28, 28])
        .floats("w", F32, &[64, 64, 3, 3], true)
        .floats("v", F32, &[64, 64, 3, 3], true)
        .node_with("Conv", &["x", "w"], "c", &pads)
        .node_with("Conv", &["c", "w"], "y", &pads)
        .branches("flag", "z", &branch("v", "then."), &branch("v", "else."))
        .output_of("z", F32, &[1, 64, 28, 28]);
    let block = Block::of_host();
    let bytes = of_net(&net, block);
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("loaded.onnx");
    save_as_loaded(runtime(), ModelSource::Bytes(&bytes), Level::All, &place).expect("it loads");
    let loaded = ModelProto::decode(std::fs::read(place).expect("it is there").as_slice()).expect("a model");
    for model in [ModelProto::decode(&bytes[..]).expect("a model"), loaded] {
        let graph = model.graph.expect("a graph");
        let branches = graph.node.iter().flat_map(|n| &n.attribute).filter_map(|a| a.g.as_deref());
        let ops: Vec<_> =
            branches.flat_map(|b| &b.node).map(|n| (n.domain().to_owned(), n.op_type().to_owned())).collect();
        assert!(ops.len() >= 2 && ops.iter().all(|(domain, _)| domain != DOMAIN), "{ops:?}");
    }
}

#[test]
fn a_convolution_that_nobody_reads_has_no_guard() {
    // The first has fewer filters, which makes it the cheapest to guard.
    let net = Net::new(17)
        .input("x", F32, &[1, 64, 28, 28])
        .floats("v", F32, &[16, 64, 3, 3], true)
        .floats("w", F32, &[64, 64, 3, 3], true)
        .node_with("Conv", &["x", "v"], "dead", &[("pads", &[1, 1, 1, 1])])
        .node_with("Conv", &["x", "w"], "c", &[("pads", &[1, 1, 1, 1])])
        .node_with("Conv", &["c", "w"], "y", &[("pads", &[1, 1, 1, 1])])
        .output_of("y", F32, &[1, 64, 28, 28]);
    for block in [Block::B8, Block::B16] {
        let file = ModelProto::decode(&of_net(&net, block)[..]).expect("a model");
        let graph = file.graph.as_ref().expect("a graph");
        let guarded: Vec<_> =
            blocked(graph, "Conv").filter(|n| n.input.iter().any(|i| i.contains("guarded"))).collect();
        assert!(matches!(guarded[..], [n] if n.output[0].starts_with(['c', 'y'])), "{guarded:?}");
    }
}

#[test]
fn the_block_of_the_host_is_that_of_the_runtime() {
    let block = Block::of_host();
    // `tools/avx2` says for which host it stands in.
    if let Ok(said) = std::env::var("RELAYOUT_BLOCK") {
        assert_eq!(said, block.channels().to_string(), "this program finds the registers of another host");
    }
    let net = Net::new(17).input("x", F32, &[1, 16, 4, 4]).floats("w", F32, &[20, 16, 1, 1], true);
    let net = net.node("Conv", &["x", "w"], "y").output("y", F32);
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("loaded.onnx");
    save_as_loaded(runtime(), ModelSource::Bytes(&net.bytes()), Level::All, &place).expect("it loads");
    let loaded = ModelProto::decode(std::fs::read(place).expect("it is there").as_slice()).expect("a model");
    let graph = loaded.graph.expect("a graph");
    assert_eq!(blocked(&graph, "Conv").count(), 1);
    let filters = graph.initializer.iter().filter(|t| t.dims.len() == 4).map(|t| t.dims[0]).collect::<Vec<_>>();
    assert_eq!(filters, [20_u64.next_multiple_of(block.channels()) as i64], "the runtime has other blocks");
}
