//! Tables of measured costs: reading and writing them, and what the built-in one says of shapes whose times are known.

use relayout_targets::measured::{
    Activation, Attention, AttentionShape, AxisShape, Case, ConvKernel, ConvShape, Copy, CostsError, GemmShape,
    Machine, MeasuredCosts, Measurement, ORT_CPU, Pool, PoolShape, Projection, ProjectionShape, Reorder, ResizeShape,
    Scaling, Share, Side, Spec, Spread, VolumeShape, points_of, specs,
};
use std::collections::BTreeMap;

const BLOCK: u64 = 16;

fn machine() -> Machine {
    Machine {
        machine: "a \"made\" machine".to_owned(),
        date: "2026-11-21".to_owned(),
        runtime: "ONNX Runtime 1.31.1".to_owned(),
        threads: vec![1],
        block: BLOCK,
        node_ns: vec![100],
        off_percent: Vec::new(),
        derived: None,
    }
}

/// Measurements of a machine that takes 2 ns per unit of any work, beside what a node takes.
fn measured() -> Vec<Measurement> {
    let measure = |spec: Spec| {
        let axes: Vec<Vec<u64>> = spec.axes.iter().map(|(_, points)| points.clone()).collect();
        let ns = |point: &Vec<u64>| 100 + (2.0 * spec.case(point, BLOCK).work(BLOCK)) as u64;
        Measurement {
            name: spec.name.clone(),
            axes: spec.axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect(),
            ns: points_of(&axes).iter().map(ns).collect(),
        }
    };
    specs().into_iter().map(measure).collect()
}

fn text() -> String {
    MeasuredCosts::text(&machine(), &measured(), &BTreeMap::new())
}

fn builtin() -> MeasuredCosts {
    MeasuredCosts::builtin(BLOCK, 1).unwrap()
}

#[test]
fn a_table_answers_for_its_block_and_for_any_number_of_threads() {
    for table in &ORT_CPU {
        let read = MeasuredCosts::parse(table.name, table.text).unwrap();
        assert_eq!((read.machine().block, read.threads()), (table.block, 1), "{}", table.name);
        assert!(!read.is_derived());
    }
    for block in [8, 16] {
        // Of the machine of the table for blocks of 16 one thread was measured.
        for (asked, threads, derived) in
            [(0, 1, false), (1, 1, false), (2, 2, block == 16), (3, 3, true), (64, 64, true)]
        {
            let found = MeasuredCosts::builtin(block, asked).unwrap();
            assert_eq!((found.machine().block, found.threads(), found.is_derived()), (block, threads, derived));
        }
    }
    // No table is of such blocks.
    assert_eq!(MeasuredCosts::builtin(4, 1).unwrap().machine().block, 16);
}

#[test]
fn more_threads_make_large_convolutions_faster_and_serial_ops_not() {
    for block in [8, 16] {
        let [one, four, many] = [1, 4, 16].map(|threads| MeasuredCosts::builtin(block, threads).unwrap());
        let times = |case: &Case| [&one, &four, &many].map(|costs| costs.ns(case).unwrap() as f64);
        let conv = Case::Conv(ConvShape::same(256, 256, [56, 56], 3, 1), ConvKernel::Blocked);
        let [alone, by_four, by_many] = times(&conv);
        assert!(
            (2.0..4.01).contains(&(alone / by_four)) && (3.0..16.1).contains(&(alone / by_many)),
            "{alone} {by_four} {by_many}"
        );
        // ONNX Runtime's Transpose of three axes that change places, and its Slice, run on one thread.
        for serial in [
            Case::Transpose(vec![60, 60, 60], vec![2, 1, 0], 4),
            Case::Copy { kind: Copy::StridedSlice, run: 512, bytes: 1 << 20 },
        ] {
            let [alone, _, by_many] = times(&serial);
            assert!((0.8..1.2).contains(&(alone / by_many)), "{serial:?}: {alone} {by_many}");
        }
    }
}

/// What a number of threads leaves, of all grids but one and however long an op takes.
fn share(threads: u64, permille: u64) -> BTreeMap<u64, Share> {
    let serial = ["transpose-general".to_owned()].into();
    [(threads, Share { ns: vec![1000], permille: vec![permille], serial })].into()
}

#[test]
fn times_on_more_threads_are_a_part_of_those_on_one() {
    let machine = Machine { threads: vec![1, 4], node_ns: vec![100, 200], off_percent: vec![3], ..machine() };
    let text = MeasuredCosts::text(&machine, &measured(), &share(4, 250));
    let costs = MeasuredCosts::parse("made", &text).unwrap();
    assert_eq!(*costs.machine(), machine);
    let conv = Case::Conv(ConvShape::same(64, 64, [28, 28], 3, 1), ConvKernel::Plain);
    let serial = Case::Transpose(vec![60, 60, 60], vec![2, 1, 0], 4);
    let own = |threads: u64| {
        let costs = costs.clone().on_threads(threads).unwrap();
        assert_eq!((costs.threads(), costs.is_derived()), (threads, ![1, 4].contains(&threads)));
        let own = [&conv, &serial].map(|case| (costs.ns(case).unwrap() - costs.node_ns()) as f64);
        (costs.node_ns(), own)
    };
    let (_, [conv_alone, serial_alone]) = own(1);
    for (threads, node) in [(1, 100), (2, 141), (4, 200), (16, 200)] {
        let (node_ns, [conv, serial]) = own(threads);
        assert_eq!(node_ns, node, "{threads}");
        // All of the convolution is shared.
        for (found, expected) in [(conv, conv_alone / threads as f64), (serial, serial_alone)] {
            assert!((found / expected - 1.0).abs() < 0.01, "{threads}: {found} instead of {expected}");
        }
    }
}

#[test]
fn a_table_of_several_threads_has_all_of_them() {
    let machine = Machine { threads: vec![1, 2], node_ns: vec![100, 100], ..machine() };
    let text = MeasuredCosts::text(&machine, &measured(), &share(2, 500));
    assert!(MeasuredCosts::parse("made", &text).is_ok());
    let many = (1..=65).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let (long, threads) = (format!("ns = [{many}]\npermille = [{many}]"), format!("threads = [{many}]"));
    for (from, to, says) in [
        ("threads = [1, 2]", "threads = [1, 4]", "there is no table `threads.4`"),
        ("[threads.2]", "[threads.two]", "`threads.two` is not of a number of threads"),
        (
            "[threads.2]",
            "[threads.3]\nns = [1]\npermille = [1]\nserial = []\n[threads.2]",
            "`threads` of what was measured has no 3",
        ),
        ("threads = [1, 2]", "threads = [2, 2]", "should be one number, or several that rise from 1"),
        ("ns = [1000]\npermille = [500]", &long, "`ns` should be 1 to 64 numbers that rise"),
        ("threads = [1, 2]", &threads, "`threads` has 65 numbers, and should have 64 at most"),
        ("threads = [1, 2]", "threads = []", "should be one number, or several that rise from 1"),
        ("threads = [1, 2]", "threads = [0, 2]", "`threads` is 0, and should be in 1..=65536"),
        ("node_ns = [100, 100]", "node_ns = [100]", "`threads` has 2 numbers, and `node_ns` has 1"),
        ("permille = [500]", "permille = [0]", "`permille` is 0"),
        ("permille = [500]", "", "permille"),
        ("permille = [500]", "permille = [500, 400]", "in table `threads.2`, `ns` should be 1 to 64 numbers that rise"),
        (
            "ns = [1000]\npermille = [500]",
            "ns = [9, 9]\npermille = [500, 500]",
            "`ns` should be 1 to 64 numbers that rise",
        ),
        ("ns = [1000]\npermille = [500]", "ns = []\npermille = []", "`ns` should be 1 to 64 numbers that rise"),
        ("\"transpose-general\"", "\"transposed\"", "no grid is called `transposed`"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = MeasuredCosts::parse("made", &text.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(says), "{from} {to}: {error}");
    }
}

#[test]
fn what_fills_a_block_is_counted_in_blocks_of_the_host_that_is_asked_about() {
    let costs = MeasuredCosts::parse("made", &text()).unwrap();
    let eight = costs.clone().for_blocks_of(8);
    assert_eq!((costs.block(), eight.block(), eight.machine().block), (16, 8, 16));
    let work =
        |costs: &MeasuredCosts, shape: ConvShape| costs.conv_ns(&shape, ConvKernel::Blocked).unwrap() - costs.node_ns();
    let groups = ConvShape::same(64, 64, [14, 14], 3, 1).grouped(8);
    // A group of 8 channels fills a block of 8, and a quarter of the products of a block of 16.
    assert_eq!(work(&costs, groups), 4 * work(&eight, groups));
    let dense = groups.grouped(1);
    assert_eq!(work(&costs, dense), work(&eight, dense));
    // Fewer channels than a block are read as they are.
    let thin = |costs: &MeasuredCosts, c: u64| {
        costs.conv_ns(&ConvShape::same(c, 64, [14, 14], 3, 1), ConvKernel::BlockedFromNchw)
    };
    assert_eq!([&costs, &eight].map(|costs| thin(costs, 9).is_some()), [true, false]);
}

const PROJECTIONS: [Projection; 4] =
    [Projection::Together, Projection::TogetherBias, Projection::Apart, Projection::ApartBias];

/// One case of each kind, none at a point of a grid.
fn cases() -> Vec<Case> {
    let conv = ConvShape::same(40, 72, [20, 30], 3, 1);
    let pool = PoolShape { n: 2, c: 20, h: 30, w: 30, oh: 15, ow: 15, kernel: [3, 3], stride: [2, 2] };
    let resize = ResizeShape { n: 1, c: 24, from: [10, 10], to: [30, 30] };
    let gemm = GemmShape { batch: 3, m: 30, k: 100, n: 50, transposed_b: false, constant_b: true };
    let axis = AxisShape { outer: 6, length: 50, inner: 1 };
    let attention = AttentionShape { heads: 6, queries: 50, keys: 90, width: 24, value_width: 40 };
    let mut cases = vec![
        Case::Conv(conv, ConvKernel::Plain),
        Case::Conv(conv, ConvKernel::Blocked),
        Case::Conv(ConvShape::same(3, 40, [50, 60], 3, 2), ConvKernel::BlockedFromNchw),
        Case::Conv(ConvShape { kh: 1, kw: 7, dilation: [1, 2], ..conv }, ConvKernel::Plain),
        Case::Conv(ConvShape { kh: 1, kw: 7, dilation: [1, 2], ..conv }, ConvKernel::Blocked),
        Case::Conv(ConvShape::same(40, 40, [20, 30], 5, 2).grouped(40), ConvKernel::Plain),
        Case::Conv(ConvShape::same(40, 40, [20, 30], 5, 2).grouped(40), ConvKernel::Blocked),
        Case::Conv(ConvShape::same(40, 80, [20, 30], 3, 2).grouped(4), ConvKernel::Plain),
        Case::Conv(ConvShape::same(40, 80, [20, 30], 1, 2).grouped(4), ConvKernel::Blocked),
        Case::Conv(ConvShape::same(40, 80, [20, 30], 1, 2), ConvKernel::Plain),
        Case::Volume(VolumeShape::same(conv, 6)),
        Case::Volume(VolumeShape { kd: 1, stride: 2, od: 3, ..VolumeShape::same(conv.grouped(4), 6) }),
        Case::Reorder(Reorder::Input, Side::Nchw, [1, 20, 9, 9]),
        Case::Reorder(Reorder::Output, Side::ChannelsLast, [2, 20, 9, 9]),
        Case::Transpose(vec![2, 30, 7, 9], vec![0, 2, 3, 1], 4),
        Case::Transpose(vec![2, 30, 7, 9], vec![0, 2, 1, 3], 4),
        Case::Transpose(vec![2, 30, 7, 9], vec![2, 1, 0, 3], 4),
        Case::Transpose(vec![2, 30, 7, 9], vec![3, 2, 1, 0], 2),
        Case::Gemm(gemm),
        Case::Gemm(GemmShape { transposed_b: true, constant_b: false, ..gemm }),
        Case::Softmax(axis),
        Case::Softmax(AxisShape { inner: 12, ..axis }),
        Case::Reduce(axis),
        Case::Reduce(AxisShape { inner: 12, ..axis }),
        Case::Attention(attention, Attention::Apart),
        Case::Attention(attention, Attention::Whole),
    ];
    for spread in [
        Spread::Same,
        Spread::Scalar,
        Spread::Channel { pixels: 100 },
        Spread::Last { channels: 20 },
        Spread::Blocked { pixels: 100 },
    ] {
        cases.push(Case::Elementwise("Mul", 32 * 100, spread));
    }
    for blocked in [false, true] {
        cases.extend(
            [Pool::Max, Pool::Average, Pool::GlobalMax, Pool::GlobalAverage].map(|k| Case::Pool(k, pool, blocked)),
        );
        cases.extend([Scaling::Nearest, Scaling::Linear].map(|mode| Case::Resize(mode, resize, blocked)));
    }
    let projection = ProjectionShape { rows: 100, inputs: 300, heads: 5, width: 40 };
    cases.extend(PROJECTIONS.map(|form| Case::Projection(projection, form)));
    for kind in [Copy::Concat, Copy::Split, Copy::Slice, Copy::StridedSlice, Copy::Pad] {
        cases.push(Case::Copy { kind, bytes: 50_000, run: 200 });
    }
    cases
}

#[test]
fn a_table_that_was_written_reads_as_it_was() {
    let costs = MeasuredCosts::parse("made", &text()).unwrap();
    assert_eq!(*costs.machine(), machine());
    assert_eq!(costs.node_ns(), 100);
    assert_eq!(text(), MeasuredCosts::text(&machine(), &measured(), &BTreeMap::new()));
}

#[test]
fn on_a_machine_of_one_speed_every_case_takes_its_work() {
    let costs = MeasuredCosts::parse("made", &text()).unwrap();
    for case in cases() {
        let expected = 100.0 + 2.0 * case.work(BLOCK);
        let ns = costs.ns(&case).unwrap() as f64;
        assert!((ns / expected - 1.0).abs() < 1e-3, "{case:?}: {ns} instead of {expected}");
    }
}

#[test]
fn the_points_of_a_grid_cost_what_was_measured_there() {
    let text = ORT_CPU[0].text;
    let builtin = builtin();
    for spec in specs() {
        // What an activation adds is a difference, and noise below nothing counts as nothing.
        if spec.name == "conv-activation" {
            continue;
        }
        let axes: Vec<Vec<u64>> = spec.axes.iter().map(|(_, points)| points.clone()).collect();
        let case = spec.case(&points_of(&axes)[0], BLOCK);
        let grid = &text[text.find(&format!("[grid.{}]", spec.name)).unwrap()..];
        let list = &grid[grid.find("\nns = [").unwrap() + 7..];
        let measured: u64 = list[..list.find(',').unwrap()].trim().parse().unwrap();
        // Some grids answer only as a ratio to another one.
        let ns = builtin.ns(&case).unwrap() as f64 / measured as f64;
        assert!((0.5..2.0).contains(&ns), "{}: {case:?} costs {ns} of what was measured", spec.name);
    }
}

#[test]
fn sizes_beyond_every_measurement_have_finite_costs() {
    let costs = builtin();
    let huge = 1 << 40;
    for size in [0, 1, huge] {
        let conv =
            ConvShape { n: size, c: size, h: size, w: size, m: size, ..ConvShape::same(size, size, [size; 2], 3, 2) };
        for shape in [conv, conv.grouped(size), ConvShape { oh: 0, kh: 0, kw: 0, ..conv }] {
            for form in [ConvKernel::Plain, ConvKernel::Blocked, ConvKernel::BlockedFromNchw] {
                assert!(costs.conv_ns(&shape, form).is_none_or(|ns| ns > 0), "{shape:?}");
            }
            let volume = VolumeShape { kd: size, stride: size, ..VolumeShape::same(shape, size) };
            assert!(costs.volume_ns(&volume).is_none_or(|ns| ns > 0), "{volume:?}");
        }
        assert!(costs.transpose_ns(&[size, 3, size], &[2, 1, 0], 4) > 0);
        assert!(costs.transpose_ns(&[size], &[0, 7], 0) > 0);
        assert!(costs.elementwise_ns("Unheard", size, Spread::Channel { pixels: size }) > 0);
        assert!(costs.reorder_ns(Reorder::Input, Side::Nchw, [size; 4]) > 0);
        assert!(costs.copy_ns(Copy::Pad, size, size) > 0);
        let projection = ProjectionShape { rows: size, inputs: size, heads: size, width: size };
        assert!(PROJECTIONS.iter().all(|&form| costs.projection_ns(&projection, form) > 0));
        assert!(costs.softmax_ns(&AxisShape { outer: size, length: size, inner: size }) > 0);
    }
}

#[test]
fn a_form_without_a_kernel_has_no_cost() {
    let costs = builtin();
    let conv = |c, m| ConvShape::same(c, m, [14, 14], 3, 1);
    assert_eq!(costs.conv_ns(&conv(16, 32), ConvKernel::BlockedFromNchw), None);
    assert_eq!(costs.conv_ns(&conv(8, 32).grouped(2), ConvKernel::BlockedFromNchw), None);
    assert_eq!(costs.conv_ns(&conv(9, 32).grouped(2), ConvKernel::Plain), None);
    assert!(costs.conv_ns(&conv(15, 32), ConvKernel::BlockedFromNchw).is_some());
}

#[test]
fn an_activation_costs_no_less_than_none_and_sigmoid_more_than_relu() {
    let costs = builtin();
    let ns = |activation| {
        let shape = ConvShape { activation, ..ConvShape::same(64, 64, [56, 56], 1, 1) };
        [ConvKernel::Plain, ConvKernel::Blocked].map(|form| costs.conv_ns(&shape, form).unwrap())
    };
    for i in 0..2 {
        assert!(ns(None)[i] <= ns(Some(Activation::Relu))[i]);
        assert!(ns(Some(Activation::Relu))[i] < ns(Some(Activation::Sigmoid))[i]);
    }
}

/// What a convolution costs plain, blocked, and blocked between two reorders.
fn ways(costs: &MeasuredCosts, shape: ConvShape) -> [u64; 3] {
    let blocked = costs.conv_ns(&shape, ConvKernel::Blocked).unwrap();
    let input = costs.reorder_ns(Reorder::Input, Side::Nchw, [shape.n, shape.c, shape.h, shape.w]);
    let output = costs.reorder_ns(Reorder::Output, Side::Nchw, [shape.n, shape.m, shape.oh, shape.ow]);
    [costs.conv_ns(&shape, ConvKernel::Plain).unwrap(), blocked, input + blocked + output]
}

#[test]
fn padding_pays_where_it_is_little_and_does_not_where_it_doubles_the_work() {
    let costs = builtin();
    let chain = |c| ways(&costs, ConvShape::same(c, c, [56, 56], 3, 1));
    let [plain, blocked, alone] = chain(30);
    assert!(4 * plain > 3 * blocked + alone, "30 channels in blocks of 32: {plain} {blocked} {alone}");
    for c in [17, 18, 33] {
        let [plain, blocked, _] = chain(c);
        assert!(plain < blocked, "{c} channels: {plain} {blocked}");
    }
}

#[test]
fn one_output_channel_stays_plain_and_so_do_small_groups_that_stand_alone() {
    let costs = builtin();
    let [plain, _, alone] = ways(&costs, ConvShape::same(64, 1, [56, 56], 1, 1));
    assert!(2 * plain < alone, "64 to 1: {plain} {alone}");
    let groups = ConvShape::same(32, 32, [56, 56], 3, 1).grouped(4);
    let plain = costs.conv_ns(&groups, ConvKernel::Plain).unwrap();
    let [_, dense, alone] = ways(&costs, groups.grouped(1));
    assert!(plain < alone && 4 * plain < 5 * dense, "groups of 8: {plain} {dense} {alone}");
}

#[test]
fn wide_convolutions_and_depthwise_ones_are_faster_in_blocks() {
    let costs = builtin();
    for shape in [
        ConvShape::same(64, 64, [56, 56], 3, 1),
        ConvShape::same(256, 256, [14, 14], 3, 1),
        ConvShape::same(96, 96, [56, 56], 3, 1).grouped(96),
    ] {
        let [plain, blocked, alone] = ways(&costs, shape);
        assert!(blocked < plain && alone < plain, "{shape:?}: {plain} {blocked} {alone}");
    }
}

#[test]
fn a_convolution_of_volumes_is_dearer_plain_than_blocked_over_its_frames() {
    let costs = builtin();
    for (c, side) in [(64, 56), (128, 28), (256, 14), (512, 7)] {
        let image = ConvShape::same(c, c, [side; 2], 3, 1);
        let plain = costs.volume_ns(&VolumeShape::same(image, 8)).unwrap();
        // Three frames side by side, eight times.
        let blocked = costs.conv_ns(&ConvShape { n: 8, c: 3 * c, ..image }, ConvKernel::Blocked).unwrap();
        assert!(blocked < plain, "{c} channels: {plain} {blocked}");
    }
}

#[test]
fn a_general_permutation_costs_several_times_two_moved_axes() {
    let costs = builtin();
    let ns = |perm: [usize; 4]| costs.transpose_ns(&[1, 64, 112, 112], &perm, 4);
    assert!(
        ns([0, 3, 2, 1]) > 2 * (ns([0, 2, 3, 1]) + ns([0, 2, 1, 3])),
        "one slow step against two fast ones: {} {} {}",
        ns([0, 3, 2, 1]),
        ns([0, 2, 3, 1]),
        ns([0, 2, 1, 3])
    );
}

#[test]
fn one_op_attends_faster_to_many_positions_with_narrow_heads_and_slower_to_few() {
    let faster = |queries: u64, keys: u64, width: u64| {
        let shape = AttentionShape { heads: 8, queries, keys, width, value_width: width };
        let [apart, whole] = [Attention::Apart, Attention::Whole].map(|form| builtin().attention_ns(&shape, form));
        apart > whole
    };
    assert!(faster(1024, 1024, 16) && faster(1500, 1500, 64) && faster(4096, 4096, 40));
    assert!(!faster(64, 64, 64) && !faster(1024, 77, 40) && !faster(16, 1024, 64) && !faster(3136, 49, 32));
}

#[test]
fn columns_of_a_projection_cost_what_the_runtime_packs_and_one_matrix_knows_no_heads() {
    let costs = builtin();
    let ns = |heads, width, form| costs.projection_ns(&ProjectionShape { rows: 196, inputs: 192, heads, width }, form);
    for form in [Projection::Apart, Projection::ApartBias] {
        assert!(ns(6, 32, form) < ns(6, 33, form));
        assert_eq!([33, 36, 40, 47].map(|width| ns(6, width, form)), [ns(6, 48, form); 4], "{form:?}");
        let (few, many) = (ns(6, 48, form) - costs.node_ns(), ns(18, 48, form) - costs.node_ns());
        assert!(many.abs_diff(3 * few) <= 3, "{form:?}: {few} {many}");
    }
    for form in [Projection::Together, Projection::TogetherBias] {
        assert_eq!(
            [(3, 64), (4, 48), (12, 16), (1, 190)].map(|(h, w)| ns(h, w, form)),
            [ns(6, 32, form); 4],
            "{form:?}"
        );
    }
}

#[test]
fn heads_come_cheaper_from_the_product_than_by_a_move_where_rows_are_many_and_widths_small_and_dearer_where_not() {
    let costs = builtin();
    let saves = |rows, inputs, heads, width, [together, apart]: [Projection; 2]| {
        let ns = |form| costs.projection_ns(&ProjectionShape { rows, inputs, heads, width }, form);
        let moved = costs.ns(&Case::Transpose(vec![rows, heads, width], vec![1, 0, 2], 4)).unwrap();
        ns(apart) < ns(together) + moved
    };
    let plain = [Projection::Together, Projection::Apart];
    let bias = [Projection::TogetherBias, Projection::ApartBias];
    for form in [plain, bias] {
        assert!(saves(3136, 96, 9, 32, form) && saves(784, 192, 18, 32, form), "{form:?}");
        assert!(!saves(64, 192, 3, 64, form) && !saves(1024, 320, 8, 40, form), "{form:?}");
    }
    // With a bias, which a node of its own adds, less is saved.
    assert!(saves(196, 384, 6, 64, plain) && !saves(196, 384, 6, 64, bias));
}

#[test]
fn a_table_of_another_version_or_target_is_told_so_whatever_else_it_has() {
    let error = |text: &str| MeasuredCosts::parse("mine.toml", text).unwrap_err();
    let old = error("format = 1\n[measured]\nspeed = 3\n");
    assert_eq!(old, CostsError::OtherFormat { name: "mine.toml".to_owned(), format: 1, reads: 6 });
    let said = old.to_string();
    assert!(said.contains("format 1") && said.contains("format 6") && said.contains("relayout calibrate"), "{said}");
    let other = error(&text().replacen("\"ort-cpu\"", "\"ort-gpu\"", 1));
    assert_eq!(
        other,
        CostsError::OtherTarget {
            name: "mine.toml".to_owned(),
            target: "ort-gpu".to_owned(),
            wanted: "ort-cpu".to_owned()
        }
    );
    let said = other.to_string();
    assert!(said.contains("mine.toml") && said.contains("`ort-gpu`") && said.contains("`ort-cpu`"), "{said}");
}

#[test]
fn a_table_that_cannot_be_used_says_what_is_wrong() {
    let good = text();
    let of = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        let error = MeasuredCosts::parse("mine.toml", &good.replacen(from, to, 1)).unwrap_err();
        let CostsError::Malformed { name, .. } = &error else { panic!("{error}") };
        assert_eq!(name, "mine.toml");
        let text = error.to_string();
        assert!(!text.contains('\n') && text.contains("relayout calibrate"), "{text}");
        text
    };
    for (from, to, says) in [
        ("format = 6", "format =", "TOML parse error"),
        ("target = \"ort-cpu\"\n", "", "target"),
        ("block = 16", "block = 0", "`block` is 0"),
        ("node_ns = [100]", "node_ns = [-1]", "node_ns"),
        ("threads = [1]\n", "", "threads"),
        ("threads = [1]\n", "threads = [1]\nspeed = 3\n", "speed"),
        ("[grid.softmax-last]", "[grid.softmax-first]", "there is no grid `softmax-last`"),
        ("[grid.softmax-last]", "[grid.extra]\nns = [1]\n\n[grid.softmax-last]", "no grid is called `extra`"),
        (
            "[grid.softmax-last]\nlength",
            "[grid.softmax-last]\nlengths",
            "grid `softmax-last`: there is no axis `length`",
        ),
        ("outer = [1, 64, 1024]", "outer = [1, 64, 64]", "the points of axis `outer` should be numbers from 1 to 2^32"),
        ("outer = [1, 64, 1024]", "outer = [0, 64, 1024]", "the points of axis `outer`"),
        ("outer = [1, 64, 1024]", "outer = [1, 64]", "its list `ns` has 9 numbers, and its axes 3 x 2 points"),
        ("outer = [1, 64, 1024]", "outer = [1, 64, 1024]\nx = [1]", "it has no axis `x`"),
    ] {
        let error = of(from, to);
        assert!(error.contains(says), "{error}\nis not about: {says}");
    }
    let softmax = good.find("[grid.softmax-last]").unwrap();
    let list = softmax + good[softmax..].find("ns = [").unwrap();
    let end = list + good[list..].find(',').unwrap();
    let zero = format!("{}ns = [\n    0{}", &good[..list], &good[end..]);
    let error = MeasuredCosts::parse("mine.toml", &zero).unwrap_err().to_string();
    assert!(error.contains("grid `softmax-last`: the time at [8, 1] is 0"), "{error}");
    let error = MeasuredCosts::parse("mine.toml", "").unwrap_err().to_string();
    assert!(error.contains("format"), "{error}");
}

#[test]
fn reorders_of_a_batch_come_from_as_far_as_those_of_one_image_of_its_size() {
    let costs = builtin();
    let ns = |kind: Reorder, sizes: [u64; 4]| costs.reorder_ns(kind, Side::Nchw, sizes) as f64;
    for kind in [Reorder::Input, Reorder::Output] {
        let one = ns(kind, [1, 16, 64, 64]);
        // 16.8 MB, where an image has 262 kB.
        let all = ns(kind, [64, 16, 64, 64]);
        assert!(all > 1.3 * 64.0 * one, "{kind:?}: {all} against {one} for each of 64");
        let same = ns(kind, [1, 256, 128, 128]);
        assert!((all / same - 1.0).abs() < 0.2, "{kind:?}: {all} against {same} for one of that size");
        // What fits in caches costs what it costs image by image.
        assert!(ns(kind, [2, 16, 7, 7]) <= 2.0 * ns(kind, [1, 16, 7, 7]));
    }
}
