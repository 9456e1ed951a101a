//! Layouts by their spelling.

use relayout::codegen::Order;
use relayout::ir::layout::{Layout, LayoutError};

use crate::Status;

/// The order of the digits of a layout, for a shape whose axes are in the order of the layout's letters.
pub(crate) fn order(text: &str, shape: &[usize]) -> Result<Order, Status> {
    let layout: Layout = text.parse().map_err(|_| Status::BadLayout)?;
    let signed: Vec<i64> =
        shape.iter().map(|&extent| i64::try_from(extent)).collect::<Result<_, _>>().map_err(|_| Status::BadSize)?;
    Order::new(&layout, &signed).map_err(|error| match error {
        LayoutError::TooLarge => Status::BadSize,
        _ => Status::BadLayout,
    })
}

#[cfg(test)]
mod tests {
    use super::order;
    use crate::Status;
    use relayout::codegen::Order;

    #[test]
    fn spellings_become_orders() {
        let shape = [2, 20, 3, 5];
        let same = |text: &str, want: Order| {
            let found = order(text, &shape).expect("a layout");
            assert_eq!(found.digits, want.digits, "{text}");
        };
        same("NCHW", Order::dense(&shape));
        same("NHWC", Order::permuted(&shape, &[0, 2, 3, 1]));
        for text in ["NCHW16c", "nChw16c", "aBcd16b", "N C/16 H W C%16"] {
            same(text, Order::blocked(&shape, 1, 16));
        }
    }

    #[test]
    fn what_spells_none_or_another_rank_is_refused() {
        for text in ["", "QQ", "NCHWD5x", "NC", "N C/16 H W"] {
            assert_eq!(order(text, &[2, 20, 3, 5]), Err(Status::BadLayout), "{text}");
        }
    }
}
