//! How long a plan takes, pass by pass, and how much memory, for a graph in memory: a channels-last network in blocks of four nodes.
//!
//!     cargo run --release --example plan_time -p relayout -- [NODES [TARGET]]

use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dtype::DType;
use relayout::ir::graph::{Graph, Op};
use relayout::plan::Ids;
use relayout::{BuildError, GraphBuilder, Options, plan_graph, target};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let nodes = words.next().map_or(Ok(10_000), |word| word.parse())?;
    let target = target(&words.next().unwrap_or_else(|| "onnx".to_owned()))?;
    let graph = network(nodes / 4)?;
    let mut ids = Ids::new();
    graph.values().for_each(|v| ids.value(v, v));
    graph.nodes().for_each(|n| ids.node(n, n));
    let count = graph.nodes().filter(|&n| matches!(graph.node(n).op, Op::Onnx(_))).count();
    for round in 0..3 {
        let begin = Instant::now();
        let starts: Arc<Mutex<Vec<(&str, Instant)>>> = Arc::default();
        let (plan, report) = plan_graph(&graph, &ids, target.as_ref(), &watched(&starts))?;
        let took = begin.elapsed();
        println!(
            "{count} nodes, round {round}: {:.3} s, {} nodes planned; {}",
            took.as_secs_f64(),
            plan.nodes.len(),
            report.summary()
        );
        tell(begin, &starts.lock().map_err(|e| e.to_string())?, begin + took);
    }
    // What the system says is the most that this process had.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("no figure of memory here"));
    Ok(())
}

/// Options with which the start of each pass is noted.
fn watched(starts: &Arc<Mutex<Vec<(&'static str, Instant)>>>) -> Options {
    let starts = Arc::clone(starts);
    Options::default().watch(move |progress| {
        if let Ok(mut starts) = starts.lock() {
            starts.push((progress.pass, Instant::now()));
        }
        ControlFlow::Continue(())
    })
}

/// Milliseconds of each pass that takes one or more, and of what is before and behind them.
fn tell(begin: Instant, starts: &[(&str, Instant)], end: Instant) {
    let names = std::iter::once("before").chain(starts.iter().map(|(pass, _)| *pass));
    let begins = std::iter::once(begin).chain(starts.iter().map(|(_, at)| *at));
    let ends = starts.iter().map(|(_, at)| *at).chain([end]);
    for ((name, from), to) in names.zip(begins).zip(ends) {
        let took = (to - from).as_millis();
        if took > 0 {
            println!("    {name} {took} ms");
        }
    }
}

/// Blocks of a convolution with its axes moved around it, and what follows it.
fn network(blocks: usize) -> Result<Graph, BuildError> {
    let mut b = GraphBuilder::new("wide");
    let weights = Constant::inline(DType::F32, vec![16, 16, 3, 3], vec![0_u8; 16 * 16 * 9 * 4].into());
    let weights = b.constant("weights", weights)?;
    let mut x = b.input("x", DType::F32, [1.into(), 32.into(), 32.into(), 16.into()])?;
    for block in 0..blocks {
        let (to, from) = (vec![0, 3, 1, 2], vec![0, 2, 3, 1]);
        let nchw = b.op("Transpose", &format!("nchw.{block}"), &[x], [("perm", Attr::Ints(to))])?;
        let same = ("pads", Attr::Ints(vec![1; 4]));
        let conv = b.op("Conv", &format!("conv.{block}"), &[nchw, weights], [same])?;
        let back = b.op("Transpose", &format!("nhwc.{block}"), &[conv], [("perm", Attr::Ints(from))])?;
        x = b.op("Relu", &format!("relu.{block}"), &[back], [])?;
    }
    b.output(x)?;
    Ok(b.finish())
}
