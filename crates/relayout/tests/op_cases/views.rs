//! Views, shapes, and what stays opaque whatever its operands.

use super::case::{Case, case, exact, f, float, fr, i64s, ints};
use relayout_verify::Data;

pub(crate) fn cases() -> Vec<Case> {
    [views(), shapes(), recurrent(), opaque(), random()].concat()
}

fn views() -> Vec<Case> {
    vec![
        case("Identity", 7, 26).x(f(&[2, 3, 4])),
        case("Transpose", 7, 26).x(f(&[2, 3, 4])),
        case("Transpose", 7, 26).variant("to NHWC").list("perm", &[0, 2, 3, 1]).x(f(&[2, 3, 4, 5])),
        case("Transpose", 7, 26).variant("of integers").c(exact(&[2, 2], Data::I64(vec![1, 2, 3, 4]))),
        case("Reshape", 7, 26).x(f(&[2, 3, 4])).c(ints(&[6, 4])),
        case("Reshape", 7, 26).variant("with a rest").x(f(&[2, 3, 4])).c(ints(&[0, -1, 2, 2])),
        case("Reshape", 7, 26).variant("to size-1 axes").x(f(&[2, 3, 4])).c(ints(&[2, 1, 3, 4, 1])),
        case("Flatten", 7, 26).x(f(&[2, 3, 4])),
        case("Flatten", 11, 26).variant("from the end").int("axis", -1).x(f(&[2, 3, 4])),
        case("Squeeze", 7, 12).list("axes", &[0, 2]).x(f(&[1, 3, 1, 4])),
        case("Squeeze", 13, 26).x(f(&[1, 3, 1, 4])).c(ints(&[0, -2])),
        case("Squeeze", 7, 26).variant("of all").x(f(&[1, 3, 1, 4])),
        case("Unsqueeze", 7, 12).list("axes", &[1, 3]).x(f(&[2, 3, 4])),
        case("Unsqueeze", 13, 26).x(f(&[2, 3, 4])).c(ints(&[-1, 0])),
    ]
}

fn shapes() -> Vec<Case> {
    vec![
        case("Shape", 7, 26).x(f(&[2, 3, 4])),
        case("Shape", 15, 26).variant("of some axes").int("start", 1).x(f(&[2, 3, 4])),
        case("Shape", 15, 26).variant("from the end").int("start", -3).int("end", -1).x(f(&[2, 3, 4])),
        case("Size", 7, 26).x(f(&[2, 3, 4])),
    ]
}

fn recurrent() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, gates, results) in [("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3)] {
        let cell = |d: i64| {
            case(op, 7, 26).int("hidden_size", 3).x(f(&[4, 2, 5])).x(f(&[d, gates * 3, 5])).x(f(&[d, gates * 3, 3]))
        };
        cases.push(cell(1).results(results));
        cases.push(
            cell(1)
                .variant("with initial state")
                .x(f(&[1, gates * 6]))
                .x(exact(&[2], Data::I32(vec![4, 2])))
                .x(f(&[1, 2, 3]))
                .results(results),
        );
        cases.push(cell(2).variant("both ways").text("direction", "bidirectional").results(results));
    }
    cases
}

fn opaque() -> Vec<Case> {
    vec![
        case("Einsum", 12, 26).text("equation", "bij,bjk->bik").x(f(&[2, 3, 4])).x(f(&[2, 4, 5])),
        case("Einsum", 12, 26).variant("of one operand").text("equation", "b i j -> b j").x(f(&[2, 3, 4])),
        case("Einsum", 12, 26)
            .variant("that implies its result")
            .text("equation", "bhqd,bhkd")
            .x(f(&[2, 3, 4, 5]))
            .x(f(&[2, 3, 6, 5])),
        case("Einsum", 12, 26).variant("that transposes").text("equation", "ij,jk->ki").x(f(&[3, 4])).x(f(&[4, 5])),
        case("Einsum", 12, 26).variant("of a diagonal").text("equation", "bii->bi").x(f(&[2, 3, 3])),
        case("Einsum", 12, 26).variant("that only transposes").text("equation", "abc->cab").x(f(&[2, 3, 4])),
        case("Einsum", 12, 26)
            .variant("with ellipses")
            .text("equation", "...ij,...kj->...ki")
            .x(f(&[2, 3, 4, 5]))
            .x(f(&[2, 3, 6, 5])),
        case("Einsum", 12, 26)
            .variant("with an ellipsis in one operand")
            .text("equation", "...ij,jk->...ik")
            .x(f(&[2, 4, 5]))
            .x(f(&[5, 3])),
        case("Einsum", 12, 26)
            .variant("with an empty ellipsis")
            .text("equation", "...ij,...jk")
            .x(f(&[4, 5]))
            .x(f(&[5, 3])),
        case("Einsum", 12, 26)
            .variant("of three operands")
            .text("equation", "bi,ij,bj->b")
            .x(f(&[2, 3]))
            .x(f(&[3, 4]))
            .x(f(&[2, 4])),
        case("TensorScatter", 24, 26).x(f(&[2, 3, 4])).x(f(&[2, 1, 4])).x(i64s(&[2], 0, 2)),
        case("TensorScatter", 24, 26)
            .variant("in a ring, of axis 1")
            .int("axis", 1)
            .text("mode", "circular")
            .x(f(&[2, 3, 4, 2]))
            .x(f(&[2, 2, 4, 2]))
            .x(i64s(&[2], 0, 3)),
        case("CumProd", 26, 26).x(fr(&[2, 3], 0.5, 2.0)).c(exact(&[], Data::I64(vec![1]))),
        case("Bernoulli", 15, 21).x(float(1.0)),
    ]
}

/// With a seed, which every session starts from: two runs are equal.
fn random() -> Vec<Case> {
    let seeded = |op| case(op, 7, 21).num("seed", 3.0);
    vec![
        seeded("RandomNormal").list("shape", &[2, 3, 4]),
        seeded("RandomUniform").list("shape", &[2, 3, 4]),
        seeded("RandomNormalLike").x(f(&[2, 3, 4])),
        seeded("RandomUniformLike").x(f(&[2, 3, 4])),
        seeded("Multinomial").int("sample_size", 4).x(f(&[2, 3])),
    ]
}
