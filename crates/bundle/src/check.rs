//! Whether the graph of a bundle holds together, and fits the other files.

use super::schema::{Attribute, BundleGraph, BundleNode, BundleTensor, BundleValue, Extent, Scope};
use super::weights::{Weights, as_stored};
use super::{GRAPH, KERNELS, WEIGHTS, kernel_files};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use relayout_fsio::Inside;
use relayout_ir::dim::Dim;
use relayout_ir::layout::{Layout, LayoutNames};
use relayout_ir::storage::{StorageRule, storage_shape};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The files around a graph.
pub(super) struct Facts<'b> {
    pub(super) folder: &'b Inside,
    /// Files that the manifest lists.
    pub(super) files: BTreeSet<&'b str>,
    pub(super) weights: &'b Weights,
}

/// The file that is at fault, and why.
type Fault = (String, String);

/// The first thing that is wrong with a graph or the files that it refers to.
pub(super) fn check(graph: &BundleGraph, facts: &Facts<'_>) -> Result<(), Fault> {
    let mut checker = Checker { facts, opsets: &graph.opsets, constants: BTreeSet::new(), kernels: BTreeSet::new() };
    let in_graph = |why: String| (GRAPH.to_owned(), why);
    checker.scope(&graph.scope, &Place::Main, None).map_err(in_graph)?;
    let unread = facts.weights.names().into_iter().find(|name| !checker.constants.contains(name.as_str()));
    if let Some(name) = unread {
        return Err((WEIGHTS.to_owned(), format!("it has `{name}`, which is not a constant of the graph")));
    }
    for id in &checker.kernels {
        kernel(facts, id)?;
    }
    let known: BTreeSet<String> = checker.kernels.iter().flat_map(|id| kernel_files(id)).collect();
    let in_folder = format!("{KERNELS}/");
    match facts.files.iter().find(|path| path.starts_with(&in_folder) && !known.contains(**path)) {
        Some(path) => Err(((*path).to_owned(), "no node of the graph names it".to_owned())),
        None => Ok(()),
    }
}

/// What a launch file says of its kernel.
#[derive(Deserialize)]
struct Launch {
    kernel: String,
    source: String,
}

/// A kernel's files are there and speak of each other.
fn kernel(facts: &Facts<'_>, id: &str) -> Result<(), Fault> {
    let [source, launch] = kernel_files(id);
    for file in [&source, &launch] {
        if !facts.files.contains(file.as_str()) {
            return Err((GRAPH.to_owned(), format!("a node has the move `{id}`, and there is no `{file}`")));
        }
    }
    let read = |file: &String| {
        let fail = |why: String| (file.clone(), format!("cannot read it: {why}"));
        let bytes = facts.folder.read(file).map_err(|e| fail(e.to_string()))?;
        String::from_utf8(bytes).map_err(|e| fail(e.to_string()))
    };
    let text = read(&source)?;
    let said: Launch =
        serde_json::from_str(&read(&launch)?).map_err(|e| (launch.clone(), format!("it is not a launch: {e}")))?;
    if format!("{KERNELS}/{}", said.source) != source {
        return Err((launch, format!("it names the source `{}` in place of `{id}.cu`", said.source)));
    }
    if said.kernel.is_empty() || !text.contains(&said.kernel) {
        return Err((launch, format!("there is no kernel `{}` in `{source}`", said.kernel)));
    }
    Ok(())
}

struct Checker<'b> {
    facts: &'b Facts<'b>,
    opsets: &'b BTreeMap<String, i64>,
    /// Names of constants so far, of all graphs.
    constants: BTreeSet<&'b str>,
    kernels: BTreeSet<&'b str>,
}

/// Which graph, for people: nothing of the main one. Put into words only where something is wrong, for a body may be one of very many
/// of a node with a very long name.
enum Place<'p> {
    Main,
    Body { node: &'p BundleNode, attribute: &'p str, around: &'p Place<'p> },
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Main => Ok(()),
            Place::Body { node, attribute, around } => write!(f, "{around}{}, {attribute}: ", label(node)),
        }
    }
}

/// Names that mean something at a place.
struct Names<'b, 'o> {
    here: BTreeSet<&'b str>,
    outer: Option<&'o Names<'b, 'o>>,
}

impl Names<'_, '_> {
    fn has(&self, name: &str) -> bool {
        self.here.contains(name) || self.outer.is_some_and(|outer| outer.has(name))
    }
}

impl<'b> Checker<'b> {
    /// A graph.
    fn scope(&mut self, scope: &'b Scope, place: &Place<'_>, outer: Option<&Names<'b, '_>>) -> Result<(), String> {
        let mut names = Names { here: BTreeSet::new(), outer };
        for input in &scope.inputs {
            value(input).map_err(|why| format!("{place}input `{}`: {why}", input.name))?;
            if !names.here.insert(&input.name) {
                return Err(format!("{place}input `{}` is there twice", input.name));
            }
        }
        for constant in &scope.constants {
            self.constant(constant).map_err(|why| format!("{place}constant `{}`: {why}", constant.name))?;
            names.here.insert(&constant.name);
        }
        for node in &scope.nodes {
            let fail = |why: String| format!("{place}{}: {why}", label(node));
            if let Some(name) = node.inputs.iter().flatten().find(|name| !names.has(name)) {
                return Err(fail(format!("it reads `{name}`, which nothing before it makes")));
            }
            self.node(node).map_err(fail)?;
            for (attribute, body) in bodies(node) {
                self.scope(body, &Place::Body { node, attribute, around: place }, Some(&names))?;
            }
            for name in node.outputs.iter().flatten() {
                if !names.here.insert(name) {
                    return Err(fail(format!("it makes `{name}`, which is there already")));
                }
            }
        }
        for output in &scope.outputs {
            value(output).map_err(|why| format!("{place}output `{}`: {why}", output.name))?;
            if !names.here.contains(output.name.as_str()) {
                return Err(format!("{place}nothing makes output `{}`", output.name));
            }
        }
        listed(scope).map_err(|why| format!("{place}{why}"))
    }

    /// A constant is in the file of weights, with the same type and shape, and no other has its name.
    fn constant(&mut self, constant: &'b BundleValue) -> Result<(), String> {
        value(constant)?;
        if !self.constants.insert(&constant.name) {
            return Err("another constant has the same name".to_owned());
        }
        let number = |extent: &Extent| match extent {
            Extent::Number(n) => u64::try_from(*n).ok(),
            Extent::Symbolic(_) => None,
        };
        let dims: Option<Vec<u64>> = constant.shape.as_ref().and_then(|shape| shape.iter().map(number).collect());
        let (Some(dtype), Some(dims)) = (constant.dtype, dims) else {
            return Err("it has no element type, or no extents that are numbers".to_owned());
        };
        let Some(info) = self.facts.weights.info(&constant.name) else {
            return Err(format!("it is not in `{WEIGHTS}`"));
        };
        let wanted = as_stored(dtype, &dims)?;
        if (info.dtype, &info.shape) != (wanted.0, &wanted.1) {
            return Err(format!(
                "`{WEIGHTS}` has it as {} {:?}, and the graph wants {} {:?}",
                info.dtype, info.shape, wanted.0, wanted.1
            ));
        }
        Ok(())
    }

    fn node(&mut self, node: &'b BundleNode) -> Result<(), String> {
        let opset = self.opsets.get(&node.domain).copied().unwrap_or(0);
        if node.opset != opset {
            return Err(format!(
                "it is of version {} of operator set `{}`, and the graph imports {opset}",
                node.opset, node.domain
            ));
        }
        for (name, attribute) in &node.attributes {
            if let Attribute::Tensor(tensor) = attribute {
                check_tensor(tensor).map_err(|why| format!("attribute `{name}`: {why}"))?;
            }
        }
        let Some(id) = &node.kernel else { return Ok(()) };
        if node.no_kernel.is_some() {
            return Err("it has a kernel, and a reason why it has none".to_owned());
        }
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')) {
            return Err(format!("`{id}` is not a name of a kernel"));
        }
        self.kernels.insert(id);
        Ok(())
    }
}

/// How messages name a node.
fn label(node: &BundleNode) -> String {
    match (node.name.as_str(), node.outputs.iter().flatten().next()) {
        ("", Some(result)) => format!("{} -> `{result}`", node.op),
        ("", None) => node.op.clone(),
        (name, _) => format!("{} `{name}`", node.op),
    }
}

fn bodies(node: &BundleNode) -> impl Iterator<Item = (&str, &Scope)> {
    node.attributes.iter().filter_map(|(name, attribute)| match attribute {
        Attribute::Graph(body) => Some((name.as_str(), &**body)),
        _ => None,
    })
}

/// The list of values is what nodes make and is no output, in that order.
fn listed(scope: &Scope) -> Result<(), String> {
    let ends: BTreeSet<&str> = scope.outputs.iter().map(|v| v.name.as_str()).collect();
    let made = scope.nodes.iter().flat_map(|node| node.outputs.iter().flatten());
    let mut made = made.filter(|name| !ends.contains(name.as_str()));
    for found in &scope.values {
        value(found).map_err(|why| format!("value `{}`: {why}", found.name))?;
        if made.next() != Some(&found.name) {
            return Err(format!("the list of values has `{}` where nodes make something else", found.name));
        }
    }
    made.next().map_or(Ok(()), |name| Err(format!("the list of values lacks `{name}`")))
}

/// A value's extents are some, and its layout stores it as it says.
fn value(value: &BundleValue) -> Result<(), String> {
    let dims = |extents: &Option<Vec<Extent>>| -> Result<Option<Vec<Dim>>, String> {
        let Some(extents) = extents else { return Ok(None) };
        let dim = |extent: &Extent| extent.dim().ok_or_else(|| format!("{extent:?} is not an extent"));
        extents.iter().map(dim).collect::<Result<_, _>>().map(Some)
    };
    let (stored, logical) = (dims(&value.shape)?, dims(&value.logical)?);
    let (Some(text), Some(logical)) = (&value.layout, logical) else {
        return match (&value.layout, &value.logical) {
            (None, None) => Ok(()),
            (Some(_), _) => Err("it has a layout, and no logical extents".to_owned()),
            (None, _) => Err("it has logical extents, and no layout".to_owned()),
        };
    };
    let layout = Layout::parse_with(text, &LayoutNames::default_for(logical.len())).map_err(|e| e.to_string())?;
    let wanted = storage_shape(&logical, &layout, StorageRule::PerDigit);
    if layout.rank() != logical.len() || (stored.is_some() && stored != wanted) {
        let list = |extents: &[Extent]| {
            let text = |e: &Extent| e.dim().map_or_else(String::new, |dim| dim.to_string());
            extents.iter().map(text).collect::<Vec<_>>().join(",")
        };
        return Err(format!(
            "[{}] is not how layout {text} stores [{}]",
            list(value.shape.as_deref().unwrap_or_default()),
            list(value.logical.as_deref().unwrap_or_default())
        ));
    }
    Ok(())
}

/// The bytes of a tensor are as many as its type and shape ask for.
fn check_tensor(tensor: &BundleTensor) -> Result<(), String> {
    let elems = tensor.shape.iter().try_fold(1_u64, |n, &extent| n.checked_mul(u64::try_from(extent).ok()?));
    let wanted = elems.and_then(|elems| tensor.dtype.bytes(elems));
    let wanted = wanted.ok_or_else(|| format!("{} {:?} is not a tensor of a bundle", tensor.dtype, tensor.shape))?;
    let found = STANDARD.decode(&tensor.data).map_err(|e| format!("its data is not base64: {e}"))?.len() as u64;
    if found == wanted { Ok(()) } else { Err(format!("it has {found} bytes, and its shape asks for {wanted}")) }
}
