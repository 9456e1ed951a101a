//! The law of shuffles: data shuffled along a letter that a signature carries comes out shuffled alike; along a letter that it
//! contracts, it changes nothing.
//!
//! A letter may be a digit of an axis (`(g co)`); its extent follows from axes that are one letter and from results. Letters
//! marked as whole or windowed are not shuffled: nothing is claimed of them but their order.

use crate::law::{agree_all, encode, execute};
use crate::op_cases::case::{Case, pick};
use relayout::ir::form::{AtomId, Bound, Role, Slot};
use relayout_verify::Tensor;
use std::collections::BTreeMap;

/// What a signature claims of a letter.
#[derive(Clone, Copy, PartialEq)]
enum Claim {
    Carried,
    Contracted,
    Nothing,
}

/// Checks every letter; how many there were to check.
pub(crate) fn check(case: &Case, opset: i64, bound: &Bound, base: &[Tensor]) -> Result<usize, String> {
    let shapes = shapes(case, bound, base)?;
    let extents = extents(bound, &shapes)?;
    let mut checked = 0;
    for (letter, extent) in extents.iter().filter(|(_, extent)| **extent > 1) {
        let claim = claim(bound, letter);
        if claim == Claim::Nothing {
            continue;
        }
        if claim == Claim::Carried {
            keeps_its_extent(bound, &shapes, letter, *extent)?;
        }
        let shuffle = Shuffle { bound, extents: &extents, letter, extent: *extent };
        let mut shuffled = case.clone();
        for (i, operand) in shuffled.operands.iter_mut().enumerate() {
            if let (Some(operand), Some(axes)) = (operand, bound.axes(Slot::In(i))) {
                operand.tensor = shuffle.tensor(&operand.tensor, axes);
            }
        }
        let expected: Vec<Tensor> = base
            .iter()
            .enumerate()
            .map(|(i, t)| match bound.axes(Slot::Out(i)) {
                Some(axes) if claim == Claim::Carried => shuffle.tensor(t, axes),
                _ => t.clone(),
            })
            .collect();
        let found = execute(&encode(&shuffled.model(opset)), &shuffled.feeds())?;
        let what = if claim == Claim::Carried { "carried" } else { "contracted" };
        agree_all(&expected, &found).map_err(|why| format!("{bound}: `{letter}` is not {what}: {why}"))?;
        checked += 1;
    }
    Ok(checked)
}

/// A letter that is carried has its extent in the results, and in the operands unless it broadcasts there.
fn keeps_its_extent(bound: &Bound, shapes: &Shapes, letter: &str, extent: usize) -> Result<(), String> {
    for (slot, shape) in shapes {
        for (&atom, &found) in bound.axes(*slot).unwrap_or_default().iter().zip(shape) {
            let broadcast = found == 1 && matches!(slot, Slot::In(_));
            if letters(bound, atom) == [letter] && found != extent && !broadcast {
                return Err(format!("{bound}: `{letter}` is not carried: its extent is {found} and {extent}"));
            }
        }
    }
    Ok(())
}

type Shapes = BTreeMap<Slot, Vec<usize>>;

fn shapes(case: &Case, bound: &Bound, base: &[Tensor]) -> Result<Shapes, String> {
    let mut shapes = Shapes::new();
    for slot in bound.slots() {
        let tensor = match slot {
            Slot::In(i) => case.operands.get(i).and_then(Option::as_ref).map(|o| &o.tensor),
            Slot::Out(i) => base.get(i),
        };
        let tensor = tensor.ok_or_else(|| format!("{bound} has a slot {slot:?}, the case has not"))?;
        shapes.insert(slot, tensor.shape().iter().map(|&d| d as usize).collect());
    }
    Ok(shapes)
}

/// Letters of an atom, outermost first.
fn letters(bound: &Bound, atom: AtomId) -> Vec<&str> {
    digits(bound, atom).map(|digit| digit.trim_end_matches('~')).collect()
}

/// The same with the mark of those of which nothing is said.
fn digits(bound: &Bound, atom: AtomId) -> impl Iterator<Item = &str> {
    let name = bound.atoms[usize::from(atom)].name.as_str();
    name.trim_start_matches('(').trim_end_matches(')').split(' ')
}

/// Extent of every letter.
fn extents<'b>(bound: &'b Bound, shapes: &Shapes) -> Result<BTreeMap<&'b str, usize>, String> {
    let mut extents: BTreeMap<&str, usize> = BTreeMap::new();
    let axes = || {
        let slots = shapes.iter().filter_map(|(slot, shape)| Some(bound.axes(*slot)?.iter().zip(shape)));
        slots.flatten().map(|(&atom, &extent)| (letters(bound, atom), extent))
    };
    for (letters, extent) in axes() {
        // An extent of 1 broadcasts.
        if let [letter] = letters[..] {
            let known = extents.entry(letter).or_insert(extent);
            *known = (*known).max(extent);
        }
    }
    for _ in 0..bound.atoms.len() {
        for (letters, extent) in axes() {
            let open: Vec<&str> = letters.iter().copied().filter(|l| !extents.contains_key(l)).collect();
            if let [open] = open[..] {
                let others: usize = letters.iter().filter_map(|l| extents.get(l)).product();
                extents.insert(open, extent / others.max(1));
            }
        }
    }
    match axes().flat_map(|(letters, _)| letters).find(|l| !extents.contains_key(l)) {
        Some(letter) => Err(format!("{bound}: the extent of `{letter}` does not follow from the shapes")),
        None => Ok(extents),
    }
}

fn claim(bound: &Bound, letter: &str) -> Claim {
    let of = |slots: &[Option<Vec<AtomId>>]| {
        let atoms = slots.iter().flatten().flatten();
        atoms.copied().filter(|&a| letters(bound, a).contains(&letter)).collect::<Vec<_>>()
    };
    let (within, without) = (of(&bound.operands), of(&bound.results));
    let roles: Vec<Role> = within.iter().chain(&without).map(|&a| bound.atoms[usize::from(a)].role).collect();
    // A reduced axis that stays with extent 1 is in the results, but contracted.
    let reduced = within.iter().any(|a| without.contains(a) && bound.atoms[usize::from(*a)].role == Role::Contracted);
    let unsaid = within.iter().chain(&without).any(|&a| digits(bound, a).any(|d| d.strip_suffix('~') == Some(letter)));
    match (within.is_empty(), without.is_empty()) {
        _ if unsaid || roles.iter().any(|r| matches!(r, Role::Whole | Role::Windowed | Role::Joined)) => Claim::Nothing,
        (false, false) if reduced => Claim::Contracted,
        (false, false) => Claim::Carried,
        (false, true) => Claim::Contracted,
        (true, _) => Claim::Nothing,
    }
}

struct Shuffle<'a> {
    bound: &'a Bound,
    extents: &'a BTreeMap<&'a str, usize>,
    letter: &'a str,
    extent: usize,
}

impl Shuffle<'_> {
    /// Where an index of the letter comes from: reversed, and the first two of three or more exchanged, so that neither a
    /// rotation nor a reflection of the op's own hides behind it.
    fn source(&self, index: usize) -> usize {
        match self.extent - 1 - index {
            0 if self.extent > 2 => 1,
            1 if self.extent > 2 => 0,
            i => i,
        }
    }

    fn tensor(&self, tensor: &Tensor, axes: &[AtomId]) -> Tensor {
        let shape: Vec<usize> = tensor.shape().iter().map(|&d| d as usize).collect();
        let sources: Vec<Vec<usize>> = shape.iter().zip(axes).map(|(&d, &atom)| self.axis(d, atom)).collect();
        let mut picks = vec![0usize];
        for (sources, &extent) in sources.iter().zip(&shape) {
            picks = picks.iter().flat_map(|&at| sources.iter().map(move |&i| at * extent + i)).collect();
        }
        let data = pick(tensor.data(), &picks);
        Tensor::new(tensor.name(), tensor.shape(), data).expect("a shuffle keeps the number of elements")
    }

    /// The source of each index of an axis.
    fn axis(&self, extent: usize, atom: AtomId) -> Vec<usize> {
        let letters = letters(self.bound, atom);
        let whole: usize = letters.iter().filter_map(|l| self.extents.get(l)).product();
        let Some(at) = letters.iter().position(|l| *l == self.letter).filter(|_| whole == extent) else {
            return (0..extent).collect();
        };
        let inner: usize = letters[at + 1..].iter().filter_map(|l| self.extents.get(l)).product();
        let digit = |i: usize| i / inner % self.extent;
        (0..extent).map(|i| i - digit(i) * inner + self.source(digit(i)) * inner).collect()
    }
}
