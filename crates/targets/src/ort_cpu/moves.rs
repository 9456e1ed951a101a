//! Permutations that ONNX Runtime's Transpose is slow at, as several that it is fast at.
//!
//! Its Transpose is fast where two groups of neighbouring axes change places and where the innermost axis stays; else it
//! computes an index per element. A slow permutation is a chain of fast ones: groups of axes change places one pair at a time.
//! Axes of size 1 stand in the way of the fast paths too, so they go along with a neighbour and are put into place by a view.
//!
//! `ReorderInput` and `ReorderOutput` in a row permute as well, but stand for one Transpose of two runs of axes, which is fast: the
//! two together take about as long.

use super::machine::Machine;
use relayout_ir::layout::Layout;
use relayout_target_api::{Cost, MoveKind, MoveQuery};

/// Most Transposes that stand for one.
const STEPS: usize = 3;

/// Most groups of axes that are searched.
const GROUPS: usize = 7;

/// A chain writes its bytes more than once, so it has to be faster by this much: three halves.
const GAIN: (u64, u64) = (3, 2);
/// And one of several by this many nanoseconds: for less, bytes are not moved twice.
const SAVED: u64 = 400_000;

/// Transposes that stand for one, and what they cost with the views between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) cost: Cost,
    /// The order of axes before and after each.
    pub(super) steps: Vec<[Vec<usize>; 2]>,
}

/// Axes that stay together, by place in the operand: the order in which they stand in operand and result, axes of size 1 among
/// them.
struct Group {
    size: u64,
    before: Vec<usize>,
    after: Vec<usize>,
}

/// The search for the cheapest chain.
struct Search<'a> {
    costs: &'a dyn Fn(&[u64], &[usize]) -> u64,
    sizes: Vec<u64>,
    goal: Vec<usize>,
    /// Price of the view behind a Transpose.
    view: u64,
    best: Option<(u64, Vec<Vec<usize>>)>,
    limit: u64,
}

impl Machine {
    /// The chain of Transposes for a move between two orders of axes, if it is faster by a clear margin.
    pub(super) fn chain(&self, query: &MoveQuery<'_>) -> Option<Chain> {
        if query.kind != MoveKind::Permute {
            return None;
        }
        let width = u64::from(query.dtype?.bits()?);
        if !matches!(width, 8 | 16 | 32 | 64) {
            return None;
        }
        let (from, to) = (query.from.as_permutation()?, query.to.as_permutation()?);
        let costs = |shape: &[u64], perm: &[usize]| self.costs.transpose_ns(shape, perm, width / 8);
        chain(&costs, 2 * self.costs.node_ns(), query.shape, &from, &to)
    }

    /// The layouts before and after each move of the chain.
    pub(super) fn chained_layouts(&self, query: &MoveQuery<'_>) -> Option<Vec<[Layout; 2]>> {
        let layout = |order: &[usize]| Layout::permutation(order).ok();
        let steps = self.chain(query)?.steps;
        steps.iter().map(|[from, to]| Some([layout(from)?, layout(to)?])).collect()
    }
}

/// The cheapest chain between two orders of the axes of a shape, `view` being the price of what stands behind a Transpose that
/// is not the last node.
fn chain(
    costs: &dyn Fn(&[u64], &[usize]) -> u64,
    view: u64,
    shape: &[u64],
    from: &[usize],
    to: &[usize],
) -> Option<Chain> {
    let extents: Vec<u64> = from.iter().map(|&axis| shape.get(axis).copied()).collect::<Option<_>>()?;
    let direct = costs(&extents, &permutation(from, to)?);
    let (groups, goal) = groups(shape, from, to)?;
    if groups.len() < 2 || groups.len() > GROUPS {
        return None;
    }
    // A chain that costs as much is no gain.
    let limit = (u128::from(direct) * u128::from(GAIN.1) / u128::from(GAIN.0)).try_into().unwrap_or(u64::MAX);
    let sizes = groups.iter().map(|g| g.size).collect();
    let mut search = Search { costs, sizes, goal, view, best: None, limit };
    search.extend(&mut vec![(0..groups.len()).collect()], 0);
    let (ns, orders) = search.best?;
    // One Transpose and a view move nothing twice.
    if orders.len() > 2 && ns.saturating_add(SAVED) > direct {
        return None;
    }
    let place = |order: &[usize], side: fn(&Group) -> &Vec<usize>| -> Option<Vec<usize>> {
        let parts: Option<Vec<&Vec<usize>>> = order.iter().map(|&g| groups.get(g).map(side)).collect();
        Some(parts?.into_iter().flatten().copied().collect())
    };
    let last = orders.len().checked_sub(2)?;
    let steps = orders.windows(2).enumerate().map(|(i, pair)| {
        let [before, after] = pair else { return None };
        // The last step ends in the order that is wanted, those before it start from the one that is there.
        let side: fn(&Group) -> &Vec<usize> = if i == last && i > 0 { |g| &g.after } else { |g| &g.before };
        Some([place(before, side)?, place(after, side)?])
    });
    Some(Chain { cost: Cost::new(ns), steps: steps.collect::<Option<_>>()? })
}

impl Search<'_> {
    /// Tries every chain that begins with these orders, which cost `ns`.
    fn extend(&mut self, orders: &mut Vec<Vec<usize>>, ns: u64) {
        let Some(at) = orders.last().cloned() else { return };
        if at == self.goal {
            return;
        }
        // One Transpose alone is chosen for the axes of size 1 that it does not move; a view puts them into place.
        let first = orders.len() == 1;
        let views = if first { self.view } else { 0 };
        let whole = ns.saturating_add(self.step(&at, &self.goal)).saturating_add(views);
        if whole < self.bound() {
            let mut orders = orders.clone();
            orders.push(self.goal.clone());
            self.best = Some((whole, orders));
        }
        if orders.len() >= STEPS {
            return;
        }
        for next in swaps(&at) {
            let ns = ns.saturating_add(self.step(&at, &next)).saturating_add(self.view);
            if ns >= self.bound() || orders.contains(&next) {
                continue;
            }
            orders.push(next);
            self.extend(orders, ns);
            orders.pop();
        }
    }

    /// What a chain has to stay below.
    fn bound(&self) -> u64 {
        self.best.as_ref().map_or(self.limit, |(ns, _)| *ns)
    }

    fn step(&self, from: &[usize], to: &[usize]) -> u64 {
        let sizes: Vec<u64> = from.iter().map(|&g| self.sizes.get(g).copied().unwrap_or(1)).collect();
        permutation(from, to).map_or(u64::MAX, |perm| (self.costs)(&sizes, &perm))
    }
}

/// Places in `from` of what stands in `to`.
fn permutation(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    to.iter().map(|axis| from.iter().position(|a| a == axis)).collect()
}

/// Every order in which two neighbouring runs have changed places.
fn swaps(order: &[usize]) -> Vec<Vec<usize>> {
    let n = order.len();
    let mut all = Vec::new();
    for i in 0..n {
        for j in i + 1..n {
            for k in j + 1..=n {
                all.push([&order[..i], &order[j..k], &order[i..j], &order[k..]].concat());
            }
        }
    }
    all
}

/// The groups of axes that stay together, as they stand in `from`, and their order in `to`.
fn groups(shape: &[u64], from: &[usize], to: &[usize]) -> Option<(Vec<Group>, Vec<usize>)> {
    let moves = |axis: &usize| shape.get(*axis).is_some_and(|&d| d != 1);
    let was: Vec<usize> = from.iter().copied().filter(moves).collect();
    // Runs of neighbours, in the order of the result.
    let mut runs: Vec<Vec<usize>> = Vec::new();
    let mut last: Option<usize> = None;
    for axis in to.iter().copied().filter(moves) {
        let place = was.iter().position(|&a| a == axis)?;
        match runs.last_mut() {
            Some(run) if last.is_some_and(|last| last + 1 == place) => run.push(axis),
            _ => runs.push(vec![axis]),
        }
        last = Some(place);
    }
    let mut by_place = runs.clone();
    by_place.sort_by_key(|run| run.first().and_then(|axis| was.iter().position(|a| a == axis)));
    let before = with_ones(&by_place, from);
    let mut after = with_ones(&runs, to);
    let goal = permutation(&heads(&by_place), &heads(&runs))?;
    let groups = by_place.iter().zip(before).enumerate().map(|(g, (run, before))| {
        let after = std::mem::take(after.get_mut(goal.iter().position(|&at| at == g)?)?);
        let size = run.iter().fold(1u64, |n, &axis| n.saturating_mul(shape.get(axis).copied().unwrap_or(1)));
        Some(Group { size, before, after })
    });
    Some((groups.collect::<Option<_>>()?, goal))
}

fn heads(runs: &[Vec<usize>]) -> Vec<usize> {
    runs.iter().filter_map(|run| run.first().copied()).collect()
}

/// Runs as they stand in an order, with the axes of size 1 that stand behind each; those in front go with the first.
fn with_ones(runs: &[Vec<usize>], order: &[usize]) -> Vec<Vec<usize>> {
    let mut parts = vec![Vec::new(); runs.len()];
    let mut at = 0;
    for axis in order {
        if let Some(run) = runs.iter().position(|run| run.contains(axis)) {
            at = run;
        }
        if let Some(part) = parts.get_mut(at) {
            part.push(*axis);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;
    use relayout_ir::dtype::DType;

    /// Every order of `rank` axes.
    fn orders(rank: usize) -> Vec<Vec<usize>> {
        if rank == 0 {
            return vec![vec![]];
        }
        let place = |shorter: &Vec<usize>, at: usize| {
            let mut order = shorter.clone();
            order.insert(at, rank - 1);
            order
        };
        orders(rank - 1).iter().flat_map(|o| (0..rank).map(|at| place(o, at)).collect::<Vec<_>>()).collect()
    }

    /// The elements of a row-major tensor with its axes in another order.
    fn transposed(data: &[usize], shape: &[u64], perm: &[usize]) -> Vec<usize> {
        let stride = |axis: usize| shape[axis + 1..].iter().product::<u64>() as usize;
        let mut offsets = vec![0];
        for &axis in perm {
            let step = |o: usize| (0..shape[axis] as usize).map(move |i| o + i * stride(axis));
            offsets = offsets.into_iter().flat_map(step).collect();
        }
        offsets.into_iter().map(|o| data[o]).collect()
    }

    /// The elements after every step of a chain, each a Transpose of the bytes as the step's order declares them.
    fn run(chain: &Chain, data: &[usize], shape: &[u64]) -> Vec<usize> {
        chain.steps.iter().fold(data.to_vec(), |data, [before, after]| {
            let declared: Vec<u64> = before.iter().map(|&axis| shape[axis]).collect();
            transposed(&data, &declared, &permutation(before, after).unwrap())
        })
    }

    /// Slow whatever it is unless two runs of all axes change places.
    fn swaps_only(shape: &[u64], perm: &[usize]) -> u64 {
        let identity: Vec<usize> = (0..shape.len()).collect();
        if swaps(&identity).iter().any(|s| s == perm) { 10 } else { 1_000_000 }
    }

    #[test]
    fn every_chain_of_every_order_up_to_rank_5_moves_each_element_to_its_place() {
        let mut chains = 0;
        for shape in [
            &[3, 2, 5, 4, 6][..],
            &[2, 1, 3, 1, 4],
            &[1, 2, 1, 3, 1],
            &[3, 2, 5, 4],
            &[1, 3, 2, 5],
            &[4, 1, 3],
            &[4, 3],
        ] {
            let from: Vec<usize> = (0..shape.len()).collect();
            let data: Vec<usize> = (0..shape.iter().product::<u64>() as usize).collect();
            for to in orders(shape.len()) {
                let Some(chain) = chain(&swaps_only, 1, shape, &from, &to) else {
                    let moved: Vec<usize> = to.iter().copied().filter(|&a| shape[a] != 1).collect();
                    assert!(moved.is_sorted() || swaps_only(shape, &to) == 10, "{shape:?} {to:?} is left slow");
                    continue;
                };
                chains += 1;
                assert_eq!(run(&chain, &data, shape), transposed(&data, shape, &to), "{shape:?} {to:?} {chain:?}");
                for [before, after] in &chain.steps {
                    let declared: Vec<u64> = before.iter().map(|&axis| shape[axis]).collect();
                    assert_eq!(swaps_only(&declared, &permutation(before, after).unwrap()), 10, "{shape:?} {to:?}");
                }
                // What stands between two steps is a view.
                for pair in chain.steps.windows(2) {
                    let moved = |order: &[usize]| order.iter().copied().filter(|&a| shape[a] != 1).collect::<Vec<_>>();
                    assert_eq!(moved(&pair[0][1]), moved(&pair[1][0]), "{shape:?} {to:?}");
                }
            }
        }
        assert!(chains > 150, "{chains} chains");
    }

    fn query_chain(shape: &[u64], perm: &[usize], dtype: DType) -> Option<Chain> {
        let target = crate::OrtCpu::new(Block::B16).unwrap().machine;
        let (from, to) = (Layout::row_major(shape.len()), Layout::permutation(perm).unwrap());
        let bytes = shape.iter().product::<u64>() * 4;
        let dtype = Some(dtype);
        target.chain(&MoveQuery::permute(&from, &to, shape).dtype(dtype).bytes(bytes))
    }

    #[test]
    fn what_the_runtime_is_slow_at_becomes_two_or_three_transposes() {
        let steps = |shape: &[u64], perm: &[usize]| query_chain(shape, perm, DType::F32).map_or(1, |c| c.steps.len());
        assert_eq!(steps(&[1, 64, 256, 256], &[0, 3, 2, 1]), 2);
        assert_eq!(steps(&[128, 256, 128], &[2, 1, 0]), 2);
        assert_eq!(steps(&[64, 32, 64, 32], &[1, 0, 3, 2]), 2);
        assert!(steps(&[64, 32, 64, 32], &[3, 2, 1, 0]) > 1);
        assert_eq!(steps(&[1, 64, 128, 2, 128, 2], &[0, 3, 5, 1, 2, 4]), 2);
    }

    #[test]
    fn what_the_runtime_is_fast_at_stays_one_transpose() {
        for (shape, perm) in [
            (&[1, 64, 56, 56][..], &[0, 2, 3, 1][..]),
            (&[8, 56, 56, 64], &[0, 3, 1, 2]),
            (&[8, 16, 4, 128], &[0, 2, 1, 3]),
            (&[256, 4096], &[1, 0]),
            (&[2, 3, 4], &[2, 1, 0]),
        ] {
            assert_eq!(query_chain(shape, perm, DType::F32), None, "{shape:?} {perm:?}");
        }
    }

    #[test]
    fn an_axis_of_size_1_in_the_way_is_put_aside_by_a_view() {
        let chain = query_chain(&[256, 1, 4096], &[2, 1, 0], DType::F32).unwrap();
        let [[before, after]] = chain.steps.as_slice() else { panic!("{chain:?}") };
        assert_eq!((before.as_slice(), after.as_slice()), (&[0, 1, 2][..], &[2, 0, 1][..]));
    }

    #[test]
    fn elements_that_are_no_whole_bytes_move_at_once() {
        assert_eq!(query_chain(&[1, 64, 256, 256], &[0, 3, 2, 1], DType::I4), None);
    }
}
