//! Index maps: how the axes of a value read the axes of what it is made of.
//!
//! An axis of a value is a list of *digits*, outermost first. Each digit counts along one axis of the source with a stride, or
//! along nothing, if the value repeats there. Transposes permute axes, reshapes join and split digits; nothing else is needed for
//! movement that keeps every element. All functions are exact: one that can't say the map answers `None`.

/// The source axis of a digit that reads nothing.
pub(crate) const REPEAT: u32 = u32::MAX;

/// A digit of an axis: `extent` steps of `stride` along source axis `axis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Digit {
    pub(crate) axis: u32,
    pub(crate) extent: i64,
    pub(crate) stride: i64,
}

impl Digit {
    /// A digit that repeats.
    pub(crate) fn repeat(extent: i64) -> Digit {
        Digit { axis: REPEAT, extent, stride: 0 }
    }

    /// Splits off the inner `inner` steps: (outer, inner).
    pub(crate) fn split(self, inner: i64) -> Option<(Digit, Digit)> {
        if inner <= 0 || self.extent % inner != 0 {
            return None;
        }
        let outer = Digit { extent: self.extent / inner, stride: self.stride * inner, ..self };
        Some((outer, Digit { extent: inner, ..self }))
    }

    /// Whether this digit and the next inner one are one digit.
    pub(crate) fn joins(self, inner: Digit) -> bool {
        self.axis == inner.axis && self.stride == inner.stride * inner.extent
    }
}

/// The digits of each axis.
pub(crate) type View = Vec<Vec<Digit>>;

/// The canonical list of digits: none of extent 1, and none that could be one with its neighbour.
pub(crate) fn normal(digits: impl IntoIterator<Item = Digit>) -> Vec<Digit> {
    let mut list: Vec<Digit> = Vec::new();
    for digit in digits {
        if digit.extent == 1 {
            continue;
        }
        match list.last_mut() {
            Some(last) if last.joins(digit) => *last = Digit { extent: last.extent * digit.extent, ..digit },
            _ => list.push(digit),
        }
    }
    list
}

/// Number of indices of an axis.
pub(crate) fn extent(axis: &[Digit]) -> i64 {
    axis.iter().map(|d| d.extent).product()
}

/// Extents of the axes.
pub(crate) fn shape(view: &View) -> Vec<i64> {
    view.iter().map(|axis| extent(axis)).collect()
}

/// The view of a tensor by itself, of the base axes that are not of extent 1.
pub(crate) fn identity(shape: &[i64]) -> (Vec<i64>, View) {
    let mut base = Vec::new();
    let mut view = Vec::new();
    for &extent in shape {
        view.push(if extent == 1 { Vec::new() } else { vec![Digit { axis: base.len() as u32, extent, stride: 1 }] });
        if extent != 1 {
            base.push(extent);
        }
    }
    (base, view)
}

/// The view of a row-major buffer.
pub(crate) fn row_major(shape: &[i64]) -> View {
    let mut stride = 1;
    let mut view: View = Vec::new();
    for &extent in shape.iter().rev() {
        view.push(normal([Digit { axis: 0, extent, stride }]));
        stride *= extent;
    }
    view.reverse();
    view
}

/// Takes the inner `count` indices off a list of digits. `None` if the border does not lie between digits, or within one at a
/// divisor.
pub(crate) fn take_inner(digits: &mut Vec<Digit>, count: i64) -> Option<Vec<Digit>> {
    let mut taken = Vec::new();
    let mut left = count;
    while left > 1 {
        let digit = digits.pop().filter(|digit| digit.extent > 0)?;
        if left % digit.extent == 0 {
            left /= digit.extent;
            taken.push(digit);
        } else {
            let (outer, inner) = digit.split(left)?;
            digits.push(outer);
            taken.push(inner);
            left = 1;
        }
    }
    taken.reverse();
    Some(normal(taken))
}

/// `count` steps of `stride` of an axis.
pub(crate) fn part(axis: &[Digit], count: i64, stride: i64) -> Option<Vec<Digit>> {
    let mut digits = axis.to_vec();
    if stride < 1 {
        return None;
    }
    take_inner(&mut digits, stride)?;
    let count = if count == -1 { extent(&digits) } else { count };
    if count < 1 {
        return None;
    }
    take_inner(&mut digits, count)
}

/// The same elements in row-major order under other extents.
pub(crate) fn reshape(view: &View, to: &[i64]) -> Option<View> {
    let mut digits = normal(view.iter().flatten().copied());
    let mut axes = Vec::with_capacity(to.len());
    for &count in to.iter().rev() {
        axes.push(take_inner(&mut digits, count)?);
    }
    axes.reverse();
    digits.is_empty().then_some(axes)
}

/// The axes of `outer`, whose digits count along the axes of `inner`, as digits of what those count along.
pub(crate) fn composed(outer: &View, inner: &View) -> Option<View> {
    let through = |digit: &Digit| match digit.axis {
        REPEAT => Some(vec![*digit]),
        axis => part(inner.get(axis as usize)?, digit.extent, digit.stride),
    };
    let axis = |digits: &Vec<Digit>| -> Option<Vec<Digit>> {
        Some(normal(digits.iter().map(through).collect::<Option<Vec<_>>>()?.concat()))
    };
    outer.iter().map(axis).collect()
}

/// The axes that a view counts along, as digits of its own axes; `None` if it has not each index once.
pub(crate) fn inverse(view: &View, base: &[i64]) -> Option<View> {
    let mut read: Vec<Vec<(i64, Digit)>> = vec![Vec::new(); base.len()];
    for (number, digits) in view.iter().enumerate() {
        let mut stride = 1;
        for digit in digits.iter().rev() {
            let own = Digit { axis: number as u32, extent: digit.extent, stride };
            read.get_mut(digit.axis as usize)?.push((digit.stride, own));
            stride *= digit.extent;
        }
    }
    let axis = |(mut digits, &extent): (Vec<(i64, Digit)>, &i64)| {
        digits.sort_by_key(|(stride, _)| -stride);
        let mut left = extent;
        for (stride, digit) in &digits {
            left /= digit.extent;
            if *stride != left {
                return None;
            }
        }
        let count: i64 = digits.iter().map(|(_, digit)| digit.extent).product();
        (left == 1 && count == extent).then(|| normal(digits.into_iter().map(|(_, digit)| digit)))
    };
    read.into_iter().zip(base).map(axis).collect()
}

/// Axes in another order.
pub(crate) fn permute(view: &View, order: &[usize]) -> Option<View> {
    let each_once = order.len() == view.len() && (0..view.len()).all(|axis| order.contains(&axis));
    each_once.then(|| order.iter().map(|&axis| view[axis].clone()).collect())
}

/// The greatest common divisor.
pub(crate) fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reshape_back_is_nothing() {
        let (_, view) = identity(&[2, 6, 5]);
        let split = reshape(&view, &[2, 2, 3, 5]).unwrap();
        assert_eq!(reshape(&split, &[2, 6, 5]), Some(view));
    }

    #[test]
    fn joined_axes_split_where_they_were_joined() {
        let (_, view) = identity(&[4, 3, 5]);
        let turned = permute(&view, &[0, 2, 1]).unwrap();
        let flat = reshape(&turned, &[4, 15]).unwrap();
        assert_eq!(reshape(&flat, &[4, 5, 3]), Some(turned));
        assert_eq!(reshape(&flat, &[4, 3, 5]), None);
    }

    #[test]
    fn a_shuffle_of_channels_differs_from_its_inverse() {
        let (_, view) = identity(&[6]);
        let shuffle = |a, b| {
            let split = reshape(&view, &[a, b]).unwrap();
            reshape(&permute(&split, &[1, 0]).unwrap(), &[6]).unwrap()
        };
        assert_ne!(shuffle(2, 3), shuffle(3, 2));
        assert_ne!(shuffle(2, 3), view);
    }

    #[test]
    fn a_view_and_its_inverse_are_nothing() {
        let (base, view) = identity(&[6, 5, 4]);
        let turned = permute(&reshape(&view, &[2, 3, 5, 4]).unwrap(), &[3, 1, 0, 2]).unwrap();
        let back = inverse(&turned, &base).unwrap();
        assert_eq!(composed(&back, &turned), Some(view));
        assert_eq!(inverse(&turned[1..].to_vec(), &base), None);
    }

    #[test]
    fn orders_that_are_none_are_refused() {
        let (_, view) = identity(&[4, 3]);
        assert_eq!(permute(&view, &[0, 0]), None);
        assert_eq!(permute(&view, &[0]), None);
    }
}
