//! What a table has to hold: the grids, their axes, the points that a calibration measures, and what runs at each.

use super::{MoveClass, Points};

/// Element types whose convolutions are measured: float32, whose products are TF32 on a GPU, and float16, which speaks for bfloat16.
pub(super) const DTYPES: [&str; 2] = ["f32", "f16"];

/// A convolution of stride 1, with as many filters as channels, padded so that pixels stay as many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvCase {
    /// `f32` or `f16`.
    pub dtype: &'static str,
    /// Whether features and weights are stored with their channels innermost.
    pub channels_last: bool,
    /// Groups of channels.
    pub groups: u64,
    /// Pixels under a filter.
    pub taps: u64,
    /// Channels, and filters.
    pub channels: u64,
    /// Pixels of all images together.
    pub pixels: u64,
}

/// What runs at a point of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    /// A convolution.
    Conv(ConvCase),
    /// A move of so many bytes.
    Move(MoveClass, u64),
    /// A pass over so many bytes, half of them read and half written.
    Pass(u64),
}

impl Case {
    /// Multiply-adds of a convolution, bytes of anything else.
    #[must_use]
    pub fn work(&self) -> f64 {
        match self {
            Case::Conv(conv) => {
                let sides = [conv.pixels, conv.taps, conv.channels, conv.channels];
                sides.iter().map(|&side| side as f64).product::<f64>() / conv.groups.max(1) as f64
            }
            Case::Move(_, bytes) | Case::Pass(bytes) => *bytes as f64,
        }
    }
}

/// What runs at a point.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Dense { dtype: &'static str, channels_last: bool },
    Odd { dtype: &'static str },
    Depthwise { dtype: &'static str, channels_last: bool },
    Move(MoveClass),
    Pass,
}

/// A grid of a table.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Names of its axes and the points that a calibration measures.
    pub axes: Vec<(&'static str, Vec<u64>)>,
    kind: Kind,
}

impl Spec {
    /// What runs at a point, one coordinate per axis.
    #[must_use]
    pub fn case(&self, point: &[u64]) -> Case {
        let p = |i: usize| point.get(i).copied().unwrap_or(1);
        let conv = |dtype, channels_last, groups, taps, channels, pixels| {
            Case::Conv(ConvCase { dtype, channels_last, groups, taps, channels, pixels })
        };
        match self.kind {
            Kind::Dense { dtype, channels_last } => conv(dtype, channels_last, p(0), p(1), p(2), p(3)),
            Kind::Odd { dtype } => conv(dtype, true, 1, p(0), p(1), p(2)),
            Kind::Depthwise { dtype, channels_last } => conv(dtype, channels_last, p(0), DEPTHWISE_TAPS, p(0), p(1)),
            Kind::Move(class) => Case::Move(class, p(0)),
            Kind::Pass => Case::Pass(p(0)),
        }
    }
}

/// Depthwise convolutions are measured with filters of 3 by 3.
const DEPTHWISE_TAPS: u64 = 9;

/// Points of each axis. Numbers of pixels are powers of 4, so that images are square; channels are whole groups.
struct Axes {
    groups: &'static [u64],
    taps: &'static [u64],
    channels: &'static [u64],
    odd: &'static [u64],
    pixels: &'static [u64],
    bytes: &'static [u64],
}

const WHOLE: Axes = Axes {
    groups: &[1, 2, 8],
    taps: &[1, 9],
    channels: &[32, 128, 512],
    odd: &[35, 131, 515],
    pixels: &[1 << 8, 1 << 12, 1 << 16],
    bytes: &[1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 27],
};

const FEW: Axes = Axes {
    groups: &[1, 2],
    taps: &[1, 9],
    channels: &[16, 32],
    odd: &[15],
    pixels: &[1 << 6, 1 << 8],
    bytes: &[1 << 12, 1 << 18],
};

/// Name of the grid of a kind of convolution.
pub(super) fn conv_name(dtype: &str, kind: &str, channels_last: bool) -> String {
    format!("conv-{dtype}-{kind}-{}", if channels_last { "nhwc" } else { "nchw" })
}

/// Name of the grid of a class of moves.
pub(super) fn move_name(class: MoveClass) -> String {
    format!("move-{}", class.as_str())
}

/// Every grid.
#[must_use]
pub fn specs(points: Points) -> Vec<Spec> {
    let axes = match points {
        Points::Whole => WHOLE,
        Points::Few => FEW,
    };
    let spec = |name: String, of: &[(&'static str, &[u64])], kind| Spec {
        name,
        axes: of.iter().map(|(name, points)| (*name, points.to_vec())).collect(),
        kind,
    };
    let mut specs = Vec::new();
    for dtype in DTYPES {
        for channels_last in [false, true] {
            let dense =
                [("groups", axes.groups), ("taps", axes.taps), ("channels", axes.channels), ("pixels", axes.pixels)];
            let name = |kind| conv_name(dtype, kind, channels_last);
            specs.push(spec(name("dense"), &dense, Kind::Dense { dtype, channels_last }));
            let depthwise = [("channels", axes.channels), ("pixels", axes.pixels)];
            specs.push(spec(name("depthwise"), &depthwise, Kind::Depthwise { dtype, channels_last }));
        }
        let odd = [("taps", axes.taps), ("channels", axes.odd), ("pixels", axes.pixels)];
        specs.push(spec(conv_name(dtype, "odd", true), &odd, Kind::Odd { dtype }));
    }
    specs.extend(MoveClass::ALL.map(|class| spec(move_name(class), &[("bytes", axes.bytes)], Kind::Move(class))));
    specs.push(spec("pass".to_owned(), &[("bytes", axes.bytes)], Kind::Pass));
    specs
}
