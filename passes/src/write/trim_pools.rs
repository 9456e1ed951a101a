//! `trim_pools`: attributes of pools are written so that every reader infers the extents that the pool has.
//!
//! With `ceil_mode` a last window may reach over the end, but one that would start in the padding behind the data does not count.
//! Inference of ONNX before operator set 22 counts it. ONNX Runtime replaces Shape by what it infers, and bodies of functions read
//! shapes, so a column that is not there would break what comes behind. So where the two differ the same windows are written
//! otherwise, in the first of these ways that does it:
//!
//! - it rounds down, if that gives the same extents on every axis;
//! - the padding that no window reaches goes;
//! - it rounds down, and where a window reaches over the end there is as much padding. Not for means that count padding.
//!
//! Absent: such means over windows that are shorter than their stride on such an axis, beside another axis whose last window
//! reaches over the end.

use crate::state::Step;
use relayout_ir::attr::Attr;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, Op, ValueId};
use relayout_ir::op::read::{self, Window};
use relayout_target_api::{Context, Declared, Fact, PassError, Slot};

/// The first operator set whose inference leaves such a window out.
const INFERRED_RIGHT: i64 = 22;

const POOLS: [&str; 3] = ["MaxPool", "AveragePool", "LpPool"];

/// The pass.
pub(crate) const PASS: Step<'static> = Step::model(
    Declared::new(
        "trim_pools",
        Slot::Clean,
        "knows which calls are left; only they ask for extents that a loader may infer otherwise",
    )
    .needs(&[Fact::Packed]),
    trim_pools,
);

/// Trims the pools of files that call functions; others have no need of it and stay as they were read.
pub fn trim_pools(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    if cx.target().capabilities().calls_functions && cx.settings.opset < INFERRED_RIGHT && calls(graph) {
        trim(graph);
    }
    Ok(())
}

/// Whether a graph or a body of it has a kernel or a move, which are calls.
fn calls(graph: &Graph) -> bool {
    graph.nodes().any(|n| {
        let node = graph.node(n);
        matches!(node.op, Op::Relayout) || matches!(node.form, Form::Kernel(_)) || node.bodies().any(calls)
    })
}

fn trim(graph: &mut Graph) {
    for n in graph.nodes().collect::<Vec<_>>() {
        for (name, attr) in replaced(graph, graph.node(n)) {
            graph.attrs_mut(n).insert(name.to_owned(), attr);
        }
        graph.attrs_mut(n).values_mut().flat_map(Attr::bodies_mut).for_each(trim);
    }
}

/// The attributes to set: none if extents are inferred right, or can't be.
fn replaced(graph: &Graph, node: &Node) -> Vec<(&'static str, Attr)> {
    let Op::Onnx(op) = &node.op else { return Vec::new() };
    let standard = op.domain.is_empty() || matches!(node.form, Form::Kernel(_));
    if !standard || !POOLS.contains(&op.name.as_str()) || !node.flag("ceil_mode") {
        return Vec::new();
    }
    let Some(windows) = windows(graph, node).filter(|all| !all.iter().all(|w| w.places(true) == w.found)) else {
        return Vec::new();
    };
    let down = ("ceil_mode", Attr::Int(0));
    let pads = |after: Vec<i64>| ("pads", Attr::Ints(windows.iter().map(|w| w.pads.0).chain(after).collect()));
    if windows.iter().all(|w| w.places(false) == w.found) {
        vec![down]
    } else if let Some(after) = windows.iter().map(|w| w.trimmed()).collect() {
        vec![pads(after)]
    } else if let Some(after) = windows.iter().map(|w| w.filled()).collect()
        && !node.flag("count_include_pad")
    {
        vec![down, pads(after)]
    } else {
        Vec::new()
    }
}

/// The windows along one axis.
#[derive(Clone, Copy, Debug)]
struct Windows {
    extent: i64,
    kernel: i64,
    /// From the first element of a window to behind its last.
    span: i64,
    stride: i64,
    pads: (i64, i64),
    /// How many there are.
    found: i64,
}

impl Windows {
    /// How many fit, the last one wholly or in part, also in the padding.
    fn places(self, in_part: bool) -> i64 {
        let room = self.extent + self.pads.0 + self.pads.1 - self.span;
        let more = if in_part { self.stride - 1 } else { 0 };
        (room + more).div_euclid(self.stride) + 1
    }

    /// How far behind the data they end; negative where that is before its end.
    fn end(self) -> i64 {
        (self.found - 1) * self.stride + self.span - self.extent - self.pads.0
    }

    /// The padding behind the data with which so many are counted. `None` if no padding is little enough.
    fn trimmed(self) -> Option<i64> {
        if self.places(true) == self.found { Some(self.pads.1) } else { Some(self.end()).filter(|&end| end >= 0) }
    }

    /// The padding behind the data with which so many fit wholly. `None` if a runtime takes no such padding.
    fn filled(self) -> Option<i64> {
        let after = self.pads.1.max(self.end());
        let fits = Windows { pads: (self.pads.0, after), ..self }.places(false) == self.found;
        (fits && (after == self.pads.1 || after < self.kernel)).then_some(after)
    }
}

fn is_small(i: i64) -> bool {
    (0..1 << 31).contains(&i)
}

/// The windows of a pool, if all is known and is small enough to count with.
fn windows(graph: &Graph, node: &Node) -> Option<Vec<Windows>> {
    let spatial = |v: Option<ValueId>| -> Option<Vec<i64>> {
        graph.value(v?).ty.shape()?.get(2..)?.iter().map(|d| d.as_const().filter(|&i| is_small(i))).collect()
    };
    let extents = spatial(node.operand(0))?;
    let found = spatial(node.result(0))?;
    let read = read::windows(graph, node).ok()?;
    let of = |(w, (&extent, &found)): (&Window, (&i64, &i64))| {
        // Pads that the runtime makes leave nothing to take.
        let (kernel, pads) = (w.kernel?, w.padding()?);
        let small = [kernel, w.stride, w.dilation, pads.0, pads.1].into_iter().all(is_small);
        Some(Windows { extent, kernel, span: w.span()?, stride: w.stride, pads, found }).filter(|_| small)
    };
    let fits = extents.len() == found.len() && read.len() == found.len();
    fits.then(|| read.iter().zip(extents.iter().zip(&found)).map(of).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many windows a runtime computes with `ceil_mode`.
    fn computed(w: Windows) -> i64 {
        let starts = (0..).map(|i| i * w.stride);
        let room = w.extent + w.pads.0 + w.pads.1 - w.span;
        // Where the one before fits with room to spare there is another, if it starts in the data.
        starts.take_while(|&at| at == 0 || (at - w.stride < room && at < w.extent + w.pads.0)).count() as i64
    }

    #[test]
    fn other_padding_leaves_the_windows_that_there_are_and_is_rounded_alike_either_way() {
        let mut trimmed = 0;
        for (extent, span, stride) in (5..12).flat_map(|e| (1..5).flat_map(move |k| (1..5).map(move |s| (e, k, s)))) {
            for pads in (0..span).flat_map(|before| (0..span).map(move |after| (before, after))) {
                let w = Windows { extent, kernel: span, span, stride, pads, found: 0 };
                let w = Windows { found: computed(w), ..w };
                let filled = w.filled().expect("windows of a stride reach no further than themselves");
                assert_eq!(Windows { pads: (pads.0, filled), ..w }.places(false), w.found, "{w:?}");
                if w.places(true) == w.found {
                    continue;
                }
                assert_eq!(w.places(false), w.found, "a window that starts in padding is in part: {w:?}");
                let Some(after) = w.trimmed() else {
                    assert!(span < stride, "{w:?}");
                    continue;
                };
                let less = Windows { pads: (pads.0, after), ..w };
                assert!(after < pads.1, "{w:?}");
                assert_eq!([less.places(true), less.places(false), computed(less)], [w.found; 3], "{w:?}");
                trimmed += 1;
            }
        }
        assert!(trimmed > 50, "{trimmed}");
    }
}
