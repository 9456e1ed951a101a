//! Entries that the laws are not checked for, or not at an end of their range, each with the reason. Anything else that is not
//! covered fails, and so does a line here that is not needed.

const BEFORE: &str = "ONNX Runtime has no kernels for operator sets before 7";
const BODIES: &str = "needs bodies: `crates/ir/tests/op_drive.rs` and the tests of the pipeline have them";
const NO_TENSOR: &str = "takes or gives a sequence or an optional, which has no layout";
const NO_KERNEL: &str = "ONNX Runtime has no kernel on the CPU";
const NOT_22: &str = "ONNX Runtime's kernel stops before opset 22";
const NO_OPERANDS: &str = "has no operands; import makes it a constant";
const SAVED: &str = "no kernel on the CPU: only sessions on other devices write and run this domain";

/// Domain, op (`*` for all of the domain), first version of the entry, reason.
pub(crate) const UNCOVERED: &[(&str, &str, i64, &str)] = &[
    ("", "Add", 1, BEFORE),
    ("", "Sub", 1, BEFORE),
    ("", "Mul", 1, BEFORE),
    ("", "Div", 1, BEFORE),
    ("", "Pow", 1, BEFORE),
    ("", "And", 1, BEFORE),
    ("", "Or", 1, BEFORE),
    ("", "Xor", 1, BEFORE),
    ("", "Equal", 1, BEFORE),
    ("", "Greater", 1, BEFORE),
    ("", "Less", 1, BEFORE),
    ("", "PRelu", 1, BEFORE),
    ("", "Pad", 1, BEFORE),
    ("", "Tile", 1, BEFORE),
    ("", "Upsample", 1, BEFORE),
    ("", "If", 1, BODIES),
    ("", "Loop", 1, BODIES),
    ("", "Scan", 8, BODIES),
    ("", "Scan", 9, BODIES),
    ("", "RandomNormal", 1, NOT_22),
    ("", "RandomUniform", 1, NOT_22),
    ("", "RandomNormalLike", 1, NOT_22),
    ("", "RandomUniformLike", 1, NOT_22),
    ("", "Multinomial", 7, NOT_22),
    ("", "Constant", 1, NO_OPERANDS),
    ("", "Swish", 24, NO_KERNEL),
    ("", "GlobalLpPool", 1, NOT_22),
    ("", "Bernoulli", 15, NOT_22),
    ("", "RoiAlign", 10, NOT_22),
    ("", "MaxRoiPool", 1, NOT_22),
    ("", "SequenceConstruct", 11, NO_TENSOR),
    ("", "SequenceEmpty", 11, NO_TENSOR),
    ("", "SequenceInsert", 11, NO_TENSOR),
    ("", "SequenceErase", 11, NO_TENSOR),
    ("", "SequenceAt", 11, NO_TENSOR),
    ("", "SequenceLength", 11, NO_TENSOR),
    ("", "SequenceMap", 17, NO_TENSOR),
    ("", "SplitToSequence", 11, NO_TENSOR),
    ("", "ConcatFromSequence", 11, NO_TENSOR),
    ("", "Optional", 15, NO_TENSOR),
    ("", "OptionalHasElement", 15, NO_TENSOR),
    ("", "OptionalGetElement", 15, NO_TENSOR),
    ("com.ms.internal.nhwc", "*", 1, SAVED),
];
