//! Whether one model can stand for another: both run as their files stand and as the runtime rewrites them, on several kinds of inputs, and
//! every element is held against what the first model's own noise allows.

use crate::compare::{OutputComparison, compare};
use crate::draws::{Draw, draws, nudged};
use crate::io::Ends;
use crate::known::Known;
use crate::model::{Dim, Level, Model, ModelSource, Port};
use crate::noise::{Found, Near, Noise, Precision};
use crate::{
    Comparison, Data, Difference, Inputs, Options, PluginProvider, Runtime, Tensor, VerifyError, input_differences,
    order_difference, takes,
};
use relayout::io::End;
use relayout_ir::dtype::DType;
use relayout_ir::graph::Op;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Constants of fewer elements are not looked at as weights: they are sizes, scales and bounds.
const FEWEST_WEIGHTS: usize = 32;

/// How many more samples are taken before it is said that a model differs.
const CLOSER: u64 = 8;

/// How two models are checked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CheckOptions {
    /// How near the outputs must be.
    pub near: Near,
    /// How many sets of random inputs are drawn: normal numbers and a batch of two, numbers in 0..1 and a batch of three, images in 0..255 and
    /// a batch of one, and so on. 0 counts as 1.
    pub rounds: u32,
    /// As [`Options::threads`].
    pub threads: usize,
    /// As [`Options::custom_ops`].
    pub custom_ops: Vec<PathBuf>,
    /// As [`Options::provider`].
    pub provider: Option<PluginProvider>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { near: Near::Noise, rounds: 3, threads: 1, custom_ops: Vec::new(), provider: None }
    }
}

/// What is known of an output, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Answer {
    /// Every element was equal in every run.
    Equal,
    /// Elements differ by no more than the first model differs from itself, or as was asked for.
    Near,
    /// Nothing that could be compared differs, but something could not be compared.
    NotCompared,
    /// The models do not compute the same.
    Differs,
}

/// One output of both models, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckedOutput {
    /// Its figures, the worst of all runs.
    #[serde(flatten)]
    pub figures: OutputComparison,
    /// What is known of it.
    pub answer: Answer,
    /// What differs, or why it was not compared.
    pub why: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckResult {
    /// The worst of the outputs' answers; [`Answer::Differs`] if the models do not take the same inputs.
    pub answer: Answer,
    /// How many sets of inputs the models ran on; 0 if the second does not take the inputs of the first.
    pub rounds: u32,
    /// Whether inputs and outputs agree and all outputs were equal.
    pub exact: bool,
    /// The worst `rms` of the outputs.
    pub rms: f64,
    /// The worst `largest_absolute` of the outputs.
    pub largest_absolute: f64,
    /// The worst `largest_relative` of the outputs.
    pub largest_relative: f64,
    /// Where the interfaces of the models differ. Empty if they agree.
    pub differences: Vec<Difference>,
    /// The outputs, in the order of the first model.
    pub outputs: Vec<CheckedOutput>,
    /// The sets of inputs.
    pub inputs: Vec<String>,
    /// What else is to know, such as a level at which the original does not load.
    pub notes: Vec<String>,
}

impl CheckResult {
    /// Whether the second model can stand for the first, and all of it was compared.
    pub fn holds(&self) -> bool {
        self.answer <= Answer::Near
    }

    fn new(differences: Vec<Difference>, outputs: Vec<CheckedOutput>, inputs: Vec<String>, notes: Vec<String>) -> Self {
        let figures = outputs.iter().map(|output| output.figures.clone()).collect();
        let rounds = if outputs.is_empty() && !differences.is_empty() { 0 } else { inputs.len() as u32 };
        let Comparison { rounds, exact, rms, largest_absolute, largest_relative, differences, .. } =
            Comparison::new(rounds, differences, figures);
        let worst = outputs.iter().map(|output| output.answer).max().unwrap_or(Answer::NotCompared);
        let answer = if differences.is_empty() { worst } else { Answer::Differs };
        Self { answer, rounds, exact, rms, largest_absolute, largest_relative, differences, outputs, inputs, notes }
    }
}

impl fmt::Display for CheckResult {
    /// A line per difference, per output and per note.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = || "none".to_owned();
        let mut lines = Vec::new();
        for d in &self.differences {
            let (a, b) = (d.a.clone().unwrap_or_else(none), d.b.clone().unwrap_or_else(none));
            lines.push(format!("{}: {a} in the first, {b} in the second", d.what));
        }
        for CheckedOutput { figures, answer, why } in &self.outputs {
            let figure = || format!("rms {:.1e}, largest {:.1e}", figures.rms, figures.largest_relative);
            let why = why.as_deref().unwrap_or_default();
            lines.push(match answer {
                Answer::Equal => format!("output `{}`: equal", figures.name),
                Answer::Near => format!("output `{}`: within noise, {}", figures.name, figure()),
                Answer::Differs => format!("output `{}`: differs, {why}", figures.name),
                Answer::NotCompared => format!("output `{}`: not compared, {why}", figures.name),
            });
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        f.write_str(&lines.join("\n"))
    }
}

/// Checks whether `b` can stand for `a`, which is the reference.
///
/// Both run with the runtime's rewrites off and with all of them, on several kinds of inputs. What the first model differs from itself by,
/// between these and where the last bit of its inputs is another, is its noise; an element of the second may differ by what noise and sums
/// in another order explain. Whole numbers and booleans may differ where the first model's own flip. Where the first model is further from
/// itself than can be compared, or an output has no number in it, that is the answer.
///
/// `doing` is told what is done next, so that a caller in another process knows what ended this one.
///
/// # Errors
/// As those of [`verify`](crate::verify).
pub fn check(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    inputs: &Inputs,
    options: &CheckOptions,
    doing: &mut dyn FnMut(&str),
) -> Result<CheckResult, VerifyError> {
    let mut running = Running { runtime, options: options.run(), doing };
    let mut notes = Vec::new();
    let (original, mut plain) = Original::ran(&mut running, a, inputs, options.rounds, &mut notes)?;
    let mut rewritten = match original.again(&mut running, a) {
        Ok(side) => Some(side),
        Err(VerifyError::Load { reason, .. } | VerifyError::Run { reason, .. }) => {
            notes.push(format!("the first model does not run as the runtime rewrites it: {reason}"));
            None
        }
        Err(other) => return Err(other),
    };
    if let Some(rewritten) = &mut rewritten {
        plain.share(rewritten, &original.precisions);
    }
    let (mut verdicts, mut looked_closer) = (Vec::new(), false);
    let mut differences = Vec::new();
    for level in [Level::Disabled, Level::All] {
        let reference = if level == Level::All { rewritten.as_ref() } else { Some(&plain) };
        let second = match original.second(&mut running, b, level) {
            Ok(second) => second,
            // Neither runs: that is the original's own.
            Err(VerifyError::Load { .. } | VerifyError::Run { .. }) if reference.is_none() => continue,
            Err(error) => return Err(error),
        };
        differences = second.differences;
        let Some(results) = second.results else {
            return Ok(CheckResult::new(differences, Vec::new(), Vec::new(), notes));
        };
        if reference.is_none() {
            continue;
        }
        let near = if level == Level::All && options.near == Near::Exact { Near::Noise } else { options.near };
        let judged = |plain: &Side, rewritten: Option<&Side>| {
            let reference = if level == Level::All { rewritten.unwrap_or(plain) } else { plain };
            let mut seen = Vec::new();
            results
                .iter()
                .enumerate()
                .for_each(|(set, result)| reference.judge(set, result, near, &original, &mut seen));
            seen
        };
        let mut seen = judged(&plain, rewritten.as_ref());
        if near == Near::Noise && !looked_closer && seen.iter().any(Seen::differs) {
            looked_closer = true;
            original.look_closer(&mut running, a, inputs, &mut plain, rewritten.as_mut());
            seen = judged(&plain, rewritten.as_ref());
        }
        Seen::join(&mut verdicts, seen);
    }
    let what: Vec<String> = original.draws.iter().map(|draw| draw.what.clone()).collect();
    let outputs = verdicts.into_iter().map(|seen: Seen| seen.verdict(&what)).collect();
    Ok(CheckResult::new(differences, outputs, what, notes))
}

impl CheckOptions {
    fn run(&self) -> Options {
        Options {
            threads: self.threads,
            custom_ops: self.custom_ops.clone(),
            provider: self.provider.clone(),
            ..Options::default()
        }
    }
}

/// What the file of a model says of its inputs.
fn known(a: ModelSource<'_>, inputs: &Inputs) -> Known {
    match inputs {
        Inputs::Random { dims, .. } => Known::of(a, dims),
        Inputs::Npz(_) => Known::of(a, &BTreeMap::new()),
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
struct Precisions(BTreeMap<String, Precision>);

impl Precisions {
    fn of(model: &Model, read: Option<&relayout::Model>) -> Self {
        let graph = read.map(|read| &read.ir().graph);
        let of = |port: &Port| (port.name.clone(), Precision::of(graph, &port.name));
        Self(model.outputs.iter().map(of).collect())
    }

    /// That of an output, or of the sequence that it is an element of.
    fn output(&self, name: &str) -> Precision {
        let sequence = name.split_once('[').map_or(name, |(sequence, _)| sequence);
        self.0.get(name).or_else(|| self.0.get(sequence)).copied().unwrap_or_default()
    }

    /// How much inputs are changed for the noise of some output.
    fn steps(&self) -> Vec<Option<f64>> {
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
struct Running<'r> {
    runtime: &'r Runtime,
    options: Options,
    doing: &'r mut dyn FnMut(&str),
}

impl Running<'_> {
    fn load(&mut self, source: ModelSource<'_>, level: Level) -> Result<Model, VerifyError> {
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
struct Original {
    inputs: Vec<Port>,
    defaults: Vec<Port>,
    outputs: Vec<Port>,
    draws: Vec<Draw>,
    /// The inputs in the original's order of axes.
    feeds: Vec<Vec<Tensor>>,
    precisions: Precisions,
}

impl Original {
    fn ran(
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
        let precisions = Precisions::of(&model, known.model());
        let mut side = Side::of(&mut model, &ends, &draws, outputs, &precisions)?;
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

    /// The same model as the runtime rewrites it.
    fn again(&self, running: &mut Running<'_>, a: ModelSource<'_>) -> Result<Side, VerifyError> {
        let mut model = running.load(a, Level::All)?;
        let ends = Ends::of(&model)?;
        let outputs = self.draws.iter().map(|draw| model.run(&draw.feeds)).collect::<Result<_, _>>()?;
        Side::of(&mut model, &ends, &self.draws, outputs, &self.precisions)
    }

    /// Takes more samples before it is said that a model differs: with other last bits in inputs and weights, as have the weights that scales
    /// were folded into. One sample shows too little of a model in which a last bit decides which side of a kink a number is on.
    fn look_closer(
        &self,
        running: &mut Running<'_>,
        a: ModelSource<'_>,
        inputs: &Inputs,
        plain: &mut Side,
        rewritten: Option<&mut Side>,
    ) {
        let known = known(a, inputs);
        let weights = known.model().map(weights).unwrap_or_default();
        let mut closer = plain.quiet();
        // The sample of every set that was taken before is of seed 1.
        for seed in 2..2 + CLOSER {
            let weights = nudged(&weights, None, seed).unwrap_or_default();
            (running.doing)(&format!("running {} with other last bits in its inputs and weights", a.label()));
            let load =
                |weights: &[Tensor]| Model::load_with(running.runtime, a, Level::Disabled, &running.options, weights);
            // Not every constant can be given another value.
            if let Ok(mut model) = load(&weights).or_else(|_| load(&[]))
                && let Ok(ends) = Ends::of(&model)
            {
                closer.sample(&mut model, &ends, &self.draws, seed);
            }
        }
        for side in [Some(plain), rewritten].into_iter().flatten() {
            side.hear(&closer, &self.precisions);
        }
    }

    /// Whether an output has no elements whatever the inputs are.
    fn declares_none(&self, output: &str) -> bool {
        let dims = self.outputs.iter().find(|port| port.name == output).and_then(|port| port.tensor.as_ref());
        dims.is_some_and(|(_, dims)| dims.contains(&Dim::Fixed(0)))
    }

    /// The second model on the same inputs.
    fn second(&self, running: &mut Running<'_>, b: ModelSource<'_>, level: Level) -> Result<Second, VerifyError> {
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
struct Second {
    differences: Vec<Difference>,
    /// `None` if it does not take the inputs.
    results: Option<Vec<Vec<Tensor>>>,
}

/// The outputs of the first model at one level, for each set of inputs, and their noise.
struct Side {
    outputs: Vec<Vec<Tensor>>,
    noise: Vec<Vec<Noise>>,
}

impl Side {
    fn of(
        model: &mut Model,
        ends: &Ends,
        draws: &[Draw],
        outputs: Vec<Vec<Tensor>>,
        precisions: &Precisions,
    ) -> Result<Self, VerifyError> {
        let outputs: Vec<Vec<Tensor>> =
            outputs.into_iter().map(|tensors| ends.to_original(End::Output, tensors)).collect::<Result<_, _>>()?;
        let mut noise = Vec::new();
        for (draw, outputs) in draws.iter().zip(&outputs) {
            let mut of_draw: Vec<Noise> = outputs.iter().map(|_| Noise::default()).collect();
            for step in precisions.steps() {
                let Some(feeds) = nudged(&draw.feeds, step, 1) else { continue };
                let samples = ends.to_original(End::Output, model.run(&feeds)?)?;
                for (noise, output) in of_draw.iter_mut().zip(outputs) {
                    if precisions.output(output.name()).step == step {
                        noise.add(output, named(&samples, output.name()));
                    }
                }
            }
            noise.push(of_draw);
        }
        Ok(Self { outputs, noise })
    }

    /// Where no input has fractions, samples are those of the model with other last bits in its weights. A runtime that does not take these says
    /// nothing about noise.
    fn nudge_weights(&mut self, running: &mut Running<'_>, a: ModelSource<'_>, weights: &[Tensor], draws: &[Draw]) {
        let Some(weights) = nudged(weights, None, 1) else { return };
        (running.doing)(&format!("running {} with other last bits in its weights", a.label()));
        let Ok(mut model) = Model::load_with(running.runtime, a, Level::Disabled, &running.options, &weights) else {
            return;
        };
        let Ok(ends) = Ends::of(&model) else { return };
        for ((draw, outputs), noise) in draws.iter().zip(&self.outputs).zip(&mut self.noise) {
            let samples = model.run(&draw.feeds).and_then(|samples| ends.to_original(End::Output, samples));
            let Ok(samples) = samples else { continue };
            for (noise, output) in noise.iter_mut().zip(outputs) {
                noise.add(output, named(&samples, output.name()));
            }
        }
    }

    /// The same outputs, of which no noise is known.
    fn quiet(&self) -> Self {
        let noise = self.outputs.iter().map(|outputs| outputs.iter().map(|_| Noise::default()).collect()).collect();
        Self { outputs: self.outputs.clone(), noise }
    }

    /// Takes in a sample of each set, on inputs with other last bits where they have fractions.
    fn sample(&mut self, model: &mut Model, ends: &Ends, draws: &[Draw], seed: u64) {
        for ((draw, outputs), noise) in draws.iter().zip(&self.outputs).zip(&mut self.noise) {
            let feeds = nudged(&draw.feeds, None, seed).unwrap_or_else(|| draw.feeds.clone());
            let samples = model.run(&feeds).and_then(|samples| ends.to_original(End::Output, samples));
            let Ok(samples) = samples else { continue };
            for (noise, output) in noise.iter_mut().zip(outputs) {
                noise.add(output, named(&samples, output.name()));
            }
        }
    }

    /// Takes in the noise that another has seen of the same sets.
    fn hear(&mut self, other: &Self, precisions: &Precisions) {
        for ((outputs, noise), (others, other_noise)) in
            self.outputs.iter().zip(&mut self.noise).zip(other.outputs.iter().zip(&other.noise))
        {
            for (output, noise) in outputs.iter().zip(noise) {
                let Some(at) = others.iter().position(|one| one.name() == output.name()) else { continue };
                noise.hear(output, other_noise[at].clone(), precisions.output(output.name()));
            }
        }
    }

    /// What the two levels differ by is noise of both, and what one has seen the other may see. What is more than can be compared says that
    /// the runtime's rewrites compute something else, so each level is then held against itself.
    fn share(&mut self, other: &mut Self, precisions: &Precisions) {
        let sides = self.outputs.iter().zip(&mut self.noise).zip(other.outputs.iter().zip(&mut other.noise));
        for ((outputs, noise), (others, other_noise)) in sides {
            for (output, noise) in outputs.iter().zip(noise) {
                let Some(at) = others.iter().position(|one| one.name() == output.name()) else { continue };
                let precision = precisions.output(output.name());
                let mut between = Noise::default();
                between.add(output, others.get(at));
                let theirs = other_noise[at].clone();
                let mine = noise.clone();
                for sample in [between.clone(), theirs] {
                    noise.join(output, sample, precision);
                }
                for sample in [between, mine] {
                    other_noise[at].join(&others[at], sample, precision);
                }
            }
        }
    }

    /// Judges what the second model gave on a set of inputs.
    fn judge(&self, set: usize, result: &[Tensor], near: Near, original: &Original, seen: &mut Vec<Seen>) {
        let outputs = &self.outputs[set];
        for (output, noise) in outputs.iter().zip(&self.noise[set]) {
            let (figures, found) = match named(result, output.name()) {
                Some(other) => {
                    let precision = original.precisions.output(output.name());
                    let found = match noise.judge(output, other, near, precision) {
                        // There is nothing to compare in any run, so nothing was missed.
                        Found::Unknown(_) if original.declares_none(output.name()) => Found::Equal,
                        found => found,
                    };
                    (compare(output, other), found)
                }
                None => lacking(output, "second"),
            };
            Seen::add(seen, set, figures, found);
        }
        for other in result.iter().filter(|other| named(outputs, other.name()).is_none()) {
            let (figures, found) = lacking(other, "first");
            Seen::add(seen, set, figures, found);
        }
    }
}

fn named<'t>(tensors: &'t [Tensor], name: &str) -> Option<&'t Tensor> {
    tensors.iter().find(|tensor| tensor.name() == name)
}

fn lacking(tensor: &Tensor, model: &str) -> (OutputComparison, Found) {
    let why = format!("the {model} model does not have it");
    (OutputComparison::mismatched(tensor, why.clone()), Found::Differs(why))
}

/// What was seen of one output so far.
struct Seen {
    figures: OutputComparison,
    found: Vec<(usize, Found)>,
}

impl Seen {
    /// Whether it differs on some set.
    fn differs(&self) -> bool {
        self.found.iter().any(|(_, found)| matches!(found, Found::Differs(_)))
    }

    fn add(all: &mut Vec<Seen>, set: usize, figures: OutputComparison, found: Found) {
        Self::join(all, vec![Seen { figures, found: vec![(set, found)] }]);
    }

    /// What was seen in other runs, too.
    fn join(all: &mut Vec<Seen>, others: Vec<Seen>) {
        for Seen { figures, found } in others {
            match all.iter_mut().find(|seen| seen.figures.name == figures.name) {
                Some(seen) => {
                    seen.figures.worsen(figures);
                    seen.found.extend(found);
                }
                None => all.push(Seen { figures, found }),
            }
        }
    }

    /// A difference anywhere is one. What can't be compared on one set of inputs may be on another.
    fn verdict(self, what: &[String]) -> CheckedOutput {
        let on = |set: usize, why: &str| format!("{why} (on {})", what.get(set).map_or("", String::as_str));
        let differs = self
            .found
            .iter()
            .find_map(|(set, found)| if let Found::Differs(why) = found { Some(on(*set, why)) } else { None });
        let compared = self.found.iter().any(|(_, found)| matches!(found, Found::Equal | Found::Near));
        let unknown = self
            .found
            .iter()
            .find_map(|(_, found)| if let Found::Unknown(why) = found { Some(why.clone()) } else { None });
        let near = self.found.iter().any(|(_, found)| *found == Found::Near);
        let (answer, why) = match (differs, compared) {
            (Some(why), _) => (Answer::Differs, Some(why)),
            (None, true) if near => (Answer::Near, None),
            (None, true) => (Answer::Equal, None),
            (None, false) => (Answer::NotCompared, unknown),
        };
        CheckedOutput { figures: self.figures, answer, why }
    }
}
