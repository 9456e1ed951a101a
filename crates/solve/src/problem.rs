//! The problem: variables, factors, and what an assignment of states costs.
//!
//! A *variable* chooses one of its states and pays for it. A *pair* factor prices the joint states of two variables; an
//! infinite entry forbids them. A *shared value* is what one variable produces and others use: each layout that is wanted and
//! is not the one produced is converted once, however many uses want it.
//!
//! [`Problem::cost`] is the only definition of the objective; the solvers work on reduced forms that are tested against it.
//!
//! Invariants, kept by the builder methods: every variable has at least one state; every table and list has the length that
//! its variables' state counts demand; every layout index is below the value's number of layouts.
//!
//! Absent: chains of conversions that share an intermediate copy.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Cost;

/// A variable of a [`Problem`], numbered from 0 in order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Var(pub u32);

impl Var {
    /// Position in an assignment.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// The most layouts that one shared value may have.
pub const MAX_LAYOUTS: usize = 64;

/// Why a part was not added; the problem is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// A variable needs something to choose from.
    #[error("variable `{name}` has no states; give it at least one")]
    NoStates {
        /// The variable.
        name: String,
    },
    /// Variables are numbered by `u32`.
    #[error("variable `{name}` is one too many: a problem holds fewer than 2^32")]
    TooManyVariables {
        /// The variable.
        name: String,
    },
    /// A variable of another problem, or one made up.
    #[error("{var}, named by {place}, is not a variable of this problem")]
    UnknownVariable {
        /// The variable.
        var: Var,
        /// What names it.
        place: String,
    },
    /// A list does not fit the state counts.
    #[error("{place} has {got} entries where {want} belong")]
    Length {
        /// Which list.
        place: String,
        /// Entries that the state counts demand.
        want: usize,
        /// Entries given.
        got: usize,
    },
    /// A layout index beyond the value's layouts.
    #[error("{place} names layout {layout}, but the value has {layouts}")]
    UnknownLayout {
        /// Which list.
        place: String,
        /// The index given.
        layout: u32,
        /// The number of layouts.
        layouts: usize,
    },
    /// More layouts than a set of them can hold.
    #[error("value `{name}` has {layouts} layouts; at most {MAX_LAYOUTS} are supported, drop dominated candidates")]
    TooManyLayouts {
        /// The value.
        name: String,
        /// The number of layouts.
        layouts: usize,
    },
}

/// A variable that reads a [`SharedValue`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// The variable that reads it.
    pub var: Var,
    /// For each state of `var` the layout it wants; `None`: in this state it does not read the value.
    pub wants: Vec<Option<u32>>,
}

/// A value with one producer and any number of uses, each conversion of which is paid once.
///
/// A variable may occur several times among the uses, and the producer may be among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedValue {
    /// What people call it.
    pub name: String,
    /// The variable that writes it.
    pub producer: Var,
    /// For each state of the producer the layout that it leaves the value in.
    pub produces: Vec<u32>,
    /// The variables that read it.
    pub uses: Vec<Use>,
    /// The number of layouts; their indices are below it. At most [`MAX_LAYOUTS`].
    pub layouts: usize,
    /// Price of a conversion, `layouts` x `layouts`, row-major, from x to. The diagonal is not read.
    pub moves: Vec<Cost>,
}

/// A price for every joint state of two variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) a: Var,
    pub(super) b: Var,
    /// Row-major, states of `a` x states of `b`.
    pub(super) table: Vec<Cost>,
}

/// Variables, factors and their prices; see the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub(super) names: Vec<String>,
    pub(super) unary: Vec<Vec<Cost>>,
    pub(super) pairs: Vec<Pair>,
    pub(super) values: Vec<SharedValue>,
}

impl Problem {
    /// A problem without variables; its only assignment is empty and costs nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable with one state for each of `costs`. State 0 is the preferred one: ties go to it.
    ///
    /// # Errors
    /// [`ProblemError::NoStates`], [`ProblemError::TooManyVariables`].
    pub fn add_variable(&mut self, name: impl Into<String>, costs: Vec<Cost>) -> Result<Var, ProblemError> {
        let name = name.into();
        if costs.is_empty() {
            return Err(ProblemError::NoStates { name });
        }
        let Ok(index) = u32::try_from(self.names.len()) else {
            return Err(ProblemError::TooManyVariables { name });
        };
        self.names.push(name);
        self.unary.push(costs);
        Ok(Var(index))
    }

    /// Adds a price for the joint states of `a` and `b`, row-major, states of `a` x states of `b`. With `a == b` only the
    /// diagonal counts.
    ///
    /// # Errors
    /// [`ProblemError::UnknownVariable`], and [`ProblemError::Length`] if the table has not an entry for each joint state.
    pub fn add_pair(&mut self, a: Var, b: Var, table: Vec<Cost>) -> Result<(), ProblemError> {
        let place = || format!("the pair table of {a} and {b}");
        let want = self.states_named(a, place)?.saturating_mul(self.states_named(b, place)?);
        check_length(table.len(), want, place)?;
        self.pairs.push(Pair { a, b, table });
        Ok(())
    }

    /// Adds a shared value.
    ///
    /// # Errors
    /// [`ProblemError::UnknownVariable`], [`ProblemError::UnknownLayout`], [`ProblemError::TooManyLayouts`], and
    /// [`ProblemError::Length`] if a list does not fit states or layouts.
    pub fn add_value(&mut self, value: SharedValue) -> Result<(), ProblemError> {
        let name = &value.name;
        if value.layouts > MAX_LAYOUTS {
            return Err(ProblemError::TooManyLayouts { name: name.clone(), layouts: value.layouts });
        }
        check_length(value.moves.len(), value.layouts * value.layouts, || format!("`moves` of value `{name}`"))?;
        let produces = || format!("`produces` of value `{name}`");
        check_length(value.produces.len(), self.states_named(value.producer, produces)?, produces)?;
        check_layouts(value.produces.iter().copied(), value.layouts, produces)?;
        for (i, read) in value.uses.iter().enumerate() {
            let wants = || format!("`wants` of use {i} of value `{name}`");
            check_length(read.wants.len(), self.states_named(read.var, wants)?, wants)?;
            check_layouts(read.wants.iter().flatten().copied(), value.layouts, wants)?;
        }
        self.values.push(value);
        Ok(())
    }

    /// The number of variables, and of entries in an assignment.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.unary.len()
    }

    /// The number of states of `var`; 0 where it is no variable of this problem.
    #[must_use]
    pub fn states(&self, var: Var) -> usize {
        self.unary.get(var.index()).map_or(0, Vec::len)
    }

    /// What people call `var`; empty where it is no variable of this problem.
    #[must_use]
    pub fn name(&self, var: Var) -> &str {
        self.names.get(var.index()).map_or("", String::as_str)
    }

    /// What `assignment` costs, one state for each variable, in the unit of the problem's costs. Infinite as well where it is no assignment: of another length,
    /// or with a state that its variable does not have.
    #[must_use]
    pub fn cost(&self, assignment: &[u32]) -> Cost {
        let known = |(states, &state): (&Vec<Cost>, &u32)| (state as usize) < states.len();
        if assignment.len() != self.unary.len() || !self.unary.iter().zip(assignment).all(known) {
            return Cost::INFINITE;
        }
        let state = |var: Var| assignment[var.index()] as usize;
        let unary: Cost = self.unary.iter().zip(assignment).map(|(costs, &s)| costs[s as usize]).sum();
        let pairs: Cost = self.pairs.iter().map(|p| p.table[state(p.a) * self.states(p.b) + state(p.b)]).sum();
        let values: Cost = self.values.iter().map(|value| value_cost(value, state)).sum();
        unary + pairs + values
    }

    /// The pair tables, in order of addition: two variables and their prices, row-major, states of the first x states of
    /// the second.
    pub fn pairs(&self) -> impl Iterator<Item = (Var, Var, &[Cost])> {
        self.pairs.iter().map(|pair| (pair.a, pair.b, pair.table.as_slice()))
    }

    /// The shared values, in order of addition.
    #[must_use]
    pub fn values(&self) -> &[SharedValue] {
        &self.values
    }

    /// What the states of `var` cost by themselves; empty where it is no variable of this problem.
    #[must_use]
    pub fn costs(&self, var: Var) -> &[Cost] {
        self.unary.get(var.index()).map_or(&[], Vec::as_slice)
    }

    /// The same problem, in which some states of a variable can't be taken.
    #[must_use]
    pub fn without(mut self, var: Var, forbidden: impl Fn(usize) -> bool) -> Self {
        if let Some(costs) = self.unary.get_mut(var.index()) {
            costs.iter_mut().enumerate().filter(|(s, _)| forbidden(*s)).for_each(|(_, c)| *c = Cost::INFINITE);
        }
        self
    }

    /// The same problem, in which a conversion of a shared value costs nothing.
    #[must_use]
    pub fn with_free_move(mut self, value: usize, from: usize, to: usize) -> Self {
        if let Some(value) = self.values.get_mut(value)
            && let Some(price) = value.moves.get_mut(from * value.layouts + to)
        {
            *price = Cost::ZERO;
        }
        self
    }

    fn states_named(&self, var: Var, place: impl Fn() -> String) -> Result<usize, ProblemError> {
        let unknown = || ProblemError::UnknownVariable { var, place: place() };
        self.unary.get(var.index()).map(Vec::len).ok_or_else(unknown)
    }
}

/// Conversions of `value`: one for each distinct layout that some use wants and the producer did not leave it in.
fn value_cost(value: &SharedValue, state: impl Fn(Var) -> usize) -> Cost {
    let produced = value.produces[state(value.producer)] as usize;
    let wanted = value.uses.iter().filter_map(|read| read.wants[state(read.var)]);
    let set = wanted.fold(0_u64, |set, layout| set | 1 << layout) & !(1 << produced);
    (0..value.layouts)
        .filter(|layout| set >> layout & 1 == 1)
        .map(|to| value.moves[produced * value.layouts + to])
        .sum()
}

fn check_length(got: usize, want: usize, place: impl Fn() -> String) -> Result<(), ProblemError> {
    if got == want { Ok(()) } else { Err(ProblemError::Length { place: place(), want, got }) }
}

fn check_layouts(
    named: impl IntoIterator<Item = u32>,
    layouts: usize,
    place: impl Fn() -> String,
) -> Result<(), ProblemError> {
    match named.into_iter().find(|&layout| layout as usize >= layouts) {
        Some(layout) => Err(ProblemError::UnknownLayout { place: place(), layout, layouts }),
        None => Ok(()),
    }
}
