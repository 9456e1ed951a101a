//! Matrix products and what computes on quantized numbers.

use super::case::{Case, Spec, byte, case, exact, f, float, fr, i8s, microsoft, u8s};
use relayout_verify::Data;

pub(crate) fn cases() -> Vec<Case> {
    [products(), gemms(), quantized(), integer_products(), contributed(), contributed_quantized()].concat()
}

fn products() -> Vec<Case> {
    let matmul = |a: &[i64], b: &[i64]| case("MatMul", 7, 26).x(f(a)).x(f(b));
    vec![
        matmul(&[2, 3, 5, 4], &[4, 6]).variant("by a matrix"),
        matmul(&[2, 3, 4], &[4]).variant("by a vector"),
        matmul(&[4], &[2, 3, 4, 5]).variant("of a vector"),
        matmul(&[2, 3, 4, 5], &[2, 3, 5, 6]).variant("in a batch"),
        matmul(&[2, 1, 3, 4], &[5, 4, 6]).variant("of batches that broadcast"),
        matmul(&[4], &[4]).variant("of vectors"),
    ]
}

fn gemms() -> Vec<Case> {
    let mut cases = Vec::new();
    for (variant, a, b, ta, tb) in [
        ("plain", [3, 4], [4, 5], 0, 0),
        ("left transposed", [4, 3], [4, 5], 1, 0),
        ("right transposed", [3, 4], [5, 4], 0, 1),
        ("both transposed", [4, 3], [5, 4], 1, 1),
    ] {
        let gemm = || case("Gemm", 7, 26).variant(variant).int("transA", ta).int("transB", tb).x(f(&a)).x(f(&b));
        cases.push(gemm().x(f(&[5])));
        cases.push(gemm().x(f(&[3, 1])));
        cases.push(gemm().x(float(0.5)));
    }
    cases.push(case("Gemm", 11, 26).variant("without a sum").x(f(&[3, 4])).x(f(&[4, 5])));
    cases
}

fn quantized() -> Vec<Case> {
    let scales = |n: i64| fr(&[n], 0.05, 0.2);
    vec![
        case("QuantizeLinear", 10, 26).x(fr(&[2, 3, 4], -5.0, 5.0)).c(float(0.1)).c(byte(100)),
        case("QuantizeLinear", 13, 26)
            .variant("by channel")
            .int("axis", 1)
            .x(fr(&[2, 3, 4], -5.0, 5.0))
            .x(scales(3))
            .x(u8s(&[3])),
        case("QuantizeLinear", 13, 26)
            .variant("of the last axis")
            .int("axis", -1)
            .x(fr(&[2, 3, 4], 0.0, 5.0))
            .x(scales(4)),
        case("QuantizeLinear", 21, 26)
            .variant("in blocks")
            .int("axis", 1)
            .int("block_size", 2)
            .x(fr(&[2, 4, 3], 0.0, 5.0))
            .x(fr(&[2, 2, 3], 0.05, 0.2))
            .x(u8s(&[2, 2, 3])),
        case("DequantizeLinear", 10, 26).x(u8s(&[2, 3, 4])).c(float(0.1)).c(byte(100)),
        case("DequantizeLinear", 13, 26)
            .variant("by channel")
            .int("axis", -1)
            .x(u8s(&[2, 3, 4]))
            .x(scales(4))
            .x(u8s(&[4])),
        case("DequantizeLinear", 21, 26)
            .variant("in blocks")
            .int("axis", 2)
            .int("block_size", 2)
            .x(u8s(&[2, 3, 4]))
            .x(fr(&[2, 3, 2], 0.05, 0.2)),
        case("DynamicQuantizeLinear", 11, 26).x(f(&[2, 3, 4])).results(3),
        microsoft("QuantizeLinear").int("axis", 1).x(fr(&[2, 3, 4], 0.0, 5.0)).x(scales(3)).x(u8s(&[3])),
        microsoft("QuantizeLinear").variant("by tensor").x(fr(&[2, 3, 4], 0.0, 5.0)).c(float(0.1)).c(byte(3)),
        microsoft("DequantizeLinear").int("axis", 2).x(u8s(&[2, 3, 4])).x(scales(4)).x(u8s(&[4])),
        microsoft("DequantizeLinear").variant("by tensor").x(u8s(&[2, 3, 4])).c(float(0.1)).c(byte(3)),
    ]
}

/// A scale per row.
fn scales() -> Spec {
    exact(&[6], Data::F32(vec![0.01, 0.02, 0.03, 0.04, 0.05, 0.06]))
}

fn integer_products() -> Vec<Case> {
    let q = |case: Case| case.c(float(0.05)).c(byte(100));
    let q_matmul = |a: &[i64], b: &[i64]| q(q(q(case("QLinearMatMul", 10, 26).x(u8s(a))).x(u8s(b))));
    let q_conv = || q(case("QLinearConv", 10, 26).x(u8s(&[2, 4, 5, 3])));
    vec![
        q_matmul(&[2, 3, 4], &[4, 5]).variant("by a matrix"),
        q_matmul(&[2, 3, 4], &[2, 4, 5]).variant("in a batch"),
        q(q_conv().x(u8s(&[6, 4, 2, 2])).c(float(0.02)).c(byte(90))).variant("plain"),
        q(q_conv().x(i8s(&[6, 2, 2, 2])).x(scales()).c(exact(&[6], Data::I8(vec![0; 6]))))
            .variant("by channel, in groups")
            .int("group", 2)
            .x(exact(&[6], Data::I32(vec![10, -20, 30, -40, 50, 60]))),
        case("ConvInteger", 10, 26).x(u8s(&[2, 3, 5, 4])).x(u8s(&[4, 3, 2, 2])).c(byte(90)).c(byte(80)),
        case("MatMulInteger", 10, 26).x(u8s(&[2, 3, 4])).x(u8s(&[4, 5])).c(byte(90)).c(byte(80)),
        case("MatMulInteger", 10, 26).variant("in a batch").x(u8s(&[2, 3, 4])).x(u8s(&[2, 4, 5])),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn contributed() -> Vec<Case> {
    vec![
        microsoft("Gelu").x(f(&[2, 3, 4])),
        microsoft("QuickGelu").x(f(&[2, 3, 4])),
        microsoft("FastGelu").x(f(&[2, 3, 4])).x(f(&[4])),
        microsoft("FastGelu").variant("without bias").x(f(&[2, 3, 4])),
        microsoft("BiasGelu").x(f(&[2, 3, 4])).x(f(&[4])),
        microsoft("FusedMatMul").x(f(&[2, 3, 4])).x(f(&[2, 4, 5])).num("alpha", 0.5),
        microsoft("FusedMatMul").variant("right transposed").int("transB", 1).x(f(&[2, 6, 3, 4])).x(f(&[2, 6, 5, 4])),
        microsoft("FusedMatMul").variant("by a transposed matrix").int("transB", 1).x(f(&[2, 6, 3, 4])).x(f(&[5, 4])),
        microsoft("FusedMatMul").variant("left transposed").int("transA", 1).x(f(&[2, 6, 4, 3])).x(f(&[2, 6, 4, 5])),
        microsoft("FusedMatMul")
            .variant("both transposed")
            .int("transA", 1)
            .int("transB", 1)
            .x(f(&[2, 6, 4, 3]))
            .x(f(&[2, 6, 5, 4])),
        microsoft("FusedMatMul")
            .variant("with a batch inside")
            .int("transBatchA", 1)
            .int("transBatchB", 1)
            .x(f(&[3, 2, 4]))
            .x(f(&[4, 2, 5]))
            .opaque("moves batch axes"),
        microsoft("TransposeMatMul").int("transB", 1).x(f(&[2, 3, 4])).x(f(&[2, 5, 4])),
        microsoft("FusedConv").text("activation", "Relu").x(f(&[2, 3, 5, 4])).x(f(&[4, 3, 2, 2])).x(f(&[4])),
        microsoft("FusedConv")
            .variant("with a sum")
            .x(f(&[2, 3, 5, 4]))
            .x(f(&[4, 3, 2, 2]))
            .x(f(&[4]))
            .x(f(&[2, 4, 4, 3])),
        microsoft("MatMulNBits")
            .int("K", 32)
            .int("N", 3)
            .int("bits", 4)
            .int("block_size", 16)
            .x(f(&[2, 5, 32]))
            .c(u8s(&[3, 2, 8]))
            .c(fr(&[6], 0.1, 0.2)),
        microsoft("MultiHeadAttention")
            .partial()
            .int("num_heads", 2)
            .x(f(&[2, 3, 8]))
            .x(f(&[2, 5, 8]))
            .x(f(&[2, 5, 8])),
        microsoft("Attention").partial().int("num_heads", 2).x(f(&[2, 3, 8])).x(f(&[8, 24])).x(f(&[24])),
        microsoft("GroupQueryAttention")
            .partial()
            .int("num_heads", 2)
            .int("kv_num_heads", 1)
            .x(f(&[2, 3, 16]))
            .x(f(&[2, 3, 8]))
            .x(f(&[2, 3, 8]))
            .none()
            .none()
            .x(exact(&[2], Data::I32(vec![2, 2])))
            .c(exact(&[1], Data::I32(vec![3])))
            .results(3),
        microsoft("RotaryEmbedding")
            .x(f(&[1, 3, 8]))
            .x(exact(&[1, 3], Data::I64(vec![0, 1, 2])))
            .x(f(&[8, 4]))
            .x(f(&[8, 4])),
        microsoft("SkipLayerNormalization").x(f(&[2, 3, 4])).x(f(&[2, 3, 4])).x(f(&[4])).x(f(&[4])),
        microsoft("SkipLayerNormalization")
            .variant("of repeated rows")
            .x(f(&[2, 3, 4]))
            .x(f(&[3, 4]))
            .x(f(&[4]))
            .x(f(&[4]))
            .x(f(&[4])),
        microsoft("SkipSimplifiedLayerNormalization").x(f(&[2, 3, 4])).x(f(&[2, 3, 4])).x(f(&[4])),
    ]
}

fn contributed_quantized() -> Vec<Case> {
    let q = |case: Case| case.c(float(0.05)).c(byte(100));
    let pool = |op| q(q(microsoft(op).x(u8s(&[2, 3, 4, 5]))));
    let pooled = || pool("QLinearAveragePool").list("kernel_shape", &[2, 2]).list("strides", &[2, 1]);
    vec![
        q(q(q(microsoft("QLinearAdd").x(u8s(&[2, 3, 4]))).x(u8s(&[3, 1])))),
        q(q(q(microsoft("QLinearMul").x(u8s(&[2, 3, 4]))).x(u8s(&[4])))),
        q(q(microsoft("QLinearSigmoid").x(u8s(&[2, 3, 4])))),
        q(q(microsoft("QLinearLeakyRelu").x(u8s(&[2, 3, 4])))).num("alpha", 0.1),
        q(q(microsoft("QLinearSoftmax").x(u8s(&[2, 3, 4])))).int("axis", -1).int("opset", 13),
        q(q(q(microsoft("QLinearConcat")).x(u8s(&[2, 3, 4]))).x(u8s(&[2, 5, 4]))).int("axis", 1),
        q(q(microsoft("QLinearConv").x(u8s(&[2, 5, 3, 4]))).x(u8s(&[6, 4, 2, 2])).c(float(0.02)).c(byte(90)))
            .int("channels_last", 1),
        q(q(microsoft("QLinearConv").x(u8s(&[2, 4, 5, 3])))
            .x(i8s(&[6, 2, 2, 2]))
            .x(scales())
            .c(exact(&[6], Data::I8(vec![0; 6]))))
        .variant("with channels first, in groups")
        .int("group", 2),
        microsoft("NhwcMaxPool").list("kernel_shape", &[2, 2]).x(u8s(&[2, 5, 4, 3])),
        pooled(),
        pooled().variant("with channels last").int("channels_last", 1),
        pool("QLinearGlobalAveragePool").int("channels_last", 0),
        pool("QLinearGlobalAveragePool").variant("with channels last").int("channels_last", 1),
    ]
}
