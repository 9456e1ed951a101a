//! Ops that leave an operand as it is or make one number of anything, and values one behind the other.

use super::volumes::ints;
use super::*;

/// A model in which `b` is whether `x` is positive, `i` its integers, and `y` what `line` makes as a float.
fn over(lines: &[Line<'_>]) -> Model {
    let given: &[Line<'_>] = &[
        ("b", "Greater", &["x", "zero"], vec![]),
        ("d", "Less", &["z", "zero"], vec![]),
        ("k", "Mul", &["x", "ten"], vec![]),
        ("i", "Cast", &["k"], vec![("to", Attr::Int(7))]),
        ("yes", "Cast", &["one"], vec![("to", Attr::Int(9))]),
        ("no", "Cast", &["zero"], vec![("to", Attr::Int(9))]),
        ("n", "Cast", &["zero"], vec![("to", Attr::Int(7))]),
        ("l", "Cast", &["one"], vec![("to", Attr::Int(7))]),
    ];
    let last: &[Line<'_>] = &[("y", "Cast", &["v"], vec![("to", Attr::Int(1))])];
    let all = [given, lines, last].concat();
    model(&all, &[("zero", &[], vec![0.0]), ("one", &[], vec![1.0]), ("ten", &[], vec![10.0])])
}

/// Lines that are the same as one op.
type Case = (Vec<Line<'static>>, Line<'static>);

fn op(name: &'static str, operands: &'static [&'static str]) -> Line<'static> {
    ("v", name, operands, vec![])
}

#[test]
fn what_changes_nothing_is_nothing() {
    let same = |from| op("Identity", from);
    let twice = |name, from| vec![("u", name, from, vec![]), op(name, &["u"])];
    let alike: Vec<Case> = vec![
        (twice("Not", &["b"]), same(&["b"])),
        (twice("Neg", &["x"]), same(&["x"])),
        (vec![op("And", &["b", "yes"])], same(&["b"])),
        (vec![op("Or", &["no", "b"])], same(&["b"])),
        (vec![op("Where", &["b", "x", "x"])], same(&["x"])),
        (vec![op("Where", &["yes", "x", "k"])], same(&["x"])),
        (vec![op("Where", &["no", "x", "k"])], same(&["k"])),
        (vec![("u", "Not", &["b"], vec![]), op("Where", &["u", "x", "k"])], op("Where", &["b", "k", "x"])),
        (vec![("u", "Abs", &["x"], vec![]), op("Mul", &["u", "u"])], op("Mul", &["x", "x"])),
    ];
    for (lines, other) in alike {
        let (a, b) = (over(&lines), over(&[other]));
        assert_eq!(verdict(&a, &b, &Proof::default()).to_string(), "PROVED: 0 links", "{lines:?}");
    }
    let apart: Vec<Case> = vec![
        (vec![op("Not", &["b"])], same(&["b"])),
        (vec![("u", "Neg", &["x"], vec![]), op("Abs", &["u"])], same(&["x"])),
        (vec![op("And", &["b", "no"])], same(&["b"])),
        (vec![op("Or", &["b", "yes"])], same(&["b"])),
        (vec![op("Where", &["b", "x", "k"])], same(&["x"])),
        (vec![op("Where", &["yes", "k", "x"])], same(&["x"])),
        (vec![("u", "Not", &["b"], vec![]), op("Where", &["u", "x", "k"])], op("Where", &["b", "x", "k"])),
        (vec![("u", "Abs", &["x"], vec![]), op("Mul", &["u", "x"])], op("Mul", &["x", "x"])),
    ];
    for (lines, other) in apart {
        assert!(!holds(&over(&lines), &over(&[other])), "{lines:?}");
    }
}

#[test]
fn what_is_one_number_of_anything_is_this_number() {
    let number = |lines: Vec<Line<'_>>, number: f32, wanted| {
        let constant = model(&[("y", "Identity", &["c"], vec![])], &[("c", &[2, 6, 4, 5], vec![number; 240])]);
        assert_eq!(holds(&over(&lines), &constant), wanted, "{lines:?} {number}");
    };
    for (name, value) in
        [("Equal", 1.0), ("GreaterOrEqual", 1.0), ("LessOrEqual", 1.0), ("Greater", 0.0), ("Less", 0.0)]
    {
        number(vec![op(name, &["i", "i"])], value, true);
        number(vec![op(name, &["i", "i"])], 1.0 - value, false);
        // What is no number does not equal itself.
        number(vec![op(name, &["x", "x"])], value, value == 0.0);
        number(vec![op(name, &["i", "n"])], value, false);
    }
    number(vec![op("Sub", &["i", "i"])], 0.0, true);
    number(vec![op("Sub", &["x", "x"])], 0.0, false);
    number(vec![op("Mul", &["n", "i"])], 0.0, true);
    number(vec![op("Mul", &["l", "i"])], 0.0, false);
    number(vec![op("Mul", &["zero", "x"])], 0.0, false);
    number(vec![op("And", &["no", "b"])], 0.0, true);
    number(vec![op("Or", &["b", "yes"])], 1.0, true);
    number(vec![op("Or", &["b", "no"])], 1.0, false);
}

#[test]
fn a_rest_of_a_rest_is_the_rest() {
    let rest = |fmod| vec![("fmod", Attr::Int(fmod))];
    let seven: Line<'_> = ("s", "Cast", &["ten"], vec![("to", Attr::Int(7))]);
    let once = over(&[seven.clone(), ("v", "Mod", &["i", "s"], rest(1))]);
    let again = |first, by: &'static [&'static str]| {
        over(&[seven.clone(), ("u", "Mod", &["i", "s"], rest(first)), ("v", "Mod", by, rest(1))])
    };
    assert!(holds(&once, &again(1, &["u", "s"])));
    assert!(!holds(&once, &again(0, &["u", "s"])));
    assert!(!holds(&once, &again(1, &["u", "l"])));
}

#[test]
fn concats_of_concats_are_one_and_what_is_cut_out_of_parts_is_of_these() {
    let cat = |y, of| -> Line<'static> { (y, "Concat", of, axis(1)) };
    let parts: Vec<Line<'_>> =
        vec![("a", "Neg", &["x"], vec![]), ("b", "Relu", &["x"], vec![]), ("c", "Abs", &["x"], vec![])];
    let made = |lines: Vec<Line<'static>>| model(&[parts.clone(), lines].concat(), &[]);
    let flat = made(vec![cat("y", &["a", "b", "c"])]);
    for inner in
        [vec![cat("u", &["a", "b"]), cat("y", &["u", "c"])], vec![cat("u", &["b", "c"]), cat("y", &["a", "u"])]]
    {
        assert_eq!(verdict(&flat, &made(inner), &Proof::default()).to_string(), "PROVED: 0 links");
    }
    let turned = vec![
        cat("u", &["a", "b"]),
        ("t", "Transpose", &["u"], perm(TO_LAST)),
        ("r", "Transpose", &["c"], perm(TO_LAST)),
        ("l", "Concat", &["t", "r"], axis(3)),
        ("y", "Transpose", &["l"], perm(TO_FIRST)),
    ];
    assert!(holds(&flat, &made(turned)));
    let others = [
        vec![cat("u", &["a", "c"]), cat("y", &["u", "b"])],
        vec![cat("u", &["b", "a"]), cat("y", &["u", "c"])],
        vec![("u", "Concat", &["a", "b"][..], axis(0)), ("w", "Concat", &["c", "c"], axis(0)), cat("y", &["u", "w"])],
    ];
    for other in others {
        assert!(!holds(&flat, &made(other)));
    }
    let cut = |lines: Vec<Line<'static>>, from: i64, to: i64| {
        let last: Line<'_> = ("y", "Slice", &["u", "from", "to", "axes"], vec![]);
        ints(made([lines, vec![last]].concat()), &[("from", &[1], &[from]), ("to", &[1], &[to]), ("axes", &[1], &[1])])
    };
    let all = || vec![cat("u", &["a", "b", "c"])];
    let same = |of: &'static [&'static str]| -> Vec<Line<'static>> { vec![("u", "Identity", of, vec![])] };
    assert!(holds(&cut(all(), 7, 10), &cut(same(&["b"]), 1, 4)));
    assert!(!holds(&cut(all(), 7, 10), &cut(same(&["b"]), 2, 5)));
    assert!(!holds(&cut(all(), 7, 10), &cut(same(&["c"]), 1, 4)));
    assert!(holds(&cut(all(), 8, 14), &cut(vec![cat("u", &["b", "c"])], 2, 8)));
    assert!(!holds(&cut(all(), 8, 14), &cut(vec![cat("u", &["c", "b"])], 2, 8)));
    assert!(!holds(&cut(all(), 5, 8), &cut(vec![cat("u", &["b", "a"])], 5, 8)));
}

#[test]
fn what_is_cut_out_of_repeats_repeats() {
    let made = |to: &[i64], from: i64, end: i64| {
        let lines: &[Line<'_>] = &[
            ("u", "Unsqueeze", &["x", "none"], vec![]),
            ("w", "Expand", &["u", "to"], vec![]),
            ("y", "Slice", &["w", "from", "end", "none"], vec![]),
        ];
        ints(
            model(lines, &[]),
            &[("none", &[1], &[0]), ("to", &[5], to), ("from", &[1], &[from]), ("end", &[1], &[end])],
        )
    };
    assert!(holds(&made(&[7, 2, 6, 4, 5], 2, 5), &made(&[3, 2, 6, 4, 5], 0, 3)));
    assert!(!holds(&made(&[7, 2, 6, 4, 5], 2, 5), &made(&[4, 2, 6, 4, 5], 0, 4)));
}
