//! A normalization over groups of channels is one op while layouts are decided, however the file says it: as `GroupNormalization`, as
//! `InstanceNormalization` of the image or of rows, or as means of rows. What scales it afterwards stays a node of its own.
//!
//! The forms of the op round otherwise, so nothing is raised with `--numerics exact` or before a quantization.

use relayout_eval::{Numbers, encode, floats};
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::raised::GroupNorm;
use relayout_target_api::{Arg, Literal, Raise, RaisedOperand, Recognized};

/// The names of the op.
pub(crate) const OPS: &[&str] = &["GroupNormalization", ROWS_OF_CHANNELS];
/// Most groups whose scales are made of a number.
const MOST_GROUPS: usize = 1 << 16;
/// It has a group per channel.
const ROWS_OF_CHANNELS: &str = "InstanceNormalization";

/// A normalization of several nodes as one op, of float32 or halves.
pub(crate) fn raise_exported(graph: &Graph, piece: &Recognized) -> Option<Raise> {
    raise_of(graph, piece, 1, &[DType::F32, DType::F16, DType::BF16]).filter(|_| piece.nodes.len() > 1)
}

/// A normalization of these types as one op, also one that is a single node of the file.
pub(crate) fn raise_any(graph: &Graph, piece: &Recognized, dtypes: &[DType]) -> Option<Raise> {
    raise_of(graph, piece, 1, dtypes)
}

/// A normalization of float32 as one op, if its channels fill blocks of this many.
pub(crate) fn raise(graph: &Graph, piece: &Recognized, block: u64) -> Option<Raise> {
    raise_of(graph, piece, block, &[DType::F32])
}

fn raise_of(graph: &Graph, piece: &Recognized, block: u64, dtypes: &[DType]) -> Option<Raise> {
    let x = piece.value(0)?;
    let (channels, file) = (channels(graph, x), graph.node(piece.last(graph)));
    let alone = piece.nodes.len() == 1;
    let (groups, epsilon) = match piece.op.as_str() {
        "GroupNormalization" => (*piece.ints(3)?.first()?, piece.number(4)?),
        ROWS_OF_CHANNELS => (channels, piece.number(3)?),
        _ => return None,
    };
    // Before operator set 7 the ops that it is written with have no kernels in the runtime; and others sum in another type.
    let known = |n| graph.node(n).opset >= 7 && graph.node(n).int("stash_type").unwrap_or(1) == 1;
    let divides = groups > 0 && channels > 0 && channels % groups == 0 && channels % block as i64 == 0;
    let dtype = graph.value(x).ty.dtype().filter(|dtype| dtypes.contains(dtype))?;
    if !divides {
        return None;
    }
    let operands = [1, 2].map(|at| affine(graph, piece.args.get(at)?, groups, dtype));
    let [scale, bias] = operands;
    let operands = [scale?, bias?];
    let [entries, alike] = operands.each_ref().map(|operand| entries(graph, operand, dtype));
    let per_group_or_channel = entries == alike && (entries? == groups || entries? == channels);
    if !(per_group_or_channel && piece.nodes.iter().copied().all(known)) {
        return None;
    }
    let by_body = alone && file.onnx() == Some("GroupNormalization");
    let norm = GroupNorm { groups, epsilon: epsilon as f32, by_body };
    let operands = std::iter::once(RaisedOperand::Value(x)).chain(operands).collect();
    Some(Raise { op: GroupNorm::op(), attrs: norm.attrs(), operands })
}

/// A scale or a bias: a constant of the file, or a number for every group.
fn affine(graph: &Graph, arg: &Arg, groups: i64, dtype: DType) -> Option<RaisedOperand> {
    match arg {
        Arg::Value(v) => graph.constant(*v).filter(|c| c.pending.is_none()).map(|_| RaisedOperand::Value(*v)),
        Arg::Literal(Literal::Number(x)) if dtype == DType::F32 => {
            Some(RaisedOperand::New(Constant::filled(dtype, &[groups], *x)))
        }
        Arg::Literal(Literal::Number(x)) => {
            let groups_read = usize::try_from(groups).ok().filter(|groups| *groups <= MOST_GROUPS)?;
            let bytes = encode(&Numbers::F64(vec![*x; groups_read]), dtype).ok()?;
            Some(RaisedOperand::New(Constant::inline(dtype, vec![groups], bytes.into())))
        }
        Arg::Literal(_) => None,
    }
}

/// How many numbers a scale or a bias is.
fn entries(graph: &Graph, operand: &RaisedOperand, dtype: DType) -> Option<i64> {
    let constant = match operand {
        RaisedOperand::Value(v) => graph.constant(*v)?,
        RaisedOperand::New(c) => c,
    };
    let float = constant.dtype == dtype;
    floats(constant).filter(|_| float).map(|numbers| numbers.len() as i64)
}

/// Channels of an image; 0 if it is none, or they are not known.
fn channels(graph: &Graph, x: ValueId) -> i64 {
    match graph.value(x).ty.shape() {
        Some([_, channels, _, _]) => channels.as_const().unwrap_or(0),
        _ => 0,
    }
}
