//! The decision as one cost-function network: a variable per node that has a choice, a shared value per value that may be
//! stored in more than one layout.

use super::candidates::{Candidates, Choice};
use super::pieces::Runs;
use super::plan::{Chosen, is_pair, move_cost};
use super::scopes::{Crossing, Scopes};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::StorageRule;
use relayout_ir::types::Type;
use relayout_solve::{Problem, ProblemError, SharedValue, Solution, Use as SolverUse, Var};
use relayout_target_api::hints::Hints;
use relayout_target_api::{Cost, Target};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// What the solver did, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// Choices of these nodes, and layouts in which borders may be crossed.
    pub choices: usize,
    /// Variables that another one stands for.
    pub merged: usize,
    /// Variables settled before any solver, those of pinned ends included.
    pub pinned: usize,
    /// Variables left for the solvers.
    pub variables_left: usize,
    /// States that these have left.
    pub states_left: usize,
    /// How each part was solved, with how many parts.
    pub methods: BTreeMap<String, usize>,
}

/// The decision, posed: the network, and which of its parts is what.
pub(super) struct Posed {
    pub(super) problem: Problem,
    /// By scope and node number: the variable of a node with more than one choice.
    pub(super) nodes: Vec<Vec<Option<Var>>>,
    pub(super) borders: Vec<Option<Var>>,
    /// The number of each value that may be stored in more than one layout, in order of addition.
    pub(super) values: BTreeMap<(usize, ValueId), usize>,
}

impl Posed {
    /// A decision without anything to decide.
    pub(super) fn nothing(candidates: &Candidates) -> Posed {
        Posed {
            problem: Problem::new(),
            nodes: candidates.scopes.iter().map(|s| vec![None; s.choices.len()]).collect(),
            borders: vec![None; candidates.borders.len()],
            values: BTreeMap::new(),
        }
    }

    /// Poses the decision.
    pub(super) fn of(
        scopes: &Scopes<'_>,
        candidates: &Candidates,
        target: &dyn Target,
        hints: &Hints,
    ) -> Result<Posed, ProblemError> {
        let mut network = Network::new(scopes, candidates, target, hints);
        network.add_borders()?;
        for s in 0..scopes.list.len() {
            for n in scopes.graph(s).order().unwrap_or_default() {
                network.add_node(s, n)?;
            }
            for v in scopes.graph(s).values() {
                network.add_value(s, v)?;
            }
        }
        Ok(network.posed)
    }

    /// What an assignment of the network chooses.
    pub(super) fn chosen(&self, assignment: &[u32]) -> Chosen {
        let taken = |var: &Option<Var>| var.and_then(|v| assignment.get(v.index()).copied()).unwrap_or(0) as usize;
        Chosen {
            nodes: self.nodes.iter().map(|vars| vars.iter().map(taken).collect()).collect(),
            borders: self.borders.iter().map(taken).collect(),
        }
    }

    /// The variables of nodes and borders, those of pinned ends left out.
    fn deciding(&self) -> impl Iterator<Item = Var> + '_ {
        self.nodes.iter().flatten().chain(&self.borders).flatten().copied()
    }

    /// What is reported of a solution.
    pub(super) fn record(&self, candidates: &Candidates, solution: &Solution) -> SolveRecord {
        let mut record = SolveRecord {
            candidates: candidates.count(),
            capped: candidates.capped,
            variables: self.deciding().count(),
            choices: self.deciding().map(|var| self.problem.states(var)).sum(),
            ..SolveRecord::default()
        };
        fill(&mut record, solution);
        record
    }
}

fn fill(record: &mut SolveRecord, solution: &Solution) {
    record.cost_ns = solution.cost.get();
    record.bound_ns = solution.bound.get();
    record.optimal = solution.optimal;
    let stats = &solution.stats;
    (record.merged, record.pinned) = (stats.merged, stats.pinned);
    (record.variables_left, record.states_left) = (stats.variables_left, stats.states_left);
    for method in &solution.methods {
        *record.methods.entry(format!("{method:?}").to_lowercase()).or_default() += 1;
    }
}

/// Candidate layouts of a value.
type Layouts = SmallVec<[Layout; 2]>;

struct Network<'a, 'g> {
    posed: Posed,
    /// Costs of moves by what they depend on. Networks repeat themselves: most values have the type and the layouts of others.
    moves: FxHashMap<(Type, StorageRule, bool, Layouts), Vec<Cost>>,
    scopes: &'a Scopes<'g>,
    candidates: &'a Candidates,
    target: &'a dyn Target,
    hints: &'a Hints,
}

impl<'a, 'g> Network<'a, 'g> {
    fn new(scopes: &'a Scopes<'g>, candidates: &'a Candidates, target: &'a dyn Target, hints: &'a Hints) -> Self {
        let posed = Posed { borders: Vec::new(), ..Posed::nothing(candidates) };
        Network { posed, moves: FxHashMap::default(), scopes, candidates, target, hints }
    }

    fn add_borders(&mut self) -> Result<(), ProblemError> {
        for (b, layouts) in self.candidates.borders.iter().enumerate() {
            let var = match layouts.len() {
                0 | 1 => None,
                n => Some(self.posed.problem.add_variable(format!("border {b}"), vec![Cost::ZERO; n])?),
            };
            self.posed.borders.push(var);
        }
        Ok(())
    }

    fn add_node(&mut self, s: usize, n: NodeId) -> Result<(), ProblemError> {
        let Some(choices) = self.candidates.scopes[s].choices.get(n.index()).filter(|c| c.len() > 1) else {
            return Ok(());
        };
        let weight = self.scopes.list[s].weight;
        let costs: Vec<Cost> = choices.iter().map(|c| c.cost.times(weight)).collect();
        let graph = self.scopes.graph(s);
        self.posed.nodes[s][n.index()] = Some(self.posed.problem.add_variable(graph.node(n).describe(graph), costs)?);
        Ok(())
    }

    /// One shared value: its producer's choices say what is there, its readers' what is wanted.
    fn add_value(&mut self, s: usize, v: ValueId) -> Result<(), ProblemError> {
        let own = &self.candidates.scopes[s];
        let layouts = &own.layouts[v.index()];
        let graph = self.scopes.graph(s);
        let may_rest = own.pieces.may_rest(graph.value(v).producer().0);
        if layouts.len() + usize::from(may_rest) < 2 || layouts.is_empty() || own.constant[v.index()] {
            return Ok(());
        }
        let name = &graph.value(v).name;
        let mut uses: Vec<SolverUse> = Vec::new();
        for &k in graph.output_places(v) {
            uses.push(match self.scopes.output(s, k) {
                Some(crossing) => self.crossing(s, v, crossing)?,
                None => self.pinned(name, 0)?,
            });
        }
        for u in graph.uses(v) {
            uses.push(match (self.scopes.wanted(s, u), self.posed.nodes[s][u.node.index()]) {
                (Some(crossing), _) => self.crossing(s, v, crossing)?,
                (None, Some(var)) => SolverUse { var, wants: self.read(s, v, (u.node, u.slot)) },
                (None, None) => self.pinned(name, 0)?,
            });
        }
        uses.extend(
            own.pieces.readers(v).filter_map(|(piece, slot, of)| self.of_piece(s, v, piece, (of.last(), slot))),
        );
        let (producer, slot) = graph.value(v).producer();
        let made = match (self.scopes.produced(s, v), self.posed.nodes[s].get(producer.index()).copied().flatten()) {
            (Some(crossing), _) => self.crossing(s, v, crossing)?,
            (None, Some(var)) => SolverUse { var, wants: self.left(s, v, (producer, slot)) },
            (None, None) => {
                // A node with one choice leaves what that choice says, row-major unless it is a view.
                let only = own.choices.get(producer.index()).and_then(|c| c.first());
                let left = only.and_then(|c| c.outs.get(slot)).and_then(|l| own.find(v, l));
                self.pinned(name, left.unwrap_or(0))?
            }
        };
        let weight = self.scopes.list[s].weight;
        let mut moves: Vec<Cost> = self.moves(graph, v, layouts).iter().map(|cost| cost.times(weight)).collect();
        if may_rest {
            moves = with_nothing(&moves, layouts.len());
        }
        let number = self.posed.values.len();
        self.posed.values.insert((s, v), number);
        self.posed.problem.add_value(SharedValue {
            name: name.clone(),
            producer: made.var,
            produces: made.wants.into_iter().map(|p| p.unwrap_or(0)).collect(),
            uses,
            layouts: layouts.len() + usize::from(may_rest),
            moves,
        })
    }

    /// Costs of the moves of a value between all of its layouts, each row those from one.
    fn moves(&mut self, graph: &Graph, v: ValueId, layouts: &Layouts) -> &[Cost] {
        let (target, hints) = (self.target, self.hints);
        let key = (graph.value(v).ty.clone(), graph.storage, is_pair(graph, v, target), layouts.clone());
        self.moves.entry(key).or_insert_with(|| {
            let pairs = layouts.iter().flat_map(|from| layouts.iter().map(move |to| (from, to)));
            pairs.map(|(from, to)| move_cost(graph, v, from, to, target, hints)).collect()
        })
    }

    /// A use that wants one layout whatever happens.
    fn pinned(&mut self, name: &str, layout: usize) -> Result<SolverUse, ProblemError> {
        let var = self.posed.problem.add_variable(format!("{name} (pinned)"), vec![Cost::ZERO])?;
        Ok(SolverUse { var, wants: vec![Some(layout as u32)] })
    }

    /// What a border wants of a value, or leaves of it.
    fn crossing(&mut self, s: usize, v: ValueId, crossing: Crossing) -> Result<SolverUse, ProblemError> {
        let own = &self.candidates.scopes[s];
        let here = |l: &Layout| crossing.here(l).and_then(|h| own.find(v, &h)).or(Some(0)).map(|i| i as u32);
        let wants: Vec<Option<u32>> = self.candidates.borders[crossing.border].iter().map(here).collect();
        match self.posed.borders[crossing.border] {
            Some(var) => Ok(SolverUse { var, wants }),
            None => self.pinned("border", wants.first().copied().flatten().unwrap_or(0) as usize),
        }
    }

    /// What each choice of a node wants of a value in a slot.
    fn read(&self, s: usize, v: ValueId, (n, slot): (NodeId, usize)) -> Vec<Option<u32>> {
        let own = &self.candidates.scopes[s];
        let wants = |c: &Choice| c.reads().then(|| own.number(v, c.ins.get(slot)));
        own.choices[n.index()].iter().map(wants).collect()
    }

    /// What each choice of a node leaves of a value; where it leaves none, the number after those of its layouts.
    fn left(&self, s: usize, v: ValueId, (n, slot): (NodeId, usize)) -> Vec<Option<u32>> {
        let own = &self.candidates.scopes[s];
        let nothing = own.layouts[v.index()].len() as u32;
        let leaves = |c: &Choice| Some(if c.runs == Runs::Not { nothing } else { own.number(v, c.outs.get(slot)) });
        own.choices[n.index()].iter().map(leaves).collect()
    }

    /// What the raised op of a piece wants in a slot, where the last node of the piece runs as that.
    fn of_piece(&self, s: usize, v: ValueId, piece: usize, (last, slot): (NodeId, usize)) -> Option<SolverUse> {
        let var = self.posed.nodes[s].get(last.index()).copied().flatten()?;
        let own = &self.candidates.scopes[s];
        let wants = |c: &Choice| (c.runs == Runs::As(piece)).then(|| own.number(v, c.ins.get(slot)));
        Some(SolverUse { var, wants: own.choices[last.index()].iter().map(wants).collect() })
    }
}

/// Moves between layouts, and out of one more that stands for what is not there.
fn with_nothing(moves: &[Cost], layouts: usize) -> Vec<Cost> {
    let rows = moves.chunks(layouts).flat_map(|row| row.iter().copied().chain([Cost::INFINITE]));
    rows.chain(std::iter::repeat_n(Cost::INFINITE, layouts + 1)).collect()
}
