//! Messages to the graph of a bundle.
//!
//! Export wrote the messages with storage shapes; what it knew of each value (layout, logical shape) comes along. Constants
//! leave the graph for the file of weights, nodes `Constant` that hold a tensor too. Names of constants are unique over all
//! graphs there, so one in a body whose name is taken gets another.

use super::error::BundleError;
use super::schema::{Attribute, BUNDLE_SCHEMA, BundleGraph, BundleNode, BundleTensor, BundleValue, Extent, Scope};
use super::weights::{Data, Weight};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use relayout::kernels::{Kernels, MoveKernel};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::OpName;
use relayout_ir::layout::Layout;
use relayout_ir::op::lookup;
use relayout_ir::text::json::FloatJson;
use relayout_ir::types::Type;
use relayout_onnx::dialect::DOMAIN;
use relayout_onnx::export::{WrittenGraph, WrittenValue};
use relayout_onnx::import::{domain_of, kind_of};
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
use std::collections::{BTreeMap, BTreeSet};

/// Key of the metadata in a file of weights: no tensor can be called so.
const RESERVED: &str = "__metadata__";

/// What a bundle is written from.
pub(super) struct Source<'p> {
    pub(super) proto: &'p ModelProto,
    pub(super) written: &'p WrittenGraph,
    pub(super) data: &'p Data<'p>,
    pub(super) kernels: &'p Kernels,
    /// Before IR version 4 initializers are listed as inputs and are none.
    pub(super) lists_initializers: bool,
}

/// The graph and what it refers to.
pub(super) struct Converted<'p> {
    pub(super) graph: BundleGraph,
    pub(super) weights: Vec<Weight<'p>>,
    /// Kernels that nodes name, with the launch file that each comes from.
    pub(super) kernels: BTreeMap<String, String>,
}

/// Converts a model.
pub(super) fn convert<'p>(source: &Source<'p>) -> Result<Converted<'p>, BundleError> {
    let Some(graph) = &source.proto.graph else {
        return Err(BundleError::Refused("the model has no graph".to_owned()));
    };
    let opsets = source.proto.opset_import.iter();
    let mut names = BTreeSet::from([RESERVED]);
    collect_names(graph, &mut names);
    let key = |m: &'p MoveKernel| ((m.graph.as_str(), m.result.as_str()), m);
    let mut converter = Converter {
        source,
        opsets: opsets.map(|set| (domain_of(set.domain.as_deref()), set.version.unwrap_or(0))).collect(),
        moves: source.kernels.manifest.moves.iter().map(key).collect(),
        names: names.into_iter().map(str::to_owned).collect(),
        taken: BTreeSet::from([RESERVED.to_owned()]),
        weights: Vec::new(),
        kernels: BTreeMap::new(),
    };
    let scope = converter.scope(graph, Some(source.written), None)?;
    let Converter { opsets, weights, kernels, .. } = converter;
    Ok(Converted { graph: BundleGraph { schema: BUNDLE_SCHEMA, opsets, scope }, weights, kernels })
}

/// Names of values in a graph and in its bodies.
fn collect_names<'p>(graph: &'p GraphProto, names: &mut BTreeSet<&'p str>) {
    names.extend(graph.input.iter().filter_map(|i| i.name.as_deref()));
    names.extend(graph.initializer.iter().map(TensorProto::name));
    for node in &graph.node {
        names.extend(node.output.iter().map(String::as_str));
        node.attribute.iter().flat_map(bodies).for_each(|body| collect_names(body, names));
    }
}

fn bodies(a: &AttributeProto) -> impl Iterator<Item = &GraphProto> {
    a.g.as_deref().into_iter().chain(&a.graphs)
}

/// The names of one graph's values in the bundle, by those in the file.
struct Names<'a> {
    here: BTreeMap<String, String>,
    outer: Option<&'a Names<'a>>,
}

impl Names<'_> {
    fn of(&self, name: &str) -> String {
        match (self.here.get(name), self.outer) {
            (Some(found), _) => found.clone(),
            (None, Some(outer)) => outer.of(name),
            (None, None) => name.to_owned(),
        }
    }

    /// An operand or result; `None` where it is left out.
    fn slot(&self, name: &str) -> Option<String> {
        (!name.is_empty()).then(|| self.of(name))
    }
}

struct Converter<'s, 'p> {
    source: &'s Source<'p>,
    opsets: BTreeMap<String, i64>,
    /// Moves by the graph that they are in and the value that they make, as the graph of the passes calls them.
    moves: BTreeMap<(&'p str, &'p str), &'p MoveKernel>,
    /// Every name of a value, in all graphs.
    names: BTreeSet<String>,
    /// Names of constants so far.
    taken: BTreeSet<String>,
    weights: Vec<Weight<'p>>,
    kernels: BTreeMap<String, String>,
}

impl<'p> Converter<'_, 'p> {
    fn scope(
        &mut self,
        graph: &'p GraphProto,
        written: Option<&WrittenGraph>,
        outer: Option<&Names<'_>>,
    ) -> Result<Scope, BundleError> {
        let name = graph.name.clone().unwrap_or_default();
        if let Some(sparse) = graph.sparse_initializer.first() {
            let what = format!("constant `{}`", sparse.values.as_ref().map_or("", TensorProto::name));
            return Err(BundleError::CannotExpress { what, why: "it is sparse; store it dense".to_owned() });
        }
        let tensors = constants_of(graph);
        let mut names = Names { here: BTreeMap::new(), outer };
        let results = graph.node.iter().flat_map(|n| &n.output).map(String::as_str);
        for name in graph.input.iter().filter_map(|i| i.name.as_deref()).chain(results) {
            names.here.insert(name.to_owned(), name.to_owned());
        }
        let mut constants = Vec::with_capacity(tensors.len());
        for (name, tensor) in &tensors {
            let fresh = self.fresh(name);
            names.here.insert((*name).to_owned(), fresh.clone());
            constants.push(self.constant(fresh, tensor, written.and_then(|w| w.values.get(*name)))?);
        }
        let value = |name: &str| value(names.of(name), written.and_then(|w| w.values.get(name)));
        let held: BTreeSet<&str> = tensors.iter().map(|(name, _)| *name).collect();
        let is_default = |name: &&str| self.source.lists_initializers && held.contains(name);
        let listed = |name: &&str| !name.is_empty() && !is_default(name);
        let inputs: Vec<BundleValue> =
            graph.input.iter().filter_map(|i| i.name.as_deref()).filter(listed).map(value).collect();
        let stored = written.map(|w| w.outputs.as_slice()).unwrap_or_default();
        let leaving = graph.output.iter().map(|o| o.name.as_deref().unwrap_or_default()).enumerate();
        let outputs: Vec<BundleValue> = leaving.map(|(at, name)| self::value(names.of(name), stored.get(at))).collect();
        let ends: BTreeSet<&str> = outputs.iter().map(|v| v.name.as_str()).collect();
        let between = |node: &&NodeProto| !is_constant(node);
        let made = graph.node.iter().filter(between).flat_map(|n| &n.output).map(String::as_str);
        let values: Vec<BundleValue> =
            made.filter(|name| !name.is_empty() && !ends.contains(name)).map(value).collect();
        let nodes = graph.node.iter().filter(between);
        let nodes = nodes.map(|node| self.node(node, written, &names)).collect::<Result<_, _>>()?;
        Ok(Scope { name, inputs, outputs, values, constants, nodes })
    }

    /// A name that no other constant has, and that means nothing else where the constant's own name does not do.
    fn fresh(&mut self, name: &str) -> String {
        let (mut fresh, mut count) = (name.to_owned(), 0_usize);
        while !self.taken.insert(fresh.clone()) || (count > 0 && !self.names.insert(fresh.clone())) {
            count += 1;
            fresh = format!("{name}.{count}");
        }
        fresh
    }

    fn constant(
        &mut self,
        name: String,
        tensor: &'p TensorProto,
        written: Option<&WrittenValue>,
    ) -> Result<BundleValue, BundleError> {
        let fail = |why: String| BundleError::CannotExpress { what: format!("constant `{name}`"), why };
        let dtype = dtype_of(tensor).map_err(fail)?;
        let dims: Option<Vec<u64>> = tensor.dims.iter().map(|&n| u64::try_from(n).ok()).collect();
        let dims = dims.ok_or_else(|| fail(format!("its extents are {:?}", tensor.dims)))?;
        let shape: Vec<Dim> = tensor.dims.iter().map(|&n| Dim::from(n)).collect();
        let extents = |dims: &[Dim]| Some(dims.iter().map(Extent::from).collect());
        // What reads a constant through a view has it with the shape that it is stored in.
        let own = written.filter(|w| w.stored.as_deref() == Some(&shape));
        let value = match own.and_then(|w| Some((w.layout.as_ref()?, w.ty.shape()?))) {
            Some((layout, logical)) => BundleValue {
                name: name.clone(),
                dtype: Some(dtype),
                shape: extents(&shape),
                layout: Some(layout.to_string()),
                logical: extents(logical),
                other: None,
            },
            None => BundleValue {
                name: name.clone(),
                dtype: Some(dtype),
                shape: extents(&shape),
                layout: Some(Layout::row_major(shape.len()).to_string()),
                logical: extents(&shape),
                other: None,
            },
        };
        self.weights.push(Weight { name, dtype, dims, tensor });
        Ok(value)
    }

    fn node(
        &mut self,
        node: &'p NodeProto,
        written: Option<&WrittenGraph>,
        names: &Names<'_>,
    ) -> Result<BundleNode, BundleError> {
        let domain = domain_of(node.domain.as_deref());
        let op = OpName {
            domain: domain.clone(),
            name: node.op_type.clone().unwrap_or_default(),
            overload: node.overload.clone().unwrap_or_default(),
        };
        let opset = self.opsets.get(&domain).copied().unwrap_or(0);
        self.refuse_calls(node, &op, opset)?;
        let mut attributes = BTreeMap::new();
        for a in &node.attribute {
            let value = self.attribute(node, a, written, names)?;
            attributes.insert(a.name.clone().unwrap_or_default(), value);
        }
        let (kernel, no_kernel) = self.kernel(node, written);
        Ok(BundleNode {
            name: node.name.clone().unwrap_or_default(),
            domain,
            op: op.name,
            overload: op.overload,
            opset,
            inputs: node.input.iter().map(|name| names.slot(name)).collect(),
            outputs: node.output.iter().map(|name| names.slot(name)).collect(),
            attributes,
            kernel,
            no_kernel,
        })
    }

    /// Calls of functions whose bodies stayed in the model: a bundle has none.
    fn refuse_calls(&self, node: &NodeProto, op: &OpName, opset: i64) -> Result<(), BundleError> {
        let called = self.source.proto.functions.iter().any(|f| {
            domain_of(f.domain.as_deref()) == op.domain
                && f.name.as_deref() == Some(&op.name)
                && f.overload.as_deref().unwrap_or_default() == op.overload
        });
        if !called || op.domain == DOMAIN || lookup(op, opset).is_some() {
            return Ok(());
        }
        let why = "it calls a function of the model that can't be written out, and a bundle has no functions; \
                   `relayout optimize --report` notes why, and onnx.inliner can write it out";
        Err(BundleError::CannotExpress { what: label(node), why: why.to_owned() })
    }

    /// The kernel of a node that moves data, or why it has none.
    fn kernel(&mut self, node: &NodeProto, written: Option<&WrittenGraph>) -> (Option<String>, Option<String>) {
        let found = written.zip(node.output.first()).and_then(|(graph, name)| {
            let value = graph.values.get(name)?;
            self.moves.get(&(graph.path.as_str(), value.value.as_str())).copied()
        });
        let Some(found) = found else { return (None, None) };
        match &found.launch {
            Some(launch) => {
                let id = launch.strip_suffix(".json").unwrap_or(launch).to_owned();
                self.kernels.insert(id.clone(), launch.clone());
                (Some(id), None)
            }
            None => (None, found.why.clone()),
        }
    }

    fn attribute(
        &mut self,
        node: &NodeProto,
        a: &'p AttributeProto,
        written: Option<&WrittenGraph>,
        names: &Names<'_>,
    ) -> Result<Attribute, BundleError> {
        let name = a.name.as_deref().unwrap_or_default();
        let fail = |why: &str| BundleError::CannotExpress {
            what: label(node),
            why: format!("attribute `{name}` {why}, which a bundle has no place for"),
        };
        let text = |bytes: &Bytes| {
            let text = std::str::from_utf8(bytes).map_err(|_| fail("is text that is not UTF-8"))?;
            Ok::<_, BundleError>(text.to_owned())
        };
        if a.ref_attr_name.as_deref().is_some_and(|name| !name.is_empty()) {
            return Err(fail("refers to that of a call"));
        }
        Ok(match AttributeType::try_from(kind_of(a)).unwrap_or(AttributeType::Undefined) {
            AttributeType::Int => Attribute::Int(a.i.unwrap_or_default()),
            AttributeType::Float => Attribute::Float(FloatJson::from(a.f.unwrap_or_default())),
            AttributeType::String => Attribute::String(text(&a.s.clone().unwrap_or_default())?),
            AttributeType::Ints => Attribute::Ints(a.ints.clone()),
            AttributeType::Floats => Attribute::Floats(a.floats.iter().map(|&x| FloatJson::from(x)).collect()),
            AttributeType::Strings => Attribute::Strings(a.strings.iter().map(text).collect::<Result<_, _>>()?),
            AttributeType::Tensor => {
                let tensor = a.t.as_deref().ok_or_else(|| fail("lacks its tensor"))?;
                Attribute::Tensor(self.tensor(tensor).map_err(|why| fail(&format!("is a tensor: {why}")))?)
            }
            AttributeType::Graph => {
                let body = a.g.as_deref().ok_or_else(|| fail("lacks its graph"))?;
                let stored = written.and_then(|w| w.body(node, name, 0));
                Attribute::Graph(Box::new(self.scope(body, stored, Some(names))?))
            }
            AttributeType::Graphs => return Err(fail("is a list of graphs")),
            AttributeType::Tensors => return Err(fail("is a list of tensors")),
            AttributeType::SparseTensor | AttributeType::SparseTensors => return Err(fail("is sparse")),
            AttributeType::TypeProto | AttributeType::TypeProtos => return Err(fail("is a type")),
            AttributeType::Undefined => return Err(fail("is of a kind that is not known")),
        })
    }

    fn tensor(&self, tensor: &TensorProto) -> Result<BundleTensor, String> {
        let dtype = dtype_of(tensor)?;
        let bytes = self.source.data.file.tensor_bytes(tensor).map_err(|e| e.to_string())?;
        Ok(BundleTensor { dtype, shape: tensor.dims.clone(), data: STANDARD.encode(bytes) })
    }
}

/// How messages name a node.
fn label(node: &NodeProto) -> String {
    let op = node.op_type.as_deref().unwrap_or_default();
    match (node.name.as_deref().unwrap_or_default(), node.output.iter().find(|name| !name.is_empty())) {
        ("", Some(result)) => format!("{op} -> `{result}`"),
        ("", None) => op.to_owned(),
        (name, _) => format!("{op} `{name}`"),
    }
}

/// The element type of a tensor that has a fixed size.
fn dtype_of(tensor: &TensorProto) -> Result<DType, String> {
    let code = tensor.data_type.unwrap_or(0);
    let dtype = DType::from_onnx(code).ok_or_else(|| format!("element type {code} is not known"))?;
    if dtype.bits().is_none() {
        return Err("it holds strings, and a bundle has no place for them".to_owned());
    }
    Ok(dtype)
}

/// Whether the node is one that does nothing but hold a tensor.
fn is_constant(node: &NodeProto) -> bool {
    held(node).is_some()
}

fn held(node: &NodeProto) -> Option<(&str, &TensorProto)> {
    let standard = domain_of(node.domain.as_deref()).is_empty() && node.op_type.as_deref() == Some("Constant");
    let [attribute] = node.attribute.as_slice() else { return None };
    let name = node.output.first().filter(|name| standard && !name.is_empty())?;
    (attribute.name.as_deref() == Some("value")).then_some((name, attribute.t.as_deref()?))
}

/// The constants of a graph: its initializers, and then what nodes hold. Of two initializers of one name the last counts.
fn constants_of(graph: &GraphProto) -> Vec<(&str, &TensorProto)> {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, tensor) in graph.initializer.iter().enumerate() {
        last.insert(tensor.name(), at);
    }
    let counts =
        |(at, tensor): &(usize, &TensorProto)| !tensor.name().is_empty() && last.get(tensor.name()) == Some(at);
    let initializers = graph.initializer.iter().enumerate().filter(counts).map(|(_, tensor)| (tensor.name(), tensor));
    initializers.chain(graph.node.iter().filter_map(held)).collect()
}

/// A value by what export knew of it.
fn value(name: String, written: Option<&WrittenValue>) -> BundleValue {
    let extents = |dims: &[Dim]| dims.iter().map(Extent::from).collect();
    BundleValue {
        name,
        dtype: written.and_then(|w| w.ty.dtype()),
        shape: written.and_then(|w| w.stored.as_deref()).map(extents),
        layout: written.and_then(|w| w.layout.as_ref()).map(Layout::to_string),
        logical: written.and_then(|w| w.ty.shape()).map(extents),
        other: written.and_then(|w| match &w.ty {
            Type::Other(what) => Some(what.clone()),
            _ => None,
        }),
    }
}
