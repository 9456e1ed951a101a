//! Transposed convolutions of images, as a blocked convolution of stride 1 and a Transpose of whole blocks.
//!
//! The result of one of stride `s` is `s` times as high and as wide. Its pixel `s q + r` adds up the pixels `q + d` of the operand, each
//! times tap `r + p - s d`, where `p` is the padding before and there is such a tap. So pixels of one phase `r` are a convolution
//! of the operand, and all phases together are one with `s s M` filters over the window of all their `d`, with zeros where a phase
//! has no tap. Its channels become pixels as those of `DepthToSpace` do, in whole blocks.
//!
//! ```text
//! kernel s           no padding                        windows of 1 pixel, no zeros
//! kernel 3, stride 2 padding 1, one more at the end    windows of 2 x 2, 9 of 16 taps
//! kernel 4, stride 2 padding 1                         windows of 3 x 3, 16 of 36 taps
//! ```

use super::depth::{Deep, Unfolded};
use crate::ort_cpu::Block;
use crate::ort_cpu::costs::{ConvKernel, ConvShape, Spread};
use crate::ort_cpu::machine::{Machine, image};
use crate::ort_cpu::nodes::constant_behind_moves;
use crate::shared::forms::product::BROADCASTS_SINCE;
use relayout_eval::{Phased, floats};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::NCHWC;
use relayout_ir::op::read::{AutoPad, Window, group, windows};
use relayout_ir::types::Type;
use relayout_target_api::{Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The form's name.
const FORM: &str = "transposed_conv";

/// What ONNX Runtime's op takes beside its matrix product, in eighths of what its Add takes for as many elements as the product has: it
/// adds these up to pixels. Measured with ONNX Runtime 1.31.1, one thread, on images of 8 to 96 pixels a side with 32 to 512
/// channels. Most cases lie in 5 to 8 for kernel 2 and stride 2, 7 to 10 for kernel 3 and stride 2, 5 to 10 for kernel 4 and stride 2,
/// and 11 to 18 for kernel 4 and stride 4. A low number leaves more ops as they are.
const EIGHTHS: u64 = 6;

/// Transposed convolutions in blocks.
pub(super) struct TransposedConv(pub(super) Arc<Machine>);

impl TargetForm for TransposedConv {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["ConvTranspose"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.offer(q).into_iter().collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let phases = Phases::recognize(q.graph, q.node, self.0.block)?;
        let product = ConvShape { m: phases.filters.saturating_mul(phases.own_taps()), ..phases.conv(q, [1, 1])? };
        let elements = [product.n, product.m, product.h, product.w].into_iter().fold(1, u64::saturating_mul);
        let sums = self.0.costs.elementwise_ns("Add", elements, Spread::Same).saturating_mul(EIGHTHS) / 8;
        Some(Cost::new(self.0.costs.conv_ns(&product, ConvKernel::Plain)?) + Cost::new(sums))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let phases = Phases::recognize(piece.graph, piece.node, self.0.block);
        let phases = phases.ok_or_else(|| Refused::new(piece, "can't be written as a convolution"))?;
        phases.write(piece, &self.0).ok_or_else(|| Refused::new(piece, "has no layout of its result"))
    }
}

impl TransposedConv {
    fn offer(&self, q: &NodeQuery<'_>) -> Option<Offer> {
        let phases = Phases::recognize(q.graph, q.node, self.0.block)?;
        let conv = phases.conv(q, phases.extents())?;
        let moved = phases.unfolded(phases.x.into())?;
        let moved = moved.cost(&self.0, [conv.n, phases.filters, conv.h, conv.w])?;
        let kernel = if phases.is_thin(self.0.block) { ConvKernel::BlockedFromNchw } else { ConvKernel::Blocked };
        let mut ins = vec![None; q.graph.node(q.node).inputs.len()];
        *ins.first_mut()? = (kernel == ConvKernel::Blocked).then(|| self.0.blocked());
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins, outs: vec![Some(self.0.blocked())] },
            cost: Cost::new(self.0.costs.conv_ns(&conv, kernel)?) + moved,
            becomes: None,
            // Sums are formed otherwise than by the runtime, which has no such kernel to take on load.
            adds_zeros: true,
        })
    }
}

/// What the phases of a transposed convolution read along an axis.
struct Axis {
    /// Pixels of the operand, counted from that of the same number as the phases' own.
    read: RangeInclusive<i64>,
    /// For each phase and each of these: the tap.
    taps: Vec<Vec<Option<usize>>>,
}

impl Axis {
    /// The phases of an axis with a kernel, a stride and a padding before.
    fn new(kernel: i64, stride: i64, before: i64) -> Option<Axis> {
        // Of phase r those that lie from (r + before - kernel + 1) / stride, rounded up, to (r + before) / stride, rounded down.
        let first = before.checked_sub(kernel)?.checked_add(stride)?.div_euclid(stride).min(0);
        let last = before.checked_add(stride - 1)?.div_euclid(stride).max(0);
        let tap = |phase: i64, d: i64| {
            let tap = phase.checked_add(before)?.checked_sub(stride.checked_mul(d)?)?;
            usize::try_from(tap).ok().filter(|_| tap < kernel)
        };
        let taps = (0..stride).map(|phase| (first..=last).map(|d| tap(phase, d)).collect()).collect();
        Some(Axis { read: first..=last, taps })
    }

    /// How many pixels are read.
    fn extent(&self) -> u64 {
        self.read.end().abs_diff(*self.read.start()) + 1
    }
}

/// The longest kernel and stride that are written.
const MOST: i64 = 64;

/// A transposed convolution whose result is the stride times as high and as wide as its operand.
struct Phases {
    x: ValueId,
    weights: Constant,
    bias: Option<Vec<f64>>,
    /// Channels that are read, and filters of a phase.
    channels: u64,
    filters: u64,
    block: u64,
    stride: i64,
    axes: [Axis; 2],
    /// Extents of the operand and of the result.
    from: [Dim; 4],
    to: [Dim; 4],
    opset: i64,
}

impl Phases {
    /// `None` where operands are not known, filters fill no blocks, or the result has other extents.
    fn recognize(graph: &Graph, n: NodeId, block: Block) -> Option<Phases> {
        let node = graph.node(n);
        let shape = |v: ValueId| <[Dim; 4]>::try_from(graph.value(v).ty.shape()?.to_vec()).ok();
        let x = node.operand(0)?;
        let (from, to) = (shape(x)?, shape(node.result(0)?)?);
        let one_of_all = group(node) == Ok(1) && node.ints("output_shape").is_none() && node.opset >= BROADCASTS_SINCE;
        let weights = constant_behind_moves(graph, node.operand(1)?).filter(|_| one_of_all)?;
        let [c, m, kh, kw] = <[i64; 4]>::try_from(weights.dims.clone()).ok()?;
        let known = weights.dtype == DType::F32 && weights.source.is_available();
        let unsigned = |n: i64| u64::try_from(n).ok().filter(|n| known && *n > 0);
        let (channels, filters) = (unsigned(c)?, unsigned(m).filter(|m| m.is_multiple_of(block.channels()))?);
        (from[1].as_const() == Some(c) && to[1].as_const() == Some(m)).then_some(())?;
        let bias = match node.operand(2) {
            Some(b) => {
                let constant = graph.constant(b).filter(|b| b.pending.is_none() && b.source.is_available())?;
                Some(floats(constant).filter(|numbers| numbers.len() as u64 == filters)?)
            }
            None => None,
        };
        let windows = windows(graph, node).ok()?;
        let [rows, columns] = windows.as_slice() else { return None };
        let extra = node.ints("output_padding").map_or(Some([0, 0]), |extra| <[i64; 2]>::try_from(extra).ok())?;
        let stride = rows.stride;
        (stride > 1 && stride == columns.stride && [rows.kernel, columns.kernel] == [Some(kh), Some(kw)])
            .then_some(())?;
        let axes = [axis(rows, extra[0])?, axis(columns, extra[1])?];
        let block = block.channels();
        Some(Phases { x, weights, bias, channels, filters, block, stride, axes, from, to, opset: node.opset })
    }

    /// Taps of the kernel.
    fn own_taps(&self) -> u64 {
        self.weights.dims.iter().skip(2).fold(1, |taps, n| taps.saturating_mul(n.unsigned_abs()))
    }

    /// Rows and columns of the windows.
    fn extents(&self) -> [u64; 2] {
        self.axes.each_ref().map(Axis::extent)
    }

    /// Whether what is read fills no block: it is an ordinary image.
    fn is_thin(&self, block: Block) -> bool {
        self.channels < block.channels()
    }

    /// How many phases there are.
    fn count(&self) -> u64 {
        self.stride.unsigned_abs().pow(2)
    }

    /// The convolution of all phases with windows of these extents.
    fn conv(&self, query: &NodeQuery<'_>, [kh, kw]: [u64; 2]) -> Option<ConvShape> {
        let [n, c, h, w] = image(query, self.x)?;
        let m = self.filters.checked_mul(self.count())?;
        let (oh, ow) = (h, w);
        Some(ConvShape { n, c, h, w, m, oh, ow, kh, kw, stride: [1; 2], dilation: [1; 2], group: 1, activation: None })
    }

    /// The move of the channels of phases to pixels.
    fn unfolded(&self, x: Operand) -> Option<Unfolded> {
        let [batch, _, h, w] = &self.from;
        let (factor, block) = (self.stride.unsigned_abs(), self.block);
        let deep = Deep { sizes: [batch, h, w], factor, blocks: self.filters / block, block };
        Unfolded::new(x, true, &deep, self.to.to_vec(), self.opset)
    }

    /// For each phase and each place of the window the tap, row by row.
    fn taps(&self) -> Vec<Vec<Option<usize>>> {
        let [rows, columns] = &self.axes;
        let wide = self.weights.dims.get(3).map_or(0, |n| n.unsigned_abs() as usize);
        let of = |rows: &Vec<Option<usize>>, columns: &Vec<Option<usize>>| -> Vec<Option<usize>> {
            let place = |row: &Option<usize>, column: &Option<usize>| Some((*row)? * wide + (*column)?);
            rows.iter().flat_map(|row| columns.iter().map(move |column| place(row, column))).collect()
        };
        rows.taps.iter().flat_map(|rows| columns.taps.iter().map(move |columns| of(rows, columns))).collect()
    }

    /// The convolution, and the move of its channels to pixels.
    fn write(self, piece: &Piece<'_>, machine: &Machine) -> Option<Fragment> {
        let mut made = Fragment::new(piece, FORM);
        let signed = |n: u64| i64::try_from(n).ok();
        let (rows, columns) = (&self.axes[0], &self.axes[1]);
        let [kh, kw] = self.extents();
        let kernel = [signed(kh)?, signed(kw)?];
        let depth = signed(self.filters.checked_mul(self.count())?)?;
        let source = Phased { weights: self.weights.clone(), taps: self.taps() };
        let dims = vec![depth, signed(self.channels)?, kernel[0], kernel[1]];
        let weights = Constant { dtype: DType::F32, dims, source: Arc::new(source), pending: None };
        let thin = self.is_thin(machine.block);
        let layout = if thin { machine.block.filter_weights() } else { machine.block.dense_weights() };
        let names = [made.named("weights"), made.named("packed")];
        let mut operands = vec![Operand::from(self.x), made.packed(names, weights, layout.clone())];
        if let Some(bias) = &self.bias {
            let numbers = (0..self.count()).flat_map(|_| bias.iter().copied());
            operands.push(made.constant(made.named("bias"), Constant::floats(numbers, &[depth])));
        }
        let blocked = machine.blocked();
        let ins = vec![(!thin).then(|| blocked.clone()), Some(layout)];
        let pads = [-rows.read.start(), -columns.read.start(), *rows.read.end(), *columns.read.end()];
        let conv = Made::op(NCHWC, "Conv", 1, operands).in_layouts(ins, vec![Some(blocked.clone())]);
        let conv = conv.with("kernel_shape", Attr::Ints(kernel.to_vec())).with("pads", Attr::Ints(pads.to_vec()));
        let [batch, _, h, w] = self.from.clone();
        let ty = Type::tensor(DType::F32, vec![batch, Dim::from(depth), h, w]);
        let phases = made.add(conv, Left::row_major(made.named("phases"), ty).stored(blocked));
        self.unfolded(phases)?.write(piece, &mut made)?;
        Some(made)
    }
}

/// What the phases read along the axis of a window whose result is `extra` longer at its end; `None` where it is not the stride
/// times as long as the operand.
fn axis(window: &Window, extra: i64) -> Option<Axis> {
    let (kernel, stride) = (window.kernel.filter(|&kernel| kernel <= MOST && window.dilation == 1)?, window.stride);
    let all = kernel.checked_add(extra)?.checked_sub(stride)?;
    let (before, behind) = match window.auto {
        // Odd ones are longer at an end that operator sets do not agree on.
        AutoPad::Same => Some((all / 2, all / 2)).filter(|_| all >= 0)?,
        _ => window.padding()?,
    };
    let fits = stride <= MOST && extra >= 0 && before >= 0 && behind >= 0 && before.checked_add(behind) == Some(all);
    Axis::new(kernel, stride, before).filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each pixel of the result adds up along an axis, as ONNX says it: each pixel of the operand goes to `stride x + tap - before`.
    #[test]
    fn phases_read_what_a_transposed_convolution_adds_up() {
        let mut seen = 0;
        for (kernel, stride) in (1..=9).flat_map(|k| (2..=5).map(move |s| (k, s))) {
            for (before, extra) in (0..=6).flat_map(|b| (0..5).map(move |e| (b, e))) {
                let behind = kernel + extra - stride - before;
                if behind < 0 {
                    continue;
                }
                let axis = Axis::new(kernel, stride, before).expect("small numbers");
                seen += 1;
                for size in 1..=5 {
                    let mut expected = vec![Vec::new(); (stride * size) as usize];
                    for (x, tap) in (0..size).flat_map(|x| (0..kernel).map(move |tap| (x, tap))) {
                        let y = usize::try_from(stride * x + tap - before).ok();
                        if let Some(sums) = y.and_then(|y| expected.get_mut(y)) {
                            sums.push((x, tap as usize));
                        }
                    }
                    let of = |y: i64| {
                        let taps = axis.read.clone().zip(&axis.taps[(y % stride) as usize]);
                        let read = taps.filter_map(|(d, tap)| Some((y / stride + d, (*tap)?)));
                        read.filter(|(x, _)| (0..size).contains(x)).collect::<Vec<_>>()
                    };
                    let found: Vec<_> = (0..stride * size).map(of).collect();
                    assert_eq!(
                        found, expected,
                        "kernel {kernel}, stride {stride}, padding {before}, {extra} more, {size}"
                    );
                }
            }
        }
        assert!(seen > 200, "{seen}");
    }

    #[test]
    fn windows_are_as_small_as_they_can_be() {
        let extents = |kernel, stride, before| Axis::new(kernel, stride, before).expect("small numbers").extent();
        assert_eq!(
            [(2, 2, 0), (3, 2, 1), (4, 2, 1), (4, 4, 0), (8, 4, 2)].map(|(k, s, p)| extents(k, s, p)),
            [1, 2, 3, 1, 3]
        );
    }
}
