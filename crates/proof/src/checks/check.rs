//! The check: each claim of a proof in the order of the result's nodes, then the outputs.

use crate::certificate::{Claim, Proof};
use crate::checks::agreed::{Agreed, UNFIT};
use crate::checks::hosts;
use crate::checks::lies::laid;
use crate::checks::sets;
use crate::checks::untouched;
use crate::checks::valid;
use crate::checks::verdict::Verdict;
use crate::error::Error;
use crate::files::contents::Contents;
use crate::files::model::{DeclaredDim, Model, Node, Tensor};
use crate::graph::eval::{Machine, Refusal, SHAPELESS, Values, by_lemma, described, explained};
use crate::graph::order::needed;
use crate::graph::sizes;
use crate::lemmas::halves;
use crate::ops;
use crate::terms::align::term_of;
use crate::terms::state::Terms;
use crate::terms::symbolic::Symbolic;
use crate::terms::value::Value;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks that the model in the file `result` computes what the one in `input` computes.
///
/// # Errors
/// [`Error`] if a file can't be read. A link that does not hold is a [`Verdict`].
pub fn prove(input: &Path, result: &Path, proof: &Proof) -> Result<Verdict, Error> {
    prove_contents(&Contents::open(input)?, &Contents::open(result)?, &Agreed::default(), proof)
}

/// The same of models in memory, whose inputs and outputs may lie otherwise where that was agreed to.
///
/// # Errors
/// As of [`prove`].
pub fn prove_contents(input: &Contents, result: &Contents, agreed: &Agreed, proof: &Proof) -> Result<Verdict, Error> {
    let (a, b) = (input.read()?, result.read()?);
    Ok(verdict(&Pair { a: &a, b: &b, agreed, proof }))
}

/// What is checked.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'p> {
    pub(crate) a: &'p Model,
    pub(crate) b: &'p Model,
    pub(crate) agreed: &'p Agreed,
    pub(crate) proof: &'p Proof,
}

pub(crate) fn verdict(pair: &Pair<'_>) -> Verdict {
    let Pair { a, b, agreed, proof } = *pair;
    if agreed.is_empty() && untouched::is_so(a, b, proof) {
        return Verdict::Proved { links: 0, hosts: hosts::find(b) };
    }
    // What holds where nothing is known of sizes holds for all of them.
    let open = if unsized_inputs(a) { alike(a, b) } else { counts_rounds(a) };
    let all = open.then(|| attempt(pair, None).verdict);
    if let Some(verdict) = all.filter(Verdict::holds) {
        return verdict;
    }
    of_all_sizes(pair).unwrap_or_else(|| of_sizes(pair))
}

/// The verdict for some sets of sizes.
pub(crate) fn of_sizes(pair: &Pair<'_>) -> Verdict {
    let Pair { a, proof, .. } = *pair;
    let mut made = attempt(pair, Some(proof.sizes.clone()));
    // A model that does not run with sizes that a proof names says nothing of them.
    let mut found = BTreeMap::new();
    if !made.verdict.holds() && !made.fits {
        found = sizes::found(a, &proof.sizes);
        if !found.is_empty() {
            made = attempt(pair, Some(sizes::with(&proof.sizes, &found)));
        }
    }
    if !made.verdict.holds() && !made.is_read && unsized_inputs(a) {
        made = attempt(pair, Some(sizes::others(a, &found)));
    }
    sets::more(pair, made, &found)
}

/// Most extents that the nodes of a model fix.
const FIXED: usize = 8;

/// The verdict for all sizes with which the model runs, if it holds: where a node fails with any other extent, it has that one.
pub(crate) fn of_all_sizes(pair: &Pair<'_>) -> Option<Verdict> {
    let symbolic = || Symbolic::of([pair.a, pair.b]).filter(|_| unsized_inputs(pair.a));
    let mut fixed = BTreeMap::new();
    for _ in 0..=FIXED {
        let sizes = symbolic()?;
        let made = attempt_by(&|| Machine::of_all_sizes(sizes.clone(), fixed.clone()), pair);
        if let Some((symbol, size)) = made.fixed.filter(|(symbol, size)| fixed.get(symbol) != Some(size)) {
            fixed.insert(symbol, size);
            continue;
        }
        // Claims that name sizes are held for these.
        let held = !made.left || attempt(pair, Some(pair.proof.sizes.clone())).verdict.holds();
        return Some(made.verdict).filter(|verdict| verdict.holds() && held);
    }
    None
}

/// What was found for some sizes.
pub(crate) struct Attempt {
    pub(crate) verdict: Verdict,
    /// Sizes that were looked at.
    pub(crate) sizes: BTreeMap<String, i64>,
    /// Whether no node was seen that does not fit.
    pub(crate) fits: bool,
    /// Whether all of the input was read.
    pub(crate) is_read: bool,
    /// An extent, and the only number with which the input runs.
    fixed: Option<(String, i64)>,
    /// Whether a claim was left that is about some sizes.
    left: bool,
}

/// Whether an input has dims that differ from call to call.
pub(crate) fn unsized_inputs(model: &Model) -> bool {
    let known = |dim: &DeclaredDim| matches!(dim, DeclaredDim::Known(extent) if *extent != -1);
    model.graph.inputs.iter().any(|input| input.dims.as_ref().is_some_and(|dims| !dims.iter().all(known)))
}

/// Whether an input says how many rounds a loop has.
fn counts_rounds(model: &Model) -> bool {
    let given =
        |node: &&Node| node.inputs.first().is_some_and(|name| model.graph.inputs.iter().any(|i| i.name == *name));
    model.graph.nodes.iter().filter(|node| node.op == "Loop").any(|node| given(&node))
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

/// Whether the result has ops between quantizations in the place of units of integers.
fn parted(a: &Model, b: &Model) -> bool {
    let count = |model: &Model, is: fn(&Node) -> bool| model.graph.nodes.iter().filter(|node| is(node)).count();
    let less = |is| count(b, is) < count(a, is);
    less(|node| ops::is_unit(&node.op)) && !less(|node| node.op == "DequantizeLinear")
}

/// The verdict for these sizes of symbolic dims and for others that are made up, or for all sizes.
pub(crate) fn attempt(pair: &Pair<'_>, sizes: Option<BTreeMap<String, i64>>) -> Attempt {
    let machine = move || Machine::new(sizes.clone());
    attempt_by(&machine, pair)
}

/// What is found with units of integers as they are, if that is enough. Where a unit of the result has its channels in another order, it
/// is read as what it is by definition, as are those of the input.
fn attempt_by(machine: &dyn Fn() -> Machine, pair: &Pair<'_>) -> Attempt {
    let Pair { a, b, .. } = *pair;
    let made = attempt_with(machine(), pair, parted(a, b));
    if made.verdict.holds() || parted(a, b) || !has_other_filters(a, b) {
        return made;
    }
    let again = attempt_with(machine(), pair, true);
    if again.verdict.holds() { again } else { made }
}

/// Whether the result has convolutions of integers whose filters the input has not, or not in that order.
fn has_other_filters(a: &Model, b: &Model) -> bool {
    let filters = |model: &Model| -> BTreeSet<bytes::Bytes> {
        let convolutions = model.graph.nodes.iter().filter(|node| node.op == "QLinearConv");
        let names: BTreeSet<&String> = convolutions.filter_map(|node| node.inputs.get(3)).collect();
        let stored = model.graph.initializers.iter().filter(|(name, _)| names.contains(name));
        stored.map(|(_, filters)| filters.data.clone()).collect()
    };
    let (mine, known) = (filters(b), filters(a));
    !known.is_empty() && !mine.is_subset(&known)
}

fn attempt_with(mut machine: Machine, pair: &Pair<'_>, parted: bool) -> Attempt {
    let Pair { a, b, .. } = *pair;
    let powers = |model: &Model| model.graph.nodes.iter().filter(|node| node.op == "Pow").count();
    machine.terms.rounds = powers(b) < powers(a);
    machine.terms.parted = parted;
    let links = links(&mut machine, pair);
    let (fits, is_read) = (machine.terms.fits.is_well(), !machine.terms.is_of_input());
    let fixed = machine.terms.symbolic.as_ref().and_then(|symbolic| symbolic.found.clone());
    let left = machine.terms.symbolic.as_ref().is_some_and(|symbolic| symbolic.left);
    let (held, sizes) = (machine.terms.held, machine.sizes.used);
    let verdict = match links {
        Err(Refusal { node: at, why }) => {
            // Where a shape is not known, a term that differs may well be the same value.
            let shown = is_read && why != UNFIT && !why.contains(SHAPELESS);
            Verdict::Refused { value: value_at(b, &at), at, why, shown }
        }
        Ok(links) => {
            let hosts = hosts::find(b).or_else(|| hosts::find(a));
            let sets = if sizes.is_empty() { Vec::new() } else { vec![sizes.clone()] };
            if !held.lemmas.is_empty() {
                Verdict::WithLemmas { links, lemmas: held.lemmas, bound: held.bound, sizes: sets, hosts }
            } else if sets.is_empty() {
                Verdict::Proved { links, hosts }
            } else {
                Verdict::ForSizes { links, sizes: sets, hosts }
            }
        }
    };
    Attempt { verdict, sizes, fits, is_read, fixed, left }
}

/// The first value that the node makes which a refusal is about, or the output.
fn value_at(b: &Model, at: &str) -> Option<String> {
    let output = at.strip_prefix("output `").and_then(|rest| rest.strip_suffix('`'));
    let node = || b.graph.nodes.iter().find(|node| at.starts_with(&described(node)));
    output.map(str::to_owned).or_else(|| node()?.outputs.first().cloned())
}

fn refused(at: String, why: impl Into<String>) -> Refusal {
    Refusal { node: at, why: why.into() }
}

/// Checks everything and counts.
fn links(machine: &mut Machine, pair: &Pair<'_>) -> Result<usize, Refusal> {
    let Pair { a, b, agreed, proof } = *pair;
    ends(a, b)?;
    valid::inputs(a, b, agreed)?;
    valid::result(a, b)?;
    let input = |r: Refusal| refused(format!("{} of the input", r.node), r.why);
    let known = machine.model(a, Values::default(), &mut |_, _, _| Ok(())).map_err(input)?;
    let claims = claims_of(b, proof)?;
    let (mut links, mut stranger, bound) = (0, None, machine.terms.count());
    machine.input_ends();
    let given = agreed.inputs_of(&mut machine.terms, b, &known)?;
    valid::given(b, &given)?;
    let made = machine.model(b, given, &mut |terms, node, values| {
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
        let wanted = agreed.output(&mut machine.terms, (name, x, y))?;
        if let Err(why) = equal(&mut machine.terms, y, &wanted) {
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

/// What the input computes nowhere, if a node makes that: the likely reason why an output differs.
fn foreign(terms: &Terms, node: &Node, values: &Values, bound: u32) -> Option<(String, String)> {
    let is_strange = |term: u32| terms.beneath(term).0 >= bound && halves::is_foreign(terms, term);
    let name = node.outputs.iter().find(|name| values.get(*name).and_then(term_of).is_some_and(is_strange))?;
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

/// Whether a claim says what holds for all sizes: extents that it names may be those of some.
fn is_of_all_sizes(terms: &Terms, x: &Value, claim: &Claim) -> bool {
    let named = |digits: &[(u32, i64, i64)]| digits.iter().any(|(_, extent, stride)| *extent != -1 || *stride != 1);
    !terms.has_open(x) || !claim.lies.iter().flatten().any(|dim| named(dim))
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
        if terms.symbolic.is_some() && !is_of_all_sizes(terms, x, claim) {
            terms.symbolic.iter_mut().for_each(|symbolic| symbolic.left = true);
            continue;
        }
        // A file may declare other extents for the same elements in the same order.
        let wanted = if x.is_opaque() || made.is_opaque() {
            Some(x.clone()).filter(|_| claim.lies.is_none())
        } else {
            laid(terms, x, claim.lies.as_ref()).and_then(|wanted| terms.moved(&wanted, &made.shape()))
        };
        let wanted = wanted.ok_or_else(|| refused(at(), format!("`{of}` has not the axes that the proof names")))?;
        equal(terms, made, &wanted)
            .map_err(|why| refused(at(), format!("it is not `{of}` as the proof has it: {why}")))?;
        count += 1;
    }
    Ok(count)
}

/// Whether two values are equal, or how they differ.
fn equal(terms: &mut Terms, made: &Value, wanted: &Value) -> Result<(), String> {
    match terms.same(made, wanted) {
        Some(true) => Ok(()),
        _ => Err(format!("found {}; expected {}", explained(terms, made), explained(terms, wanted))),
    }
}
