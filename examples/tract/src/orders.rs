//! Orders of axes, and tract's ops that move one axis at a time.

use tract_core::internal::*;

/// How a tensor lies: place `i` has axis `order[i]` of the tensor that it was in the model.
pub type Order = Vec<usize>;

/// The order in which nothing is moved.
pub fn plain(rank: usize) -> Order {
    (0..rank).collect()
}

/// Whether nothing is moved.
pub fn is_plain(order: &[usize]) -> bool {
    order.iter().enumerate().all(|(place, axis)| place == *axis)
}

/// The list with what was at place `from` at place `to`.
fn moved(order: &[usize], from: usize, to: usize) -> Order {
    let mut order = order.to_vec();
    let axis = order.remove(from);
    order.insert(to, axis);
    order
}

/// The moves that bring a plain tensor into this order: one if one is enough.
pub fn moves(order: &[usize]) -> Vec<AxisOp> {
    let rank = order.len();
    let start = plain(rank);
    if is_plain(order) {
        return Vec::new();
    }
    let pairs = (0..rank).flat_map(|from| (0..rank).map(move |to| (from, to)));
    if let Some((from, to)) = pairs.into_iter().find(|(from, to)| moved(&start, *from, *to) == order) {
        return vec![AxisOp::Move(from, to)];
    }
    let (mut now, mut list) = (start, Vec::new());
    for (place, axis) in order.iter().enumerate() {
        let from = now.iter().position(|a| a == axis).unwrap_or(place);
        if from != place {
            list.push(AxisOp::Move(from, place));
            now = moved(&now, from, place);
        }
    }
    list
}

/// The moves from one order into another.
pub fn between(from: &[usize], to: &[usize]) -> Option<Vec<AxisOp>> {
    let relative: Option<Order> = to.iter().map(|axis| from.iter().position(|a| a == axis)).collect();
    relative.filter(|relative| relative.len() == from.len()).map(|relative| moves(&relative))
}

/// The order after these moves; `None` if one of them is no move.
pub fn after(rank: usize, moves: &[AxisOp]) -> Option<Order> {
    moves.iter().try_fold(plain(rank), |order, step| match step {
        AxisOp::Move(from, to) if *from < rank && *to < rank => Some(moved(&order, *from, *to)),
        _ => None,
    })
}

/// What belongs to the axes of a plain tensor, in this order.
pub fn pick<T: Clone>(list: &[T], order: &[usize]) -> Option<Vec<T>> {
    order.iter().map(|axis| list.get(*axis).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_last_is_one_move_and_moves_lead_to_the_order_asked_for() {
        assert_eq!(moves(&[0, 2, 3, 1]), [AxisOp::Move(1, 3)]);
        assert_eq!(moves(&[0, 3, 1, 2]), [AxisOp::Move(3, 1)]);
        for order in [[2, 0, 3, 1], [3, 2, 1, 0], [1, 0, 3, 2], [0, 1, 2, 3]] {
            assert_eq!(after(4, &moves(&order)), Some(order.to_vec()));
        }
    }

    #[test]
    fn moves_between_two_orders_undo_the_first() {
        assert_eq!(between(&[0, 2, 3, 1], &[0, 1, 2, 3]), Some(vec![AxisOp::Move(3, 1)]));
        assert_eq!(between(&[0, 2, 1], &[0, 2, 1]), Some(Vec::new()));
        assert_eq!(between(&[0, 1], &[0, 2]), None);
    }
}
