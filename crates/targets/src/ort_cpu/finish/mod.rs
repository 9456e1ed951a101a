//! What is written once layouts are: forms of several nodes, what the runtime's convolutions take in, and what keeps a file's decisions
//! when the runtime loads it.

mod guard;
mod join_taps;
mod make;
mod nchwc;
mod parts;
mod run_moves;
mod signal;
mod volume;
mod volume_moves;
mod widen;

pub(super) use volume_moves::is_sayable as can_move;

use super::Block;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_ir::op::NCHWC;
use relayout_target::{Context, Declared, Fact, Pass, PassError, Slot};

/// The passes, in their order.
pub(super) fn passes(block: Block, guarded: bool) -> Vec<Pass> {
    let signals = Declared {
        needs: &[Fact::Layouts],
        after: &["raise_to_digits"],
        before: &["write_forms"],
        ..Declared::new("lower_signals", Slot::Write, "what is written of images is then written of signals")
    };
    let lower = Declared {
        needs: &[Fact::Written],
        ..Declared::new("lower_blocks", Slot::Write, "convolutions are blocked, which may take in shifts")
    };
    let moves = Declared {
        needs: &[Fact::Packed],
        before: &["split_moves"],
        ..Declared::new("lower_moves", Slot::Finish, "looks at the moves that are left; those of constants are gone")
    };
    vec![
        Pass::on_each_graph(signals, |graph, _| signal::say_images(graph).map(drop)),
        Pass::on_each_graph(lower, move |graph, cx| lower_blocks(graph, cx, block.channels(), guarded)),
        Pass::on_each_graph(moves, |graph, _| lower_moves(graph)),
    ]
}

/// Moves of volumes, and to channels that lie apart.
fn lower_moves(graph: &mut Graph) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        let _ = volume_moves::say(graph, n)? || run_moves::say(graph, n)?;
    }
    Ok(())
}

fn lower_blocks(graph: &mut Graph, cx: &mut Context<'_>, block: u64, guarded: bool) -> Result<(), PassError> {
    let opset = cx.settings.opset;
    say_kernels(graph, block)?;
    join_taps::join_taps(graph)?;
    signal::join_reshapes(graph)?;
    nchwc::fuse(graph)?;
    volume::say_convolutions(graph, opset)?;
    parts::split_parts(graph, opset)?;
    let plain: Vec<NodeId> =
        graph.order().unwrap_or_default().into_iter().filter(|&n| guard::needs_shield(graph, n, block)).collect();
    guard::guard(graph, guarded.then_some(block), &plain)?;
    plain.into_iter().try_for_each(|n| guard::part_output(graph, n))
}

/// Whether a form of several nodes can be written for this node.
pub(super) fn can_write(graph: &Graph, n: NodeId) -> bool {
    match graph.node(n).onnx() {
        Some("Conv") if volume::is_volume(graph, n) => volume::is_sayable(graph, n),
        Some("Conv") => widen::is_sayable(graph, n),
        _ => true,
    }
}

/// Says every such kernel of a graph, for hosts of this block.
fn say_kernels(graph: &mut Graph, block: u64) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
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
            Some("Conv") if volume::is_volume(graph, n) => volume::pack(graph, n, block, &layouts)?,
            Some("Conv") => widen::say(graph, n, block, &layouts)?,
            Some("MaxPool") => volume::say_maximum(graph, n)?,
            _ => {}
        }
    }
    Ok(())
}
