//! The text of a graph: what is read is printed, and what is printed is read and printed alike. The same for its JSON and a drawing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relayout_fuzz::laws::text_is_read_back;
use relayout_fuzz::memory::{Bound, bounded};
use relayout_ir::text::{GraphJson, PrintOptions, dot, parse, print};

/// A node is some 20 bytes of text and some hundred of memory; bodies are printed with the names of what they read.
const BOUND: Bound = Bound { per_byte: 8 << 10, free: 16 << 20 };

fuzz_target!(|text: &str| bounded(&BOUND, text.len(), || run(text)));

fn run(text: &str) {
    let graph = match parse(text) {
        Ok(graph) => graph,
        Err(error) => return assert!(error.line > 0 && error.column > 0 && !error.message.is_empty()),
    };
    text_is_read_back(&graph.to_string());
    let _ = print(&graph, &PrintOptions::default().without_opsets());
    let _ = relayout_ir::verify::verify(&graph);
    let json = GraphJson::from(&graph);
    let written = serde_json::to_string(&json).expect("a graph has a JSON form");
    let read: GraphJson = serde_json::from_str(&written).expect("it is read back");
    assert_eq!(serde_json::to_string(&read).expect("it was written once"), written);
    assert!(!dot(&graph, &|_, _| false).is_empty());
}
