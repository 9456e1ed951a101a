//! Laws and figures of symbolic extents.

use std::collections::BTreeSet;

use proptest::prelude::*;
use relayout_ir::dim::{Dim, MAX_DEPTH, ParseDimError};

fn parse(text: &str) -> Dim {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn equal_expressions_have_one_form_and_one_text() {
    let cases = [
        ("3", "3"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("N", "N"),
        ("H*W*2+1", "2*H*W+1"),
        ("(H-1)//2+1", "(H+1)//2"),
        ("(H+1)//2", "(H+1)//2"),
        ("(2*H+4)//2", "H+2"),
        ("(4*H+6)//8", "(H+1)//2"),
        ("(2*H+3*W)//4", "(2*H+3*W)//4"),
        ("(2*H+2)//4", "(H+1)//2"),
        ("H//2//3", "H//6"),
        ("(H//2+1)//3", "(H+2)//6"),
        ("2*(H//2)", "2*(H//2)"),
        ("N-N", "0"),
        ("H*(W+1)-H*W", "H"),
        ("(H//2)^2", "(H//2)^2"),
        ("-(H//2)", "-(H//2)"),
        ("B*H - 3*B + ?7", "B*H-3*B+?7"),
        ("`batch size`*2", "2*`batch size`"),
        ("`a``b`", "`a``b`"),
        ("``", "``"),
        ("`N`", "N"),
        ("H^3", "H^3"),
        ("-H^2", "-H^2"),
        ("(N+M)*(N-M)", "-M^2+N^2"),
        ("7//2", "3"),
        ("-7//2", "-4"),
    ];
    for (text, form) in cases {
        assert_eq!(parse(text).to_string(), form, "{text}");
        assert_eq!(parse(form), parse(text));
    }
}

#[test]
fn wrong_text_says_where_and_why() {
    let deep = format!("{}N{}", "(".repeat(500), ")".repeat(500));
    for text in
        ["", "N+", "N M", "2**3", "(N", "N//0", "N//M", "?", "`N", "9223372036854775808", "N^99", "N^", &deep, "é"]
    {
        let wrong = text.parse::<Dim>();
        assert!(wrong.is_err(), "{text} was read as {wrong:?}");
    }
    let wrong = "N+*".parse::<Dim>();
    assert!(matches!(wrong, Err(ParseDimError::Expected { at: 2, .. })), "{wrong:?}");
}

#[test]
fn only_whole_polynomials_divide() {
    let cases = [
        ("2*H*W", "H", Some("2*W")),
        ("2*H*W+4*H", "2*H", Some("W+2")),
        ("N", "2", None),
        ("N*M+1", "N", None),
        ("N^2-M^2", "N+M", Some("N-M")),
        ("B*((H+1)//2)", "(H+1)//2", Some("B")),
        ("6", "4", None),
        ("0", "N", Some("0")),
        ("5", "0", None),
        ("N", "N", Some("1")),
        ("3", "N", None),
    ];
    for (whole, part, quotient) in cases {
        assert_eq!(parse(whole).exact_div(&parse(part)), quotient.map(parse), "{whole} / {part}");
    }
}

#[test]
fn arithmetic_that_does_not_fit_is_none() {
    let max = Dim::from(i64::MAX);
    assert_eq!(max.checked_add(&Dim::ONE), None);
    assert_eq!(max.checked_mul(&Dim::from(2)), None);
    assert_eq!(Dim::from(i64::MIN).checked_sub(&Dim::ONE), None);
    assert_eq!(Dim::from(i64::MIN).exact_div(&Dim::from(-1)), None);
    assert_eq!(max.checked_ceil_div(2), Some(Dim::from(i64::MAX / 2 + 1)));
    assert_eq!(parse("N").floor_div(0), None);
    assert_eq!(parse("9223372036854775807*N").checked_add(&parse("N")), None);
    assert_eq!(parse("N").eval(&|_| None), None);
    assert_eq!(parse("N^2").eval(&|_| Some(i64::MAX)), None);
    let sum = (0..300).try_fold(Dim::ZERO, |sum, id| sum.checked_add(&Dim::unknown(id)));
    assert_eq!(sum, None, "300 terms pass the cap");
    assert_eq!(Dim::product(&vec![parse("N"); 65]), None, "degree 65 passes the cap");
}

#[test]
fn names_are_listed_and_replaced() {
    let dim = parse("N*((H+?3)//2)+1");
    assert_eq!(dim.symbols(), BTreeSet::from(["?3", "H", "N"].map(String::from)));
    let replaced = dim.substitute(&|name| (name == "H").then(|| Dim::from(5)));
    assert_eq!(replaced, Some(parse("N*((5+?3)//2)+1")));
    assert_eq!(parse("N").as_symbol(), Some("N"));
    assert_eq!(parse("2*N").as_symbol(), None);
}

#[derive(Debug, Clone)]
enum Expr {
    Const(i64),
    Name(usize),
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    Floor(Box<Expr>, i64),
    Ceil(Box<Expr>, i64),
}

const NAMES: [&str; 4] = ["N", "H", "odd name`", "w_1"];

impl Expr {
    fn dim(&self) -> Option<Dim> {
        match self {
            Expr::Const(value) => Some(Dim::from(*value)),
            Expr::Name(at) => Some(Dim::symbol(NAMES[*at])),
            Expr::Add(a, b) => a.dim()?.checked_add(&b.dim()?),
            Expr::Sub(a, b) => a.dim()?.checked_sub(&b.dim()?),
            Expr::Mul(a, b) => a.dim()?.checked_mul(&b.dim()?),
            Expr::Floor(a, k) => a.dim()?.checked_floor_div(*k),
            Expr::Ceil(a, k) => a.dim()?.checked_ceil_div(*k),
        }
    }

    fn value(&self, values: &[i64; 4]) -> i128 {
        match self {
            Expr::Const(value) => i128::from(*value),
            Expr::Name(at) => i128::from(values[*at]),
            Expr::Add(a, b) => a.value(values) + b.value(values),
            Expr::Sub(a, b) => a.value(values) - b.value(values),
            Expr::Mul(a, b) => a.value(values) * b.value(values),
            Expr::Floor(a, k) => a.value(values).div_euclid(i128::from(*k)),
            Expr::Ceil(a, k) => -(-a.value(values)).div_euclid(i128::from(*k)),
        }
    }
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![(-9i64..=9).prop_map(Expr::Const), (0usize..4).prop_map(Expr::Name)];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let pair = (inner.clone(), inner.clone()).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
        prop_oneof![
            pair.clone().prop_map(|(a, b)| Expr::Add(a, b)),
            pair.clone().prop_map(|(a, b)| Expr::Sub(a, b)),
            pair.prop_map(|(a, b)| Expr::Mul(a, b)),
            (inner.clone(), 1i64..=6).prop_map(|(a, k)| Expr::Floor(Box::new(a), k)),
            (inner, 1i64..=6).prop_map(|(a, k)| Expr::Ceil(Box::new(a), k)),
        ]
    })
}

fn values() -> impl Strategy<Value = [i64; 4]> {
    [-20i64..=20, -20i64..=20, -20i64..=20, -20i64..=20]
}

fn at(values: [i64; 4]) -> impl Fn(&str) -> Option<i64> {
    move |name| NAMES.iter().position(|have| *have == name).map(|at| values[at])
}

proptest! {
    #[test]
    fn the_form_has_the_value_of_the_expression(expr in expr(), values in values()) {
        let Some(dim) = expr.dim() else { return Ok(()) };
        if let Some(value) = dim.eval(&at(values)) {
            prop_assert_eq!(i128::from(value), expr.value(&values), "{}", dim);
        }
    }

    #[test]
    fn text_and_json_read_back(expr in expr()) {
        let Some(dim) = expr.dim() else { return Ok(()) };
        prop_assert_eq!(dim.to_string().parse::<Dim>(), Ok(dim.clone()));
        let json = serde_json::to_string(&dim).unwrap();
        prop_assert_eq!(serde_json::from_str::<Dim>(&json).unwrap(), dim);
    }

    #[test]
    fn arithmetic_obeys_the_laws_of_rings(a in expr(), b in expr(), c in expr()) {
        let (Some(a), Some(b), Some(c)) = (a.dim(), b.dim(), c.dim()) else { return Ok(()) };
        prop_assert_eq!(a.checked_add(&b), b.checked_add(&a));
        prop_assert_eq!(a.checked_mul(&b), b.checked_mul(&a));
        if let (Some(sum), Some(ab), Some(ac)) = (b.checked_add(&c), a.checked_mul(&b), a.checked_mul(&c)) {
            if let (Some(left), Some(right)) = (a.checked_mul(&sum), ab.checked_add(&ac)) {
                prop_assert_eq!(left, right);
            }
            if b != Dim::ZERO && a != Dim::ZERO {
                prop_assert_eq!(ab.exact_div(&b), Some(a.clone()));
            }
        }
        prop_assert_eq!(a.checked_sub(&a), Some(Dim::ZERO));
        if let Some(shifted) = a.checked_mul(&Dim::from(6)).and_then(|x| x.checked_add(&Dim::from(4))) {
            prop_assert_eq!(shifted.floor_div(6), Some(a));
        }
    }
}

#[test]
fn divisions_within_divisions_do_not_grow_without_bounds() {
    // What is divided stands twice in what is divided next.
    let mut text = "H".to_owned();
    let mut refused = 0;
    for _ in 0..MAX_DEPTH - 2 {
        text = format!("(W*({text})+{text}+1)//3");
        if text.len() > 1 << 16 {
            break;
        }
        match text.parse::<Dim>() {
            Ok(dim) => assert!(dim.to_string().len() < 1 << 16, "{} bytes", dim.to_string().len()),
            Err(e) => refused += usize::from(e.to_string().ends_with("4096 terms and names, 32 levels of nesting)")),
        }
    }
    assert!(refused > 0);
    let mut dim = Dim::symbol("H");
    let steps = (0..MAX_DEPTH).take_while(|_| {
        let next = dim.checked_mul(&Dim::symbol("W")).and_then(|of| of.checked_add(&dim));
        let next = next.and_then(|of| of.checked_add(&Dim::ONE)).and_then(|of| of.checked_floor_div(3));
        next.map(|next| dim = next).is_some()
    });
    assert!((5..20).contains(&steps.count()));
}
