//! Pad and Slice of a blocked image, declared with all its digits: `[N, C, H, W]` is `[N, C/B, H, W, B]`, byte by byte. The op then
//! speaks of these axes, and a Reshape back declares the result as the other blocked ops have it. A signal has no rows.

use crate::ort_cpu::nodes::{become_reshape, reshape};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::{Padding, cuts, paddings, zero_padding};
use relayout_ir::patch::constant_node;
use relayout_ir::storage::{ImageAxes, axes_in_runs};
use relayout_ir::types::Type;
use relayout_target::PassError;

/// The first operator sets in which these ops have their numbers as operands.
const PAD_READS_OPERANDS: i64 = 11;
const SLICE_READS_OPERANDS: i64 = 10;

/// Says such an op of a blocked image.
pub(super) fn say(graph: &mut Graph, n: NodeId, layouts: &KernelLayouts) -> Result<(), PassError> {
    let Some(unfolded) = Unfolded::of(graph, n, layouts) else {
        let first = format!("{} can't be said of blocks", graph.node(n).describe(graph));
        return Err(PassError::invalid("lower_blocks", first));
    };
    let (slots, blocked) = (unfolded.blocks * unfolded.block, unfolded.blocked.clone());
    let target: Vec<i64> = [0, slots].into_iter().chain(std::iter::repeat_n(0, blocked.rank() - 2)).collect();
    let made = unfolded.add(graph, n)?;
    become_reshape(graph, n, made, &target, Some(blocked))
}

fn ints(graph: &mut Graph, n: NodeId, name: &str, values: &[i64]) -> Result<ValueId, PassError> {
    let ty = Type::tensor(DType::I64, vec![Dim::from(values.len() as i64)]);
    let (name, rank) = (graph.fresh_name(name), graph.node(n).rank);
    graph.add_single(constant_node(Constant::ints(values), rank), name, ty).map_err(PassError::from)
}

/// An op, and what it says of the digits of its operand.
struct Unfolded {
    x: ValueId,
    blocked: Layout,
    /// Blocks of channels, and channels of each.
    blocks: i64,
    block: i64,
    /// Extents of operand and result, a dim per digit.
    from: Vec<Dim>,
    to: Vec<Dim>,
    said: Said,
}

/// What is added before every digit, then behind every digit.
enum Pads {
    Known(Vec<i64>),
    /// Entries of a list that is computed.
    Picked(ValueId, Vec<i64>),
}

/// Numbers that are said of digits.
enum Said {
    Pads(Pads),
    /// Of each axis that is cut: first element, end, digit, step.
    Cuts([Vec<i64>; 4]),
}

impl Pads {
    /// What a Pad of an image or a signal says, whose axes stand there.
    fn of(graph: &Graph, node: &Node, axes: ImageAxes) -> Option<Pads> {
        let pads = paddings(graph, node)?;
        let none = (Padding::Known(0), Padding::Known(0));
        let digits = axes.first().into_iter().map(|axis| pads.get(axis).copied().unwrap_or(none)).chain([none]);
        let (before, after): (Vec<_>, Vec<_>) = digits.unzip();
        let all = || before.iter().chain(&after);
        let known = |p: &Padding| if let Padding::Known(elements) = p { Some(*elements) } else { None };
        if let Some(pads) = all().map(known).collect() {
            return Some(Pads::Known(pads));
        }
        let zero = zero_padding(graph, node)?;
        let list = node.inputs.get(1).copied().flatten()?;
        let contents = graph.value(list).contents.as_ref()?;
        let entry = |p: &Padding| match p {
            Padding::Listed(at) => Some(*at),
            Padding::Known(0) => Some(zero),
            Padding::Known(elements) => contents.iter().position(|d| *d == Dim::from(*elements)),
        };
        let picks = all().map(|p| i64::try_from(entry(p)?).ok()).collect::<Option<_>>()?;
        Some(Pads::Picked(list, picks))
    }

    /// As an operand of the node whose result is called `base`.
    fn listed(self, graph: &mut Graph, n: NodeId, base: &str) -> Result<ValueId, PassError> {
        let (list, picks) = match self {
            Pads::Known(pads) => return ints(graph, n, &format!("{base}.pads"), &pads),
            Pads::Picked(list, picks) => (list, picks),
        };
        let name = format!("{}.digits", graph.value(list).name);
        let ty = Type::tensor(DType::I64, vec![Dim::from(picks.len() as i64)]);
        let places = ints(graph, n, &format!("{name}.places"), &picks)?;
        let gather = OpName { domain: String::new(), name: "Gather".to_owned(), overload: String::new() };
        let mut node = Node::new(Op::Onnx(gather), vec![Some(list), Some(places)]);
        (node.rank, node.opset) = (graph.node(n).rank, graph.node(n).opset);
        node.form = Form::Kernel(Box::default());
        let name = graph.fresh_name(&name);
        graph.add_single(node, name, ty).map_err(PassError::from)
    }
}

impl Unfolded {
    fn of(graph: &Graph, n: NodeId, layouts: &KernelLayouts) -> Option<Unfolded> {
        let node = graph.node(n);
        let (x, y) = (node.inputs.first().copied().flatten()?, node.outputs.first().copied().flatten()?);
        let blocked = layouts.outs.first()?.clone()?;
        let (axes, block) = axes_in_runs(&blocked)?;
        let block = i64::try_from(block).ok()?;
        let stored = graph.storage_shape(x, &blocked)?;
        let blocks = stored.get(1)?.as_const()? / block;
        let digits = |v: ValueId| -> Option<Vec<Dim>> {
            let shape = graph.value(v).ty.shape()?;
            let mut dims: Vec<Dim> =
                axes.first().iter().map(|&axis| shape.get(axis).cloned()).collect::<Option<_>>()?;
            dims[1] = Dim::from(blocks);
            dims.push(Dim::from(block));
            Some(dims)
        };
        let said = match node.onnx()? {
            "Pad" => Said::Pads(Pads::of(graph, node, axes)?),
            "Slice" => {
                let cuts = cuts(graph, node)?;
                let digit = |axis: usize| axes.first().iter().position(|&a| a == axis).map(|digit| digit as i64);
                let digits = cuts.iter().map(|cut| digit(cut.axis)).collect::<Option<Vec<_>>>()?;
                let of = |what: fn(&relayout_ir::op::Cut) -> i64| cuts.iter().map(what).collect::<Vec<_>>();
                Said::Cuts([of(|cut| cut.start), of(|cut| cut.end), digits, of(|cut| cut.step)])
            }
            _ => return None,
        };
        Some(Unfolded { x, blocks, block, from: digits(x)?, to: digits(y)?, said, blocked })
    }

    /// Adds the Reshape before the op, and the op; what it makes.
    fn add(self, graph: &mut Graph, n: NodeId) -> Result<ValueId, PassError> {
        let mut target = vec![0; self.from.len()];
        target[1] = self.blocks;
        if let Some(digit) = target.last_mut() {
            *digit = self.block;
        }
        let x = reshape(graph, n, self.x, &target, self.from)?;
        let old = graph.node(n);
        let base = old.outputs.first().copied().flatten().map_or("cut".to_owned(), |y| graph.value(y).name.clone());
        let mut node = Node::new(old.op.clone(), vec![Some(x)]);
        (node.rank, node.opset) = (old.rank, old.opset);
        node.form = Form::Kernel(Box::default());
        match self.said {
            Said::Pads(pads) => {
                node.attrs
                    .extend(old.attrs.iter().filter(|(name, _)| *name != "pads").map(|(k, a)| (k.clone(), a.clone())));
                let fill = old.inputs.get(2).copied().flatten();
                match pads {
                    Pads::Known(pads) if node.opset < PAD_READS_OPERANDS => {
                        node.attrs.insert("pads".to_owned(), Attr::Ints(pads));
                    }
                    pads => {
                        node.inputs.push(Some(pads.listed(graph, n, &base)?));
                        node.inputs.extend(fill.map(Some));
                    }
                }
            }
            Said::Cuts(lists) => {
                for (name, list) in ["starts", "ends", "axes", "steps"].into_iter().zip(lists) {
                    if node.opset >= SLICE_READS_OPERANDS {
                        node.inputs.push(Some(ints(graph, n, &format!("{base}.{name}"), &list)?));
                    } else if name != "steps" {
                        node.attrs.insert(name.to_owned(), Attr::Ints(list));
                    }
                }
            }
        }
        let name = graph.fresh_name(&format!("{base}.digits"));
        graph.add_single(node, name, Type::tensor(DType::F32, self.to)).map_err(PassError::from)
    }
}
