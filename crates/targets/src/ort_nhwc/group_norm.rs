//! Normalizations over groups of channels, which exporters write as an `InstanceNormalization` between two Reshapes, of features that
//! lie channels last.
//!
//! ```text
//! [N, S, G, C/G] -> [N, S, C/G, G] -> InstanceNormalization of [N, G, S * C/G] -> back
//! ```
//!
//! With one group nothing is moved: what order its elements are summed in is no matter but for the rounding.

use super::Rates;
use super::wrapped::{channels_last, to_first, to_last};
use crate::shared::group_norm::raise_exported;
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::raised::GroupNorm;
use relayout_ir::types::Type;
use relayout_target_api::{
    Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Raise, Recognized, Refused, TargetForm,
};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "group_norm";

/// Normalizations over groups.
pub(super) struct GroupNorms(pub(super) Arc<Rates>);

impl TargetForm for GroupNorms {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(norm) = Norm::recognize(q.graph, q.node) else { return Vec::new() };
        let Some(last) = channels_last(norm.rank()) else { return Vec::new() };
        let offer = |layout: Option<Layout>, cost: Cost| Offer {
            form: FORM,
            layouts: KernelLayouts { ins: vec![layout.clone(), None, None], outs: vec![layout] },
            cost,
            becomes: None,
            adds_zeros: false,
        };
        if norm.groups == 1 {
            return vec![offer(Some(last), Cost::ZERO), offer(None, Cost::ZERO)];
        }
        // Parts of channels that lie last are normalized only where the runtime puts Transposes of its own.
        if !self.0.provider.wraps("InstanceNormalization") {
            return Vec::new();
        }
        vec![offer(Some(last), self.0.whole(q, norm.x).times(2))]
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let norm = Norm::recognize(q.graph, q.node)?;
        Some(self.0.whole(q, norm.x).times(2))
    }

    fn recognizes(&self) -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    fn raises(&self, graph: &Graph, piece: &Recognized) -> Option<Raise> {
        let by_instances = piece.nodes.iter().any(|&n| graph.node(n).onnx() == Some("InstanceNormalization"));
        let known = graph.value(piece.value(0)?).ty.shape()?.iter().skip(1).all(Dim::is_const);
        // Of one group nothing is moved, wherever channels lie.
        let one = || graph.value(piece.value(1)?).ty.const_shape()?.iter().product::<i64>().eq(&1).then_some(());
        let fits = self.0.provider.wraps("InstanceNormalization") || one().is_some();
        if by_instances && known && fits { raise_exported(graph, piece) } else { None }
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let norm = Norm::recognize(piece.graph, piece.node);
        let wrapped = self.0.provider.wraps("InstanceNormalization");
        let made = norm.and_then(|norm| norm.write(piece, wrapped));
        made.ok_or_else(|| Refused::new(piece, "can't be a normalization of groups channels last"))
    }
}

/// A raised normalization with a scale and a bias for each group.
struct Norm {
    x: ValueId,
    affine: [ValueId; 2],
    /// Extents of an image: channels, then pixels.
    image: Vec<i64>,
    groups: i64,
    op: GroupNorm,
}

impl Norm {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Norm> {
        let node = graph.node(n);
        let op = GroupNorm::of(node)?;
        let (x, affine) = (node.operand(0)?, [node.operand(1)?, node.operand(2)?]);
        let image = graph.value(x).ty.shape()?.iter().skip(1).map(Dim::as_const).collect::<Option<Vec<i64>>>()?;
        let entries: i64 = graph.value(affine[0]).ty.const_shape()?.iter().product();
        let groups = op.groups;
        let whole = groups > 0 && image.first()? % groups == 0 && image.iter().all(|&d| d > 0);
        (whole && entries == groups && !op.by_body).then_some(Norm { x, affine, image, groups, op })
    }

    fn rank(&self) -> usize {
        self.image.len() + 1
    }

    fn write(&self, piece: &Piece<'_>, wrapped: bool) -> Option<Fragment> {
        let graph = piece.graph;
        let ty = &graph.value(self.x).ty;
        let (dtype, images) = (ty.dtype()?, ty.shape()?.first()?.clone());
        let channels = *self.image.first()?;
        let (pixels, each) = (self.image.iter().skip(1).product::<i64>(), channels / self.groups);
        let shaped = |dims: &[i64]| {
            Type::tensor(dtype, std::iter::once(images.clone()).chain(dims.iter().map(|&d| Dim::from(d))).collect())
        };
        let plain = Layout::row_major(3);
        let rows = [pixels * each, self.groups];
        let target = |dims: &[i64]| -> Vec<i64> { std::iter::once(0).chain(dims.iter().copied()).collect() };
        let mut made = Fragment::new(piece, FORM);
        let mut x = Operand::Outer(self.x);
        let reshape = |made: &mut Fragment, x: Operand, dims: &[i64], what: &str| {
            let node = made.reshape(graph, x, &target(dims), &plain);
            made.add(node, Left::row_major(made.named(what), shaped(dims)))
        };
        let turn = |made: &mut Fragment, x: Operand, perm: Vec<i64>, dims: &[i64], what: &str| {
            let node = Made::op("", "Transpose", 0, [x]).with("perm", Attr::Ints(perm));
            made.add(node, Left::row_major(made.named(what), shaped(dims)))
        };
        let swap = |made: &mut Fragment, x: Operand, dims: &[i64], what: &str| {
            let perm = vec![0, 1, 3, 2];
            let node = Made::op("", "Transpose", 0, [x]).with("perm", Attr::Ints(vec![0, 1, 3, 2]));
            let node = Made { form: Form::View(View::Transpose(perm)), ..node };
            made.add(node, Left::row_major(made.named(what), shaped(dims)))
        };
        if self.groups > 1 && each > 1 {
            x = reshape(&mut made, x, &[pixels, self.groups, each], "groups");
            x = swap(&mut made, x, &[pixels, each, self.groups], "groups_last");
        }
        // One group is the same elements in both orders. A Transpose is for a runtime that puts its own there.
        if wrapped {
            x = reshape(&mut made, x, &rows, "rows");
            x = turn(&mut made, x, to_first(3), &[rows[1], rows[0]], "channels_first");
        } else {
            x = reshape(&mut made, x, &[rows[1], rows[0]], "rows");
        }
        let [scale, bias] = self.affine.map(Operand::Outer);
        let even =
            Made::op("", "InstanceNormalization", 0, [x, scale, bias]).with("epsilon", Attr::Float(self.op.epsilon));
        x = made.add(even, Left::row_major(made.named("even"), shaped(&[rows[1], rows[0]])));
        if wrapped {
            x = turn(&mut made, x, to_last(3), &rows, "channels_last");
        }
        if self.groups > 1 && each > 1 {
            x = reshape(&mut made, x, &[pixels, each, self.groups], "apart");
            x = swap(&mut made, x, &[pixels, self.groups, each], "together");
        }
        let stored = piece.layouts.outs.first().cloned().flatten();
        let image = match &stored {
            Some(_) => self.image.iter().copied().skip(1).chain([channels]).collect(),
            None => self.image.clone(),
        };
        let extents = made.constant(made.named("shape"), relayout_ir::constant::Constant::ints(&target(&image)));
        made.become_op(Made::op("", "Reshape", 0, [x, extents]).in_layouts(Vec::new(), vec![stored]));
        Some(made)
    }
}
