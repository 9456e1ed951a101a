//! A decision with everything that led to it, for those who ask about it: what the input costs under the same prices, which
//! moves stay, what it would take for each of them to go.

use super::candidates::{Candidates, Choice, ScopeCandidates};
use super::loaded;
use super::plan::{Chosen, Plan, is_transpose, move_cost, move_kind};
use super::problem::{Posed, SolveRecord};
use super::regions;
use super::scopes::Scopes;
use crate::reasons::why_made;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_solve::certificate::{Certificate, certify};
use relayout_solve::{Limits, Problem, ProblemError, SharedValue, Solution, Var, solve};
use relayout_target_api::Lifted;
use relayout_target_api::Numerics;
use relayout_target_api::hints::Hints;
use relayout_target_api::{Cost, MoveKind, Settings, Target, Trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The decision for a whole model, whose forms are bound.
pub struct Decision<'a, 'g> {
    pub(super) scopes: &'a Scopes<'g>,
    pub(super) target: &'a dyn Target,
    pub(super) hints: &'a Hints,
    limits: &'a Limits,
    pub(super) posed: Posed,
    record: SolveRecord,
    pub(super) plan: Plan,
    /// What the input itself chose: choice 0, unless it is of a dialect.
    as_read: Chosen,
    /// What the reorders of a dialect read and leave. They run even where both sides are the same bytes.
    reordered: BTreeSet<ValueId>,
}

/// A move that a decision leaves, or that the input has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The graph, as [`Scopes`] numbers them.
    pub scope: usize,
    /// The value that has both layouts. Of a Transpose that moves it is the result.
    pub value: ValueId,
    /// The layout that is there.
    pub from: Layout,
    /// The layout that is wanted.
    pub to: Layout,
    /// What it costs, for each run of the model.
    pub cost: Cost,
    /// Bytes that it writes, for each run of the model.
    pub bytes: u64,
}

impl Standing {
    /// What it costs in nanoseconds, if the target has a price for it.
    #[must_use]
    pub fn price_ns(&self) -> Option<u64> {
        Some(self.cost).filter(|cost| cost.is_finite()).map(Cost::get)
    }
}

/// A way to be rid of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Way {
    /// What would have to be.
    pub what: String,
    /// Why it can't be: the form that is missing, and of which node. `None` if it can be.
    pub missing: Option<String>,
    /// What it costs beyond what was decided, all other nodes decided anew for it; of a way that can't be, what it would cost
    /// if moving this value cost nothing. Negative: it would be cheaper.
    pub more_ns: Option<i64>,
    /// Bytes moved beyond those of what was decided.
    pub more_bytes: Option<i64>,
}

/// What is decided on.
#[derive(Clone, Copy)]
pub struct Grounds<'a> {
    /// The target.
    pub target: &'a dyn Target,
    /// The sizes at which it is priced.
    pub hints: &'a Hints,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// By how many percent the cost of a region must fall at least for it to be kept; 0 is any gain.
    pub least_gain: u64,
}

/// A move of a plan with its price and the ways to be rid of it.
#[derive(Clone, Debug)]
pub struct PricedMove {
    /// The move.
    pub standing: Standing,
    /// The ways.
    pub ways: Vec<Way>,
}

impl<'a> Grounds<'a> {
    /// Those of a run of the pipeline.
    pub fn of(settings: &'a Settings<'a>) -> Grounds<'a> {
        let Settings { target, hints, numerics, least_gain, .. } = settings;
        Grounds { target: *target, hints, numerics: *numerics, least_gain: *least_gain }
    }
}

impl<'a, 'g> Decision<'a, 'g> {
    /// Decides.
    ///
    /// # Errors
    /// [`ProblemError`] for graphs beyond the solver's number range.
    pub fn of(
        scopes: &'a Scopes<'g>,
        grounds: Grounds<'a>,
        limits: &'a Limits,
    ) -> Result<Decision<'a, 'g>, ProblemError> {
        let Grounds { target, hints, numerics, least_gain } = grounds;
        let candidates = Candidates::close(scopes, target, hints, numerics);
        let posed = if candidates.is_trivial() {
            Posed::nothing(&candidates)
        } else {
            Posed::of(scopes, &candidates, target, hints)?
        };
        let solution = solve(&posed.problem, limits);
        let record = posed.record(&candidates, &solution);
        let loaded = loaded::chosen(scopes, &candidates, target);
        let as_read = loaded.clone().unwrap_or_else(|| candidates.untaken());
        let mut plan = Plan::new(scopes, candidates, posed.chosen(&solution.assignment)).over(loaded);
        regions::keep_what_gains(scopes, &mut plan, target, hints, least_gain);
        Ok(Decision { scopes, target, hints, limits, posed, record, plan, as_read, reordered: BTreeSet::new() })
    }

    /// What it comes to, for a pass that tried it on a copy.
    pub(crate) fn trial(&self) -> Trial {
        Trial { cost: self.whole_cost() }
    }

    /// A graph of the model, the main one first.
    #[must_use]
    pub fn graph(&self, s: usize) -> Option<&'g Graph> {
        self.scopes.list.get(s).map(|scope| scope.graph)
    }

    /// The sizes at which it is priced.
    #[must_use]
    pub fn hints(&self) -> &Hints {
        self.hints
    }

    /// Takes what a file of the blocked dialect decided itself for the input: in the main graph every node runs on blocks where
    /// the file has it so. Gives the nodes for which no choice is like that.
    pub fn follow(&mut self, lifted: &Lifted) -> Vec<String> {
        let graph = self.scopes.graph(0);
        let mut unlike = Vec::new();
        let ends = |&n: &NodeId| graph.node(n).inputs.iter().chain(&graph.node(n).outputs).copied().flatten();
        self.reordered = lifted.reorders.iter().flat_map(ends).collect();
        for n in graph.order().unwrap_or_default() {
            let (node, own) = (graph.node(n), self.own(0));
            let Some(choices) = own.choices.get(n.index()).filter(|c| !c.is_empty()) else { continue };
            let lies = |values: &[Option<ValueId>]| values.iter().flatten().any(|v| lifted.blocked.contains(v));
            let (read, left) = (lies(&node.inputs), lies(&node.outputs));
            // What blocks begin or end at moves, as what the input has it.
            let begins = read != left && (lifted.reorders.contains(&n) || is_transpose(node));
            if begins || !read && !left {
                continue;
            }
            let alike = |v: &Option<ValueId>, layout: &Layout| {
                let Some(v) = v.filter(|v| !own.constant[v.index()] && !own.layouts[v.index()].is_empty()) else {
                    return true;
                };
                if lifted.blocked.contains(&v) { layout.as_permutation().is_none() } else { layout.is_row_major() }
            };
            let fits = |c: &Choice| {
                c.reads()
                    && node.inputs.iter().zip(&c.ins).all(|(v, l)| alike(v, l))
                    && node.outputs.iter().zip(&c.outs).all(|(v, l)| alike(v, l))
            };
            let cheapest = choices.iter().enumerate().filter(|(_, c)| fits(c)).min_by_key(|(_, c)| c.cost);
            match cheapest.map(|(at, _)| at) {
                Some(at) => {
                    if let Some(chosen) = self.as_read.nodes.first_mut().and_then(|nodes| nodes.get_mut(n.index())) {
                        *chosen = at;
                    }
                }
                None => unlike.push(node.describe(graph)),
            }
        }
        unlike
    }

    /// What is carried out.
    #[must_use]
    pub fn into_plan(self) -> (Plan, SolveRecord) {
        (self.plan, self.record)
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The cost-function network that was solved.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.posed.problem
    }

    /// How it was solved.
    #[must_use]
    pub fn record(&self) -> &SolveRecord {
        &self.record
    }

    /// The solution with all that is needed to check it.
    #[must_use]
    pub fn certify(&self) -> (Solution, Certificate) {
        certify(&self.posed.problem, self.limits)
    }

    /// What the plan costs in the network; more than the solution where a part of it was given back.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.posed.problem.cost(&self.posed.assignment(self.plan.chosen()))
    }

    /// What the plan costs together with the nodes that are not in the network, because they have no choice.
    #[must_use]
    pub fn whole_cost(&self) -> Cost {
        let mut cost = self.cost();
        for (s, scope) in self.scopes.list.iter().enumerate() {
            let posed = self.posed.nodes.get(s).map_or(&[][..], Vec::as_slice);
            let settled = self.own(s).choices.iter().zip(posed).filter(|(_, var)| var.is_none());
            cost += settled.filter_map(|(choices, _)| choices.first()).map(|only| only.cost.times(scope.weight)).sum();
        }
        cost
    }

    /// What the input itself costs in the network. A Transpose of the file moves even where a Reshape would do.
    #[must_use]
    pub fn cost_as_read(&self) -> Cost {
        let origin = self.posed.assignment(&self.as_read);
        let moved: Vec<Standing> = self.moves_of(&self.origin(), &self.reordered);
        let priced = |m: &Standing| moved.iter().any(|p| (p.scope, p.value) == (m.scope, m.value));
        // What the network takes for a view of equal bytes is a move in the file.
        let hidden = self.moves_as_read().into_iter().filter(|m| !priced(m) && self.is_posed(m)).map(|m| m.cost).sum();
        self.posed.problem.cost(&origin) + hidden
    }

    fn is_posed(&self, m: &Standing) -> bool {
        self.posed.values.contains_key(&(m.scope, m.value))
    }

    fn origin(&self) -> Plan {
        let mut origin = self.plan.clone();
        origin.choose(self.as_read.clone());
        origin
    }

    /// The Transposes of the input that something reads, of constants not counted, and the reorders of a file that was followed.
    #[must_use]
    pub fn moves_as_read(&self) -> Vec<Standing> {
        let reorders = |m: &Standing| {
            let graph = self.scopes.graph(m.scope);
            !is_transpose(graph.node(graph.value(m.value).producer().0))
        };
        let moved = self.moves_of(&self.origin(), &self.reordered);
        let mut moves: Vec<Standing> = moved.into_iter().filter(reorders).collect();
        for s in 0..self.scopes.list.len() {
            let graph = self.scopes.graph(s);
            for n in graph.order().unwrap_or_default() {
                let node = graph.node(n);
                let Some(y) = node.result(0).filter(|_| is_transpose(node)) else { continue };
                let read = graph.use_count(y) > 0 || graph.is_output(y);
                let from = self.plan.origin_choice(s, n).and_then(|c| c.outs.first().cloned());
                let Some(from) = from.filter(|_| read && !self.plan.is_constant(s, y)) else { continue };
                let price = regions::own_move(self.scopes, s, n, self.target, self.hints);
                let price = price.times(self.scopes.list[s].weight);
                let to = Layout::row_major(from.rank());
                moves.push(Standing { scope: s, value: y, from, to, cost: price.cost, bytes: price.bytes });
            }
        }
        moves
    }

    /// The moves that the plan leaves.
    #[must_use]
    pub fn moves(&self) -> Vec<Standing> {
        self.moves_of(&self.plan, &BTreeSet::new())
    }

    /// Moves of a plan; views of the same bytes only where they are of these values of the main graph.
    fn moves_of(&self, plan: &Plan, views: &BTreeSet<ValueId>) -> Vec<Standing> {
        let mut moves = Vec::new();
        for s in 0..self.scopes.list.len() {
            let graph = self.scopes.graph(s);
            for value in graph.values().filter(|&v| !plan.is_constant(s, v)) {
                let taken = plan.taken(self.scopes, s, value);
                let Some(produced) = taken.produced else { continue };
                let first = taken.moved_by_producer.map(|left| (left, produced.clone()));
                let copies = taken.copies.into_iter().map(|w| (produced.clone(), w.layout));
                for (from, to) in first.into_iter().chain(copies) {
                    let is_view = || move_kind(graph, value, &from, &to) == MoveKind::View;
                    let runs = s == 0 && views.contains(&value);
                    if from == to || !runs && is_view() {
                        continue;
                    }
                    let weight = self.scopes.list[s].weight;
                    let cost = move_cost(graph, value, &from, &to, self.target, self.hints).times(weight);
                    let bytes = self.hints.bytes(graph, value).saturating_mul(weight);
                    moves.push(Standing { scope: s, value, from, to, cost, bytes });
                }
            }
        }
        moves
    }

    /// Whether moves of a value are made at compile time.
    #[must_use]
    pub fn is_constant(&self, s: usize, v: ValueId) -> bool {
        self.own(s).constant.get(v.index()).copied().unwrap_or(false)
    }

    pub(super) fn candidates(&self) -> &Candidates {
        self.plan.candidates()
    }

    pub(super) fn own(&self, s: usize) -> &ScopeCandidates {
        &self.candidates().scopes[s]
    }

    /// The dearest moves that the plan leaves, with the ways to be rid of them.
    #[must_use]
    pub fn priced_moves(&self, most: usize) -> Vec<PricedMove> {
        if most == 0 {
            return Vec::new();
        }
        let mut moves = self.moves();
        moves.sort_by_key(|m| std::cmp::Reverse((m.cost, m.bytes)));
        moves.truncate(most);
        moves.into_iter().map(|standing| PricedMove { ways: self.ways(&standing), standing }).collect()
    }

    /// The ways to be rid of a move of the plan, in its place: one for each side of it.
    #[must_use]
    pub fn ways(&self, m: &Standing) -> Vec<Way> {
        let Some((number, value)) = self.shared(m.scope, m.value) else { return Vec::new() };
        let own = self.own(m.scope);
        let (Some(from), Some(to)) = (own.find(m.value, &m.from), own.find(m.value, &m.to)) else { return Vec::new() };
        let base = self.posed.assignment(self.plan.chosen());
        let mut scratch = self.plan.clone();
        let bytes: u64 = total_bytes(&self.moves());
        let mut ways = Vec::new();
        ways.push(self.other_side(m, value, to));
        let mut problem = self.posed.problem.clone();
        let (mut who, mut lacking) = (Vec::new(), Vec::new());
        for (read, name) in value.uses.iter().zip(self.readers(m.scope, m.value)) {
            let wants = |state: usize| read.wants.get(state).copied().flatten() == Some(to as u32);
            if !base.get(read.var.index()).is_some_and(|&state| wants(state as usize)) {
                continue;
            }
            if self.none(read.var, &|state| !wants(state)) {
                lacking.push(name.clone());
            }
            who.push(name);
            problem = problem.without(read.var, wants);
        }
        let missing = (!lacking.is_empty()).then(|| format!("no form of {} reads {}", some(&lacking), m.from));
        ways.push((format!("{} reads {}", some(&who), m.from), missing, problem));
        let mut answer = |(what, missing, problem): (String, Option<String>, Problem)| {
            let problem = match missing {
                Some(_) => self.posed.problem.clone().with_free_move(number, from, to),
                None => problem,
            };
            let (more_ns, more_bytes) =
                self.price(&problem, &base, bytes, &mut scratch, missing.is_some().then_some(m));
            let missing =
                missing.or_else(|| more_ns.is_none().then(|| "the nodes around have no forms that fit it".to_owned()));
            Way { what, missing, more_ns, more_bytes }
        };
        ways.into_iter().map(&mut answer).collect()
    }

    /// The way out by way of the producer: what, why not, and the problem in which it is so. Views before the value are looked
    /// through, since a move before them is the same move.
    fn other_side(&self, m: &Standing, value: &SharedValue, to: usize) -> (String, Option<String>, Problem) {
        let graph = self.scopes.graph(m.scope);
        let makes = |state: usize| value.produces.get(state) == Some(&(to as u32));
        let mut problem = self.posed.problem.clone().without(value.producer, |state| !makes(state));
        let mut can = !self.none(value.producer, &makes);
        let (mut v, mut layout) = (m.value, m.to.clone());
        while let Some((x, before)) = before_view(graph, v, &layout) {
            (v, layout) = (x, before);
            match (self.shared(m.scope, v), self.own(m.scope).find(v, &layout)) {
                (Some((_, value)), Some(to)) => {
                    let makes = |state: usize| value.produces.get(state) == Some(&(to as u32));
                    can &= !self.none(value.producer, &makes);
                    problem = problem.without(value.producer, |state| !makes(state));
                }
                _ => can = false,
            }
        }
        let (maker, slot) = graph.value(v).producer();
        let name = graph.node(maker).describe(graph);
        let missing = (!can).then(|| match graph.node(maker).op {
            Op::Onnx(_) => format!("no form of {name} leaves {layout}"),
            _ => why_made(graph, maker, slot),
        });
        (format!("{name} leaves {layout}"), missing, problem)
    }

    /// What the best solution of `problem` costs and moves beyond the plan. `free`: a move that is not counted.
    pub(super) fn price(
        &self,
        problem: &Problem,
        base: &[u32],
        bytes: u64,
        scratch: &mut Plan,
        free: Option<&Standing>,
    ) -> (Option<i64>, Option<i64>) {
        let solution = solve(problem, self.limits);
        if !solution.cost.is_finite() {
            return (None, None);
        }
        let more = difference(solution.cost.get(), self.posed.problem.cost(base).get());
        scratch.choose(self.posed.chosen(&solution.assignment));
        let mut moves = self.moves_of(scratch, &BTreeSet::new());
        if let Some(m) = free {
            moves.retain(|other| (other.scope, other.value, &other.to) != (m.scope, m.value, &m.to));
        }
        (Some(more), Some(difference(total_bytes(&moves), bytes)))
    }

    /// The shared value of a value of a graph, by its number.
    pub(super) fn shared(&self, s: usize, v: ValueId) -> Option<(usize, &SharedValue)> {
        let number = *self.posed.values.get(&(s, v))?;
        Some((number, self.posed.problem.values().get(number)?))
    }

    /// Whether no state of `var` that can be paid will do.
    pub(super) fn none(&self, var: Var, will_do: &dyn Fn(usize) -> bool) -> bool {
        let costs = self.posed.problem.costs(var);
        !costs.iter().enumerate().any(|(state, cost)| cost.is_finite() && will_do(state))
    }

    /// Who reads a value, in the order of the uses of its shared value.
    pub(super) fn readers(&self, s: usize, v: ValueId) -> Vec<String> {
        let graph = self.scopes.graph(s);
        let outputs = graph.outputs().iter().filter(|&&o| o == v);
        let outputs = outputs.map(|_| format!("graph output `{}`", graph.value(v).name));
        let own = graph.uses(v);
        let own = own.iter().map(|u: &Use| graph.node(u.node).describe(graph));
        outputs.chain(own).chain(self.own(s).pieces.readers(v).map(|(_, _, piece)| piece.describe())).collect()
    }

    pub(super) fn is_op(&self, s: usize, n: NodeId) -> bool {
        matches!(self.scopes.graph(s).node(n).op, Op::Onnx(_))
    }
}

impl Posed {
    /// The assignment of the network that stands for what was chosen.
    pub(super) fn assignment(&self, chosen: &Chosen) -> Vec<u32> {
        let mut assignment = vec![0; self.problem.variables()];
        let nodes = self.nodes.iter().zip(&chosen.nodes).flat_map(|(vars, chosen)| vars.iter().zip(chosen));
        for (var, &state) in nodes.chain(self.borders.iter().zip(&chosen.borders)) {
            if let Some(place) = var.and_then(|var| assignment.get_mut(var.index())) {
                *place = state as u32;
            }
        }
        assignment
    }
}

pub(super) fn total_bytes(moves: &[Standing]) -> u64 {
    moves.iter().fold(0, |sum, m| sum.saturating_add(m.bytes))
}

fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(if a > b { i64::MAX } else { i64::MIN })
}

/// A few names and how many more there are.
pub(super) fn some(names: &[String]) -> String {
    match names {
        [] => "nobody".to_owned(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [first, ..] => format!("{first} and {} more", names.len() - 1),
    }
}

/// The network that a decision solves, posed and not solved.
///
/// # Errors
/// As of [`Decision::of`].
pub fn problem(
    scopes: &Scopes<'_>,
    target: &dyn Target,
    hints: &Hints,
    numerics: Numerics,
) -> Result<Problem, ProblemError> {
    let candidates = Candidates::close(scopes, target, hints, numerics);
    if candidates.is_trivial() {
        return Ok(Problem::new());
    }
    Ok(Posed::of(scopes, &candidates, target, hints)?.problem)
}

/// The operand of the view that makes `v`, and the layout of it that is `layout` of `v`.
fn before_view(graph: &Graph, v: ValueId, layout: &Layout) -> Option<(ValueId, Layout)> {
    let node = graph.node(graph.value(v).producer().0);
    let (Form::View(view), Op::Onnx(_)) = (&node.form, &node.op) else { return None };
    let x = node.operand(0)?;
    let before = view.backward(layout, graph.value(x).ty.shape()?, graph.value(v).ty.shape()?).ok()?;
    Some((x, before))
}
