//! Storage shapes: the shape with which a value of some layout is written to a file.

use crate::dim::Dim;
use crate::layout::Layout;

/// The shape in which a value of this logical shape and layout is stored, axes outermost first. `None` where the layout is
/// not an order of whole axes.
pub fn storage_shape(shape: &[Dim], layout: &Layout) -> Option<Vec<Dim>> {
    layout.as_permutation()?.iter().map(|&axis| shape.get(axis).cloned()).collect()
}

/// The target of an ONNX Reshape from one storage shape to another with the same elements: numbers, at most one -1, and 0
/// where a symbolic extent stays at its place. `None` where the target can't be said so.
pub fn reshape_target(from: &[Dim], to: &[Dim]) -> Option<Vec<i64>> {
    if to.iter().any(|d| d.as_const() == Some(0)) {
        return None;
    }
    let mut open = false;
    to.iter()
        .enumerate()
        .map(|(i, d)| match d.as_const() {
            Some(n) => Some(n),
            None if from.get(i) == Some(d) => Some(0),
            None if open => None,
            None => {
                open = true;
                Some(-1)
            }
        })
        .collect()
}

/// Whether going from layout `a` to `b` leaves every byte where it is for this shape: they differ in axes of extent 1 only.
pub fn same_bytes(a: &Layout, b: &Layout, shape: &[Dim]) -> bool {
    a == b || a.equivalent(b, shape)
}

/// Place of each logical axis in storage, for a layout that is an order of whole axes.
pub fn places(layout: &Layout) -> Option<Vec<usize>> {
    let order = layout.as_permutation()?;
    let mut places = vec![0; order.len()];
    for (place, &axis) in order.iter().enumerate() {
        *places.get_mut(axis)? = place;
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(text: &[&str]) -> Vec<Dim> {
        text.iter().map(|t| t.parse().unwrap()).collect()
    }

    #[test]
    fn a_reshape_says_symbols_by_their_place_or_once() {
        assert_eq!(reshape_target(&dims(&["N", "4"]), &dims(&["N", "2", "2"])), Some(vec![0, 2, 2]));
        assert_eq!(reshape_target(&dims(&["4", "N"]), &dims(&["N", "4"])), Some(vec![-1, 4]));
        assert_eq!(reshape_target(&dims(&["H", "N"]), &dims(&["N", "H"])), None);
        assert_eq!(reshape_target(&dims(&["0", "N"]), &dims(&["N", "0"])), None);
    }
}
