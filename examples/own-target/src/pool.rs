//! Maxima over windows: on blocks, windows over three axes the last of which is one slot wide.

use crate::{image, offers};
use relayout::ir::attr::Attr;
use relayout::target::Cost;
use relayout::target::{Fragment, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};

pub(crate) struct Maxima;

impl Maxima {
    /// Numbers that the op compares.
    fn compared(q: &NodeQuery<'_>) -> Option<u64> {
        let node = q.graph.node(q.node);
        image(q, node.operand(0)?)?;
        let left: u64 = image(q, node.only_result()?)?.iter().product();
        let plain = node.str("auto_pad").is_none() && !node.flag("ceil_mode") && !node.flag("storage_order");
        let taps: i64 = node.ints("kernel_shape")?.iter().product();
        plain.then_some(left * taps.max(1).unsigned_abs())
    }
}

impl TargetForm for Maxima {
    fn name(&self) -> &'static str {
        "quad_maximum"
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MaxPool"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        offers(self.name(), Maxima::compared(q), Some(Vec::new()))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        Some(Cost::new(Maxima::compared(q)? / 4))
    }

    fn write(&self, piece: &Piece<'_>, offer: &Offer) -> Result<Fragment, Refused> {
        let node = piece.graph.node(piece.node);
        let x = node.operand(0).ok_or_else(|| Refused::new(piece, "has no operand"))?;
        let mut made = Made::op("", "MaxPool", piece.opset, [Operand::Outer(x)])
            .in_layouts(offer.layouts.ins.clone(), offer.layouts.outs.clone());
        // One number for each axis, or one for each of its ends.
        for (name, slots) in [("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 0)] {
            if let Some(list) = node.ints(name) {
                let ends = list.chunks(2).flat_map(|end| [end, &[slots]].concat()).collect();
                made = made.with(name, Attr::Ints(ends));
            }
        }
        let mut fragment = Fragment::new(piece, self.name());
        fragment.become_op(made);
        Ok(fragment)
    }
}
