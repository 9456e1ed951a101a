//! Timing a permutation beside copies of the same bytes. The one module here that reads a clock.
//!
//! The kernel, a plain copy and a copy past the caches take turns on the same ring of buffers, in another order each round, so that
//! whatever else the machine does meets all of them; a ratio is taken within a round. The plain copy has two turns, and the ratio
//! of these shows what the machine calls a difference although there is none. *Hot* is one pair of buffers again and
//! again; *cold* a ring of pairs larger than the caches. Rates count bytes read and bytes written.

use std::fmt::Write as _;
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Class, Error, Hint, Kernel, Options, Plan, RowForm, plan};

/// Bytes of a ring that is out of the caches when it comes round.
const RING_BYTES: usize = 192 << 20;

/// Most bytes of a ring: what is asked for beyond it is refused, as a slip of the keyboard.
const MOST_BYTES: usize = 16 << 30;

/// What a turn should take, so that a clock can tell.
const TURN_NS: u64 = 1_000_000;

/// What is to be timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchRequest {
    /// Extents of the source.
    pub shape: Vec<usize>,
    /// Axis `i` of the destination is axis `perm[i]` of the source.
    pub perm: Vec<usize>,
    /// Bytes of an element.
    pub elem_bytes: usize,
    /// Threads, the caller's included.
    pub threads: usize,
    /// [`Hint::Hot`], or a ring of buffers for any other.
    pub hint: Hint,
    /// Pairs of buffers; 0 for one where hot, else as many as make a ring.
    pub pairs: usize,
    /// Rounds, after one that wakes threads and touches code.
    pub rounds: usize,
    /// Runs of each in a round; 0 for as many as make a millisecond.
    pub reps: usize,
    /// What runs beside the kernel.
    pub beside: Beside,
}

/// What runs beside the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// A plain copy, the same again, and a copy past the caches.
    Copies,
    /// Those, and where rows are moved both forms that a kernel for them can have.
    Forms,
}

/// Nanoseconds of a run, one figure for each round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// `copy`, `again` (the same copy), `stream`, `strided` or `gather`.
    pub name: String,
    /// The mean of each round.
    pub ns: Vec<u64>,
}

/// Three quarters of a ratio's way: a quarter of the rounds is below `low`, a quarter above `high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    /// The lower quartile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub high: f64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchReport {
    /// What was timed.
    pub request: BenchRequest,
    /// The plan, for people.
    pub plan: String,
    /// The instruction set.
    pub isa: String,
    /// How rows were found.
    pub form: RowForm,
    /// Bytes of the tensor.
    pub bytes: usize,
    /// The kernel: the mean nanoseconds of a run in each round.
    pub ns: Vec<u64>,
    /// What ran beside it.
    pub beside: Vec<Times>,
}

impl BenchReport {
    /// The times of the kernel (`permute`) or of what ran beside it.
    #[must_use]
    pub fn times(&self, name: &str) -> Option<&[u64]> {
        if name == "permute" {
            return Some(&self.ns);
        }
        self.beside.iter().find(|times| times.name == name).map(|times| times.ns.as_slice())
    }

    /// GB/s of one of them: bytes read and bytes written over the median time.
    #[must_use]
    pub fn gb_per_s(&self, name: &str) -> Option<f64> {
        let times: Vec<f64> = self.times(name)?.iter().map(|&ns| ns as f64).collect();
        Some(2.0 * self.bytes as f64 / quartiles(times)?.median.max(1.0))
    }

    /// How often as fast as a plain copy one of them is, round by round.
    #[must_use]
    pub fn of_copy(&self, name: &str) -> Option<Quartiles> {
        let (copy, own) = (self.times("copy")?, self.times(name)?);
        quartiles(copy.iter().zip(own).map(|(&copy, &own)| copy as f64 / own.max(1) as f64).collect())
    }
}

/// `None` of nothing.
fn quartiles(mut of: Vec<f64>) -> Option<Quartiles> {
    of.sort_by(f64::total_cmp);
    let at = |quarter: usize| of.get(quarter * of.len().checked_sub(1)? / 4).copied();
    Some(Quartiles { low: at(1)?, median: at(2)?, high: at(3)? })
}

/// A table of reports: GB/s of each column, and the ratio to the plain copy with its quartiles.
#[must_use]
pub fn table(reports: &[BenchReport]) -> String {
    let list = |numbers: &[usize], by: &str| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(by);
    let names = ["permute", "copy", "stream", "strided", "gather"];
    let shown: Vec<&str> =
        names.into_iter().filter(|name| reports.iter().any(|report| report.times(name).is_some())).collect();
    let mut head = vec!["shape", "perm", "bytes each", "MB", "data", "threads"];
    head.extend(&shown);
    head.extend(["permute / copy", "copy / copy"]);
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    for report in reports {
        let BenchRequest { shape, perm, elem_bytes, threads, hint, .. } = &report.request;
        let data = if *hint == Hint::Hot { "hot" } else { "cold" };
        let mut row = vec![
            list(shape, "x"),
            list(perm, ","),
            elem_bytes.to_string(),
            format!("{:.2}", report.bytes as f64 / 1e6),
            data.to_owned(),
            threads.to_string(),
        ];
        row.extend(shown.iter().map(|name| match report.gb_per_s(name) {
            Some(rate) => format!("{rate:.1}"),
            None => "-".to_owned(),
        }));
        row.extend(["permute", "again"].map(|name| {
            report.of_copy(name).map_or_else(
                || "-".to_owned(),
                |Quartiles { low, median, high }| format!("{median:.2} ({low:.2} to {high:.2})"),
            )
        }));
        rows.push(row);
    }
    aligned(&rows)
}

/// Columns under each other, the first two to the left and the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = if at < 2 { write!(line, "{cell:width$}  ") } else { write!(line, "{cell:>width$}  ") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A permutation worth timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BenchCase {
    /// What it is.
    pub name: &'static str,
    /// Extents of the source.
    pub shape: &'static [usize],
    /// Axis `i` of the destination is axis `perm[i]` of the source.
    pub perm: &'static [usize],
    /// Bytes of an element.
    pub elem_bytes: usize,
}

/// The permutations that models and libraries are made of, one at least for each class of plan.
pub const CASES: &[BenchCase] = &[
    case("NCHW to NHWC", &[1, 256, 56, 56], &[0, 2, 3, 1], 4),
    case("NHWC to NCHW", &[1, 56, 56, 256], &[0, 3, 1, 2], 4),
    case("NCHW to NHWC, many images", &[32, 64, 56, 56], &[0, 2, 3, 1], 4),
    case("NCHW to NHWC, halves", &[8, 512, 28, 28], &[0, 2, 3, 1], 2),
    case("NCHW to NHWC, bytes", &[8, 512, 28, 28], &[0, 2, 3, 1], 1),
    case("a picture's channels apart", &[1, 224, 224, 3], &[0, 3, 1, 2], 4),
    case("a picture's channels together, bytes", &[1, 3, 224, 224], &[0, 2, 3, 1], 1),
    case("NCHW to NCHW16c", &[1, 16, 16, 56, 56], &[0, 1, 3, 4, 2], 4),
    case("NCHW16c to NCHW", &[1, 16, 56, 56, 16], &[0, 1, 4, 2, 3], 4),
    case("matrix, strides powers of two", &[4096, 4096], &[1, 0], 4),
    case("matrix, odd extents", &[4099, 4093], &[1, 0], 4),
    case("batch of matrices", &[64, 512, 512], &[0, 2, 1], 4),
    case("short rows", &[512, 512, 64], &[1, 0, 2], 4),
    case("heads of attention", &[8, 512, 12, 64], &[0, 2, 1, 3], 4),
    case("channel shuffle", &[1, 2, 58, 28, 28], &[0, 2, 1, 3, 4], 4),
    case("six axes reversed", &[16, 15, 15, 15, 15, 16], &[5, 4, 3, 2, 1, 0], 4),
];

const fn case(name: &'static str, shape: &'static [usize], perm: &'static [usize], elem_bytes: usize) -> BenchCase {
    BenchCase { name, shape, perm, elem_bytes }
}

/// What takes turns on the ring.
enum Contender {
    Kernel(Box<Kernel>),
    Copy { threads: usize },
}

impl Contender {
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Kernel(kernel) => kernel.run(src, dst),
            Self::Copy { threads } => {
                copy(src, dst, *threads);
                Ok(())
            }
        }
    }
}

/// Times a permutation. Refuses one of no bytes, and a ring of more than 16 GB.
pub fn permute(request: &BenchRequest) -> Result<BenchReport, Error> {
    let planned = plan(&request.shape, &request.perm, request.elem_bytes)?;
    let bytes = planned.bytes();
    let options = Options::default().hint(request.hint).threads(request.threads);
    let kernel = Kernel::new(&planned, &options);
    let mut report = BenchReport {
        request: request.clone(),
        plan: planned.to_string(),
        isa: kernel.isa().to_string(),
        form: kernel.form(),
        bytes,
        ns: Vec::new(),
        beside: Vec::new(),
    };
    let mut ring = Ring::new(bytes, request)?;
    let contenders = contenders(kernel, &planned, request, options)?;
    let mut times: Vec<Vec<u64>> = vec![Vec::new(); contenders.len()];
    let mut reps = vec![request.reps; contenders.len()];
    for round in 0..=request.rounds {
        for turn in 0..contenders.len() {
            let who = (turn + round) % contenders.len();
            let contender = &contenders[who].1;
            if round > 0 {
                times[who].push(ring.time(reps[who], |src, dst| contender.run(src, dst))?);
                continue;
            }
            // The first turn wakes threads and touches code; the second says how long one takes.
            ring.time(1, |src, dst| contender.run(src, dst))?;
            let ns = ring.time(1, |src, dst| contender.run(src, dst))?;
            if request.reps == 0 {
                reps[who] = (TURN_NS / ns.max(1)).clamp(1, 10_000) as usize;
            }
        }
    }
    for ((name, _), ns) in contenders.into_iter().zip(times) {
        if name == "permute" {
            report.ns = ns;
        } else {
            report.beside.push(Times { name: name.to_owned(), ns });
        }
    }
    Ok(report)
}

/// The kernel and what runs beside it.
fn contenders(
    kernel: Kernel,
    planned: &Plan,
    request: &BenchRequest,
    options: Options,
) -> Result<Vec<(&'static str, Contender)>, Error> {
    let mut all = vec![("permute", Contender::Kernel(Box::new(kernel)))];
    if request.beside != Beside::Nothing {
        let stream = Kernel::new(&plan(&[planned.bytes()], &[0], 1)?, &options.hint(Hint::Cold));
        all.extend(["copy", "again"].map(|name| (name, Contender::Copy { threads: request.threads })));
        all.push(("stream", Contender::Kernel(Box::new(stream))));
    }
    if request.beside == Beside::Forms && matches!(planned.class(), Class::Rows { .. }) {
        for (name, form) in [("strided", RowForm::Strided), ("gather", RowForm::Gather)] {
            all.push((name, Contender::Kernel(Box::new(Kernel::new(planned, &options.form(form))))));
        }
    }
    Ok(all)
}

fn copy(src: &[u8], dst: &mut [u8], threads: usize) {
    let piece = src.len().div_ceil(threads.max(1)).max(1);
    if threads <= 1 {
        dst.copy_from_slice(src);
    } else {
        dst.par_chunks_mut(piece).zip(src.par_chunks(piece)).for_each(|(dst, src)| dst.copy_from_slice(src));
    }
}

/// Pairs of buffers that begin with a line.
struct Ring {
    room: Room,
    start: usize,
    pitch: usize,
    bytes: usize,
    pairs: usize,
    next: usize,
}

/// Memory of a ring: in huge pages where the system gives them, as a runtime's arena would be.
#[cfg(target_os = "linux")]
type Room = memmap2::MmapMut;
#[cfg(not(target_os = "linux"))]
type Room = Vec<u8>;

#[cfg(target_os = "linux")]
fn room(bytes: usize) -> Option<Room> {
    let room = memmap2::MmapMut::map_anon(bytes).ok()?;
    // A system without huge pages times small ones.
    let _ = room.advise(memmap2::Advice::HugePage);
    Some(room)
}

#[cfg(not(target_os = "linux"))]
fn room(bytes: usize) -> Option<Room> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).ok()?;
    room.resize(bytes, 0);
    Some(room)
}

impl Ring {
    fn new(bytes: usize, request: &BenchRequest) -> Result<Self, Error> {
        let pitch = bytes.next_multiple_of(4096).max(4096);
        let pairs = match (request.pairs, request.hint) {
            (0, Hint::Hot) => 1,
            (0, _) => RING_BYTES.div_ceil(2 * pitch),
            (pairs, _) => pairs,
        };
        let total = pitch.checked_mul(2).and_then(|pair| pair.checked_mul(pairs)).filter(|&all| all <= MOST_BYTES);
        let too_large = || Error::TooLarge { shape: vec![2, pairs, bytes], unit_bytes: 1 };
        let mut room = room(total.ok_or_else(too_large)? + 4096).ok_or_else(too_large)?;
        room.par_chunks_mut(1 << 20).for_each(|part| {
            part.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 167 + at / 251) as u8);
        });
        let start = room.as_ptr().align_offset(4096).min(4096);
        Ok(Self { room, start, pitch, bytes, pairs, next: 0 })
    }

    /// Runs so often, each time on the next pair, and says how many nanoseconds one took.
    fn time(&mut self, reps: usize, run: impl Fn(&[u8], &mut [u8]) -> Result<(), Error>) -> Result<u64, Error> {
        let reps = reps.max(1);
        let start = Instant::now();
        for _ in 0..reps {
            let from = self.start + 2 * self.next * self.pitch;
            let (src, dst) = self.room.split_at_mut(from + self.pitch);
            self.next = (self.next + 1) % self.pairs;
            run(&src[from..from + self.bytes], &mut dst[..self.bytes])?;
        }
        let whole = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(whole.div_ceil(reps as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::{BenchReport, BenchRequest, Beside, CASES, permute, quartiles, table};
    use crate::{Error, Hint, plan};

    fn request() -> BenchRequest {
        BenchRequest {
            shape: vec![3, 40, 50],
            perm: vec![0, 2, 1],
            elem_bytes: 2,
            threads: 2,
            hint: Hint::Cold,
            pairs: 3,
            rounds: 5,
            reps: 1,
            beside: Beside::Copies,
        }
    }

    #[test]
    fn a_report_has_a_time_for_each_round_and_survives_its_text() {
        let report = permute(&request()).expect("a permutation");
        for name in ["permute", "copy", "again", "stream"] {
            assert_eq!(report.times(name).map(<[u64]>::len), Some(5), "{name}");
        }
        assert_eq!((report.bytes, report.times("gather")), (12_000, None));
        let text = serde_json::to_string(&report).expect("plain data");
        assert_eq!(serde_json::from_str::<BenchReport>(&text).expect("its own text"), report);
        assert!(matches!(
            permute(&BenchRequest { perm: vec![0, 0, 1], ..request() }),
            Err(Error::NotAPermutation { .. })
        ));
    }

    #[test]
    fn rows_are_timed_in_both_forms_and_alone() {
        let rows = BenchRequest { shape: vec![4, 6, 80], perm: vec![1, 0, 2], beside: Beside::Forms, ..request() };
        let report = permute(&rows).expect("a permutation");
        assert!(report.times("strided").is_some() && report.times("gather").is_some());
        let alone = permute(&BenchRequest { beside: Beside::Nothing, reps: 0, ..rows }).expect("a permutation");
        assert!(alone.beside.is_empty() && alone.ns.len() == 5 && alone.of_copy("permute").is_none());
        let text = table(&[report, alone]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("shape") && lines[0].contains("gather"), "{text}");
        assert!(lines[0].contains("permute / copy") && lines[0].ends_with("copy / copy"), "{text}");
        assert!(lines[1].starts_with("4x6x80") && lines[2].ends_with('-'), "{text}");
    }

    #[test]
    fn a_ring_larger_than_memory_is_refused() {
        let pairs = usize::MAX / 4096;
        assert!(matches!(permute(&BenchRequest { pairs, ..request() }), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn quartiles_are_those_of_the_sorted_list() {
        let found = quartiles(vec![5.0, 1.0, 4.0, 2.0, 3.0]).expect("a list");
        assert_eq!([found.low, found.median, found.high].map(|x| x as u32), [2, 3, 4]);
        assert!(quartiles(Vec::new()).is_none());
    }

    #[test]
    fn the_cases_are_permutations_and_have_names_of_their_own() {
        for (at, case) in CASES.iter().enumerate() {
            assert!(plan(case.shape, case.perm, case.elem_bytes).is_ok(), "{}", case.name);
            assert!(CASES[..at].iter().all(|before| before.name != case.name), "{}", case.name);
        }
    }
}
