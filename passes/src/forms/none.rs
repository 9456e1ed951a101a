//! In the place of `relayout_equations` in builds without it: there are no equations, and nothing is recognized.

use relayout_ir::graph::{Graph, NodeId};
use relayout_target_api::{Equation, Explanation, Numerics, Recognized};

/// Finds nothing.
pub(crate) struct Finder;

/// No equation is refused, as none is read.
pub(crate) type Unsound = std::convert::Infallible;

#[expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "these are the functions of `relayout_equations::Finder`"
)]
impl Finder {
    pub(crate) fn new(_wanted: &[&str], _of_target: &[Equation], _numerics: Numerics) -> Result<Finder, Unsound> {
        Ok(Finder)
    }

    pub(crate) fn equations(&self) -> impl Iterator<Item = &Equation> {
        std::iter::empty()
    }

    pub(crate) fn find(&self, _graph: &Graph, _nodes: &[NodeId]) -> Vec<Recognized> {
        Vec::new()
    }

    pub(crate) fn explain(&self, _graph: &Graph, _found: &Recognized) -> Option<Explanation> {
        None
    }
}

/// The ops that equations give a name to.
pub(crate) fn named(_of_target: &[Equation]) -> Vec<&'static str> {
    Vec::new()
}
