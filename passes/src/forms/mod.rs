//! Pieces of several nodes that have another form.

pub mod choose;
pub(crate) mod raise;
pub mod tell;

use crate::pipeline::Step;
use relayout_equations::{Finder, Unsound};
use relayout_ir::graph::Graph;
use relayout_target::{Context, Equation, Numerics, PassError, Recognized, Target};

/// The pieces of a graph that are one of these ops, made of nodes whose sums may be taken in another order.
pub(crate) fn recognized(graph: &Graph, cx: &Context<'_>, wanted: &[&str]) -> Result<Vec<Recognized>, PassError> {
    let nodes = if wanted.is_empty() { Vec::new() } else { cx.reassociable(graph) };
    Ok(finder(cx.target(), wanted, cx.settings.numerics)?.find(graph, &nodes))
}

/// What finds these ops, by the equations of the engine and of the target.
fn finder(target: &dyn Target, wanted: &[&str], numerics: Numerics) -> Result<Finder, PassError> {
    let unsound = |e: Unsound| PassError::Equation { target: target.name().to_owned(), why: e.to_string() };
    Finder::new(wanted, target.equations(), numerics).map_err(unsound)
}

/// The names that the forms of a target want to have recognized.
pub(crate) fn of_forms(target: &dyn Target) -> Vec<&'static str> {
    target.forms().iter().flat_map(|form| form.recognizes()).copied().collect()
}

/// The names that its pieces want to have recognized.
pub(crate) fn of_pieces(target: &dyn Target) -> Vec<&'static str> {
    target.pieces().iter().flat_map(|pieces| pieces.ops()).copied().collect()
}

/// The equations by which pieces are recognized for a target, if results may be rounded otherwise.
///
/// # Errors
/// [`PassError::Equation`] if one of the target's is none.
pub fn equations(target: &dyn Target) -> Result<Vec<Equation>, PassError> {
    let wanted = [of_forms(target), of_pieces(target)].concat();
    Ok(finder(target, &wanted, Numerics::Reassociate)?.equations().copied().collect())
}

/// The passes, in their order.
pub(crate) const PASSES: &[Step<'static>] = &[choose::PASS, raise::RAISE];
