//! The standard ops that have forms in the dialect: their operands, results and attributes, as ONNX has them.
//!
//! A body runs the standard op on ONNX's own order of axes, so nothing about an op is coded here but its face, and what its pad
//! lanes may hold.

use super::FIRST_OPSET;
use super::spell::Letters;
use crate::proto::attribute_proto::AttributeType::{self, Float, Floats, Int, Ints, String as Text};

/// An operand or result.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// ONNX's name of it.
    pub(super) name: &'static str,
    /// Letters of its axes; `None` for lists and scalars, which are always as ONNX has them.
    pub(super) letters: Option<Letters>,
    /// Whether a call may leave it out.
    pub(super) optional: bool,
}

/// An attribute and the operator sets that have it.
pub(super) struct Attribute {
    pub(super) name: &'static str,
    pub(super) r#type: AttributeType,
    pub(super) opsets: (i64, i64),
}

/// One op over a range of operator sets.
pub(super) struct Entry {
    pub(super) op: &'static str,
    pub(super) opsets: (i64, i64),
    pub(super) inputs: &'static [Slot],
    pub(super) outputs: &'static [Slot],
    pub(super) attributes: &'static [&'static [Attribute]],
    /// Ranks that operand 0 may have.
    pub(super) ranks: (usize, usize),
    /// Whether the name says the number of spatial axes: `Conv2d`.
    pub(super) dimensional: bool,
    /// What padding slots of the channels mean for the op.
    pub(super) lanes: &'static str,
}

/// The last operator set that this table was compared with.
pub(super) const LAST: i64 = 28;

const fn slot(name: &'static str, letters: Letters) -> Slot {
    Slot { name, letters: Some(letters), optional: false }
}

const fn plain(name: &'static str) -> Slot {
    Slot { name, letters: None, optional: false }
}

const fn maybe(slot: Slot) -> Slot {
    Slot { optional: true, ..slot }
}

const fn attr(name: &'static str, r#type: AttributeType, since: i64) -> Attribute {
    Attribute { name, r#type, opsets: (since, LAST) }
}

const X: Slot = slot("X", Letters::Features);
const Y: Slot = slot("Y", Letters::Features);
const QUANTIZED: &[Slot] = &[slot("y", Letters::Features)];

const CONV: &[Attribute] = &[
    attr("auto_pad", Text, 1),
    attr("dilations", Ints, 1),
    attr("group", Int, 1),
    attr("kernel_shape", Ints, 1),
    attr("pads", Ints, 1),
    attr("strides", Ints, 1),
];

const WINDOW: &[Attribute] =
    &[attr("auto_pad", Text, 1), attr("kernel_shape", Ints, 1), attr("pads", Ints, 1), attr("strides", Ints, 1)];

/// Without `axes`: ONNX Runtime moves a Transpose through Resize without a look at them (seen in 1.31.1 at its highest level, also
/// for plain nodes), and then refuses the model or fails when it runs.
const RESIZE: &[Attribute] = &[
    attr("mode", Text, 1),
    attr("coordinate_transformation_mode", Text, 11),
    attr("cubic_coeff_a", Float, 11),
    attr("exclude_outside", Int, 11),
    attr("extrapolation_value", Float, 11),
    attr("nearest_mode", Text, 11),
    attr("antialias", Int, 18),
    attr("keep_aspect_ratio_policy", Text, 18),
];

const ANY_LANES: &str = "any: each channel by itself";
const ZERO_WEIGHTS: &str = "finite: the weights of pad channels are zero on both sides, and so is the bias";
const ZERO_POINTS: &str = "any: the weights of pad channels are their zero point on both sides, and the bias is zero";
const CONTRACTED: &str = "finite on the axis that is summed over, where the other operand has zeros";
const CONTRACTED_POINTS: &str = "any on the axis that is summed over, where the other operand has its zero point";
const NO_LANES: &str = "none: the op counts or mixes channels";
const AXIS_LANES: &str = "none on the axis that the op reads, any elsewhere";

const fn features(op: &'static str, since: i64, attributes: &'static [&'static [Attribute]]) -> Entry {
    Entry {
        op,
        opsets: (since, LAST),
        inputs: &[X],
        outputs: &[Y],
        attributes,
        ranks: (3, 5),
        dimensional: false,
        lanes: ANY_LANES,
    }
}

const fn pool(op: &'static str, since: i64, attributes: &'static [&'static [Attribute]]) -> Entry {
    Entry { dimensional: true, ..features(op, since, attributes) }
}

const fn channels(
    op: &'static str,
    since: i64,
    inputs: &'static [Slot],
    attributes: &'static [&'static [Attribute]],
) -> Entry {
    Entry { inputs, ranks: (2, 5), ..features(op, since, attributes) }
}

const fn quantize(op: &'static str, inputs: &'static [Slot], attributes: &'static [&'static [Attribute]]) -> Entry {
    Entry { inputs, outputs: QUANTIZED, ranks: (1, 26), ..features(op, 10, attributes) }
}

const fn axis(op: &'static str, outputs: &'static [Slot], attributes: &'static [&'static [Attribute]]) -> Entry {
    Entry { outputs, ranks: (1, 26), lanes: AXIS_LANES, ..features(op, 1, attributes) }
}

const fn matrix(op: &'static str, since: i64, inputs: &'static [Slot], outputs: &'static [Slot]) -> Entry {
    Entry { inputs, outputs, ranks: (1, 26), lanes: CONTRACTED, ..features(op, since, &[]) }
}

/// The table, in the order of `docs/dialect.md`.
pub(super) const TABLE: &[Entry] = &[
    Entry {
        inputs: &[X, slot("W", Letters::Weights), maybe(slot("B", Letters::Channels))],
        lanes: ZERO_WEIGHTS,
        ..pool("Conv", 1, &[CONV])
    },
    Entry {
        inputs: &[X, slot("W", Letters::TransposedWeights), maybe(slot("B", Letters::Channels))],
        lanes: ZERO_WEIGHTS,
        ..pool("ConvTranspose", 1, &[CONV, &[attr("output_padding", Ints, 1), attr("output_shape", Ints, 1)]])
    },
    Entry {
        inputs: &[
            slot("x", Letters::Features),
            plain("x_scale"),
            plain("x_zero_point"),
            slot("w", Letters::Weights),
            slot("w_scale", Letters::Channels),
            slot("w_zero_point", Letters::Channels),
            plain("y_scale"),
            plain("y_zero_point"),
            maybe(slot("B", Letters::Channels)),
        ],
        outputs: QUANTIZED,
        lanes: ZERO_POINTS,
        ..pool("QLinearConv", 10, &[CONV])
    },
    Entry {
        inputs: &[
            slot("x", Letters::Features),
            slot("w", Letters::Weights),
            maybe(plain("x_zero_point")),
            maybe(slot("w_zero_point", Letters::Channels)),
        ],
        outputs: QUANTIZED,
        lanes: ZERO_POINTS,
        ..pool("ConvInteger", 10, &[CONV])
    },
    pool(
        "MaxPool",
        1,
        &[WINDOW, &[attr("storage_order", Int, 8), attr("ceil_mode", Int, 10), attr("dilations", Ints, 10)]],
    ),
    pool(
        "AveragePool",
        1,
        &[WINDOW, &[attr("count_include_pad", Int, 7), attr("ceil_mode", Int, 10), attr("dilations", Ints, 19)]],
    ),
    pool("LpPool", 2, &[WINDOW, &[attr("p", Int, 2), attr("ceil_mode", Int, 18), attr("dilations", Ints, 18)]]),
    features("GlobalAveragePool", 1, &[]),
    features("GlobalMaxPool", 1, &[]),
    features("GlobalLpPool", 2, &[&[attr("p", Int, 2)]]),
    Entry {
        opsets: (7, 8),
        ranks: (1, 5),
        ..features("Upsample", 7, &[&[attr("mode", Text, 7), attr("scales", Floats, 7)]])
    },
    Entry {
        opsets: (9, 9),
        inputs: &[X, plain("scales")],
        ranks: (1, 5),
        ..features("Upsample", 9, &[&[attr("mode", Text, 9)]])
    },
    Entry { opsets: (10, 10), inputs: &[X, plain("scales")], ranks: (1, 5), ..features("Resize", 10, &[RESIZE]) },
    Entry {
        opsets: (11, LAST),
        inputs: &[X, maybe(plain("roi")), maybe(plain("scales")), maybe(plain("sizes"))],
        ranks: (1, 5),
        ..features("Resize", 11, &[RESIZE])
    },
    Entry {
        inputs: &[X, slot("grid", Letters::Neutral)],
        ranks: (4, 5),
        ..features(
            "GridSample",
            16,
            &[&[attr("align_corners", Int, 16), attr("mode", Text, 16), attr("padding_mode", Text, 16)]],
        )
    },
    Entry {
        inputs: &[slot("input", Letters::Features)],
        outputs: &[slot("output", Letters::Features)],
        ranks: (4, 4),
        lanes: NO_LANES,
        ..features("DepthToSpace", 1, &[&[attr("blocksize", Int, 1), attr("mode", Text, 11)]])
    },
    Entry {
        inputs: &[slot("input", Letters::Features)],
        outputs: &[slot("output", Letters::Features)],
        ranks: (4, 4),
        lanes: NO_LANES,
        ..features("SpaceToDepth", 1, &[&[attr("blocksize", Int, 1), attr("mode", Text, 28)]])
    },
    channels(
        "BatchNormalization",
        7,
        &[
            X,
            slot("scale", Letters::Channels),
            slot("B", Letters::Channels),
            slot("input_mean", Letters::Channels),
            slot("input_var", Letters::Channels),
        ],
        &[&[
            attr("epsilon", Float, 7),
            attr("momentum", Float, 7),
            Attribute { name: "spatial", r#type: Int, opsets: (7, 8) },
            attr("training_mode", Int, 14),
        ]],
    ),
    Entry {
        outputs: &[slot("output", Letters::Features)],
        ranks: (3, 5),
        ..channels(
            "InstanceNormalization",
            6,
            &[slot("input", Letters::Features), slot("scale", Letters::Channels), slot("B", Letters::Channels)],
            &[&[attr("epsilon", Float, 6)]],
        )
    },
    Entry {
        lanes: NO_LANES,
        ..channels(
            "GroupNormalization",
            18,
            &[X, slot("scale", Letters::Channels), slot("bias", Letters::Channels)],
            &[&[attr("epsilon", Float, 18), attr("num_groups", Int, 18), attr("stash_type", Int, 21)]],
        )
    },
    Entry {
        lanes: "zero: neighbours are summed",
        ..features(
            "LRN",
            1,
            &[&[attr("alpha", Float, 1), attr("beta", Float, 1), attr("bias", Float, 1), attr("size", Int, 1)]],
        )
    },
    Entry {
        inputs: &[slot("input", Letters::Features)],
        ..axis("LpNormalization", &[slot("output", Letters::Features)], &[&[attr("axis", Int, 1), attr("p", Int, 1)]])
    },
    Entry {
        inputs: &[slot("input", Letters::Features)],
        ..axis("Softmax", &[slot("output", Letters::Features)], &[&[attr("axis", Int, 1)]])
    },
    Entry {
        inputs: &[slot("input", Letters::Features)],
        ..axis("LogSoftmax", &[slot("output", Letters::Features)], &[&[attr("axis", Int, 1)]])
    },
    quantize(
        "QuantizeLinear",
        &[
            slot("x", Letters::Features),
            slot("y_scale", Letters::Channels),
            maybe(slot("y_zero_point", Letters::Channels)),
        ],
        &[&[
            attr("axis", Int, 13),
            attr("saturate", Int, 19),
            attr("block_size", Int, 21),
            attr("output_dtype", Int, 21),
            attr("precision", Int, 23),
        ]],
    ),
    quantize(
        "DequantizeLinear",
        &[
            slot("x", Letters::Features),
            slot("x_scale", Letters::Channels),
            maybe(slot("x_zero_point", Letters::Channels)),
        ],
        &[&[attr("axis", Int, 13), attr("block_size", Int, 21), attr("output_dtype", Int, 23)]],
    ),
    matrix(
        "MatMul",
        1,
        &[slot("A", Letters::Matrix("MK")), slot("B", Letters::Matrix("KN"))],
        &[slot("Y", Letters::Matrix("MN"))],
    ),
    Entry {
        attributes: &[&[
            attr("alpha", Float, 7),
            attr("beta", Float, 7),
            attr("transA", Int, 7),
            attr("transB", Int, 7),
        ]],
        ranks: (2, 2),
        ..matrix(
            "Gemm",
            7,
            &[slot("A", Letters::Neutral), slot("B", Letters::Neutral), maybe(slot("C", Letters::Neutral))],
            &[slot("Y", Letters::Matrix("MN"))],
        )
    },
    Entry {
        lanes: CONTRACTED_POINTS,
        ..matrix(
            "MatMulInteger",
            10,
            &[
                slot("A", Letters::Matrix("MK")),
                slot("B", Letters::Matrix("KN")),
                maybe(plain("a_zero_point")),
                maybe(plain("b_zero_point")),
            ],
            &[slot("Y", Letters::Matrix("MN"))],
        )
    },
    Entry {
        lanes: CONTRACTED_POINTS,
        ..matrix(
            "QLinearMatMul",
            10,
            &[
                slot("a", Letters::Matrix("MK")),
                plain("a_scale"),
                plain("a_zero_point"),
                slot("b", Letters::Matrix("KN")),
                plain("b_scale"),
                plain("b_zero_point"),
                plain("y_scale"),
                plain("y_zero_point"),
            ],
            &[slot("y", Letters::Matrix("MN"))],
        )
    },
];

impl Entry {
    /// The attributes that the op has at an operator set, in the order in which functions declare them.
    pub(super) fn attributes_at(&self, opset: i64) -> impl Iterator<Item = &'static Attribute> + use<> {
        let all: &'static [&'static [Attribute]] = self.attributes;
        all.iter().flat_map(|some| some.iter()).filter(move |a| a.opsets.0 <= opset && opset <= a.opsets.1)
    }
}

/// The standard ops that have forms at an operator set, in the order of the reference page.
pub fn ops(opset: i64) -> impl Iterator<Item = &'static str> {
    let has = move |e: &&Entry| (e.opsets.0.max(FIRST_OPSET)..=e.opsets.1).contains(&opset);
    TABLE.iter().filter(has).map(|e| e.op)
}

/// The entry of an op at an operator set.
pub(super) fn entry(op: &str, opset: i64) -> Option<&'static Entry> {
    TABLE.iter().find(|e| e.op == op && e.opsets.0 <= opset && opset <= e.opsets.1)
}

/// Operator sets at which the table has the op.
pub(super) fn opsets(op: &str) -> Option<(i64, i64)> {
    let known = || TABLE.iter().filter(|e| e.op == op).map(|e| e.opsets);
    Some((known().map(|o| o.0).min()?, known().map(|o| o.1).max()?))
}
