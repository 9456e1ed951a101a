//! Sets of inputs that tell models apart.
//!
//! One set of normal numbers with a batch of one does not: images that are mixed, axes that are taken for each other, whole numbers that
//! are squared and defaults that are never overridden look alike on it. So each set is of another kind. What the original does not
//! run on is made narrower until it runs, since nothing says which whole numbers are indices, and of what.

use crate::Inputs;
use crate::error::VerifyError;
use crate::inputs::{Content, Range, Shaped, Source, assumed, random, shapes, sizes};
use crate::known::Known;
use crate::model::{Model, Port};
use crate::npz;
use crate::tensor::{Data, Tensor};
use half::{bf16, f16};
use std::collections::BTreeMap;

/// The size of a symbolic dimension that is not the first of any input.
const SIZE: i64 = 64;

/// Sizes that are tried where the usual ones don't run.
const OTHERS: [i64; 6] = [224, 32, 16, 8, 4, 1];

/// How many whole-number inputs are widened one by one.
const WIDENED: usize = 8;

/// Of how many dimensions it is shown how their sizes are said.
const SHOWN: usize = 3;

/// A set of inputs on which the original ran, and what came out.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    /// What it is, for people.
    pub(crate) what: String,
    pub(crate) feeds: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
}

/// What a set is made of.
struct Plan {
    batch: i64,
    /// Whether symbolic dimensions are all different.
    different: bool,
    content: Content,
    /// Whether inputs that have a default are fed.
    defaults: bool,
}

/// `rounds` sets of inputs that `model` runs on, and one more where it has inputs with a default.
///
/// # Errors
/// What the original says of the first set if it runs on none.
pub(crate) fn draws(
    model: &mut Model,
    inputs: &Inputs,
    known: &Known,
    rounds: u32,
    notes: &mut Vec<String>,
) -> Result<Vec<Draw>, VerifyError> {
    match inputs {
        Inputs::Npz(path) => {
            let feeds = npz::read(path, model)?;
            let outputs = model.run(&feeds)?;
            Ok(vec![Draw { what: format!("the arrays of `{}`", path.display()), feeds, outputs }])
        }
        Inputs::Random { seed, dims } => {
            let contents = [Content::Normal, Content::Unit, Content::Bytes];
            let plan = |round: u32| Plan {
                batch: [2, 3, 1][round as usize % 3],
                different: round % 3 == 1,
                content: contents[round as usize % 3],
                defaults: false,
            };
            let mut drawn = Drawn { model, given: dims, file: known, notes, known: None };
            let mut draws = Vec::new();
            for round in 0..rounds.max(1) {
                draws.push(drawn.one(&plan(round), seed.wrapping_add(u64::from(round)))?);
            }
            if !drawn.model.defaults.is_empty() {
                let fed = Plan { defaults: true, content: Content::Normal, ..plan(rounds.max(1) - 1) };
                match drawn.one(&fed, seed.wrapping_add(u64::from(rounds))) {
                    Ok(draw) => draws.push(draw),
                    Err(error) => drawn.notes.push(format!("no other values were fed for defaults: {error}")),
                }
            }
            Ok(draws)
        }
    }
}

/// Sets of inputs as they are drawn.
struct Drawn<'m> {
    model: &'m mut Model,
    given: &'m BTreeMap<String, i64>,
    /// What the file says of its inputs.
    file: &'m Known,
    notes: &'m mut Vec<String>,
    /// What the last set came down to, which is tried first for the next.
    known: Option<Sizing>,
}

/// What inputs are, the inputs, and what came out.
type Fed = (String, Vec<Tensor>, Vec<Tensor>);

/// How large symbolic dimensions are.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Sizing {
    batch: i64,
    others: i64,
    different: bool,
}

impl Drawn<'_> {
    fn one(&mut self, plan: &Plan, seed: u64) -> Result<Draw, VerifyError> {
        let mut tried = Vec::new();
        let mut first = None;
        for asked in self.file.sizes() {
            for sizing in self.sizings(plan) {
                let shapes = self.shapes(sizing, &asked, plan.defaults)?;
                if tried.contains(&shapes) {
                    continue;
                }
                match self.at(plan, &shapes, seed) {
                    Ok((what, feeds, outputs)) => {
                        self.known = Some(sizing);
                        let what = format!("{what}; {}", sizes(&shapes));
                        return Ok(Draw { what, feeds, outputs });
                    }
                    Err(error) => {
                        first.get_or_insert_with(|| with_sizes(error, &assumed(&shapes, &[self.given, &asked])));
                        tried.push(shapes);
                    }
                }
            }
        }
        Err(first.expect("the usual sizes were tried"))
    }

    /// How large open dimensions may be, in the order in which that is tried.
    fn sizings(&self, plan: &Plan) -> Vec<Sizing> {
        let wanted = Sizing { batch: plan.batch, others: SIZE, different: plan.different };
        let known = self.known.map(|known| [Sizing { batch: plan.batch, ..known }, known]);
        let usual = [wanted, Sizing { different: false, ..wanted }, Sizing { batch: 1, ..wanted }];
        let usual = usual.into_iter().chain([Sizing { batch: 1, others: SIZE, different: false }]);
        let others = OTHERS.into_iter().map(|others| Sizing { batch: 1, others, different: false });
        usual.chain(known.into_iter().flatten()).chain(others).collect()
    }

    fn ports(&self, defaults: bool) -> Vec<Port> {
        let with = if defaults { &self.model.defaults[..] } else { &[] };
        self.model.inputs.iter().chain(with).cloned().collect()
    }

    fn shapes(
        &self,
        sizing: Sizing,
        asked: &BTreeMap<String, i64>,
        defaults: bool,
    ) -> Result<Vec<Shaped>, VerifyError> {
        let ports = self.ports(defaults);
        shapes(&self.model.label, &ports, self.given, asked, &|place, batch| match (batch, sizing.different) {
            (true, _) => sizing.batch,
            (false, false) => sizing.others,
            (false, true) => sizing.others + 32 * place as i64,
        })
    }

    /// Inputs of these shapes that the model runs on. Indices and lengths are what they can be, unless it does not run on these.
    fn at(&mut self, plan: &Plan, shapes: &[Shaped], seed: u64) -> Result<Fed, VerifyError> {
        let known = self.file.ranges(shapes);
        if known.iter().any(Option::is_some)
            && let Ok(fed) = self.within(&Set { plan, shapes, known, seed })
        {
            return Ok(fed);
        }
        self.within(&Set { plan, shapes, known: vec![None; shapes.len()], seed })
    }

    fn run(&mut self, set: &Set<'_>, ranges: &[Range]) -> Result<Ran, VerifyError> {
        let label = &self.model.label;
        let made = set.shapes.iter().zip(ranges).map(|((port, element, shape), range)| {
            random(label, port, *element, shape, set.seed, set.plan.content, *range)
        });
        let feeds = made.collect::<Result<Vec<_>, _>>()?;
        let outputs = self.model.run(&feeds)?;
        Ok((feeds, outputs))
    }

    /// Whole numbers of which nothing is known are as wide as they can be.
    fn within(&mut self, set: &Set<'_>) -> Result<Fed, VerifyError> {
        let whole: Vec<usize> = (0..set.shapes.len()).filter(|&at| set.shapes[at].1.is_wide()).collect();
        if whole.is_empty() {
            let (feeds, outputs) = self.run(set, &set.all(Range::BITS))?;
            return Ok((set.plan.content.to_string(), feeds, outputs));
        }
        // Masks are of zeros and ones, so one kind of set always has these.
        let ranges: &[Range] = match set.plan.content {
            Content::Normal => &[],
            Content::Unit => &[Range::SIGNED, Range::WIDE],
            Content::Bytes => &[Range::BYTES, Range::DIGITS],
        };
        for range in ranges {
            if let Ok((feeds, outputs)) = self.run(set, &set.wide(*range)) {
                return Ok((set.told(&whole, *range), feeds, outputs));
            }
        }
        let mut kept = set.all(Range::BITS);
        // What an axis or a count of zero leaves empty, one may fill.
        let empty = |made: &Ran| made.1.iter().all(|output| output.data().is_empty());
        let mut best = match self.run(set, &kept) {
            Ok(best) if !empty(&best) => best,
            other => match self.run(set, &set.all(Range::ONES)) {
                Ok(ones) if other.is_err() || !empty(&ones) => {
                    kept = set.all(Range::ONES);
                    ones
                }
                _ => other?,
            },
        };
        let guessed = whole.iter().filter(|&&at| set.known[at].is_none());
        for &at in guessed.take(if ranges.is_empty() { 0 } else { WIDENED }) {
            let mut widened = |range: Range| {
                let mut wider = kept.clone();
                wider[at] = range;
                self.run(set, &wider).map(|made| (made, wider))
            };
            let made = widened(Range::WIDE).or_else(|error| {
                let bounds = Range::in_message(&error.to_string());
                bounds.map_or(Err(error), &mut widened).or_else(|_| widened(Range::DIGITS))
            });
            if let Ok(made) = made {
                (best, kept) = made;
            }
        }
        let of = |&at: &usize| format!("`{}` in {}", set.shapes[at].0.name, kept[at]);
        let what = whole.iter().map(of).collect::<Vec<_>>().join(", ");
        Ok((format!("{}, {what}", set.plan.content), best.0, best.1))
    }
}

/// Inputs, and what came out.
type Ran = (Vec<Tensor>, Vec<Tensor>);

/// A set of inputs that is to be drawn.
struct Set<'s> {
    plan: &'s Plan,
    shapes: &'s [Shaped],
    /// For each input what it holds, if it is indices or lengths.
    known: Vec<Option<Range>>,
    seed: u64,
}

impl Set<'_> {
    /// The range of each input, this one where nothing is known.
    fn all(&self, range: Range) -> Vec<Range> {
        self.known.iter().map(|known| known.unwrap_or(range)).collect()
    }

    /// The range of each input, small where an input has a few numbers: these are sizes or counts more often than data, and large ones
    /// would ask for memory that nobody has.
    fn wide(&self, range: Range) -> Vec<Range> {
        let few = |shape: &[i64]| shape.len() < 2 && shape.iter().product::<i64>() <= 8;
        let guess = |shape: &[i64]| if few(shape) { range.narrow() } else { range };
        self.shapes.iter().zip(&self.known).map(|((_, _, shape), known)| known.unwrap_or(guess(shape))).collect()
    }

    /// What inputs are whose whole numbers, those at these places, lie in a range where nothing is known of them.
    fn told(&self, whole: &[usize], range: Range) -> String {
        let guessed = whole.iter().any(|&at| self.known[at].is_none()).then(|| format!("whole numbers in {range}"));
        let known = whole.iter().filter_map(|&at| Some((&self.shapes[at].0.name, self.known[at]?)));
        let known = known.map(|(name, known)| format!("`{name}` in {known}"));
        [self.plan.content.to_string()].into_iter().chain(guessed).chain(known).collect::<Vec<_>>().join(", ")
    }
}

/// What the runtime says of inputs whose sizes were assumed, and how to say others.
fn with_sizes(error: VerifyError, assumed: &[(String, i64)]) -> VerifyError {
    let VerifyError::Run { model, reason } = error else { return error };
    if assumed.is_empty() {
        return VerifyError::Run { model, reason };
    }
    let sizes: Vec<String> = assumed.iter().map(|(name, size)| format!("{name}={size}")).collect();
    let example: Vec<String> = assumed.iter().take(SHOWN).map(|(name, _)| format!("--dim {name}=SIZE")).collect();
    VerifyError::Sizes { model, reason, assumed: sizes.join(", "), example: example.join(" ") }
}

/// The same inputs with another last bit, or changed by `step` of themselves; `None` if nothing in them has fractions.
pub(crate) fn nudged(feeds: &[Tensor], step: Option<f64>, seed: u64) -> Option<Vec<Tensor>> {
    let mut any = false;
    let made = feeds.iter().map(|feed| {
        let mut source = Source::new(seed, feed.name());
        let factor = |source: &mut Source, last: f64| {
            1.0 + if source.flip() { 1.0 } else { -1.0 } * step.unwrap_or(0.0).max(last)
        };
        let data = match feed.data() {
            Data::F16(x) => {
                Data::F16(x.iter().map(|x| f16::from_f64(x.to_f64() * factor(&mut source, 1.0 / 1024.0))).collect())
            }
            Data::BF16(x) => {
                Data::BF16(x.iter().map(|x| bf16::from_f64(x.to_f64() * factor(&mut source, 1.0 / 128.0))).collect())
            }
            Data::F32(x) => {
                let last = f64::from(f32::EPSILON);
                Data::F32(x.iter().map(|&x| (f64::from(x) * factor(&mut source, last)) as f32).collect())
            }
            Data::F64(x) => Data::F64(x.iter().map(|&x| x * factor(&mut source, f64::EPSILON)).collect()),
            other => return Tensor::new(feed.name(), feed.shape(), other.clone()),
        };
        any = true;
        Tensor::new(feed.name(), feed.shape(), data)
    });
    let made = made.collect::<Result<Vec<_>, _>>().ok()?;
    any.then_some(made)
}
