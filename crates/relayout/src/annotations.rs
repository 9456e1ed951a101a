//! What a result no longer says of its tensors that the model's file said beside the graph.

use relayout_onnx::proto::{GraphProto, ModelProto, NodeProto};
use std::collections::BTreeMap;

/// What was left out, a line for each kind.
pub(crate) fn left_out(before: &ModelProto, after: &ModelProto) -> Vec<String> {
    let [had, has] = [before, after].map(Said::of);
    let line = |kind: &str, had: &[String], has: &[String]| {
        let mut left = BTreeMap::new();
        for of in has {
            *left.entry(of).or_insert(0usize) += 1;
        }
        let gone: Vec<&String> = had.iter().filter(|of| !taken(&mut left, of)).collect();
        let first = gone.first()?;
        Some(format!("{} of {} {kind} were dropped, the first that of {first}", gone.len(), had.len()))
    };
    let quantized = line("quantization annotations", &had.quantized, &has.quantized);
    quantized.into_iter().chain(line("sharding specifications", &had.sharded, &has.sharded)).collect()
}

fn taken<'n>(left: &mut BTreeMap<&'n String, usize>, of: &'n String) -> bool {
    left.get_mut(of).is_some_and(|count| std::mem::replace(count, count.saturating_sub(1)) > 0)
}

/// What a file says beside its graphs, bodies included, by what it is said of.
#[derive(Default)]
struct Said {
    quantized: Vec<String>,
    sharded: Vec<String>,
}

impl Said {
    fn of(model: &ModelProto) -> Said {
        let mut said = Said::default();
        if let Some(graph) = &model.graph {
            said.add(graph);
        }
        said
    }

    fn add(&mut self, graph: &GraphProto) {
        self.quantized.extend(graph.quantization_annotation.iter().map(|a| format!("`{}`", a.tensor_name())));
        for node in &graph.node {
            let specified = node.device_configurations.iter().map(|c| c.sharding_spec.len()).sum();
            self.sharded.extend(std::iter::repeat_n(named(node), specified));
            node.bodies().for_each(|body| self.add(body));
        }
    }
}

/// A node by its name, or by what it makes.
fn named(node: &NodeProto) -> String {
    let made = || node.output.first().cloned().unwrap_or_default();
    format!("{} `{}`", node.op_type(), node.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(made))
}
