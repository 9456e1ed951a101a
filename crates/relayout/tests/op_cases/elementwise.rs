//! Element-wise ops and what selects by element.

use super::case::{Case, bools, case, exact, f, float, fr, i8s, i64s, ints, u8s};
use relayout_verify::Data;

const SHAPE: &[i64] = &[2, 3, 4];

/// Ops of one operand: the first version that runtimes have, and the range of values they take.
const UNARY: &[(&str, i64, f32, f32)] = &[
    ("Abs", 7, -1.0, 1.0),
    ("Acos", 7, -1.0, 1.0),
    ("Acosh", 9, 1.0, 3.0),
    ("Asin", 7, -1.0, 1.0),
    ("Asinh", 9, -3.0, 3.0),
    ("Atan", 7, -3.0, 3.0),
    ("Atanh", 9, -0.9, 0.9),
    ("Ceil", 7, -3.0, 3.0),
    ("Celu", 12, -3.0, 3.0),
    ("Cos", 7, -3.0, 3.0),
    ("Cosh", 9, -3.0, 3.0),
    ("Elu", 7, -3.0, 3.0),
    ("Erf", 9, -3.0, 3.0),
    ("Exp", 7, -3.0, 3.0),
    ("Floor", 7, -3.0, 3.0),
    ("Gelu", 20, -3.0, 3.0),
    ("HardSigmoid", 7, -3.0, 3.0),
    ("HardSwish", 14, -3.0, 3.0),
    ("LeakyRelu", 7, -3.0, 3.0),
    ("Log", 7, 0.1, 3.0),
    ("Mish", 18, -3.0, 3.0),
    ("Neg", 7, -3.0, 3.0),
    ("Reciprocal", 7, 0.1, 3.0),
    ("Relu", 7, -3.0, 3.0),
    ("Round", 11, -3.0, 3.0),
    ("Selu", 7, -3.0, 3.0),
    ("Shrink", 9, -3.0, 3.0),
    ("Sigmoid", 7, -3.0, 3.0),
    ("Sign", 9, -3.0, 3.0),
    ("Sin", 7, -3.0, 3.0),
    ("Sinh", 9, -3.0, 3.0),
    ("Softplus", 7, -3.0, 3.0),
    ("Softsign", 7, -3.0, 3.0),
    ("Sqrt", 7, 0.1, 3.0),
    ("Tan", 7, -1.0, 1.0),
    ("Tanh", 7, -3.0, 3.0),
    ("ThresholdedRelu", 10, -3.0, 3.0),
    ("IsNaN", 9, -3.0, 3.0),
    ("IsInf", 10, -3.0, 3.0),
];

/// Ops of two operands of floats.
const BINARY: &[(&str, i64)] = &[
    ("Add", 7),
    ("Sub", 7),
    ("Mul", 7),
    ("Div", 7),
    ("Pow", 7),
    ("PRelu", 7),
    ("Equal", 11),
    ("Less", 7),
    ("Greater", 7),
];

/// Shapes that broadcast.
const BROADCAST: &[(&str, &[i64], &[i64])] = &[
    ("same shape", &[2, 3, 4], &[2, 3, 4]),
    ("a row", &[2, 3, 4], &[4]),
    ("a column of fewer axes", &[2, 3, 4], &[3, 1]),
    ("both ways", &[2, 1, 4, 1], &[3, 1, 5]),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &(op, first, low, high) in UNARY {
        cases.push(case(op, first, 26).x(fr(SHAPE, low, high)));
    }
    for &(op, first) in BINARY {
        for &(variant, a, b) in BROADCAST.iter().filter(|(v, ..)| op != "PRelu" || *v != "both ways") {
            cases.push(case(op, first, 26).variant(variant).x(fr(a, 0.5, 2.0)).x(fr(b, 0.5, 2.0)));
        }
    }
    cases.extend(integers());
    cases.extend(variadic());
    cases.extend(selecting());
    cases
}

fn integers() -> Vec<Case> {
    let (a, b) = (|| u8s(SHAPE), || u8s(&[3, 1]));
    let logic = |op, first| case(op, first, 26).x(bools(SHAPE)).x(bools(&[3, 1]));
    vec![
        case("BitwiseNot", 18, 26).x(a()),
        case("Not", 7, 26).x(bools(SHAPE)),
        case("BitShift", 11, 26).text("direction", "LEFT").x(a()).x(b()),
        case("BitwiseAnd", 18, 26).x(a()).x(b()),
        case("BitwiseOr", 18, 26).x(a()).x(b()),
        case("BitwiseXor", 18, 26).x(a()).x(b()),
        logic("And", 7),
        logic("Or", 7),
        logic("Xor", 7),
        case("Equal", 7, 26).variant("of integers").x(i64s(SHAPE, 0, 3)).x(i64s(&[3, 1], 0, 3)),
        case("GreaterOrEqual", 12, 26).x(f(SHAPE)).x(f(&[3, 1])),
        case("LessOrEqual", 12, 26).x(f(SHAPE)).x(f(&[3, 1])),
        case("Mod", 10, 26).x(i64s(SHAPE, -9, 9)).x(i64s(&[3, 1], 1, 5)),
        case("Mod", 10, 26).variant("of floats").int("fmod", 1).x(f(SHAPE)).x(fr(&[4], 0.2, 0.5)),
        case("Sub", 7, 26).variant("of a small constant").x(ints(&[5])).c(ints(&[2, 3])),
        case("Div", 7, 26).variant("of known integers").c(ints(&[7, -7, 8])).c(ints(&[2, 2, -3])),
        case("Mod", 10, 26).variant("of known integers").c(ints(&[7, -7, 8])).c(ints(&[2, 2, -3])),
    ]
}

fn variadic() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["Max", "Min", "Sum", "Mean"] {
        cases.push(case(op, 8, 26).variant("of three").x(f(&[2, 3, 4])).x(f(&[3, 1])).x(f(&[4])));
        cases.push(case(op, 8, 26).variant("of one").x(f(&[2, 3])));
        cases.push(case(op, 7, 7).variant("of equal shapes").x(f(&[2, 3])).x(f(&[2, 3])));
    }
    cases
}

fn selecting() -> Vec<Case> {
    let half = || exact(&[], Data::F32(vec![0.5]));
    vec![
        case("Cast", 7, 26).int("to", 6).x(fr(SHAPE, -9.0, 9.0)),
        case("Cast", 7, 26).variant("to bool").int("to", 9).x(i8s(SHAPE)),
        case("BitCast", 26, 26).int("to", 6).x(f(SHAPE)),
        case("CastLike", 15, 26).x(fr(SHAPE, -9.0, 9.0)).x(ints(&[0])),
        case("Clip", 7, 10).num("min", -0.5).num("max", 0.5).x(f(SHAPE)),
        case("Clip", 11, 26).x(f(SHAPE)).c(float(-0.5)).c(float(0.5)),
        case("Clip", 11, 26).variant("from above").x(f(SHAPE)).none().x(half()),
        case("Dropout", 7, 11).num("ratio", 0.3).x(f(SHAPE)),
        case("Dropout", 12, 26).x(f(SHAPE)).c(half()).results(2),
        case("Where", 9, 26).x(bools(SHAPE)).x(f(SHAPE)).x(f(SHAPE)),
        case("Where", 9, 26).variant("broadcast").x(bools(&[2, 1, 4])).x(f(&[3, 1])).x(f(&[4])),
    ]
}
