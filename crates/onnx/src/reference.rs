//! Ops that ONNX Runtime's CPU provider has no kernel of, written out as ops of the standard, so that a file with them runs there.
//!
//! That is for those who compare results. Each op stands as what it computes, in the plainest way and in float32.

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
    let graph = model.graph.as_ref().filter(|graph| has_norms(graph))?;
    let standard = |domain: Option<&str>| matches!(domain, None | Some("" | "ai.onnx"));
    let opset = model.opset_import.iter().find(|set| standard(set.domain.as_deref())).and_then(|set| set.version);
    let mut taken = BTreeSet::new();
    names(graph, &mut taken);
    let mut writer = Writer { opset: opset.unwrap_or(1), dtype, taken, made: 0 };
    let graph = writer.graph(graph);
    Some(ModelProto { graph: Some(graph), ..model.clone() })
}

fn has_norms(graph: &GraphProto) -> bool {
    graph.node.iter().any(|node| Norm::read(node).is_some() || node.bodies().any(has_norms))
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
            match Norm::read(node) {
                Some(norm) => self.norm(&norm, &mut nodes),
                None => nodes.push(self.node(node)),
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

    fn norm(&mut self, norm: &Norm<'_>, to: &mut Vec<NodeProto>) {
        let cast = |to: i32| vec![int_attribute("to", i64::from(to))];
        let turned = |order: [i64; 4]| vec![ints_attribute("perm", order.to_vec())];
        let each = |number: f32| tensor(DataType::Float, norm.groups, |_| number.to_le_bytes().to_vec());
        let x = self.op(to, "Cast", &[norm.x], cast(DataType::Float as i32));
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

/// `GroupNorm` of images channels last.
struct Norm<'n> {
    x: &'n str,
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
        if op.domain != MICROSOFT || op.name != "GroupNorm" {
            return None;
        }
        let [x, scale, bias] = &node.input[..] else { return None };
        let [result] = &node.output[..] else { return None };
        let attribute = |name: &str| node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name));
        let int = |name: &str| attribute(name).and_then(|attribute| attribute.i);
        let groups = int("groups").filter(|groups| (1..=MOST_GROUPS).contains(groups))?;
        let activation = int("activation").filter(|activation| [0, 1].contains(activation))?;
        let last = int("channels_last").unwrap_or(1) != 0;
        let epsilon = attribute("epsilon").and_then(|attribute| attribute.f).unwrap_or(1e-5);
        last.then_some(Norm { x, scale, bias, result, groups, epsilon, silu: activation == 1 })
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
    fn a_model_without_such_ops_is_none_and_so_is_one_whose_op_is_not_known() {
        assert!(written_out(&model(17, 0), &|_| None).is_none(), "channels first");
        assert!(written_out(&ModelProto::default(), &|_| None).is_none());
    }
}
