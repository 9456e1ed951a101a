//! The runtime's graph as a graph of relayout. Its ops are those of ONNX, so nothing has to be said of their axes.

use crate::Refused;
use crate::dense::has_shape;
use bytes::Bytes;
use onnx_runtime_ir::{Attribute, DataType, Dim as HostDim, Graph as Host, Node, NodeId as HostNode};
use onnx_runtime_ir::{TensorData, ValueId as HostValue, WeightRef};
use onnx_runtime_optimizer::PassContext;
use relayout::builder::NewOp;
use relayout::ir::attr::Attr;
use relayout::ir::constant::{ConstSource, Constant};
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::graph::{Graph, ValueId};
use relayout::ir::types::Type;
use relayout::plan::Ids;
use relayout::{BuildError, GraphBuilder};
use std::collections::{BTreeSet, HashMap};

/// A domain for nodes through which no layout passes.
const LEFT: &str = "nxrt.left";

/// Constants of more bytes are not copied: lists of axes and extents are smaller, and nobody asks for the contents of weights.
const COPIED: usize = 1 << 16;

/// A graph of the runtime, as relayout sees it.
pub struct Read {
    /// The graph.
    pub graph: Graph,
    /// The runtime's numbers of what is in it.
    pub ids: Ids<u32, u32>,
}

/// A constant whose bytes stay with the runtime.
#[derive(Debug)]
struct InHost;

impl ConstSource for InHost {
    fn bytes(&self) -> Result<Bytes, String> {
        Err("the bytes of this constant are the runtime's".to_owned())
    }
}

struct Reader<'a> {
    host: &'a Host,
    context: &'a PassContext,
    builder: GraphBuilder,
    ids: Ids<u32, u32>,
    values: HashMap<HostValue, ValueId>,
}

/// Reads a graph. Through the nodes in `left` no layout passes.
///
/// # Errors
/// Why the graph can't be read: a node that holds others, a value that is read before it is there.
pub fn read(host: &Host, context: &PassContext, left: &BTreeSet<u32>) -> Result<Read, Refused> {
    if !host.subgraphs.is_empty() {
        return Err(Refused::whole("a plan does not speak of bodies (If, Loop, Scan)"));
    }
    let order = host.topological_order().map_err(|why| Refused::whole(why.to_string()))?;
    let mut reader =
        Reader { host, context, builder: GraphBuilder::new("nxrt"), ids: Ids::new(), values: HashMap::new() };
    for &id in &host.inputs {
        // A default that the caller may override is no constant, so it is an input and nothing else.
        reader.input(id)?;
    }
    let mut constants: Vec<HostValue> = host.initializers.keys().copied().collect();
    constants.sort_by_key(|id| id.0);
    for id in constants {
        reader.initializer(id)?;
    }
    for id in order {
        reader.node(id, left.contains(&id.0))?;
    }
    for id in &host.outputs {
        let value = reader.values.get(id).copied().ok_or_else(|| Refused::whole("nothing makes an output"))?;
        reader.builder.output(value).map_err(|why| Refused::whole(why.to_string()))?;
    }
    Ok(Read { graph: reader.builder.finish(), ids: reader.ids })
}

impl Reader<'_> {
    /// The runtime's name with its number, so that no two are one.
    fn name(&self, id: HostValue) -> String {
        format!("{} #{}", self.host.value(id).name.as_deref().unwrap_or_default(), id.0)
    }

    fn named(&mut self, value: ValueId, id: HostValue) {
        self.ids.value(value, id.0);
        self.values.insert(id, value);
    }

    fn input(&mut self, id: HostValue) -> Result<(), Refused> {
        if self.values.contains_key(&id) {
            return Ok(());
        }
        let kind = element(self.host.value(id).dtype)?;
        let value = self.builder.input(&self.name(id), kind, self.dims(id)).map_err(refused)?;
        self.named(value, id);
        Ok(())
    }

    fn initializer(&mut self, id: HostValue) -> Result<(), Refused> {
        if self.values.contains_key(&id) || !self.host.values.contains(id) {
            return Ok(());
        }
        let weight = &self.host.initializers[&id];
        let constant = constant(weight, self.context.initializer_bytes(weight))?;
        let value = self.builder.constant(&self.name(id), constant).map_err(refused)?;
        self.named(value, id);
        Ok(())
    }

    fn node(&mut self, id: HostNode, left: bool) -> Result<(), Refused> {
        let node = self.host.node(id);
        let values = match left {
            false => self.standard(node),
            true => None,
        };
        let values = match values {
            Some(values) => values,
            None => self.builder.add(self.closed(node)?).map_err(refused)?,
        };
        for (value, id) in values.iter().zip(&node.outputs) {
            self.named(*value, *id);
        }
        let first = values.first().ok_or_else(|| Refused::new(node, "it has no result"))?;
        self.ids.node(self.builder.producer(*first), id.0);
        Ok(())
    }

    /// An op of ONNX: with the runtime's types where they fit, else with what is inferred.
    fn standard(&mut self, node: &Node) -> Option<Vec<ValueId>> {
        let opset = i64::try_from(self.host.effective_opset(node)?).ok()?;
        let mut op = NewOp::of_domain(node.domain.clone(), node.op_type.clone()).named(node.name.clone()).opset(opset);
        for (name, attribute) in &node.attributes {
            op = op.attr(name.clone(), attr(attribute)?);
        }
        op = self.operands(node, op)?;
        self.builder
            .add(self.results(node, op.clone(), true))
            .or_else(|_| self.builder.add(self.results(node, op, false)))
            .ok()
    }

    /// An op of which nothing is claimed.
    fn closed(&self, node: &Node) -> Result<NewOp, Refused> {
        let op = NewOp::of_domain(LEFT, node.op_type.clone()).named(node.name.clone());
        let op = self.operands(node, op).ok_or_else(|| Refused::new(node, "it reads what is not there"))?;
        Ok(self.results(node, op, true))
    }

    fn operands(&self, node: &Node, mut op: NewOp) -> Option<NewOp> {
        for operand in &node.inputs {
            op = match operand {
                Some(id) => op.operand(*self.values.get(id)?),
                None => op.omit(),
            };
        }
        Some(op)
    }

    fn results(&self, node: &Node, mut op: NewOp, typed: bool) -> NewOp {
        for &id in &node.outputs {
            let kind = element(self.host.value(id).dtype).ok();
            let known = has_shape(self.host, id);
            op = match kind.filter(|_| typed && known) {
                Some(kind) => op.typed_result(self.name(id), Type::tensor(kind, self.dims(id))),
                None => op.result(self.name(id)),
            };
        }
        op
    }

    fn dims(&self, id: HostValue) -> Vec<Dim> {
        let dim = |dim: &HostDim| match dim {
            HostDim::Static(n) => i64::try_from(*n).map_or_else(|_| Dim::symbol("huge"), Dim::from),
            HostDim::Symbolic(symbol) => {
                let name = self.host.symbol_constraints.get(symbol).and_then(|known| known.name.clone());
                Dim::symbol(&name.unwrap_or_else(|| format!("s{}", symbol.0)))
            }
        };
        self.host.value(id).shape.iter().map(dim).collect()
    }
}

fn refused(why: BuildError) -> Refused {
    Refused::whole(why.to_string())
}

/// The element type: both count as ONNX does.
fn element(kind: DataType) -> Result<DType, Refused> {
    DType::from_onnx(kind.to_onnx()).ok_or_else(|| Refused::whole(format!("no type is {kind:?}")))
}

fn constant(weight: &WeightRef, bytes: Option<&[u8]>) -> Result<Constant, Refused> {
    let kind = element(weight.dtype())?;
    let dims = extents(weight.dims());
    let strings = kind == DType::String;
    Ok(match bytes.filter(|bytes| bytes.len() <= COPIED && !strings) {
        Some(bytes) => Constant::inline(kind, dims, Bytes::copy_from_slice(bytes)),
        None if strings => Constant::fixed(kind, dims, "texts have no order of bytes".to_owned()),
        None => Constant { source: std::sync::Arc::new(InHost), ..Constant::missing(kind, dims, String::new()) },
    })
}

fn extents(dims: &[usize]) -> Vec<i64> {
    dims.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX)).collect()
}

fn tensor(data: &TensorData) -> Option<Constant> {
    let kind = element(data.dtype).ok().filter(|kind| *kind != DType::String)?;
    Some(Constant::inline(kind, extents(&data.dims), Bytes::copy_from_slice(&data.data)))
}

/// An attribute; `None` for those that hold graphs or types.
fn attr(attribute: &Attribute) -> Option<Attr> {
    Some(match attribute {
        Attribute::Int(n) => Attr::Int(*n),
        Attribute::Float(x) => Attr::Float(*x),
        Attribute::String(text) => Attr::String(Bytes::copy_from_slice(text)),
        Attribute::Ints(list) => Attr::Ints(list.clone()),
        Attribute::Floats(list) => Attr::Floats(list.clone()),
        Attribute::Strings(list) => Attr::Strings(list.iter().map(|text| Bytes::copy_from_slice(text)).collect()),
        Attribute::Tensor(data) => Attr::Tensor(tensor(data)?),
        _ => return None,
    })
}
