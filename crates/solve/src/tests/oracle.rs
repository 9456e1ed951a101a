//! A second opinion on decisions: the problem as it is posed, nothing merged, pinned or pruned, as an integer linear program for
//! a solver that knows nothing of ours.
//!
//! - *States*: a binary column for each; of every variable one is taken. A state that can't be paid is held at 0.
//! - *Joint states* of two variables: a column for each, which add up to the states of either side. A pair table is paid by
//!   them. For a use of a shared value the sides are what its producer leaves and what the use wants.
//! - *Copies*: a column for each conversion of a shared value, no less than the joint state that needs it, of any use: so it is
//!   paid once.
//!
//! Only states are integers: where they are settled the rest is. Each connected part is a program of its own, because parts
//! share no factor; nothing else is done to the problem. What comes back is an assignment, and [`Problem::cost`] says in whole
//! nanoseconds what it costs: rounding may make the program miss the optimum, but nothing below the optimum can come out.

use microlp::{ComparisonOp, Error, OptimizationDirection, SolutionStatus, SolveOptions, Variable};
use petgraph::unionfind::UnionFind;
use relayout_solve::{Cost, Problem, SharedValue, Var};
use std::collections::BTreeMap;

/// Most branch and bound nodes of a part; a count, so that a program ends the same way on every machine.
const MAX_NODES: u64 = 1 << 16;

/// The optimum by the program, and how large that was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Optimum {
    /// What the assignment costs; infinite if none can be paid.
    pub(crate) cost: Cost,
    /// Connected parts.
    pub(crate) parts: usize,
    /// Columns of all parts.
    pub(crate) columns: usize,
    /// Rows of all parts.
    pub(crate) rows: usize,
    /// Branch and bound nodes of all parts.
    pub(crate) nodes: u64,
}

/// Solves `problem`. An error is one of the program's solver and says nothing of the problem.
pub(crate) fn optimum(problem: &Problem) -> Result<Optimum, String> {
    let mut assignment = vec![0; problem.variables()];
    let mut sum = Optimum::default();
    for part in parts(problem) {
        let program = Program::new(problem, &part);
        sum.parts += 1;
        sum.columns += program.columns;
        sum.rows += program.rows;
        let Some(nodes) = program.solve(&mut assignment)? else { return Ok(Optimum { cost: Cost::INFINITE, ..sum }) };
        sum.nodes += nodes;
    }
    Ok(Optimum { cost: problem.cost(&assignment), ..sum })
}

/// Variables that hang together, and all factors over them.
#[derive(Default)]
struct Part<'p> {
    vars: Vec<Var>,
    pairs: Vec<(Var, Var, &'p [Cost])>,
    values: Vec<&'p SharedValue>,
}

fn parts(problem: &Problem) -> Vec<Part<'_>> {
    let mut groups = UnionFind::new(problem.variables());
    for (a, b, _) in problem.pairs() {
        groups.union(a.index(), b.index());
    }
    for value in problem.values() {
        value.uses.iter().for_each(|read| _ = groups.union(value.producer.index(), read.var.index()));
    }
    let mut parts: BTreeMap<usize, Part<'_>> = BTreeMap::new();
    for at in 0..problem.variables() {
        parts.entry(groups.find(at)).or_default().vars.push(Var(at as u32));
    }
    for pair in problem.pairs() {
        parts.entry(groups.find(pair.0.index())).or_default().pairs.push(pair);
    }
    for value in problem.values() {
        parts.entry(groups.find(value.producer.index())).or_default().values.push(value);
    }
    parts.into_values().collect()
}

/// Columns whose sum is 1 where something is so, and 0 where it is not.
type Event = Vec<Variable>;

struct Program {
    lp: microlp::Problem,
    /// A column per state.
    states: BTreeMap<Var, Vec<Variable>>,
    columns: usize,
    rows: usize,
}

impl Program {
    fn new(problem: &Problem, part: &Part<'_>) -> Program {
        let lp = microlp::Problem::new(OptimizationDirection::Minimize);
        let mut program = Program { lp, states: BTreeMap::new(), columns: 0, rows: 0 };
        part.vars.iter().for_each(|&var| program.add_variable(var, problem.costs(var)));
        part.pairs.iter().for_each(|&(a, b, table)| program.add_pair(a, b, table));
        part.values.iter().for_each(|value| program.add_value(value));
        program
    }

    fn add_variable(&mut self, var: Var, costs: &[Cost]) {
        let column = |cost: &Cost| if cost.is_finite() { (cost.get() as f64, 1) } else { (0.0, 0) };
        let states: Event =
            costs.iter().map(column).map(|(cost, most)| self.lp.add_integer_var(cost, (0, most))).collect();
        self.columns += states.len();
        self.row(&sum(&states, 1.0), ComparisonOp::Eq, 1.0);
        self.states.insert(var, states);
    }

    fn add_pair(&mut self, a: Var, b: Var, table: &[Cost]) {
        let alone = |states: &Event| -> Vec<Event> { states.iter().map(|&state| vec![state]).collect() };
        let (rows, columns) = (alone(&self.states[&a]), alone(&self.states[&b]));
        if a == b {
            for (s, row) in rows.iter().enumerate() {
                self.pay(table[s * rows.len() + s], std::slice::from_ref(row));
            }
            return;
        }
        for (joint, &cost) in self.joint(&rows, &columns).iter().flatten().zip(table) {
            self.pay(cost, std::slice::from_ref(joint));
        }
    }

    fn add_value(&mut self, value: &SharedValue) {
        // By the layout that is there and the one that is wanted: when that copy is needed, once for each use.
        let mut needed: BTreeMap<(u32, u32), Vec<Event>> = BTreeMap::new();
        let mut need = |from: u32, to: Option<u32>, when: Event| {
            if let Some(to) = to.filter(|&to| to != from) {
                needed.entry((from, to)).or_default().push(when);
            }
        };
        let made = by_key(&value.produces, &self.states[&value.producer]);
        for read in &value.uses {
            let states = &self.states[&read.var];
            if read.var == value.producer {
                let both: Vec<_> = value.produces.iter().copied().zip(read.wants.iter().copied()).collect();
                for ((from, to), when) in by_key(&both, states) {
                    need(from, to, when);
                }
                continue;
            }
            let wanted = by_key(&read.wants, states);
            let (rows, columns): (Vec<_>, Vec<_>) =
                (made.values().cloned().collect(), wanted.values().cloned().collect());
            let joint = self.joint(&rows, &columns);
            for (&from, row) in made.keys().zip(joint) {
                wanted.keys().zip(row).for_each(|(&to, when)| need(from, to, when));
            }
        }
        for ((from, to), when) in needed {
            self.pay(value.moves[from as usize * value.layouts + to as usize], &when);
        }
    }

    /// When one of `rows` and one of `columns` hold together; of each exactly one does.
    fn joint(&mut self, rows: &[Event], columns: &[Event]) -> Vec<Vec<Event>> {
        match (rows, columns) {
            ([_], _) => return vec![columns.to_vec()],
            (_, [_]) => return rows.iter().map(|row| vec![row.clone()]).collect(),
            _ => {}
        }
        let cells: Vec<Vec<Variable>> =
            rows.iter().map(|_| columns.iter().map(|_| self.column(0.0)).collect()).collect();
        for (row, cells) in rows.iter().zip(&cells) {
            self.equal(cells, row);
        }
        for (c, column) in columns.iter().enumerate() {
            self.equal(&cells.iter().map(|row| row[c]).collect::<Event>(), column);
        }
        cells.into_iter().map(|row| row.into_iter().map(|cell| vec![cell]).collect()).collect()
    }

    /// Pays `cost` once if any of `events` holds.
    fn pay(&mut self, cost: Cost, events: &[Event]) {
        if cost == Cost::ZERO {
            return;
        }
        if !cost.is_finite() {
            for event in events {
                self.row(&sum(event, 1.0), ComparisonOp::Le, 0.0);
            }
            return;
        }
        let paid = self.column(cost.get() as f64);
        for event in events {
            let terms: Vec<_> = sum(event, -1.0).into_iter().chain([(paid, 1.0)]).collect();
            self.row(&terms, ComparisonOp::Ge, 0.0);
        }
    }

    fn equal(&mut self, cells: &[Variable], event: &[Variable]) {
        let terms: Vec<_> = sum(cells, 1.0).into_iter().chain(sum(event, -1.0)).collect();
        self.row(&terms, ComparisonOp::Eq, 0.0);
    }

    fn column(&mut self, cost: f64) -> Variable {
        self.columns += 1;
        self.lp.add_var(cost, (0.0, 1.0))
    }

    fn row(&mut self, terms: &[(Variable, f64)], op: ComparisonOp, side: f64) {
        self.rows += 1;
        self.lp.add_constraint(terms, op, side);
    }

    /// Puts the state of each variable into `assignment` and gives the branch and bound nodes it took; `None` if no assignment
    /// can be paid.
    fn solve(self, assignment: &mut [u32]) -> Result<Option<u64>, String> {
        let mut options = SolveOptions::default();
        options.node_limit = Some(MAX_NODES);
        // Relative to the price: a nanosecond in minutes still counts.
        options.tolerances.prune_epsilon = 1e-12;
        let outcome = match self.lp.solve_with(options) {
            Ok(outcome) => outcome,
            Err(Error::Infeasible) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let Some(found) = outcome.solution().filter(|found| found.status() == SolutionStatus::Optimal) else {
            return Err(format!("no optimum after {MAX_NODES} nodes"));
        };
        for (var, states) in &self.states {
            let taken = states.iter().position(|&state| found.var_value(state) > 0.5);
            assignment[var.index()] = taken.ok_or_else(|| format!("no state of {var} is taken"))? as u32;
        }
        Ok(Some(found.stats().nodes_solved))
    }
}

fn sum(event: &[Variable], factor: f64) -> Vec<(Variable, f64)> {
    event.iter().map(|&column| (column, factor)).collect()
}

/// The states that have the same key, together.
fn by_key<K: Ord + Copy>(keys: &[K], states: &[Variable]) -> BTreeMap<K, Event> {
    let mut groups: BTreeMap<K, Event> = BTreeMap::new();
    keys.iter().zip(states).for_each(|(&key, &state)| groups.entry(key).or_default().push(state));
    groups
}
