//! What there is in a model that can be compared, as flat lists.

use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout::ir::model::Model;
use std::fmt::Write as _;

/// Most elements of an integer constant that are shown.
const SHOWN_ELEMS: usize = 16;

/// Something that a model has and another may have too.
pub(super) struct Item {
    /// How people call it.
    pub(super) name: String,
    /// What it is found again by in the other model: the first of these that is unique in both.
    pub(super) keys: Vec<String>,
    /// What it is, in a word: an op, a type.
    pub(super) what: String,
    /// What can change, by name, but for `what`.
    pub(super) fields: Vec<(String, String)>,
    /// Tensors whose bytes can change, by the field that has them.
    pub(super) tensors: Vec<(String, Constant)>,
}

impl Item {
    fn new(name: impl Into<String>, what: impl Into<String>) -> Item {
        let name = name.into();
        Item { keys: vec![name.clone()], name, what: what.into(), fields: Vec::new(), tensors: Vec::new() }
    }

    fn field(mut self, name: impl Into<String>, value: impl Into<String>) -> Item {
        self.fields.push((name.into(), value.into()));
        self
    }
}

/// All of a model.
#[derive(Default)]
pub(super) struct Items {
    pub(super) opsets: Vec<Item>,
    pub(super) inputs: Vec<Item>,
    pub(super) outputs: Vec<Item>,
    pub(super) functions: Vec<Item>,
    pub(super) nodes: Vec<Item>,
    pub(super) constants: Vec<Item>,
}

impl Items {
    pub(super) fn of(model: &Model) -> Items {
        let graph = &model.graph;
        let end = |v: &ValueId| Item::new(&graph.value(*v).name, graph.value(*v).ty.to_string());
        let domain = |name: &str| if name.is_empty() { "ai.onnx".to_owned() } else { name.to_owned() };
        let mut items = Items {
            opsets: model.opsets.iter().map(|(name, version)| Item::new(domain(name), version.to_string())).collect(),
            inputs: graph.inputs().iter().map(end).collect(),
            outputs: graph.outputs().iter().map(end).collect(),
            ..Items::default()
        };
        for function in &model.functions {
            let ends = format!("({}) -> ({})", function.inputs.join(", "), function.outputs.join(", "));
            let nodes = function.nodes.to_string();
            items.functions.push(Item::new(function.name.to_string(), ends).field("nodes", nodes));
        }
        items.walk(graph, "");
        items
    }

    /// Nodes and constants of a graph and of its bodies. The names of what is in a body begin with `scope`.
    fn walk(&mut self, graph: &Graph, scope: &str) {
        let mut nodes: Vec<NodeId> = graph.nodes().collect();
        nodes.sort_by_key(|&n| graph.node(n).rank);
        for n in nodes {
            let node = graph.node(n);
            match &node.op {
                Op::Constant(constant) | Op::Input { default: Some(constant) } => {
                    let name = node.outputs.iter().flatten().next().map_or("", |&v| &graph.value(v).name);
                    self.constants.push(tensor(format!("{scope}{name}"), constant));
                }
                Op::Input { default: None } | Op::Outer => {}
                Op::Relayout => self.node(graph, node, "Relayout".to_owned(), scope),
                Op::Onnx(name) => self.node(graph, node, name.to_string(), scope),
            }
        }
    }

    fn node(&mut self, graph: &Graph, node: &Node, op: String, scope: &str) {
        let result = node.outputs.iter().flatten().next().map_or("", |&v| &graph.value(v).name);
        let label = if node.name.is_empty() { result } else { &node.name };
        let label = format!("{scope}{label}");
        let named = if node.name.is_empty() { None } else { Some(format!("node {label}")) };
        let mut item = Item::new(label, op)
            .field("operands", list(graph, &node.inputs))
            .field("results", list(graph, &node.outputs));
        item.keys = named.into_iter().chain([format!("result {scope}{result}")]).collect();
        let mut attrs: Vec<(&String, &Attr)> = node.attrs.iter().collect();
        attrs.sort_by_key(|(name, _)| *name);
        let mut bodies = Vec::new();
        for (name, attr) in attrs {
            let mut text = attr.to_string();
            if let Attr::Tensor(constant) = attr {
                item.tensors.push((name.clone(), constant.clone()));
            }
            for (at, body) in attr.bodies().iter().enumerate() {
                let values = |of: &[ValueId]| list(body, &of.iter().map(|&v| Some(v)).collect::<Vec<_>>());
                // Writing to a string does not fail.
                let _ = write!(text, " ({}) -> ({})", values(body.inputs()), values(body.outputs()));
                bodies.push((
                    format!("{}.{name}{}/", item.name, if at > 0 { format!("[{at}]") } else { String::new() }),
                    body,
                ));
            }
            item = item.field(name, text);
        }
        self.nodes.push(item);
        for (scope, body) in bodies {
            self.walk(body, &scope);
        }
    }
}

fn tensor(name: String, constant: &Constant) -> Item {
    let mut item = Item::new(name, constant.ty().to_string());
    match constant.to_ints(SHOWN_ELEMS) {
        Some(ints) => item = item.field("elements", Attr::Ints(ints).to_string()),
        None => item.tensors.push(("elements".to_owned(), constant.clone())),
    }
    item
}

fn list(graph: &Graph, values: &[Option<ValueId>]) -> String {
    let names: Vec<&str> = values.iter().map(|v| v.map_or("_", |v| &graph.value(v).name)).collect();
    names.join(", ")
}
