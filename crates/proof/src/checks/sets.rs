//! More sets of sizes: what is shown for one set may hold by chance, such as where an axis happens to have one place, or where two
//! extents happen to be equal.

use crate::checks::check::{Attempt, Pair, attempt};
use crate::checks::verdict::Verdict;
use crate::graph::sizes;
use std::collections::BTreeMap;

/// Primes without 2 and 3: an axis that is counted in twos and in threes has no digits that say both.
const PRIMES: [i64; 12] = [5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43];

/// So many sets a verdict about sizes has, if the model runs with so many.
const SETS: usize = 3;

type Set = BTreeMap<String, i64>;

/// What holds for some sizes, looked at with others: every dim 1, dims without a common divisor, and what the proof names. Where a model
/// does not run with these, with multiples of those that it runs with. `fixed` are sizes that weights ask for.
pub(crate) fn more(pair: &Pair<'_>, made: Attempt, fixed: &Set) -> Verdict {
    let Attempt { mut verdict, sizes: first, .. } = made;
    if verdict.sizes().is_empty() {
        return verdict;
    }
    let of = |size: &dyn Fn(usize, i64) -> i64| -> Set {
        let sizes = first.iter().enumerate();
        sizes
            .map(|(at, (name, &old))| (name.clone(), fixed.get(name).copied().unwrap_or_else(|| size(at, old))))
            .collect()
    };
    let mut wanted = vec![of(&|_, _| 1), of(&|at, _| PRIMES[at % PRIMES.len()])];
    wanted.extend(pair.proof.also.iter().map(|also| {
        of(&|at, old| {
            let name = first.keys().nth(at);
            name.and_then(|name| also.get(name)).copied().unwrap_or(old)
        })
    }));
    let spare = [2, 3, 5, 4].map(|factor| of(&|_, old| old.saturating_mul(factor)));
    for (at, set) in wanted.iter().chain(&spare).enumerate() {
        let is_spare = at >= wanted.len();
        if verdict.sizes().contains(set) || is_spare && verdict.sizes().len() >= SETS {
            continue;
        }
        let found = fitting(pair, set);
        if found.verdict.holds() {
            verdict = both(verdict, found.verdict);
        } else if found.is_read {
            return with_sizes(found.verdict, set);
        }
    }
    verdict
}

/// What is found for a set, with other sizes where weights ask for them.
fn fitting(pair: &Pair<'_>, set: &Set) -> Attempt {
    let found = attempt(pair, Some(set.clone()));
    if found.verdict.holds() || found.fits {
        return found;
    }
    let others = sizes::found(pair.a, set);
    if others.is_empty() { found } else { attempt(pair, Some(sizes::with(set, &others))) }
}

/// What holds for the sizes of both.
fn both(verdict: Verdict, other: Verdict) -> Verdict {
    let mut sizes = verdict.sizes().to_vec();
    sizes.extend(other.sizes().iter().filter(|set| !sizes.contains(set)).cloned().collect::<Vec<_>>());
    let mut made = match (verdict, other) {
        (Verdict::WithLemmas { links, lemmas, bound, sizes, hosts }, other) => {
            let bound = if let Verdict::WithLemmas { bound: more, .. } = &other { bound.max(*more) } else { bound };
            Verdict::WithLemmas { links, lemmas, bound, sizes, hosts }
        }
        (_, other @ Verdict::WithLemmas { .. }) => other,
        (verdict, _) => verdict,
    };
    if let Some(all) = made.sizes_mut() {
        *all = sizes;
    }
    made
}

/// A refusal that names the sizes.
fn with_sizes(verdict: Verdict, set: &Set) -> Verdict {
    match verdict {
        Verdict::Refused { at, why, value, shown } => {
            let sizes: Vec<String> = set.iter().map(|(name, size)| format!("{name}={size}")).collect();
            let why = format!("with the sizes {}: {why}", sizes.join(", "));
            Verdict::Refused { at, why, value, shown }
        }
        held => held,
    }
}
