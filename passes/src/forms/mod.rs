//! Pieces of several nodes that have another form.

#[cfg(not(feature = "equations"))]
mod none;
pub(crate) mod raise;

#[cfg(not(feature = "equations"))]
use none::{Finder, Unsound};
#[cfg(feature = "equations")]
use relayout_equations::{Finder, Unsound};
use relayout_ir::graph::{Graph, NodeId};
use relayout_target_api::{Equation, Numerics, PassError, Recognized, Target};

#[cfg(not(feature = "equations"))]
pub(crate) use none::named;
#[cfg(feature = "equations")]
pub(crate) use relayout_equations::named;

/// The pieces of a graph that are an op which a form of the target wants to have recognized, made of these nodes.
pub(crate) fn recognized(
    graph: &Graph,
    target: &dyn Target,
    nodes: &[NodeId],
    numerics: Numerics,
) -> Result<Vec<Recognized>, PassError> {
    let wanted = of_forms(target);
    if wanted.is_empty() { Ok(Vec::new()) } else { Ok(finder(target, &wanted, numerics)?.find(graph, nodes)) }
}

/// What finds these ops, by the equations of the engine and of the target.
pub(crate) fn finder(target: &dyn Target, wanted: &[&str], numerics: Numerics) -> Result<Finder, PassError> {
    let unsound = |e: Unsound| PassError::Equation { target: target.name().to_owned(), why: e.to_string() };
    Finder::new(wanted, target.equations(), numerics).map_err(unsound)
}

/// The names that the forms of a target want to have recognized.
pub(crate) fn of_forms(target: &dyn Target) -> Vec<&'static str> {
    target.forms().iter().flat_map(|form| form.recognizes()).copied().collect()
}

/// The equations by which pieces are recognized for a target, if results may be rounded otherwise.
///
/// # Errors
/// [`PassError::Equation`] if one of the target's is none.
pub fn equations(target: &dyn Target) -> Result<Vec<Equation>, PassError> {
    Ok(finder(target, &of_forms(target), Numerics::Reassociate)?.equations().copied().collect())
}
