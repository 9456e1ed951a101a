//! `join_moves`: two moves of rows around ops that treat every row alike become one before them.
//!
//! ```text
//! Move(Reshape(f(Reshape(Move(x))))) = Reshape(f(Reshape(Move(x)))),   f a chain of products with constants and of element-wise ops
//! ```
//!
//! Attention in windows has the first where heads are merged and the second where windows are put back, a product between them. The
//! decision sees both as moves of whole axes; joined they are one of the digits that these axes have in common.
//!
//! What is between has names of its own, since it has the old rows in another order.
//!
//! Absent: moves into blocks or out of them, and chains with another reader.

use crate::state::Step;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Bound, Form, Role, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::is_constant;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::perm;
use relayout_ir::storage::reshape_target;
use relayout_target_api::hints::Hints;
use relayout_target_api::{
    Context, Cost, Counted, Declared, Fact, MoveKind, MoveQuery, Numerics, PassError, Rule, Sizes, Slot, Target,
};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "move_rows_once",
    equation: "Move(Reshape(f(Reshape(Move(x))))) = Reshape(f(Reshape(Move(x))))",
    condition: "f is products with constant weights and element-wise ops that treat every row alike, and nobody else reads what \
                is between; the second move leaves columns innermost; one move of the digits that both have in common is \
                cheaper than two",
    buys: "a move",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new(
        "join_moves",
        Slot::Finish,
        "joins moves that the decision left; before views of constants are folded",
    )
    .needs(&[Fact::Written])
    .rules(&[&RULE]),
    &join_moves,
);

/// Joins such moves.
pub fn join_moves(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        if !graph.contains(n) {
            continue;
        }
        let Some(found) =
            MovePair::recognize(graph, n).filter(|found| found.gains(graph, cx.target(), &cx.settings.hints))
        else {
            continue;
        };
        found.apply(graph)?;
        cx.count(&RULE, 1);
    }
    Ok(())
}

/// A node that moves bytes between two orders of whole axes.
struct Move {
    x: ValueId,
    y: ValueId,
    /// Extents of the operand as it lies.
    from: Vec<Dim>,
    /// Which of them is each of the result as that lies, outermost first.
    perm: Vec<usize>,
}

impl Move {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Move> {
        let node = graph.node(n);
        let (x, y) = (node.operand(0)?, node.only_result()?);
        let order = match (&node.op, &node.form) {
            (Op::Relayout, _) => None,
            (Op::Onnx(_), Form::View(View::Transpose(order))) => Some(order),
            _ => return None,
        };
        let (stored, wanted) = (graph.value(x).layout.as_permutation()?, graph.value(y).layout.as_permutation()?);
        let from = graph.storage_shape(x, &graph.value(x).layout)?;
        let axis_of = |axis: usize| order.map_or(Some(axis), |order| order.get(axis).copied());
        let perm = wanted.into_iter().map(|axis| perm::place(&stored, axis_of(axis)?)).collect::<Option<Vec<_>>>()?;
        let own = Move { x, y, from, perm };
        own.moves().then_some(own)
    }

    /// Whether any byte goes elsewhere: axes of extent 1 are wherever they are.
    fn moves(&self) -> bool {
        let kept: Vec<usize> = self.perm.iter().copied().filter(|&axis| !self.from[axis].is_one()).collect();
        kept.windows(2).any(|pair| pair[0] > pair[1])
    }
}

/// Two moves, and what stands between them.
struct MovePair {
    first: Move,
    /// Nodes between, in order, each reading the one before at this slot.
    chain: Vec<(NodeId, usize)>,
    second: Move,
    joined: Joined,
    /// The shape that the first op of rows reads.
    operand: Vec<Dim>,
}

/// One move for two: extents as it reads them, and their order as it leaves them.
#[derive(Debug, PartialEq)]
struct Joined {
    from: Vec<Dim>,
    perm: Vec<usize>,
}

impl MovePair {
    fn recognize(graph: &Graph, n: NodeId) -> Option<MovePair> {
        let first = Move::recognize(graph, n).filter(|m| graph.value(m.y).layout.is_row_major())?;
        let (mut v, mut chain, mut operand): (_, _, Option<Vec<Dim>>) = (first.y, Vec::new(), None);
        loop {
            let (n, slot) = graph.only_use(v).map(|u| (u.node, u.slot))?;
            let node = graph.node(n);
            let shape = graph.value(v).ty.shape()?;
            if !graph.value(v).layout.is_row_major() {
                return None;
            }
            if let (Some(operand), Some(second)) = (&operand, Move::recognize(graph, n)) {
                return MovePair::between(graph, first, chain, second, operand);
            }
            let y = node.only_result()?;
            let to = graph.value(y).ty.shape()?;
            match &node.form {
                // Once a row has been read, it stays one.
                Form::View(View::Reshape) if operand.is_none() || shape.last() == to.last() => {}
                Form::Axes(bound) if is_of_rows(graph, node, bound, slot) => {
                    operand.get_or_insert_with(|| shape.to_vec());
                }
                _ => return None,
            }
            chain.push((n, slot));
            v = y;
        }
    }

    fn between(
        graph: &Graph,
        first: Move,
        chain: Vec<(NodeId, usize)>,
        second: Move,
        operand: &[Dim],
    ) -> Option<MovePair> {
        let joined = Joined::recognize(&first, &second, operand)?;
        // A view is exported as numbers and at most one extent that is left open.
        let moved: Vec<Dim> = joined.perm.iter().map(|&axis| joined.from[axis].clone()).collect();
        let open = second.from.iter().filter(|d| !d.is_const()).count();
        let pairs = [(&first.from[..], &joined.from[..]), (&moved[..], operand)];
        let writable = open <= 1 && pairs.into_iter().all(|(from, to)| reshape_target(from, to).is_some());
        (writable && !is_constant(graph, first.x)).then(|| MovePair {
            first,
            chain,
            second,
            joined,
            operand: operand.to_vec(),
        })
    }

    /// Whether one move is cheaper than both.
    fn gains(&self, graph: &Graph, target: &dyn Target, hints: &Hints) -> bool {
        let cost = |from: &[Dim], perm: &[usize], v: ValueId| -> Option<Cost> {
            let shape: Vec<u64> = from.iter().map(|d| hints.extent(d)).collect();
            let (before, after) = (Layout::row_major(from.len()), Layout::permutation(perm).ok()?);
            let kind = if perm::is_identity(perm) { MoveKind::View } else { MoveKind::Permute };
            let (bytes, dtype) = (hints.bytes(graph, v), graph.value(v).ty.dtype());
            target.move_cost(&MoveQuery::permute(&before, &after, &shape).kind(kind).dtype(dtype).bytes(bytes))
        };
        let of = |m: &Move| cost(&m.from, &m.perm, m.x);
        let (Some(first), Some(second)) = (of(&self.first), of(&self.second)) else { return false };
        cost(&self.joined.from, &self.joined.perm, self.first.x).is_some_and(|joined| joined < first + second)
    }

    fn apply(self, graph: &mut Graph) -> Result<(), PassError> {
        let MovePair { first, chain, second, joined, operand } = self;
        let (mover, _) = graph.value(first.y).producer();
        let (last, _) = graph.value(second.y).producer();
        let base = graph.value(first.y).name.clone();
        let stored = graph.value(first.x).layout.as_permutation().unwrap_or_default();
        let rank = graph.node(mover).rank;
        let mut make = Builder::new(graph, rank);
        let lying = if perm::is_identity(&stored) {
            first.x
        } else {
            make.transpose(first.x, &format!("{base}.lying"), &stored)?
        };
        let digits = make.reshape(lying, &format!("{base}.digits"), joined.from)?;
        let moved = make.transpose(digits, &format!("{base}.joined"), &joined.perm)?;
        let mut v = make.reshape(moved, &format!("{base}.rows"), operand)?;
        // Reshapes before the first op of rows are that one, and those behind the last are one with what the result is named in.
        let is_op = |(n, _): &(NodeId, usize)| !matches!(graph.node(*n).form, Form::View(_));
        let ends = chain.iter().position(is_op).zip(chain.iter().rposition(is_op));
        let ops = ends.and_then(|(first, last)| chain.get(first..=last)).unwrap_or_default();
        for &(n, slot) in ops {
            let mut node = graph.node(n).clone();
            if let Some(operand) = node.inputs.get_mut(slot) {
                *operand = Some(v);
            }
            let Some(old) = node.only_result().map(|y| graph.value(y)) else { continue };
            let (name, ty) = (graph.fresh_name(&format!("{}.joined", old.name)), old.ty.clone());
            v = graph.add_single(node, name, ty)?;
        }
        let rank = graph.node(last).rank;
        // A Reshape of the result does all that one to the result would.
        let viewed = graph.only_use(second.y).and_then(|u| viewed(graph, u.node));
        let y = viewed.unwrap_or(second.y);
        let (name, layout) = (graph.value(y).name.clone(), graph.value(y).layout.clone());
        let order = layout.as_permutation().unwrap_or_default();
        let Some(stored) = graph.storage_shape(y, &layout) else { return Ok(()) };
        let mut make = Builder::new(graph, rank);
        let mut result = make.reshape(v, &format!("{name}.apart"), stored)?;
        if !perm::is_identity(&order) {
            result = make.transpose(result, &format!("{name}.named"), &perm::inverse(&order))?;
        }
        let mut patch = Patch::new();
        patch.set_layout(result, layout);
        patch.replace(y, result);
        patch.apply(graph)?;
        remove_dead(graph, [graph.value(y).producer().0, last]);
        Ok(())
    }
}

impl Joined {
    /// The move that leaves the rows of `operand`, which is the result of the first in other dims, as the second would have left
    /// them.
    fn recognize(first: &Move, second: &Move, operand: &[Dim]) -> Option<Joined> {
        let (columns, rows) = operand.split_last()?;
        let rows = Dim::product(rows)?;
        let shape: Vec<Dim> = first.perm.iter().map(|&axis| first.from[axis].clone()).collect();
        let at = (0..=shape.len()).find(|&at| {
            Dim::product(&shape[..at]).as_ref() == Some(&rows) && Dim::product(&shape[at..]).as_ref() == Some(columns)
        })?;
        let (&last, inner) = second.perm.split_last()?;
        let apart = second.from.get(..inner.len())?;
        if last != inner.len() || Dim::product(apart).as_ref() != Some(&rows) {
            return None;
        }
        let digits = common_digits(&shape[..at], apart)?;
        // Each axis that the first move reads is its digits, or itself.
        let mut from = Vec::new();
        let mut number = vec![0; digits.len()];
        let mut whole = vec![0; shape.len()];
        for axis in 0..first.from.len() {
            let to = perm::place(&first.perm, axis)?;
            if to >= at {
                whole[to] = from.len();
                from.push(first.from[axis].clone());
                continue;
            }
            for (place, digit) in digits.iter().enumerate().filter(|(_, digit)| digit.of_first == to) {
                number[place] = from.len();
                from.push(digit.extent.clone());
            }
        }
        let rows = inner.iter().flat_map(|&axis| {
            let own = digits.iter().enumerate().filter(move |(_, digit)| digit.of_second == axis);
            own.map(|(place, _)| number[place]).collect::<Vec<_>>()
        });
        let perm = rows.chain(whole[at..].iter().copied()).collect();
        Some(Joined { from, perm }.merged())
    }

    /// The same with axes as one that stay side by side.
    fn merged(self) -> Joined {
        let merged = perm::merged(&self.perm, |_| true);
        let from = merged.groups.iter().map(|group| {
            let extents: Vec<Dim> = group.iter().map(|&axis| self.from[axis].clone()).collect();
            Dim::product(&extents).unwrap_or(Dim::ONE)
        });
        Joined { from: from.collect(), perm: merged.perm }
    }
}

/// A digit that two spellings of the same number of elements have in common: its extent, and the axis of each that it is part of.
struct Digit {
    extent: Dim,
    of_first: usize,
    of_second: usize,
}

/// The digits of both, outermost first; `None` where an axis of one straddles two of the other.
fn common_digits(first: &[Dim], second: &[Dim]) -> Option<Vec<Digit>> {
    let side =
        |dims: &[Dim]| -> Vec<(usize, Dim)> { dims.iter().cloned().enumerate().filter(|(_, d)| !d.is_one()).collect() };
    let (mut a, mut b) = (side(first), side(second));
    let mut digits = Vec::new();
    while let (Some((i, x)), Some((j, y))) = (a.pop(), b.pop()) {
        let extent = if x == y {
            x
        } else if let Some(rest) = x.exact_div(&y) {
            a.push((i, rest));
            y
        } else {
            b.push((j, y.exact_div(&x)?));
            x
        };
        digits.push(Digit { extent, of_first: i, of_second: j });
    }
    digits.reverse();
    (a.is_empty() && b.is_empty()).then_some(digits)
}

/// Whether an op makes of each row of this operand a row of its result, all in the same way: a product with constant weights, or an
/// element-wise op of it and of constants that are the same for all rows.
fn is_of_rows(graph: &Graph, node: &Node, bound: &Bound, slot: usize) -> bool {
    let dims = |v: ValueId| graph.value(v).ty.const_shape().filter(|_| is_constant(graph, v));
    let (Some(x), Some(y)) = (node.operand(slot), node.only_result()) else { return false };
    let mut others = node.inputs.iter().enumerate().filter(|(other, _)| *other != slot).filter_map(|(_, v)| *v);
    let for_all_rows = |v: ValueId| dims(v).is_some_and(|dims| dims.iter().rev().skip(1).all(|&d| d == 1));
    match node.onnx() {
        Some("MatMul") => slot == 0 && others.all(|w| dims(w).is_some_and(|dims| dims.len() == 2)),
        Some("Gemm") => {
            let weights = node.operand(1).is_some_and(|w| is_constant(graph, w));
            slot == 0 && !node.flag("transA") && weights && node.operand(2).is_none_or(for_all_rows)
        }
        Some(_) => {
            let elementwise = bound.renumber.is_empty() && bound.atoms.iter().all(|atom| atom.role == Role::Carried);
            let alike = graph.value(x).ty.shape() == graph.value(y).ty.shape();
            elementwise && alike && !bound.atoms.iter().any(|atom| atom.pinned) && others.all(for_all_rows)
        }
        None => false,
    }
}

/// The result of a Reshape that moves nothing, of row-major values.
fn viewed(graph: &Graph, n: NodeId) -> Option<ValueId> {
    let node = graph.node(n);
    let (x, y) = (node.operand(0)?, node.only_result()?);
    let row_major = |v: ValueId| graph.value(v).layout.is_row_major();
    let reshapes = matches!(node.form, Form::View(View::Reshape)) && row_major(x) && row_major(y);
    // Exported as numbers and at most one extent that is left open.
    let open = graph.value(y).ty.shape()?.iter().filter(|d| !d.is_const()).count();
    (reshapes && open <= 1).then_some(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(extents: &[i64]) -> Vec<Dim> {
        extents.iter().map(|&d| Dim::from(d)).collect()
    }

    fn moved(from: &[i64], perm: &[usize]) -> Move {
        let mut graph = Graph::new("g");
        let ty = relayout_ir::types::Type::tensor(relayout_ir::dtype::DType::F32, dims(from));
        let x = graph.add_input("x", ty).unwrap();
        Move { x, y: x, from: dims(from), perm: perm.to_vec() }
    }

    #[test]
    fn heads_are_merged_and_windows_put_back_in_one() {
        let first = moved(&[64, 3, 49, 32], &[0, 2, 1, 3]);
        let second = moved(&[1, 8, 8, 7, 7, 96], &[0, 1, 3, 2, 4, 5]);
        let joined = Joined::recognize(&first, &second, &dims(&[64, 49, 96])).unwrap();
        assert_eq!(joined, Joined { from: dims(&[8, 8, 3, 7, 7, 32]), perm: vec![0, 3, 1, 4, 2, 5] });
    }

    #[test]
    fn two_moves_that_undo_each_other_are_none() {
        let first = moved(&[4, 6, 10], &[1, 0, 2]);
        let second = moved(&[6, 4, 7], &[1, 0, 2]);
        let joined = Joined::recognize(&first, &second, &dims(&[6, 4, 10])).unwrap();
        assert_eq!(joined, Joined { from: dims(&[240]), perm: vec![0] });
    }

    #[test]
    fn axes_that_straddle_each_other_have_no_common_digits() {
        assert!(common_digits(&dims(&[6, 4]), &dims(&[4, 6])).is_none());
        let digits = common_digits(&dims(&[64, 49]), &dims(&[1, 8, 8, 7, 7])).unwrap();
        let owners: Vec<(usize, usize)> = digits.iter().map(|d| (d.of_first, d.of_second)).collect();
        assert_eq!(owners, [(0, 1), (0, 2), (1, 3), (1, 4)]);
    }

    #[test]
    fn rows_of_a_batch_of_unknown_size_are_joined() {
        let batch = |of: i64| Dim::symbol("N").checked_mul(&Dim::from(of)).unwrap();
        let first =
            Move { from: vec![batch(4), Dim::from(2), Dim::from(9), Dim::from(5)], ..moved(&[1], &[0, 2, 1, 3]) };
        let apart = vec![Dim::symbol("N"), Dim::from(2), Dim::from(2), Dim::from(3), Dim::from(3), Dim::from(10)];
        let second = Move { from: apart, ..moved(&[1], &[0, 1, 3, 2, 4, 5]) };
        let operand = [batch(4), Dim::from(9), Dim::from(10)];
        let joined = Joined::recognize(&first, &second, &operand).unwrap();
        assert_eq!(joined.perm, [0, 3, 1, 4, 2, 5]);
        assert_eq!(joined.from[0], batch(2), "the batch stays beside the outer digit of the windows");
    }

    #[test]
    fn columns_that_move_are_not_joined() {
        let first = moved(&[4, 6, 10], &[1, 0, 2]);
        let second = moved(&[6, 4, 10], &[0, 2, 1]);
        assert!(Joined::recognize(&first, &second, &dims(&[6, 4, 10])).is_none());
    }
}
