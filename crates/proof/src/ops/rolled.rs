//! Lists of places that roll images and take them apart into windows, or put windows together and roll the image.
//!
//! Files say that by Slices, Concats and Transposes, or by one Gather. The list of a Gather is read as those, so that its result is the term
//! that they make. A list is read so only if each of its places is what they pick.
//!
//! Absent: images of which rows alone are rolled.

use super::Call;
use super::picks::{listed, pick};
use crate::files::model::Attr;
use crate::terms::pointwise::{Made, back};
use crate::terms::value::Value;

/// Most places of such a list.
const PLACES: usize = 1 << 16;

/// Images whose rows and columns are rolled, and then the digits of places in another order.
struct Rolled {
    /// Images, rows and columns.
    image: [i64; 3],
    /// How far rows and columns are rolled.
    by: [i64; 2],
    /// Extent and stride of each digit, the innermost last.
    digits: Vec<[i64; 2]>,
}

/// These places of an axis, all of them, if they roll an image; `None` if they do not.
pub(super) fn rolled(call: &mut Call<'_>, x: &Value, axis: usize, list: &[i64]) -> Option<Made> {
    let extent = usize::try_from(*x.shape().get(axis)?).ok()?;
    if x.is_constant() || list.len() != extent || extent > PLACES {
        return None;
    }
    let mut inverse = vec![-1; extent];
    for (at, place) in (0..).zip(list) {
        *inverse.get_mut(usize::try_from(*place).ok()?)? = at;
    }
    if inverse.contains(&-1) {
        return None;
    }
    if let Some(found) = Rolled::recognize(list) {
        return Some(found.apart(call, x, axis));
    }
    Rolled::recognize(&inverse).map(|found| found.together(call, x, axis))
}

impl Rolled {
    /// A permutation that starts at the image's first row and column behind those that are rolled.
    fn recognize(list: &[i64]) -> Option<Rolled> {
        let (count, first) = (list.len() as i64, *list.first()?);
        let divisors: Vec<i64> = (1..=count).filter(|d| count % d == 0).collect();
        for &images in &divisors {
            let pixels = count / images;
            for &columns in divisors.iter().rev().filter(|d| **d > 1 && pixels % **d == 0 && **d < pixels) {
                let (image, by) = ([images, pixels / columns, columns], [first / columns, first % columns]);
                if first == 0 || first >= pixels {
                    continue;
                }
                let back = |place: i64| {
                    let (of, row, column) = (place / pixels, place / columns % image[1], place % columns);
                    let [row, column] = [(row - by[0]).rem_euclid(image[1]), (column - by[1]).rem_euclid(columns)];
                    (of * image[1] + row) * columns + column
                };
                if let Some(digits) = digits(count, |at| list.get(usize::try_from(at).ok()?).map(|place| back(*place)))
                {
                    return Some(Rolled { image, by, digits });
                }
            }
        }
        None
    }

    /// Digits by their strides, the largest first: which of `digits` each of them is.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.digits.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.digits[*at][1]));
        order
    }

    /// The image is rolled, and then its digits change places.
    fn apart(&self, call: &mut Call<'_>, x: &Value, axis: usize) -> Made {
        let (shape, order) = (x.shape(), self.order());
        let image = shaped(call, x, &spliced(&shape, axis, &self.image))?;
        let image = roll(call, &image, axis + 1, self.by[0])?;
        let image = roll(call, &image, axis + 2, self.by[1])?;
        let sorted: Vec<i64> = order.iter().map(|at| self.digits[*at][0]).collect();
        let digits = shaped(call, &image, &spliced(&shape, axis, &sorted))?;
        let turned = digits.permuted(&within(shape.len(), axis, &back(&order))).ok_or_else(split)?;
        shaped(call, &turned, &shape)
    }

    /// What was taken apart so is put together, and rolled back.
    fn together(&self, call: &mut Call<'_>, x: &Value, axis: usize) -> Made {
        let (shape, order) = (x.shape(), self.order());
        let own: Vec<i64> = self.digits.iter().map(|digit| digit[0]).collect();
        let windows = shaped(call, x, &spliced(&shape, axis, &own))?;
        let turned = windows.permuted(&within(shape.len(), axis, &order)).ok_or_else(split)?;
        let image = shaped(call, &turned, &spliced(&shape, axis, &self.image))?;
        let [rows, columns] = [1, 2].map(|at| (self.image[at] - self.by[at - 1]) % self.image[at]);
        let image = roll(call, &image, axis + 1, rows)?;
        let image = roll(call, &image, axis + 2, columns)?;
        shaped(call, &image, &shape)
    }
}

fn split() -> String {
    "its axes do not split".to_owned()
}

/// The value with other extents, as a Reshape makes it.
fn shaped(call: &mut Call<'_>, x: &Value, to: &[i64]) -> Made {
    call.terms.moved(x, to).ok_or_else(split)
}

/// A shape with other extents in place of an axis.
fn spliced(shape: &[i64], axis: usize, extents: &[i64]) -> Vec<i64> {
    let mut shape = shape.to_vec();
    shape.splice(axis..=axis, extents.iter().copied());
    shape
}

/// An order of the axes that stand in place of one of so many.
fn within(rank: usize, axis: usize, order: &[usize]) -> Vec<usize> {
    let behind = axis + order.len()..rank - 1 + order.len();
    (0..axis).chain(order.iter().map(|at| axis + at)).chain(behind).collect()
}

/// An axis from a place on, and then what is before it.
fn roll(call: &mut Call<'_>, x: &Value, axis: usize, by: i64) -> Made {
    if by == 0 {
        return Ok(x.clone());
    }
    let extent = x.shape()[axis];
    let tail = pick(call.terms, x, axis, &listed(by, extent - by, 1)?)?;
    let head = pick(call.terms, x, axis, &listed(0, by, 1)?)?;
    call.inner("Concat", &[("axis".to_owned(), Attr::Int(axis as i64))], &[Some(tail), Some(head)])
}

/// The digits in which places count that start at 0; `None` if they do not count in digits, each through all of its extent.
fn digits(count: i64, place: impl Fn(i64) -> Option<i64>) -> Option<Vec<[i64; 2]>> {
    let (mut found, mut block) = (Vec::new(), 1);
    while block < count {
        let stride = place(block).filter(|stride| *stride > 0)?;
        let more = |extent: i64| extent * block < count && place(extent * block) == Some(extent * stride);
        let extent = (1..=count).find(|extent| !more(*extent))?;
        (extent > 1 && count / block % extent == 0).then_some(())?;
        found.insert(0, [extent, stride]);
        block *= extent;
    }
    let mut sorted = found.clone();
    sorted.sort_by_key(|digit| digit[1]);
    let whole = sorted.iter().try_fold(1, |below, [extent, stride]| (*stride == below).then_some(below * extent))?;
    let at = |mut at: i64| {
        let of_digit = |[extent, stride]: &[i64; 2]| {
            let digit = at % extent;
            at /= extent;
            digit * stride
        };
        found.iter().rev().map(of_digit).sum::<i64>()
    };
    let counted = whole == count && (0..count).all(|i| place(i) == Some(at(i)));
    counted.then_some(found)
}
