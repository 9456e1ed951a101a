//! Timing a permutation beside two copies of the same bytes. The one module here that reads a clock.
//!
//! The kernel, a plain copy and a copy past the caches take turns on the same ring of buffers, so that whatever else the machine
//! does meets all three. *Hot* is one pair of buffers again and again; *cold* a ring of pairs larger than the caches. Rates count
//! bytes read and bytes written. Pages are what the allocator gives: huge ones would raise all three rates.

use std::fmt;
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, Hint, Kernel, Options, plan};

/// Bytes of a ring that is out of the caches when it comes round.
const RING_BYTES: usize = 192 << 20;

/// What is to be timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
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
    /// How often each is run.
    pub reps: usize,
}

/// Times in nanoseconds, a number for each run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What was timed.
    pub request: Request,
    /// The plan, for people.
    pub plan: String,
    /// The instruction set.
    pub isa: String,
    /// Bytes of the tensor.
    pub bytes: usize,
    /// The kernel.
    pub ns: Vec<u64>,
    /// A plain copy.
    pub copy_ns: Vec<u64>,
    /// A copy past the caches.
    pub stream_ns: Vec<u64>,
}

impl Report {
    /// The median time of each: the kernel, the plain copy, the copy past the caches.
    #[must_use]
    pub fn medians(&self) -> [u64; 3] {
        [&self.ns, &self.copy_ns, &self.stream_ns].map(|times| {
            let mut times = times.clone();
            times.sort_unstable();
            times.get(times.len() / 2).copied().unwrap_or(0)
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { threads, hint, .. } = &self.request;
        writeln!(f, "{}, {}, {threads} threads, {hint:?}", self.plan, self.isa)?;
        let medians = self.medians();
        let rate = |ns: u64| 2.0 * self.bytes as f64 / ns.max(1) as f64;
        writeln!(f, "            GB/s  of a copy")?;
        for (name, ns) in ["permute", "copy", "stream"].iter().zip(medians) {
            writeln!(f, "{name:8} {:7.1}  {:9.2}", rate(ns), medians[1] as f64 / ns.max(1) as f64)?;
        }
        Ok(())
    }
}

/// Times a permutation.
pub fn permute(request: &Request) -> Result<Report, Error> {
    let planned = plan(&request.shape, &request.perm, request.elem_bytes)?;
    let bytes = planned.bytes();
    let options = Options::default().hint(request.hint).threads(request.threads);
    let kernel = Kernel::new(&planned, &options);
    let stream = Kernel::new(&plan(&[bytes], &[0], 1)?, &options.hint(Hint::Cold));
    let mut ring = Ring::new(bytes, request);
    let mut report = Report {
        request: request.clone(),
        plan: planned.to_string(),
        isa: kernel.isa().to_string(),
        bytes,
        ns: Vec::new(),
        copy_ns: Vec::new(),
        stream_ns: Vec::new(),
    };
    // The first turn wakes threads and touches code.
    for turn in 0..=request.reps {
        let copied = ring.time(|src, dst| {
            copy(src, dst, request.threads);
            Ok(())
        })?;
        let permuted = ring.time(|src, dst| kernel.run(src, dst))?;
        let streamed = ring.time(|src, dst| stream.run(src, dst))?;
        if turn > 0 {
            report.ns.push(permuted);
            report.copy_ns.push(copied);
            report.stream_ns.push(streamed);
        }
    }
    Ok(report)
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
    room: Vec<u8>,
    start: usize,
    pitch: usize,
    bytes: usize,
    pairs: usize,
    next: usize,
}

impl Ring {
    fn new(bytes: usize, request: &Request) -> Self {
        let pitch = bytes.next_multiple_of(4096).max(4096);
        let pairs = match (request.pairs, request.hint) {
            (0, Hint::Hot) => 1,
            (0, _) => RING_BYTES.div_ceil(2 * pitch),
            (pairs, _) => pairs,
        };
        let room: Vec<u8> = (0..2 * pairs * pitch + 4096).map(|byte| (byte * 167 + byte / 251) as u8).collect();
        let start = room.as_ptr().align_offset(4096).min(4096);
        Self { room, start, pitch, bytes, pairs, next: 0 }
    }

    /// Runs on the next pair and says how many nanoseconds that took.
    fn time(&mut self, run: impl FnOnce(&[u8], &mut [u8]) -> Result<(), Error>) -> Result<u64, Error> {
        let from = self.start + 2 * self.next * self.pitch;
        let (src, dst) = self.room.split_at_mut(from + self.pitch);
        self.next = (self.next + 1) % self.pairs;
        let (src, dst) = (&src[from..from + self.bytes], &mut dst[..self.bytes]);
        let start = Instant::now();
        run(src, dst)?;
        Ok(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Request, permute};
    use crate::Hint;

    #[test]
    fn a_report_has_a_time_for_each_run_and_survives_its_text() {
        let request = Request {
            shape: vec![3, 40, 50],
            perm: vec![0, 2, 1],
            elem_bytes: 2,
            threads: 2,
            hint: Hint::Cold,
            pairs: 3,
            reps: 5,
        };
        let report = permute(&request).expect("a permutation");
        assert_eq!([report.ns.len(), report.copy_ns.len(), report.stream_ns.len()], [5; 3]);
        assert_eq!(report.bytes, 12_000);
        assert!(report.to_string().lines().count() == 5, "{report}");
        let text = serde_json::to_string(&report).expect("plain data");
        assert_eq!(serde_json::from_str::<Report>(&text).expect("its own text"), report);
        assert!(permute(&Request { perm: vec![0, 0, 1], ..request }).is_err());
    }
}
