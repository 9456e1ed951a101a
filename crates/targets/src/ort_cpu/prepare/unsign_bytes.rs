//! `unsign_bytes`: quantized networks of signed bytes as the same ones of unsigned bytes, for runtimes that compute with integers on
//! those only.
//!
//! On x86 ONNX Runtime makes an integer op of `DequantizeLinear`, op and `QuantizeLinear` where the bytes are unsigned. A pair of
//! `QuantizeLinear` and `DequantizeLinear` that is signed it takes for an unsigned one on load, but only where the bytes have one
//! reader. So around every fork one side of a unit is signed and the other is not, and the runtime computes it in floats:
//! residual networks lose half of their convolutions, dense ones nearly all.
//!
//! Shifted by 128, bytes and zero point mean the same numbers, bit by bit. The file says so of every pair, and of constants
//! beside unsigned bytes, if more units are of one type than the runtime would make by itself. It is left alone otherwise.
//!
//! Absent: weights, which may be signed; zero points per channel, which no such unit has; bytes that anything but a
//! `DequantizeLinear` reads, or that leave the graph.

mod units;

use relayout_eval::bytes_of;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target_api::{Context, Counted, Numerics, PassError, Rule};
use std::collections::{BTreeMap, BTreeSet};
use units::Unit;

/// The operand of `QuantizeLinear` and `DequantizeLinear` that is the zero point.
const ZERO: usize = 2;
/// The bit by which a signed byte differs from the unsigned one that is 128 more.
const SIGN: u8 = 0x80;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "unsign_bytes",
    equation: "DequantizeLinear(QuantizeLinear(x, s, z), s, z) = DequantizeLinear(QuantizeLinear(x, s, z + 128), s, z + 128)",
    condition: "the target's runtime computes with integers on unsigned bytes only; z is one signed byte, known; nothing but \
                DequantizeLinear reads the bytes, and they leave no graph; likewise a small constant that is dequantized \
                beside unsigned bytes",
    buys: "ops between quantizations that the runtime computes in floats because their bytes are not of one type",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// Largest constant, in bytes, that is stored anew.
const SMALL: u64 = 64 << 10;

/// Unsigns what it pays for.
pub(super) fn unsign_bytes(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    if cx.settings.numerics < Numerics::Reassociate {
        return Ok(());
    }
    let order = graph.order().unwrap_or_default();
    let units: Vec<Unit> = order.iter().filter_map(|&n| Unit::recognize(graph, n)).collect();
    let mut signed: BTreeSet<ValueId> = graph.values().filter(|&v| is_signed_pair(graph, v)).collect();
    let loaded = |v: ValueId| if is_unsigned_on_load(graph, v) { Some(DType::U8) } else { graph.value(v).ty.dtype() };
    let before = units.iter().filter(|unit| unit.is_fused(&loaded)).count();
    signed.extend(constants_beside(graph, &units, &signed));
    let after = |v: ValueId| if signed.contains(&v) { Some(DType::U8) } else { loaded(v) };
    if units.iter().filter(|unit| unit.is_fused(&after)).count() <= before {
        return Ok(());
    }
    unsign(graph, &signed)?;
    cx.count(&RULE, signed.len());
    Ok(())
}

/// Whether a value is what one `QuantizeLinear` makes and only `DequantizeLinear` reads, as signed bytes whose zero points are known.
fn is_signed_pair(graph: &Graph, v: ValueId) -> bool {
    let (maker, _) = graph.value(v).producer();
    let made = graph.node(maker);
    let activation = made.operand(0).is_some_and(|x| graph.constant(x).is_none());
    let readers = graph.uses(v);
    activation
        && has_signed_zero(graph, made, "QuantizeLinear")
        && !graph.is_output(v)
        && !readers.is_empty()
        && readers.iter().all(|u| u.slot == 0 && has_signed_zero(graph, graph.node(u.node), "DequantizeLinear"))
}

/// Whether a node is this op, per tensor and with a zero point that is a known signed byte.
fn has_signed_zero(graph: &Graph, node: &Node, name: &str) -> bool {
    units::is_linear(node, name) && zero_of(graph, node).is_some()
}

/// The zero point of a node, if it is one signed byte that is known.
fn zero_of(graph: &Graph, node: &Node) -> Option<(ValueId, i64)> {
    let v = node.operand(ZERO)?;
    let c = graph.constant(v).filter(|c| c.dtype == DType::I8)?;
    match c.to_ints(1)?.as_slice() {
        &[zero] => Some((v, zero)),
        _ => None,
    }
}

/// Whether ONNX Runtime takes a value for unsigned when it loads the file: signed bytes with one reader, through a `DequantizeLinear`
/// with the same zero point.
fn is_unsigned_on_load(graph: &Graph, v: ValueId) -> bool {
    let Some(only) = graph.only_use(v).filter(|_| is_signed_pair(graph, v)) else { return false };
    let read = graph.node(only.node);
    let readers = read.outputs.iter().flatten().map(|&y| graph.use_count(y) + graph.output_places(y).len());
    let zero = |n: NodeId| zero_of(graph, graph.node(n)).map(|(_, zero)| zero);
    readers.sum::<usize>() == 1 && zero(graph.value(v).producer().0) == zero(only.node)
}

/// Signed constants that would stand beside nothing but unsigned bytes.
fn constants_beside(graph: &Graph, units: &[Unit], signed: &BTreeSet<ValueId>) -> Vec<ValueId> {
    let is_unsigned = |v: ValueId| signed.contains(&v) || graph.value(v).ty.dtype() == Some(DType::U8);
    let mut beside = Vec::new();
    for unit in units {
        let (constants, others): (Vec<ValueId>, Vec<ValueId>) =
            unit.values.iter().partition(|&&v| graph.constant(v).is_some());
        if others.iter().all(|&v| is_unsigned(v)) {
            beside.extend(constants.into_iter().filter(|&c| is_signed_constant(graph, c)));
        }
    }
    beside
}

/// Whether a constant is signed bytes that one `DequantizeLinear` reads for one node.
fn is_signed_constant(graph: &Graph, v: ValueId) -> bool {
    let Some((c, only)) = graph.constant(v).zip(graph.only_use(v)) else { return false };
    let read = graph.node(only.node);
    let alone = read.outputs.iter().flatten().all(|&y| graph.only_use(y).is_some() && !graph.is_output(y));
    let small = c.size_bytes().is_some_and(|size| size <= SMALL) && bytes_of(c).is_ok();
    c.dtype == DType::I8 && alone && small && has_signed_zero(graph, read, "DequantizeLinear")
}

/// Makes these values unsigned, with the zero points of all that make and read them.
fn unsign(graph: &mut Graph, signed: &BTreeSet<ValueId>) -> Result<(), PassError> {
    let constants = constants_of(graph, signed);
    for &v in signed.iter().filter(|v| !constants.contains_key(*v)) {
        retype(graph, v);
    }
    let replaced: Vec<NodeId> = constants.keys().map(|&v| graph.value(v).producer().0).collect();
    let mut patch = Patch::new();
    constants.into_iter().filter_map(|(v, uses)| shifted(graph, v, uses)).for_each(|insert| patch.insert(insert));
    patch.apply(graph)?;
    remove_dead(graph, replaced);
    Ok(())
}

/// The constants among these values, and the zero points of all that make and read them, with the places that read each so.
fn constants_of(graph: &Graph, signed: &BTreeSet<ValueId>) -> BTreeMap<ValueId, Vec<Use>> {
    let mut constants: BTreeMap<ValueId, Vec<Use>> = BTreeMap::new();
    for &v in signed {
        let readers = graph.uses(v);
        let maker = graph.constant(v).is_none().then(|| graph.value(v).producer().0);
        for n in readers.iter().map(|u| u.node).chain(maker) {
            if let Some((zero, _)) = zero_of(graph, graph.node(n)) {
                constants.entry(zero).or_default().push(Use { node: n, slot: ZERO });
            }
        }
        if maker.is_none() {
            constants.entry(v).or_default().extend(readers);
        }
    }
    constants
}

/// Says that a `QuantizeLinear` leaves unsigned bytes.
fn retype(graph: &mut Graph, v: ValueId) {
    let maker = graph.value(v).producer().0;
    if graph.node(maker).int("output_dtype").is_some_and(|code| code != 0) {
        let unsigned = Attr::Int(i64::from(DType::U8.to_onnx()));
        graph.attrs_mut(maker).insert("output_dtype".to_owned(), unsigned);
    }
    let value = graph.value_mut(v);
    *value.differs = true;
    if let Type::Tensor(tensor) = value.ty {
        tensor.dtype = Some(DType::U8);
    }
}

/// A constant of signed bytes as unsigned ones, for these readers.
fn shifted(graph: &Graph, v: ValueId, uses: Vec<Use>) -> Option<Insert> {
    let c = graph.constant(v)?;
    let bytes: Vec<u8> = bytes_of(c).ok()?.iter().map(|byte| byte ^ SIGN).collect();
    let dims = c.dims.clone();
    let alone = graph.use_count(v) == uses.len() && !graph.is_output(v);
    let value = graph.value(v);
    let mut ty = value.ty.clone();
    if let Type::Tensor(tensor) = &mut ty {
        tensor.dtype = Some(DType::U8);
    }
    Some(Insert {
        node: Node::constant(
            Constant::inline(DType::U8, dims.clone(), bytes.into()),
            graph.node(value.producer().0).rank,
        ),
        name: value.name.clone(),
        ty,
        layout: Layout::row_major(dims.len()),
        uses,
        outputs: Vec::new(),
        takes_name_of: alone.then_some(v),
    })
}
