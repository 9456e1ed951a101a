//! A model and what folding makes of it.

use super::{Net, compare};
use relayout::{Model, Numerics, Options, Report, optimize, target};
use relayout_verify::Tolerance;

/// A model before and after.
pub(crate) struct Folded {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
    pub(crate) report: Report,
    pub(crate) text: String,
}

pub(crate) fn fold_with(net: &Net, numerics: Numerics) -> Folded {
    let before = net.bytes();
    let target = target("onnx").unwrap();
    let options = Options::default().numerics(numerics).strict();
    let model = Model::from_bytes(before.clone().into(), None).unwrap();
    let optimized = optimize(&model, target.as_ref(), &options).unwrap();
    let after = optimized.to_bytes().unwrap();
    let text = optimized.graph().to_string();
    let again = Model::from_bytes(after.clone().into(), None).unwrap();
    let again = optimize(&again, target.as_ref(), &options).unwrap();
    assert!(!again.report().changed, "a second run changes something:\n{text}");
    assert_eq!(again.to_bytes().unwrap(), after);
    Folded { before, after, report: optimized.report().clone(), text }
}

pub(crate) fn fold(net: &Net) -> Folded {
    fold_with(net, Numerics::Reassociate)
}

impl Folded {
    /// ONNX ops of the result, in order.
    pub(crate) fn ops(&self) -> Vec<String> {
        let model = Model::from_bytes(self.after.clone().into(), None).unwrap();
        let graph = &model.ir().graph;
        let order = graph.order().unwrap();
        order.into_iter().filter_map(|n| Some(graph.node(n).onnx()?.to_owned())).collect()
    }

    /// Both compute the same but for rounding, with the runtime's rewrites off.
    pub(crate) fn holds(&self, rms: f64) {
        let comparison = compare(&self.before, &self.after);
        assert!(comparison.holds(&Tolerance::new(rms, 10.0 * rms)), "{comparison}\n{}", self.text);
    }
}
