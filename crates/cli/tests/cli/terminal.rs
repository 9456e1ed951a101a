//! Names that a terminal would obey are printed as what they are.

use crate::common::{folder, relayout, str};
use std::fs;

/// A length-delimited field of a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).expect("short")];
    bytes.extend_from_slice(content);
    bytes
}

/// A value of two dims.
fn value(name: &str) -> Vec<u8> {
    let dims = [field(1, &[8, 64]), field(1, &[8, 32])].concat();
    [field(1, name.as_bytes()), field(2, &field(1, &[vec![8, 1], field(2, &dims)].concat()))].concat()
}

/// One node of this op from `x` to `y`, with these names.
fn model(op: &str, node: &str, x: &str, y: &str) -> Vec<u8> {
    let node = [(1, x), (2, y), (3, node), (4, op)].map(|(number, text)| field(number, text.as_bytes()));
    let output = field(1, y.as_bytes());
    let graph = [field(1, &node.concat()), field(2, b"g"), field(11, &value(x)), field(12, &output)];
    [vec![8, 8], vec![7 << 3 | 2, graph.concat().len() as u8 | 0x80, (graph.concat().len() >> 7) as u8], graph.concat()]
        .into_iter()
        .chain([field(8, &[16, 17])])
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn names_that_a_terminal_would_obey_are_printed_as_what_they_are() {
    let dir = folder(&[]);
    let at = |name: &str| dir.path().join(name);
    // Clears the screen, sets the title, a CSI of one byte, and text that runs the other way.
    let (x, y, node) = ("x\u{1b}[2J", "y\u{1b}]0;t\u{7}", "n\u{9b}31m\u{202e}");
    fs::write(at("good.onnx"), model("Transpose", node, x, y)).unwrap();
    fs::write(at("bad.onnx"), model("Transposs\u{1b}[31m", node, x, y)).unwrap();
    let (good, bad) = (at("good.onnx"), at("bad.onnx"));
    let (good, bad) = (str(&good), str(&bad));
    let mut escaped = 0;
    for call in [
        &["explain", good][..],
        &["explain", good, "--json"],
        &["explain", good, "--why", y],
        &["print", good],
        &["print", good, "--json"],
        &["audit", good],
        &["audit", good, "--json"],
        &["optimize", good, "-o", "/dev/null", "--report", "-"],
        &["optimize", good, "-o", "/dev/null", "--print-after", "canonicalize"],
        &["optimize", bad, "-o", "/dev/null"],
        &["explain", "no\u{1b}[31mwhere.onnx"],
        &["explain", good, "--option\u{1b}[31m"],
    ] {
        let run = relayout(call);
        let said = String::from_utf8(run.out.clone()).unwrap() + &run.err;
        let obeyed = said.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}');
        assert_eq!(obeyed, None, "{call:?}: {said:?}");
        escaped += usize::from(said.contains("\\u001b"));
        if call.contains(&"--json") {
            assert!(said.contains("\\u001b") && said.starts_with(['{', '[']), "{said}");
        }
    }
    assert!(escaped > 6, "{escaped} of the calls print the names");
}
