//! What the first model gave at one level with its noise, and what was seen of the second beside it.

use crate::VerifyError;
use crate::check::{Answer, CheckedOutput};
use crate::compare::{OutputComparison, compare};
use crate::draws::{Draw, nudged};
use crate::io::Ends;
use crate::model::{Level, Model, ModelSource};
use crate::noise::{Agreement, Near, Noise};
use crate::original::{Original, Precisions, Running};
use crate::tensor::Tensor;
use relayout::io::End;

/// The outputs of the first model at one level, for each set of inputs, and their noise.
pub(super) struct Side {
    pub(super) outputs: Vec<Vec<Tensor>>,
    noise: Vec<Vec<Noise>>,
}

impl Side {
    pub(super) fn new(
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
    pub(super) fn nudge_weights(
        &mut self,
        running: &mut Running<'_>,
        a: ModelSource<'_>,
        weights: &[Tensor],
        draws: &[Draw],
    ) {
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
    pub(super) fn quiet(&self) -> Self {
        let noise = self.outputs.iter().map(|outputs| outputs.iter().map(|_| Noise::default()).collect()).collect();
        Self { outputs: self.outputs.clone(), noise }
    }

    /// Takes in a sample of each set, on inputs that are off by this step, or by their last bits, where they have fractions.
    pub(super) fn sample(&mut self, model: &mut Model, ends: &Ends, draws: &[Draw], (step, seed): (Option<f64>, u64)) {
        for ((draw, outputs), noise) in draws.iter().zip(&self.outputs).zip(&mut self.noise) {
            let feeds = nudged(&draw.feeds, step, seed).unwrap_or_else(|| draw.feeds.clone());
            let samples = model.run(&feeds).and_then(|samples| ends.to_original(End::Output, samples));
            let Ok(samples) = samples else { continue };
            for (noise, output) in noise.iter_mut().zip(outputs) {
                noise.add(output, named(&samples, output.name()));
            }
        }
    }

    /// Takes in the noise that another has seen of the same sets.
    pub(super) fn hear(&mut self, other: &Self, precisions: &Precisions) {
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
    pub(super) fn share(&mut self, other: &mut Self, precisions: &Precisions) {
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

    /// Judges what the second model gave on each set of inputs.
    pub(super) fn judged(&self, results: &[Vec<Tensor>], near: Near, original: &Original) -> Vec<Seen> {
        let mut seen = Vec::new();
        for (set, result) in results.iter().enumerate() {
            self.judge(set, result, near, original, &mut seen);
        }
        seen
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
                        Agreement::Unknown(_) if original.declares_none(output.name()) => Agreement::Equal,
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

fn lacking(tensor: &Tensor, model: &str) -> (OutputComparison, Agreement) {
    let why = format!("the {model} model does not have it");
    (OutputComparison::mismatched(tensor, why.clone()), Agreement::Differs(why))
}

/// What was seen of one output so far.
pub(super) struct Seen {
    figures: OutputComparison,
    found: Vec<(usize, Agreement)>,
}

impl Seen {
    /// Whether it differs on some set.
    pub(super) fn differs(&self) -> bool {
        self.found.iter().any(|(_, found)| matches!(found, Agreement::Differs(_)))
    }

    /// Does not call different what differs by no more than the first model from itself where it was shaken.
    pub(super) fn excuse(&mut self, results: &[Vec<Tensor>], shaken: &Side) {
        let name = &self.figures.name;
        for (set, found) in self.found.iter_mut().filter(|(_, found)| matches!(found, Agreement::Differs(_))) {
            let Some(at) = shaken.outputs[*set].iter().position(|one| one.name() == name) else { continue };
            let covers = |other| shaken.noise[*set][at].covers(&shaken.outputs[*set][at], other);
            if let Some([far, own]) = named(&results[*set], name).and_then(covers) {
                *found = Agreement::Shaken(format!(
                    "it differs by {far:.1e} at most, and the first model from itself by {own:.1e} where its inputs and weights are off by \
                     a hundred thousandth"
                ));
            }
        }
    }

    fn add(all: &mut Vec<Seen>, set: usize, figures: OutputComparison, found: Agreement) {
        Self::join(all, vec![Seen { figures, found: vec![(set, found)] }]);
    }

    /// What was seen in other runs, too.
    pub(super) fn join(all: &mut Vec<Seen>, others: Vec<Seen>) {
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
    pub(super) fn verdict(self, what: &[String]) -> CheckedOutput {
        let on = |set: usize, why: &str| format!("{why} (on {})", what.get(set).map_or("", String::as_str));
        let differs = self
            .found
            .iter()
            .find_map(|(set, found)| if let Agreement::Differs(why) = found { Some(on(*set, why)) } else { None });
        let compared = self.found.iter().any(|(_, found)| matches!(found, Agreement::Equal | Agreement::Near));
        let unknown = self
            .found
            .iter()
            .find_map(|(_, found)| if let Agreement::Unknown(why) = found { Some(why.clone()) } else { None });
        let near = self.found.iter().any(|(_, found)| *found == Agreement::Near);
        let shaken = self
            .found
            .iter()
            .find_map(|(set, found)| if let Agreement::Shaken(why) = found { Some(on(*set, why)) } else { None });
        let (answer, why) = match (differs, compared) {
            (Some(why), _) => (Answer::Differs, Some(why)),
            (None, _) if shaken.is_some() => (Answer::NotCompared, shaken),
            (None, true) if near => (Answer::Near, None),
            (None, true) => (Answer::Equal, None),
            (None, false) => (Answer::NotCompared, unknown),
        };
        CheckedOutput { figures: self.figures, answer, why }
    }
}
