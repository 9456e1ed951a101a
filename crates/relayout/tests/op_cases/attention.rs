//! Attention of ONNX's own domain, and the rotation of its operands.

use super::case::{Case, case, f, i64s};

pub(crate) fn cases() -> Vec<Case> {
    [unpacked(), packed(), rotations()].concat()
}

fn unpacked() -> Vec<Case> {
    let attention = || case("Attention", 23, 26).x(f(&[2, 4, 3, 6])).x(f(&[2, 2, 5, 6])).x(f(&[2, 2, 5, 7]));
    vec![
        attention(),
        attention().variant("that is causal").int("is_causal", 1),
        attention().variant("with a mask of two axes").x(f(&[3, 5])),
        attention().variant("with a mask of three axes").x(f(&[4, 3, 5])),
        attention().variant("with a mask for each batch").x(f(&[2, 1, 3, 5])),
        attention().variant("with a cache").none().x(f(&[2, 2, 4, 6])).x(f(&[2, 2, 4, 7])).results(4),
        case("Attention", 24, 26)
            .variant("of keys of unequal number")
            .x(f(&[2, 4, 3, 6]))
            .x(f(&[2, 2, 5, 6]))
            .x(f(&[2, 2, 5, 7]))
            .none()
            .none()
            .none()
            .x(i64s(&[2], 2, 5)),
    ]
}

fn packed() -> Vec<Case> {
    let attention = || {
        case("Attention", 23, 26)
            .int("q_num_heads", 4)
            .int("kv_num_heads", 2)
            .x(f(&[2, 3, 24]))
            .x(f(&[2, 5, 12]))
            .x(f(&[2, 5, 14]))
    };
    vec![
        attention().variant("packed"),
        attention().variant("packed, with a mask of two axes").x(f(&[3, 5])),
        attention().variant("packed, with a mask of three axes").x(f(&[4, 3, 5])),
        attention().variant("packed, with a mask for each batch").x(f(&[2, 1, 3, 5])),
        attention().variant("packed, with a cache").none().x(f(&[2, 2, 4, 6])).x(f(&[2, 2, 4, 7])).results(4),
    ]
}

fn rotations() -> Vec<Case> {
    let rotary = |shape: &[i64]| case("RotaryEmbedding", 23, 26).x(f(shape));
    vec![
        rotary(&[2, 4, 3, 6]).x(f(&[8, 3])).x(f(&[8, 3])).x(i64s(&[2, 3], 0, 8)),
        rotary(&[2, 4, 3, 6]).variant("by the place of a token").x(f(&[2, 3, 3])).x(f(&[2, 3, 3])),
        rotary(&[2, 3, 24]).variant("packed").int("num_heads", 4).x(f(&[8, 3])).x(f(&[8, 3])).x(i64s(&[2, 3], 0, 8)),
        rotary(&[2, 3, 24])
            .variant("packed, by the place of a token")
            .int("num_heads", 4)
            .int("interleaved", 1)
            .x(f(&[2, 3, 3]))
            .x(f(&[2, 3, 3])),
    ]
}
