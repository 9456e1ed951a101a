//! Rules: changes of which ops there are, each with its equation and its condition.
//!
//! A rule stands beside the code that carries it out, and a pass lists its rules. So reports know every rule that is applied.

/// How results may change: what a rule does to them, and what a user permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Numerics {
    /// Bit by bit the same.
    Exact,
    /// Equal in exact arithmetic, but rounded at other places or in another order.
    #[default]
    Reassociate,
}

/// What reports count of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Nodes that it removed.
    Nodes,
    /// Tensors that it wrote in another form.
    Tensors,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Name: a verb phrase, as reports have it.
    pub name: &'static str,
    /// What is replaced, and by what.
    pub equation: &'static str,
    /// Where it holds.
    pub condition: &'static str,
    /// What strictly falls wherever it is applied.
    pub buys: &'static str,
    /// What it does to results.
    pub numerics: Numerics,
    /// What is counted.
    pub counted: Counted,
}

/// Rules are told apart by their names.
impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.name == other.name
    }
}

impl Eq for Rule {}

impl Rule {
    /// What it did, as reports have it.
    #[must_use]
    pub fn told(&self, count: usize) -> String {
        match self.counted {
            Counted::Nodes => format!("{} took away {count} nodes", self.name),
            Counted::Tensors => format!("{} restated {count} tensors", self.name),
        }
    }
}
