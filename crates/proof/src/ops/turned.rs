//! Large quantized constants that lie in another order of axes than ones that were looked at before: what they stand for is known.

use crate::terms::quantized::{Quantized, Told};
use crate::terms::value::Value;

/// What `x` stands for, if it is one of these with its axes in another order.
pub(super) fn found(known: &[Quantized], told: Told, axis: Option<usize>, x: &Value) -> Option<Value> {
    let alike = known.iter().filter(|one| one.told == told && one.x.rank() == x.rank() && one.x.count() == x.count());
    alike.into_iter().find_map(|one| {
        orders(x.rank()).iter().filter(|order| axis.map(|axis| order[axis]) == one.axis).find_map(|order| {
            let turned = one.x.permuted(order).filter(|turned| turned.shape() == x.shape())?;
            (turned.all()? == x.all()?).then(|| one.y.permuted(order))?
        })
    })
}

/// All orders of so many axes; those of more than four are only as they are.
fn orders(rank: usize) -> Vec<Vec<usize>> {
    if rank > 4 {
        return vec![(0..rank).collect()];
    }
    let more = |list: Vec<Vec<usize>>, axis: usize| {
        let with = |order: &Vec<usize>, at: usize| [&order[..at], &[axis], &order[at..]].concat();
        list.iter().flat_map(|order| (0..=axis).map(move |at| with(order, at))).collect()
    };
    (0..rank).fold(vec![Vec::new()], more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_all_there_are_and_each_once() {
        let mut all = orders(4);
        all.sort();
        all.dedup();
        assert_eq!((all.len(), orders(0).len(), orders(1).len()), (24, 1, 1));
        assert!(all.iter().all(|order| (0..4).all(|axis| order.contains(&axis))));
    }
}
