//! The first model: what it takes and gives, and on what it ran.

use crate::draws::{Draw, draws, nudged};
use crate::io::Ends;
use crate::known::Known;
use crate::model::{Dim, Level, Model, ModelSource, Port};
use crate::noise::Precision;
use crate::side::Side;
use crate::{
    Data, Difference, Inputs, Options, Runtime, Tensor, VerifyError, input_differences, order_difference, takes,
};
use relayout::io::End;
use relayout_ir::dtype::DType;
use relayout_ir::graph::Op;
use std::collections::BTreeMap;
use std::ops::Range;

/// Constants of fewer elements are not looked at as weights: they are sizes, scales and bounds.
const FEWEST_WEIGHTS: usize = 32;

/// How many more samples are taken before it is said that a model differs.
const CLOSER: u64 = 8;

/// How far inputs and weights are off, relative to themselves, to see what a step of a rounding becomes, and how many such samples are taken:
/// rounding of single precision is a hundredth of it, so that many more are on the other side of a step.
const SHAKEN: f64 = 1e-5;
const SHAKES: u64 = 4;

/// What the file of a model says of its inputs.
fn known(a: ModelSource<'_>, inputs: &Inputs) -> Known {
    match inputs {
        Inputs::Random { dims, .. } => Known::look_up(a, dims),
        Inputs::Npz(_) => Known::look_up(a, &BTreeMap::new()),
    }
}

/// Weights of a model, whose last bit can be another where that of no input can: matrices and filters of up to 64 million numbers in all.
fn weights(model: &relayout::Model) -> Vec<Tensor> {
    let graph = &model.ir().graph;
    let mut left = 1_usize << 26;
    let mut weights = Vec::new();
    for node in graph.nodes().map(|n| graph.node(n)) {
        let (Op::Constant(constant), Some(Some(v))) = (&node.op, node.outputs.first()) else { continue };
        let ty = constant.ty();
        let (Some(DType::F32), Some(dims)) = (ty.dtype(), ty.const_shape()) else { continue };
        let Some(numbers) = constant.to_floats(left).filter(|n| dims.len() > 1 && n.len() >= FEWEST_WEIGHTS) else {
            continue;
        };
        left -= numbers.len();
        let data = Data::F32(numbers.into_iter().map(|x| x as f32).collect());
        weights.extend(Tensor::new(&graph.value(*v).name, dims, data).ok());
    }
    weights
}

/// What the arithmetic of each output rounds to, as far as the file can be read.
pub(super) struct Precisions(BTreeMap<String, Precision>);

impl Precisions {
    fn look_up(model: &Model, read: Option<&relayout::Model>) -> Self {
        let graph = read.map(|read| &read.ir().graph);
        let of = |port: &Port| (port.name.clone(), Precision::look_up(graph, &port.name));
        Self(model.outputs.iter().map(of).collect())
    }

    /// The precision of an output, or of the sequence that it is an element of.
    pub(super) fn output(&self, name: &str) -> Precision {
        let sequence = name.split_once('[').map_or(name, |(sequence, _)| sequence);
        self.0.get(name).or_else(|| self.0.get(sequence)).copied().unwrap_or_default()
    }

    /// How much inputs are changed for the noise of some output.
    pub(super) fn steps(&self) -> Vec<Option<f64>> {
        let mut steps: Vec<Option<f64>> = Vec::new();
        for precision in self.0.values() {
            if !steps.contains(&precision.step) {
                steps.push(precision.step);
            }
        }
        steps
    }
}

/// The runtime, and who is told what it does.
pub(super) struct Running<'r> {
    pub(super) runtime: &'r Runtime,
    pub(super) options: Options,
    pub(super) doing: &'r mut dyn FnMut(&str),
}

impl Running<'_> {
    pub(super) fn load(&mut self, source: ModelSource<'_>, level: Level) -> Result<Model, VerifyError> {
        (self.doing)(&format!("loading {} {}", source.label(), spelled(level)));
        let model = Model::load(self.runtime, source, level, &self.options).map_err(|error| match error {
            VerifyError::Load { model, reason } => {
                VerifyError::Load { model: format!("{model} {}", spelled(level)), reason }
            }
            other => other,
        })?;
        (self.doing)(&format!("running {} {}", source.label(), spelled(level)));
        Ok(model)
    }
}

fn spelled(level: Level) -> &'static str {
    match level {
        Level::Disabled => "with the runtime's rewrites off",
        _ => "with the runtime's rewrites on",
    }
}

/// The first model: what it takes and gives, and on what it ran.
pub(super) struct Original {
    inputs: Vec<Port>,
    defaults: Vec<Port>,
    outputs: Vec<Port>,
    pub(super) draws: Vec<Draw>,
    /// The inputs in the original's order of axes.
    feeds: Vec<Vec<Tensor>>,
    pub(super) precisions: Precisions,
}

impl Original {
    pub(super) fn ran(
        running: &mut Running<'_>,
        a: ModelSource<'_>,
        inputs: &Inputs,
        rounds: u32,
        notes: &mut Vec<String>,
    ) -> Result<(Self, Side), VerifyError> {
        let mut model = running.load(a, Level::Disabled)?;
        let known = known(a, inputs);
        let mut draws = draws(&mut model, inputs, &known, rounds, notes)?;
        let ends = Ends::of(&model)?;
        let outputs = draws.iter_mut().map(|draw| std::mem::take(&mut draw.outputs)).collect();
        let precisions = Precisions::look_up(&model, known.model());
        let mut side = Side::new(&mut model, &ends, &draws, outputs, &precisions)?;
        if let Some(read) = known.model().filter(|_| draws.iter().all(|draw| nudged(&draw.feeds, None, 1).is_none())) {
            side.nudge_weights(running, a, &weights(read), &draws);
        }
        let feeds =
            draws.iter().map(|draw| ends.to_original(End::Input, draw.feeds.clone())).collect::<Result<_, _>>()?;
        let original = Self {
            inputs: ends.original(End::Input, &model.inputs),
            defaults: model.defaults.clone(),
            outputs: ends.original(End::Output, &model.outputs),
            draws,
            feeds,
            precisions,
        };
        Ok((original, side))
    }

    /// The same model as the runtime rewrites it; `None` and a note if it does not run so.
    pub(super) fn again(
        &self,
        running: &mut Running<'_>,
        a: ModelSource<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Side>, VerifyError> {
        match self.rewritten(running, a) {
            Err(VerifyError::Load { reason, .. } | VerifyError::Run { reason, .. }) => {
                notes.push(format!("the first model does not run as the runtime rewrites it: {reason}"));
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn rewritten(&self, running: &mut Running<'_>, a: ModelSource<'_>) -> Result<Side, VerifyError> {
        let mut model = running.load(a, Level::All)?;
        let ends = Ends::of(&model)?;
        let outputs = self.draws.iter().map(|draw| model.run(&draw.feeds)).collect::<Result<_, _>>()?;
        Side::new(&mut model, &ends, &self.draws, outputs, &self.precisions)
    }

    /// Takes more samples before it is said that a model differs: with other last bits in inputs and weights, as have the weights that scales
    /// were folded into. One sample shows too little of a model in which a last bit decides which side of a kink a number is on.
    pub(super) fn look_closer(
        &self,
        running: &mut Running<'_>,
        a: ModelSource<'_>,
        inputs: &Inputs,
        plain: &mut Side,
        rewritten: Option<&mut Side>,
    ) {
        // The sample of every set that was taken before is of seed 1.
        let closer = self.sampled(running, a, inputs, plain, (None, 2..2 + CLOSER));
        for side in [Some(plain), rewritten].into_iter().flatten() {
            side.hear(&closer, &self.precisions);
        }
    }

    /// What the model gives where inputs and weights are off by more than their last bits.
    pub(super) fn shaken(&self, running: &mut Running<'_>, a: ModelSource<'_>, inputs: &Inputs, plain: &Side) -> Side {
        self.sampled(running, a, inputs, plain, (Some(SHAKEN), 1..1 + SHAKES))
    }

    /// Samples with inputs and weights that are off by a step, or by their last bits, of these seeds.
    fn sampled(
        &self,
        running: &mut Running<'_>,
        a: ModelSource<'_>,
        inputs: &Inputs,
        plain: &Side,
        (step, seeds): (Option<f64>, Range<u64>),
    ) -> Side {
        let known = known(a, inputs);
        let weights = known.model().map(weights).unwrap_or_default();
        let mut sampled = plain.quiet();
        for seed in seeds {
            let weights = nudged(&weights, step, seed).unwrap_or_default();
            let other = if step.is_some() { "digits" } else { "bits" };
            (running.doing)(&format!("running {} with other last {other} in its inputs and weights", a.label()));
            let load =
                |weights: &[Tensor]| Model::load_with(running.runtime, a, Level::Disabled, &running.options, weights);
            // Not every constant can be given another value.
            if let Ok(mut model) = load(&weights).or_else(|_| load(&[]))
                && let Ok(ends) = Ends::of(&model)
            {
                sampled.sample(&mut model, &ends, &self.draws, (step, seed));
            }
        }
        sampled
    }

    /// Whether an output has no elements whatever the inputs are.
    pub(super) fn declares_none(&self, output: &str) -> bool {
        let dims = self.outputs.iter().find(|port| port.name == output).and_then(|port| port.tensor.as_ref());
        dims.is_some_and(|(_, dims)| dims.contains(&Dim::Fixed(0)))
    }

    /// The second model on the same inputs.
    pub(super) fn second(
        &self,
        running: &mut Running<'_>,
        b: ModelSource<'_>,
        level: Level,
    ) -> Result<Second, VerifyError> {
        let mut model = running.load(b, level)?;
        let ends = Ends::of(&model)?;
        let inputs = ends.original(End::Input, &model.inputs);
        let mut differences = input_differences(&self.inputs, &inputs);
        differences.extend(input_differences(&self.defaults, &model.defaults).into_iter().map(|mut difference| {
            difference.what += " with a default";
            difference
        }));
        differences.extend(order_difference("order of the inputs", &self.inputs, &model.inputs));
        differences.extend(order_difference("order of the outputs", &self.outputs, &model.outputs));
        if !inputs.iter().all(|port| self.feeds.iter().all(|feeds| takes(port, feeds))) {
            return Ok(Second { differences, results: None });
        }
        let one = |feeds: &Vec<Tensor>| {
            let outputs = model.run(&ends.feeds(&model.inputs.clone(), feeds)?)?;
            ends.to_original(End::Output, outputs)
        };
        let results = self.feeds.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Second { differences, results: Some(results) })
    }
}

/// What the second model gave.
pub(super) struct Second {
    pub(super) differences: Vec<Difference>,
    /// `None` if it does not take the inputs.
    pub(super) results: Option<Vec<Vec<Tensor>>>,
}
