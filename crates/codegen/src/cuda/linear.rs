//! Kernels whose threads run along the destination: copy, rows and gather.
//!
//! A thread moves several words, a block's width apart, and has read them all before it writes the first. Reads of a copy and of
//! rows are as wide as the writes; a gather puts a word together from its elements. All blocks but the last are without guards.
//!
//! No shared memory, and no knowledge of what the caches do with short rows: the choice of class sees to that.

use super::movement::Movement;
use super::text::{Access, Number, Writer, zeros};
use super::{Draft, KernelClass};

const THREADS: usize = 256;

/// The copy of `movement.source_bytes` bytes.
pub(super) fn copy(movement: &Movement, alignment: usize, mut out: Writer) -> Draft {
    let bytes = movement.source_bytes;
    let steps = 4;
    let words = bytes / alignment;
    let blocks = words.div_ceil(THREADS * steps).max(1);
    let count = out.offset("words", words);
    let first = format!("const idx first = (idx)blockIdx.x * {}u + threadIdx.x;", THREADS * steps);
    out.line(first);
    out.line(format!("u32 w[{steps}][{}];", (alignment / 4).max(1)));
    let place = format!("(first + k * {THREADS}u) * {alignment}u");
    let read = out.access(Access::Read, alignment, "w[k]", &format!("src + {place}"));
    let write = out.access(Access::Write, alignment, "w[k]", &format!("dst + {place}"));
    let exact = words.is_multiple_of(THREADS * steps) && out.literal();
    guarded(&mut out, exact, &count, steps, |out, guard| {
        out.unrolled("k", steps);
        out.line(format!("{guard}{read}"));
        out.line("}");
        out.unrolled("k", steps);
        out.line(format!("{guard}{write}"));
        out.line("}");
    });
    if !bytes.is_multiple_of(alignment) || !out.literal() {
        let total = out.offset("bytes", bytes);
        out.line("// What is left of the last word, by single bytes.");
        out.line(format!("const idx rest = {} * {alignment}u + first;", count.text));
        out.line(format!("if (blockIdx.x == 0 && rest < {}) {{", total.text));
        let read = out.access(Access::Read, 1, "w[0]", "src + rest");
        let write = out.access(Access::Write, 1, "w[0]", "dst + rest");
        out.line(read);
        out.line(write);
        out.line("}");
    }
    let form = format!("a{alignment}");
    Draft { class: KernelClass::Copy, form, blocks, threads: THREADS, shared: 0, out, inside: String::new() }
}

/// Calls `body` for blocks that are whole, with no guard, and for the one that may not be, with a guard for step `k`.
fn guarded(out: &mut Writer, exact: bool, count: &Number, steps: usize, body: impl Fn(&mut Writer, &str)) {
    if exact {
        body(out, "");
        return;
    }
    out.line(format!("if (((idx)blockIdx.x + 1) * {}u <= {}) {{", THREADS * steps, count.text));
    body(out, "");
    out.line("} else {");
    body(out, &format!("if (first + k * {THREADS}u < {}) ", count.text));
    out.line("}");
}

/// Rows (`grouped` false: one element a word) or a gather (elements are put together to words of up to `alignment` bytes).
pub(super) fn lookup(movement: &Movement, alignment: usize, grouped: bool, mut out: Writer) -> Draft {
    let elem = movement.elem;
    let skips = movement.crop.is_some_and(|crop| !crop.pads_destination);
    let group = if grouped && !skips { alignment / elem } else { 1 };
    let word = group * elem;
    let steps = if grouped { (4 / group).max(1) } else { (64 / word).clamp(4, 8) };
    let elems = movement.axes.iter().map(|axis| axis.extent).product::<usize>();
    let words = elems / group;
    let blocks = elems.div_ceil(group).div_ceil(THREADS * steps);
    out.line(format!("const idx first = (idx)blockIdx.x * {}u + threadIdx.x;", THREADS * steps));
    places(movement, &mut out);
    let count = out.offset("words", words);
    let exact = elems.is_multiple_of(group * THREADS * steps) && out.literal();
    let cropped = movement.crop.is_some();
    out.line(format!("u32 w[{steps}][{}];", (word / 4).max(1)));
    let to = if skips { "idx to[STEPS];".replace("STEPS", &steps.to_string()) } else { String::new() };
    if skips {
        out.line(to);
        out.line(format!("bool is[{steps}];"));
    }
    guarded(&mut out, exact, &count, steps, |out, guard| {
        out.unrolled("k", steps);
        if !guard.is_empty() && skips {
            out.line("is[k] = false;");
        }
        out.line(format!("{guard}{{"));
        if skips {
            out.line(format!("idx from; is[k] = place(first + k * {THREADS}u, from, to[k]);"));
            let read = out.access(Access::Read, elem, "w[k]", "src + from");
            out.line(format!("if (is[k]) {read}"));
        } else {
            fill(out, elem, group, cropped);
        }
        out.line("}");
        out.line("}");
        out.unrolled("k", steps);
        let place = if skips { "dst + to[k]".to_owned() } else { format!("dst + (first + k * {THREADS}u) * {word}u") };
        let write = out.access(Access::Write, word, "w[k]", &place);
        out.line(if skips { format!("if (is[k]) {write}") } else { format!("{guard}{write}") });
        out.line("}");
    });
    if group > 1 && (!elems.is_multiple_of(group) || !out.literal()) {
        rest(elem, group, elems, cropped, &count, &mut out);
    }
    let class = if grouped { KernelClass::Gather } else { KernelClass::Rows };
    let form = format!("w{word}");
    Draft { class, form, blocks, threads: THREADS, shared: 0, out, inside: String::new() }
}

/// Reads the elements of word `k` into `w[k]`.
fn fill(out: &mut Writer, elem: usize, group: usize, cropped: bool) {
    if group == 1 {
        let read = out.access(Access::Read, elem, "w[k]", "src + from");
        let zeros = zeros("w[k]", elem / 4);
        out.line(format!("const idx i = first + k * {THREADS}u;"));
        out.line("idx from, to;");
        let guard =
            if cropped { format!("{zeros}if (place(i, from, to)) ") } else { "place(i, from, to); ".to_owned() };
        out.line(format!("{guard}{read}"));
        return;
    }
    out.unrolled("g", group);
    out.line(format!("u32 x[{}] = {{0}};", (elem / 4).max(1)));
    out.line("idx from, to;");
    let read = out.access(Access::Read, elem, "x", "src + from");
    let place = format!("place((first + k * {THREADS}u) * {group}u + g, from, to)");
    out.line(if cropped { format!("if ({place}) {read}") } else { format!("{place}; {read}") });
    if elem < 4 {
        let per = 4 / elem;
        out.line(format!("w[k][g / {per}] = (g % {per} ? w[k][g / {per}] : 0) | x[0] << (g % {per} * {});", 8 * elem));
    } else {
        let words = elem / 4;
        out.unrolled("h", words);
        out.line(format!("w[k][g * {words} + h] = x[h];"));
        out.line("}");
    }
    out.line("}");
}

/// The elements after the last whole word, one a thread.
fn rest(elem: usize, group: usize, elems: usize, cropped: bool, count: &Number, out: &mut Writer) {
    let total = out.offset("elems", elems);
    out.line("// The elements after the last whole word.");
    out.line(format!("const idx last = {} * {group}u + first;", count.text));
    out.line(format!("if (blockIdx.x == 0 && last < {}) {{", total.text));
    out.line(format!("u32 x[{}] = {{0}};", (elem / 4).max(1)));
    out.line("idx from, to;");
    let read = out.access(Access::Read, elem, "x", "src + from");
    out.line(if cropped {
        format!("if (place(last, from, to)) {read}")
    } else {
        format!("place(last, from, to); {read}")
    });
    let write = out.access(Access::Write, elem, "x", &format!("dst + last * {elem}u"));
    out.line(write);
    out.line("}");
}

/// Defines `place`: where the `rest`-th element, counted along the destination, lies on both sides, and whether it exists.
fn places(movement: &Movement, out: &mut Writer) {
    out.line("const auto place = [=](idx rest, idx& from, idx& to) -> bool {");
    let order = movement.by_destination();
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (turn, &at) in order.iter().enumerate() {
        let axis = movement.axes[at];
        let digit = format!("i{at}");
        if turn + 1 == order.len() {
            out.line(format!("const idx {digit} = rest;"));
        } else {
            let extent = out.number(&format!("n{at}"), axis.extent);
            out.digit(&digit, "rest", &extent, true);
        }
        from.push(format!("{digit} * {}", out.offset(&format!("from{at}"), axis.from).text));
        if movement.crop.is_some() {
            to.push(format!("{digit} * {}", out.offset(&format!("to{at}"), axis.to).text));
        }
    }
    out.line(format!("from = {};", from.join(" + ")));
    out.line(if to.is_empty() { "to = 0;".to_owned() } else { format!("to = {};", to.join(" + ")) });
    match movement.crop {
        Some(crop) => {
            let block = movement.axes[crop.inner].extent;
            let limit = out.number("limit", crop.limit);
            out.line(format!("return i{} * {block}u + i{} < {};", crop.outer, crop.inner, limit.text));
        }
        None => out.line("return true;"),
    }
    out.line("};");
}
