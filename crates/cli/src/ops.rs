//! The table of ops as text and as Markdown.

use relayout::ir::op::{Description, Meaning, Reading};
use std::fmt::Write as _;

/// What `docs/ops.md` says before the table.
const HEAD: &str = "# Ops

What each operator means for layouts. Generated from the table in `crates/ir/src/op/`; a test compares. To write it anew:

    cargo run -p relayout-cli -- ops --markdown > docs/ops.md

A *signature* has a letter per axis. A letter stands for one axis that is found by its place, `(g c)` for one that several digits
spell (nothing is said of `c` in `(g c~)`); `a*` is a run of axes in any order, `a*!` one of axes that stay at their places, `[x]` the axis that the op names, `_` an
operand that is read or a result that is made as it is. `~` marks axes of which an element of the result reads all or whose extent changes, `^` axes under a
sliding window, `:1` axes of extent 1, `?` an operand that may be left out, `...` one that repeats. Of several signatures the first
that fits the node holds. *Renumbered* is what is rewritten where axes are stored in another order. A *view* moves nothing. Through
an op that is *opaque* no layout passes, for the reason given: its operands and results are row-major.
";

/// One paragraph per entry.
pub(crate) fn text(entries: &[Description]) -> String {
    let mut text = String::new();
    for d in entries {
        let _ = writeln!(text, "{} {}", name(d), opsets(d));
        for line in lines(d, "") {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// The contents of `docs/ops.md`.
pub(crate) fn markdown(entries: &[Description]) -> String {
    let mut text = HEAD.to_owned();
    let mut family = "";
    for d in entries {
        if d.family != family {
            family = d.family;
            let _ = write!(text, "\n## {family}\n\n| op | opsets | meaning |\n|---|---|---|\n");
        }
        let _ = writeln!(text, "| {} | {} | {} |", name(d), opsets(d), lines(d, "`").join("<br>"));
    }
    text
}

fn name(d: &Description) -> String {
    if d.domain.is_empty() { d.op.to_owned() } else { format!("{}.{}", d.domain, d.op) }
}

fn opsets(d: &Description) -> String {
    if d.first_opset == d.last_opset {
        d.first_opset.to_string()
    } else {
        format!("{}-{}", d.first_opset, d.last_opset)
    }
}

/// What an entry means; signatures stand between `quote`s.
fn lines(d: &Description, quote: &str) -> Vec<String> {
    match &d.meaning {
        Meaning::View { what } => vec![format!("view: {what}")],
        Meaning::Spelled { what, renumbered } => {
            let renumbered = if renumbered.is_empty() { String::new() } else { said(renumbered) };
            vec![format!("signature: {what}{renumbered}")]
        }
        Meaning::Opaque { reason } => vec![format!("opaque: {reason}")],
        Meaning::Signature { readings } => readings.iter().map(|r| line(r, quote)).collect(),
    }
}

fn line(reading: &Reading, quote: &str) -> String {
    let mut line = format!("{quote}{}{quote}", reading.signature);
    if let Some(axis) = &reading.axis {
        let _ = write!(line, "; axis: {axis}");
    }
    if let Some(reduced) = &reading.reduced {
        let _ = write!(line, "; reduced: {reduced}");
    }
    if !reading.renumbered.is_empty() {
        line.push_str(&said(&reading.renumbered));
    }
    if reading.limited {
        line.push_str("; only in orders that runtimes compute");
    }
    line
}

fn said(renumbered: &[String]) -> String {
    format!("; renumbered: {}", renumbered.join(", "))
}
