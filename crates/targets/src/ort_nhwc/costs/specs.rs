//! What a table has to hold: the grids, their axes, the points that a calibration measures, and what runs at each.

use super::Points;

/// Channels of the images whose normalization is measured.
pub const NORM_CHANNELS: u64 = 64;
/// Groups of these channels.
pub const NORM_GROUPS: u64 = 32;

/// Element types that are measured: float32, and float16, which speaks for all types of two bytes and less.
const DTYPES: [(&str, bool); 2] = [("f32", false), ("f16", true)];

/// Depthwise convolutions are measured with filters of 3 by 3.
const DEPTHWISE_TAPS: u64 = 9;

/// A convolution of stride 1, with as many filters as channels, padded so that pixels stay as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvCase {
    /// Whether it runs channels last, in sessions in which the provider does so.
    pub channels_last: bool,
    /// Whether each filter reads one channel.
    pub depthwise: bool,
    /// Pixels under a filter.
    pub taps: u64,
    /// Channels, and filters.
    pub channels: u64,
    /// Pixels.
    pub pixels: u64,
}

/// What runs at a point of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// A Transpose of so many elements, of channels first to channels last.
    Transpose(u64),
    /// A convolution.
    Conv(ConvCase),
    /// A product of a constant matrix with what is computed.
    Product {
        /// Products that are summed for a result.
        inputs: u64,
        /// Results.
        outputs: u64,
    },
    /// A linear Resize to twice the rows and columns, which leaves so many elements.
    Resize(u64),
    /// A sum of so many elements with a bias.
    Sum(u64),
    /// A normalization over [`NORM_GROUPS`] groups of [`NORM_CHANNELS`] channels.
    Norm {
        /// Whether it is the op of the provider that reads channels last.
        channels_last: bool,
        /// Elements.
        elements: u64,
    },
}

impl Case {
    /// Multiply-adds of a convolution or product, elements of anything else.
    #[must_use]
    pub fn work(&self) -> f64 {
        match *self {
            Case::Conv(ConvCase { depthwise, taps, channels, pixels, .. }) => {
                let read = if depthwise { 1 } else { channels };
                [pixels, taps, channels, read].into_iter().map(|side| side as f64).product()
            }
            Case::Product { inputs, outputs } => inputs as f64 * outputs as f64,
            Case::Transpose(elements) | Case::Resize(elements) | Case::Sum(elements) | Case::Norm { elements, .. } => {
                elements as f64
            }
        }
    }
}

/// What runs at the points of a grid.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Transpose,
    Dense { channels_last: bool },
    Depthwise { channels_last: bool },
    Product,
    Resize,
    Sum,
    Norm { channels_last: bool },
}

/// A grid of a table.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Names of its axes and the points that a calibration measures.
    pub axes: Vec<(&'static str, Vec<u64>)>,
    /// Whether elements are float16, and not float32.
    pub half: bool,
    kind: Kind,
}

impl Spec {
    /// What runs at a point, one coordinate per axis.
    #[must_use]
    pub fn case(&self, point: &[u64]) -> Case {
        let p = |i: usize| point.get(i).copied().unwrap_or(1);
        match self.kind {
            Kind::Transpose => Case::Transpose(p(0)),
            Kind::Dense { channels_last } => {
                Case::Conv(ConvCase { channels_last, depthwise: false, taps: p(0), channels: p(1), pixels: p(2) })
            }
            Kind::Depthwise { channels_last } => {
                let (channels, pixels) = (p(0), p(1));
                Case::Conv(ConvCase { channels_last, depthwise: true, taps: DEPTHWISE_TAPS, channels, pixels })
            }
            Kind::Product => Case::Product { inputs: p(0), outputs: p(1) },
            Kind::Resize => Case::Resize(p(0)),
            Kind::Sum => Case::Sum(p(0)),
            Kind::Norm { channels_last } => Case::Norm { channels_last, elements: p(0) },
        }
    }

    /// Whether a table may lack it: the grid of an op that not every runtime with the provider has.
    #[must_use]
    pub fn may_lack(&self) -> bool {
        matches!(self.kind, Kind::Norm { channels_last: true })
    }
}

/// Points of each axis. Numbers of pixels are powers of 4, so that images are square.
struct Axes {
    elements: &'static [u64],
    taps: &'static [u64],
    channels: &'static [u64],
    pixels: &'static [u64],
    inputs: &'static [u64],
    outputs: &'static [u64],
}

const WHOLE: Axes = Axes {
    elements: &[1 << 12, 1 << 16, 1 << 20, 1 << 24],
    taps: &[1, 9],
    channels: &[32, 128, 512],
    pixels: &[1 << 8, 1 << 12, 1 << 16],
    inputs: &[16, 128, 1024],
    outputs: &[1 << 12, 1 << 16, 1 << 20],
};

const FEW: Axes = Axes {
    elements: &[1 << 12, 1 << 16],
    taps: &[1, 9],
    channels: &[8, 16],
    pixels: &[1 << 6, 1 << 8],
    inputs: &[16],
    outputs: &[1 << 12],
};

/// Names of grids.
pub(super) fn name(kind: &str, half: bool) -> String {
    let dtype = DTYPES.iter().find(|(_, of)| *of == half).map_or("", |(dtype, _)| dtype);
    format!("{kind}-{dtype}")
}

/// The kind of grid of a convolution.
pub(super) fn of_conv(depthwise: bool, channels_last: bool) -> &'static str {
    match (depthwise, channels_last) {
        (false, false) => "conv-first",
        (false, true) => "conv-last",
        (true, false) => "depthwise-first",
        (true, true) => "depthwise-last",
    }
}

/// Every grid.
#[must_use]
pub fn specs(points: Points) -> Vec<Spec> {
    let axes = match points {
        Points::Whole => WHOLE,
        Points::Few => FEW,
    };
    let mut specs = Vec::new();
    for (_, half) in DTYPES {
        let mut add = |kind_name: &str, of: &[(&'static str, &[u64])], kind| {
            let axes = of.iter().map(|(name, points)| (*name, points.to_vec())).collect();
            specs.push(Spec { name: name(kind_name, half), axes, half, kind });
        };
        let elements = [("elements", axes.elements)];
        add("transpose", &elements, Kind::Transpose);
        for channels_last in [false, true] {
            let dense = [("taps", axes.taps), ("channels", axes.channels), ("pixels", axes.pixels)];
            add(of_conv(false, channels_last), &dense, Kind::Dense { channels_last });
            add(of_conv(true, channels_last), &dense[1..], Kind::Depthwise { channels_last });
        }
        add("product", &[("inputs", axes.inputs), ("outputs", axes.outputs)], Kind::Product);
        add("resize", &elements, Kind::Resize);
        add("sum", &elements, Kind::Sum);
        add("norm-first", &elements, Kind::Norm { channels_last: false });
        add("norm-last", &elements, Kind::Norm { channels_last: true });
    }
    specs
}
