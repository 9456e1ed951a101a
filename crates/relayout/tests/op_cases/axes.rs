//! Reductions, Softmax, and what cuts, joins, repeats, picks or sorts along axes.

use super::case::{Case, Spec, bools, case, exact, f, float, fr, i64s, ints};
use relayout_verify::Data;

pub(crate) fn cases() -> Vec<Case> {
    [reductions(), softmaxes(), joins(), cuts(), pads(), repeats(), picks(), sorts()].concat()
}

fn reductions() -> Vec<Case> {
    let ops = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"];
    let mut cases = Vec::new();
    for name in ops {
        let op: &'static str = match name {
            "L1" => "ReduceL1",
            "L2" => "ReduceL2",
            "LogSum" => "ReduceLogSum",
            "LogSumExp" => "ReduceLogSumExp",
            "Max" => "ReduceMax",
            "Mean" => "ReduceMean",
            "Min" => "ReduceMin",
            "Prod" => "ReduceProd",
            "Sum" => "ReduceSum",
            _ => "ReduceSumSquare",
        };
        let last = if name == "Sum" { 12 } else { 17 };
        let by_attr = || case(op, 7, last).x(fr(&[2, 3, 4], 0.2, 2.0));
        let by_input = || case(op, last + 1, 26).x(fr(&[2, 3, 4], 0.2, 2.0));
        cases.push(by_attr().variant("kept").list("axes", &[0, 2]));
        cases.push(by_attr().variant("dropped").list("axes", &[1]).int("keepdims", 0));
        cases.push(by_attr().variant("of all"));
        cases.push(by_input().variant("kept").c(ints(&[0, -1])));
        cases.push(by_input().variant("dropped").c(ints(&[1])).int("keepdims", 0));
        cases.push(by_input().variant("of all").int("keepdims", 0));
    }
    cases.push(
        case("ReduceSum", 13, 26).variant("of nothing").x(f(&[2, 3, 4])).c(ints(&[])).int("noop_with_empty_axes", 1),
    );
    for op in ["ArgMax", "ArgMin"] {
        cases.push(case(op, 7, 26).int("axis", 1).x(f(&[2, 3, 4])));
        cases.push(case(op, 11, 26).variant("dropped").int("axis", -1).int("keepdims", 0).x(f(&[2, 3, 4])));
        cases.push(case(op, 7, 26).variant("by default").x(f(&[3, 2, 4])));
    }
    cases
}

fn softmaxes() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["Softmax", "LogSoftmax", "Hardmax"] {
        cases.push(case(op, 7, 12).x(f(&[2, 3, 4])));
        cases.push(case(op, 7, 12).variant("from axis 2").int("axis", 2).x(f(&[2, 3, 4, 5])));
        cases.push(case(op, 13, 26).x(f(&[2, 3, 4])));
        cases.push(case(op, 13, 26).variant("of axis 1").int("axis", 1).x(f(&[2, 3, 4, 5])));
        cases.push(case(op, 13, 26).variant("of axis -3").int("axis", -3).x(f(&[2, 3, 4])));
    }
    cases
}

fn joins() -> Vec<Case> {
    vec![
        case("Concat", 7, 26).int("axis", 1).x(f(&[2, 3, 4])).x(f(&[2, 5, 4])).x(f(&[2, 1, 4])),
        case("Concat", 11, 26).variant("of the last axis").int("axis", -1).x(f(&[2, 3])).x(f(&[2, 3])),
        case("Concat", 7, 26).variant("of integers").int("axis", 0).c(ints(&[2, 3])).c(ints(&[4])),
        case("Split", 7, 12).int("axis", 1).list("split", &[2, 1, 3]).x(f(&[2, 6, 4])).results(3),
        case("Split", 7, 17).variant("in equal parts").int("axis", 1).x(f(&[2, 6, 4])).results(2),
        case("Split", 13, 26).variant("by operand").int("axis", -2).x(f(&[2, 6, 4])).c(ints(&[2, 4])).results(2),
        case("Split", 18, 26).variant("unevenly").int("num_outputs", 2).x(f(&[5, 4])).results(2),
    ]
}

fn narrow(values: &[i32]) -> Spec {
    exact(&[values.len() as i64], Data::I32(values.to_vec()))
}

fn cuts() -> Vec<Case> {
    let x = || f(&[4, 5, 6]);
    vec![
        case("Slice", 7, 9).list("starts", &[1, -2]).list("ends", &[3, 9]).x(x()),
        case("Slice", 7, 9)
            .variant("of named axes")
            .list("axes", &[2, 0])
            .list("starts", &[1, 0])
            .list("ends", &[5, 3])
            .x(x()),
        case("Slice", 10, 26).x(x()).c(ints(&[0, 1, 2])).c(ints(&[3, 5, 6])),
        case("Slice", 10, 26)
            .variant("backwards")
            .x(x())
            .c(ints(&[1, -1]))
            .c(ints(&[3, -9]))
            .c(ints(&[-1, 0]))
            .c(ints(&[1, -2])),
        case("Slice", 10, 26).variant("of some axes").x(x()).c(ints(&[1, 0])).c(ints(&[3, 2])),
        // Lists of 32 bits stay so: the standard wants one type for all of a Slice's lists.
        case("Slice", 10, 26)
            .variant("by lists of 32 bits")
            .x(x())
            .c(narrow(&[1, 0]))
            .c(narrow(&[3, 2]))
            .c(narrow(&[2, 0])),
        case("Slice", 10, 26)
            .variant("of leading axes by lists of 32 bits")
            .x(x())
            .c(narrow(&[1, 0]))
            .c(narrow(&[3, 2])),
        case("Slice", 10, 26)
            .variant("of known integers")
            .c(ints(&[5, 6, 7, 8]))
            .c(ints(&[1]))
            .c(ints(&[3]))
            .c(ints(&[0])),
        case("Slice", 10, 26)
            .variant("at computed places")
            .partial()
            .x(x())
            .x(ints(&[1, 0]))
            .x(ints(&[3, 2]))
            .c(ints(&[2, 1])),
        case("Slice", 10, 26)
            .variant("of leading axes at computed places")
            .partial()
            .x(x())
            .x(ints(&[1, 0]))
            .x(ints(&[3, 2])),
        case("ReduceSum", 13, 26)
            .variant("of computed axes")
            .partial()
            .x(x())
            .x(ints(&[1]))
            .opaque("computed at run time"),
        case("Trilu", 14, 26).x(f(&[2, 3, 4, 5])),
        case("Trilu", 14, 26).variant("lower").int("upper", 0).x(f(&[3, 4, 4])).c(exact(&[], Data::I64(vec![1]))),
        case("CenterCropPad", 18, 26).x(x()).c(ints(&[3, 7])).list("axes", &[0, 2]),
        case("CenterCropPad", 18, 26).variant("of all axes").x(x()).c(ints(&[3, 5, 7])),
    ]
}

fn pads() -> Vec<Case> {
    let x = || f(&[4, 5, 6]);
    let pads = || ints(&[1, 2, 0, 3, 0, 1]);
    vec![
        case("Pad", 7, 10).list("pads", &[1, 2, 0, 3, 0, 1]).x(x()),
        case("Pad", 11, 26).x(x()).c(pads()),
        case("Pad", 11, 26).variant("reflecting, with a value").text("mode", "reflect").x(x()).c(pads()).c(float(2.0)),
        case("Pad", 11, 26).variant("by computed pads").partial().x(x()).x(pads()),
        case("Pad", 18, 26)
            .variant("by computed pads of named axes")
            .partial()
            .x(x())
            .x(ints(&[1, 2]))
            .none()
            .c(ints(&[1])),
        case("Pad", 11, 26).variant("cropping").x(x()).c(ints(&[0, -1, 0, 0, 0, -2])),
        case("Pad", 18, 26).variant("of one axis").x(x()).c(ints(&[1, 2])).none().c(ints(&[-1])),
        case("Pad", 18, 26).variant("of reversed axes").x(x()).c(ints(&[1, 2, 0, 3, 0, 1])).none().c(ints(&[2, 1, 0])),
    ]
}

fn repeats() -> Vec<Case> {
    vec![
        case("Tile", 7, 26).x(f(&[2, 3, 4])).c(ints(&[2, 1, 3])),
        case("Tile", 7, 26).variant("of integers").c(ints(&[4, 5])).c(ints(&[2])),
        case("Expand", 8, 26).x(f(&[2, 1, 4])).c(ints(&[1, 3, 4])),
        case("Expand", 8, 26).variant("to more axes").x(f(&[3, 1])).c(ints(&[2, 1, 4])),
        case("Expand", 8, 26).variant("to a computed shape").partial().x(f(&[2, 1, 4])).x(ints(&[1, 3, 4])),
        case("Expand", 8, 26).variant("to a computed shape of more axes").partial().x(f(&[3, 1])).x(ints(&[2, 1, 4])),
        case("Tile", 7, 26).variant("computed times").partial().x(f(&[2, 3, 4])).x(ints(&[2, 1, 3])),
        case("Expand", 8, 26).variant("to one of fewer axes").x(f(&[2, 3, 1])).c(ints(&[3, 4])).opaque("fewer entries"),
        case("OneHot", 9, 26)
            .int("axis", 1)
            .x(i64s(&[2, 3], 0, 4))
            .c(exact(&[], Data::I64(vec![4])))
            .c(exact(&[2], Data::F32(vec![0.0, 1.0]))),
        case("OneHot", 9, 26)
            .variant("at the end")
            .x(i64s(&[2, 3], 0, 4))
            .c(exact(&[1], Data::I64(vec![4])))
            .c(exact(&[2], Data::F32(vec![0.0, 1.0]))),
        case("OneHot", 9, 26)
            .variant("at the front")
            .int("axis", 0)
            .x(i64s(&[2, 3], 0, 4))
            .c(exact(&[], Data::I64(vec![4])))
            .c(exact(&[2], Data::F32(vec![0.0, 1.0]))),
        case("EyeLike", 9, 26).x(f(&[3, 4])).int("k", 1),
        case("EyeLike", 9, 26).variant("of the main diagonal").x(f(&[3, 4])),
        case("ConstantOfShape", 9, 26).c(ints(&[2, 3])),
        case("ConstantOfShape", 9, 26).variant("of a computed shape").partial().x(ints(&[2, 3])),
        case("Range", 11, 26)
            .c(exact(&[], Data::I64(vec![1])))
            .c(exact(&[], Data::I64(vec![9])))
            .c(exact(&[], Data::I64(vec![3]))),
        case("Range", 11, 26).variant("of floats").partial().c(float(0.0)).c(float(2.0)).c(float(0.5)),
    ]
}

fn picks() -> Vec<Case> {
    let tuples = || exact(&[2, 2], Data::I64(vec![0, 1, 1, 2]));
    vec![
        case("Gather", 7, 26).int("axis", 1).x(f(&[2, 3, 4])).c(exact(&[2, 2], Data::I64(vec![0, 2, 1, 1]))),
        case("Gather", 7, 26).variant("of one index").int("axis", 2).x(f(&[2, 3, 4])).c(exact(&[], Data::I64(vec![1]))),
        case("Gather", 7, 26).variant("of a vector").int("axis", 0).x(f(&[3, 2, 4])).x(i64s(&[5], 0, 3)),
        case("Gather", 11, 26).variant("from the end").int("axis", -1).x(f(&[2, 3])).x(i64s(&[2, 3, 2], -3, 3)),
        case("Gather", 7, 26).variant("of known integers").c(ints(&[4, 5, 6])).c(ints(&[2, 0])),
        case("GatherElements", 11, 26).int("axis", 1).x(f(&[4, 5, 6])).x(i64s(&[2, 3, 4], 0, 5)),
        case("GatherElements", 11, 26).variant("from the end").int("axis", -1).x(f(&[2, 3])).x(i64s(&[2, 4], -3, 3)),
        case("Scatter", 9, 10)
            .int("axis", 1)
            .x(f(&[2, 5, 3]))
            .x(exact(&[1, 2, 3], Data::I64(vec![0, 1, 2, 3, 4, 0])))
            .x(f(&[1, 2, 3])),
        case("ScatterElements", 11, 26)
            .int("axis", -2)
            .x(f(&[2, 5, 3]))
            .x(exact(&[1, 2, 3], Data::I64(vec![0, 1, 2, 3, 4, 0])))
            .x(f(&[1, 2, 3])),
        case("ScatterElements", 16, 26)
            .variant("that adds")
            .text("reduction", "add")
            .x(f(&[4, 3]))
            .x(i64s(&[3, 2], 0, 4))
            .x(f(&[3, 2])),
        case("GatherND", 11, 26).x(f(&[2, 3, 4])).x(tuples()),
        case("GatherND", 12, 26)
            .variant("in a batch")
            .int("batch_dims", 1)
            .x(f(&[2, 3, 4]))
            .x(exact(&[2, 1], Data::I64(vec![2, 0])))
            .opaque("batch"),
        case("GatherND", 11, 26).variant("of rows").x(f(&[3, 2, 4])).x(exact(&[2, 2, 1], Data::I64(vec![0, 1, 2, 0]))),
        case("ScatterND", 11, 26).x(f(&[2, 3, 4])).x(tuples()).x(f(&[2, 4])),
        case("Compress", 9, 26).partial().int("axis", 1).x(f(&[2, 3, 4])).x(bools(&[3])),
        case("Compress", 9, 26).variant("of all elements").partial().x(f(&[2, 3])).x(bools(&[6])).opaque("row-major"),
        case("NonZero", 9, 26).partial().x(bools(&[2, 3])),
        case("Unique", 11, 26).variant("with places").partial().x(f(&[6])).results(4).opaque("row-major"),
        case("Unique", 11, 26).partial().x(i64s(&[2, 3, 4], 0, 6)),
        case("Unique", 11, 26).variant("of slices").int("axis", 1).partial().x(i64s(&[2, 5, 2], 0, 2)).results(4),
    ]
}

fn sorts() -> Vec<Case> {
    vec![
        case("TopK", 7, 9).int("axis", 1).int("k", 3).x(f(&[2, 5, 4])).results(2),
        case("TopK", 10, 26).int("axis", 1).x(f(&[2, 5, 4])).c(ints(&[3])).results(2),
        case("TopK", 10, 26).variant("of the last axis").x(f(&[2, 5])).c(ints(&[2])).results(2),
        case("CumSum", 11, 26).int("reverse", 1).x(f(&[2, 3, 4])).c(exact(&[], Data::I64(vec![-2]))),
        case("CumSum", 11, 26)
            .variant("by a 32-bit axis")
            .int("exclusive", 1)
            .x(f(&[2, 3, 4]))
            .c(exact(&[], Data::I32(vec![0]))),
        case("Det", 11, 26).x(f(&[2, 3, 3])),
    ]
}
