//! Tables of a GPU's costs, and what target `cuda-tensorcore` makes of them.

use relayout_ir::dtype::DType;
use relayout_ir::layout::Layout;
use relayout_target_api::{MoveQuery, Target};
use relayout_targets::gpu::{Case, ConvCase, GpuCosts, GpuMachine, MoveClass, Points, Spec, specs};
use relayout_targets::measured::{CostsError, Measurement, points_of};
use relayout_targets::{FunctionTarget, builtin};

const NODE_NS: u64 = 1000;

fn machine() -> GpuMachine {
    GpuMachine {
        machine: "a \"made\" GPU".to_owned(),
        device: "cuda".to_owned(),
        date: "2026-11-22".to_owned(),
        runtime: "PyTorch 2.9.1".to_owned(),
        node_ns: NODE_NS,
    }
}

/// Measurements of a machine with these nanoseconds per unit of work, beside what a kernel takes.
fn measured(points: Points, rate: impl Fn(&Case) -> f64) -> Vec<Measurement> {
    let measure = |spec: Spec| {
        let axes: Vec<Vec<u64>> = spec.axes.iter().map(|(_, points)| points.clone()).collect();
        let ns = |point: &Vec<u64>| {
            let case = spec.case(point);
            // Small cases on a coarse clock would leave nothing but the node.
            NODE_NS + (rate(&case) * case.work()).ceil() as u64
        };
        Measurement {
            name: spec.name.clone(),
            axes: spec.axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect(),
            ns: points_of(&axes).iter().map(ns).collect(),
        }
    };
    specs(points).into_iter().map(measure).collect()
}

fn text() -> String {
    GpuCosts::text(&machine(), &measured(Points::Few, |_| 2.0))
}

/// Four nanoseconds a byte for generic moves, one for others.
fn by_class(case: &Case) -> f64 {
    if matches!(case, Case::Move(MoveClass::Generic, _)) { 4.0 } else { 1.0 }
}

#[test]
fn a_table_is_read_as_it_was_written_whatever_its_points() {
    for points in [Points::Few, Points::Whole] {
        let measured = measured(points, |_| 2.0);
        let costs = GpuCosts::parse("mine.toml", &GpuCosts::text(&machine(), &measured)).unwrap();
        assert_eq!(costs.machine(), &machine());
        for class in MoveClass::ALL {
            assert_eq!(costs.move_ns(class, 5_000_000), NODE_NS + 10_000_000, "{class:?}");
        }
    }
}

#[test]
fn a_table_of_another_target_or_format_is_told_so() {
    let error = |from: &str, to: &str| GpuCosts::parse("mine.toml", &text().replacen(from, to, 1)).unwrap_err();
    let other = error("\"cuda-tensorcore\"", "\"ort-cpu\"").to_string();
    assert!(other.contains("mine.toml") && other.contains("`ort-cpu`, not `cuda-tensorcore`"), "{other}");
    let old = error("format = 1", "format = 7");
    assert_eq!(old, CostsError::OtherFormat { name: "mine.toml".to_owned(), format: 7, reads: 1 });
}

#[test]
fn a_table_that_cannot_be_used_says_what_is_wrong() {
    let good = text();
    for (from, to, says) in [
        ("format = 1", "format =", "TOML parse error"),
        ("node_ns = 1000", "node_ns = 0", "`node_ns` is 0"),
        ("device = \"cuda\"", "device = \"tpu\"", "`device` is `tpu`"),
        ("device = \"cuda\"", "speed = 3", "speed"),
        ("[grid.pass]", "[grid.past]", "there is no grid `pass`"),
        ("\n[grid.pass]", "\n[grid.more]\nns = [1]\n[grid.pass]", "no grid is called `more`"),
        ("groups = [1, 2]", "groups = [2, 1]", "ascending"),
        ("groups = [1, 2]", "groups = [1, 2, 3]", "numbers, and its axes"),
        ("groups = [1, 2]", "", "there is no axis `groups`"),
    ] {
        assert!(good.contains(from), "{from}");
        let error = GpuCosts::parse("mine.toml", &good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains("mine.toml") && error.contains(says) && !error.contains('\n'), "{from}: {error}");
    }
    let mut zero = measured(Points::Few, |_| 2.0);
    zero[0].ns[0] = 0;
    assert!(GpuCosts::new(machine(), zero).unwrap_err().contains("the time at"));
}

#[test]
fn the_class_of_a_move_is_that_of_its_kernel() {
    let order = |axes: &[usize]| Layout::permutation(axes).unwrap();
    let (nchw, nhwc) = (Layout::row_major(4), order(&[0, 2, 3, 1]));
    for (to, shape, bytes, class) in [
        (nhwc.clone(), [2, 64, 28, 28], 4, MoveClass::Transpose),
        (nhwc.clone(), [2, 3, 28, 28], 4, MoveClass::Pack),
        (nhwc.clone(), [2, 64, 1, 1], 4, MoveClass::Copy),
        (nchw.clone(), [2, 64, 28, 28], 4, MoveClass::Copy),
        (order(&[0, 2, 1, 3]), [2, 8, 16, 64], 2, MoveClass::Rows),
        (order(&[0, 2, 1, 3]), [2, 80, 90, 2], 2, MoveClass::Transpose),
        (order(&[0, 2, 1, 3]), [2, 8, 90, 2], 2, MoveClass::Pack),
        (order(&[3, 1, 0, 2]), [8, 16, 24, 32], 2, MoveClass::Generic),
        (order(&[3, 2, 1, 0]), [8, 16, 24, 32], 2, MoveClass::Generic),
    ] {
        assert_eq!(MoveClass::classify(&nchw, &to, &shape, bytes), class, "{to} of {shape:?}");
        assert_eq!(MoveClass::classify(&to, &nchw, &shape, bytes), class, "from {to} of {shape:?}");
    }
}

#[test]
fn moves_cost_what_their_class_does() {
    let target = FunctionTarget::measured(GpuCosts::new(machine(), measured(Points::Few, by_class)).unwrap()).unwrap();
    let cost = |to: &[usize]| {
        let (from, to) = (Layout::row_major(4), Layout::permutation(to).unwrap());
        let shape = [8, 64, 96, 32];
        let bytes = shape.iter().product::<u64>() * 4;
        let dtype = Some(DType::F32);
        let query = MoveQuery::permute(&from, &to, &shape).dtype(dtype).bytes(bytes);
        (target.move_cost(&query).unwrap().get(), bytes)
    };
    let (transpose, bytes) = cost(&[0, 2, 3, 1]);
    assert_eq!(transpose, NODE_NS + bytes);
    assert_eq!(cost(&[3, 2, 1, 0]).0, NODE_NS + 4 * bytes);
}

#[test]
fn a_filter_of_groups_reads_the_channels_of_its_group_alone() {
    let work = |groups| {
        Case::Conv(ConvCase { dtype: "f32", channels_last: true, groups, taps: 9, channels: 64, pixels: 256 }).work()
            as u64
    };
    assert_eq!([1, 8, 64].map(work), [9_437_184, 1_179_648, 147_456]);
}

#[test]
fn the_target_says_where_its_costs_come_from() {
    let costs = |device: &str| {
        let machine = GpuMachine { device: device.to_owned(), ..machine() };
        FunctionTarget::measured(GpuCosts::new(machine, measured(Points::Few, by_class)).unwrap()).unwrap()
    };
    let source = costs("cuda").cost_source().to_owned();
    assert!(source.contains("made") && source.contains("PyTorch 2.9.1") && source.contains("2026-11-22"), "{source}");
    assert!(!source.contains("CPU"), "{source}");
    assert!(costs("cpu").cost_source().contains("a CPU, so they say nothing of a GPU"));
    assert_eq!(costs("cuda").metadata(), [("relayout.costs".to_owned(), source)]);
    let builtin = builtin("cuda-tensorcore").unwrap();
    assert!(builtin.cost_source().contains("not a measurement") && builtin.metadata().is_empty());
}
