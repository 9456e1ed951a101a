//! The body of a function while it is written: nodes, and names for what is in between.

use super::DOMAIN;
use crate::proto::make::{empty_attribute, int_attribute, ints_attribute, tensor_attribute};
use crate::proto::{AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto, TensorProto};
use crate::proto::{attribute_proto::AttributeType, tensor_proto::DataType};

/// Nodes in order; values in between are named by what makes them and a number.
pub(super) struct Body {
    nodes: Vec<NodeProto>,
    opset: i64,
}

/// The first operator set whose Constant may be of integers.
const INTEGER_CONSTANTS: i64 = 9;

/// What a function is but for its nodes.
pub(super) struct Face {
    pub(super) name: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attributes: Vec<String>,
    pub(super) doc: String,
    pub(super) opset: i64,
}

impl Body {
    pub(super) fn new(opset: i64) -> Body {
        Body { nodes: Vec::new(), opset }
    }

    /// Adds a node of the standard; the name of its result.
    pub(super) fn node(&mut self, op: &str, inputs: &[&str], attribute: Vec<AttributeProto>) -> String {
        // No formal name ends in a number, so these are never one of them.
        let output = format!("{}_{}", op.to_ascii_lowercase(), self.nodes.len());
        self.nodes.push(NodeProto {
            op_type: Some(op.to_owned()),
            input: inputs.iter().map(|&i| i.to_owned()).collect(),
            output: vec![output.clone()],
            attribute,
            ..NodeProto::default()
        });
        output
    }

    /// A list of integers: places, multiples and extents of blocks, which floats have exactly.
    pub(super) fn ints(&mut self, values: &[i64]) -> String {
        let integers = self.opset >= INTEGER_CONSTANTS;
        let (data_type, bytes) = if integers {
            (DataType::Int64, values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
        } else {
            (DataType::Float, values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect())
        };
        let tensor = TensorProto {
            dims: vec![values.len() as i64],
            data_type: Some(data_type as i32),
            raw_data: Some(bytes.into()),
            ..TensorProto::default()
        };
        let constant = self.node("Constant", &[], vec![tensor_attribute("value", tensor)]);
        if integers {
            return constant;
        }
        self.node("Cast", &[&constant], vec![int_attribute("to", i64::from(DataType::Int64 as i32))])
    }

    /// `x` with its dims in this order; nothing where they are in it.
    pub(super) fn transpose(&mut self, x: String, perm: &[usize]) -> String {
        if perm.iter().enumerate().all(|(i, &p)| i == p) {
            return x;
        }
        let perm = perm.iter().map(|&p| p as i64).collect();
        self.node("Transpose", &[&x], vec![ints_attribute("perm", perm)])
    }

    /// Makes `value` the formal result `output`.
    pub(super) fn result(&mut self, value: &str, output: &str) {
        let maker = self.nodes.iter().position(|n| n.output.iter().any(|o| o == value));
        let read = self.nodes.iter().any(|n| n.input.iter().any(|i| i == value));
        match maker.and_then(|i| self.nodes.get_mut(i)) {
            Some(node) if !read => {
                for o in &mut node.output {
                    if o == value {
                        output.clone_into(o);
                    }
                }
            }
            _ => {
                self.node("Identity", &[value], vec![]);
                if let Some(identity) = self.nodes.last_mut() {
                    identity.output = vec![output.to_owned()];
                }
            }
        }
    }

    /// The function with this body.
    pub(super) fn finish(self, face: Face) -> FunctionProto {
        FunctionProto {
            name: Some(face.name),
            domain: Some(DOMAIN.to_owned()),
            input: face.inputs,
            output: face.outputs,
            attribute: face.attributes,
            node: self.nodes,
            doc_string: Some(face.doc),
            opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(face.opset) }],
            ..FunctionProto::default()
        }
    }
}

/// An attribute of a body's node that has the value of the call's attribute `from`, and is absent where the call has none.
pub(super) fn reference(name: &str, from: &str, r#type: AttributeType) -> AttributeProto {
    AttributeProto { ref_attr_name: Some(from.to_owned()), ..empty_attribute(name, r#type) }
}
