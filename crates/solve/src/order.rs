//! In which order to eliminate variables: the one whose neighbours need the fewest new links comes first (min-fill).
//!
//! Ties go to the smaller table, then to the smaller index. Fill is counted exactly for small neighbourhoods and estimated
//! from above for large ones, and is brought up to date only for the neighbours of what was eliminated; so the order is a good
//! one rather than the best, in near-linear time on the sparse graphs that operator graphs are. Once every variable left has
//! more than [`MAX_DEGREE`] neighbours no table could hold them, and the rest follows by degree.

use std::collections::BTreeSet;

/// The largest neighbourhood in which missing links are counted one by one.
const COUNTED: usize = 16;
/// The largest neighbourhood that is joined up.
const MAX_DEGREE: usize = 48;

/// Every variable once, first eliminated first. `cliques` are the scopes of the functions.
pub(super) fn min_fill<'a>(domains: &[usize], cliques: impl Iterator<Item = &'a [usize]>) -> Vec<usize> {
    let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); domains.len()];
    for scope in cliques {
        for &a in scope {
            neighbours[a].extend(scope.iter().filter(|&&b| b != a));
        }
    }
    let mut scores: Vec<Score> = (0..domains.len()).map(|var| score(var, &neighbours, domains)).collect();
    let mut queue: BTreeSet<(Score, usize)> = scores.iter().copied().zip(0..).collect();
    let mut order = Vec::with_capacity(domains.len());
    while let Some((_, var)) = queue.pop_first() {
        order.push(var);
        let around: Vec<usize> = std::mem::take(&mut neighbours[var]).into_iter().collect();
        let join = around.len() <= MAX_DEGREE;
        for &near in &around {
            neighbours[near].remove(&var);
            if join {
                neighbours[near].extend(around.iter().filter(|&&other| other != near));
            }
        }
        for &near in &around {
            let fresh = score(near, &neighbours, domains);
            if fresh != scores[near] {
                queue.remove(&(scores[near], near));
                queue.insert((fresh, near));
                scores[near] = fresh;
            }
        }
    }
    order
}

/// Missing links, then the size of the table.
type Score = (usize, usize);

fn score(var: usize, neighbours: &[BTreeSet<usize>], domains: &[usize]) -> Score {
    let around = &neighbours[var];
    let size = around.iter().take(MAX_DEGREE).fold(domains[var], |size, &near| size.saturating_mul(domains[near]));
    let all = around.len() * around.len().saturating_sub(1) / 2;
    if around.len() > COUNTED {
        return (all, size);
    }
    let linked = |a: usize| around.range(..a).filter(|b| neighbours[a].contains(b)).count();
    (all - around.iter().map(|&a| linked(a)).sum::<usize>(), size)
}
