//! One-node graphs from one line of text, for the tests of the table of ops.
//!
//! An operand is `f32[N,3]` (a value of this type), `f32[*]` (unknown rank), `=[1,2]`, `=5` or `=2x2[1,2,3,4]` (an integer
//! constant), `f=[0.5,2.0]` (a float constant), `~[N,4]` (a vector whose contents are known by shape arithmetic) or `-` (left out).
//! Attributes are `name=1`, `name=1.5`, `name=[1,2]`, `name=[1.5]` or `name=text`.

#![allow(dead_code, reason = "each test file uses its part")]

use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::op::infer::infer_graph;
use relayout_ir::types::{TensorType, Type};

/// A graph of one node, `domain::Name` or `Name`, with this many results of unknown type.
pub(crate) fn one_node(op: &str, opset: i64, attrs: &str, operands: &str, results: usize) -> (Graph, NodeId) {
    let mut graph = Graph::new("g");
    let inputs = operands.split_whitespace().enumerate().map(|(i, text)| operand(&mut graph, i, text)).collect();
    let (domain, name) = op.split_once("::").unwrap_or(("", op));
    let op = OpName::new(domain, name);
    let mut node = Node::new(Op::Onnx(op), inputs);
    node.opset = opset;
    node.rank = 1;
    node.attrs = attrs.split_whitespace().map(attr).collect();
    let results = (0..results).map(|i| Some((format!("y{i}"), Type::Unknown))).collect();
    let id = graph.add(node, results).unwrap();
    (graph, id)
}

/// The same, with types inferred; and the problems found.
pub(crate) fn inferred(
    op: &str,
    opset: i64,
    attrs: &str,
    operands: &str,
    results: usize,
) -> (Graph, NodeId, Vec<String>) {
    let (mut graph, id) = one_node(op, opset, attrs, operands, results);
    let problems = infer_graph(&mut graph, &mut 0);
    (graph, id, problems.into_iter().map(|p| p.message).collect())
}

/// A type from its text.
pub(crate) fn ty(text: &str) -> Type {
    let (dtype, rest) = text.split_once('[').unwrap_or((text, "*]"));
    let dims = rest.strip_suffix(']').unwrap();
    let shape = match dims {
        "*" => None,
        "" => Some(vec![]),
        dims => Some(dims.split(',').map(|d| d.parse().unwrap()).collect()),
    };
    Type::Tensor(TensorType { dtype: dtype.parse().ok(), shape })
}

fn operand(graph: &mut Graph, i: usize, text: &str) -> Option<ValueId> {
    let name = format!("x{i}");
    if text == "-" {
        None
    } else if let Some(list) = text.strip_prefix("f=") {
        let floats: Vec<f32> = items(list).iter().map(|x| x.parse().unwrap()).collect();
        let bytes: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        graph.add_constant(name, Constant::inline(DType::F32, dims(list, floats.len()), bytes.into())).ok()
    } else if let Some(list) = text.strip_prefix('=') {
        let ints: Vec<i64> = items(list).iter().map(|x| x.parse().unwrap()).collect();
        let mut constant = Constant::ints(&ints);
        constant.dims = dims(list, ints.len());
        graph.add_constant(name, constant).ok()
    } else if let Some(list) = text.strip_prefix('~') {
        let contents: Vec<Dim> = items(list).iter().map(|x| x.parse().unwrap()).collect();
        let shape = dims(list, contents.len()).into_iter().map(Dim::from).collect();
        let v = graph.add_input(name, Type::tensor(DType::I64, shape)).unwrap();
        *graph.value_mut(v).contents = Some(contents);
        Some(v)
    } else {
        graph.add_input(name, ty(text)).ok()
    }
}

fn items(list: &str) -> Vec<&str> {
    let inner = list.split_once('[').and_then(|(_, l)| l.strip_suffix(']')).unwrap_or(list);
    inner.split(',').filter(|x| !x.is_empty()).collect()
}

fn dims(list: &str, len: usize) -> Vec<i64> {
    match list.split_once('[') {
        None => vec![],
        Some(("", _)) => vec![len as i64],
        Some((dims, _)) => dims.split('x').map(|d| d.parse().unwrap()).collect(),
    }
}

fn attr(text: &str) -> (String, Attr) {
    let (name, value) = text.split_once('=').unwrap();
    let list = items(value);
    let ints: Option<Vec<i64>> = list.iter().map(|x| x.parse().ok()).collect();
    let floats: Option<Vec<f32>> = list.iter().map(|x| x.parse().ok()).collect();
    let attr = match (value.starts_with('['), ints, floats) {
        (true, Some(ints), _) => Attr::Ints(ints),
        (true, None, Some(floats)) => Attr::Floats(floats),
        (false, Some(ints), _) => Attr::Int(ints[0]),
        (false, None, Some(floats)) => Attr::Float(floats[0]),
        _ => Attr::String(value.as_bytes().to_vec().into()),
    };
    (name.to_owned(), attr)
}
