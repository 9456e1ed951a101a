//! Forms of several nodes that a pass writes.

use super::{norm, reduced, scale, unfold};
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Op};
use relayout_ir::op::NCHWC;
use relayout_target::{Declared, Fact, Pass, PassError, Slot};

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new("lower_kernels", Slot::Write, "convolutions are blocked, which may take in shifts")
        .needs(&[Fact::Written]);
    Pass::on_each_graph(is, |graph, cx| {
        norm::say_norms(graph, cx.settings.opset)?;
        lower_kernels(graph)
    })
}

fn lower_kernels(graph: &mut Graph) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        // A shift that went into the bias before it is gone.
        if !graph.contains(n) {
            continue;
        }
        let node = graph.node(n);
        let (Form::Kernel(layouts), Op::Onnx(op)) = (&node.form, &node.op) else { continue };
        if op.domain == NCHWC {
            continue;
        }
        // What was made for a normalization runs as ONNX has it.
        if layouts.ins.iter().chain(&layouts.outs).all(Option::is_none) {
            continue;
        }
        let layouts = layouts.as_ref().clone();
        match node.onnx() {
            Some("ReduceMean" | "ReduceMax") => reduced::say(graph, n, &layouts)?,
            Some("Pad" | "Slice") => unfold::say(graph, n, &layouts)?,
            _ => scale::say(graph, n, &layouts)?,
        }
    }
    Ok(())
}
