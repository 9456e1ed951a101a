//! Convolutions of one tap: a product over channels for each pixel, as an Einsum over blocks and an Add of the bias.

use crate::{image, offers};
use relayout::ir::attr::Attr;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::form::{Form, View};
use relayout::ir::layout::{Layout, LayoutNames};
use relayout::ir::types::Type;
use relayout::target::Cost;
use relayout::target::{Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};

/// Blocks of images `n c y x i`, by weights `m c a b i j`, are blocks `n m y x j`.
const EQUATION: &[u8] = b"ncyxi,mcabij->nmyxj";

pub(crate) struct Pointwise;

impl Pointwise {
    /// Multiply-adds of a convolution of one tap whose channels are whole blocks.
    fn products(q: &NodeQuery<'_>) -> Option<u64> {
        let node = q.graph.node(q.node);
        let (x, w) = (node.operand(0)?, node.operand(1)?);
        let [n, c, ..] = image(q, x)?;
        let [_, m, oh, ow] = image(q, node.only_result()?)?;
        let plain = |name, number: i64| node.ints(name).is_none_or(|list| list.iter().all(|&i| i == number));
        let one_tap = q.sizes.shape(q.graph, w)? == [m, c, 1, 1] && plain("strides", 1) && plain("pads", 0);
        let floats = q.graph.value(x).ty.dtype() == Some(DType::F32);
        let constant = node.inputs.iter().skip(1).flatten().all(|&v| (q.is_constant)(v));
        (one_tap && floats && constant && node.str("auto_pad").is_none()).then_some(n * c * m * oh * ow)
    }
}

impl TargetForm for Pointwise {
    fn name(&self) -> &'static str {
        "quad_pointwise"
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Conv"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let weights = Layout::parse_with("O/4 I/4 H W I%4 O%4", &LayoutNames::weights(4));
        offers(self.name(), Pointwise::products(q), weights.ok().map(|weights| vec![Some(weights)]))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        Some(Cost::new(Pointwise::products(q)? / 4))
    }

    fn write(&self, piece: &Piece<'_>, offer: &Offer) -> Result<Fragment, Refused> {
        let node = piece.graph.node(piece.node);
        let refused = || Refused::new(piece, "has no result");
        let y = piece.graph.value(node.only_result().ok_or_else(refused)?);
        let outer = |slot| node.operand(slot).map(Operand::Outer);
        let operands = [outer(0), outer(1)].into_iter().flatten();
        let product = Made::op("", "Einsum", piece.opset, operands)
            .with("equation", Attr::String(EQUATION.into()))
            .in_layouts(offer.layouts.ins.clone(), offer.layouts.outs.clone());
        let mut fragment = Fragment::new(piece, self.name());
        let Some(bias) = outer(2) else {
            fragment.become_op(product);
            return Ok(fragment);
        };
        let product = fragment
            .add(product, Left::row_major(format!("{}.product", y.name), y.ty.clone()).stored(y.layout.clone()));
        // In blocks the bias is `[C/4, 1, 1, 4]`: the same numbers in the same order, so a view.
        let blocks = y.ty.shape().and_then(|shape| shape[1].as_const()).unwrap_or(0) / crate::BLOCK;
        let shape = [blocks, 1, 1, crate::BLOCK].map(Dim::from).to_vec();
        let view = Made { form: Form::View(View::Reshape), ..Made::op("", "Reshape", piece.opset, [bias]) };
        let bias = fragment.add(view, Left::row_major(format!("{}.bias", y.name), Type::tensor(DType::F32, shape)));
        let sum = Made::op("", "Add", piece.opset, [product, bias]);
        fragment.become_op(sum.in_layouts(vec![Some(y.layout.clone()), None], offer.layouts.outs.clone()));
        Ok(fragment)
    }
}
