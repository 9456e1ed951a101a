//! Short axes: a group of them goes through shared memory, such that both sides see long runs.
//!
//! A block moves a box: some axes whole, up to two in pieces, the others one index at a time. The innermost axes of the source that
//! are whole, and the piece of the next, make a run on that side, and likewise in the destination; axes are added until both runs
//! have [`RUN_BYTES`]. The box enters shared memory in the order of the source and leaves in that of the destination, where a
//! thread puts a vector together from elements. One stride of the box in shared memory is padded; which, and by how much, is found by
//! counting bank conflicts ([`super::model`]).
//!
//! Pieces that run past their axis, and channels that do not exist, are guarded per vector: a vector lies inside or outside.

use super::movement::{Axis, Movement};
use super::text::{Access, Number, Writer, zeros};
use super::{Draft, KernelClass, model, vector_bytes};

/// What both runs should have.
const RUN_BYTES: usize = 256;

/// What a box may have, and has if there is enough to move.
const BOX_BYTES: usize = 16 << 10;

const THREADS: usize = 256;

/// Vectors that a thread reads before it puts the first into shared memory.
const FLIGHT: usize = 16;

/// A box, by the axes of the movement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    /// Extent of the box along each axis.
    pub(super) extents: Vec<usize>,
    /// Stride of each axis in shared memory, in elements.
    pub(super) local: Vec<usize>,
    /// Axes of the run on each side, innermost first; all but the last are whole.
    source_run: Vec<usize>,
    destination_run: Vec<usize>,
    /// Elements of a read, of an access to shared memory after it, and of a write.
    pub(super) read: usize,
    pub(super) put: usize,
    pub(super) write: usize,
    /// True where the threads of a warp get the words of a vector in different turns, to meet different banks.
    turns: bool,
    /// Elements of shared memory.
    pub(super) room: usize,
}

/// One side of a movement: the order of its axes, innermost first, and their strides.
struct Side {
    order: Vec<usize>,
    stride: fn(&Axis) -> usize,
    is_source: bool,
}

impl Packed {
    /// The box for a movement.
    pub(super) fn new(movement: &Movement, alignment: usize) -> Option<Self> {
        let source = Side { order: movement.by_source(), stride: |axis| axis.from, is_source: true };
        let destination = Side { order: movement.by_destination(), stride: |axis| axis.to, is_source: false };
        let extents = balanced(movement, grown(movement, &source, &destination));
        let (source_run, read) = source.run(movement, &extents, alignment)?;
        let (destination_run, write) = destination.run(movement, &extents, alignment)?;
        let mut packed = Self {
            local: Vec::new(),
            source_run,
            destination_run,
            read,
            put: 1,
            write,
            turns: false,
            room: 0,
            extents,
        };
        packed.pad(movement, &source.order);
        Some(packed)
    }

    /// Elements of the box.
    fn elems(&self) -> usize {
        self.extents.iter().product()
    }

    /// Elements of a run.
    fn run_elems(&self, run: &[usize]) -> usize {
        run.iter().map(|&axis| self.extents[axis]).product()
    }

    /// Picks the stride that is padded, and the padding, with the fewest accesses to banks.
    fn pad(&mut self, movement: &Movement, order: &[usize]) {
        let inside: Vec<usize> = order.iter().copied().filter(|&axis| self.extents[axis] > 1).collect();
        let word = (4 / movement.elem).max(1);
        let mut best = usize::MAX;
        for level in 1..inside.len().max(2) {
            for (pad, turns) in (0..=32).flat_map(|words| [(words * word, false), (words * word, true)]) {
                let trial = Self { turns, ..self.padded(&inside, level, pad) };
                if trial.room * movement.elem > 2 * BOX_BYTES || turns && trial.units(movement.elem).0 == 1 {
                    continue;
                }
                let cost = trial.bank_cost(movement.elem, &inside);
                if cost < best {
                    best = cost;
                    *self = trial;
                }
            }
        }
    }

    /// In how many parts a vector goes into shared memory, each thread of a warp beginning with its own; 1 where parts are less than a
    /// word, or there is but one.
    fn parts(&self, elem: usize) -> usize {
        if self.put * elem >= 4 { self.read / self.put } else { 1 }
    }

    /// What a written vector is put together from: units, and elements of a unit. A unit is a word, or an element that is more.
    fn units(&self, elem: usize) -> (usize, usize) {
        let per = (4 / elem).max(1).min(self.write);
        (self.write / per, per)
    }

    /// The same box with `pad` elements more in the stride of `inside[level]`.
    fn padded(&self, inside: &[usize], level: usize, pad: usize) -> Self {
        let mut packed = Self { local: vec![0; self.extents.len()], put: self.read, ..self.clone() };
        let mut stride = 1_usize;
        for (at, &axis) in inside.iter().enumerate() {
            if at == level {
                // A vector must not lie across the padding, and begin where its width divides.
                while pad > 0 && (!stride.is_multiple_of(packed.put) || !pad.is_multiple_of(packed.put)) {
                    packed.put /= 2;
                }
                stride += pad;
            }
            packed.local[axis] = stride;
            stride *= self.extents[axis];
        }
        packed.room = stride;
        packed
    }

    /// What the first warps cost: turns of the banks, and a little for each access.
    fn bank_cost(&self, elem: usize, inside: &[usize]) -> usize {
        let mut cost = 0;
        let warps = 3;
        for warp in 0..warps {
            let parts = self.parts(elem);
            for part in 0..self.read / self.put {
                let lane = |lane: usize| {
                    let vector = warp * 32 + lane;
                    let part = if parts > 1 { (part + lane / (32 / parts)) % parts } else { part };
                    (vector * self.read < self.elems())
                        .then(|| self.local_of(inside.iter().copied(), vector * self.read + part * self.put) * elem)
                };
                cost += 8 * model::bank_turns((0..32).filter_map(lane), self.put * elem) + 1;
            }
            let (units, per) = self.units(elem);
            for part in 0..self.write {
                let lane = |lane: usize| {
                    let turn = if self.turns { lane / (32 / units) * per } else { 0 };
                    let at = (warp * 32 + lane) * self.write + (part + turn) % self.write;
                    (at < self.elems()).then(|| self.local_of(self.destination_inside(), at) * elem)
                };
                cost += 8 * model::bank_turns((0..32).filter_map(lane), elem);
            }
        }
        cost
    }

    /// Axes of the box in the order of the destination, innermost first.
    fn destination_inside(&self) -> impl Iterator<Item = usize> {
        (0..self.extents.len()).rev().filter(|&axis| self.extents[axis] > 1)
    }

    /// The place in shared memory of the `at`-th element, counted along `order`.
    fn local_of(&self, order: impl Iterator<Item = usize>, at: usize) -> usize {
        let mut rest = at;
        order.fold(0, |place, axis| {
            let digit = rest % self.extents[axis];
            rest /= self.extents[axis];
            place + digit * self.local[axis]
        })
    }
}

impl Side {
    /// The run of a box and the elements of a vector in it; `None` if the side does not begin with single elements.
    fn run(&self, movement: &Movement, extents: &[usize], alignment: usize) -> Option<(Vec<usize>, usize)> {
        let mut run = Vec::new();
        let mut end = movement.elem;
        let mut lengths = Vec::new();
        for &at in &self.order {
            let axis = &movement.axes[at];
            if (self.stride)(axis) != end {
                break;
            }
            run.push(at);
            // On the side without padding slots the last block ends early, and what lies beyond has a stride of its own.
            let ends = movement.crop.filter(|crop| crop.inner == at && crop.pads_destination == self.is_source);
            lengths.extend(ends.map(|crop| crop.limit % axis.extent * end));
            if extents[at] < axis.extent {
                lengths.extend([extents[at] * end, axis.extent * end]);
                break;
            }
            end *= axis.extent;
            if ends.is_some() {
                break;
            }
        }
        let others = self.order.iter().filter(|at| !run.contains(at)).map(|&at| (self.stride)(&movement.axes[at]));
        let whole = run.iter().map(|&at| extents[at]).product::<usize>() * movement.elem;
        let bytes = vector_bytes(alignment, others.chain(lengths).chain([whole]));
        (!run.is_empty()).then_some((run, bytes / movement.elem))
    }

    /// Bytes of the run of a box, and the axis that would make it longer.
    fn reach(&self, movement: &Movement, extents: &[usize]) -> (usize, Option<usize>) {
        let mut bytes = movement.elem;
        for &at in &self.order {
            bytes *= extents[at];
            if extents[at] < movement.axes[at].extent {
                return (bytes, may_grow(movement, at).then_some(at));
            }
        }
        (bytes, None)
    }
}

/// Blocks of channels stay one block each, since the last has fewer channels.
fn may_grow(movement: &Movement, axis: usize) -> bool {
    movement.crop.is_none_or(|crop| crop.outer != axis)
}

/// Extents of a box with long runs on both sides.
fn grown(movement: &Movement, source: &Side, destination: &Side) -> Vec<usize> {
    let full = |at: usize| movement.axes[at].extent;
    let mut extents = vec![1; movement.axes.len()];
    if let Some(crop) = movement.crop {
        extents[crop.inner] = full(crop.inner);
    }
    let bytes = |extents: &[usize]| extents.iter().product::<usize>() * movement.elem;
    loop {
        let sides = [source.reach(movement, &extents), destination.reach(movement, &extents)];
        let short = sides.iter().filter(|(reach, axis)| axis.is_some() && *reach < RUN_BYTES);
        // First what a run is short of, then the shorter run, as long as there is room.
        let next = short.chain(&sides).filter_map(|&(reach, axis)| axis.map(|axis| (reach.min(RUN_BYTES), axis)));
        let Some((_, axis)) = next.min_by_key(|&(reach, _)| reach) else { return extents };
        let mut larger = extents.clone();
        // An axis that is nearly whole is better whole.
        let twice = 2 * extents[axis];
        larger[axis] = if full(axis) <= 2 * twice && full(axis) * bytes(&extents) / extents[axis] <= BOX_BYTES {
            full(axis)
        } else {
            twice.min(full(axis))
        };
        if bytes(&larger) > BOX_BYTES {
            return extents;
        }
        extents = larger;
    }
}

/// Pieces of nearly equal size instead of whole ones and a small rest, as long as vectors stay whole.
fn balanced(movement: &Movement, mut extents: Vec<usize>) -> Vec<usize> {
    for (extent, axis) in extents.iter_mut().zip(&movement.axes) {
        if *extent > 1 && *extent < axis.extent {
            let pieces = axis.extent.div_ceil(*extent);
            *extent = axis.extent.div_ceil(pieces).next_multiple_of(16).min(*extent);
        }
    }
    extents
}

/// The kernel.
pub(super) fn draft(movement: &Movement, packed: &Packed, mut out: Writer) -> Draft {
    let elem = movement.elem;
    let room = (packed.room * elem).next_multiple_of(16);
    out.line(format!("__shared__ uint4 shared[{}];", room / 16));
    out.line("u8* const tile = (u8*)shared;");
    out.line("const u32 t = threadIdx.x;");
    let blocks = place(movement, packed, &mut out);
    enter(movement, packed, &mut out);
    out.line("__syncthreads();");
    leave(movement, packed, &mut out);
    let text = |values: &[usize]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let turns = if packed.turns { "_turns" } else { "" };
    let form = format!("b{}_l{}_v{}_{}{turns}", text(&packed.extents), text(&packed.local), packed.read, packed.write);
    Draft { class: KernelClass::Packed, form, blocks, threads: THREADS, shared: room, out, inside: String::new() }
}

/// Which box this block has: defines `at{axis}`, where it begins, and `s` and `d`.
fn place(movement: &Movement, packed: &Packed, out: &mut Writer) -> usize {
    let mut blocks = 1_usize;
    out.line("// Blocks run along the source's innermost axis that is in pieces, then outwards.");
    out.line("u32 block = blockIdx.x;");
    let order: Vec<usize> =
        movement.by_source().into_iter().filter(|&at| packed.extents[at] < movement.axes[at].extent).collect();
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (turn, &at) in order.iter().enumerate() {
        let (extent, piece) = (movement.axes[at].extent, packed.extents[at]);
        let pieces = extent.div_ceil(piece);
        blocks = blocks.saturating_mul(pieces);
        if turn + 1 == order.len() {
            out.line(format!("const u32 b{at} = block;"));
        } else {
            let pieces = out.number(&format!("pieces{at}"), pieces);
            out.digit(&format!("b{at}"), "block", &pieces, false);
        }
        out.line(format!("const u32 at{at} = b{at} * {piece}u;"));
        from.push(format!("(idx)at{at} * {}", out.offset(&format!("from{at}"), movement.axes[at].from).text));
        to.push(format!("(idx)at{at} * {}", out.offset(&format!("to{at}"), movement.axes[at].to).text));
    }
    let sum = |terms: Vec<String>| if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
    out.line(format!("const u8* const s = src + ({});", sum(from)));
    out.line(format!("u8* const d = dst + ({});", sum(to)));
    if let Some(crop) = movement.crop {
        let block = movement.axes[crop.inner].extent;
        let limit = out.number("limit", crop.limit).text;
        let outer = if movement.axes[crop.outer].extent > 1 { format!("at{}", crop.outer) } else { "0u".to_owned() };
        out.line(format!("const u32 real = min({limit} - {outer} * {block}u, {block}u);"));
    }
    blocks
}

/// One side's view of the box: digits of a position along `order`, the offset there, and what has to be asked.
struct Walk {
    /// Expression of the offset in bytes.
    offset: String,
    /// Conditions under which the vector exists.
    exists: Vec<String>,
}

/// Defines the digits of position `x`, an element count along the box on one side.
fn walk(movement: &Movement, packed: &Packed, out: &mut Writer, source: bool) -> Walk {
    let (order, run) = if source {
        (movement.by_source(), &packed.source_run)
    } else {
        (movement.by_destination(), &packed.destination_run)
    };
    let order: Vec<usize> = order.into_iter().filter(|&at| packed.extents[at] > 1).collect();
    out.line("u32 rest = x;");
    digits(packed, &order, out);
    let run_elems = packed.run_elems(run);
    out.line(format!("const u32 run = x % {run_elems}u;"));
    let mut offset = vec![format!("(idx)run * {}u", movement.elem)];
    for &at in order.iter().filter(|at| !run.contains(at)) {
        let axis = &movement.axes[at];
        let (side, stride) = if source { ("from", axis.from) } else { ("to", axis.to) };
        offset.push(format!("(idx)i{at} * {}", out.offset(&format!("{side}{at}"), stride).text));
    }
    let mut exists = Vec::new();
    for &at in &order {
        let (extent, piece) = (movement.axes[at].extent, packed.extents[at]);
        if piece < extent && (!extent.is_multiple_of(piece) || !out.literal()) {
            let extent: Number = out.number(&format!("n{at}"), extent);
            exists.push(format!("at{at} + i{at} < {}", extent.text));
        }
    }
    if let Some(crop) = movement.crop
        && crop.pads_destination == source
    {
        exists.push(format!("i{} < real", crop.inner));
    }
    Walk { offset: offset.join(" + "), exists }
}

/// The text of the place in shared memory of the digits `i{axis}`, in elements.
fn local(packed: &Packed) -> String {
    let terms = (0..packed.extents.len()).filter(|&at| packed.extents[at] > 1);
    let terms: Vec<String> = terms.map(|at| format!("i{at} * {}u", packed.local[at])).collect();
    if terms.is_empty() { "0u".to_owned() } else { terms.join(" + ") }
}

/// From the source into shared memory.
fn enter(movement: &Movement, packed: &Packed, out: &mut Writer) {
    let elem = movement.elem;
    let vectors = packed.elems() / packed.read;
    let steps = vectors.div_ceil(THREADS);
    let words = (packed.read * elem / 4).max(1);
    let flight = steps.min(FLIGHT);
    let rounds = steps.div_ceil(flight);
    out.line(format!("for (int round = 0; round < {rounds}; round++) {{"));
    out.line(format!("u32 w[{flight}][{words}];"));
    out.unrolled("k", flight);
    out.line(format!("const u32 v = t + (round * {flight} + k) * {THREADS}u;"));
    out.line(format!("const u32 x = v * {}u;", packed.read));
    let Walk { offset, mut exists } = walk(movement, packed, out, true);
    if !vectors.is_multiple_of(THREADS * flight) {
        exists.push(format!("v < {vectors}u"));
    }
    let fetch = out.access(Access::Read, packed.read * elem, "w[k]", &format!("s + ({offset})"));
    if exists.is_empty() {
        out.line(fetch);
    } else {
        let zeros = zeros("w[k]", words);
        out.line(format!("{zeros}if ({}) {fetch}", exists.join(" && ")));
    }
    out.line("}");
    out.unrolled("k", flight);
    out.line(if vectors.is_multiple_of(THREADS * flight) {
        "{".to_owned()
    } else {
        format!("if (t + (round * {flight} + k) * {THREADS}u < {vectors}u) {{")
    });
    out.line(format!("const u32 x = (t + (round * {flight} + k) * {THREADS}u) * {}u;", packed.read));
    put(movement, packed, out);
    out.line("}");
    out.line("}");
    out.line("}");
}

/// Declares the digits of `rest`, a variable, along the axes of the box in `order`.
fn digits(packed: &Packed, order: &[usize], out: &mut Writer) {
    let inside: Vec<usize> = order.iter().copied().filter(|&at| packed.extents[at] > 1).collect();
    for (turn, &at) in inside.iter().enumerate() {
        if turn + 1 == inside.len() {
            out.line(format!("const u32 i{at} = rest;"));
        } else {
            out.line(format!("const u32 i{at} = rest % {0}u; rest /= {0}u;", packed.extents[at]));
        }
    }
}

/// Puts the vector `w[k]`, which is at `x` along the source, in as many parts as the padding asks for.
fn put(movement: &Movement, packed: &Packed, out: &mut Writer) {
    let elem = movement.elem;
    let bytes = packed.put * elem;
    let parts = packed.parts(elem);
    if parts > 1 {
        out.line(format!("const u32 turn = t % 32u / {}u;", 32 / parts));
        rotate("w[k]", "z", (parts, bytes / 4), true, out);
    }
    out.unrolled("g", packed.read / packed.put);
    let part = if parts > 1 { format!("(g + turn) % {parts}u") } else { "g".to_owned() };
    out.line(format!("u32 rest = x + {part} * {}u;", packed.put));
    digits(packed, &movement.by_source(), out);
    let words = if bytes >= 4 {
        format!("{} + g * {}", if parts > 1 { "z" } else { "w[k]" }, bytes / 4)
    } else {
        let per = 4 / bytes;
        out.line(format!("const u32 part = w[k][g / {per}] >> (g % {per} * {});", 8 * bytes));
        "&part".to_owned()
    };
    let store = out.access(Access::Put, bytes, &words, &format!("tile + ({}) * {elem}u", local(packed)));
    out.line(store);
    out.line("}");
}

/// Declares `to` as `from` with unit `h` of `units` moved to `h - turn`, or to `h + turn` if not `down`; `(units, words of each)`.
fn rotate(from: &str, to: &str, (units, unit_words): (usize, usize), down: bool, out: &mut Writer) {
    let words = units * unit_words;
    let mut last = from.to_owned();
    for step in [1, 2].into_iter().filter(|&step| step < units) {
        let next = if 2 * step == units { to.to_owned() } else { format!("{to}{step}") };
        out.line(format!("u32 {next}[{words}];"));
        out.unrolled("h", words);
        let by = if down { step * unit_words } else { words - step * unit_words };
        out.line(format!("{next}[h] = turn & {step} ? {last}[(h + {by}) % {words}] : {last}[h];"));
        out.line("}");
        last = next;
    }
}

/// From shared memory to the destination.
fn leave(movement: &Movement, packed: &Packed, out: &mut Writer) {
    let elem = movement.elem;
    let vectors = packed.elems() / packed.write;
    let steps = vectors.div_ceil(THREADS);
    let bytes = packed.write * elem;
    let words = (bytes / 4).max(1);
    // Many small steps would only make the text long.
    if steps <= FLIGHT {
        out.unrolled("k", steps);
    } else {
        out.line("#pragma unroll 4");
        out.line(format!("for (int k = 0; k < {steps}; k++) {{"));
    }
    out.line(format!("const u32 v = t + k * {THREADS}u;"));
    out.line(format!("const u32 x = v * {}u;", packed.write));
    let Walk { offset, mut exists } = walk(movement, packed, out, false);
    if !vectors.is_multiple_of(THREADS) {
        exists.push(format!("v < {vectors}u"));
    }
    out.line(if exists.is_empty() { "{".to_owned() } else { format!("if ({}) {{", exists.join(" && ")) });
    out.line(format!("u32 w[{words}] = {{0}};"));
    gather(packed, elem, out);
    let words = if packed.turns { "z" } else { "w" };
    let store = out.access(Access::Write, bytes, words, &format!("d + ({offset})"));
    out.line(store);
    out.line("}");
    out.line("}");
}

/// Gets the elements of a vector along the destination one by one.
fn gather(packed: &Packed, elem: usize, out: &mut Writer) {
    let (units, per) = packed.units(elem);
    let unit_words = (elem / 4).max(1);
    let unit = if packed.turns {
        out.line(format!("const u32 turn = t % 32u / {}u;", 32 / units));
        format!("(h + turn) % {units}u")
    } else {
        "h".to_owned()
    };
    out.unrolled("h", units);
    out.unrolled("g", per);
    out.line(format!("u32 rest = x + {unit} * {per}u + g;"));
    let inside: Vec<usize> = packed.destination_inside().collect();
    digits(packed, &inside, out);
    let place = format!("tile + ({}) * {elem}u", local(packed));
    if elem >= 4 {
        let fetch = out.access(Access::Get, elem, &format!("w + h * {unit_words}"), &place);
        out.line(fetch);
    } else {
        out.line("u32 e[1];");
        let fetch = out.access(Access::Get, elem, "e", &place);
        out.line(fetch);
        out.line(format!("w[h] |= e[0] << g * {};", 8 * elem));
    }
    out.line("}");
    out.line("}");
    if packed.turns {
        rotate("w", "z", (units, unit_words), false, out);
    }
}
