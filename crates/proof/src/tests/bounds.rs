//! The order of numbers, what a Pad adds, sums of sums, and parts of products: rows that say the same in other ops.

use super::volumes::ints;
use super::*;

/// A model of these lines with numbers from -3 to 2 by name.
fn over(lines: &[Line<'_>]) -> Model {
    let number = |name: &'static str, number: f32| (name, &[][..], vec![number]);
    let free = [number("low", f32::NEG_INFINITY), number("high", f32::INFINITY)];
    let all = [number("m", -3.0), number("l", -1.0), number("o", 0.0), number("h", 0.5), number("t", 2.0)];
    model(lines, &[&all[..], &free[..]].concat())
}

/// A list of lines whose last one makes `y`.
type Lines = Vec<Line<'static>>;

fn op(y: &'static str, name: &'static str, of: &'static [&'static str]) -> Line<'static> {
    (y, name, of, vec![])
}

fn check(alike: Vec<(Lines, Lines)>, apart: Vec<(Lines, Lines)>) {
    for (a, b) in alike {
        assert_eq!(verdict(&over(&a), &over(&b), &Proof::default()).to_string(), "PROVED: 0 links", "{a:?} {b:?}");
    }
    for (a, b) in apart {
        assert!(!holds(&over(&a), &over(&b)), "{a:?} {b:?}");
    }
}

#[test]
fn bounds_behind_bounds_are_one_clip() {
    let clip = |of| vec![op("y", "Clip", of)];
    let two = |first, of, second, other: &'static [&'static str]| vec![op("u", first, of), op("y", second, other)];
    check(
        vec![
            (two("Max", &["x", "l"], "Min", &["u", "h"]), clip(&["x", "l", "h"])),
            (two("Min", &["x", "h"], "Max", &["l", "u"]), clip(&["x", "l", "h"])),
            (two("Relu", &["x"], "Min", &["u", "t"]), clip(&["x", "o", "t"])),
            (two("Clip", &["x", "l", "t"], "Clip", &["u", "m", "h"]), clip(&["x", "l", "h"])),
            (two("Clip", &["x", "m", "l"], "Clip", &["u", "o", "t"]), clip(&["x", "o", "o"])),
            (two("Clip", &["x", "", "t"], "Relu", &["u"]), clip(&["x", "o", "t"])),
            (two("Relu", &["x"], "Relu", &["u"]), vec![op("y", "Relu", &["x"])]),
            (two("Max", &["x", "l"], "Relu", &["u"]), vec![op("y", "Relu", &["x"])]),
            (two("Ceil", &["x"], "Ceil", &["u"]), vec![op("y", "Ceil", &["x"])]),
            (two("Max", &["x", "low"], "Min", &["u", "high"]), vec![op("y", "Identity", &["x"])]),
        ],
        vec![
            (two("Max", &["x", "l"], "Min", &["u", "h"]), clip(&["x", "l", "t"])),
            (two("Max", &["x", "h"], "Min", &["u", "l"]), clip(&["x", "l", "h"])),
            (two("Clip", &["x", "l", "t"], "Clip", &["u", "m", "h"]), clip(&["x", "m", "h"])),
            (two("Clip", &["x", "m", "l"], "Clip", &["u", "o", "t"]), clip(&["x", "m", "l"])),
            (two("Clip", &["x", "", "t"], "Relu", &["u"]), clip(&["x", "l", "t"])),
            (two("Ceil", &["x"], "Floor", &["u"]), vec![op("y", "Ceil", &["x"])]),
            (two("Max", &["x", "l"], "Min", &["u", "high"]), vec![op("y", "Identity", &["x"])]),
        ],
    );
}

#[test]
fn bounds_that_are_values_hold_what_they_held() {
    let sides: Lines =
        vec![op("c", "Neg", &["x"]), op("d", "Sin", &["x"]), op("p", "Max", &["x", "c"]), op("q", "Min", &["p", "d"])];
    let once = [sides.clone(), vec![op("y", "Identity", &["q"])]].concat();
    let twice = |least, most| [sides.clone(), vec![op("r", "Max", least), op("y", "Min", most)]].concat();
    check(
        vec![(once.clone(), twice(&["c", "q"], &["r", "d"]))],
        vec![(once.clone(), twice(&["d", "q"], &["r", "c"])), (once, twice(&["c", "q"], &["r", "x"]))],
    );
}

#[test]
fn comparisons_with_bounds_are_comparisons_of_what_is_bounded() {
    let truth = |lines: Lines| [lines, vec![("y", "Cast", &["b"][..], vec![("to", Attr::Int(1))])]].concat();
    let other = || op("n", "Neg", &["x"]);
    let less = |of| truth(vec![other(), op("b", "Less", of)]);
    let of = |bound, sides, of| truth(vec![other(), op("u", bound, sides), op("b", "Less", of)]);
    let both =
        |first, second| truth(vec![op("a", "Less", first), op("c", "Greater", second), op("b", "And", &["a", "c"])]);
    check(
        vec![
            (truth(vec![other(), op("b", "Greater", &["n", "x"])]), less(&["x", "n"])),
            (of("Max", &["x", "n"], &["x", "u"]), less(&["x", "n"])),
            (of("Min", &["n", "x"], &["u", "x"]), less(&["n", "x"])),
            (both(&["x", "h"], &["t", "x"]), less(&["x", "h"])),
            (both(&["l", "x"], &["x", "o"]), less(&["o", "x"])),
        ],
        vec![
            (truth(vec![other(), op("b", "Greater", &["n", "x"])]), less(&["n", "x"])),
            (of("Min", &["x", "n"], &["x", "u"]), less(&["x", "n"])),
            (of("Max", &["n", "x"], &["u", "x"]), less(&["n", "x"])),
            (of("Max", &["x", "n"], &["x", "u"]), less(&["n", "x"])),
            (both(&["x", "h"], &["t", "x"]), less(&["x", "t"])),
            (both(&["l", "x"], &["x", "o"]), less(&["l", "x"])),
            (both(&["x", "h"], &["x", "l"]), less(&["x", "h"])),
        ],
    );
}

/// Lists by name, as operands.
type Lists = &'static [(&'static str, &'static [i64])];

fn with(lines: &[Line<'_>], lists: Lists) -> Model {
    let all: Vec<(&str, Vec<i64>, &[i64])> =
        lists.iter().map(|(name, list)| (*name, vec![list.len() as i64], *list)).collect();
    let told: Vec<(&str, &[i64], &[i64])> =
        all.iter().map(|(name, dims, list)| (*name, dims.as_slice(), *list)).collect();
    ints(over(lines), &told)
}

#[test]
fn slices_of_a_pad_are_slices_of_what_is_in_it() {
    let pad: Line<'_> = op("u", "Pad", &["x", "pads", "h"]);
    let cut = |lists: Lists| with(&[pad.clone(), op("y", "Slice", &["u", "from", "to", "axes"])], lists);
    let part = |lists: Lists| with(&[op("y", "Slice", &["x", "from", "to", "axes"])], lists);
    let pads: (&str, &[i64]) = ("pads", &[0, 0, 2, 1, 0, 0, 1, 0]);
    let given = model(&[op("y", "Identity", &["x"])], &[]);
    assert!(holds(&cut(leak(vec![pads, ("from", &[2, 1]), ("to", &[-1, 9]), ("axes", &[2, 3])])), &given));
    assert!(!holds(&cut(leak(vec![pads, ("from", &[1, 1]), ("to", &[-2, 9]), ("axes", &[2, 3])])), &given));
    let inner = cut(leak(vec![("pads", &[0, 0, 2, 0, 0, 0, 1, 0]), ("from", &[3]), ("to", &[5]), ("axes", &[2])]));
    assert!(holds(&inner, &part(&[("from", &[1]), ("to", &[3]), ("axes", &[2])])));
    assert!(!holds(&inner, &part(&[("from", &[2]), ("to", &[4]), ("axes", &[2])])));
}

fn leak(lists: Vec<(&'static str, &'static [i64])>) -> Lists {
    Box::leak(lists.into_boxed_slice())
}

#[test]
fn less_than_no_padding_takes_places_away() {
    let less = |pads: &'static [i64]| with(&[op("y", "Pad", &["x", "pads", "h"])], leak(vec![("pads", pads)]));
    let cut = with(
        &[op("u", "Pad", &["x", "pads", "h"]), op("y", "Slice", &["u", "from", "to", "axes"])],
        &[("pads", &[0, 0, 1, 0, 0, 0, 0, 2]), ("from", &[0, 1]), ("to", &[-1, 9]), ("axes", &[2, 3])],
    );
    assert!(holds(&cut, &less(&[0, 0, 1, -1, 0, 0, -1, 2])));
    assert!(!holds(&cut, &less(&[0, 0, 1, 2, 0, 0, -1, -1])));
}

#[test]
fn one_number_in_front_of_a_value_is_padding() {
    let one = |number: f32| ("k", &[2, 6, 3, 5][..], vec![number; 180]);
    let made = |of: &'static [&'static str]| model(&[("y", "Concat", of, axis(2))], &[one(1.5)]);
    let padded = |pads: &'static [i64]| {
        let lines = [op("y", "Pad", &["x", "pads", "n"])];
        ints(model(&lines, &[("n", &[], vec![1.5])]), &[("pads", &[8], pads)])
    };
    assert!(holds(&made(&["k", "x"]), &padded(&[0, 0, 3, 0, 0, 0, 0, 0])));
    assert!(holds(&made(&["k", "x", "k"]), &padded(&[0, 0, 3, 0, 0, 0, 3, 0])));
    assert!(!holds(&made(&["x", "k"]), &padded(&[0, 0, 3, 0, 0, 0, 0, 0])));
    let several = ("k", &[2, 6, 3, 5][..], (0..180).map(|at| at as f32).collect());
    let other = model(&[("y", "Concat", &["k", "x"], axis(2))], &[several]);
    assert!(!holds(&other, &padded(&[0, 0, 3, 0, 0, 0, 0, 0])));
}

#[test]
fn slices_next_to_each_other_are_one_and_those_of_two_axes_have_no_order() {
    let lists = |first: &'static [i64], second: &'static [i64]| {
        let lines = vec![
            op("a", "Slice", &["x", "from", "to", "axes"]),
            op("b", "Slice", &["x", "start", "end", "axes"]),
            ("y", "Concat", &["a", "b"][..], axis(1)),
        ];
        let named = [
            ("from", &first[..1]),
            ("to", &first[1..]),
            ("start", &second[..1]),
            ("end", &second[1..]),
            ("axes", &[1][..]),
        ];
        with(&lines, leak(named.to_vec()))
    };
    let part = with(&[op("y", "Slice", &["x", "from", "to", "axes"])], &[("from", &[1]), ("to", &[5]), ("axes", &[1])]);
    assert!(holds(&lists(&[1, 3], &[3, 5]), &part));
    assert!(!holds(&lists(&[1, 3], &[2, 4]), &part));
    assert!(!holds(&lists(&[3, 5], &[1, 3]), &part));
    let two = |axes: &'static [i64], steps: &'static [i64]| {
        let named: [(&str, &[i64]); 4] = [("from", &[-1, 0]), ("to", &[-9, 3]), ("axes", axes), ("steps", steps)];
        with(&[op("y", "Slice", &["x", "from", "to", "axes", "steps"])], leak(named.to_vec()))
    };
    let turned = |axes: &'static [i64]| {
        let named: [(&str, &[i64]); 4] = [("from", &[0, -1]), ("to", &[3, -9]), ("axes", axes), ("steps", &[1, -1])];
        with(&[op("y", "Slice", &["x", "from", "to", "axes", "steps"])], leak(named.to_vec()))
    };
    assert!(holds(&two(&[3, 1], &[-1, 1]), &turned(&[1, 3])));
    assert!(!holds(&two(&[3, 1], &[-1, 1]), &turned(&[3, 1])));
}

#[test]
fn what_is_written_everywhere_is_what_there_is() {
    let lines = vec![op("n", "Neg", &["x"]), ("y", "ScatterElements", &["x", "at", "n"][..], axis(3))];
    let written = |line: [i64; 5]| {
        let places: Vec<i64> = line.iter().copied().cycle().take(240).collect();
        ints(over(&lines), &[("at", &[2, 6, 4, 5], &places)])
    };
    let negative = over(&[op("y", "Neg", &["x"])]);
    assert!(holds(&written([0, 1, 2, 3, 4]), &negative));
    assert!(!holds(&written([0, 1, 2, 4, 3]), &negative));
    assert!(!holds(&written([0, 1, 2, 3, 3]), &negative));
}

#[test]
fn sums_of_sums_and_of_products_are_one_sum() {
    let sum = |y, of: &'static [&'static str], keeps| -> Line<'static> {
        (y, "ReduceSum", of, vec![("keepdims", Attr::Int(keeps))])
    };
    let lists: Lists = &[("a", &[1]), ("both", &[1, 2]), ("other", &[1, 3])];
    let twice = with(&[sum("u", &["x", "a"], 0), sum("y", &["u", "a"], 0)], lists);
    let once = |of| with(&[sum("y", of, 0)], lists);
    assert!(holds(&once(&["x", "both"]), &twice));
    assert!(!holds(&once(&["x", "other"]), &twice));
    let most = |of| with(&[("u", "ReduceMax", &["x"][..], vec![("axes", Attr::Ints(vec![1]))]), of], lists);
    let line = |name, axes: &[i64]| -> Line<'static> { ("y", name, &["u"], vec![("axes", Attr::Ints(axes.to_vec()))]) };
    let all = with(&[("y", "ReduceMax", &["x"][..], vec![("axes", Attr::Ints(vec![1, 2]))])], lists);
    assert!(holds(&most(line("ReduceMax", &[2])), &all));
    assert!(!holds(&most(line("ReduceMin", &[2])), &all));
    let einsum = |equation: &str| -> Line<'static> {
        ("y", "Einsum", &["x", "n"], vec![("equation", Attr::Text(equation.as_bytes().to_vec()))])
    };
    let product = |line| with(&[op("n", "Neg", &["x"]), line], lists);
    let written = |of| with(&[op("n", "Neg", &["x"]), op("u", "Mul", &["x", "n"]), sum("y", of, 0)], lists);
    assert!(holds(&product(einsum("abcd,abcd->ad")), &written(&["u", "both"])));
    assert!(!holds(&product(einsum("abcd,abcd->ac")), &written(&["u", "both"])));
    assert!(holds(
        &product(einsum("abcd,abcd->abcd")),
        &with(&[op("n", "Neg", &["x"]), op("y", "Mul", &["x", "n"])], lists)
    ));
}

#[test]
fn parts_of_a_product_are_products_with_parts() {
    let numbers = |count: usize, from: usize| (0..count).map(|at| ((at + from) % 7) as f32 - 3.0).collect::<Vec<_>>();
    // The columns of both one behind the other.
    let (a, b) = (numbers(10, 0), numbers(15, 3));
    let joined: Vec<f32> =
        (0..5).flat_map(|row| [&a[row * 2..row * 2 + 2], &b[row * 3..row * 3 + 3]].concat()).collect();
    let apart = |of: &'static [&'static str]| {
        model(&[op("y", "MatMul", of)], &[("a", &[5, 2], a.clone()), ("b", &[5, 3], b.clone())])
    };
    let part = |from: i64, to: i64| {
        let lines = [op("u", "MatMul", &["x", "w"]), op("y", "Slice", &["u", "from", "to", "axes"])];
        let made = model(&lines, &[("w", &[5, 5], joined.clone())]);
        ints(made, &[("from", &[1], &[from]), ("to", &[1], &[to]), ("axes", &[1], &[3])])
    };
    assert!(holds(&apart(&["x", "a"]), &part(0, 2)));
    assert!(holds(&apart(&["x", "b"]), &part(2, 5)));
    assert!(!holds(&apart(&["x", "b"]), &part(1, 4)));
}
