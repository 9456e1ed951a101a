//! The tables of the kinds of machines, and how one that was not measured follows from one that was.

use relayout_targets::measured::{
    BuiltinTable, Case, ConvKernel, ConvShape, MACHINES, Machine, MeasuredCosts, Measurement, ORT_CPU, Reorder, Share,
    Side, Spread, is_binary, points_of, specs,
};
use relayout_targets::{Block, OrtCpu};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn a_kind_of_machine_is_told_by_its_name_and_says_where_its_times_are_from() {
    for table in MACHINES {
        let costs = BuiltinTable::of_machine(table.name).unwrap().costs().unwrap();
        assert_eq!((costs.machine().block, costs.threads()), (table.block, 1), "{}", table.name);
        assert_eq!(costs.is_derived(), table.name == "avx2-laptop", "{}", table.name);
        let target = OrtCpu::for_machine(&table, 2).unwrap();
        let (source, machine) = (relayout_target_api::Target::cost_source(&target).to_owned(), costs.machine());
        assert!(source.contains(&machine.machine) && source.contains(&machine.date), "{source}");
        let derived = source.starts_with("derived from what was measured on ");
        assert!(derived == costs.is_derived() && source.contains("2 threads"), "{source}");
        assert_eq!(target.block(), Block::of(table.block).unwrap());
        let told = relayout_target_api::Target::metadata(&target);
        assert!(told.contains(&("relayout.costs".to_owned(), source)), "{told:?}");
    }
    let error = BuiltinTable::of_machine("phone").unwrap_err();
    assert!(MACHINES.iter().all(|table| error.contains(table.name)) && error.contains("`phone`"), "{error}");
    // What is decided by where nothing is said is one of them.
    assert!(ORT_CPU.iter().all(|table| BuiltinTable::of_machine(table.name).is_ok()));
}

#[test]
fn a_table_is_that_of_the_processors_that_it_says() {
    for table in MACHINES {
        let measured = table.costs().unwrap().machine().machine.clone();
        let family = table.processor.map(|processor| format!("family {},", processor.family));
        assert!(family.is_none_or(|family| measured.contains(&family)), "{}: {measured}", table.name);
        assert_eq!(table.processor.is_none(), table.name == "avx2-laptop");
        let found = table.processor.and_then(|processor| BuiltinTable::measured_on(processor, table.block));
        let usual = ORT_CPU.iter().any(|usual| usual.name == table.name) || table.processor.is_none();
        assert_eq!(found.map(|found| found.name), (!usual).then_some(table.name));
    }
}

#[test]
fn kernels_of_many_columns_were_measured_where_a_host_has_avx512() {
    let costs = BuiltinTable::of_machine("avx512-desktop").unwrap().costs().unwrap();
    let text = BuiltinTable::of_machine("avx512-desktop").unwrap().text;
    for grid in ["conv-blocked-kernel", "conv-plain-kernel"] {
        let from = text.find(&format!("[grid.{grid}]")).unwrap();
        assert!(text[from..].lines().nth(2).unwrap().ends_with("11, 31]"), "{grid}");
    }
    let long = |kw| ConvShape { kw, ..ConvShape::same(64, 64, [28, 28], 1, 1) };
    let ns = |kw| costs.conv_ns(&long(kw), ConvKernel::Blocked).unwrap();
    assert!(ns(7) < ns(9) && ns(9) < ns(11) && ns(11) < ns(31));
}

/// What a laptop of the same cores lacks: bytes that its last cache holds of the operands and results of one op, half of 16 MB, and bytes of
/// memory in a nanosecond, one channel of DDR4-3200.
const CACHE: f64 = 8e6;
const CHANNEL: f64 = 25.6;
const HOW: &str = "the same cores with half of the last cache, 16 MB, and one channel of DDR4-3200. Moves, copies and elementwise ops whose \
    operands and results take more than half of that cache take at least what 25.6 GB/s need for them, results being read before they are \
    written; kinds of ops that this would hold up on more threads take all of their time there";

/// Bytes that an op reads and that it leaves, of ops that do little else than move them.
fn moved(case: &Case, block: u64) -> Option<[f64; 2]> {
    let work = case.work(block);
    Some(match case {
        Case::Transpose(_, _, width) => [work * *width as f64; 2],
        Case::Elementwise(op, _, Spread::Same) if is_binary(op) => [8.0 * work, 4.0 * work],
        Case::Reorder(..) | Case::Elementwise(..) => [4.0 * work; 2],
        Case::Copy { .. } => [work; 2],
        _ => return None,
    })
}

/// The table of the laptop, by that of the desktop.
fn laptop() -> String {
    let desktop: toml::Table = toml::from_str(BuiltinTable::of_machine("avx2-desktop").unwrap().text).unwrap();
    let mut machine: Machine = desktop["measured"].clone().try_into().unwrap();
    let mut shares: BTreeMap<u64, Share> = BTreeMap::new();
    for (threads, share) in desktop["threads"].as_table().unwrap() {
        shares.insert(threads.parse().unwrap(), share.clone().try_into().unwrap());
    }
    let mut measured = Vec::new();
    for spec in specs() {
        let numbers = |key: &str| -> Vec<u64> { desktop["grid"][&spec.name][key].clone().try_into().unwrap() };
        let axes: Vec<(String, Vec<u64>)> =
            spec.axes.iter().map(|(name, _)| ((*name).to_owned(), numbers(name))).collect();
        let points = points_of(&axes.iter().map(|(_, points)| points.clone()).collect::<Vec<_>>());
        let least = |point: &Vec<u64>| match moved(&spec.case(point, machine.block), machine.block) {
            Some([read, left]) if read + left > CACHE => (read + 2.0 * left) / CHANNEL,
            _ => 0.0,
        };
        let both: Vec<(f64, u64)> = points.iter().map(least).zip(numbers("ns")).collect();
        for share in shares.values_mut() {
            if both.iter().any(|(least, ns)| *least > share.part(&spec.name, *ns as f64) * *ns as f64) {
                share.serial.insert(spec.name.clone());
            }
        }
        let ns = both.iter().map(|(least, ns)| (*ns).max(least.round() as u64)).collect();
        measured.push(Measurement { name: spec.name, axes, ns });
    }
    machine.derived = Some(format!("`avx2-desktop`, {HOW}"));
    // How far off it is was not measured.
    machine.off_percent = Vec::new();
    MeasuredCosts::text(&machine, &measured, &shares)
}

#[test]
fn the_laptop_follows_from_the_desktop() {
    let (text, path) = (laptop(), Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ort_cpu/costs/avx2-laptop.toml"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == text, "BLESS=1 derives avx2-laptop.toml anew");
    let [desktop, laptop] = ["avx2-desktop", "avx2-laptop"].map(|name| {
        let table = BuiltinTable::of_machine(name).unwrap();
        move |threads: u64, case: &Case| table.costs().unwrap().on_threads(threads).unwrap().ns(case).unwrap()
    });
    let over = |threads: u64, case: &Case| laptop(threads, case) as f64 / desktop(threads, case) as f64;
    let reorder = |c, w| Case::Reorder(Reorder::Input, Side::Nchw, [1, c, w, w]);
    let conv = Case::Conv(ConvShape::same(256, 256, [56, 56], 3, 1), ConvKernel::Blocked);
    // What fits, and what computes, is the same.
    assert!((over(1, &reorder(64, 28)) - 1.0).abs() < 1e-6 && (over(1, &conv) - 1.0).abs() < 1e-6);
    let large = Case::Elementwise("Add", 1 << 20, Spread::Same);
    assert!(over(1, &large) >= 1.0 && over(4, &large) > 1.5, "{} {}", over(1, &large), over(4, &large));
    assert!((over(4, &conv) - 1.0).abs() < 1e-6, "{}", over(4, &conv));
}
