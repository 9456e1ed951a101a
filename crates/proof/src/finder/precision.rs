//! Models whose floats are of other types, such as those that a converter to halves makes: whether they have the same ops on the same elements.
//!
//! Of both models a model is made whose floats are all of one type: Casts between floats are nothing, and constants are those that the
//! narrowest type has. If the checker says that these two compute the same, the models do so up to the types in which they compute. That
//! says nothing about how far their results are apart.

use crate::certificate::Proof;
use crate::checks::agreed::Agreed;
use crate::checks::check::{Pair, verdict};
use crate::checks::verdict::Verdict;
use crate::error::Error;
use crate::files::model::{Attr, Function, Graph, Input, Model, Node, ReadingOf, Tensor};
use bytes::Bytes;
use half::{bf16, f16};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// Types of floats as ONNX numbers them, and their names, the narrowest first.
const FLOATS: [(u8, &str); 4] = [(16, "bfloat16"), (10, "float16"), (1, "float32"), (11, "float64")];

/// The type that all become.
const ONE: u8 = 1;

/// The least difference of two numbers near zero that is one: twice the smallest half. Converters make smaller numbers larger.
const LEAST: f64 = 1.2e-7;

/// Attributes that name a type of elements.
const TYPES: [&str; 3] = ["to", "dtype", "output_dtype"];

/// Two models that are the same but for the types of their floats.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UpToTypes {
    /// The types of floats of each model.
    pub types: [Vec<&'static str>; 2],
    /// What the checker says if all floats are of one type.
    pub proof: Verdict,
}

/// Whether the models in two files are the same but for the types of their floats; `None` if that is not shown, or if they have the same types.
///
/// # Errors
/// [`Error`] if a file can't be read.
pub fn find_up_to_types(input: &Path, result: &Path, reading: ReadingOf) -> Result<Option<UpToTypes>, Error> {
    let [a, b] = super::both(input, result, reading)?;
    Ok(between(&a, &b))
}

pub(crate) fn between(a: &Model, b: &Model) -> Option<UpToTypes> {
    let types = [a, b].map(types_of);
    let narrowest = *types.iter().flatten().min_by_key(|ty| FLOATS.iter().position(|(of, _)| of == *ty))?;
    if types[0] == types[1] {
        return None;
    }
    let [a, b] = [a, b].map(|model| OneType { narrowest }.model(model));
    let proof = verdict(&Pair { a: &a, b: &b, agreed: &Agreed::default(), proof: &Proof::default() });
    let named =
        |types: &BTreeSet<u8>| FLOATS.iter().filter(|(of, _)| types.contains(of)).map(|(_, name)| *name).collect();
    proof.holds().then(|| UpToTypes { types: [named(&types[0]), named(&types[1])], proof })
}

fn is_float(dtype: u8) -> bool {
    FLOATS.iter().any(|(of, _)| *of == dtype)
}

/// The types of floats that a model has: of inputs, outputs and constants, and those that Casts make.
fn types_of(model: &Model) -> BTreeSet<u8> {
    let mut types = BTreeSet::new();
    add_types(&model.graph, &mut types);
    for function in &model.functions {
        function.nodes.iter().for_each(|node| add_types_of_node(node, &mut types));
    }
    types.retain(|dtype| is_float(*dtype));
    types
}

fn add_types(graph: &Graph, types: &mut BTreeSet<u8>) {
    types.extend(graph.inputs.iter().chain(&graph.declared).map(|port| port.dtype));
    types.extend(graph.initializers.iter().map(|(_, tensor)| tensor.dtype));
    graph.nodes.iter().for_each(|node| add_types_of_node(node, types));
}

fn add_types_of_node(node: &Node, types: &mut BTreeSet<u8>) {
    for (name, attr) in &node.attrs {
        match attr {
            Attr::Tensor(tensor) => drop(types.insert(tensor.dtype)),
            Attr::Graph(body) => add_types(body, types),
            Attr::Int(dtype) if TYPES.contains(&name.as_str()) => types.extend(u8::try_from(*dtype)),
            _ => {}
        }
    }
}

/// Makes models of one type of floats.
struct OneType {
    /// The type whose numbers constants are.
    narrowest: u8,
}

impl OneType {
    fn model(&self, model: &Model) -> Model {
        Model {
            graph: Rc::new(self.graph(&model.graph)),
            functions: model.functions.iter().map(|function| Rc::new(self.function(function))).collect(),
            // It is no file any more.
            file: Bytes::default(),
            beside: BTreeMap::default(),
            ..model.clone()
        }
    }

    fn function(&self, function: &Function) -> Function {
        Function { nodes: function.nodes.iter().map(|node| self.node(node)).collect(), ..function.clone() }
    }

    fn graph(&self, graph: &Graph) -> Graph {
        let port = |port: &Input| Input { dtype: one(port.dtype), ..port.clone() };
        Graph {
            nodes: graph.nodes.iter().map(|node| self.node(node)).collect(),
            initializers: graph.initializers.iter().map(|(name, tensor)| (name.clone(), self.tensor(tensor))).collect(),
            inputs: graph.inputs.iter().map(port).collect(),
            outputs: graph.outputs.clone(),
            declared: graph.declared.iter().map(port).collect(),
        }
    }

    fn node(&self, node: &Node) -> Node {
        let attr = |(name, attr): &(String, Attr)| {
            let made = match attr {
                Attr::Tensor(tensor) => Attr::Tensor(self.tensor(tensor)),
                Attr::Graph(body) => Attr::Graph(Rc::new(self.graph(body))),
                Attr::Int(dtype) if TYPES.contains(&name.as_str()) => {
                    Attr::Int(u8::try_from(*dtype).map_or(*dtype, |dtype| one(dtype).into()))
                }
                other => other.clone(),
            };
            (name.clone(), made)
        };
        Node { attrs: node.attrs.iter().map(attr).collect(), ..node.clone() }
    }

    /// The numbers of a constant as the narrowest type has them.
    fn tensor(&self, tensor: &Tensor) -> Tensor {
        let data = &tensor.data;
        let numbers: Vec<f64> = match tensor.dtype {
            1 => data.as_chunks().0.iter().map(|&of| f32::from_le_bytes(of).into()).collect(),
            10 => data.as_chunks().0.iter().map(|&of| f16::from_le_bytes(of).into()).collect(),
            11 => data.as_chunks().0.iter().map(|&of| f64::from_le_bytes(of)).collect(),
            16 => data.as_chunks().0.iter().map(|&of| bf16::from_le_bytes(of).into()).collect(),
            _ => return tensor.clone(),
        };
        let data: Vec<u8> = numbers.into_iter().flat_map(|number| self.rounded(number).to_le_bytes()).collect();
        Tensor { dtype: ONE, data: data.into(), ..tensor.clone() }
    }

    fn rounded(&self, number: f64) -> f32 {
        match self.narrowest {
            10 if number.abs() <= LEAST => 0.0,
            10 => f16::from_f64(number).to_f32(),
            16 => bf16::from_f64(number).to_f32(),
            _ => number as f32,
        }
    }
}

/// The one type in the place of another type of floats.
fn one(dtype: u8) -> u8 {
    if is_float(dtype) { ONE } else { dtype }
}
