//! Images scaled by whole factors: op Upsample of the domain.

use crate::ort_cpu::costs::{ResizeShape, Scaling};
use crate::ort_cpu::machine::{Machine, image, op};
use crate::ort_cpu::runs::{Runs, slots_of};
use relayout_ir::attr::Attr;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node, ValueId};
use relayout_ir::op::text_or_default;
use relayout_ir::storage::ImageAxes;
use relayout_target_api::{Become, Candidates, Cost, NodeQuery, Offer, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_resize";

/// Blocked images scaled by whole factors.
pub(super) struct Resizes(pub(super) Arc<Machine>);

impl TargetForm for Resizes {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Resize", "Upsample"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.resize_kernel(q, None).into_iter().collect()
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        let first = |axes| axes == ImageAxes::ORIGINS[0];
        self.0.among_runs(q, candidates, |axes, map| self.0.resize_kernel(q, Some(map)).filter(|_| first(axes)))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_resize(q)
    }
}

/// A Resize or Upsample that the kernel can do.
struct Scaled {
    mode: Scaling,
    /// Of linear interpolation.
    coordinates: &'static str,
    factors: [u64; 2],
    shape: ResizeShape,
}

impl Scaled {
    fn recognize(query: &NodeQuery<'_>) -> Option<Scaled> {
        let node = query.graph.node(query.node);
        let y = node.result(0)?;
        let ([n, c, h, w], [_, _, oh, ow]) = (image(query, node.operand(0)?)?, image(query, y)?);
        let factors = factors(query, node, y)?;
        // Until opset 10 there was one way to do it.
        let modern = node.onnx() == Some("Resize") && node.opset >= 11;
        let coordinates = text_or_default(node, "coordinate_transformation_mode").unwrap_or_default();
        let coordinates = if modern { coordinates } else { "asymmetric" };
        let rounding = text_or_default(node, "nearest_mode").unwrap_or_default();
        let rounding = if modern { rounding } else { "floor" };
        let plain =
            !node.flag("antialias") && node.str("keep_aspect_ratio_policy").is_none_or(|policy| policy == "stretch");
        let (mode, coordinates) = match (text_or_default(node, "mode")?, coordinates, rounding) {
            // Between pixel centres no place is a tie at whole factors, so rounding is what taking the floor is.
            ("nearest", "asymmetric", "floor")
            | ("nearest", "half_pixel" | "pytorch_half_pixel", "round_prefer_floor" | "round_prefer_ceil") => {
                (Scaling::Nearest, "asymmetric")
            }
            ("linear", "asymmetric", _) => (Scaling::Linear, "asymmetric"),
            ("linear", "half_pixel", _) => (Scaling::Linear, "half_pixel"),
            ("linear", "align_corners", _) => (Scaling::Linear, "align_corners"),
            _ => return None,
        };
        plain.then_some(Scaled { mode, coordinates, factors, shape: ResizeShape { n, c, from: [h, w], to: [oh, ow] } })
    }
}

/// Whole factors of rows and columns, if all else keeps its extent.
fn factors(query: &NodeQuery<'_>, node: &Node, y: ValueId) -> Option<[u64; 2]> {
    let given = match node.attrs.get("scales") {
        Some(Attr::Floats(scales)) => Some(scales.clone()),
        _ => [2, 1].into_iter().filter_map(|slot| node.operand(slot)).find_map(|v| floats(query.graph, v)),
    };
    if let Some(scales) = given.filter(|s| !s.is_empty()) {
        let [1.0, 1.0, h, w] = scales[..] else { return None };
        let whole = |s: f32| (s >= 1.0 && s.fract() == 0.0 && s < 1024.0).then_some(s as u64);
        return Some([whole(h)?, whole(w)?]);
    }
    // By sizes: the factors are what the extents say.
    let of = |v: ValueId| query.graph.value(v).ty.const_shape().and_then(|s| <[i64; 4]>::try_from(s).ok());
    let ([n, c, h, w], [on, oc, oh, ow]) = (of(node.operand(0)?)?, of(y)?);
    let whole = |from: i64, to: i64| (from > 0 && to % from == 0).then(|| (to / from) as u64);
    (node.opset >= 11 && node.operand(3).is_some() && (n, c) == (on, oc)).then_some(())?;
    Some([whole(h, oh)?, whole(w, ow)?])
}

/// A short constant of floats.
fn floats(graph: &Graph, v: ValueId) -> Option<Vec<f32>> {
    Some(graph.constant(v)?.to_floats(8)?.into_iter().map(|x| x as f32).collect())
}

impl Machine {
    pub(super) fn plain_resize(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let scaled = Scaled::recognize(query)?;
        Some(Cost::new(self.costs.resize_ns(scaled.mode, &scaled.shape, false)))
    }

    /// The kernel of such an op of an image that has the pad slots of its channels there.
    pub(super) fn resize_kernel(&self, query: &NodeQuery<'_>, runs: Runs<'_>) -> Option<Offer> {
        let scaled = Scaled::recognize(query)?;
        let shape = ResizeShape { c: slots_of(scaled.shape.c, runs), ..scaled.shape };
        let blocked = self.blocked_runs(ImageAxes::ORIGINS[0], runs)?;
        let blocked = || vec![Some(blocked.clone())];
        let [h, w] = scaled.factors.map(|f| f as i64);
        let text = |s: &'static str| Attr::String(s.into());
        let mut set = vec![("scales".to_owned(), Attr::Ints(vec![1, 1, h, w]))];
        set.push(("mode".to_owned(), text(if scaled.mode == Scaling::Nearest { "nearest" } else { "linear" })));
        if scaled.mode == Scaling::Linear {
            set.push(("coordinate_transformation_mode".to_owned(), text(scaled.coordinates)));
        }
        let own = ["antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside"];
        let own = own.into_iter().chain(["extrapolation_value", "keep_aspect_ratio_policy", "nearest_mode"]);
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins: blocked(), outs: blocked() },
            cost: Cost::new(self.costs.resize_ns(scaled.mode, &shape, true)),
            becomes: Some(Become {
                op: op("Upsample"),
                opset: 1,
                operands: Some(vec![0]),
                set,
                remove: own.map(str::to_owned).collect(),
            }),
            adds_zeros: false,
        })
    }
}
