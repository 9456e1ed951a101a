//! What pieces of a graph are, by name: regions around what forms begin with, brought to saturation.

use crate::EQUATIONS;
use crate::equation::{Rewrite, Unsound};
use crate::explain::explanation;
use crate::facts::{Known, Terms};
use crate::read::Region;
use crate::term::{Head, Term};
use egg::Id;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_target_api::{Arg, Equation, Explanation, Numerics, Recognized};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};

/// The place of each node that is looked at in topological order.
type Places = FxHashMap<NodeId, usize>;

/// Rounds of applying every equation.
const ROUNDS: usize = 12;
/// Terms of a region, beyond which no round begins.
const TERMS: usize = 2000;
/// Nodes of the file in a region.
const NODES: usize = 64;
/// In how many ways values of the file are tried as the operands of a piece.
const WAYS: usize = 16;
/// How many nodes a region reaches from where it begins.
const REACH: usize = 10;

/// What regions begin with, by named op: each spelling of it has one of these in it.
const SEEDS: &[(&str, &[&str])] = &[
    ("Attention", &["Softmax", "Exp"]),
    ("AttentionOfRows", &["Softmax", "Exp"]),
    ("Gelu", &["Gelu", "Erf"]),
    ("GeluTanh", &["Gelu", "Tanh"]),
    ("GroupNormalization", &["GroupNormalization", "InstanceNormalization", "ReduceMean", "ReduceSum"]),
    ("HardSwish", &["HardSwish", "HardSigmoid", "Clip", "Min"]),
    ("InstanceNormalization", &["InstanceNormalization", "ReduceMean", "ReduceSum", "GlobalAveragePool"]),
    ("LayerNormalization", &["LayerNormalization", "ReduceMean", "ReduceSum"]),
    ("RMSNormalization", &["RMSNormalization", "ReduceMean", "ReduceSum"]),
    ("QuickGelu", &["Sigmoid", "Exp"]),
    ("Swish", &["Sigmoid", "Exp"]),
];

/// Finds pieces that are certain ops.
pub struct Finder {
    rewrites: Vec<Rewrite>,
    wanted: Vec<Head>,
    /// Names of the ops that regions begin with.
    seeds: BTreeSet<&'static str>,
}

impl Finder {
    /// Finds these ops, by the built-in equations and those of a target, as far as a user permits them.
    ///
    /// # Errors
    /// [`Unsound`] where an equation is none.
    pub fn new(wanted: &[&str], of_target: &[Equation], numerics: Numerics) -> Result<Finder, Unsound> {
        let permitted = EQUATIONS.iter().chain(of_target).filter(|equation| equation.numerics <= numerics);
        let all: Vec<Rewrite> = permitted.map(Rewrite::of).collect::<Result<_, _>>()?;
        let heads = wanted.iter().map(|&name| Head::op(name).unwrap_or_else(|| Head::Named(name.into())));
        let wanted: Vec<Head> = heads.collect();
        let rewrites = leading_to(&wanted, all);
        let seeds = wanted.iter().flat_map(|op| seeds(op, &rewrites)).collect();
        Ok(Finder { rewrites, wanted, seeds })
    }

    /// The equations by which it finds them: of all that it knows those that lead to one of the ops.
    pub fn equations(&self) -> impl Iterator<Item = &Equation> {
        self.rewrites.iter().map(|rewrite| &rewrite.equation)
    }

    /// The ops in a graph, made of these nodes alone: in the order of their results, each result and op once.
    pub fn find(&self, graph: &Graph, nodes: &[NodeId]) -> Vec<Recognized> {
        let places: Places = nodes.iter().enumerate().map(|(at, &n)| (n, at)).collect();
        let mut all: Vec<Recognized> = Vec::new();
        for &seed in nodes.iter().filter(|&&n| graph.node(n).onnx().is_some_and(|op| self.seeds.contains(op))) {
            let region = region(graph, seed, &places);
            let reading = self.saturated(graph, &region);
            for found in self.recognized_in(&reading, &region, &places) {
                if !all.iter().any(|other| other.op == found.op && other.result == found.result) {
                    all.push(found);
                }
            }
        }
        let place = |found: &Recognized| places.get(&found.last(graph)).copied();
        all.sort_by_key(place);
        all
    }

    /// A region to which every equation has been applied until nothing is new, or it is large.
    pub fn saturated<'g>(&self, graph: &'g Graph, region: &[NodeId]) -> Region<'g> {
        self.brought_to_saturation(Region::of(graph, region))
    }

    /// Why a piece that was found is what it is, step by step; `None` if it was not found in this graph.
    pub fn explain(&self, graph: &Graph, found: &Recognized) -> Option<Explanation> {
        let places: Places = found.nodes.iter().enumerate().map(|(at, &n)| (n, at)).collect();
        // Of the piece alone, so that its operands have no terms but their names.
        let mut reading = self.brought_to_saturation(Region::explained(graph, &found.nodes));
        let spelled = reading.spelled(found.result)?;
        let same = |term: &&Term| recognized(&reading, found.result, term, &places).as_ref() == Some(found);
        let term = reading.terms[spelled].nodes.iter().find(same)?;
        let own = |(&class, arg): (&Id, &Arg)| match arg {
            Arg::Value(v) => reading.spelled(*v),
            Arg::Literal(_) => Some(class),
        };
        let args = term.args.iter().zip(&found.args).map(own).collect::<Option<_>>()?;
        let op = Term { head: term.head.clone(), args };
        let op = reading.terms.add_uncanonical(op);
        let mut proof = reading.terms.explain_id_equivalence(spelled, op);
        explanation(&reading.names(), proof.make_flat_explanation())
    }

    fn brought_to_saturation<'g>(&self, mut reading: Region<'g>) -> Region<'g> {
        let terms = &mut reading.terms;
        terms.rebuild();
        for _ in 0..ROUNDS {
            if terms.total_number_of_nodes() > TERMS || !self.round(terms) {
                break;
            }
        }
        reading
    }

    /// Applies every equation wherever it holds now; whether anything is new.
    fn round(&self, terms: &mut Terms) -> bool {
        let possible = |rewrite: &&Rewrite| rewrite.ops().all(|op| terms_have(terms, op));
        let found: Vec<_> =
            self.rewrites.iter().filter(possible).map(|rewrite| (rewrite, rewrite.found(terms))).collect();
        let mut new = false;
        for (rewrite, matches) in found {
            for (class, subst) in matches {
                new |= rewrite.apply(terms, class, &subst);
            }
        }
        terms.rebuild();
        new
    }

    /// The wanted ops of a region.
    fn recognized_in(&self, reading: &Region<'_>, region: &[NodeId], places: &Places) -> Vec<Recognized> {
        let mut all = Vec::new();
        for &n in region {
            let Some(result) = reading.graph.node(n).only_result() else { continue };
            let Some(class) = reading.class(result) else { continue };
            let terms = reading.terms[class].nodes.iter().filter(|term| self.wanted.contains(&term.head));
            all.extend(terms.filter_map(|term| recognized(reading, result, term, places)));
        }
        all
    }
}

/// What a term is as a piece of the file, if its operands are values of the file, and nobody else reads what is between. Where several
/// values of the file are one operand, such as `x` and `x / 1`, the first of them for which that is so.
fn recognized(reading: &Region<'_>, result: ValueId, term: &Term, places: &Places) -> Option<Recognized> {
    let ways = |&id: &Id| {
        let fact: &Known = &reading.terms[id].data;
        let literal = || fact.literal.as_ref()?.as_literal().map(Arg::Literal);
        let values = || fact.values.iter().map(|&v| Arg::Value(v)).collect();
        if fact.values.is_empty() { literal().into_iter().collect() } else { values() }
    };
    let args: Vec<Vec<Arg>> = term.args.iter().map(ways).collect();
    let count: usize = args.iter().map(Vec::len).product();
    let op = term.head.name()?;
    (0..count.min(WAYS)).find_map(|mut way| {
        let one = |of: &Vec<Arg>| {
            let arg = of[way % of.len()].clone();
            way /= of.len();
            arg
        };
        let args = args.iter().map(one).collect();
        let mut found = Recognized { op: op.to_owned(), result, args, nodes: Vec::new() };
        found.nodes = between(reading.graph, &found, places)?;
        Some(found)
    })
}

/// What regions around an op begin with: an op that equations of a target name begins with the op that their left sides end with.
fn seeds(op: &Head, rewrites: &[Rewrite]) -> Vec<&'static str> {
    let name = op.name().unwrap_or_default();
    if let Some((_, seeds)) = SEEDS.iter().find(|(of, _)| *of == name) {
        return seeds.to_vec();
    }
    let own = op.info().map(|op| op.name);
    let of_sides =
        rewrites.iter().filter(|rewrite| rewrite.makes() == Some(op)).filter_map(|rewrite| rewrite.starts()?.info());
    own.into_iter().chain(of_sides.map(|op| op.name)).collect()
}

/// The equations by which something may come to be one of these ops.
fn leading_to(wanted: &[Head], mut rest: Vec<Rewrite>) -> Vec<Rewrite> {
    let mut needed: BTreeSet<Head> = wanted.iter().cloned().collect();
    let mut leading = Vec::new();
    loop {
        let (more, others): (Vec<Rewrite>, Vec<Rewrite>) =
            rest.into_iter().partition(|rewrite| rewrite.makes().is_none_or(|op| needed.contains(op)));
        rest = others;
        if more.is_empty() {
            return leading;
        }
        needed.extend(more.iter().flat_map(Rewrite::ops).cloned());
        leading.extend(more);
    }
}

fn terms_have(terms: &Terms, op: &Head) -> bool {
    // Of an op that an equation names the number of arguments is not known here.
    let Some(info) = op.info() else { return true };
    terms.classes_for_op(&(op.clone(), info.takes.len())).is_some_and(|mut classes| classes.next().is_some())
}

/// The nodes around one, in topological order.
fn region(graph: &Graph, seed: NodeId, places: &Places) -> Vec<NodeId> {
    let mut seen: FxHashSet<NodeId> = std::iter::once(seed).collect();
    let mut queue: VecDeque<(NodeId, usize)> = std::iter::once((seed, 0)).collect();
    while let Some((n, distance)) = queue.pop_front() {
        if distance == REACH {
            continue;
        }
        let node = graph.node(n);
        let before = node.inputs.iter().flatten().map(|&v| graph.value(v).producer().0);
        let behind = node.outputs.iter().flatten().flat_map(|&v| graph.uses(v).into_iter().map(|u| u.node));
        for next in before.chain(behind) {
            if seen.len() < NODES
                && places.contains_key(&next)
                && graph.node(next).only_result().is_some()
                && seen.insert(next)
            {
                queue.push_back((next, distance + 1));
            }
        }
    }
    let mut region: Vec<NodeId> = seen.into_iter().collect();
    region.sort_by_key(|n| places.get(n).copied());
    region
}

/// The nodes from operands to a result, in topological order, constants aside; `None` if anyone else reads what is between, or it is
/// of other nodes than those that are looked at.
fn between(graph: &Graph, piece: &Recognized, places: &Places) -> Option<Vec<NodeId>> {
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut stack = vec![piece.last(graph)];
    while let Some(n) = stack.pop() {
        if !seen.insert(n) {
            continue;
        }
        let node = graph.node(n);
        // The shape that a view is told need not go with it.
        let count = if matches!(node.form, Form::View(_)) { 1 } else { node.inputs.len() };
        for &v in node.inputs.iter().take(count).flatten() {
            let (producer, _) = graph.value(v).producer();
            if !piece.values().any(|operand| operand == v) && graph.constant(v).is_none() {
                stack.push(producer);
            }
        }
    }
    let inside = |v: ValueId| !graph.is_output(v) && graph.uses(v).iter().all(|u| seen.contains(&u.node));
    let private = |n: &NodeId| graph.node(*n).outputs.iter().flatten().all(|&v| v == piece.result || inside(v));
    let known = seen.iter().all(|n| places.contains_key(n) && private(n));
    let mut nodes: Vec<NodeId> = seen.into_iter().collect();
    nodes.sort_by_key(|n| places.get(n).copied());
    known.then_some(nodes)
}
