//! The order of steps: slots, and within a slot what passes declare.

use super::{Step, own};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use relayout_target_api::{Fact, PassError, Target};
use std::collections::BTreeSet;

/// The steps of the pipeline for a target: the engine's own in their order, and those of the target where their declarations put
/// them; of those that could stand in the same place the one that is listed first.
///
/// # Errors
/// [`PassError::Order`] if a pass needs what no step before it gives, names a pass that is not in its slot, or waits for itself.
pub fn steps(target: &dyn Target) -> Result<Vec<Step<'_>>, PassError> {
    let steps: Vec<Step<'_>> = own().copied().chain(target.passes().iter().map(Step::from)).collect();
    let order = |why| PassError::Order { target: target.name().to_owned(), why };
    let sorted = sorted(&steps, own().count()).map_err(order)?;
    check(&sorted).map_err(order)?;
    Ok(sorted)
}

/// The steps in order; the first `own` stay in theirs.
fn sorted<'t>(steps: &[Step<'t>], own: usize) -> Result<Vec<Step<'t>>, String> {
    let mut waits: DiGraph<usize, ()> = DiGraph::new();
    let nodes: Vec<NodeIndex> = (0..steps.len()).map(|i| waits.add_node(i)).collect();
    for (later, step) in steps.iter().enumerate() {
        if (1..own).contains(&later) {
            waits.add_edge(nodes[later - 1], nodes[later], ());
        }
        for (earlier, other) in steps.iter().enumerate().filter(|&(earlier, _)| earlier != later) {
            // What gives a fact comes before what needs it, unless one of the engine's own gave it before.
            let given = |fact: &Fact| other.is.gives.contains(fact);
            let waits_for = match other.is.slot.cmp(&step.is.slot) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => {
                    step.is.after.contains(&other.is.name)
                        || other.is.before.contains(&step.is.name)
                        || step.is.needs.iter().any(given)
                }
                std::cmp::Ordering::Greater => false,
            };
            if waits_for && !(earlier < own && later < own) {
                waits.update_edge(nodes[earlier], nodes[later], ());
            }
        }
        for name in step.is.after.iter().chain(step.is.before) {
            if !steps.iter().any(|other| other.is.name == *name && other.is.slot == step.is.slot) {
                return Err(format!("pass {} names {name}, which is no pass of its slot", step.is.name));
            }
        }
    }
    if let Some(cycle) = tarjan_scc(&waits).into_iter().find(|part| part.len() > 1) {
        let names: Vec<&str> = cycle.iter().map(|n| steps[waits[*n]].is.name).collect();
        return Err(format!("{} wait for each other", names.join(", ")));
    }
    let mut left: Vec<usize> = nodes.iter().map(|&n| waits.edges_directed(n, petgraph::Incoming).count()).collect();
    let mut ready: BTreeSet<usize> = (0..steps.len()).filter(|&i| left[i] == 0).collect();
    let mut sorted = Vec::with_capacity(steps.len());
    while let Some(i) = ready.pop_first() {
        sorted.push(steps[i]);
        for edge in waits.edges(nodes[i]) {
            let next = edge.target().index();
            left[next] -= 1;
            if left[next] == 0 {
                ready.insert(next);
            }
        }
    }
    Ok(sorted)
}

/// Whether every step has what it needs.
fn check(steps: &[Step<'_>]) -> Result<(), String> {
    let mut facts: BTreeSet<Fact> = BTreeSet::new();
    for step in steps {
        if let Some(missing) = step.is.needs.iter().find(|fact| !facts.contains(fact)) {
            return Err(format!("pass {} needs {missing:?}, which no pass before it gives", step.is.name));
        }
        facts.retain(|fact| !step.is.breaks.contains(fact));
        facts.extend(step.is.gives);
    }
    Ok(())
}
