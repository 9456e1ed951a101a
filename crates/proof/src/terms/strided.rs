//! Elements of buffers in an order of their own, and walks through several of them at once.
//!
//! A walk visits each element once. Its order is free, so it is one that reads whole lines of memory: its inner steps are the
//! smallest ones of one operand, some at a time, and around them go those of another one.

use bytes::Bytes;
use std::cmp::Reverse;

/// (extent, stride in elements) of each axis, outermost first.
pub(crate) type Dims = Vec<(i64, i64)>;

/// Most elements that are copied of a buffer with fewer: what a few bytes of a file say a million times stays small.
pub(crate) const COPIED: i64 = 1 << 22;

/// Most elements of one run of a walk, of four bytes or more each.
pub(crate) const RUN: usize = 64;

/// Some elements of a buffer, in the order of their axes.
#[derive(Clone, Debug)]
pub(crate) struct Elements {
    pub(crate) data: Bytes,
    pub(crate) first: i64,
    pub(crate) dims: Dims,
    /// Bytes of an element.
    pub(crate) width: usize,
}

/// A loop over several operands: the number of its steps, and how far each operand goes with one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop<const N: usize> {
    extent: i64,
    strides: [i64; N],
}

/// Elements of a walk that follow each other: where each operand starts, and how far it goes with a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<const N: usize> {
    pub(crate) at: [usize; N],
    pub(crate) count: usize,
    pub(crate) strides: [usize; N],
}

impl Elements {
    /// `None` if some of them lie outside of the buffer, or if their width is none of a number.
    pub(crate) fn new(
        data: &Bytes,
        first: i64,
        dims: impl IntoIterator<Item = (i64, i64)>,
        width: usize,
    ) -> Option<Elements> {
        let dims: Dims = dims.into_iter().collect();
        dims.iter().try_fold(1_i64, |count, dim| count.checked_mul(dim.0))?;
        let dims = merged(dims);
        let reach = |at: i64, &(extent, stride): &(i64, i64)| {
            let last = extent.checked_sub(1)?.checked_mul(stride)?;
            (extent >= 0 && stride >= 0).then(|| at.checked_add(last))?
        };
        let end = dims.iter().try_fold(first, reach)?.checked_add(1)?;
        let bytes = usize::try_from(end).ok()?.checked_mul(width)?;
        let fits = first >= 0 && bytes <= data.len() && matches!(width, 1 | 2 | 4 | 8);
        fits.then(|| Elements { data: data.clone(), first, dims, width })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> i64 {
        self.dims.iter().map(|dim| dim.0).product()
    }

    /// The bytes of the element with this number.
    pub(crate) fn at(&self, mut number: i64) -> &[u8] {
        let mut place = self.first;
        for (extent, stride) in self.dims.iter().rev() {
            place += number % extent * stride;
            number /= extent;
        }
        &self.data[place as usize * self.width..(place as usize + 1) * self.width]
    }

    /// All of them one after the other; they are copied if they do not lie so. `None` for more than [`COPIED`] that the buffer has not.
    pub(crate) fn dense(&self) -> Option<Bytes> {
        self.dense_within(COPIED)
    }

    /// The same with another limit.
    pub(crate) fn dense_within(&self, most: i64) -> Option<Bytes> {
        let count = self.count();
        if self.dims.is_empty() || matches!(self.dims.as_slice(), [(_, 1)]) {
            let start = self.first as usize * self.width;
            return Some(self.data.slice(start..start + count as usize * self.width));
        }
        if count > most && count as usize > self.data.len() / self.width {
            return None;
        }
        let mut out = vec![0; count as usize * self.width];
        match self.width {
            1 => self.copy::<1>(&mut out),
            2 => self.copy::<2>(&mut out),
            4 => self.copy::<4>(&mut out),
            _ => self.copy::<8>(&mut out),
        }
        Some(out.into())
    }

    fn copy<const WIDTH: usize>(&self, out: &mut [u8]) {
        let (from, to) = (self.data.as_chunks::<WIDTH>().0, out.as_chunks_mut::<WIDTH>().0);
        let loops = common([&self.dims, &[(self.count(), 1)]]).unwrap_or_default();
        walk(loops, [self.first, 0], longest(WIDTH), &mut |run: Run<2>| {
            let ([i, j], [step, next]) = (run.at, run.strides);
            match step {
                _ if next != 1 => (0..run.count).for_each(|n| to[j + n * next] = from[i + n * step]),
                1 => to[j..j + run.count].copy_from_slice(&from[i..i + run.count]),
                0 => to[j..j + run.count].fill(from[i]),
                _ => to[j..j + run.count].iter_mut().zip(stepped(from, i, step)).for_each(|(to, x)| *to = *x),
            }
            true
        });
    }

    /// Whether all bytes of all elements are zero.
    pub(crate) fn zero(&self) -> bool {
        self.every(|bytes| bytes.iter().all(|byte| *byte == 0))
    }

    /// Whether this holds of the bytes of all elements, of which it gets some at a time, each element once or more often.
    pub(crate) fn every(&self, holds: impl Fn(&[u8]) -> bool) -> bool {
        let mut distinct: Dims = self.dims.iter().copied().filter(|dim| dim.1 != 0).collect();
        // In the order in which they lie, whatever the order of the axes.
        distinct.sort_by_key(|dim| Reverse(dim.1));
        let loops = common([&merged(distinct)]).unwrap_or_default();
        walk(loops, [self.first], longest(self.width), &mut |run: Run<1>| {
            let bytes = |at: usize, count: usize| &self.data[at * self.width..(at + count) * self.width];
            if run.strides == [1] {
                return holds(bytes(run.at[0], run.count));
            }
            (0..run.count).all(|n| holds(bytes(run.at[0] + n * run.strides[0], 1)))
        })
    }
}

/// Neighbouring axes that lie as one axis, as one axis.
fn merged(dims: impl IntoIterator<Item = (i64, i64)>) -> Dims {
    let mut list = Dims::new();
    for (extent, stride) in dims {
        match list.last_mut() {
            _ if extent == 0 => return vec![(0, 1)],
            _ if extent == 1 => {}
            Some(outer) if outer.1 == stride * extent => *outer = (outer.0 * extent, stride),
            _ => list.push((extent, stride)),
        }
    }
    list
}

/// Two arrays with their axes in another order, the same for both: that in which the second one lies. `None` if borders of one lie
/// across those of the other.
pub(crate) fn in_order(a: &Elements, b: &Elements) -> Option<(Elements, Elements)> {
    let mut loops = common([&a.dims, &b.dims])?;
    loops.sort_by_key(|one| Reverse(one.strides[1]));
    let turned = |of: &Elements, at: usize| {
        let dims = merged(loops.iter().map(|one| (one.extent, one.strides[at])));
        Elements { dims, ..of.clone() }
    };
    Some((turned(a, 0), turned(b, 1)))
}

/// Elements are equal if they have the same bytes in the same order.
impl PartialEq for Elements {
    fn eq(&self, other: &Elements) -> bool {
        if self.width != other.width || self.count() != other.count() {
            return false;
        }
        match self.width {
            1 => same::<1>(self, other),
            2 => same::<2>(self, other),
            4 => same::<4>(self, other),
            _ => same::<8>(self, other),
        }
    }
}

fn same<const WIDTH: usize>(a: &Elements, b: &Elements) -> bool {
    let Some(loops) = common([&a.dims, &b.dims]) else {
        return a.dense().zip(b.dense()).is_some_and(|(a, b)| a == b);
    };
    let (left, right) = (a.data.as_chunks::<WIDTH>().0, b.data.as_chunks::<WIDTH>().0);
    walk(loops, [a.first, b.first], longest(WIDTH), &mut |run: Run<2>| {
        let ([i, j], count) = (run.at, run.count);
        match run.strides {
            [1, 1] => left[i..i + count] == right[j..j + count],
            [step @ 0, next] | [step, next @ 0] => (0..count).all(|n| left[i + n * step] == right[j + n * next]),
            [step, 1] => alike(stepped(left, i, step).zip(&right[j..j + count])),
            [1, next] => alike(left[i..i + count].iter().zip(stepped(right, j, next))),
            [step, next] => alike(stepped(left, i, step).zip(stepped(right, j, next)).take(count)),
        }
    })
}

/// Whether pairs are equal, without a branch for each.
fn alike<'l, T: PartialEq + 'l>(pairs: impl Iterator<Item = (&'l T, &'l T)>) -> bool {
    pairs.fold(0, |others, (x, y)| others | u32::from(x != y)) == 0
}

/// Elements of a list from a place on, this far apart: one at least.
pub(crate) fn stepped<T>(list: &[T], at: usize, step: usize) -> impl Iterator<Item = &T> {
    list[at..].iter().step_by(step)
}

/// Loops over operands with the same number of elements each; `None` if a border of one lies across one of another.
pub(crate) fn common<const N: usize>(lists: [&[(i64, i64)]; N]) -> Option<Vec<Loop<N>>> {
    let mut lists = lists.map(|dims| dims.iter().copied().filter(|dim| dim.0 != 1).collect::<Dims>());
    let mut loops: Vec<Loop<N>> = Vec::new();
    while lists.iter().any(|list| !list.is_empty()) {
        let extent = lists.iter().map(|list| list.last().map_or(1, |dim| dim.0)).min()?;
        let mut strides = [0; N];
        for (list, step) in lists.iter_mut().zip(&mut strides) {
            let (all, stride) = list.pop()?;
            if all != extent && (extent == 0 || all % extent != 0) {
                return None;
            }
            if all > extent {
                list.push((all / extent, stride * extent));
            }
            *step = stride;
        }
        match loops.last_mut() {
            Some(inner) if strides.iter().zip(inner.strides).all(|(outer, step)| *outer == step * inner.extent) => {
                inner.extent *= extent;
            }
            _ => loops.push(Loop { extent, strides }),
        }
    }
    loops.reverse();
    Some(loops)
}

/// How many elements of so many bytes a run has at most.
fn longest(width: usize) -> usize {
    RUN * 4 / width.min(4)
}

/// Calls `run` with runs of at most `most` elements, until it answers no. Whether it never did.
pub(crate) fn walk<const N: usize>(
    mut loops: Vec<Loop<N>>,
    first: [i64; N],
    most: usize,
    run: &mut impl FnMut(Run<N>) -> bool,
) -> bool {
    let smallest = |operand: usize| {
        let step = |at: &usize| (loops[*at].strides[operand], Reverse(loops[*at].extent));
        (0..loops.len()).min_by_key(step)
    };
    let (Some(of_first), Some(of_last)) = (smallest(0), smallest(N - 1)) else {
        return visit(&[], first, Loop { extent: 1, strides: [0; N] }, run);
    };
    // Short runs cost more than they save.
    let last = loops[of_last].extent >= loops[of_first].extent;
    let (inner, around) = if last { (of_last, 0) } else { (of_first, N - 1) };
    let inner = loops.remove(inner);
    loops.sort_by_key(|outer| Reverse(outer.strides[around]));
    (0..inner.extent).step_by(most).all(|start| {
        let tile = Loop { extent: (inner.extent - start).min(most as i64), ..inner };
        visit(&loops, moved(first, &inner, start), tile, run)
    })
}

fn moved<const N: usize>(mut at: [i64; N], by: &Loop<N>, steps: i64) -> [i64; N] {
    at.iter_mut().zip(by.strides).for_each(|(place, stride)| *place += stride * steps);
    at
}

fn visit<const N: usize>(
    outer: &[Loop<N>],
    at: [i64; N],
    inner: Loop<N>,
    run: &mut impl FnMut(Run<N>) -> bool,
) -> bool {
    match outer {
        [] => run(Run {
            at: at.map(|place| place as usize),
            count: inner.extent as usize,
            strides: inner.strides.map(|stride| stride as usize),
        }),
        [next, rest @ ..] => (0..next.extent).all(|step| visit(rest, moved(at, next, step), inner, run)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of 16 bits in a buffer.
    fn elements(count: u16, first: i64, dims: &[(i64, i64)]) -> Elements {
        let data: Vec<u8> = (0..count).flat_map(u16::to_le_bytes).collect();
        Elements::new(&data.into(), first, dims.iter().copied(), 2).unwrap()
    }

    /// The same one by one.
    fn listed(of: &Elements) -> Vec<u8> {
        (0..of.count()).flat_map(|number| of.at(number).to_vec()).collect()
    }

    #[test]
    fn elements_in_another_order_are_those_one_by_one() {
        let orders: [&[(i64, i64)]; 6] = [
            &[],
            &[(600, 1)],
            &[(20, 30), (30, 1)],
            &[(30, 1), (20, 30)],
            &[(5, 1), (3, 200), (40, 5)],
            &[(2, 0), (300, 2)],
        ];
        for dims in orders {
            let of = elements(600, 0, dims);
            assert_eq!(of.dense().unwrap(), listed(&of), "{dims:?}");
            let dense = Elements::new(&of.dense().unwrap(), 0, [(of.count(), 1)], 2).unwrap();
            assert!(of == dense, "{dims:?}");
            assert!(dense == of, "{dims:?}");
        }
    }

    #[test]
    fn one_other_byte_is_another_array() {
        let turned = elements(600, 0, &[(30, 1), (20, 30)]);
        let bytes = turned.dense().unwrap();
        for at in 0..bytes.len() {
            let mut other = bytes.to_vec();
            other[at] ^= 1;
            assert!(turned != Elements::new(&other.into(), 0, vec![(600, 1)], 2).unwrap(), "byte {at}");
        }
    }

    #[test]
    fn borders_across_each_other_are_compared_too() {
        let a = elements(56, 0, &[(8, 1), (7, 8)]);
        let b = Elements::new(&a.dense().unwrap(), 0, vec![(7, 8), (8, 1)], 2).unwrap();
        assert!(common([&a.dims, &[(7, 1), (8, 7)]]).is_none());
        assert!(a == b);
        assert!(b == a);
        assert!(a != elements(56, 0, &[(7, 8), (8, 1)]));
    }

    #[test]
    fn arrays_are_turned_together() {
        let turned = elements(600, 0, &[(30, 1), (20, 30)]);
        let dense = Elements::new(&turned.dense().unwrap(), 0, [(600, 1)], 2).unwrap();
        let (a, b) = in_order(&dense, &turned).unwrap();
        assert_eq!((a.dims.as_slice(), b.dims.as_slice()), ([(20, 1), (30, 20)].as_slice(), [(600, 1)].as_slice()));
        assert!(a == b);
    }

    #[test]
    fn what_lies_outside_of_a_buffer_is_none() {
        let data = Bytes::from(vec![0; 24]);
        assert!(Elements::new(&data, 0, vec![(3, 4), (4, 1)], 2).is_some());
        assert!(Elements::new(&data, 1, vec![(3, 4), (4, 1)], 2).is_none());
        assert!(Elements::new(&data, 0, vec![(2, i64::MAX)], 2).is_none());
        assert!(Elements::new(&data, -1, vec![(3, 1)], 2).is_none());
    }

    #[test]
    fn each_element_is_looked_at_wherever_it_lies() {
        for dims in
            [&[(30, 1), (20, 30)][..], &[(5, 1), (3, 200), (40, 5)], &[(7, 0), (600, 1)], &[(600, 1), (1 << 40, 0)]]
        {
            let of = elements(600, 0, dims);
            assert!(of.every(|bytes| bytes.as_chunks::<2>().1.is_empty()));
            for absent in [0, 29, 30, 599_u16] {
                let other = |bytes: &[u8]| bytes.as_chunks().0.iter().all(|x| u16::from_le_bytes(*x) != absent);
                assert!(!of.every(other), "{dims:?} {absent}");
            }
        }
        assert!(elements(600, 0, &[(0, 1)]).every(|_| false));
    }

    #[test]
    fn zeros_are_found_wherever_the_other_numbers_lie() {
        let mut data = vec![0; 48];
        data[2 * 7] = 1;
        let part = |first| Elements::new(&data.clone().into(), first, vec![(6, 4)], 2).unwrap();
        assert_eq!((0..4).map(|first| part(first).zero()).collect::<Vec<_>>(), [true, true, true, false]);
    }
}
