//! What a verdict says of hosts: a guard is one only if each run on another host fails at it.

use super::*;

/// `y` is `x`, less the zero of a guard: `channels` zeros, packed and made `count` numbers.
fn guarded(channels: i64, count: i64, reader: &str) -> Model {
    let lines: &[Line<'_>] = &[
        ("packed", "ReorderInput", &["zeros"], vec![]),
        ("block", "Reshape", &["packed", "count"], vec![]),
        ("zero", "Gather", &["block", "first"], vec![]),
        (reader, "Sub", &["x", "zero"], vec![]),
    ];
    let zeros = vec![0.0; channels as usize];
    let mut made = model(lines, &[("zeros", &[1, channels, 1, 1], zeros)]);
    made.block = Some(16);
    let graph = Rc::make_mut(&mut made.graph);
    "com.microsoft.nchwc".clone_into(&mut graph.nodes[0].domain);
    for (name, number) in [("count", count), ("first", 0)] {
        let data = number.to_le_bytes().to_vec().into();
        graph.initializers.push((name.to_owned(), Tensor { dims: vec![1], dtype: 7, data }));
    }
    if reader != "y" {
        let copy =
            Node { op: "Identity".into(), inputs: vec!["x".into()], outputs: vec!["y".into()], ..Node::default() };
        graph.nodes.push(copy);
    }
    made
}

fn copy() -> Model {
    model(&[("y", "Identity", &["x"], vec![])], &[])
}

fn said(b: &Model) -> String {
    verdict(&copy(), b, &Proof::default()).to_string()
}

const UNGUARDED: &str = " only: the file has no guard, so others may compute something else";

#[test]
fn a_verdict_names_the_hosts_that_it_is_about() {
    assert_eq!(said(&copy()), "PROVED: 0 links");
    assert_eq!(said(&guarded(20, 32, "y")), "PROVED: 0 links, for hosts with blocks of 16");
}

#[test]
fn what_does_not_fail_on_other_hosts_is_no_guard() {
    let bare = format!("PROVED: 0 links, for hosts with blocks of 16{UNGUARDED}");
    // 32 channels are as many numbers in blocks of 8, and what no output depends on need not run.
    assert_eq!(said(&guarded(32, 32, "y")), bare);
    assert_eq!(said(&guarded(20, 32, "unread")), bare);
    let mut fed = guarded(20, 32, "y");
    let input = Input { name: "zeros".to_owned(), dtype: 1, ..Input::default() };
    Rc::make_mut(&mut fed.graph).inputs.push(input);
    assert!(!crate::checks::hosts::find(&fed).expect("it has blocked ops").guarded);
}

#[test]
fn a_guard_in_a_body_covers_the_body_only() {
    let body = |graph: Rc<Graph>| ("then_branch".to_owned(), Attr::Graph(graph));
    let around = |mut outer: Model, inner: &Model| {
        let node = Node { op: "If".into(), attrs: vec![body(inner.graph.clone())], ..Node::default() };
        Rc::make_mut(&mut outer.graph).nodes.push(node);
        outer
    };
    let is = |model: &Model| crate::checks::hosts::find(model).map(|hosts| hosts.guarded);
    let (good, bad) = (guarded(20, 32, "y"), guarded(32, 32, "y"));
    let plain = || Model { block: Some(16), ..copy() };
    assert_eq!(is(&around(plain(), &plain())), None);
    assert_eq!(is(&around(plain(), &good)), Some(true));
    assert_eq!(is(&around(plain(), &bad)), Some(false));
    assert_eq!(is(&around(good.clone(), &bad)), Some(true));
    assert_eq!(is(&around(bad, &good)), Some(false));
}
