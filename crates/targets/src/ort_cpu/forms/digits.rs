//! Standard ops that run on a blocked image declared with all its digits, `[N, C/B, H, W, B]`: Pad and Slice of anything but its
//! channels. Two Reshapes say so, and move nothing.

use crate::ort_cpu::costs::Copy;
use crate::ort_cpu::machine::{Machine, image_of};
use crate::ort_cpu::runs::{Runs, slots_of};
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node};
use relayout_ir::op::{Padding, cuts, paddings, zero_padding};
use relayout_ir::storage::ImageAxes;
use relayout_target::{Candidates, Cost, Form, NodeQuery, Offer};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_digits";

/// Pad and Slice of blocked images.
pub(super) struct Digits(pub(super) Arc<Machine>);

impl Form for Digits {
    fn name(&self) -> &'static str {
        FORM
    }

    fn of(&self) -> &'static [&'static str] {
        &["Pad", "Slice"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.digit_kernels(q)
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        self.0.among_runs(q, candidates, |axes, map| self.0.digit_kernel(q, axes, Some(map)))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_digits(q)
    }
}

/// Bytes of an element.
const WIDTH: u64 = 4;

/// The copy that such an op of an image is.
struct Copied {
    /// Where the image's axes stand.
    axes: ImageAxes,
    /// Extents of the result.
    image: [u64; 4],
    kind: Copy,
    /// Rows are copied element by element, or pixel by pixel.
    scattered: bool,
}

impl Copied {
    /// `padded`: channels have pad slots between their runs.
    fn of(query: &NodeQuery<'_>, axes: ImageAxes, block: u64, padded: bool) -> Option<Copied> {
        let node = query.graph.node(query.node);
        let y = node.outputs.first().copied().flatten()?;
        let image = image_of(query, y, axes)?;
        let [_, c, ..] = image_of(query, node.operand(0)?, axes)?;
        if image.contains(&0) {
            return None;
        }
        let whole = c == image[1] && c.is_multiple_of(block) && !padded;
        match node.onnx()? {
            "Pad" if node.opset > 1 => {
                let pads = paddings(query.graph, node)?;
                let none = (Padding::Known(0), Padding::Known(0));
                let listed = |p: &Padding| matches!(p, Padding::Listed(_));
                let computed = pads.iter().any(|(before, after)| listed(before) || listed(after));
                // What is computed is picked from the list, the zeros of the digits as well.
                (!computed || zero_padding(query.graph, node).is_some()).then_some(())?;
                let kept = pads.get(axes.c) == Some(&none);
                // Pad slots are filled as well.
                let harmless = whole || fills_with_finite(query.graph, node);
                (kept && harmless && pads.iter().any(|p| *p != none)).then_some(())?;
                Some(Copied { axes, image, kind: Copy::Pad, scattered: false })
            }
            "Slice" => {
                let cuts = cuts(query.graph, node)?;
                let scattered = cuts.iter().any(|cut| cut.axis == axes.w && cut.step != 1);
                let kept = cuts.iter().all(|cut| cut.axis != axes.c);
                kept.then_some(Copied { axes, image, kind: Copy::Slice, scattered })
            }
            _ => None,
        }
    }
}

/// Whether the number that a Pad puts around an image is known and finite, in a mode that has one.
fn fills_with_finite(graph: &Graph, node: &Node) -> bool {
    let by_attribute = || match node.attrs.get("value") {
        Some(relayout_ir::attr::Attr::Float(x)) => x.is_finite(),
        _ => true,
    };
    let known = |c: &relayout_ir::constant::Constant| -> Option<f32> {
        let plain = c.dtype == DType::F32 && c.pending.is_none() && c.elems() == Some(1);
        let bytes = plain.then(|| c.source.bytes().ok())??;
        Some(f32::from_le_bytes(bytes.get(..4)?.try_into().ok()?))
    };
    match node.operand(2) {
        _ if node.str("mode").is_some_and(|mode| mode != "constant") => true,
        Some(v) => graph.constant(v).and_then(known).is_some_and(f32::is_finite),
        None => by_attribute(),
    }
}

impl Machine {
    /// The kernels of a Pad or a Slice.
    pub(super) fn digit_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        ImageAxes::ORIGINS.into_iter().filter_map(|axes| self.digit_kernel(query, axes, None)).collect()
    }

    /// The kernel of such an op of an image whose axes stand there, and the pad slots of its channels.
    pub(super) fn digit_kernel(&self, query: &NodeQuery<'_>, axes: ImageAxes, runs: Runs<'_>) -> Option<Offer> {
        let copied = Copied::of(query, axes, self.block.channels(), runs.is_some())?;
        let [n, c, h, w] = copied.image;
        let block = self.block.channels();
        let pixel = block.saturating_mul(WIDTH);
        let run = if copied.scattered { pixel } else { pixel.saturating_mul(w) };
        let bytes = [n, self.round(slots_of(c, runs)), h, w].into_iter().fold(WIDTH, u64::saturating_mul);
        let blocked = Some(self.blocked_runs(axes, runs)?);
        let mut ins = vec![None; query.graph.node(query.node).inputs.len()];
        if let Some(x) = ins.first_mut() {
            x.clone_from(&blocked);
        }
        let cost = Cost::new(self.costs.copy_ns(copied.kind, bytes, run)) + self.small_node().times(2);
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins, outs: vec![blocked] },
            cost,
            becomes: None,
            adds_zeros: false,
        })
    }

    /// What such an op costs as ONNX has it.
    pub(super) fn plain_digits(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let of = |axes| Copied::of(query, axes, self.block.channels(), false);
        let copied = ImageAxes::ORIGINS.into_iter().find_map(of)?;
        let [n, c, h, w] = copied.image;
        let bytes = [n, c, h, w].into_iter().fold(WIDTH, u64::saturating_mul);
        let (kind, run) = match (copied.axes.c == 1, copied.scattered) {
            (true, true) => (Copy::StridedSlice, w),
            (true, false) => (copied.kind, w),
            (false, true) => (copied.kind, c),
            (false, false) => (copied.kind, w.saturating_mul(c)),
        };
        Some(Cost::new(self.costs.copy_ns(kind, bytes, run.saturating_mul(WIDTH))))
    }
}
