//! Ends: how inputs and outputs of the main graph are stored, where the caller does not take them as the model has them.
//!
//! An end is left in ONNX's order unless the contract names it or lets it go free. What a named end costs is paid whatever is
//! decided; the order of a free one costs nothing.

use relayout_ir::graph::{Graph, Op, ValueId};
use relayout_ir::layout::Layout;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Most axes of an end that may be stored otherwise: each has a letter.
const MOST_AXES: usize = 26;

/// What the caller has agreed to, by ONNX name. Names that the graph does not have are nobody's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ends {
    /// Layouts in which inputs come.
    pub inputs: BTreeMap<String, Layout>,
    /// Layouts in which outputs are wanted.
    pub outputs: BTreeMap<String, Layout>,
    /// Every other end may lie in any order of whole axes.
    pub free: bool,
}

/// One end that is not simply ONNX's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The value.
    pub value: ValueId,
    /// Whether it is an output.
    pub output: bool,
    /// The layout that it has; `None` if it is free.
    pub layout: Option<Layout>,
}

impl Ends {
    /// The ends of a main graph that the contract speaks of, inputs first. What is input and output at once, an input with a
    /// default and what is no tensor of known rank stay as they are.
    pub fn of(&self, graph: &Graph) -> Vec<End> {
        if *self == Ends::default() {
            return Vec::new();
        }
        let sides = [(false, graph.inputs(), &self.inputs), (true, graph.outputs(), &self.outputs)];
        let (mut ends, mut seen) = (Vec::new(), FxHashSet::default());
        for (output, values, named) in sides {
            for &v in values {
                if !seen.insert((v, output)) || !is_movable(graph, v) {
                    continue;
                }
                let layout = named.get(&graph.value(v).name).cloned();
                if layout.is_some() || self.free {
                    ends.push(End { value: v, output, layout });
                }
            }
        }
        ends
    }
}

/// Whether an end may be stored otherwise.
fn is_movable(graph: &Graph, v: ValueId) -> bool {
    let value = graph.value(v);
    let source = &graph.node(value.producer().0).op;
    let pinned = match source {
        Op::Input { default } => default.is_some() || graph.is_output(v),
        _ => false,
    };
    !pinned && value.ty.rank().is_some_and(|rank| (1..=MOST_AXES).contains(&rank))
}

/// An end that is stored otherwise than ONNX has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedEnd {
    /// ONNX name.
    pub name: String,
    /// Whether it is an output.
    pub output: bool,
    /// The layout, over the axes that it had.
    pub layout: Layout,
    /// The contract left the choice to the decision.
    pub chosen: bool,
}
