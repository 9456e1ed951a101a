//! The same layouts as others write them: shapes and strides of CuTe, and bits of linear layouts.
//!
//! Both are exact or refused. A layout of CuTe may repeat elements or leave gaps, and a linear layout may mix bits; this
//! algebra has neither, so they are read only where each element has one place and no place is left over. Pad slots, which
//! this algebra has, are in neither.

use super::parse::{error, number};
use super::{BoundLayout, Factor, Layout, LayoutError, MAX_STORAGE_ELEMS};

/// Most parentheses inside of each other that are read.
const DEPTH: usize = 32;

impl BoundLayout {
    /// Shape and strides as CuTe writes them: a mode for each axis in order, its digits from the finest on; `None` with pad slots.
    ///
    /// ```
    /// use relayout_layout::Layout;
    /// let blocked: Layout = "NCHW16c".parse()?;
    /// assert_eq!(blocked.bind(&[1, 32, 7, 7])?.to_cute().unwrap(), "(1,(16,2),7,7):(1568,(1,784),112,16)");
    /// # Ok::<(), relayout_layout::LayoutError>(())
    /// ```
    pub fn to_cute(&self) -> Option<String> {
        let listed = |of: fn(&super::BoundFactor) -> u64| {
            let modes = (0..self.shape().len()).map(|axis| {
                let digits = self.digits(axis).into_iter().map(|digit| of(&digit).to_string()).collect::<Vec<_>>();
                if digits.len() == 1 { digits.concat() } else { format!("({})", digits.join(",")) }
            });
            format!("({})", modes.collect::<Vec<_>>().join(","))
        };
        (!self.is_padded()).then(|| format!("{}:{}", listed(|digit| digit.extent), listed(|digit| digit.stride)))
    }

    /// For each bit of the offset, from the lowest on, the bit of an index that it is, as `(axis, bit)`: the columns of the linear
    /// layout, each of which has a single one. `None` if an extent is no power of two, or with pad slots.
    ///
    /// ```
    /// use relayout_layout::Layout;
    /// let tiles: Layout = "M/2 N M%2".parse()?;
    /// // Rows in pairs: the lowest bit is that of the row.
    /// assert_eq!(tiles.bind(&[4, 2])?.to_bits().unwrap(), [(0, 0), (1, 0), (0, 1)]);
    /// # Ok::<(), relayout_layout::LayoutError>(())
    /// ```
    pub fn to_bits(&self) -> Option<Vec<(usize, u32)>> {
        let mut bits = Vec::new();
        for factor in self.factors().iter().rev() {
            if self.is_padded() || !factor.extent.is_power_of_two() || !factor.div.is_power_of_two() {
                return None;
            }
            let first = factor.div.trailing_zeros();
            bits.extend((first..first + factor.extent.trailing_zeros()).map(|bit| (factor.axis, bit)));
        }
        Some(bits)
    }

    /// The digits of an axis from the finest on.
    fn digits(&self, axis: usize) -> Vec<super::BoundFactor> {
        let mut digits: Vec<_> = self.factors().iter().filter(|factor| factor.axis == axis).copied().collect();
        digits.sort_by_key(|digit| digit.div);
        digits
    }
}

impl Layout {
    /// The layout and the shape of what CuTe writes `shape:strides`, an axis for each mode.
    ///
    /// ```
    /// use relayout_layout::Layout;
    /// let (layout, shape) = Layout::from_cute("(1,(16,2),7,7):(1568,(1,784),112,16)")?;
    /// assert_eq!((layout.to_string(), shape), ("NCHW16c".to_owned(), vec![1, 32, 7, 7]));
    /// # Ok::<(), relayout_layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// It is no such text; or elements share a place or leave one out, as with strides of 0 or larger than what lies inside.
    pub fn from_cute(text: &str) -> Result<(Layout, Vec<i64>), LayoutError> {
        let (extents, strides) = text.split_once(':').ok_or_else(|| error(text, "has no `:` before its strides"))?;
        let [extents, strides] = [extents, strides].map(|part| modes(text, part));
        let (extents, strides) = (extents?, strides?);
        let lengths = |modes: &[Vec<u64>]| modes.iter().map(Vec::len).collect::<Vec<_>>();
        if lengths(&extents) != lengths(&strides) {
            return Err(error(text, "has other strides than extents"));
        }
        let (mut shape, mut digits) = (Vec::new(), Vec::new());
        for (axis, (extents, strides)) in extents.iter().zip(&strides).enumerate() {
            let axis = u8::try_from(axis).map_err(|_| LayoutError::RankTooLarge { rank: axis })?;
            let mut span = 1_u64;
            for (&extent, &stride) in extents.iter().zip(strides) {
                if extent == 0 {
                    return Err(error(text, "has an extent of 0, which says nothing about strides"));
                }
                // A digit of one value is nowhere, but for the axis that has no other.
                if extent != 1 {
                    digits.push((stride, axis, span, extent));
                }
                span =
                    span.checked_mul(extent).filter(|span| *span <= MAX_STORAGE_ELEMS).ok_or(LayoutError::TooLarge)?;
            }
            if span == 1 {
                digits.push((*strides.last().unwrap_or(&1), axis, 1, 1));
            }
            shape.push(i64::try_from(span).map_err(|_| LayoutError::TooLarge)?);
        }
        // An axis of one element lies outside of what has its stride.
        digits.sort_by_key(|&(stride, axis, _, extent)| (stride, extent == 1, std::cmp::Reverse(axis)));
        let mut inside = 1_u64;
        for &(stride, _, _, extent) in digits.iter().filter(|digit| digit.3 != 1) {
            if stride != inside {
                return Err(error(
                    text,
                    format!("has the stride {stride} around {inside} elements; views may, layouts may not"),
                ));
            }
            inside = inside.checked_mul(extent).ok_or(LayoutError::TooLarge)?;
        }
        let outermost = |axis: u8, div: u64| !digits.iter().any(|&(_, other, above, _)| other == axis && above > div);
        let factors = digits.iter().rev().map(|&(_, axis, div, extent)| Factor {
            axis,
            div,
            modulo: (!outermost(axis, div)).then_some(extent),
        });
        Ok((Layout::new(shape.len(), factors, [])?, shape))
    }
}

/// The numbers of each mode, those inside of others in their order.
fn modes(whole: &str, text: &str) -> Result<Vec<Vec<u64>>, LayoutError> {
    let (mut modes, mut depth, mut rest) = (Vec::<Vec<u64>>::new(), 0_usize, text.trim());
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '(' if depth < DEPTH => {
                depth += 1;
                if depth == 2 {
                    modes.push(Vec::new());
                }
                1
            }
            ')' if depth > 0 => {
                depth -= 1;
                1
            }
            ',' | ' ' => 1,
            '0'..='9' => {
                let length = rest.bytes().take_while(u8::is_ascii_digit).count();
                let value = number(&rest[..length]).ok_or_else(|| error(whole, "has a number that is too large"))?;
                match modes.last_mut().filter(|_| depth > 1) {
                    Some(mode) => mode.push(value),
                    None => modes.push(vec![value]),
                }
                length
            }
            _ => return Err(error(whole, format!("has `{first}`, which is not a part of a shape"))),
        };
        rest = &rest[taken..];
    }
    if depth != 0 || modes.iter().any(Vec::is_empty) {
        return Err(error(whole, "has parentheses that do not close, or nothing between them"));
    }
    Ok(modes)
}
