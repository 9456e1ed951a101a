//! Writing CUDA C++: numbers that are literals or arguments, divisions, memory accesses, and the frame around a kernel's body.
//!
//! A [`Writer`] collects the body of one kernel. Whether an extent is a literal or an argument is decided here and nowhere else:
//! the classes ask for a number by name and get the text that stands for it. All offsets are in bytes and of the type `idx`.
//!
//! The dialect is small on purpose, so that the same text runs on a CPU: no inline PTX, vectors `uint2` and `uint4`, the intrinsics
//! `__syncthreads`, `__byte_perm`, `__umulhi` and `__umul64hi`, and every access to memory by one of four macros.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::divide::magic;
use super::{Argument, Shape};

/// The four kinds of access; with a width they name a helper in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// From the source buffer.
    Read,
    /// To the destination buffer.
    Write,
    /// To shared memory.
    Put,
    /// From shared memory.
    Get,
}

/// A number in the source: its text, and the value that it has for the shape at hand.
#[derive(Debug, Clone)]
pub(super) struct Number {
    pub(super) text: String,
    value: u64,
    /// The argument's name; empty for a literal.
    name: String,
}

/// The body of a kernel under construction.
pub(super) struct Writer {
    body: String,
    depth: usize,
    shape: Shape,
    wide: bool,
    arguments: Vec<Argument>,
    helpers: BTreeSet<(Access, usize)>,
    divides: bool,
}

impl Writer {
    /// An empty body.
    pub(super) fn new(shape: Shape, wide: bool) -> Self {
        let (body, arguments, helpers) = (String::new(), Vec::new(), BTreeSet::new());
        Self { body, depth: 1, shape, wide, arguments, helpers, divides: false }
    }

    /// True where the shape is part of the text.
    pub(super) fn literal(&self) -> bool {
        self.shape == Shape::Literal
    }

    /// A line of the body; `{` at its end indents what follows, `}` at its start ends that.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if text.starts_with('}') {
            self.depth = self.depth.saturating_sub(1);
        }
        let indent = if text.starts_with('#') { 0 } else { 2 * self.depth };
        self.body.push_str(&" ".repeat(indent));
        self.body.push_str(text);
        self.body.push('\n');
        if text.ends_with('{') {
            self.depth += 1;
        }
    }

    /// The opening of a loop over `var` from 0 to `count`, unrolled.
    pub(super) fn unrolled(&mut self, var: &str, count: usize) {
        self.line("#pragma unroll");
        self.line(format!("for (int {var} = 0; {var} < {count}; {var}++) {{"));
    }

    /// A 32-bit number that depends on the shape.
    pub(super) fn number(&mut self, name: &str, value: usize) -> Number {
        self.given(name, value as u64, 4)
    }

    /// An offset or a stride in bytes that depends on the shape.
    pub(super) fn offset(&mut self, name: &str, value: usize) -> Number {
        let bytes = self.idx_bytes();
        self.given(name, value as u64, bytes)
    }

    fn idx_bytes(&self) -> u32 {
        if self.wide { 8 } else { 4 }
    }

    fn given(&mut self, name: &str, value: u64, bytes: u32) -> Number {
        if self.shape == Shape::Literal {
            let suffix = if bytes == 8 { "ull" } else { "u" };
            return Number { text: format!("{value}{suffix}"), value, name: String::new() };
        }
        self.argument(name, value, bytes);
        Number { text: name.to_owned(), value, name: name.to_owned() }
    }

    fn argument(&mut self, name: &str, value: u64, bytes: u32) {
        if !self.arguments.iter().any(|argument| argument.name == name) {
            self.arguments.push(Argument { name: name.to_owned(), bytes, value });
        }
    }

    /// A number that is an argument whatever the shape is; divisions by it are left to the compiler.
    pub(super) fn plain_argument(&mut self, name: &str, value: usize) {
        let bytes = self.idx_bytes();
        self.argument(name, value as u64, bytes);
    }

    /// The text of `dividend / by`, both 32 bits or both of type `idx` where that is wider.
    pub(super) fn quotient(&mut self, dividend: &str, by: &Number, wide: bool) -> String {
        if by.name.is_empty() {
            return format!("{dividend} / {}", by.text);
        }
        let bits = if wide { 8 * self.idx_bytes() } else { 32 };
        let (multiplier, shift) = magic(by.value, bits);
        let (times, down) = (format!("{}_times", by.name), format!("{}_down", by.name));
        self.argument(&times, multiplier, bits / 8);
        self.argument(&down, u64::from(shift), 4);
        self.divides = true;
        format!("quotient({dividend}, {times}, {down})")
    }

    /// Declares `digit` as `rest` modulo `by` and divides `rest`, a variable, by it.
    pub(super) fn digit(&mut self, digit: &str, rest: &str, by: &Number, wide: bool) {
        let kind = if wide { "idx" } else { "u32" };
        let quotient = self.quotient(rest, by, wide);
        self.line(format!("const {kind} {digit}_up = {quotient};"));
        self.line(format!("const {kind} {digit} = {rest} - {digit}_up * {};", by.text));
        self.line(format!("{rest} = {digit}_up;"));
    }

    /// The text of a call that moves `bytes` between the words at `words` and memory at `place`.
    pub(super) fn access(&mut self, access: Access, bytes: usize, words: &str, place: &str) -> String {
        self.helpers.insert((access, bytes));
        format!("{}{bytes}({words}, {place});", verb(access))
    }

    /// The whole source and its arguments. `head` are lines of comment, `inside` stands before the kernel.
    pub(super) fn finish(self, name: &str, head: &str, inside: &str, threads: usize) -> (String, Vec<Argument>) {
        let mut text = String::new();
        for line in head.lines() {
            let _ = writeln!(text, "// {line}");
        }
        text.push_str("typedef unsigned char u8;\ntypedef unsigned short u16;\ntypedef unsigned int u32;\n");
        let _ = writeln!(text, "typedef unsigned {} idx;", if self.wide { "long long" } else { "int" });
        text.push_str(ACCESS);
        for &(access, bytes) in &self.helpers {
            helper(&mut text, access, bytes);
        }
        if self.divides {
            text.push_str(QUOTIENT);
            if self.wide {
                text.push_str(QUOTIENT_WIDE);
            }
        }
        text.push_str(inside);
        let arguments = self.arguments.iter().fold(String::new(), |mut text, argument| {
            let _ = write!(text, ", {} {}", if argument.bytes == 8 { "idx" } else { "u32" }, argument.name);
            text
        });
        let _ = writeln!(text, "extern \"C\" __global__ void __launch_bounds__({threads})");
        let _ = writeln!(text, "{name}(const u8* __restrict__ src, u8* __restrict__ dst{arguments}) {{");
        text.push_str(&self.body);
        text.push_str("}\n");
        (text, self.arguments)
    }
}

/// Statements that set the words of an array, one at least, to zero.
pub(super) fn zeros(array: &str, words: usize) -> String {
    (0..words.max(1)).fold(String::new(), |mut text, at| {
        let _ = write!(text, "{array}[{at}] = 0; ");
        text
    })
}

fn verb(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Put => "put",
        Access::Get => "get",
    }
}

/// Programs that compile the text may define these to watch the accesses.
const ACCESS: &str = "\
#ifndef RELAYOUT_READ
#define RELAYOUT_READ(T, p) (*(const T*)(p))
#define RELAYOUT_WRITE(T, p, v) (*(T*)(p) = (v))
#define RELAYOUT_GET(T, p) (*(const T*)(p))
#define RELAYOUT_PUT(T, p, v) (*(T*)(p) = (v))
#endif
";

const QUOTIENT: &str = "\
static __device__ __forceinline__ u32 quotient(u32 n, u32 times, u32 down) {
  return (__umulhi(n, times) + n) >> down;
}
";

const QUOTIENT_WIDE: &str = "\
static __device__ __forceinline__ idx quotient(idx n, idx times, u32 down) {
  return (__umul64hi(n, times) + n) >> down;
}
";

/// One access of `bytes` bytes; registers are 32-bit words, the lowest bytes first, narrow values extended by zeros.
fn helper(text: &mut String, access: Access, bytes: usize) {
    let kind = match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "uint2",
        _ => "uint4",
    };
    let fields = [".x", ".y", ".z", ".w"];
    let words = (bytes / 4).max(1);
    let field = |at: usize| if bytes > 4 { fields[at % 4] } else { "" };
    let name = verb(access);
    let mac = name.to_uppercase();
    let _ = if matches!(access, Access::Read | Access::Get) {
        let _ = writeln!(text, "static __device__ __forceinline__ void {name}{bytes}(u32* w, const u8* p) {{");
        let _ = writeln!(text, "  const {kind} v = RELAYOUT_{mac}({kind}, p);");
        let sets: Vec<String> = (0..words).map(|at| format!("w[{at}] = v{};", field(at))).collect();
        writeln!(text, "  {}\n}}", sets.join(" "))
    } else {
        let _ = writeln!(text, "static __device__ __forceinline__ void {name}{bytes}(const u32* w, u8* p) {{");
        let _ = writeln!(text, "  {kind} v;");
        let cast = if bytes < 4 { format!("({kind})") } else { String::new() };
        let sets: Vec<String> = (0..words).map(|at| format!("v{} = {cast}w[{at}];", field(at))).collect();
        writeln!(text, "  {}\n  RELAYOUT_{mac}({kind}, p, v);\n}}", sets.join(" "))
    };
}
