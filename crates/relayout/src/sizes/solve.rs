//! Sizes at which the equations of a graph hold.

use super::equations::{Equation, Need, Strength};
use std::collections::{BTreeMap, BTreeSet};

/// No extent is looked for beyond this.
const LARGEST: i64 = 1 << 20;

/// Sizes that are likelier than their neighbours are multiples of the first of these that has any.
const ROUND: [i64; 7] = [64, 32, 16, 8, 4, 2, 1];

/// Sizes at which it is seen whether an expression rises or falls all the way.
const PROBES: [i64; 12] = [1, 2, 3, 16, 32, 64, 96, 128, 224, 320, 512, 640];

/// How many multiples of each are tried.
const TRIED: i64 = 64;

/// So many sizes are tried one by one where none of these will do.
const LARGEST_TRIED: i64 = 4096;

/// What the equations say of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Solved {
    /// Sizes that it may have, the likeliest first; never empty.
    pub(super) sizes: Vec<i64>,
    /// Whether it can have no other.
    pub(super) only: bool,
    /// The node that asks for it.
    pub(super) why: String,
}

/// What is found of `usual`, symbols with the sizes that are taken where nothing is said, when those of `given` have these sizes. A
/// symbol for which the usual size will do has no entry.
pub(super) fn solve(
    equations: &[Equation],
    usual: &BTreeMap<String, i64>,
    given: &BTreeMap<String, i64>,
) -> BTreeMap<String, Solved> {
    let told: Vec<Told<'_>> = equations.iter().map(|is| Told { is, symbols: is.dim.symbols() }).collect();
    let mut search = Search { told, usual, given, spans: BTreeMap::new(), solved: BTreeMap::new() };
    search.settle();
    while search.choose_bounded() || search.choose_loosely() || search.choose_beside_others() || search.choose_larger()
    {
        search.settle();
    }
    search.solved
}

/// An equation and the symbols in it.
struct Told<'e> {
    is: &'e Equation,
    symbols: BTreeSet<String>,
}

/// Sizes from the first to the last, and the node that bounds them from above, if one does.
#[derive(Clone, Debug)]
struct Span {
    low: i64,
    high: i64,
    /// The node that fixes it as far as it is fixed.
    by: Option<String>,
    /// The node that asked for the lower end.
    low_by: Option<String>,
}

struct Search<'e> {
    told: Vec<Told<'e>>,
    usual: &'e BTreeMap<String, i64>,
    given: &'e BTreeMap<String, i64>,
    spans: BTreeMap<String, Span>,
    solved: BTreeMap<String, Solved>,
}

impl Search<'_> {
    fn known(&self, name: &str) -> Option<i64> {
        self.given.get(name).copied().or_else(|| self.solved.get(name)?.sizes.first().copied())
    }

    fn span(&self, name: &str) -> Span {
        let whole = || Span { low: 1, high: LARGEST, by: None, low_by: None };
        self.spans.get(name).cloned().unwrap_or_else(whole)
    }

    /// The symbols of an equation that have no size; `None` if one of them is no symbol of an input.
    fn open<'t>(&self, told: &'t Told<'_>) -> Option<Vec<&'t String>> {
        let open: Vec<&String> = told.symbols.iter().filter(|name| self.known(name).is_none()).collect();
        open.iter().all(|name| self.usual.contains_key(*name)).then_some(open)
    }

    /// The one symbol of an equation that has no size.
    fn only_open(&self, told: &Told<'_>) -> Option<String> {
        match self.open(told)?[..] {
            [name] => Some(name.clone()),
            _ => None,
        }
    }

    /// The expression of an equation where one symbol has this size and others that are open have the usual one.
    fn value(&self, told: &Told<'_>, symbol: &str, size: i64) -> Option<i64> {
        let of = |name: &str| {
            if name == symbol { Some(size) } else { self.known(name).or_else(|| self.usual.get(name).copied()) }
        };
        told.is.dim.eval(&of)
    }

    fn holds(&self, told: &Told<'_>, symbol: &str, size: i64) -> bool {
        self.value(told, symbol, size).is_some_and(|value| match told.is.need {
            Need::Is(n) => value == n,
            Need::IsMultipleOf(n) => value % n == 0,
            Need::IsAtLeast(n) => value >= n,
        })
    }

    /// Narrows spans by all that has to hold and has one open symbol, until nothing changes. A span of one size is that.
    fn settle(&mut self) {
        let mut again = true;
        while std::mem::take(&mut again) {
            for at in 0..self.told.len() {
                let told = &self.told[at];
                let firm = told.is.strength == Strength::Firm && !matches!(told.is.need, Need::IsMultipleOf(_));
                let Some(name) = self.only_open(told).filter(|_| firm) else { continue };
                // What contradicts the rest is not followed.
                let Some(span) = self.narrowed(told, &name, &self.span(&name)) else { continue };
                if span.low == span.high {
                    let why = span.by.clone().or_else(|| span.low_by.clone()).unwrap_or_default();
                    self.solved.insert(name.clone(), Solved { sizes: vec![span.low], only: true, why });
                    again = true;
                }
                self.spans.insert(name, span);
            }
        }
    }

    /// The part of a span in which an equation holds, if there is one. Most expressions of one extent rise or fall all the way.
    fn narrowed(&self, told: &Told<'_>, name: &str, span: &Span) -> Option<Span> {
        let at = |size: i64| self.value(told, name, size).unwrap_or(i64::MAX);
        let rises = at(span.low) <= at(span.high);
        let why = || Some(told.is.why.clone());
        let first = |is: &dyn Fn(i64) -> bool| first(span.low, span.high, is);
        let (low, high) = match (told.is.need, rises) {
            (Need::Is(n), true) => (first(&|s| at(s) >= n), first(&|s| at(s) > n) - 1),
            (Need::Is(n), false) => (first(&|s| at(s) <= n), first(&|s| at(s) < n) - 1),
            (Need::IsAtLeast(n), true) => (first(&|s| at(s) >= n), span.high),
            (Need::IsAtLeast(n), false) => (span.low, first(&|s| at(s) < n) - 1),
            (Need::IsMultipleOf(_), _) => (span.low, span.high),
        };
        // What holds on the far side of a bound neither rises nor falls all the way: it bounds nothing.
        let beyond = |&size: &i64| {
            let outside = (span.low..low).contains(&size) || (high + 1..=span.high).contains(&size);
            outside && self.holds(told, name, size)
        };
        let (low, high) = if PROBES.iter().any(beyond) { (span.low, span.high) } else { (low, high) };
        let low_by = if low > span.low { why() } else { span.low_by.clone() };
        let by = match told.is.need {
            Need::Is(_) if (low, high) != (span.low, span.high) || span.by.is_none() => why(),
            _ => span.by.clone(),
        };
        let whole = (low, high) == (span.low, span.high);
        let sound = low <= high && (whole || !matches!(told.is.need, Need::Is(_)) || self.holds(told, name, low));
        sound.then_some(Span { low, high, by, low_by })
    }

    /// The likeliest size of a span at which all equations hold that have no other open symbol.
    fn likeliest(&self, name: &str, span: &Span) -> Option<i64> {
        let alone =
            |told: &&Told<'_>| told.is.strength == Strength::Firm && self.only_open(told).as_deref() == Some(name);
        let asked: Vec<&Told<'_>> = self.told.iter().filter(alone).collect();
        let fits = |&size: &i64| {
            (span.low..=span.high).contains(&size) && asked.iter().all(|told| self.holds(told, name, size))
        };
        let round = ROUND.iter().flat_map(|&step| {
            let from = span.low.saturating_add(step - 1) / step * step;
            (0..if step == 1 { LARGEST_TRIED } else { TRIED }).map(move |i| from + i * step)
        });
        self.usual.get(name).copied().into_iter().chain(round).find(fits)
    }

    fn choose(&mut self, name: &str, span: &Span, why: &str) -> bool {
        let Some(size) = self.likeliest(name, span) else { return false };
        self.solved.insert(name.to_owned(), Solved { sizes: vec![size], only: false, why: why.to_owned() });
        true
    }

    /// A symbol that may have a few sizes.
    fn choose_bounded(&mut self) -> bool {
        let open: Vec<(String, Span)> = self
            .spans
            .iter()
            .filter(|(name, _)| self.known(name).is_none())
            .map(|(n, s)| (n.clone(), s.clone()))
            .collect();
        open.into_iter().any(|(name, span)| match &span.by {
            Some(why) => self.choose(&name, &span, why),
            None => false,
        })
    }

    /// A symbol of which something is said that need not hold: all sizes that it may have by that.
    fn choose_loosely(&mut self) -> bool {
        let mut found: Option<(String, Solved)> = None;
        for told in
            self.told.iter().filter(|told| told.is.strength != Strength::Firm && matches!(told.is.need, Need::Is(_)))
        {
            let Some(name) = self.only_open(told) else { continue };
            let meets_one = told.is.strength == Strength::Meets && self.usual.get(&name) == Some(&1);
            if meets_one || self.usual.get(&name).is_some_and(|&usual| self.holds(told, &name, usual)) {
                continue;
            }
            let size = self.narrowed(told, &name, &self.span(&name)).and_then(|span| self.likeliest(&name, &span));
            match (&mut found, size) {
                (None, Some(size)) => {
                    found = Some((name, Solved { sizes: vec![size], only: false, why: told.is.why.clone() }));
                }
                (Some((first, solved)), Some(size)) if *first == name && !solved.sizes.contains(&size) => {
                    solved.sizes.push(size);
                }
                _ => {}
            }
        }
        found.map(|(name, solved)| self.solved.insert(name, solved)).is_some()
    }

    /// One of several symbols of an equation that does not hold where all have their usual sizes.
    fn choose_beside_others(&mut self) -> bool {
        let mut found = None;
        for told in self.told.iter().filter(|told| !matches!(told.is.need, Need::IsAtLeast(_))) {
            let Some(open) = self.open(told).filter(|open| open.len() > 1) else { continue };
            let usual = |name: &String| self.usual.get(name).copied().unwrap_or(1);
            if open.iter().any(|&name| self.holds(told, name, usual(name))) {
                continue;
            }
            // The batch is whatever a caller likes.
            let free = open.iter().filter(|name| usual(name) != 1);
            found = free.copied().find_map(|name| {
                let span = self.narrowed(told, name, &self.span(name))?;
                let size = match told.is.need {
                    Need::IsMultipleOf(_) => (1..=LARGEST_TRIED).find(|&size| self.holds(told, name, size))?,
                    _ => self.likeliest(name, &span)?,
                };
                Some((name.clone(), Solved { sizes: vec![size], only: false, why: told.is.why.clone() }))
            });
            if found.is_some() {
                break;
            }
        }
        found.map(|(name, solved)| self.solved.insert(name, solved)).is_some()
    }

    /// A symbol whose usual size does not do, since it is too small or divides badly.
    fn choose_larger(&mut self) -> bool {
        let open: Vec<String> = self.usual.keys().filter(|name| self.known(name).is_none()).cloned().collect();
        open.into_iter().any(|name| {
            let span = self.span(&name);
            let Some(&usual) = self.usual.get(&name) else { return false };
            let fails = |told: &&Told<'_>| {
                told.is.strength == Strength::Firm
                    && self.only_open(told).as_ref() == Some(&name)
                    && !self.holds(told, &name, usual)
            };
            match self.told.iter().find(fails).map(|told| told.is.why.clone()) {
                Some(why) => self.choose(&name, &span, &why),
                None => false,
            }
        })
    }
}

/// The first of these numbers from which on something holds; the one behind the last if it holds of none.
fn first(low: i64, high: i64, is: &dyn Fn(i64) -> bool) -> i64 {
    let (mut low, mut behind) = (low, high + 1);
    while low < behind {
        let middle = low + (behind - low) / 2;
        if is(middle) { behind = middle } else { low = middle + 1 }
    }
    low
}
