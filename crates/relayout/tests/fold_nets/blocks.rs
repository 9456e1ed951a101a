//! The two kinds of hosts that target `ort-cpu` writes files for. Every test says for which it speaks: most state for both what is
//! left. To optimize needs neither of them; to execute a file needs the host whose blocks it has.

#![allow(dead_code, reason = "each test file uses its part")]

use prost::Message;
use relayout_onnx::proto::{GraphProto, ModelProto};
use relayout_targets::Block;
use relayout_verify::Level;

/// Blocks of 8, of hosts with AVX2, and blocks of 16, of those with AVX-512. The output of a test says which it is about.
pub(crate) fn blocks() -> impl Iterator<Item = Block> {
    [Block::B8, Block::B16].into_iter().inspect(|block| println!("blocks of {}:", block.channels()))
}

/// Whether this host executes a file that was made for such blocks: it has them, or the file has none. If not, the output of the test
/// says so.
pub(crate) fn executes(block: Block, file: &[u8]) -> bool {
    let host = Block::of_host();
    let graph = || ModelProto::decode(file).unwrap_or_default().graph;
    let runs = host == block || !graph().is_some_and(|graph| has_blocks(&graph));
    if !runs {
        println!("not executed: this host has blocks of {}", host.channels());
    }
    runs
}

/// Whether a graph or a body in it has an op of blocks.
fn has_blocks(graph: &GraphProto) -> bool {
    let bodies = graph.node.iter().flat_map(|node| &node.attribute).filter_map(|attribute| attribute.g.as_deref());
    graph.node.iter().any(|node| node.domain() == "com.microsoft.nchwc") || bodies.into_iter().any(has_blocks)
}

/// How much the runtime rewrites a file on load when it is executed: nothing, then all that it can. None where it is not executed here.
pub(crate) fn levels(block: Block, file: &[u8]) -> impl Iterator<Item = Level> {
    [Level::Disabled, Level::All].into_iter().take(if executes(block, file) { 2 } else { 0 })
}
