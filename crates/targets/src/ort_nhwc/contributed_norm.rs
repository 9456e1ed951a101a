//! Normalizations over groups of channels as one op of ONNX Runtime, `GroupNorm` of domain `com.microsoft`, for those who allow that domain.
//!
//! ```text
//! [N, H, W, C] -> GroupNorm -> [N, H, W, C]
//! ```
//!
//! It reads and leaves images channels last, so nothing is moved around it, whatever the groups are. Only CUDA's provider has a kernel of
//! it. That kernel has a thread for two channels, and one block of threads for all channels of a group
//! (`contrib_ops/cuda/diffusion/group_norm_common_base.h`), so a group is an even number of channels, and not more than a block takes.
//! What stands behind the op is taken in later ([`join_norms`](super::join_norms)).

use super::Rates;
use super::wrapped::channels_last;
use crate::shared::group_norm::raise_any;
use relayout_eval::floats;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::MICROSOFT;
use relayout_ir::raised::GroupNorm;
use relayout_target_api::{
    Cost, Fragment, Made, NodeQuery, Offer, Operand, Piece, Raise, Recognized, Refused, TargetForm,
};
use std::sync::Arc;

/// The op.
pub(super) const OP: &str = "GroupNorm";
/// The same of a sum, which it takes in.
pub(super) const SKIPPING: &str = "SkipGroupNorm";

/// The form's name.
const FORM: &str = "contributed_group_norm";

/// Types of images that the kernel takes.
const DTYPES: [DType; 2] = [DType::F32, DType::F16];
/// Channels that a thread takes.
const CHANNELS_OF_A_THREAD: i64 = 2;
/// Most channels of a block of threads.
const CHANNELS_OF_A_BLOCK: i64 = 512;
/// Most images: blocks in a direction of the grid.
const MOST_IMAGES: i64 = 65_535;

/// Normalizations over groups, for providers that have the op.
pub(super) struct ContributedNorms(pub(super) Arc<Rates>);

impl TargetForm for ContributedNorms {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let Some((norm, last)) = Norm::recognize(q.graph, q.node).zip(channels_last(4)) else { return Vec::new() };
        let layouts = KernelLayouts { ins: vec![Some(last.clone()), None, None], outs: vec![Some(last)] };
        let [_, cost] = self.0.normalization(q, norm.x);
        vec![Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false }]
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let norm = Norm::recognize(q.graph, q.node)?;
        let [more, _] = self.0.normalization(q, norm.x);
        Some(self.0.whole(q, norm.x).times(2) + more)
    }

    fn recognizes(&self) -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    fn raises(&self, graph: &Graph, piece: &Recognized) -> Option<Raise> {
        let raise = raise_any(graph, piece, &DTYPES)?;
        let groups = match raise.attrs.get("groups")? {
            Attr::Int(groups) => *groups,
            _ => return None,
        };
        let epsilon = match raise.attrs.get("epsilon")? {
            Attr::Float(epsilon) => *epsilon,
            _ => return None,
        };
        has_kernel(graph, piece.value(0)?, groups, epsilon).then_some(raise)
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let made = Norm::recognize(piece.graph, piece.node).and_then(|norm| norm.write(piece));
        made.ok_or_else(|| Refused::new(piece, "can't be a GroupNorm of com.microsoft"))
    }
}

/// Whether the provider runs the op on these images.
fn has_kernel(graph: &Graph, x: ValueId, groups: i64, epsilon: f32) -> bool {
    let ty = &graph.value(x).ty;
    let (Some(dtype), Some([images, channels, rows, columns])) = (ty.dtype(), ty.shape()) else { return false };
    let Some(channels) = channels.as_const().filter(|&c| groups > 0 && c > 0 && c % groups == 0) else { return false };
    let each = channels / groups;
    let known = [images, rows, columns].map(Dim::as_const);
    // The kernel counts the elements of an image in 32 bits, and makes no grid of none.
    let elements = known[1..].iter().flatten().try_fold(channels, |all, &extent| all.checked_mul(extent));
    DTYPES.contains(&dtype)
        && each % CHANNELS_OF_A_THREAD == 0
        && each <= CHANNELS_OF_A_BLOCK
        && epsilon >= 0.0
        && epsilon.is_finite()
        && known.iter().flatten().all(|&extent| extent > 0)
        && known[0].is_none_or(|images| images <= MOST_IMAGES)
        && elements.is_some_and(|elements| elements <= i64::from(i32::MAX))
}

/// A raised normalization that the op computes.
struct Norm {
    x: ValueId,
    /// A scale and a bias for each channel.
    affine: [Vec<f64>; 2],
    op: GroupNorm,
}

impl Norm {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Norm> {
        let node = graph.node(n);
        let op = GroupNorm::of(node)?;
        let x = node.operand(0).filter(|&x| has_kernel(graph, x, op.groups, op.epsilon))?;
        let channels = usize::try_from(graph.value(x).ty.shape()?.get(1).and_then(Dim::as_const)?).ok()?;
        let [scale, bias] = [1, 2].map(|slot| by_channel(graph, node.operand(slot)?, op.groups, channels));
        Some(Norm { x, affine: [scale?, bias?], op })
    }

    fn write(&self, piece: &Piece<'_>) -> Option<Fragment> {
        let mut made = Fragment::new(piece, FORM);
        let channels = i64::try_from(self.affine[0].len()).ok()?;
        let mut constant = |what: &str, numbers: &[f64]| {
            let name = made.named(what);
            made.constant(name, Constant::floats(numbers.iter().copied(), &[channels]))
        };
        let operands = [Operand::Outer(self.x), constant("scale", &self.affine[0]), constant("bias", &self.affine[1])];
        let KernelLayouts { ins, outs } = piece.layouts.clone();
        let op = Made::op(MICROSOFT, OP, 1, operands)
            .with("activation", Attr::Int(0))
            .with("channels_last", Attr::Int(1))
            .with("epsilon", Attr::Float(self.op.epsilon))
            .with("groups", Attr::Int(self.op.groups));
        made.become_op(op.in_layouts(ins, outs));
        Some(made)
    }
}

/// Numbers for each channel of a constant that has one for each group, or for each channel.
fn by_channel(graph: &Graph, v: ValueId, groups: i64, channels: usize) -> Option<Vec<f64>> {
    let numbers = floats(graph.constant(v)?)?;
    if numbers.len() == channels {
        return Some(numbers);
    }
    let groups = usize::try_from(groups).ok().filter(|&groups| groups == numbers.len())?;
    let each = channels / groups;
    Some(numbers.iter().flat_map(|&number| std::iter::repeat_n(number, each)).collect())
}
