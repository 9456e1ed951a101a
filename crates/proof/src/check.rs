//! The check: each claim of a proof in the order of the result's nodes, then the outputs.

use crate::align::term_of;
use crate::certificate::{Claim, Proof};
use crate::error::Error;
use crate::eval::{Machine, Refusal, Values, described, explained, needed};
use crate::hosts::{self, Hosts};
use crate::model::{DeclaredDim, Model, Node, Tensor};
use crate::sizes;
use crate::term::Terms;
use crate::untouched;
use crate::valid;
use crate::value::{Value, count_of};
use crate::view::{self, View, normal};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// Every output of the result is the output of the input, for all sizes.
    Proved {
        /// Claims that were checked.
        links: usize,
        /// The hosts that it is about, if it is not about all.
        #[serde(skip_serializing_if = "Option::is_none")]
        hosts: Option<Hosts>,
    },
    /// The same, for these sizes of symbolic dims.
    ForSizes {
        /// Claims that were checked.
        links: usize,
        /// The sizes.
        sizes: BTreeMap<String, i64>,
        /// The hosts that it is about, if it is not about all.
        #[serde(skip_serializing_if = "Option::is_none")]
        hosts: Option<Hosts>,
    },
    /// The same over the reals: some links hold by a lemma about arithmetic, and their results differ in rounding.
    WithLemmas {
        /// Claims that were checked.
        links: usize,
        /// How often each lemma was used, by name.
        lemmas: BTreeMap<String, usize>,
        /// The largest relative difference between a constant of the result and the one that the lemma asks for.
        bound: f64,
        /// The sizes of symbolic dims, if it holds for given ones.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        sizes: BTreeMap<String, i64>,
        /// The hosts that it is about, if it is not about all.
        #[serde(skip_serializing_if = "Option::is_none")]
        hosts: Option<Hosts>,
    },
    /// A link does not hold, or its meaning is not known.
    Refused {
        /// The node or value.
        at: String,
        /// Why.
        why: String,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Proved { links, .. } => write!(f, "PROVED: {links} links")?,
            Verdict::ForSizes { links, sizes, .. } => {
                write!(f, "PROVED FOR GIVEN SIZES {}: {links} links", listed(sizes))?;
            }
            Verdict::WithLemmas { links, lemmas, bound, sizes, .. } => {
                let given =
                    if sizes.is_empty() { String::new() } else { format!(" FOR GIVEN SIZES {}", listed(sizes)) };
                write!(
                    f,
                    "PROVED WITH LEMMAS{given}: {links} links, {}, constants differ by at most {bound:.1e}",
                    listed(lemmas)
                )?;
            }
            Verdict::Refused { at, why } => write!(f, "NOT PROVED: {at}: {why}")?,
        }
        self.hosts().map_or(Ok(()), |hosts| write!(f, ", {hosts}"))
    }
}

/// `name=number` for each.
fn listed<N: fmt::Display>(numbers: &BTreeMap<String, N>) -> String {
    numbers.iter().map(|(name, number)| format!("{name}={number}")).collect::<Vec<_>>().join(", ")
}

impl Verdict {
    /// The hosts that it is about, if it is not about all.
    pub fn hosts(&self) -> Option<Hosts> {
        match self {
            Verdict::Proved { hosts, .. } | Verdict::ForSizes { hosts, .. } | Verdict::WithLemmas { hosts, .. } => {
                *hosts
            }
            Verdict::Refused { .. } => None,
        }
    }

    /// Whether the models are proved to compute the same.
    pub fn holds(&self) -> bool {
        !matches!(self, Verdict::Refused { .. })
    }
}

/// Checks that the model in the file `result` computes what the one in `input` computes.
///
/// # Errors
/// [`Error`] if a file can't be read. A link that does not hold is a [`Verdict`].
pub fn prove(input: &Path, result: &Path, proof: &Proof) -> Result<Verdict, Error> {
    let (a, b) = (Model::open(input)?, Model::open(result)?);
    Ok(verdict(&a, &b, proof))
}

pub(crate) fn verdict(a: &Model, b: &Model, proof: &Proof) -> Verdict {
    if untouched::is_so(a, b, proof) {
        return Verdict::Proved { links: 0, hosts: hosts::of(b) };
    }
    // What holds where nothing is known of sizes holds for all of them.
    let all = (unsized_inputs(a) && alike(a, b)).then(|| attempt(a, b, proof, None).0);
    if let Some(verdict) = all.filter(Verdict::holds) {
        return verdict;
    }
    let (mut verdict, mut seen) = attempt(a, b, proof, Some(proof.sizes.clone()));
    // A model that does not run with sizes that a proof names says nothing of them.
    let mut found = BTreeMap::new();
    if !verdict.holds() && !seen.fits {
        found = sizes::found(a, &proof.sizes);
        if !found.is_empty() {
            (verdict, seen) = attempt(a, b, proof, Some(sizes::with(&proof.sizes, &found)));
        }
    }
    if verdict.holds() || seen.is_read || !unsized_inputs(a) {
        return verdict;
    }
    attempt(a, b, proof, Some(sizes::others(a, &found))).0
}

/// What was seen while a pair of models was read.
struct Seen {
    /// Whether no node was seen that does not fit.
    fits: bool,
    /// Whether all of the input was read.
    is_read: bool,
}

/// Whether an input has dims that differ from call to call.
fn unsized_inputs(model: &Model) -> bool {
    let known = |dim: &DeclaredDim| matches!(dim, DeclaredDim::Known(extent) if *extent != -1);
    model.graph.inputs.iter().any(|input| input.dims.as_ref().is_some_and(|dims| !dims.iter().all(known)))
}

/// Whether both models use the same ops as often: if not, what they compute differs where no shapes are known.
fn alike(a: &Model, b: &Model) -> bool {
    let ops = |model: &Model| {
        let mut ops: BTreeMap<(String, String), usize> = BTreeMap::new();
        let nodes = model.graph.nodes.iter().zip(needed(&model.graph.nodes, &model.graph.outputs));
        for (node, _) in nodes.filter(|(node, needed)| *needed && !matches!(node.op.as_str(), "Identity" | "Constant"))
        {
            *ops.entry((node.domain.clone(), node.op.clone())).or_default() += 1;
        }
        ops
    };
    ops(a) == ops(b)
}

/// The verdict for these sizes of symbolic dims and for others that are made up, or for all sizes.
fn attempt(a: &Model, b: &Model, proof: &Proof, sizes: Option<BTreeMap<String, i64>>) -> (Verdict, Seen) {
    let mut machine = Machine::new(sizes);
    let powers = |model: &Model| model.graph.nodes.iter().filter(|node| node.op == "Pow").count();
    machine.terms.rounds = powers(b) < powers(a);
    let links = links(&mut machine, a, b, proof);
    let seen = Seen { fits: machine.terms.fits.is_well(), is_read: !machine.terms.is_of_input() };
    let links = match links {
        Err(Refusal { node: at, why }) => return (Verdict::Refused { at, why }, seen),
        Ok(links) => links,
    };
    let (held, sizes) = (machine.terms.held, machine.sizes.used);
    let hosts = hosts::of(b).or_else(|| hosts::of(a));
    let verdict = if !held.lemmas.is_empty() {
        Verdict::WithLemmas { links, lemmas: held.lemmas, bound: held.bound, sizes, hosts }
    } else if sizes.is_empty() {
        Verdict::Proved { links, hosts }
    } else {
        Verdict::ForSizes { links, sizes, hosts }
    };
    (verdict, seen)
}

fn refused(at: String, why: impl Into<String>) -> Refusal {
    Refusal { node: at, why: why.into() }
}

/// Checks everything and counts.
fn links(machine: &mut Machine, a: &Model, b: &Model, proof: &Proof) -> Result<usize, Refusal> {
    ends(a, b)?;
    valid::inputs(a, b)?;
    valid::result(a, b)?;
    let input = |r: Refusal| refused(format!("{} of the input", r.node), r.why);
    let known = machine.model(a, &mut |_, _, _| Ok(())).map_err(input)?;
    let claims = claims_of(b, proof)?;
    let (mut links, mut stranger, bound) = (0, None, machine.terms.count());
    machine.input_ends();
    let made = machine.model(b, &mut |terms, node, values| {
        by_lemma(terms, node, values);
        links += node_links(terms, node, values, &known, &claims)?;
        if stranger.is_none() {
            stranger = foreign(terms, node, values, bound);
        }
        Ok(())
    })?;
    for name in &b.graph.outputs {
        let (Some(x), Some(y)) = (known.get(name), made.get(name)) else {
            return Err(refused(format!("output `{name}`"), "nothing makes it"));
        };
        if let Err(why) = equal(&mut machine.terms, y, x) {
            let (at, first) = stranger.unwrap_or((format!("output `{name}`"), why));
            return Err(refused(at, first));
        }
        valid::output(a, b, name, y)?;
    }
    if let Some(left) = machine.occurrences.left() {
        let why = "it is not known to compute the same each time, and the result leaves it out";
        return Err(refused(format!("value `{left}` of the input"), why));
    }
    Ok(links)
}

/// The claims by the value that each is about.
fn claims_of<'p>(b: &Model, proof: &'p Proof) -> Result<FxHashMap<&'p str, &'p Claim>, Refusal> {
    let mut claims: FxHashMap<&str, &Claim> = FxHashMap::default();
    let results: FxHashSet<&str> = b.graph.nodes.iter().flat_map(|n| n.outputs.iter().map(String::as_str)).collect();
    for claim in &proof.values {
        let wrong = |why: &str| refused(format!("value `{}`", claim.value), why);
        if !results.contains(claim.value.as_str()) {
            return Err(wrong("the proof has a claim about it, and no node makes it"));
        }
        if claims.insert(&claim.value, claim).is_some() {
            return Err(wrong("the proof has two claims about it"));
        }
    }
    Ok(claims)
}

/// Puts the term of the input in the place of one that is the same over the reals.
fn by_lemma(terms: &mut Terms, node: &Node, values: &mut Values) {
    for name in &node.outputs {
        if let Some(value) = values.get_mut(name) {
            *value = terms.real(value.clone());
        }
    }
}

/// What the input computes nowhere, if a node makes that: the likely reason why an output differs.
fn foreign(terms: &Terms, node: &Node, values: &Values, bound: u32) -> Option<(String, String)> {
    let name = node
        .outputs
        .iter()
        .find(|name| values.get(*name).and_then(term_of).is_some_and(|term| terms.beneath(term).0 >= bound))?;
    let operands =
        node.inputs.iter().filter_map(|name| values.get(name)).map(|v| explained(terms, v)).collect::<Vec<_>>();
    let found = values.get(name).map(|v| explained(terms, v)).unwrap_or_default();
    Some((described(node), format!("the input computes it nowhere: {found} of {}", operands.join("; "))))
}

/// Inputs and outputs have the same names in the same order.
fn ends(a: &Model, b: &Model) -> Result<(), Refusal> {
    let fixed = |m: &Model| m.constants().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let (fixed_a, fixed_b) = (fixed(a), fixed(b));
    let free = |m: &Model, fixed: &[String]| -> Vec<String> {
        m.graph.inputs.iter().map(|i| i.name.clone()).filter(|name| !fixed.contains(name)).collect()
    };
    if free(a, &fixed_a) != free(b, &fixed_b) {
        return Err(refused("the result".to_owned(), "it has other inputs"));
    }
    if a.graph.outputs != b.graph.outputs {
        return Err(refused("the result".to_owned(), "it has other outputs"));
    }
    for (name, default) in a.defaults() {
        let same =
            |other: &Tensor| (other.dtype, &other.dims, &other.data) == (default.dtype, &default.dims, &default.data);
        if !b.defaults().any(|(other, tensor)| other == name && same(tensor)) {
            return Err(refused(format!("input `{name}`"), "it has another default"));
        }
    }
    if a.defaults().count() != b.defaults().count() {
        return Err(refused("the result".to_owned(), "other inputs have a default"));
    }
    Ok(())
}

/// Checks the claims about what one node makes.
fn node_links(
    terms: &mut Terms,
    node: &Node,
    values: &mut Values,
    known: &Values,
    claims: &FxHashMap<&str, &Claim>,
) -> Result<usize, Refusal> {
    let mut count = 0;
    for name in &node.outputs {
        let (Some(claim), Some(made)) = (claims.get(name.as_str()), values.get(name)) else { continue };
        let of = claim.is.as_deref().unwrap_or(name);
        let at = || format!("{}, value `{name}`", described(node));
        let Some(x) = known.get(of) else {
            return Err(refused(at(), format!("the proof says it is `{of}`, which the input does not compute")));
        };
        // A file may declare other extents for the same elements in the same order.
        let wanted = if x.is_opaque() || made.is_opaque() {
            Some(x.clone()).filter(|_| claim.lies.is_none())
        } else {
            laid(terms, x, claim).and_then(|wanted| terms.moved(&wanted, &made.shape()))
        };
        let wanted = wanted.ok_or_else(|| refused(at(), format!("`{of}` has not the axes that the proof names")))?;
        equal(terms, made, &wanted)
            .map_err(|why| refused(at(), format!("it is not `{of}` as the proof has it: {why}")))?;
        count += 1;
    }
    Ok(count)
}

/// The value of a claim, as the claim says that it lies.
fn laid(terms: &mut Terms, value: &Value, claim: &Claim) -> Option<Value> {
    let Some(dims) = &claim.lies else { return Some(value.clone()) };
    let (mut view, mut counts) = (View::new(), Vec::new());
    for digits in dims {
        let part = |&(number, extent, stride): &(u32, i64, i64)| {
            let part = view::part(value.view.get(number as usize)?, extent, stride)?;
            counts.push(view::extent(&part));
            count_of(&counts).ok().map(|_| part)
        };
        match digits.iter().map(part).collect::<Option<Vec<_>>>() {
            Some(parts) => view.push(normal(parts.concat())),
            None => return cut(terms, value, dims),
        }
    }
    (count_of(&counts) == Ok(value.count())).then(|| Value { view, ..value.clone() })
}

/// The same where digits cut an axis across a border of what it counts along.
fn cut(terms: &mut Terms, value: &Value, dims: &[Vec<(u32, i64, i64)>]) -> Option<Value> {
    let shape = value.shape();
    let mut digits = Vec::new();
    for (at, &(axis, extent, stride)) in dims.iter().flatten().enumerate() {
        (stride > 0).then_some(())?;
        let whole = *shape.get(axis as usize)?;
        let extent = if extent == -1 { whole.checked_div(stride)? } else { extent };
        digits.push((axis, stride, extent, at));
    }
    digits.sort_by_key(|&(axis, stride, ..)| (axis, -stride));
    let mut left = shape.clone();
    for &(axis, stride, extent, _) in &digits {
        let rest = left.get_mut(axis as usize)?;
        (extent > 0 && stride.checked_mul(extent) == Some(*rest)).then(|| *rest = stride)?;
    }
    let split: Vec<i64> = digits.iter().map(|digit| digit.2).collect();
    let mut order = vec![0; digits.len()];
    digits.iter().enumerate().for_each(|(from, digit)| order[digit.3] = from);
    let apart = terms.moved(value, &split).filter(|_| left.iter().all(|rest| *rest == 1))?.permuted(&order)?;
    let mut extents = order.iter().map(|&at| split[at]);
    let to: Vec<i64> = dims.iter().map(|dim| extents.by_ref().take(dim.len()).product()).collect();
    terms.moved(&apart, &to)
}

/// Whether two values are equal, or how they differ.
fn equal(terms: &mut Terms, made: &Value, wanted: &Value) -> Result<(), String> {
    match terms.same(made, wanted) {
        Some(true) => Ok(()),
        _ => Err(format!("found {}; expected {}", explained(terms, made), explained(terms, wanted))),
    }
}
