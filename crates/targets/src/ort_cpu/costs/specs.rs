//! What a table has to hold: the grids, their axes, the points that a calibration measures, and the op at each of them.

use super::case::{
    Activation, AxisShape, Case, ConvKernel, ConvShape, Copy, Pool, PoolShape, Reorder, ResizeShape, Scaling, Side,
    Spread, VolumeShape,
};
use super::products::{Attention, AttentionShape, GemmShape, Projection, ProjectionShape};
use crate::shared::spans::REPEATING;

/// The op at a point, for a block size.
type Make = Box<dyn Fn(&[u64], u64) -> Case>;

/// A grid of a table.
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Names of its axes and the points that a calibration measures.
    pub axes: Vec<(&'static str, Vec<u64>)>,
    /// The op at a point, for a block size.
    make: Make,
}

impl Spec {
    fn new(
        name: impl Into<String>,
        axes: &[(&'static str, &[u64])],
        make: impl Fn(&[u64], u64) -> Case + 'static,
    ) -> Spec {
        let axes = axes.iter().map(|(name, points)| (*name, points.to_vec())).collect();
        Spec { name: name.into(), axes, make: Box::new(make) }
    }

    /// The op at a point of the grid, one coordinate per axis, on a machine with this block size.
    #[must_use]
    pub fn case(&self, point: &[u64], block: u64) -> Case {
        (self.make)(point, block)
    }
}

/// Coordinate `i` of a point.
fn p(point: &[u64], i: usize) -> u64 {
    point.get(i).copied().unwrap_or(1)
}

/// Images wider than this are measured at so many rows: rows are alike.
const ROWS: u64 = 28;

/// Sizes of an image of `w` columns.
fn image(w: u64) -> [u64; 2] {
    [w.min(ROWS), w]
}

/// Element-wise ops with a cost of their own, and the domain they are in.
pub const ELEMENTWISE: &[(&str, &str)] = &[
    ("Abs", ""),
    ("Add", ""),
    ("Ceil", ""),
    ("Clip", ""),
    ("Div", ""),
    ("Elu", ""),
    ("Erf", ""),
    ("Exp", ""),
    ("Floor", ""),
    ("Gelu", "com.microsoft"),
    ("HardSigmoid", ""),
    ("HardSwish", ""),
    ("LeakyRelu", ""),
    ("Log", ""),
    ("Max", ""),
    ("Min", ""),
    ("Mul", ""),
    ("Neg", ""),
    ("PRelu", ""),
    ("Pow", ""),
    ("QuickGelu", "com.microsoft"),
    ("Reciprocal", ""),
    ("Relu", ""),
    ("Selu", ""),
    ("Sigmoid", ""),
    ("Softplus", ""),
    ("Softsign", ""),
    ("Sqrt", ""),
    ("Sub", ""),
    ("Tanh", ""),
    ("ThresholdedRelu", ""),
];

/// Whether an element-wise op takes two operands.
#[must_use]
pub fn is_binary(op: &str) -> bool {
    REPEATING.contains(&op)
}

/// Every grid of a table, in the order in which tables are written.
#[must_use]
pub fn specs() -> Vec<Spec> {
    let mut all = blocked_convs();
    all.extend(plain_convs());
    all.extend(volumes());
    all.extend(moves());
    all.extend(elementwise());
    all.extend(pools());
    all.extend(others());
    all.extend(attentions());
    all.extend(projections());
    all
}

const WIDTHS: &[u64] = &[7, 14, 28, 56, 112];

/// Rows and columns of filters that read ordinary images.
const FILTERS: (&str, &[u64]) = ("k", &[1, 3, 7]);
const STRIDES: (&str, &[u64]) = ("stride", &[1, 2]);
/// Kernels that read many channels are long in one direction at most, such as those of spectrograms.
const ROWS_OF_KERNELS: &[u64] = &[1, 3, 5, 7, 11];
const COLUMNS_OF_KERNELS: &[u64] = &[1, 3, 5, 7, 11, 31];

fn blocked_convs() -> Vec<Spec> {
    let conv = |c: u64, m: u64, size: [u64; 2], k: u64, stride: u64| ConvShape::same(c, m, size, k, stride);
    let blocked = |shape: ConvShape| Case::Conv(shape, ConvKernel::Blocked);
    // Kernels take four blocks of output channels at a time: one to four say what any number takes.
    let (inputs, outputs) = (("in_blocks", &[1, 2, 4, 8, 16, 32][..]), ("out_blocks", &[1, 2, 3, 4][..]));
    vec![
        Spec::new("conv-blocked-pointwise", &[inputs, outputs, ("w", WIDTHS)], move |at, b| {
            blocked(conv(p(at, 0) * b, p(at, 1) * b, [p(at, 2); 2], 1, 1))
        }),
        Spec::new(
            "conv-blocked-pointwise-strided",
            &[("in_blocks", &[1, 4, 16]), ("out_blocks", &[1, 4]), ("w", &[7, 14, 28, 56])],
            move |at, b| blocked(conv(p(at, 0) * b, p(at, 1) * b, [p(at, 2); 2], 1, 2)),
        ),
        Spec::new("conv-blocked-regular", &[("in_blocks", &[1, 2, 8, 32]), outputs, ("w", WIDTHS)], move |at, b| {
            blocked(conv(p(at, 0) * b, p(at, 1) * b, image(p(at, 2)), 3, 1))
        }),
        Spec::new(
            "conv-blocked-kernel",
            &[("kh", ROWS_OF_KERNELS), ("kw", COLUMNS_OF_KERNELS), ("w", &[7, 14, 28])],
            move |at, b| {
                let shape = conv(4 * b, 4 * b, [p(at, 2); 2], 1, 1);
                blocked(ConvShape { kh: p(at, 0), kw: p(at, 1), ..shape })
            },
        ),
        Spec::new(
            "conv-blocked-strided",
            &[("in_blocks", &[1, 4]), ("k", &[3, 5, 7]), ("w", &[7, 14, 28, 56])],
            move |at, b| blocked(conv(p(at, 0) * b, 4 * b, image(p(at, 2)), p(at, 1), 2)),
        ),
        Spec::new("conv-blocked-dilated", &[("dilation", &[1, 2, 4]), ("w", &[7, 14, 28])], move |at, b| {
            blocked(ConvShape { dilation: [p(at, 0); 2], ..conv(4 * b, 4 * b, [p(at, 1); 2], 3, 1) })
        }),
        Spec::new(
            "conv-blocked-depthwise",
            &[("blocks", &[1, 4, 16]), ("k", &[1, 3, 5, 7, 11, 31]), STRIDES, ("w", WIDTHS)],
            move |at, b| {
                let c = p(at, 0) * b;
                blocked(conv(c, c, image(p(at, 3)), p(at, 1), p(at, 2)).grouped(c))
            },
        ),
        Spec::new(
            "conv-from-nchw",
            &[("c", &[1, 3, 8]), ("out_blocks", &[1, 2, 4]), FILTERS, STRIDES, ("w", &[14, 28, 112])],
            move |at, b| {
                let shape = conv(p(at, 0).min(b - 1), p(at, 1) * b, image(p(at, 4)), p(at, 2), p(at, 3));
                Case::Conv(shape, ConvKernel::BlockedFromNchw)
            },
        ),
        Spec::new("conv-activation", &[("kind", &[1, 2, 3, 4, 5, 6, 7, 8]), ("w", &[14, 56])], move |at, b| {
            let kind = usize::try_from(p(at, 0)).ok().and_then(|kind| kind.checked_sub(2));
            let activation = kind.and_then(|kind| Activation::ALL.get(kind)).copied();
            blocked(ConvShape { activation, ..conv(b, 4 * b, [p(at, 1); 2], 1, 1) })
        }),
    ]
}

fn plain_convs() -> Vec<Spec> {
    let conv = |c: u64, m: u64, size: [u64; 2], k: u64, stride: u64| ConvShape::same(c, m, size, k, stride);
    let plain = |shape: ConvShape| Case::Conv(shape, ConvKernel::Plain);
    vec![
        Spec::new(
            "conv-plain-pointwise",
            &[("c", &[4, 16, 64, 128, 512]), ("m", &[1, 4, 16, 64, 256]), ("w", WIDTHS)],
            move |at, _| plain(conv(p(at, 0), p(at, 1), [p(at, 2); 2], 1, 1)),
        ),
        Spec::new(
            "conv-plain-pointwise-strided",
            &[("c", &[8, 32, 128, 512]), ("m", &[16, 64, 256]), ("w", &[7, 14, 28, 56])],
            move |at, _| plain(conv(p(at, 0), p(at, 1), [p(at, 2); 2], 1, 2)),
        ),
        Spec::new(
            "conv-plain-im2col",
            &[("c", &[1, 3, 16, 64, 256]), ("m", &[1, 4, 16, 64, 256]), ("w", WIDTHS)],
            move |at, _| plain(conv(p(at, 0), p(at, 1), image(p(at, 2)), 3, 1)),
        ),
        Spec::new(
            "conv-plain-kernel",
            &[("kh", ROWS_OF_KERNELS), ("kw", COLUMNS_OF_KERNELS), ("w", &[7, 14, 28])],
            move |at, _| {
                let shape = conv(64, 64, [p(at, 2); 2], 1, 1);
                plain(ConvShape { kh: p(at, 0), kw: p(at, 1), ..shape })
            },
        ),
        Spec::new(
            "conv-plain-strided",
            &[("c", &[3, 16, 64]), ("k", &[3, 5, 7]), ("w", &[7, 14, 28, 112])],
            move |at, _| plain(conv(p(at, 0), 64, image(p(at, 2)), p(at, 1), 2)),
        ),
        Spec::new(
            "conv-plain-depthwise",
            &[("c", &[16, 128]), ("k", &[3, 5, 7, 11, 31]), STRIDES, ("w", WIDTHS)],
            move |at, _| {
                let c = p(at, 0);
                plain(conv(c, c, image(p(at, 3)), p(at, 1), p(at, 2)).grouped(c))
            },
        ),
        Spec::new(
            "conv-plain-grouped",
            &[("c", &[2, 8, 24, 64]), ("m", &[2, 8, 24, 64]), ("k", &[1, 3]), ("w", &[7, 14, 28, 56])],
            move |at, _| plain(conv(16 * p(at, 0), 16 * p(at, 1), image(p(at, 3)), p(at, 2), 1).grouped(16)),
        ),
    ]
}

/// Frames of the volumes that are measured: enough for most to have neighbours.
const FRAMES: u64 = 4;

fn volumes() -> Vec<Spec> {
    vec![
        Spec::new(
            "conv-volume",
            &[("c", &[1, 4, 16, 64, 256]), ("m", &[1, 16, 64, 256]), ("w", &[7, 14, 28, 56])],
            |at, _| {
                let image = ConvShape::same(p(at, 0), p(at, 1), [p(at, 2); 2], 3, 1);
                Case::Volume(VolumeShape::same(image, FRAMES))
            },
        ),
        Spec::new(
            "conv-volume-kernel",
            &[("kd", &[1, 3]), ("k", &[1, 3, 7]), STRIDES, ("w", &[7, 14, 28])],
            |at, _| {
                let image = ConvShape::same(64, 64, [p(at, 3); 2], p(at, 1), p(at, 2));
                Case::Volume(VolumeShape { kd: p(at, 0), ..VolumeShape::same(image, FRAMES) })
            },
        ),
    ]
}

fn moves() -> Vec<Spec> {
    let mut all = Vec::new();
    for (name, kind, side) in REORDERS {
        all.push(Spec::new(*name, &[("blocks", &[1, 4, 16]), ("w", WIDTHS)], move |at, b| {
            Case::Reorder(*kind, *side, [1, p(at, 0) * b, p(at, 1), p(at, 1)])
        }));
    }
    let width = ("element_bytes", &[1, 4, 8][..]);
    all.push(Spec::new(
        "transpose-moved",
        &[width, ("rows", &[3, 16, 64, 256]), ("columns", &[3, 49, 784, 12544])],
        |at, _| Case::Transpose(vec![1, p(at, 1), p(at, 2)], vec![0, 2, 1], p(at, 0)),
    ));
    all.push(Spec::new(
        "transpose-moved-rows",
        &[("run", &[8, 32, 128, 1024]), ("runs", &[64, 1024, 8192])],
        |at, _| Case::Transpose(vec![p(at, 1) / 16, 16, p(at, 0) / 4], vec![1, 0, 2], 4),
    ));
    all.push(Spec::new("transpose-rows", &[("run", &[8, 32, 128, 1024]), ("runs", &[64, 1024, 8192])], |at, _| {
        Case::Transpose(vec![p(at, 1) / 32, 4, 8, p(at, 0) / 4], vec![2, 1, 0, 3], 4)
    }));
    all.push(Spec::new("transpose-general", &[width, ("side", &[7, 15, 30, 60, 120])], |at, _| {
        Case::Transpose(vec![p(at, 1); 3], vec![2, 1, 0], p(at, 0))
    }));
    for (name, kind) in COPIES {
        let bytes: &[u64] = &[16384, 131_072, 1 << 20, 8 << 20];
        all.push(Spec::new(*name, &[("run", &[64, 512, 4096]), ("bytes", bytes)], |at, _| Case::Copy {
            kind: *kind,
            run: p(at, 0),
            bytes: p(at, 1),
        }));
    }
    all
}

/// Grids of reorders.
pub(super) const REORDERS: &[(&str, Reorder, Side)] = &[
    ("reorder-input-nchw", Reorder::Input, Side::Nchw),
    ("reorder-input-channels-last", Reorder::Input, Side::ChannelsLast),
    ("reorder-output-nchw", Reorder::Output, Side::Nchw),
    ("reorder-output-channels-last", Reorder::Output, Side::ChannelsLast),
];

/// Grids of copying ops.
pub(super) const COPIES: &[(&str, Copy)] = &[
    ("copy-concat", Copy::Concat),
    ("copy-split", Copy::Split),
    ("copy-slice", Copy::Slice),
    ("copy-strided-slice", Copy::StridedSlice),
    ("copy-pad", Copy::Pad),
];

/// Name of an element-wise op's grid.
pub(super) fn elementwise_name(op: &str) -> String {
    format!("elementwise-{op}")
}

fn elementwise() -> Vec<Spec> {
    let mut all = Vec::new();
    for (op, _) in ELEMENTWISE {
        all.push(Spec::new(elementwise_name(op), &[("elements", &[256, 4096, 65536, 1 << 20])], |at, _| {
            Case::Elementwise(op, p(at, 0), Spread::Same)
        }));
    }
    let mul = |elements: u64, spread: Spread| Case::Elementwise("Mul", elements, spread);
    all.push(Spec::new("spread-scalar", &[("elements", &[256, 4096, 65536, 1 << 20])], move |at, _| {
        mul(p(at, 0), Spread::Scalar)
    }));
    let pixels: &[u64] = &[49, 196, 784, 3136, 12544];
    all.push(Spec::new("spread-channel", &[("channels", &[16, 64, 256]), ("pixels", pixels)], move |at, _| {
        mul(p(at, 0) * p(at, 1), Spread::Channel { pixels: p(at, 1) })
    }));
    all.push(Spec::new("spread-last", &[("channels", &[16, 64, 256]), ("pixels", pixels)], move |at, _| {
        mul(p(at, 0) * p(at, 1), Spread::Last { channels: p(at, 0) })
    }));
    all.push(Spec::new("spread-blocked", &[("blocks", &[1, 4, 16]), ("pixels", pixels)], move |at, b| {
        mul(p(at, 0) * b * p(at, 1), Spread::Blocked { pixels: p(at, 1) })
    }));
    all
}

/// Grids of pools.
pub(super) const POOLS: &[(&str, Pool, bool)] = &[
    ("pool-plain-max", Pool::Max, false),
    ("pool-plain-average", Pool::Average, false),
    ("pool-blocked-max", Pool::Max, true),
    ("pool-blocked-average", Pool::Average, true),
    ("pool-plain-global-max", Pool::GlobalMax, false),
    ("pool-plain-global-average", Pool::GlobalAverage, false),
    ("pool-blocked-global-max", Pool::GlobalMax, true),
    ("pool-blocked-global-average", Pool::GlobalAverage, true),
];

/// Grids of scaled images.
pub(super) const RESIZES: &[(&str, Scaling, bool)] = &[
    ("resize-plain-nearest", Scaling::Nearest, false),
    ("resize-plain-linear", Scaling::Linear, false),
    ("resize-blocked-nearest", Scaling::Nearest, true),
    ("resize-blocked-linear", Scaling::Linear, true),
];

fn pools() -> Vec<Spec> {
    let mut all = Vec::new();
    for (name, kind, blocked) in POOLS {
        let shape = |[oh, ow]: [u64; 2], k: u64, stride: u64, b: u64| PoolShape {
            n: 1,
            c: 4 * b,
            h: oh * stride,
            w: ow * stride,
            oh,
            ow,
            kernel: [k; 2],
            stride: [stride; 2],
        };
        if matches!(kind, Pool::Max | Pool::Average) {
            let axes: &[(&'static str, &[u64])] = &[("k", &[2, 3, 7]), STRIDES, ("w", &[7, 14, 28, 56])];
            all.push(Spec::new(*name, axes, move |at, b| {
                Case::Pool(*kind, shape(image(p(at, 2)), p(at, 0), p(at, 1), b), *blocked)
            }));
        } else {
            all.push(Spec::new(*name, &[("blocks", &[2, 16]), ("w", &[7, 28, 56])], move |at, b| {
                let whole = shape([p(at, 1); 2], 1, 1, b);
                Case::Pool(*kind, PoolShape { c: p(at, 0) * b, oh: 1, ow: 1, ..whole }, *blocked)
            }));
        }
    }
    for (name, kind, blocked) in RESIZES {
        all.push(Spec::new(*name, &[("scale", &[2, 4]), ("w", &[16, 32, 64, 128])], move |at, b| {
            let to = [p(at, 1); 2];
            let shape = ResizeShape { n: 1, c: 4 * b, from: to.map(|x| x / p(at, 0)), to };
            Case::Resize(*kind, shape, *blocked)
        }));
    }
    all
}

/// Grids of matrix products: whether the second operand is transposed, and whether it is constant.
pub(super) const GEMMS: &[(&str, bool, bool)] = &[
    ("gemm-constant", false, true),
    ("gemm-constant-transposed", true, true),
    ("gemm-dynamic", false, false),
    ("gemm-dynamic-transposed", true, false),
];

fn others() -> Vec<Spec> {
    let mut all = Vec::new();
    for (name, transposed_b, constant_b) in GEMMS {
        let (m, k, n): (&[u64], &[u64], &[u64]) = (&[1, 8, 64, 256], &[32, 256, 1024], &[32, 256, 1024]);
        all.push(Spec::new(*name, &[("m", m), ("k", k), ("n", n)], |at, _| {
            Case::Gemm(GemmShape {
                batch: 1,
                m: p(at, 0),
                k: p(at, 1),
                n: p(at, 2),
                transposed_b: *transposed_b,
                constant_b: *constant_b,
            })
        }));
    }
    let last: &[(&'static str, &[u64])] = &[("length", &[8, 64, 1024]), ("outer", &[1, 64, 1024])];
    let inner: &[(&'static str, &[u64])] = &[("length", &[8, 64, 1024]), ("inner", &[16, 196, 1024])];
    let at_end = |at: &[u64]| AxisShape { outer: p(at, 1), length: p(at, 0), inner: 1 };
    let inside = |at: &[u64]| AxisShape { outer: 1, length: p(at, 0), inner: p(at, 1) };
    all.push(Spec::new("softmax-last", last, move |at, _| Case::Softmax(at_end(at))));
    all.push(Spec::new("softmax-other", inner, move |at, _| Case::Softmax(inside(at))));
    all.push(Spec::new("reduce-last", last, move |at, _| Case::Reduce(at_end(at))));
    all.push(Spec::new("reduce-other", inner, move |at, _| Case::Reduce(inside(at))));
    all
}

/// Grids of attention.
pub(super) const ATTENTIONS: &[(&str, Attention)] =
    &[("attention-apart", Attention::Apart), ("attention-whole", Attention::Whole)];

/// Heads of an attention that is measured: as many as small models have.
const HEADS: u64 = 8;

fn attentions() -> Vec<Spec> {
    let positions: &[u64] = &[16, 64, 128, 256, 512, 1024];
    let axes: &[(&'static str, &[u64])] = &[("queries", positions), ("keys", positions), ("width", &[16, 32, 64, 128])];
    let of = |(name, form): &(&'static str, Attention)| {
        let form = *form;
        Spec::new(*name, axes, move |at, _| {
            let (width, value_width) = (p(at, 2), p(at, 2));
            let shape = AttentionShape { heads: HEADS, queries: p(at, 0), keys: p(at, 1), width, value_width };
            Case::Attention(shape, form)
        })
    };
    ATTENTIONS.iter().map(of).collect()
}

/// Grids of projections to heads, and the widths of a head. The columns of all heads are what one matrix has: the widest has
/// those of queries, keys and values of 768 units each.
pub(super) const PROJECTIONS: &[(&str, Projection, &[u64])] = &[
    ("projection-together", Projection::Together, &[16, 32, 64, 128, 384]),
    ("projection-together-bias", Projection::TogetherBias, &[16, 32, 64, 128, 384]),
    ("projection-apart", Projection::Apart, &[16, 32, 64, 128]),
    ("projection-apart-bias", Projection::ApartBias, &[16, 32, 64, 128]),
];

/// Heads of a projection that is measured.
pub(super) const PROJECTED_HEADS: u64 = 6;

fn projections() -> Vec<Spec> {
    let of = |(name, form, widths): &(&'static str, Projection, &[u64])| {
        let form = *form;
        let (rows, inputs): (&[u64], &[u64]) = (&[49, 196, 784, 3136], &[64, 192, 768]);
        Spec::new(*name, &[("rows", rows), ("inputs", inputs), ("width", widths)], move |at, _| {
            let shape = ProjectionShape { rows: p(at, 0), inputs: p(at, 1), heads: PROJECTED_HEADS, width: p(at, 2) };
            Case::Projection(shape, form)
        })
    };
    PROJECTIONS.iter().map(of).collect()
}
