//! The decision as one cost-function network: a variable per node that has a choice, a shared value per value that may be
//! stored in more than one layout.

use super::candidates::Candidates;
use super::plan::move_cost;
use crate::hints::Hints;
use crate::solve::{Limits, Problem, ProblemError, SharedValue, Solution, Use as SolverUse, Var, solve};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_target::{Cost, Target};
use serde::Serialize;

/// What the solver did, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SolveRecord {
    /// Nodes that had more than one choice.
    pub variables: usize,
    /// Layouts of values they chose among.
    pub candidates: usize,
    /// Values or nodes at the cap on candidates.
    pub capped: usize,
    /// Price of the assignment, and a lower bound on every assignment among the candidates, in nanoseconds of the cost table.
    pub cost_ns: u64,
    /// The bound.
    pub bound_ns: u64,
    /// Cost and bound agree.
    pub optimal: bool,
    /// How each part was solved, with how many parts.
    pub methods: std::collections::BTreeMap<String, usize>,
}

/// Solves the decision: the number of the choice taken, by node number.
pub(super) fn decide(
    graph: &Graph,
    candidates: &Candidates,
    target: &dyn Target,
    hints: &Hints,
    limits: &Limits,
) -> Result<(Vec<usize>, SolveRecord), ProblemError> {
    let mut chosen = vec![0; candidates.choices.len()];
    let mut record = SolveRecord {
        candidates: candidates.count(),
        capped: candidates.capped,
        optimal: true,
        ..SolveRecord::default()
    };
    if candidates.is_trivial() {
        return Ok((chosen, record));
    }
    let mut network =
        Network { problem: Problem::new(), vars: vec![None; candidates.choices.len()], graph, candidates };
    for n in graph.order().unwrap_or_default() {
        network.add_node(n)?;
    }
    for v in graph.values() {
        network.add_value(v, target, hints)?;
    }
    let solution = solve(&network.problem, limits);
    for (slot, var) in chosen.iter_mut().zip(&network.vars) {
        if let Some(var) = var {
            *slot = solution.assignment.get(var.index()).copied().unwrap_or(0) as usize;
        }
    }
    record.variables = network.vars.iter().flatten().count();
    fill(&mut record, &solution);
    Ok((chosen, record))
}

fn fill(record: &mut SolveRecord, solution: &Solution) {
    record.cost_ns = solution.cost.get();
    record.bound_ns = solution.bound.get();
    record.optimal = solution.optimal;
    for method in &solution.methods {
        *record.methods.entry(format!("{method:?}").to_lowercase()).or_default() += 1;
    }
}

struct Network<'a> {
    problem: Problem,
    vars: Vec<Option<Var>>,
    graph: &'a Graph,
    candidates: &'a Candidates,
}

impl Network<'_> {
    fn add_node(&mut self, n: NodeId) -> Result<(), ProblemError> {
        let Some(choices) = self.candidates.choices.get(n.index()) else { return Ok(()) };
        if choices.len() < 2 {
            return Ok(());
        }
        let costs: Vec<Cost> = choices.iter().map(|c| c.cost).collect();
        self.vars[n.index()] = Some(self.problem.add_variable(self.graph.node(n).describe(self.graph), costs)?);
        Ok(())
    }

    /// One shared value: its producer's choices say what is there, its readers' what is wanted.
    fn add_value(&mut self, v: ValueId, target: &dyn Target, hints: &Hints) -> Result<(), ProblemError> {
        let layouts = &self.candidates.layouts[v.index()];
        if layouts.len() < 2 || self.candidates.constant[v.index()] {
            return Ok(());
        }
        let (producer, slot) = self.graph.value(v).producer();
        let name = &self.graph.value(v).name;
        let mut uses: Vec<SolverUse> = Vec::new();
        let readers = self.graph.uses(v);
        if self.graph.is_output(v) {
            uses.push(self.pinned(name)?);
        }
        for u in readers {
            uses.push(match self.vars[u.node.index()] {
                Some(var) => SolverUse { var, wants: self.of_choices(v, u.node, |c| c.ins.get(u.slot)) },
                None => self.pinned(name)?,
            });
        }
        let (producer, produces) = if let Some(var) = self.vars[producer.index()] {
            (var, self.of_choices(v, producer, |c| c.outs.get(slot)))
        } else {
            // A node with one choice leaves what that choice says, row-major unless it is a view.
            let only = self.candidates.choices.get(producer.index()).and_then(|c| c.first());
            let left = only.and_then(|c| c.outs.get(slot)).and_then(|l| self.candidates.find(v, l));
            (self.pinned(name)?.var, vec![Some(left.unwrap_or(0) as u32)])
        };
        let moves = layouts
            .iter()
            .flat_map(|from| layouts.iter().map(move |to| (from, to)))
            .map(|(from, to)| move_cost(self.graph, v, from, to, target, hints))
            .collect();
        self.problem.add_value(SharedValue {
            name: name.clone(),
            producer,
            produces: produces.into_iter().map(|p| p.unwrap_or(0)).collect(),
            uses,
            layouts: layouts.len(),
            moves,
        })
    }

    /// A use that wants row-major whatever happens.
    fn pinned(&mut self, name: &str) -> Result<SolverUse, ProblemError> {
        let var = self.problem.add_variable(format!("{name} (pinned)"), vec![Cost::ZERO])?;
        Ok(SolverUse { var, wants: vec![Some(0)] })
    }

    fn of_choices(
        &self,
        v: ValueId,
        n: NodeId,
        layout: impl Fn(&super::candidates::Choice) -> Option<&relayout_ir::layout::Layout>,
    ) -> Vec<Option<u32>> {
        let choices = &self.candidates.choices[n.index()];
        choices
            .iter()
            .map(|c| layout(c).and_then(|l| self.candidates.find(v, l)).or(Some(0)).map(|i| i as u32))
            .collect()
    }
}
