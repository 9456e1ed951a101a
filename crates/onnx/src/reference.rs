//! Ops that ONNX Runtime's CPU provider has no kernel of, written out as ops that it has, so that a file with them runs there.
//!
//! That is for those who compare results. Each op stands as what it computes, in the plainest way and in float32: normalizations as ops of
//! the standard, an attention of halves as the same op of floats.

use crate::import::op_name;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::make::{empty_attribute, int_attribute, ints_attribute, tensor_attribute};
use crate::proto::tensor_proto::DataType;
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
use bytes::Bytes;
use relayout_ir::op::MICROSOFT;
use std::collections::BTreeSet;

/// The first operator set with `CastLike`.
const CAST_LIKE_SINCE: i64 = 15;

/// The model with such ops written out; `None` if it has none. `dtype` tells the element type of a value of the main graph, by its name, as
/// the standard numbers it.
pub fn written_out(model: &ModelProto, dtype: &dyn Fn(&str) -> Option<i32>) -> Option<ModelProto> {
    let graph = model.graph.as_ref().filter(|graph| has_any(graph, dtype))?;
    let standard = |domain: Option<&str>| matches!(domain, None | Some("" | "ai.onnx"));
    let opset = model.opset_import.iter().find(|set| standard(set.domain.as_deref())).and_then(|set| set.version);
    let mut taken = BTreeSet::new();
    names(graph, &mut taken);
    let mut writer = Writer { opset: opset.unwrap_or(1), dtype, taken, made: 0 };
    let graph = writer.graph(graph);
    Some(ModelProto { graph: Some(graph), ..model.clone() })
}

fn has_any(graph: &GraphProto, dtype: &dyn Fn(&str) -> Option<i32>) -> bool {
    let own = |node: &NodeProto| Norm::read(node).is_some() || halves(node, dtype).is_some();
    graph.node.iter().any(|node| own(node) || node.bodies().any(|body| has_any(body, dtype)))
}

/// The type of an attention of halves, which the provider computes in float32 only.
fn halves(node: &NodeProto, dtype: &dyn Fn(&str) -> Option<i32>) -> Option<i32> {
    let op = op_name(node);
    let is = op.domain == MICROSOFT && op.name == "MultiHeadAttention" && node.output.len() == 1;
    let of = node.input.first().filter(|_| is).and_then(|query| dtype(query))?;
    [DataType::Float16, DataType::Bfloat16].into_iter().any(|half| half as i32 == of).then_some(of)
}

/// The names of all values that nodes leave, and of all that they read.
fn names(graph: &GraphProto, into: &mut BTreeSet<String>) {
    for node in &graph.node {
        into.extend(node.input.iter().chain(&node.output).cloned());
        node.bodies().for_each(|body| names(body, into));
    }
}

struct Writer<'d> {
    opset: i64,
    dtype: &'d dyn Fn(&str) -> Option<i32>,
    taken: BTreeSet<String>,
    made: usize,
}

impl Writer<'_> {
    fn graph(&mut self, graph: &GraphProto) -> GraphProto {
        let mut nodes = Vec::with_capacity(graph.node.len());
        for node in &graph.node {
            match (Norm::read(node), halves(node, self.dtype)) {
                (Some(norm), _) => self.norm(&norm, &mut nodes),
                (None, Some(of)) => self.in_floats(node, of, &mut nodes),
                (None, None) => nodes.push(self.node(node)),
            }
        }
        GraphProto { node: nodes, ..graph.clone() }
    }

    fn node(&mut self, node: &NodeProto) -> NodeProto {
        let mut node = node.clone();
        for attribute in &mut node.attribute {
            if let Some(body) = &mut attribute.g {
                **body = self.graph(body);
            }
            for body in &mut attribute.graphs {
                *body = self.graph(body);
            }
        }
        node
    }

    fn name(&mut self) -> String {
        loop {
            self.made += 1;
            let name = format!("relayout.reference.{}", self.made);
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    /// The result of a node of the standard that is made.
    fn op(&mut self, to: &mut Vec<NodeProto>, op: &str, inputs: &[&str], attribute: Vec<AttributeProto>) -> String {
        let result = self.name();
        to.push(NodeProto {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![result.clone()],
            op_type: Some(op.to_owned()),
            attribute,
            ..NodeProto::default()
        });
        result
    }

    fn constant(&mut self, to: &mut Vec<NodeProto>, tensor: TensorProto) -> String {
        self.op(to, "Constant", &[], vec![tensor_attribute("value", tensor)])
    }

    /// The same op of what it reads as float32, and its result in its type.
    fn in_floats(&mut self, node: &NodeProto, of: i32, to: &mut Vec<NodeProto>) {
        let cast = |to: i32| vec![int_attribute("to", i64::from(to))];
        let mut floats = node.clone();
        for name in floats.input.iter_mut().filter(|name| (self.dtype)(name) == Some(of)) {
            *name = self.op(to, "Cast", &[name], cast(DataType::Float as i32));
        }
        let result = self.name();
        let own = std::mem::replace(&mut floats.output[0], result.clone());
        to.push(floats);
        self.op(to, "Cast", &[&result], cast(of));
        if let Some(end) = to.last_mut() {
            end.output[0] = own;
        }
    }

    /// What is normalized: an operand, or the sum of two, which may be a result too.
    fn summed(&mut self, norm: &Norm<'_>, to: &mut Vec<NodeProto>) -> String {
        let Some(skip) = norm.skip else { return norm.x.to_owned() };
        let made = self.op(to, "Add", &[norm.x, skip], Vec::new());
        match (norm.sum, to.last_mut()) {
            (Some(name), Some(end)) => {
                name.clone_into(&mut end.output[0]);
                name.to_owned()
            }
            _ => made,
        }
    }

    fn norm(&mut self, norm: &Norm<'_>, to: &mut Vec<NodeProto>) {
        let cast = |to: i32| vec![int_attribute("to", i64::from(to))];
        let turned = |order: [i64; 4]| vec![ints_attribute("perm", order.to_vec())];
        let each = |number: f32| tensor(DataType::Float, norm.groups, |_| number.to_le_bytes().to_vec());
        let whole = self.summed(norm, to);
        let x = self.op(to, "Cast", &[&whole], cast(DataType::Float as i32));
        let first = self.op(to, "Transpose", &[&x], turned([0, 3, 1, 2]));
        let shape = self.op(to, "Shape", &[&first], Vec::new());
        let apart = [0, norm.groups, -1];
        let apart = self.constant(to, tensor(DataType::Int64, 3, |at| apart[at].to_le_bytes().to_vec()));
        let rows = self.op(to, "Reshape", &[&first, &apart], Vec::new());
        let (one, zero) = (self.constant(to, each(1.0)), self.constant(to, each(0.0)));
        let mut epsilon = empty_attribute("epsilon", AttributeType::Float);
        epsilon.f = Some(norm.epsilon);
        let even = self.op(to, "InstanceNormalization", &[&rows, &one, &zero], vec![epsilon]);
        let whole = self.op(to, "Reshape", &[&even, &shape], Vec::new());
        let last = self.op(to, "Transpose", &[&whole], turned([0, 2, 3, 1]));
        let scale = self.op(to, "Cast", &[norm.scale], cast(DataType::Float as i32));
        let bias = self.op(to, "Cast", &[norm.bias], cast(DataType::Float as i32));
        let scaled = self.op(to, "Mul", &[&last, &scale], Vec::new());
        let mut y = self.op(to, "Add", &[&scaled, &bias], Vec::new());
        if norm.silu {
            let gate = self.op(to, "Sigmoid", &[&y], Vec::new());
            y = self.op(to, "Mul", &[&y, &gate], Vec::new());
        }
        if self.opset >= CAST_LIKE_SINCE {
            self.op(to, "CastLike", &[&y, norm.x], Vec::new());
        } else {
            self.op(to, "Cast", &[&y], cast((self.dtype)(norm.x).unwrap_or(DataType::Float as i32)));
        }
        if let Some(end) = to.last_mut() {
            norm.result.clone_into(&mut end.output[0]);
        }
    }
}

/// A list of so many elements.
fn tensor(dtype: DataType, count: i64, element: impl Fn(usize) -> Vec<u8>) -> TensorProto {
    let bytes: Vec<u8> = (0..usize::try_from(count).unwrap_or(0)).flat_map(element).collect();
    TensorProto {
        dims: vec![count],
        data_type: Some(dtype as i32),
        raw_data: Some(Bytes::from(bytes)),
        ..TensorProto::default()
    }
}

/// `GroupNorm` of images channels last, or `SkipGroupNorm`.
struct Norm<'n> {
    x: &'n str,
    /// What is added to it before.
    skip: Option<&'n str>,
    /// The sum, if it is a result.
    sum: Option<&'n str>,
    scale: &'n str,
    bias: &'n str,
    result: &'n str,
    groups: i64,
    epsilon: f32,
    silu: bool,
}

/// Most groups that are written out.
const MOST_GROUPS: i64 = 1 << 16;

impl Norm<'_> {
    fn read(node: &NodeProto) -> Option<Norm<'_>> {
        let op = op_name(node);
        if op.domain != MICROSOFT {
            return None;
        }
        let (x, scale, bias, skip) = match (op.name.as_str(), &node.input[..]) {
            ("GroupNorm", [x, scale, bias]) => (x, scale, bias, None),
            // Of images and what is added to each of them.
            ("SkipGroupNorm", [x, scale, bias, skip]) => (x, scale, bias, Some(skip.as_str())),
            _ => return None,
        };
        let (result, sum) = match &node.output[..] {
            [result] => (result, None),
            [result, sum] if skip.is_some() => (result, Some(sum.as_str()).filter(|sum| !sum.is_empty())),
            _ => return None,
        };
        let attribute = |name: &str| node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name));
        let int = |name: &str| attribute(name).and_then(|attribute| attribute.i);
        let groups = int("groups").filter(|groups| (1..=MOST_GROUPS).contains(groups))?;
        let activation = int("activation").filter(|activation| [0, 1].contains(activation))?;
        let last = int("channels_last").unwrap_or(1) != 0;
        let epsilon = attribute("epsilon").and_then(|attribute| attribute.f).unwrap_or(1e-5);
        last.then_some(Norm { x, skip, sum, scale, bias, result, groups, epsilon, silu: activation == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::OperatorSetIdProto;

    fn model(opset: i64, last: i64) -> ModelProto {
        let ints = [("activation", 1), ("channels_last", last), ("groups", 2)];
        let node = NodeProto {
            input: ["x", "s", "b"].map(str::to_owned).to_vec(),
            output: vec!["y".to_owned()],
            op_type: Some("GroupNorm".to_owned()),
            domain: Some(MICROSOFT.to_owned()),
            attribute: ints.map(|(name, value)| int_attribute(name, value)).to_vec(),
            ..NodeProto::default()
        };
        let set = OperatorSetIdProto { version: Some(opset), ..OperatorSetIdProto::default() };
        let graph = GraphProto { node: vec![node], ..GraphProto::default() };
        ModelProto { graph: Some(graph), opset_import: vec![set], ..ModelProto::default() }
    }

    fn ops(model: &ModelProto) -> Vec<&str> {
        model.graph.iter().flat_map(|graph| &graph.node).filter_map(|node| node.op_type.as_deref()).collect()
    }

    #[test]
    fn a_normalization_of_the_runtime_becomes_ops_of_the_standard() {
        for (opset, end) in [(17, "CastLike"), (13, "Cast")] {
            let made = written_out(&model(opset, 1), &|_| Some(DataType::Float16 as i32)).unwrap();
            let found = ops(&made);
            assert_eq!(found.last(), Some(&end));
            assert!(
                !found.contains(&"GroupNorm") && found.contains(&"InstanceNormalization") && found.contains(&"Sigmoid")
            );
            assert_eq!(made.graph.unwrap().node.last().unwrap().output, ["y"]);
        }
    }

    #[test]
    fn what_is_added_before_is_a_sum_of_its_own() {
        let mut skipping = model(17, 1);
        let node = &mut skipping.graph.as_mut().unwrap().node[0];
        node.op_type = Some("SkipGroupNorm".to_owned());
        node.input.push("r".to_owned());
        let made = written_out(&skipping, &|_| Some(DataType::Float as i32)).unwrap();
        assert_eq!(ops(&made)[0], "Add");
        assert_eq!(made.graph.unwrap().node[0].input, ["x", "r"]);
        skipping.graph.as_mut().unwrap().node[0].output.push("sum".to_owned());
        let made = written_out(&skipping, &|_| Some(DataType::Float as i32)).unwrap().graph.unwrap().node;
        assert_eq!((made[0].output[0].as_str(), made[1].input[0].as_str()), ("sum", "sum"));
        assert_eq!(made.last().unwrap().output, ["y"]);
    }

    #[test]
    fn an_attention_of_halves_is_one_of_floats() {
        let node = NodeProto {
            input: ["q", "k", "v"].map(str::to_owned).to_vec(),
            output: vec!["y".to_owned()],
            op_type: Some("MultiHeadAttention".to_owned()),
            domain: Some(MICROSOFT.to_owned()),
            ..NodeProto::default()
        };
        let graph = GraphProto { node: vec![node], ..GraphProto::default() };
        let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
        for half in [DataType::Float16, DataType::Bfloat16] {
            let made = written_out(&model, &|_| Some(half as i32)).unwrap();
            assert_eq!(ops(&made), ["Cast", "Cast", "Cast", "MultiHeadAttention", "Cast"]);
            let nodes = &made.graph.unwrap().node;
            assert_eq!(nodes[3].input, [&*nodes[0].output[0], &nodes[1].output[0], &nodes[2].output[0]]);
            assert_eq!((nodes[4].input[0].as_str(), nodes[4].output[0].as_str()), (nodes[3].output[0].as_str(), "y"));
        }
        assert!(written_out(&model, &|_| Some(DataType::Float as i32)).is_none(), "the provider has it");
        assert!(written_out(&model, &|_| None).is_none(), "of no known type");
    }

    #[test]
    fn a_model_without_such_ops_is_none_and_so_is_one_whose_op_is_not_known() {
        assert!(written_out(&model(17, 0), &|_| None).is_none(), "channels first");
        assert!(written_out(&ModelProto::default(), &|_| None).is_none());
    }
}
