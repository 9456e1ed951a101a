//! A pass before the decision: a maximum over all of an image is one over a window as large as the image, for which there is a form.

use crate::is_blockable;
use relayout::ir::attr::Attr;
use relayout::ir::dim::Dim;
use relayout::ir::graph::{Graph, OpName};
use relayout::ir::op::bind;
use relayout::target::{Context, Counted, Declared, Numerics, Pass, PassError, Rule, Slot};

/// What the pass does, as reports have it.
const RULE: Rule = Rule {
    name: "spell_out_windows",
    equation: "GlobalMaxPool(x) = MaxPool(x, kernel_shape = extents of x)",
    condition: "the extents are known, and the channels are whole blocks",
    buys: "ops without a form of the target",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) fn pass() -> Pass {
    let reason = "the decision looks for MaxPool";
    Pass::on_each_graph(Declared::new("spell_out_windows", Slot::Prepare, reason).rules(&[&RULE]), spell_out)
}

#[expect(clippy::unnecessary_wraps, reason = "passes share one function type")]
fn spell_out(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut count = 0;
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        let (Some("GlobalMaxPool"), Some(x)) = (node.onnx(), node.operand(0)) else { continue };
        let shape = graph.value(x).ty.shape().unwrap_or_default();
        let Some(window) = shape.iter().skip(2).map(Dim::as_const).collect::<Option<Vec<i64>>>() else { continue };
        if !is_blockable(graph, x) {
            continue;
        }
        graph.set_op(n, OpName::onnx("MaxPool"), cx.settings.opset);
        graph.attrs_mut(n).insert("kernel_shape".to_owned(), Attr::Ints(window));
        let form = bind(graph, n);
        graph.set_form(n, form);
        count += 1;
    }
    if count > 0 {
        cx.count(&RULE, count);
    }
    Ok(())
}
