//! Generated kernels, run on the CPU by the shim with the address and undefined-behaviour sanitizers, against the portable kernel.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cuda_common::{Case, exact, permuted, thinned, varied};
use relayout_codegen::cuda::{CudaKernel, KernelClass, Variant};

/// What was seen of one kind of access: instructions, bytes, cost in turns or sectors, the least cost, the widest access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    accesses: usize,
    bytes: usize,
    cost: usize,
    least: usize,
    widest: usize,
}

/// Figures of one case: reads, writes, and gets and puts of shared memory.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    read: Totals,
    write: Totals,
    get: Totals,
    put: Totals,
}

/// A program of many kernels.
struct Program {
    folder: PathBuf,
    binary: PathBuf,
}

impl Program {
    /// Writes and compiles the kernels as one translation unit.
    fn build(name: &str, kernels: &[(CudaKernel, bool)]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("a folder for the program");
        let (source, binary) = (folder.join("kernels.cpp"), folder.join("kernels"));
        std::fs::write(&source, translation_unit(kernels)).expect("the source is written");
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let output = Command::new(&compiler)
            .args(["-std=c++17", "-O0", "-g1", "-fno-strict-aliasing", "-w"])
            .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
            .arg(format!("-I{}/tests/cuda_shim", env!("CARGO_MANIFEST_DIR")))
            .arg(&source)
            .arg("-o")
            .arg(&binary)
            .output()
            .unwrap_or_else(|error| panic!("no C++ compiler `{compiler}` ({error}): install g++ or clang, or set CXX"));
        assert!(output.status.success(), "{compiler} refuses {}:\n{}", source.display(), text(&output.stderr));
        Self { folder, binary }
    }

    /// Runs cases `first` to `last`.
    fn run(&self, first: usize, last: usize) -> Output {
        Command::new(&self.binary)
            .arg(&self.folder)
            .args([first.to_string(), last.to_string()])
            .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
            .output()
            .expect("the program starts")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The kernels, each source once and in a namespace of its own, and the table of cases.
fn translation_unit(kernels: &[(CudaKernel, bool)]) -> String {
    let mut unit = String::from("#include \"shim.h\"\n");
    let mut known: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut table = String::new();
    for (at, (kernel, watch)) in kernels.iter().enumerate() {
        let (space, source) = *known.entry(&kernel.name).or_insert_with(|| {
            let _ = write!(unit, "namespace k{at} {{\n{}}}\n", kernel.source);
            (at, &kernel.source)
        });
        assert_eq!(source, kernel.source, "two sources are called {}", kernel.name);
        let launch = &kernel.launch;
        let arguments = launch.arguments.iter().fold(String::new(), |mut text, argument| {
            let _ = write!(text, ", {}u", argument.value);
            text
        });
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let _ = writeln!(
            table,
            "  {{\"{name}\", {{{gx}, {gy}, {gz}}}, {{{bx}, {by}, {bz}}}, {}, {}, {}, {watch}, \
             [](const unsigned char* s, unsigned char* d) {{ k{space}::{name}(s, d{arguments}); }}}},",
            launch.source_bytes,
            launch.destination_bytes,
            launch.alignment,
            name = kernel.name,
        );
    }
    let _ = write!(unit, "static const Case cases[] = {{\n{table}}};\n");
    unit.push_str(
        "int main(int argc, char** argv) { return run_cases(cases, sizeof cases / sizeof *cases, argc, argv); }\n",
    );
    unit
}

/// Runs all kernels, holds each result against what is expected, and gives the figures of each.
fn check(name: &str, cases: &[(Case, CudaKernel, bool)]) -> Vec<Figures> {
    let kernels: Vec<(CudaKernel, bool)> = cases.iter().map(|(_, kernel, watch)| (kernel.clone(), *watch)).collect();
    let program = Program::build(name, &kernels);
    let output = program.run(0, cases.len());
    let lines = text(&output.stdout);
    let done = lines.lines().count();
    let at = cases.get(done).map_or("the end", |(_, kernel, _)| kernel.name.as_str());
    assert!(output.status.success(), "the program stopped at {at}:\n{}", text(&output.stderr));
    let mut wrong = Vec::new();
    for (index, (case, kernel, _)) in cases.iter().enumerate() {
        let got = std::fs::read(program.folder.join(index.to_string())).expect("a result");
        let want = case.expected();
        if got != want {
            let bad = got.iter().zip(&want).filter(|(got, want)| got != want).count();
            wrong.push(format!("{}: {bad} of {} bytes are wrong ({case:?})", kernel.name, want.len()));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    lines.lines().zip(cases).map(|(line, (_, kernel, _))| figures(line, &kernel.name)).collect()
}

/// Reads a line of figures; results must not depend on the order of the threads.
fn figures(line: &str, name: &str) -> Figures {
    let mut fields = line.split(' ').skip(1);
    assert_eq!(fields.next(), Some("stable=1"), "{name}: the result depends on the order of the threads");
    let mut totals = fields.map(|field| {
        let numbers: Vec<usize> = field.split(',').map(|number| number.parse().expect("a number")).collect();
        let [accesses, bytes, cost, least, widest] = numbers.as_slice() else { panic!("five numbers: {field}") };
        Totals { accesses: *accesses, bytes: *bytes, cost: *cost, least: *least, widest: *widest }
    });
    let mut next = || totals.next().expect("four kinds");
    let (read, write, get, put) = (next(), next(), next(), next());
    Figures { read, write, get, put }
}

#[test]
fn odd_shapes_come_out_right_in_every_class_and_form() {
    // A class that cannot carry a move out says so; that is tested elsewhere.
    let cases = thinned(
        varied()
            .into_iter()
            .filter_map(|case| case.generate().ok().map(|kernel| (kernel.class, (case, kernel, false)))),
    );
    for class in [KernelClass::Copy, KernelClass::Rows, KernelClass::Tile, KernelClass::Packed, KernelClass::Gather] {
        let count = cases.iter().filter(|(_, kernel, _)| kernel.class == class).count();
        assert!(count >= 2, "only {count} cases of {class:?}");
    }
    check("odd", &cases);
}

#[test]
fn whole_tiles_touch_whole_sectors_and_each_bank_once() {
    let named = exact();
    let cases: Vec<_> =
        named.iter().map(|(_, case)| (case.clone(), case.generate().expect("a kernel"), true)).collect();
    let figures = check("exact", &cases);
    let mut table = String::new();
    for (((name, case), (_, kernel, _)), figures) in named.iter().zip(&cases).zip(figures) {
        let Figures { read, write, get, put } = figures;
        let _ = writeln!(
            table,
            "{name}: {}; read {} B wide, {}/{} sectors; write {} B wide, {}/{} sectors; put {}/{} turns; get {}/{} turns",
            kernel.class.as_str(),
            read.widest,
            read.cost,
            read.least,
            write.widest,
            write.cost,
            write.least,
            put.cost,
            put.least,
            get.cost,
            get.least
        );
        if case.options.variant == Variant::OneFlow {
            continue;
        }
        assert_eq!(write.bytes as u64, kernel.launch.destination_bytes, "{name} writes each byte once");
        assert_eq!((write.widest, write.cost), (16, write.least), "{name} writes whole sectors, 16 bytes a thread");
        if kernel.class == KernelClass::Gather {
            continue;
        }
        // Rows of 16 bytes and less are read by threads 4 of them apart: the other half of a sector comes from the L1 cache.
        let times = if name.starts_with("unpack 4c") { 2 } else { 1 };
        assert_eq!((read.widest, read.cost), (16, times * read.least), "{name} reads whole sectors, 16 bytes a thread");
        assert_eq!(read.bytes as u64, kernel.launch.source_bytes, "{name} reads each byte once");
        assert_eq!(put.cost, put.least, "{name} puts without conflicts");
        // Bytes and halves of three channels meet two words of a bank at most; all else none.
        let times = if kernel.class == KernelClass::Packed { 2 } else { 1 };
        assert!(get.cost <= times * get.least, "{name} gets in {} turns, {} would do", get.cost, get.least);
    }
    println!("{table}");
}

#[test]
fn the_shim_finds_what_is_broken() {
    let whole = permuted(&[64, 128], &[1, 0], 4).generate().expect("a kernel");
    let broken = |name: &str, from: &str, to: &str| {
        let mut kernel = whole.clone();
        assert!(kernel.source.contains(from), "the source has `{from}`");
        kernel.source = kernel.source.replace(from, to).replace(&kernel.name, name);
        name.clone_into(&mut kernel.name);
        (kernel, false)
    };
    let barrier = "__syncthreads();";
    let mut beyond = broken("beyond", barrier, barrier);
    beyond.0.launch.grid[0] += 1;
    let kernels = [
        broken("open", barrier, ""),
        beyond,
        broken("split", barrier, "if (t < 32u) __syncthreads();"),
        broken("skewed", "src + (", "src + 4 + ("),
    ];
    let program = Program::build("broken", &kernels);
    let open = program.run(0, 1);
    assert!(text(&open.stdout).starts_with("0 stable=0"), "a missing barrier shows in the order of the threads");
    let beyond = program.run(1, 2);
    assert!(!beyond.status.success() && text(&beyond.stderr).contains("AddressSanitizer: heap-buffer-overflow"));
    let split = program.run(2, 3);
    assert!(!split.status.success() && text(&split.stderr).contains("barrier"));
    let skewed = program.run(3, 4);
    assert!(!skewed.status.success() && text(&skewed.stderr).contains("misaligned address"));
}
