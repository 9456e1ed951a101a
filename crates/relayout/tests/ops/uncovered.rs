//! Entries that the laws are not checked for, or not at an end of their range, each with the reason. Anything else that is not
//! covered fails, and so does a line here that is not needed. Random models (`tests/random`) leave the same entries out.

use relayout::ir::op::OpDef;

const BEFORE: &str = "ONNX Runtime has no kernels for operator sets before 7";
const NO_KERNEL: &str = "ONNX Runtime has no kernel on the CPU";
const SAVED: &str = "no kernel on the CPU: only sessions on other devices write and run this domain";
const BODIES: &str = "needs bodies: `crates/ir/tests/ir/op_drive.rs` and the tests of the pipeline have them";
const NO_TENSOR: &str = "takes or gives a sequence or an optional, which has no layout";
const NOT_22: &str = "ONNX Runtime's kernel stops before opset 22";
const STRINGS: &str = "reads or makes texts, and comparisons are of numbers";
const UNDECLARED: &str = "opaque, and its types are what a file declares: there is nothing to check";
const HOST: &str = "its packed weights depend on the instructions of the host";
const PACKED: &str = "that of MoE, whose cases show it, on weights that are packed for it";
const NEWER: &str =
    "ONNX Runtime loads no model of its operator set: the node tests of the onnx package have it, in their reference";
const NO_OPERANDS: &str = "has no operands; import makes it a constant";

/// Domain, op (`*` for all of the domain), first version of the entry, reason.
pub(crate) type Line = (&'static str, &'static str, i64, &'static str);

/// Whether a line is about this entry.
pub(crate) fn speaks_of((domain, op, first, _): &Line, def: &OpDef) -> bool {
    *domain == def.domain && *first == def.opsets.0 && (*op == "*" || *op == def.name)
}

/// Entries that ONNX Runtime has no kernel for on the CPU; `tests/random/models/absent.rs` checks that.
pub(crate) const ABSENT: &[Line] = &[
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
    ("", "Swish", 24, NO_KERNEL),
    ("", "ImageDecoder", 20, NO_KERNEL),
    ("com.microsoft", "BiasAdd", 1, NO_KERNEL),
    ("com.microsoft", "BiasSplitGelu", 1, NO_KERNEL),
    ("com.microsoft", "ComplexMul", 1, NO_KERNEL),
    ("com.microsoft", "ComplexMulConj", 1, NO_KERNEL),
    ("com.microsoft", "FusedMatMulActivation", 1, NO_KERNEL),
    ("com.microsoft", "GemmFastGelu", 1, NO_KERNEL),
    ("com.microsoft", "GroupNorm", 1, NO_KERNEL),
    ("com.microsoft", "IsAllFinite", 1, NO_KERNEL),
    ("com.microsoft", "MulInteger", 1, NO_KERNEL),
    ("com.microsoft", "NhwcConv", 1, NO_KERNEL),
    ("com.microsoft", "NhwcFusedConv", 1, NO_KERNEL),
    ("com.microsoft", "QLinearReduceMean", 1, NO_KERNEL),
    ("com.microsoft", "ReduceSumInteger", 1, NO_KERNEL),
    ("com.microsoft", "SkipGroupNorm", 1, NO_KERNEL),
    ("com.microsoft", "TorchEmbedding", 1, NO_KERNEL),
    ("com.ms.internal.nhwc", "*", 1, SAVED),
];

/// Entries that are not covered for other reasons.
pub(crate) const UNCOVERED: &[Line] = &[
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
    ("", "GlobalLpPool", 1, NOT_22),
    ("", "Bernoulli", 15, NOT_22),
    ("", "RoiAlign", 10, NOT_22),
    ("", "MaxRoiPool", 1, NOT_22),
    ("", "StringConcat", 20, STRINGS),
    ("", "RegexFullMatch", 20, STRINGS),
    ("", "StringSplit", 20, STRINGS),
    ("", "StringNormalizer", 10, STRINGS),
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
    ("", "CausalConvWithState", 27, NEWER),
    ("", "LinearAttention", 27, NEWER),
    ("", "SwiGLU", 28, NEWER),
    ("com.microsoft", "MatMulFpQ4", 1, HOST),
    ("com.microsoft", "QMoE", 1, PACKED),
    ("com.microsoft", "AttnLSTM", 1, UNDECLARED),
    ("com.microsoft", "BeamSearch", 1, UNDECLARED),
    ("com.microsoft", "BiasDropout", 1, UNDECLARED),
    ("com.microsoft", "BiasSoftmax", 1, UNDECLARED),
    ("com.microsoft", "BifurcationDetector", 1, UNDECLARED),
    ("com.microsoft", "BitmaskBiasDropout", 1, UNDECLARED),
    ("com.microsoft", "BitmaskDropout", 1, UNDECLARED),
    ("com.microsoft", "CausalConvWithState", 1, UNDECLARED),
    ("com.microsoft", "DecoderAttention", 1, UNDECLARED),
    ("com.microsoft", "DecoderMaskedMultiHeadAttention", 1, UNDECLARED),
    ("com.microsoft", "DecoderMaskedSelfAttention", 1, UNDECLARED),
    ("com.microsoft", "DequantizeBFP", 1, UNDECLARED),
    ("com.microsoft", "DequantizeWithOrder", 1, UNDECLARED),
    ("com.microsoft", "DynamicSparseAttention", 1, UNDECLARED),
    ("com.microsoft", "DynamicTimeWarping", 1, UNDECLARED),
    ("com.microsoft", "EPContext", 1, UNDECLARED),
    ("com.microsoft", "EngramGate", 1, UNDECLARED),
    ("com.microsoft", "GatedDeltaNet", 1, UNDECLARED),
    ("com.microsoft", "GatedRelativePositionBias", 1, UNDECLARED),
    ("com.microsoft", "GemmFloat8", 1, UNDECLARED),
    ("com.microsoft", "GemmaRotaryEmbedding", 1, UNDECLARED),
    ("com.microsoft", "GreedySearch", 1, UNDECLARED),
    ("com.microsoft", "HyperConnectionPostMix", 1, UNDECLARED),
    ("com.microsoft", "HyperConnectionPreMix", 1, UNDECLARED),
    ("com.microsoft", "Irfft", 1, UNDECLARED),
    ("com.microsoft", "LinearAttention", 1, UNDECLARED),
    ("com.microsoft", "LongformerAttention", 1, UNDECLARED),
    ("com.microsoft", "MatMulBlockQuantizedFp4Weight", 1, UNDECLARED),
    ("com.microsoft", "MatMulBlockQuantizedFp8Weight", 1, UNDECLARED),
    ("com.microsoft", "MatMulNBitsMlp", 1, UNDECLARED),
    ("com.microsoft", "MatMulNBitsQkv", 1, UNDECLARED),
    ("com.microsoft", "NGramHashMapping", 1, UNDECLARED),
    ("com.microsoft", "PackedAttention", 1, UNDECLARED),
    ("com.microsoft", "PackedMultiHeadAttention", 1, UNDECLARED),
    ("com.microsoft", "PackedSparseAttentionIndexer", 1, UNDECLARED),
    ("com.microsoft", "PagedAttention", 1, UNDECLARED),
    ("com.microsoft", "QOrderedAttention", 1, UNDECLARED),
    ("com.microsoft", "QOrderedGelu", 1, UNDECLARED),
    ("com.microsoft", "QOrderedLayerNormalization", 1, UNDECLARED),
    ("com.microsoft", "QOrderedLongformerAttention", 1, UNDECLARED),
    ("com.microsoft", "QOrderedMatMul", 1, UNDECLARED),
    ("com.microsoft", "QuantizeBFP", 1, UNDECLARED),
    ("com.microsoft", "QuantizeWithOrder", 1, UNDECLARED),
    ("com.microsoft", "Range", 1, UNDECLARED),
    ("com.microsoft", "RelativePositionBias", 1, UNDECLARED),
    ("com.microsoft", "RemovePadding", 1, UNDECLARED),
    ("com.microsoft", "RestorePadding", 1, UNDECLARED),
    ("com.microsoft", "Rfft", 1, UNDECLARED),
    ("com.microsoft", "Sampling", 1, UNDECLARED),
    ("com.microsoft", "Snpe", 1, UNDECLARED),
    ("com.microsoft", "SparseAttention", 1, UNDECLARED),
    ("com.microsoft", "SparseAttentionIndexer", 1, UNDECLARED),
    ("com.microsoft", "SparsePagedAttention", 1, UNDECLARED),
    ("com.microsoft", "SparseToDenseMatMul", 1, UNDECLARED),
    ("com.microsoft", "Tokenizer", 1, UNDECLARED),
    ("com.microsoft", "Unique", 1, UNDECLARED),
    ("com.microsoft", "VarlenCausalConvWithState", 1, UNDECLARED),
    ("com.microsoft", "VarlenNGramHashMapping", 1, UNDECLARED),
    ("com.microsoft", "WhisperBeamSearch", 1, UNDECLARED),
    ("com.microsoft", "WordConvEmbedding", 1, UNDECLARED),
];
