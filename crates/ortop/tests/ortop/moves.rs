//! Moves as relayout writes them into files, in ONNX Runtime with the library and without: the same bits, and with it no body runs.

use crate::common::files::{self, convolution, optimized};
use crate::common::{Size, alone, environment, known, library, of_graph, unknown, value};
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel as Optimize, SessionBuilder};
use ort::value::TensorRef;
use prost::Message;
use relayout_layout::Layout;
use relayout_onnx::dialect::{self, Relayout};
use relayout_onnx::proto::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto};
use std::collections::BTreeMap;
use std::path::Path;

/// Pairs of layouts of a shape, and the kind of the move. Letters of weights are those of features in kinds.
const MOVES: &[(&str, &str, &[i64], &str)] = &[
    ("NCHW", "NHWC", &[2, 5, 3, 4], ""),
    ("CHWN4", "NCHW4c", &[3, 8, 2, 5], ""),
    ("NCHW", "NCHW16c", &[2, 32, 3, 4], "NCHW_NCHW16c"),
    ("NCHW", "NCHW16c", &[2, 20, 3, 4], "NCHW_NCHW16c_roundC"),
    ("NHWC", "NCHW8c", &[2, 20, 3, 4], "NHWC_NCHW8c_roundC"),
    ("NCHW16c", "NCHW", &[2, 20, 3, 4], "NCHW16c_NCHW_cropC"),
    ("NCHW4c", "NHWC", &[2, 18, 3, 4], "NCHW4c_NHWC_cropC"),
    ("NCHW16c", "NCHW8c", &[2, 20, 3, 4], "NCHW16c_NCHW8c_cropC"),
    ("NCHW8c", "NCHW16c", &[2, 20, 3, 4], "NCHW8c_NCHW16c_roundC"),
    ("NCHW16c", "NCHW24c", &[2, 20, 3, 4], "NCHW16c_NCHW24c_cropC"),
    ("NCHW", "CHWN4", &[3, 6, 2, 5], "NCHW_CHWN4_roundC"),
    ("CHWN4", "NHWC", &[3, 6, 2, 5], "CHWN4_NHWC_cropC"),
    ("NCHW", "N H W C[20:24]", &[2, 20, 3, 4], "NCHW_NHWC_fillC"),
    ("N H W C[20:24]", "NCHW", &[2, 20, 3, 4], "NHWC_NCHW_cropC"),
    ("N H W C[20:24]", "NCHW16c", &[2, 20, 3, 4], "NHWC_NCHW16c_roundC"),
    ("N H W C[20:40]", "NCHW8c", &[2, 20, 3, 4], "NHWC_NCHW8c_cropC"),
    ("NCHW16c", "N H W C[20:24]", &[2, 20, 3, 4], "NCHW16c_NHWC_cropC"),
    ("N C[20:48]/16 H W C%16", "NHWC", &[2, 20, 3, 4], "NCHW16c_NHWC_cropC"),
    ("NCHW", "N[2:3] C/4 H W C%4", &[2, 6, 3, 4], "NCHW_NCHW4c_fillN_roundC"),
    ("N[2:3] C/4 H W C%4", "N H W C[6:7]", &[2, 6, 3, 4], "NCHW4c_NHWC_cropN_cropC"),
    ("N H[3:5] W[4:6] C", "N[2:3] C[5:9] H W", &[2, 5, 3, 4], "NHWC_NCHW_fillN_fillC_cropH_cropW"),
    ("N C%2 C/2 H W", "NCHW4c", &[2, 8, 3, 4], "N2cCHW_NCHW4c"),
    ("OIHW", "OIHW16i16o", &[20, 3, 3, 2], "NCHW_NCHW16c16n_roundN_roundC"),
    ("OIHW16i16o", "OHWI", &[20, 3, 3, 2], "NCHW16c16n_NHWC_cropN_cropC"),
    ("NCW", "NCW8c", &[2, 9, 5], "NCW_NCW8c_roundC"),
    ("NDHWC", "NCDHW8c", &[1, 9, 2, 3, 2], "NDHWC_NCDHW8c_roundC"),
    ("a b", "b/4 a b%4", &[3, 10], "AB_BA4b_roundB"),
    ("a b c d e f", "f a b/2 c d e b%2", &[2, 4, 1, 2, 3, 2], "ABCDEF_FABCDE2b"),
];

/// What a run gave, and how often each op ran.
#[derive(Debug)]
struct Ran {
    shape: Vec<i64>,
    bits: Vec<u32>,
    ops: BTreeMap<String, usize>,
}

/// Runs a model with input `x` and output `y`, of floats.
fn ran(model: &ModelProto, shape: &[i64], data: &[f32], with: bool, level: Optimize) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = opened(model, with, level, &folder.path().join("profile"));
    let input = TensorRef::from_array_view((shape.to_vec(), data)).expect("data of the shape");
    let (shape, bits) = {
        let results = session.run(ort::inputs!["x" => input]).expect("it runs");
        let (shape, data) = results["y"].try_extract_tensor::<f32>().expect("floats");
        (shape.to_vec(), data.iter().map(|number| number.to_bits()).collect())
    };
    Ran { shape, bits, ops: profiled(&mut session) }
}

fn opened(model: &ModelProto, with: bool, level: Optimize, profile: &Path) -> Session {
    let _alone = alone();
    let builder = || -> ort::Result<SessionBuilder> {
        let builder = SessionBuilder::new(environment())?.with_intra_threads(1)?.with_optimization_level(level)?;
        let builder = builder.with_profiling(profile)?;
        Ok(if with { builder.with_operator_library(library())? } else { builder })
    };
    let mut builder = builder().expect("the library registers");
    builder.commit_from_memory(&model.encode_to_vec()).unwrap_or_else(|e| panic!("with the library: {with}, {e}"))
}

/// Kernels that ran, by op.
fn profiled(session: &mut Session) -> BTreeMap<String, usize> {
    let path = session.end_profiling().expect("a profile");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let events: Vec<serde_json::Value> = serde_json::from_str(&text).expect("a list of events");
    let mut ops = BTreeMap::new();
    for event in events.iter().filter(|e| e["name"].as_str().is_some_and(|name| name.ends_with("_kernel_time"))) {
        let op = event["args"]["op_name"].as_str().expect("the op of a kernel");
        *ops.entry(op.to_owned()).or_default() += 1;
    }
    ops
}

/// The dims that a layout is stored in.
fn stored(layout: &Layout, shape: &[i64]) -> Vec<i64> {
    let bound = layout.bind(shape).unwrap_or_else(|e| panic!("{layout}: {e}"));
    bound.factors().iter().map(|f| i64::try_from(f.extent).expect("a size")).collect()
}

fn parsed(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Nodes from `x` of these dims to `y`.
fn graph(node: Vec<NodeProto>, dims: &[Size]) -> GraphProto {
    GraphProto {
        name: Some("test".to_owned()),
        input: vec![value("x", 1, Some(dims))],
        output: vec![value("y", 1, None)],
        node,
        ..GraphProto::default()
    }
}

/// A move from `x` to `y`; no number of `x` is 0, not in pad lanes either.
struct Case {
    relayout: Relayout,
    /// The name of the function.
    name: String,
    dims: Vec<i64>,
    data: Vec<f32>,
    to: Layout,
}

impl Case {
    /// The case of a kind that has this number in its file.
    fn numbered(number: usize, case: &(&str, &str, &[i64], &str)) -> Case {
        Case { name: dialect::numbered(number), ..Case::new(case) }
    }

    fn new(&(from, to, shape, kind): &(&str, &str, &[i64], &str)) -> Case {
        let (from, to) = (parsed(from), parsed(to));
        let logical: Vec<_> = shape.iter().map(|&d| d.into()).collect();
        let relayout = Relayout::new(&from, &to, &logical).unwrap_or_else(|e| panic!("{kind}: {e}"));
        assert_eq!(relayout.kind(), kind, "{from} to {to}");
        let dims = stored(&from, shape);
        let data = (1..=dims.iter().product::<i64>()).map(|i| i as f32).collect();
        Case { relayout, name: dialect::RELAYOUT.to_owned(), dims, data, to }
    }

    fn node(&self) -> NodeProto {
        NodeProto {
            name: Some("move".to_owned()),
            input: vec!["x".to_owned()],
            output: vec!["y".to_owned()],
            op_type: Some(self.name.clone()),
            ..self.relayout.call()
        }
    }

    fn model(&self, graph: GraphProto, opset: i64, ir_version: i64) -> ModelProto {
        let function = self.relayout.function(opset).unwrap_or_else(|e| panic!("{e}"));
        let function = FunctionProto { name: Some(self.name.clone()), ..function };
        of_graph(graph, vec![function], (opset, ir_version))
    }

    /// Runs a model with the library and without, and compares.
    fn check(&self, model: &ModelProto, level: Optimize, what: &str) -> Ran {
        let [with, without] = [true, false].map(|with| ran(model, &self.dims, &self.data, with, level));
        assert_eq!((&with.shape, &with.bits), (&without.shape, &without.bits), "{what}");
        assert_eq!(without.ops.get(&self.name), None, "{what}");
        assert_eq!(with.ops.get(&self.name), Some(&1), "{what}");
        with
    }
}

#[test]
fn every_kind_of_move_is_the_library_s_and_gives_the_bits_of_its_body() {
    for (number, case) in (1..).zip(MOVES) {
        let (said, case) = (format!("{} to {}", case.0, case.1), Case::numbered(number, case));
        let rank = case.dims.len();
        for (level, dims) in [(Optimize::Disable, known(&case.dims)), (Optimize::All, unknown(rank))] {
            let model = case.model(graph(vec![case.node()], &dims), 18, 8);
            let run = case.check(&model, level, &said);
            assert_eq!(run.ops.keys().collect::<Vec<_>>(), [&case.name], "{said}: nothing of the body runs");
            assert_eq!(run.shape.len(), case.to.factors().len());
        }
    }
}

#[test]
fn kinds_beyond_those_that_the_library_has_run_their_bodies() {
    let case =
        Case::numbered(33, MOVES.iter().find(|(.., kind)| *kind == "NCHW_NCHW16c_roundC").expect("it is listed"));
    let model = case.model(graph(vec![case.node()], &known(&case.dims)), 18, 8);
    let [with, without] = [true, false].map(|with| ran(&model, &case.dims, &case.data, with, Optimize::All));
    assert_eq!((&with.shape, &with.bits), (&without.shape, &without.bits));
    assert!(!with.ops.contains_key(&case.name), "{:?}", with.ops);
}

#[test]
fn every_opset_and_ir_version_resolves_the_call_alike() {
    for case in MOVES.iter().filter(|(.., name)| ["", "NCHW_NCHW16c", "NCHW16c_NCHW_cropC"].contains(name)) {
        let (said, case) = (format!("{} to {}", case.0, case.1), Case::new(case));
        for opset in case.relayout.first_opset()..=26 {
            let model = case.model(graph(vec![case.node()], &known(&case.dims)), opset, 8);
            case.check(&model, Optimize::All, &format!("{said} at opset {opset}"));
        }
        for ir_version in 8..=13 {
            let model = case.model(graph(vec![case.node()], &known(&case.dims)), 21, ir_version);
            case.check(&model, Optimize::All, &format!("{said} at IR version {ir_version}"));
        }
    }
}

/// A node that runs `node` in its branch for true, and copies `x` in the other.
fn branching(node: NodeProto) -> NodeProto {
    let inner = |node: NodeProto, result: &str| {
        let node = NodeProto { output: vec![result.to_owned()], ..node };
        let output = vec![value(result, 1, None)];
        let graph = GraphProto { name: Some(result.to_owned()), node: vec![node], output, ..GraphProto::default() };
        Some(Box::new(graph))
    };
    let branch =
        |name: &str, g| AttributeProto { name: Some(name.to_owned()), r#type: Some(5), g, ..AttributeProto::default() };
    let copy = NodeProto { input: vec!["x".to_owned()], op_type: Some("Identity".to_owned()), ..NodeProto::default() };
    NodeProto {
        op_type: Some("If".to_owned()),
        input: vec!["condition".to_owned()],
        output: vec!["y".to_owned()],
        attribute: vec![branch("then_branch", inner(node, "moved")), branch("else_branch", inner(copy, "copied"))],
        ..NodeProto::default()
    }
}

#[test]
fn a_move_in_a_branch_is_the_library_s() {
    let case = MOVES.iter().find(|(.., name)| *name == "NCHW_NCHW16c_roundC").map(Case::new).expect("it is listed");
    let mut graph = graph(vec![branching(case.node())], &known(&case.dims));
    graph.initializer.push(TensorProto {
        name: Some("condition".to_owned()),
        data_type: Some(9),
        raw_data: Some(vec![1].into()),
        ..TensorProto::default()
    });
    for level in [Optimize::Disable, Optimize::All] {
        case.check(&case.model(graph.clone(), 18, 8), level, "in a branch");
    }
}

#[test]
fn optimized_files_run_their_moves_on_the_library_and_stay_as_they_are() {
    let bytes = convolution();
    for (target, moves) in files::targets() {
        let file = optimized(&bytes, target.as_ref());
        let model = ModelProto::decode(file.as_slice()).expect("a model");
        let nodes = model.graph.iter().flat_map(|g| &g.node);
        let calls: Vec<&NodeProto> = nodes.filter(|n| dialect::is_move(n.op_type())).collect();
        assert_eq!(calls.iter().map(|call| call.op_type()).collect::<Vec<_>>(), moves);
        assert!(calls.iter().all(|call| call.overload().is_empty()));
        assert_eq!(model.ir_version, Some(8));
        assert!(optimized(&file, target.as_ref()) == file, "{moves:?}: a second run changes nothing");

        let data: Vec<f32> = (0..2 * 20 * 9 * 7).map(|i| (i % 101) as f32 - 50.0).collect();
        let [with, without] = [true, false].map(|with| ran(&model, &[2, 20, 9, 7], &data, with, Optimize::Disable));
        assert_eq!((&with.shape, &with.bits), (&without.shape, &without.bits), "{moves:?}");
        let moved =
            |ran: &Ran| ran.ops.iter().filter(|(op, _)| dialect::is_move(op)).map(|(_, count)| count).sum::<usize>();
        assert_eq!((moved(&with), moved(&without)), (2, 0), "{moves:?}");
    }
}
