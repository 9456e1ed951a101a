//! Arithmetic on extents for inference: what can't be expressed is an anonymous dim, never an overflow.

use super::{InferContext, MAX_RANK};
use crate::dim::Dim;
use crate::types::Shape;

/// How a window runs along one axis.
#[derive(Clone, Debug)]
pub(in crate::op) struct Window {
    /// Elements that the window spans along the axis before dilation; `None` if not known.
    pub(in crate::op) kernel: Option<i64>,
    /// Step, at least 1.
    pub(in crate::op) stride: i64,
    /// Step within the window, at least 1.
    pub(in crate::op) dilation: i64,
    /// Padding before and after.
    pub(in crate::op) pads: (i64, i64),
    /// What replaces `pads`.
    pub(in crate::op) auto: AutoPad,
    /// Whether a last, partial window counts.
    pub(in crate::op) ceil: bool,
}

/// ONNX's `auto_pad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::op) enum AutoPad {
    /// `pads` says it.
    NotSet,
    /// Results have `ceil(extent / stride)` elements.
    Same,
    /// No padding.
    Valid,
}

impl Window {
    /// Extent of the result of the transposed convolution with this window, `extra` elements longer at its end.
    pub(in crate::op) fn places_of_transposed(&self, extent: &Dim, extra: i64) -> Option<Dim> {
        if self.auto == AutoPad::Same {
            return extent.checked_mul(&Dim::from(self.stride));
        }
        let span = (self.kernel? - 1).checked_mul(self.dilation)?.checked_add(1)?;
        let (before, after) = if self.auto == AutoPad::Valid { (0, 0) } else { self.pads };
        let rest = span.checked_add(extra)?.checked_sub(before)?.checked_sub(after)?.checked_sub(self.stride)?;
        extent.checked_mul(&Dim::from(self.stride))?.checked_add(&Dim::from(rest))
    }
}

/// Whether no value of its symbols makes it negative, as far as its spelling shows: nothing is subtracted in it, and no number
/// of unknown sign is in it.
pub(in crate::op) fn is_extent(d: &Dim) -> bool {
    d.as_const().map_or_else(|| !d.to_string().contains(['-', '~']), |c| c >= 0)
}

/// `a / b` as ONNX divides integers, towards zero.
pub(in crate::op) fn quotient(a: &Dim, b: &Dim) -> Option<Dim> {
    match (a.as_const(), b.as_const()) {
        (Some(a), Some(b)) => a.checked_div(b).map(Dim::from),
        (None, Some(b)) if b > 0 => a.exact_div(&Dim::from(b)).or_else(|| {
            // Down and towards zero are the same for what can't be negative.
            is_extent(a).then(|| a.checked_floor_div(b)).flatten()
        }),
        _ => a.exact_div(b),
    }
}

/// Two extents that the op requires to be equal: the one that is known better.
pub(in crate::op) fn agree(a: &Dim, b: &Dim, what: &str) -> Result<Dim, String> {
    match (a.as_const(), b.as_const()) {
        (Some(x), Some(y)) if x != y => Err(format!("{what} differ: {x} and {y}")),
        (None, Some(_)) => Ok(b.clone()),
        _ => Ok(a.clone()),
    }
}

impl InferContext<'_> {
    /// `a + b`.
    pub(in crate::op) fn add(&mut self, a: &Dim, b: &Dim) -> Dim {
        a.checked_add(b).unwrap_or_else(|| self.unknown())
    }

    /// `a * b`.
    pub(in crate::op) fn mul(&mut self, a: &Dim, b: &Dim) -> Dim {
        a.checked_mul(b).unwrap_or_else(|| self.unknown())
    }

    /// Product of all.
    pub(in crate::op) fn product(&mut self, dims: &[Dim]) -> Dim {
        Dim::product(dims).unwrap_or_else(|| self.unknown())
    }

    /// `a / b` where it divides, else unknown.
    pub(in crate::op) fn divide(&mut self, a: &Dim, b: &Dim) -> Dim {
        a.exact_div(b).unwrap_or_else(|| self.unknown())
    }

    /// One axis of a NumPy broadcast.
    fn broadcast_dim(&mut self, a: &Dim, b: &Dim) -> Result<Dim, String> {
        if a == b || b.is_one() {
            return Ok(a.clone());
        }
        match (a.as_const(), b.as_const()) {
            // Whether the symbol is 1 or the same as the number, the result is the number.
            (Some(1), _) | (None, Some(_)) => Ok(b.clone()),
            (Some(_), None) => Ok(a.clone()),
            (Some(x), Some(y)) => Err(format!("extents {x} and {y} do not broadcast")),
            (None, None) => Ok(self.unknown()),
        }
    }

    /// NumPy broadcast of shapes; `None` if a rank is not known.
    pub(in crate::op) fn broadcast(&mut self, shapes: &[Option<&[Dim]>]) -> Result<Option<Shape>, String> {
        let Some(shapes) = shapes.iter().copied().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let mut result: Shape = Vec::new();
        for shape in shapes {
            let (long, short) = if shape.len() > result.len() { (shape, result.as_slice()) } else { (&*result, shape) };
            let head = long.len() - short.len();
            let mut next = long[..head].to_vec();
            for (a, b) in long[head..].iter().zip(short) {
                next.push(self.broadcast_dim(a, b)?);
            }
            result = next;
        }
        check_rank(result.len())?;
        Ok(Some(result))
    }

    /// A list attribute with one entry per axis (or `runs` of them), or its default.
    pub(in crate::op) fn per_axis(&self, name: &str, entries: usize, default: i64) -> Result<Vec<i64>, String> {
        match self.node.ints(name) {
            None => Ok(vec![default; entries]),
            Some(v) if v.len() == entries => Ok(v.to_vec()),
            Some(v) => Err(format!("`{name}` has {} entries, needs {entries}", v.len())),
        }
    }

    /// `auto_pad`.
    pub(in crate::op) fn auto_pad(&self) -> Result<AutoPad, String> {
        match self.node.str("auto_pad") {
            None | Some("NOTSET" | "") => Ok(AutoPad::NotSet),
            Some("SAME_UPPER" | "SAME_LOWER") => Ok(AutoPad::Same),
            Some("VALID") => Ok(AutoPad::Valid),
            Some(other) => Err(format!("auto_pad `{other}` is not one that ONNX has")),
        }
    }

    /// Windows over `axes` spatial axes from the attributes that Conv and the pools share.
    pub(in crate::op) fn windows(&self, kernel: &[Option<i64>]) -> Result<Vec<Window>, String> {
        let axes = kernel.len();
        let strides = self.per_axis("strides", axes, 1)?;
        let dilations = self.per_axis("dilations", axes, 1)?;
        let pads = self.per_axis("pads", 2 * axes, 0)?;
        let (auto, ceil) = (self.auto_pad()?, self.int("ceil_mode", 0) != 0);
        if let Some(bad) = strides.iter().chain(&dilations).chain(kernel.iter().flatten()).find(|v| **v < 1) {
            return Err(format!("a stride, dilation or kernel extent is {bad}"));
        }
        let window = |i: usize| Window {
            kernel: kernel[i],
            stride: strides[i],
            dilation: dilations[i],
            pads: (pads[i], pads[axes + i]),
            auto,
            ceil,
        };
        Ok((0..axes).map(window).collect())
    }

    /// Number of places of a window along an axis of this extent.
    pub(in crate::op) fn window_extent(&mut self, extent: &Dim, w: &Window) -> Result<Dim, String> {
        let places = match (w.auto, w.kernel) {
            (AutoPad::Same, _) => extent.checked_ceil_div(w.stride),
            (_, None) => None,
            (_, Some(kernel)) => places(extent, kernel, w)?,
        };
        Ok(places.unwrap_or_else(|| self.unknown()))
    }
}

fn places(extent: &Dim, kernel: i64, w: &Window) -> Result<Option<Dim>, String> {
    let Some(span) = (kernel - 1).checked_mul(w.dilation).and_then(|s| s.checked_add(1)) else { return Ok(None) };
    let (before, after) = if w.auto == AutoPad::Valid { (0, 0) } else { w.pads };
    let Some(slack) = before.checked_add(after).and_then(|p| p.checked_sub(span)) else { return Ok(None) };
    let Some(room) = extent.checked_add(&Dim::from(slack)) else { return Ok(None) };
    if room.as_const().is_some_and(|r| r < 0) {
        return Err(format!("a window of {span} does not fit extent {extent} with padding {before} and {after}"));
    }
    let steps = if w.ceil { room.checked_ceil_div(w.stride) } else { room.checked_floor_div(w.stride) };
    let Some(count) = steps.and_then(|s| s.checked_add(&Dim::ONE)) else { return Ok(None) };
    if !w.ceil || w.stride == 1 {
        return Ok(Some(count));
    }
    // A window that would start in the padding after the data does not count.
    match (count.as_const(), extent.as_const()) {
        (Some(count), Some(extent)) => {
            let last = (count - 1).checked_mul(w.stride);
            Ok(last.map(|last| Dim::from(if last >= extent.saturating_add(before) { count - 1 } else { count })))
        }
        _ if after.checked_add(w.stride).is_some_and(|reach| reach <= span) => Ok(Some(count)),
        _ => Ok(None),
    }
}

/// Refuses ranks that no layout could number.
pub(in crate::op) fn check_rank(rank: usize) -> Result<(), String> {
    (rank <= MAX_RANK).then_some(()).ok_or_else(|| format!("the result would have {rank} axes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(kernel: i64, stride: i64, dilation: i64, pads: (i64, i64), ceil: bool) -> Window {
        Window { kernel: Some(kernel), stride, dilation, pads, auto: AutoPad::NotSet, ceil }
    }

    #[test]
    fn a_partial_last_window_counts_only_where_it_starts_in_the_data() {
        let cases = [
            (window(3, 2, 1, (0, 0), true), 4, 2),
            (window(3, 2, 1, (0, 0), false), 4, 1),
            (window(1, 2, 1, (0, 0), true), 2, 1),
            (window(2, 3, 1, (0, 1), true), 6, 2),
            (window(3, 2, 2, (1, 1), false), 10, 4),
        ];
        for (w, extent, expected) in cases {
            let found = places(&Dim::from(extent), w.kernel.unwrap(), &w).unwrap();
            assert_eq!(found, Some(Dim::from(expected)), "{w:?} over {extent}");
        }
    }

    #[test]
    fn a_symbolic_partial_window_is_known_only_where_it_must_start_in_the_data() {
        let h = Dim::symbol("H");
        assert_eq!(places(&h, 3, &window(3, 2, 1, (0, 0), true)).unwrap(), "H//2".parse().ok());
        assert_eq!(places(&h, 3, &window(3, 2, 1, (1, 1), true)).unwrap(), "H//2+1".parse().ok());
        assert_eq!(places(&h, 2, &window(2, 2, 1, (1, 1), true)).unwrap(), None);
        assert_eq!(places(&h, 3, &window(3, 2, 1, (1, 1), false)).unwrap(), "(H+1)//2".parse().ok());
    }

    #[test]
    fn division_of_extents_rounds_towards_zero_or_is_not_known() {
        let h = Dim::symbol("H");
        assert_eq!(quotient(&Dim::from(-7), &Dim::from(2)), Some(Dim::from(-3)));
        assert_eq!(quotient(&h, &Dim::from(2)), "H//2".parse().ok());
        assert_eq!(quotient(&h.checked_sub(&Dim::from(3)).unwrap(), &Dim::from(2)), None);
        assert_eq!(quotient(&Dim::from(i64::MIN), &Dim::from(-1)), None);
        assert_eq!(quotient(&h, &Dim::ZERO), None);
    }
}
