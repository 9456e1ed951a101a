//! 8-bit images with their channels last: convolutions and pools of domain `com.microsoft`.
//!
//! ONNX Runtime's `QLinearConv` computes channels-last whatever it is given, so ONNX's order costs it a Transpose on either side;
//! its weights stay as they are. `NhwcMaxPool`, and the average pools with `channels_last`, read whole pixels at once.

use crate::ort_cpu::machine::Machine;
use crate::shared::pools::Orders;
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Node, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::windows;
use relayout_target_api::{Become, Cost, NodeQuery, Offer, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "channels_last_bytes";

/// 8-bit convolutions and pools with their channels last.
pub(super) struct QuantizedImages(pub(super) Arc<Machine>);

impl TargetForm for QuantizedImages {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["QLinearConv", "MaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.quantized_kernel(q).into_iter().collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_quantized(q)
    }
}

const MICROSOFT: &str = "com.microsoft";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantized {
    Conv,
    MaxPool,
    AveragePool,
    GlobalAveragePool,
}

/// An 8-bit op on images and the extents `[n, c, h, w]` of what it reads and makes.
struct Image {
    op: Quantized,
    read: [u64; 4],
    made: [u64; 4],
    /// Places under the kernel.
    taps: u64,
}

impl Quantized {
    fn of(node: &Node) -> Option<Quantized> {
        let Op::Onnx(op) = &node.op else { return None };
        match (op.domain.as_str(), op.name.as_str()) {
            ("" | MICROSOFT, "QLinearConv") => Some(Quantized::Conv),
            ("", "MaxPool") => Some(Quantized::MaxPool),
            (MICROSOFT, "QLinearAveragePool") => Some(Quantized::AveragePool),
            (MICROSOFT, "QLinearGlobalAveragePool") => Some(Quantized::GlobalAveragePool),
            _ => None,
        }
    }

    /// The op with its channels last.
    fn channels_last(self) -> Become {
        let name = match self {
            Quantized::Conv => "QLinearConv",
            Quantized::MaxPool => "NhwcMaxPool",
            Quantized::AveragePool => "QLinearAveragePool",
            Quantized::GlobalAveragePool => "QLinearGlobalAveragePool",
        };
        let op = OpName { domain: MICROSOFT.to_owned(), name: name.to_owned(), overload: String::new() };
        let (set, remove) = match self {
            Quantized::MaxPool => (vec![], vec!["storage_order".to_owned()]),
            _ => (vec![("channels_last".to_owned(), Attr::Int(1))], vec![]),
        };
        Become { op, opset: 1, operands: None, set, remove }
    }
}

impl Image {
    fn of(query: &NodeQuery<'_>) -> Option<Image> {
        let node = query.graph.node(query.node);
        let op = Quantized::of(node)?;
        let y = node.result(0)?;
        // The kernels leave no indices, and a file may have said already where the channels are.
        if node.outputs.iter().skip(1).any(Option::is_some) || node.flag("channels_last") {
            return None;
        }
        let (read, made) = (bytes_of(query, node.operand(0)?)?, bytes_of(query, y)?);
        let weights = node.operand(3).filter(|_| op == Quantized::Conv);
        if weights.is_some_and(|w| query.graph.value(w).ty.rank() != Some(4)) {
            return None;
        }
        let windows = windows(query.graph, node).unwrap_or_default();
        let taps = windows.iter().filter_map(|w| w.kernel).fold(1, |n, k| k.unsigned_abs().saturating_mul(n));
        Some(Image { op, read, made, taps })
    }
}

/// Extents of an 8-bit image.
fn bytes_of(query: &NodeQuery<'_>, v: ValueId) -> Option<[u64; 4]> {
    let typed = matches!(query.graph.value(v).ty.dtype(), Some(DType::U8 | DType::I8));
    query.sizes.shape(query.graph, v).filter(|_| typed)?.try_into().ok()
}

fn elements(image: [u64; 4]) -> u64 {
    image.iter().fold(1, |n, &d| n.saturating_mul(d))
}

/// Picoseconds per piece, as nanoseconds in all.
fn pieces(count: u64, picoseconds: u64) -> Cost {
    Cost::new((u128::from(count) * u128::from(picoseconds) / 1000).try_into().unwrap_or(u64::MAX - 1))
}

impl Machine {
    /// Cost of an 8-bit op in ONNX's order, beside what it costs in either.
    pub(super) fn plain_quantized(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let image = Image::of(query)?;
        if image.op != Quantized::Conv {
            return self.quantized_pool(&image, |o| o.channels_first);
        }
        // The kernel turns what it reads and what it makes.
        let [n, c, h, w] = image.read;
        let read = self.costs.transpose_alone(&[n, c, h, w], &[0, 2, 3, 1], 1);
        let [n, c, h, w] = image.made;
        let made = self.costs.transpose_alone(&[n, h, w, c], &[0, 3, 1, 2], 1);
        Some(Cost::new(read) + Cost::new(made))
    }

    /// The same op with channels last.
    pub(super) fn quantized_kernel(&self, query: &NodeQuery<'_>) -> Option<Offer> {
        let image = Image::of(query)?;
        let cost = match image.op {
            Quantized::Conv => Cost::ZERO,
            _ => self.quantized_pool(&image, |o| o.channels_last)?,
        };
        let last = || vec![Layout::permutation(&[0, 2, 3, 1]).ok()];
        let layouts = KernelLayouts { ins: last(), outs: last() };
        Some(Offer { form: FORM, layouts, cost, becomes: Some(image.op.channels_last()), adds_zeros: false })
    }

    fn quantized_pool(&self, image: &Image, order: fn(&Orders) -> u64) -> Option<Cost> {
        let pools = self.base.quantized_pools()?;
        let taps = elements(image.made).saturating_mul(image.taps);
        Some(match image.op {
            Quantized::Conv => return None,
            Quantized::MaxPool => pieces(taps, order(&pools.max_per_tap)),
            Quantized::AveragePool => pieces(taps, order(&pools.average_per_tap)),
            Quantized::GlobalAveragePool => pieces(elements(image.read), order(&pools.global_average_per_element)),
        })
    }
}
