//! Pad lanes: figures, and soundness against sampled values.

use proptest::prelude::*;
use relayout_ir::layout::pad::{BinaryFn, Lane, LaneFormat, UnaryFn};

/// Whether everything that `a` allows, `b` allows too.
fn is_within(a: Lane, b: Lane) -> bool {
    a.join(b) == b
}

fn interval(lo: f64, hi: f64) -> Lane {
    Lane::interval(lo, hi)
}

#[test]
fn zeros_go_through_functions_as_the_table_says() {
    let cases = [
        (UnaryFn::Relu, Lane::ZERO),
        (UnaryFn::LeakyRelu(0.1), Lane::ZERO),
        (UnaryFn::Abs, Lane::ZERO),
        (UnaryFn::Neg, Lane::ZERO),
        (UnaryFn::Sqrt, Lane::ZERO),
        (UnaryFn::Tanh, Lane::ZERO),
        (UnaryFn::Silu, Lane::ZERO),
        (UnaryFn::Gelu, Lane::ZERO),
        (UnaryFn::HardSwish, Lane::ZERO),
        (UnaryFn::Clip(0.0, 6.0), Lane::ZERO),
        (UnaryFn::Clip(1.0, 6.0), Lane::Const(1.0)),
        (UnaryFn::Sigmoid, Lane::Const(0.5)),
        (UnaryFn::HardSigmoid(0.2, 0.5), Lane::Const(0.5)),
        (UnaryFn::Exp, Lane::Const(1.0)),
        (UnaryFn::Cos, Lane::Const(1.0)),
        (UnaryFn::Reciprocal, Lane::Any),
        (UnaryFn::Log, Lane::Any),
    ];
    for (function, expected) in cases {
        assert_eq!(Lane::ZERO.unary(function, LaneFormat::F16), expected, "{function:?}");
    }
    assert_eq!(interval(-1.0, 2.0).unary(UnaryFn::Reciprocal, LaneFormat::F32), Lane::Any);
    assert!(interval(0.0, 2.0).unary(UnaryFn::Exp, LaneFormat::F16).is_finite());
    assert_eq!(interval(0.0, 20.0).unary(UnaryFn::Exp, LaneFormat::F16), Lane::Any, "exp(20) overflows half precision");
    assert_eq!(Lane::Any.unary(UnaryFn::Relu, LaneFormat::F32), Lane::Any, "NaN goes through relu");
    assert!(is_within(Lane::Any.unary(UnaryFn::Relu, LaneFormat::integer(8, true)), interval(0.0, 127.0)));
}

#[test]
fn pairs_of_lanes_go_through_functions_as_the_table_says() {
    let cases = [
        (Lane::ZERO, BinaryFn::Add, Lane::Const(0.3), Lane::Const(0.3)),
        (Lane::ZERO, BinaryFn::Mul, interval(-5.0, 5.0), Lane::ZERO),
        (Lane::ZERO, BinaryFn::Mul, Lane::Any, Lane::Any),
        (Lane::ZERO, BinaryFn::Div, Lane::Const(1.0), Lane::ZERO),
        (Lane::ZERO, BinaryFn::Div, Lane::ZERO, Lane::Any),
        (Lane::Const(3.0), BinaryFn::Sub, Lane::Const(3.0), Lane::ZERO),
        (Lane::Const(2.0), BinaryFn::Max, interval(0.0, 5.0), interval(2.0, 5.0)),
        (Lane::ZERO, BinaryFn::Pow, Lane::Const(2.0), Lane::ZERO),
        (interval(-1.0, 1.0), BinaryFn::Pow, Lane::Const(0.5), Lane::Any),
        (Lane::Const(60000.0), BinaryFn::Add, Lane::Const(60000.0), Lane::Any),
    ];
    for (left, function, right, expected) in cases {
        assert_eq!(left.binary(function, right, LaneFormat::F16), expected, "{left} {function:?} {right}");
    }
}

#[test]
fn what_is_not_finite_or_not_ordered_is_any() {
    assert_eq!(Lane::constant(f64::NAN), Lane::Any);
    assert_eq!(Lane::interval(1.0, 0.0), Lane::Any);
    assert_eq!(Lane::interval(0.0, f64::INFINITY), Lane::Any);
    assert_eq!(Lane::constant(-0.0).to_string(), "const(0)");
}

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![
        (-8i32..=8).prop_map(|v| Lane::constant(f64::from(v) / 2.0)),
        (-100.0f64..100.0, 0.0f64..50.0).prop_map(|(lo, span)| Lane::interval(lo, lo + span)),
        Just(Lane::Any),
    ]
}

fn function() -> impl Strategy<Value = UnaryFn> {
    use UnaryFn as F;
    prop::sample::select(vec![
        F::Relu,
        F::LeakyRelu(0.1),
        F::Elu(1.0),
        F::Clip(0.0, 6.0),
        F::Clip(-0.7, 0.7),
        F::Abs,
        F::Neg,
        F::Sqrt,
        F::Reciprocal,
        F::Exp,
        F::Log,
        F::Sigmoid,
        F::HardSigmoid(0.2, 0.5),
        F::Tanh,
        F::Softsign,
        F::Softplus,
        F::Silu,
        F::HardSwish,
        F::Mish,
        F::Sin,
        F::Cos,
        F::Floor,
        F::Ceil,
        F::Round,
        F::Sign,
    ])
}

/// The function in single precision, as a runtime computes it.
fn run(function: UnaryFn, x: f32) -> f32 {
    use UnaryFn as F;
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    match function {
        F::Relu => x.max(0.0),
        F::LeakyRelu(a) => {
            if x < 0.0 {
                a as f32 * x
            } else {
                x
            }
        }
        F::Elu(a) => {
            if x < 0.0 {
                a as f32 * x.exp_m1()
            } else {
                x
            }
        }
        F::Clip(lo, hi) => x.max(lo as f32).min(hi as f32),
        F::Abs => x.abs(),
        F::Neg => -x,
        F::Sqrt => x.sqrt(),
        F::Reciprocal => 1.0 / x,
        F::Exp => x.exp(),
        F::Log => x.ln(),
        F::Sigmoid => sigmoid(x),
        F::HardSigmoid(a, b) => (a as f32 * x + b as f32).clamp(0.0, 1.0),
        F::Tanh => x.tanh(),
        F::Softsign => x / (1.0 + x.abs()),
        F::Softplus => {
            if x > 20.0 {
                x
            } else {
                x.exp().ln_1p()
            }
        }
        F::Silu => x * sigmoid(x),
        F::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        F::Mish => x * (if x > 20.0 { x } else { x.exp().ln_1p() }).tanh(),
        F::Sin => x.sin(),
        F::Cos => x.cos(),
        F::Floor => x.floor(),
        F::Ceil => x.ceil(),
        F::Round => x.round_ties_even(),
        F::Sign => {
            if x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        _ => x,
    }
}

#[allow(clippy::float_cmp, reason = "a constant is exact")]
fn holds(lane: Lane, value: f32) -> bool {
    match lane {
        Lane::Any => true,
        Lane::Const(c) => f64::from(value) == c,
        Lane::Interval { lo, hi } => lo <= f64::from(value) && f64::from(value) <= hi,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn join_is_the_least_upper_bound(a in lane(), b in lane(), c in lane()) {
        let join = a.join(b);
        prop_assert_eq!(join, b.join(a));
        prop_assert!(is_within(a, join) && is_within(b, join));
        prop_assert_eq!(a.join(a), a);
        prop_assert_eq!(join.join(c), a.join(b.join(c)));
        if is_within(a, c) && is_within(b, c) {
            prop_assert!(is_within(join, c));
        }
    }

    #[test]
    fn an_image_holds_the_result_of_each_value(lane in lane(), at in 0.0f64..=1.0, function in function()) {
        let Some((lo, hi)) = lane.bounds() else { return Ok(()) };
        let value = (lo + at * (hi - lo)) as f32;
        prop_assume!(holds(lane, value));
        let image = lane.unary(function, LaneFormat::F32);
        prop_assert!(holds(image, run(function, value)), "{:?}({}) = {} not in {}", function, value, run(function, value), image);
    }

    #[test]
    fn an_image_of_two_holds_the_result_of_each_pair(a in lane(), b in lane(), s in 0.0f64..=1.0, t in 0.0f64..=1.0) {
        let (Some(p), Some(q)) = (a.bounds(), b.bounds()) else { return Ok(()) };
        let (x, y) = ((p.0 + s * (p.1 - p.0)) as f32, (q.0 + t * (q.1 - q.0)) as f32);
        prop_assume!(holds(a, x) && holds(b, y));
        let functions: [(BinaryFn, f32); 7] = [
            (BinaryFn::Add, x + y), (BinaryFn::Sub, x - y), (BinaryFn::Mul, x * y), (BinaryFn::Div, x / y),
            (BinaryFn::Min, x.min(y)), (BinaryFn::Max, x.max(y)), (BinaryFn::Pow, x.powf(y)),
        ];
        for (function, result) in functions {
            let image = a.binary(function, b, LaneFormat::F32);
            prop_assert!(holds(image, result), "{} {:?} {} = {} not in {}", x, function, y, result, image);
        }
    }

    #[test]
    fn images_are_monotone(a in lane(), b in lane(), function in function()) {
        let wide = a.join(b).unary(function, LaneFormat::F32);
        prop_assert!(is_within(a.unary(function, LaneFormat::F32), wide));
    }
}
