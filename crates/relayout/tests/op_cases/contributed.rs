//! What ONNX Runtime's optimizers and exporters write: attention, products on quantized numbers, and others.

use super::case::{Case, bools, byte, exact, f, float, fr, i8s, i64s, ints, microsoft, u8s};
use relayout_verify::Data;

pub(crate) fn cases() -> Vec<Case> {
    [attention(), rotations(), products(), quantized(), images(), rows(), others()].concat()
}

fn i32s(shape: &[i64], data: &[i32]) -> super::case::Spec {
    exact(shape, Data::I32(data.to_vec()))
}

fn attention() -> Vec<Case> {
    let attention = || microsoft("Attention").partial().int("num_heads", 2).x(f(&[2, 3, 8])).x(f(&[8, 24])).x(f(&[24]));
    let heads = || {
        microsoft("MultiHeadAttention").partial().int("num_heads", 2).x(f(&[2, 3, 8])).x(f(&[2, 5, 8])).x(f(&[2, 5, 8]))
    };
    let quantized = || {
        let case = microsoft("QAttention").partial().int("num_heads", 2);
        case.x(u8s(&[2, 3, 8])).x(u8s(&[8, 24])).x(f(&[24])).c(float(0.01)).c(float(0.02))
    };
    vec![
        attention(),
        attention().variant("that is causal").int("unidirectional", 1),
        attention().variant("with lengths").x(i32s(&[2], &[2, 3])),
        attention().variant("with a mask").x(i32s(&[2, 3], &[1, 1, 0, 1, 1, 1])),
        attention().variant("with a mask for each position").x(i32s(&[2, 3, 3], &[1; 18])),
        attention().variant("with a cache").none().x(f(&[2, 2, 2, 4, 4])).results(2),
        heads(),
        heads().variant("with a bias").x(f(&[24])),
        heads().variant("with a mask").none().x(i32s(&[2, 5], &[1, 1, 1, 0, 0, 1, 1, 1, 1, 1])),
        heads().variant("with a bias of attention").none().none().x(f(&[2, 2, 3, 5])),
        microsoft("MultiHeadAttention")
            .variant("of keys that lie in a cache")
            .partial()
            .int("num_heads", 2)
            .x(f(&[2, 3, 8]))
            .x(f(&[2, 2, 5, 4]))
            .x(f(&[2, 2, 5, 4])),
        quantized(),
        quantized().variant("with lengths").x(i32s(&[2], &[2, 3])).c(byte(100)).c(byte(90)),
    ]
}

fn rotations() -> Vec<Case> {
    let caches = |case: Case| case.x(f(&[8, 2])).x(f(&[8, 2]));
    vec![
        caches(microsoft("RotaryEmbedding").variant("of heads").x(f(&[2, 3, 5, 4])).x(i64s(&[2, 5], 0, 8))),
        caches(microsoft("RotaryEmbedding").variant("from a place on").x(f(&[2, 3, 5, 4])).x(ints(&[1]))),
        microsoft("RotaryEmbedding")
            .variant("packed, from a place on")
            .x(f(&[2, 3, 8]))
            .x(ints(&[1]))
            .x(f(&[8, 4]))
            .x(f(&[8, 4])),
        caches(microsoft("MRotaryEmbedding").list("mrope_section", &[1, 1, 0]).x(f(&[2, 3, 5, 4])).x(i64s(
            &[3, 2, 5],
            0,
            8,
        ))),
        microsoft("LinearAttentionGate").x(f(&[2, 3, 4])).x(f(&[4])).x(f(&[4])).x(f(&[2, 3, 4])).results(2),
    ]
}

fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for (variant, a, b, ta, tb) in [
        ("plain", [3, 4], [4, 5], 0, 0),
        ("left transposed", [4, 3], [4, 5], 1, 0),
        ("right transposed", [3, 4], [5, 4], 0, 1),
        ("both transposed", [4, 3], [5, 4], 1, 1),
    ] {
        let turned = |case: Case| case.variant(variant).int("transA", ta).int("transB", tb);
        cases.push(turned(microsoft("FusedGemm")).text("activation", "Relu").x(f(&a)).x(f(&b)).x(f(&[5])));
        let gemm = || turned(microsoft("QGemm")).x(u8s(&a)).c(float(0.1)).c(byte(90)).x(u8s(&b));
        cases.push(gemm().c(float(0.2)).c(byte(80)).x(i32s(&[5], &[1, -2, 3, -4, 5])));
        cases.push(gemm().x(fr(&[5], 0.1, 0.3)).x(u8s(&[5])).none().c(float(40.0)).c(byte(100)));
        cases.push(gemm().c(float(0.2)).c(byte(80)).x(i32s(&[3, 5], &(0..15).collect::<Vec<_>>())));
    }
    cases.push(microsoft("CDist").text("metric", "euclidean").x(f(&[3, 4])).x(f(&[5, 4])));
    cases.push(microsoft("Inverse").x(fr(&[2, 3, 3], 0.1, 2.0)));
    cases
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn quantized() -> Vec<Case> {
    let dynamic = || microsoft("DynamicQuantizeMatMul").x(f(&[2, 3, 4]));
    let to_float = || microsoft("MatMulIntegerToFloat").x(u8s(&[2, 3, 4]));
    let q = |case: Case| case.c(float(0.05)).c(byte(100));
    let columns = || fr(&[5], 0.1, 0.3);
    let i16s = |shape: &[i64]| {
        let n = shape.iter().product::<i64>();
        exact(shape, Data::I16((0..n).map(|i| (i * 37 % 101) as i16 - 50).collect()))
    };
    let lstm = || {
        let case = microsoft("DynamicQuantizeLSTM").int("hidden_size", 3).x(f(&[4, 2, 5]));
        case.c(u8s(&[1, 5, 12])).c(u8s(&[1, 3, 12])).x(f(&[1, 24]))
    };
    vec![
        dynamic().x(u8s(&[4, 5])).c(float(0.1)).c(byte(90)).x(f(&[5])),
        dynamic().variant("by column").x(u8s(&[4, 5])).x(columns()).x(u8s(&[5])),
        dynamic().variant("in a batch").x(u8s(&[2, 4, 5])).c(float(0.1)),
        to_float().x(u8s(&[4, 5])).c(float(0.1)).c(float(0.2)).c(byte(100)).c(byte(90)).x(f(&[5])),
        to_float().variant("by column").x(u8s(&[4, 5])).c(float(0.1)).x(columns()).c(byte(100)).x(u8s(&[5])),
        to_float().variant("in a batch").x(u8s(&[2, 4, 5])).c(float(0.1)).c(float(0.2)),
        microsoft("MatMulInteger16").x(i16s(&[2, 3, 4])).x(i16s(&[4, 5])),
        microsoft("MatMulNBits")
            .variant("with a bias")
            .int("K", 32)
            .int("N", 3)
            .int("bits", 4)
            .int("block_size", 16)
            .x(f(&[2, 5, 32]))
            .c(u8s(&[3, 2, 8]))
            .c(fr(&[6], 0.1, 0.2))
            .none()
            .none()
            .x(f(&[3])),
        microsoft("MatMulBnb4")
            .int("K", 32)
            .int("N", 3)
            .int("block_size", 16)
            .int("quant_type", 1)
            .x(f(&[2, 5, 32]))
            .c(u8s(&[48]))
            .c(fr(&[6], 0.1, 0.2)),
        microsoft("GatherBlockQuantized")
            .partial()
            .int("gather_axis", 0)
            .int("quantize_axis", 1)
            .int("block_size", 16)
            .c(u8s(&[6, 32]))
            .x(i64s(&[2, 3], 0, 6))
            .c(fr(&[6, 4], 0.1, 0.2)),
        q(q(q(microsoft("QLinearWhere").x(bools(&[2, 3, 4])).x(u8s(&[2, 3, 4]))).x(u8s(&[3, 1])))),
        q(q(microsoft("QLinearSoftmax").x(u8s(&[2, 3, 4])))).variant("of axis 1").int("axis", 1).int("opset", 13),
        q(q(microsoft("QLinearSoftmax").x(u8s(&[2, 3, 4]))))
            .variant("of all from axis 1")
            .int("axis", 1)
            .int("opset", 11),
        lstm()
            .none()
            .none()
            .none()
            .none()
            .c(fr(&[1], 0.01, 0.02))
            .c(u8s(&[1]))
            .c(fr(&[1], 0.01, 0.02))
            .c(u8s(&[1]))
            .results(3),
    ]
}

fn images() -> Vec<Case> {
    vec![
        microsoft("ConvTransposeWithDynamicPads")
            .partial()
            .list("strides", &[2, 2])
            .x(f(&[2, 4, 3, 5]))
            .x(f(&[4, 3, 2, 2]))
            .x(ints(&[0, 0, 0, 0]))
            .x(f(&[3])),
        microsoft("CropAndResize")
            .x(f(&[2, 3, 6, 5]))
            .x(fr(&[4, 4], 0.0, 1.0))
            .x(i32s(&[4], &[0, 1, 1, 0]))
            .c(i32s(&[2], &[3, 2])),
        microsoft("MaxpoolWithMask")
            .list("kernel_shape", &[2, 2])
            .x(f(&[2, 3, 6, 5]))
            .x(i32s(&[2, 3, 6, 5], &(0..180).map(|i| i % 3).collect::<Vec<_>>())),
        microsoft("GridSample").x(f(&[2, 3, 4, 5])).x(fr(&[2, 3, 2, 2], -0.9, 0.9)),
        microsoft("Pad").x(f(&[2, 3, 4])).c(ints(&[1, 0, 2, 0, 3, 0])).c(exact(&[1], Data::F32(vec![0.5]))),
        microsoft("Trilu").x(f(&[2, 3, 4, 5])),
        microsoft("UnfoldTensor").int("dim", 1).int("size", 3).int("step", 2).x(f(&[2, 7, 4])),
    ]
}

fn rows() -> Vec<Case> {
    let embedded = || {
        let case = microsoft("EmbedLayerNormalization").x(i32s(&[2, 3], &[0, 2, 1, 3, 3, 0]));
        case.x(i32s(&[2, 3], &[0, 0, 1, 0, 1, 1])).x(f(&[4, 6])).x(f(&[5, 6])).x(f(&[2, 6])).x(f(&[6])).x(f(&[6]))
    };
    vec![
        embedded().results(2),
        embedded().variant("with a mask").x(i32s(&[2, 3], &[1, 1, 0, 1, 1, 1])).results(2),
        microsoft("QEmbedLayerNormalization")
            .x(i32s(&[2, 3], &[0, 2, 1, 3, 3, 0]))
            .x(i32s(&[2, 3], &[0, 0, 1, 0, 1, 1]))
            .x(u8s(&[4, 6]))
            .x(u8s(&[5, 6]))
            .x(u8s(&[2, 6]))
            .x(u8s(&[6]))
            .x(u8s(&[6]))
            .none()
            .c(float(0.01))
            .c(float(0.01))
            .c(float(0.01))
            .c(float(0.01))
            .c(float(0.01))
            .c(byte(90))
            .c(byte(90))
            .c(byte(90))
            .c(byte(90))
            .c(byte(90))
            .results(2),
        microsoft("GatherND").x(f(&[3, 2, 4])).x(exact(&[2, 1], Data::I64(vec![1, 0]))),
        microsoft("NGramRepeatBlock").int("ngram_size", 2).x(i64s(&[3, 6], 0, 4)).x(f(&[3, 5])),
        microsoft("GatedAdd").x(f(&[2, 3, 4])).x(f(&[2, 3, 4])).x(f(&[2, 3, 1])),
        microsoft("GatedRMSNorm").x(f(&[2, 3, 8])).x(f(&[4])).x(f(&[2, 3, 8])),
        microsoft("BranchwiseRMSNorm").x(f(&[2, 3, 2, 4])).x(f(&[2, 4])),
        microsoft("MoE")
            .int("k", 2)
            .text("activation_type", "relu")
            .x(f(&[5, 8]))
            .x(f(&[5, 3]))
            .x(f(&[3, 16, 8]))
            .x(f(&[3, 16]))
            .x(f(&[3, 8, 16])),
    ]
}

fn others() -> Vec<Case> {
    vec![
        microsoft("ScaledSiLU").num("alpha", 1.5).x(f(&[2, 3, 4])),
        microsoft("MurmurHash3").int("seed", 3).x(i32s(&[2, 3], &[1, 2, 3, 4, 5, 6])),
        microsoft("SampleOp").x(f(&[2, 3, 4])),
        microsoft("ExpandDims").x(f(&[2, 3, 4])).c(i32s(&[], &[1])),
        microsoft("QuantizeLinear")
            .variant("of signed bytes")
            .int("axis", 1)
            .x(f(&[2, 3, 4]))
            .x(fr(&[3], 0.05, 0.2))
            .x(i8s(&[3])),
    ]
}
