//! Whether the result is a model that can be loaded. Terms are made of nodes that outputs need; this looks at every node, those that
//! nothing reads and those of bodies and functions too. What is odd in the model that the result was made of may stay as it is.

use crate::checks::agreed::Agreed;
use crate::files::model::{Attr, DeclaredDim, Function, Graph, Input, Model, Node};
use crate::graph::eval::{Refusal, Values, described};
use crate::graph::order::needed;
use crate::standard::schema;
use crate::terms::value::Value;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Something that makes a file invalid.
struct Fault<'m> {
    /// The node; none for what is wrong with a graph or a model.
    node: Option<&'m Node>,
    why: String,
}

/// Names that a place of a graph can read.
struct Names<'n> {
    own: FxHashSet<&'n str>,
    outer: Option<&'n Names<'n>>,
}

impl Names<'_> {
    fn has(&self, name: &str) -> bool {
        self.own.contains(name) || self.outer.is_some_and(|outer| outer.has(name))
    }
}

/// The ops of ONNX Runtime's blocks.
const BLOCKED: &[&str] = &[
    "ReorderInput",
    "ReorderOutput",
    "Conv",
    "MaxPool",
    "GlobalMaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "Upsample",
];

/// Other ops of ONNX Runtime that the checker knows.
const FUSED: &[&str] = &[
    "FusedConv",
    "FusedMatMul",
    "Gelu",
    "MultiHeadAttention",
    "NhwcMaxPool",
    "QLinearConv",
    "QLinearGlobalAveragePool",
    "QuickGelu",
    "SkipLayerNormalization",
];

struct Faults<'m> {
    model: &'m Model,
    found: Vec<Fault<'m>>,
}

/// Refuses a result with a fault that its model does not have at the same node.
pub(crate) fn result(a: &Model, b: &Model) -> Result<(), Refusal> {
    let made = faults(b);
    if made.is_empty() {
        return Ok(());
    }
    let known = faults(a);
    match made.iter().find(|fault| !known.iter().any(|other| is_same(fault, other))) {
        Some(Fault { node, why }) => {
            Err(Refusal { node: node.map_or_else(|| "the result".to_owned(), described), why: why.clone() })
        }
        None => Ok(()),
    }
}

/// Whether a model has no fault.
pub(crate) fn is_valid(model: &Model) -> bool {
    faults(model).is_empty()
}

/// Whether a convolution is told its padding in two ways, which the standard does not allow and no runtime loads; pools are taken so.
fn is_padded_twice(node: &Node) -> bool {
    let attr = |wanted: &str| node.attrs.iter().find(|(name, _)| name == wanted).map(|(_, attr)| attr);
    let found = matches!(attr("auto_pad"), Some(Attr::Text(how)) if !how.is_empty() && how != b"NOTSET");
    node.op.contains("Conv") && found && attr("pads").is_some()
}

fn is_same(fault: &Fault<'_>, other: &Fault<'_>) -> bool {
    let node = match (fault.node, other.node) {
        (None, None) => true,
        (Some(x), Some(y)) => {
            let name = !x.name.is_empty() && x.name == y.name;
            (&x.domain, &x.op) == (&y.domain, &y.op) && (name || x.outputs.iter().any(|o| y.outputs.contains(o)))
        }
        _ => false,
    };
    node && fault.why == other.why
}

/// Refuses an output whose declared type contradicts its value, unless the model declares the same.
pub(crate) fn output(a: &Model, b: &Model, name: &str, value: &Value) -> Result<(), Refusal> {
    let declared = |model: &Model| model.graph.declared.iter().find(|output| output.name == name).cloned();
    let Some(output) = declared(b) else { return Ok(()) };
    let same = declared(a).is_some_and(|other| format!("{other:?}") == format!("{output:?}"));
    if value.is_opaque() {
        let why = "it is declared otherwise, and the checker does not know its shape".to_owned();
        let holds = same || declared(a).is_some_and(|other| says_less(&output, &other));
        return if holds { Ok(()) } else { Err(Refusal { node: format!("output `{name}`"), why }) };
    }
    let why = if output.dtype != 0 && output.dtype != value.dtype {
        "it is declared with another type of elements"
    } else if !fits(&output, &value.shape()) {
        "it is declared with another shape"
    } else {
        return Ok(());
    };
    if same { Ok(()) } else { Err(Refusal { node: format!("output `{name}`"), why: why.to_owned() }) }
}

/// Refuses an input that is declared with another type of elements or another shape, also where nothing reads it. What shape one has
/// that lies as was agreed to is not looked at.
pub(crate) fn inputs(a: &Model, b: &Model, agreed: &Agreed) -> Result<(), Refusal> {
    for input in &b.graph.inputs {
        let Some(other) = a.graph.inputs.iter().find(|other| other.name == input.name) else { continue };
        let extents = |dims: &[DeclaredDim], others: &[DeclaredDim]| {
            let same = |pair: (&DeclaredDim, &DeclaredDim)| match pair {
                (DeclaredDim::Known(x), DeclaredDim::Known(y)) => x == y,
                _ => true,
            };
            dims.len() == others.len() && dims.iter().zip(others).all(same)
        };
        let shapes = agreed.inputs.contains_key(&input.name)
            || input.dims.as_ref().zip(other.dims.as_ref()).is_none_or(|(x, y)| extents(x, y));
        if input.dtype != other.dtype || input.other != other.other || !shapes {
            let why = "it is declared with another type or shape".to_owned();
            return Err(Refusal { node: format!("input `{}`", input.name), why });
        }
    }
    Ok(())
}

/// Refuses an input whose declared shape contradicts the layout that was agreed to.
pub(crate) fn given(b: &Model, given: &Values) -> Result<(), Refusal> {
    let wrong = |input: &&Input| given.get(&input.name).is_some_and(|value| !fits(input, &value.shape()));
    match b.graph.inputs.iter().find(wrong) {
        Some(input) => {
            let why = "it is declared with another shape than that of the layout that was agreed to".to_owned();
            Err(Refusal { node: format!("input `{}`", input.name), why })
        }
        None => Ok(()),
    }
}

/// Whether what is declared holds for all that the other declaration holds for.
fn says_less(output: &Input, other: &Input) -> bool {
    let dim = |pair: (&DeclaredDim, &DeclaredDim)| match pair {
        (DeclaredDim::Known(x), DeclaredDim::Known(y)) => x == y,
        (DeclaredDim::Known(_), _) => false,
        _ => true,
    };
    let dims = match (&output.dims, &other.dims) {
        (None, _) => true,
        (Some(dims), Some(others)) => dims.len() == others.len() && dims.iter().zip(others).all(dim),
        (Some(_), None) => false,
    };
    dims && output.dtype == other.dtype && output.other == other.other
}

fn fits(declared: &Input, shape: &[i64]) -> bool {
    declared.dims.as_ref().is_none_or(|dims| {
        let fits = |(dim, extent): (&DeclaredDim, &i64)| !matches!(dim, DeclaredDim::Known(known) if known != extent);
        dims.len() == shape.len() && dims.iter().zip(shape).all(fits)
    })
}

fn faults(model: &Model) -> Vec<Fault<'_>> {
    let mut faults = Faults { model, found: Vec::new() };
    faults.graph(&model.graph, &model.opsets, None);
    model.functions.iter().for_each(|function| faults.function(function));
    faults.found
}

impl<'m> Faults<'m> {
    fn add(&mut self, node: Option<&'m Node>, why: impl Into<String>) {
        self.found.push(Fault { node, why: why.into() });
    }

    fn function(&mut self, function: &'m Function) {
        let mut names = Names { own: FxHashSet::default(), outer: None };
        for name in &function.inputs {
            self.named(&mut names, name, None);
        }
        self.nodes(&function.nodes, &function.outputs, &function.opsets, names);
    }

    fn graph(&mut self, graph: &'m Graph, opsets: &'m BTreeMap<String, i64>, outer: Option<&Names<'_>>) {
        let mut names = Names { own: FxHashSet::default(), outer };
        for input in &graph.inputs {
            self.named(&mut names, &input.name, None);
        }
        for (name, _) in &graph.initializers {
            // In the main graph it is the default of an input.
            if outer.is_some() || !graph.inputs.iter().any(|input| input.name == *name) {
                self.named(&mut names, name, None);
            }
        }
        self.nodes(&graph.nodes, &graph.outputs, opsets, names);
    }

    fn named<'n>(&mut self, names: &mut Names<'n>, name: &'n str, node: Option<&'m Node>) {
        if !name.is_empty() && !names.own.insert(name) {
            self.add(node, format!("`{name}` is made twice"));
        }
    }

    fn nodes<'n>(
        &mut self,
        nodes: &'m [Node],
        outputs: &'m [String],
        opsets: &'m BTreeMap<String, i64>,
        mut names: Names<'n>,
    ) where
        'm: 'n,
    {
        let mut called = FxHashSet::default();
        for (node, needed) in nodes.iter().zip(needed(nodes, outputs)) {
            if !node.name.is_empty() && !called.insert(node.name.as_str()) {
                self.add(Some(node), "another node of the graph has its name");
            }
            if let Some(name) = node.inputs.iter().find(|name| !name.is_empty() && !names.has(name)) {
                self.add(Some(node), format!("nothing makes its operand `{name}`"));
            }
            if let Some(why) = self.unlike(node, opsets, needed) {
                self.add(Some(node), why);
            }
            for (_, attr) in &node.attrs {
                if let Attr::Graph(body) = attr {
                    self.graph(body, opsets, Some(&names));
                }
            }
            for name in &node.outputs {
                self.named(&mut names, name, Some(node));
            }
        }
        for name in outputs.iter().filter(|name| !names.has(name)) {
            self.add(None, format!("nothing makes the output `{name}`"));
        }
    }

    /// Why a node is no use of its op.
    fn unlike(&self, node: &Node, opsets: &BTreeMap<String, i64>, needed: bool) -> Option<String> {
        let Some(&opset) = opsets.get(&node.domain) else {
            return Some(format!("no operator set of the domain `{}` is imported", node.domain));
        };
        let is_called = |function: &&Rc<Function>| {
            (&function.domain, &function.name, &function.overload) == (&node.domain, &node.op, &node.overload)
        };
        if let Some(function) = self.model.functions.iter().find(is_called) {
            let more = node.inputs.len() > function.inputs.len() || node.outputs.len() > function.outputs.len();
            return more.then(|| "it has more operands or results than its function".to_owned());
        }
        let twice = || is_padded_twice(node).then(|| "it has pads and finds padding by itself".to_owned());
        if node.domain.is_empty() {
            return schema::fault(node, opset).or_else(twice);
        }
        if let Some(why) = schema::own_fault(node, opset).or_else(twice) {
            return Some(why);
        }
        let known = match node.domain.as_str() {
            "com.microsoft.nchwc" => BLOCKED.contains(&node.op.as_str()),
            "com.microsoft" => FUSED.contains(&node.op.as_str()),
            _ => false,
        };
        (!needed && !known)
            .then(|| format!("no output needs it, and the checker does not know `{}.{}`", node.domain, node.op))
    }
}
