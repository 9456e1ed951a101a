//! Convolutions of groups whose channels are no whole blocks, as those of fewer and wider groups: neighbours side by side, each with
//! zeros for the channels of the others.

use super::conv::conv_of;
use crate::ort_cpu::Block;
use crate::ort_cpu::costs::{ConvKernel, ConvShape};
use crate::ort_cpu::machine::Machine;
use crate::ort_cpu::nodes::{constant_behind_moves, convolution};
use relayout_eval::Diagonal;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::Groups;
use relayout_target_api::{Fragment, Made, NodeQuery, Offer, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "wide_conv";

/// Convolutions in blocks whose groups are joined.
pub(super) struct WideConv(pub(super) Arc<Machine>);

impl TargetForm for WideConv {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Conv"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.wide_conv(q).into_iter().collect()
    }

    fn write(&self, piece: &Piece<'_>, _: &Offer) -> Result<Fragment, Refused> {
        let graph = piece.graph;
        let weights = graph.node(piece.node).operand(1);
        let wide = Wide::recognize(self.0.block, graph, piece.node).zip(weights);
        let (wide, weights) = wide.ok_or_else(|| Refused::new(piece, "can't be given wider groups"))?;
        let layout = wide.layout(self.0.block);
        let mut fragment = Fragment::new(piece, FORM);
        let name = format!("{}.wide", graph.value(weights).name);
        let names = [name.clone(), format!("{name}.packed")];
        let packed = fragment.packed(names, wide.weights, layout.clone());
        let mut layouts = piece.layouts.clone();
        layouts.ins[1] = Some(layout);
        let conv = Made::same(piece).named(convolution(), 1).reading(1, packed);
        let conv = conv.with("group", Attr::Int(wide.groups));
        fragment.become_op(Made { form: Form::Kernel(Box::new(layouts)), ..conv });
        Ok(fragment)
    }
}

/// A convolution of images or signals with wider groups.
pub(super) struct Wide {
    pub(super) weights: Constant,
    pub(super) groups: i64,
    /// All channels are one group, and fill no block: it reads an ordinary image.
    is_thin: bool,
}

impl Wide {
    /// `None` where the weights are not known, or groups can't be joined. Weights of signals may not be turned.
    pub(super) fn recognize(block: Block, graph: &Graph, n: NodeId) -> Option<Wide> {
        let node = graph.node(n);
        let weights = constant_behind_moves(graph, node.operand(1)?)?;
        let read = weights.dims.len() == 4 || (weights.dims.len() == 3 && weights.pending.is_none());
        (read && weights.dtype == DType::F32 && weights.source.is_available()).then_some(())?;
        let Groups { group, outer, inner } = Groups::read(node, &weights.dims)?;
        let unsigned = |n: i64| u64::try_from(n).ok();
        let inputs = unsigned(inner.checked_mul(group)?)?;
        let joined = block.joined_groups(unsigned(group)?, inputs, unsigned(outer)?)? as i64;
        let mut dims = weights.dims.clone();
        dims[1] = inner.checked_mul(joined)?;
        let source = Arc::new(Diagonal { weights, groups: group, joined });
        let weights = Constant { dtype: DType::F32, dims, source, pending: None };
        Some(Wide { weights, groups: group / joined, is_thin: group == joined && inputs < block.channels() })
    }

    /// How weights of images are stored.
    fn layout(&self, block: Block) -> Layout {
        if self.is_thin { block.filter_weights() } else { block.dense_weights() }
    }
}

impl Machine {
    /// The offer of wider groups for a convolution whose own are no whole blocks. Weights are read as they are.
    pub(super) fn wide_conv(&self, query: &NodeQuery<'_>) -> Option<Offer> {
        let (axes, conv) = conv_of(query).filter(|(_, conv)| !self.has_whole_groups(conv))?;
        let wide = Wide::recognize(self.block, query.graph, query.node)?;
        let conv = ConvShape { group: wide.groups as u64, ..conv };
        let kernel = if wide.is_thin { ConvKernel::BlockedFromNchw } else { ConvKernel::Blocked };
        let mut offer = self.conv(query, (axes, &conv), kernel, [None, None])?;
        if let Some(weights) = offer.layouts.ins.get_mut(1) {
            *weights = None;
        }
        Some(Offer { form: FORM, becomes: None, adds_zeros: true, ..offer })
    }
}
