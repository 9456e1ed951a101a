//! Results are checked by a program that shares no code with the optimizer, before anyone gets them.
//!
//! The checker gets what is about to be written: the messages of the result, and its data, in memory. Data that no pass touched is the
//! same memory as that of the model, so it is not compared byte by byte. What the checker is told is where to look (sizes of dims), and
//! in which layouts the caller feeds inputs and takes outputs, which the caller said.

use super::result::{Optimized, unchanged};
use crate::error::Error;
use crate::give_back::{Failed, GivenBack, TRIES};
use crate::model::Model;
use crate::options::Options;
use crate::proof::laid;
use crate::report::{ProofRecord, why_not};
use crate::source::Source;
use crate::unproved::Unproved;
use relayout_onnx::proto::GraphProto;
use relayout_onnx::write::PayloadSource;
use relayout_proof::{Agreed, Contents, Proof, Verdict, prove_contents};
use relayout_target_api::Target;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Parts of a result that are smaller stay in its messages.
const SMALLEST_PART: u64 = 1 << 10;

/// Most bytes of constants in new layouts that are made in memory for the check. What is larger is checked in its file.
const MOST_MADE: u64 = 2 << 30;

/// From so many bytes of them on, the result is checked in its file, if there is one: pages of memory cost more than pages of a file.
const LEAST_STAGED: u64 = 1 << 20;

impl Optimized {
    /// Checks with a program that shares no code with the optimizer that the result computes what the model computes.
    ///
    /// # Errors
    /// [`Error`] if the result can't be taken apart. What can't be shown is a [`Verdict`].
    pub fn prove(&self, options: &Options) -> Result<Verdict, Error> {
        let nothing = |why: String| Verdict::Refused { at: "the result".to_owned(), why, value: None, shown: false };
        if !self.is_staged() && self.made_bytes() > MOST_MADE {
            let why = "it has too many bytes of constants in new layouts to be checked in memory; check the file: `relayout prove`";
            return Ok(nothing(why.to_owned()));
        }
        let parts = self.to_parts(SMALLEST_PART)?;
        let mut result = Contents::new(parts.model.into(), "the result");
        for (location, data) in parts.data {
            result = result.with_data(location, data);
        }
        let mut input = Contents::new(self.input.source.clone(), "the model");
        for (location, data) in self.input.beside() {
            input = input.with_data(location, data);
        }
        let proof = Proof { also: ends_of_ranges(options), ..self.looked_at() };
        Ok(prove_contents(&input, &result, &self.agreed(), &proof).unwrap_or_else(|e| nothing(e.to_string())))
    }

    /// Bytes of constants that are made when they are written.
    fn made_bytes(&self) -> u64 {
        let Some(result) = &self.result else { return 0 };
        let made = |tensor: &relayout_onnx::proto::TensorProto| result.payloads.get(tensor.raw_data.as_ref()?);
        result.proto.tensors().into_iter().filter_map(made).map(PayloadSource::byte_length).sum()
    }

    /// A proof without claims: the sizes that dims were priced at.
    fn looked_at(&self) -> Proof {
        let sizes = self.report.hints.iter().filter(|(_, size)| **size > 1);
        Proof { version: 1, sizes: sizes.map(|(name, size)| (name.clone(), *size)).collect(), ..Proof::default() }
    }

    /// The layouts that the caller asked for, and orders of whole axes where the caller left the order open.
    fn agreed(&self) -> Agreed {
        let mut agreed = Agreed::default();
        for end in &self.ends {
            let whole = !end.chosen || end.layout.as_permutation().is_some();
            if let Some(Some(digits)) = laid(None, &end.layout).filter(|_| whole) {
                let side = if end.output { &mut agreed.outputs } else { &mut agreed.inputs };
                side.insert(end.name.clone(), digits);
            }
        }
        agreed
    }

    /// The values of the model around one of the result: itself, or what it is made of.
    fn around(&self, value: &str, is_known: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
        let graph = self.result.as_ref().and_then(|result| result.proto.graph.as_ref());
        let (mut found, mut seen, mut todo) = (BTreeSet::new(), BTreeSet::new(), vec![value.to_owned()]);
        while let Some(name) = todo.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            if is_known(&name) {
                found.insert(name);
            } else {
                todo.extend(graph.into_iter().flat_map(|graph| operands(graph, &name)));
            }
        }
        found
    }
}

/// What the node reads that makes a value.
fn operands<'g>(graph: &'g GraphProto, value: &str) -> impl Iterator<Item = String> + 'g {
    let node = graph.node.iter().find(|node| node.output.iter().any(|output| output == value));
    node.into_iter().flat_map(|node| node.input.iter().filter(|name| !name.is_empty()).cloned())
}

/// The ends of the ranges that the caller named, as sets of sizes that the result is looked at with.
fn ends_of_ranges(options: &Options) -> Vec<BTreeMap<String, i64>> {
    let ends = |of: fn((i64, i64)) -> i64| -> BTreeMap<String, i64> {
        options.dims.iter().map(|(name, size)| (name.clone(), of(size.ends()))).collect()
    };
    if options.dims.is_empty() { Vec::new() } else { vec![ends(|ends| ends.0), ends(|ends| ends.1)] }
}

/// What is to be optimized, and where the caller writes the result, as far as that is known.
pub(super) struct Asked<'a> {
    pub(super) model: &'a Model,
    pub(super) target: &'a dyn Target,
    pub(super) options: &'a Options,
    pub(super) path: Option<&'a Path>,
}

/// What `made` makes, checked as the options ask. It decides about all of the model but the nodes of these places.
pub(super) fn checked(
    asked: &Asked<'_>,
    made: &dyn Fn(&BTreeSet<u32>) -> Result<Optimized, Error>,
) -> Result<Optimized, Error> {
    let Asked { model, target, options, .. } = *asked;
    let first = made(&BTreeSet::new())?;
    if options.unproved == Unproved::Allow {
        return Ok(first);
    }
    let (first, verdict) = looked_at(first, asked)?;
    let Some((verdict, why)) = verdict.and_then(|verdict| why_not(&verdict).map(|why| (verdict, why))) else {
        return Ok(first);
    };
    let shown = matches!(verdict, Verdict::Refused { shown: true, .. });
    // A caller who wants other inputs or outputs can't be given the model as it is.
    let may_keep = options.wishes().is_empty();
    match options.unproved {
        Unproved::GiveBack if shown && options.strict => Err(Error::Unproved { why }),
        Unproved::GiveBack if shown && !may_keep => {
            let (back, loud) = (given_back(asked, made, first, verdict)?, || made(&BTreeSet::new()));
            let kept = back.report.kept.is_some();
            if kept { looked_at(loud()?, asked).map(|(loud, _)| loud) } else { Ok(back) }
        }
        Unproved::GiveBack if shown => given_back(asked, made, first, verdict),
        Unproved::Fail => Err(Error::Unproved { why }),
        Unproved::KeepInput if !may_keep => Err(Error::Unproved { why }),
        Unproved::KeepInput => Ok(unchanged(model, target, format!("what was made of it is not proved: {why}"))),
        Unproved::Allow | Unproved::Loud | Unproved::GiveBack => Ok(first),
    }
}

/// A result with the verdict in its report, if it is another file than the model.
fn looked_at(mut made: Optimized, asked: &Asked<'_>) -> Result<(Optimized, Option<Verdict>), Error> {
    // Data that is missing is said where the model is written.
    if made.input.check_external().is_err() {
        return Ok((made, None));
    }
    let path = asked.path.filter(|_| made.made_bytes() >= LEAST_STAGED);
    match (&mut made.result, path) {
        (Some(_), Some(path)) => made.stage(path)?,
        (Some(result), None) => result.payloads.keep(),
        (None, _) => return Ok((made, None)),
    }
    let verdict = made.prove(asked.options)?;
    made.report.proof = Some(ProofRecord::new(&verdict));
    Ok((made, Some(verdict)))
}

/// Leaves what is shown to be another value as it was, and more around it each time, until the rest is proved.
fn given_back(
    asked: &Asked<'_>,
    made: &dyn Fn(&BTreeSet<u32>) -> Result<Optimized, Error>,
    mut last: Optimized,
    mut verdict: Verdict,
) -> Result<Optimized, Error> {
    let Asked { model, target, .. } = *asked;
    let graph = Source::unchecked(model)?.ir.graph;
    let (mut kept, mut told): (BTreeSet<u32>, Option<GivenBack>) = (BTreeSet::new(), None);
    for tries in 0..TRIES {
        let Some(why) = why_not(&verdict) else { break };
        let value = if let Verdict::Refused { value, .. } = &verdict { value.clone() } else { None };
        let values = value.map(|value| last.around(&value, &|name| graph.by_name(name).is_some())).unwrap_or_default();
        let failed = Failed::unproved(&graph, &values, why);
        failed.grow(&mut kept, &graph, tries);
        let told_now = failed.part(&graph, &kept, told.take());
        let (next, found) = looked_at(made(&kept)?, asked)?;
        last = next;
        let said = told_now.why.clone();
        told = Some(told_now);
        match found {
            Some(found) if !found.holds() => verdict = found,
            Some(_) => {
                last.report.notes.push(said);
                return Ok(last);
            }
            // Nothing is left of it.
            None => return Ok(unchanged(model, target, said)),
        }
    }
    let why = told.map(|told| told.why).unwrap_or_default();
    Ok(unchanged(model, target, format!("nothing of the result is proved: {why}")))
}
