//! Operands of one op, brought to common axes that do not depend on how any of them lies.
//!
//! An op that treats each index alike along an axis may run in any order of its axes. So the axes of its term are taken from what
//! the operands are made of: first the digits that the first operand reads, in the order of its source, then those of the next
//! one. Digits that all operands read as neighbours are one axis. Two graphs that lay the same values differently get the same
//! term, and two different maps.

use crate::terms::value::{Source, Value};
use crate::terms::view::{Digit, REPEAT, View, extent, normal};

/// What an op does along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// It treats each index alike.
    Alike,
    /// It takes all indices together, as a set or in their order.
    Acted,
}

/// The class of each of so many axes, by which of them an op takes together.
pub(crate) fn classes(rank: usize, acted: &[usize]) -> Vec<Class> {
    let class = |axis| if acted.contains(&axis) { Class::Acted } else { Class::Alike };
    (0..rank).map(class).collect()
}

/// The axes that an op takes together.
pub(crate) fn acted(classes: &[Class]) -> Vec<usize> {
    (0..classes.len()).filter(|&axis| classes[axis] == Class::Acted).collect()
}

/// What an operand reads along one common digit: axis and stride of its source.
type Read = Option<(u32, i64)>;

/// A digit that all operands have in common.
#[derive(Clone, Debug)]
struct Common {
    extent: i64,
    class: Class,
    logical: usize,
    reads: Vec<Read>,
}

/// The common axes that a constant has, and (extent, stride) of its elements in their order.
type Elements = (Vec<u32>, Vec<(i64, i64)>);

/// Operands over common axes.
#[derive(Debug)]
pub(crate) struct Aligned {
    /// Extents of the common axes.
    pub(crate) extents: Vec<i64>,
    /// What the op does along each of them.
    pub(crate) class: Vec<Class>,
    /// The logical axes, as digits of the common ones.
    pub(crate) axes: View,
    /// Per operand that is a term: what it reads along each common axis.
    pub(crate) reads: Vec<Vec<Read>>,
    /// Per operand that is a constant: the common axes that it has, and its elements in their order.
    pub(crate) constants: Vec<Elements>,
}

/// Aligns operands, whose views have the rank of `shape` and extents of it or 1. `class` says of each logical axis what the op
/// does along it. Digits of a class are joined only if `sets`: if their order does not matter.
pub(crate) fn align(shape: &[i64], operands: &[(&Value, View)], class: &[Class], sets: bool) -> Option<Aligned> {
    let mut common = Vec::new();
    for (axis, &count) in shape.iter().enumerate() {
        refine(axis, count, operands, class[axis], &mut common)?;
    }
    let fixed: Vec<bool> = operands.iter().map(|(value, _)| value.is_constant()).collect();
    let order = order(&common, &fixed);
    Some(joined(&common, &order, &fixed, shape.len(), sets))
}

/// Cuts one logical axis where any operand has a border.
fn refine(axis: usize, count: i64, operands: &[(&Value, View)], class: Class, common: &mut Vec<Common>) -> Option<()> {
    let mut lists = Vec::new();
    for (_, view) in operands {
        let digits = view.get(axis)?;
        match extent(digits) {
            have if have == count => lists.push(digits.clone()),
            1 => lists.push(normal([Digit::repeat(count)])),
            _ => return None,
        }
    }
    let mut found = Vec::new();
    while lists.iter().any(|list| !list.is_empty()) {
        let step = lists.iter().filter_map(|list| Some(list.last()?.extent)).min()?;
        let mut reads = Vec::new();
        for list in &mut lists {
            let digit = list.pop()?;
            let (outer, inner) = digit.split(step)?;
            if outer.extent > 1 {
                list.push(outer);
            }
            reads.push((inner.axis != REPEAT).then_some((inner.axis, inner.stride)));
        }
        found.push(Common { extent: step, class, logical: axis, reads });
    }
    found.reverse();
    common.extend(found);
    Some(())
}

/// The digits in the order of the first operand that reads them. Those that nobody reads and nothing happens along are left out.
fn order(common: &[Common], fixed: &[bool]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for operand in (0..fixed.len()).filter(|&o| !fixed[o]) {
        let mut read: Vec<(u32, i64, usize)> = Vec::new();
        for (at, digit) in common.iter().enumerate().filter(|(at, _)| !order.contains(at)) {
            read.extend(digit.reads[operand].map(|(axis, stride)| (axis, -stride, at)));
        }
        read.sort_unstable();
        order.extend(read.into_iter().map(|(_, _, at)| at));
    }
    let rest = |at: &usize| common[*at].class == Class::Acted || common[*at].reads.iter().any(Option::is_some);
    let rest: Vec<usize> = (0..common.len()).filter(|at| !order.contains(at) && rest(at)).collect();
    order.extend(rest);
    order
}

/// Whether two digits are one axis for every operand.
fn joins(outer: &Common, inner: &Common, fixed: &[bool], sets: bool) -> bool {
    let alike = |(o, i): (&Read, &Read), fixed: bool| match (o, i) {
        (None, None) => true,
        (Some(o), Some(i)) => fixed || (o.0 == i.0 && o.1 == i.1 * inner.extent),
        _ => false,
    };
    outer.class == inner.class
        && (outer.class == Class::Alike || sets)
        && outer.reads.iter().zip(&inner.reads).zip(fixed).all(|(pair, fixed)| alike(pair, *fixed))
}

fn joined(common: &[Common], order: &[usize], fixed: &[bool], rank: usize, sets: bool) -> Aligned {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &at in order {
        match groups.last_mut() {
            Some(group) if joins(&common[group[group.len() - 1]], &common[at], fixed, sets) => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    let mut place = vec![(REPEAT, 0); common.len()];
    for (axis, group) in groups.iter().enumerate() {
        let mut stride = 1;
        for &at in group.iter().rev() {
            place[at] = (axis as u32, stride);
            stride *= common[at].extent;
        }
    }
    let mut axes: View = vec![Vec::new(); rank];
    for (digit, (axis, stride)) in common.iter().zip(&place) {
        axes[digit.logical].push(Digit { axis: *axis, extent: digit.extent, stride: *stride });
    }
    let inner = |group: &Vec<usize>| &common[group[group.len() - 1]];
    let reads = |o: usize| groups.iter().map(|g| inner(g).reads[o]).collect();
    let constants = |o: usize| {
        let has = groups.iter().enumerate().filter(|(_, g)| inner(g).reads[o].is_some());
        let axes = has.map(|(axis, _)| axis as u32).collect();
        let dims = order.iter().filter_map(|&at| Some((common[at].extent, common[at].reads[o]?.1))).collect();
        (axes, dims)
    };
    Aligned {
        extents: groups.iter().map(|g| g.iter().map(|&at| common[at].extent).product()).collect(),
        class: groups.iter().map(|g| inner(g).class).collect(),
        axes: axes.into_iter().map(normal).collect(),
        reads: (0..fixed.len()).map(reads).collect(),
        constants: (0..fixed.len()).map(constants).collect(),
    }
}

/// The operands over the axes that one of them, `first`, is made of, whose extents are `base`, and the class of each of these axes.
/// `None` if it does not have all of each axis, or if an axis that repeats for it alone does not for another operand.
pub(crate) fn on_axes_of(
    first: usize,
    base: &[i64],
    shape: &[i64],
    operands: &[(&Value, View)],
    class: &[Class],
) -> Option<(Vec<View>, Vec<Class>)> {
    let mut common = Vec::new();
    for (axis, &count) in shape.iter().enumerate() {
        refine(axis, count, operands, class[axis], &mut common)?;
    }
    let mut views = vec![View::new(); operands.len()];
    let mut classes = Vec::new();
    for (axis, &extent) in base.iter().enumerate() {
        let mine = |c: &&Common| c.reads[first].is_some_and(|(read, _)| read as usize == axis);
        let mut digits: Vec<&Common> = common.iter().filter(mine).collect();
        digits.sort_by_key(|c| c.reads[first].map(|(_, stride)| -stride));
        let mut left = extent;
        for digit in &digits {
            left /= digit.extent;
            if digit.reads[first]?.1 != left || digit.class != digits[0].class {
                return None;
            }
        }
        if left != 1 || digits.iter().map(|c| c.extent).product::<i64>() != extent {
            return None;
        }
        classes.push(digits.first()?.class);
        for (operand, view) in views.iter_mut().enumerate() {
            let read = |c: &&Common| match c.reads[operand] {
                Some((axis, stride)) => Digit { axis, extent: c.extent, stride },
                None => Digit::repeat(c.extent),
            };
            view.push(normal(digits.iter().map(read)));
        }
    }
    // What repeats for all operands repeats for the result.
    let repeats = |c: &Common| c.class == Class::Alike && c.reads.iter().all(Option::is_none);
    let all = common.iter().all(|c| c.extent == 1 || c.reads[first].is_some() || repeats(c));
    all.then_some((views, classes))
}

/// A shape, and operands with views of its rank.
pub(crate) type Broadcast<'v> = (Vec<i64>, Vec<(&'v Value, View)>);

/// The operands of an op that broadcasts, with the rank of its result, and that shape.
pub(crate) fn broadcast<'v>(operands: &[&'v Value]) -> Option<Broadcast<'v>> {
    let rank = operands.iter().map(|v| v.rank()).max()?;
    let mut shape = vec![1; rank];
    let mut padded = Vec::new();
    for value in operands {
        let mut view: View = vec![Vec::new(); rank - value.rank()];
        view.extend(value.view.iter().cloned());
        for (out, axis) in shape.iter_mut().zip(&view) {
            match (*out, extent(axis)) {
                (have, count) if have == count => {}
                (1, count) => *out = count,
                (_, 1) => {}
                _ => return None,
            }
        }
        padded.push((*value, view));
    }
    Some((shape, padded))
}

/// The term that a value of a known shape is made of.
pub(crate) fn term_of(value: &Value) -> Option<u32> {
    match value.source {
        Source::Term(term) => Some(term),
        Source::Constant { .. } | Source::Opaque(_) => None,
    }
}
