//! The polynomials behind a symbolic [`Dim`].
//!
//! A [`Poly`] is a sum of integer multiples of monomials, sorted by descending graded lexicographic order (total
//! degree first, then the exponent of the smallest atom in which two monomials differ). That order is admissible, so
//! division by the leading term decides exact divisibility. No coefficient is zero; the zero polynomial has no terms.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Dim, MAX_DEGREE, MAX_DEPTH, MAX_SIZE, MAX_TERMS, Repr};

/// Most floor divisions that are spelled otherwise one after the other, to see that a number is not negative.
const SPELLINGS: u32 = 2;

/// Most terms of a number of which this is tried.
const MOST_SPELLED: usize = 8;

/// Largest divisor that is tried, besides the whole one.
const MOST_DIVISOR: i64 = 64;

/// An indivisible unknown integer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Atom {
    Symbol(Arc<str>),
    /// Anonymous, and an extent: not negative.
    Unknown(u32),
    /// Anonymous, and any integer.
    Number(u32),
    /// `floor(numerator / divisor)`, normalised by [`Poly::floor_div`].
    Floor {
        numerator: Arc<Poly>,
        divisor: i64,
        /// [`Poly::size`] of the numerator, which every sum and product asks for.
        size: usize,
    },
}

impl Atom {
    /// How many terms and atoms it is written with.
    fn size(&self) -> usize {
        match self {
            Atom::Symbol(_) | Atom::Unknown(_) | Atom::Number(_) => 1,
            Atom::Floor { size, .. } => *size,
        }
    }

    /// Whether it is not negative, as far as its spelling shows.
    fn is_never_negative(&self) -> bool {
        match self {
            Atom::Symbol(_) | Atom::Unknown(_) => true,
            Atom::Number(_) => false,
            Atom::Floor { numerator, .. } => numerator.is_never_negative(),
        }
    }

    fn depth(&self) -> u32 {
        match self {
            Atom::Symbol(_) | Atom::Unknown(_) | Atom::Number(_) => 0,
            Atom::Floor { numerator, .. } => numerator.depth() + 1,
        }
    }
}

/// A product of powers of atoms: atoms ascending, powers positive. Empty is 1.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Monomial(pub(super) Vec<(Atom, u32)>);

impl Monomial {
    fn degree(&self) -> u32 {
        self.0.iter().fold(0, |sum, (_, power)| sum.saturating_add(*power))
    }

    fn mul(&self, other: &Monomial) -> Option<Monomial> {
        if self.degree().saturating_add(other.degree()) > MAX_DEGREE {
            return None;
        }
        let mut product = self.0.clone();
        for (atom, power) in &other.0 {
            match product.binary_search_by(|(have, _)| have.cmp(atom)) {
                Ok(at) => product[at].1 += power,
                Err(at) => product.insert(at, (atom.clone(), *power)),
            }
        }
        Some(Monomial(product))
    }

    fn div(&self, other: &Monomial) -> Option<Monomial> {
        let mut quotient = self.0.clone();
        for (atom, power) in &other.0 {
            let at = quotient.binary_search_by(|(have, _)| have.cmp(atom)).ok()?;
            quotient[at].1 = quotient[at].1.checked_sub(*power)?;
        }
        quotient.retain(|(_, power)| *power > 0);
        Some(Monomial(quotient))
    }
}

impl Ord for Monomial {
    fn cmp(&self, other: &Monomial) -> Ordering {
        self.degree().cmp(&other.degree()).then_with(|| {
            for ((a, m), (b, n)) in self.0.iter().zip(&other.0) {
                // The one that has the smaller atom has a higher power of it than the other's 0.
                match b.cmp(a).then(m.cmp(n)) {
                    Ordering::Equal => {}
                    decided => return decided,
                }
            }
            self.0.len().cmp(&other.0.len())
        })
    }
}

impl PartialOrd for Monomial {
    fn partial_cmp(&self, other: &Monomial) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A canonical polynomial; see the module.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Poly {
    pub(super) terms: Vec<(Monomial, i64)>,
}

impl Poly {
    pub(super) fn constant(value: i64) -> Poly {
        Poly { terms: if value == 0 { Vec::new() } else { vec![(Monomial::default(), value)] } }
    }

    pub(super) fn atom(atom: Atom) -> Poly {
        Poly { terms: vec![(Monomial(vec![(atom, 1)]), 1)] }
    }

    pub(super) fn as_const(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(monomial, value)] if monomial.0.is_empty() => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_symbol(&self) -> Option<&str> {
        match self.single_atom()? {
            Atom::Symbol(name) => Some(name),
            Atom::Unknown(_) | Atom::Number(_) | Atom::Floor { .. } => None,
        }
    }

    fn single_atom(&self) -> Option<&Atom> {
        match self.terms.as_slice() {
            [(monomial, 1)] => match monomial.0.as_slice() {
                [(atom, 1)] => Some(atom),
                _ => None,
            },
            _ => None,
        }
    }

    fn depth(&self) -> u32 {
        let atoms = self.terms.iter().flat_map(|(monomial, _)| &monomial.0);
        atoms.map(|(atom, _)| atom.depth()).max().unwrap_or(0)
    }

    /// How many terms and atoms it is written with, those of floor divisions in each place where these stand.
    fn size(&self) -> usize {
        let atoms = self.terms.iter().flat_map(|(monomial, _)| &monomial.0);
        atoms.fold(self.terms.len(), |all, (atom, _)| all.saturating_add(atom.size()))
    }

    /// Itself, unless it is too large.
    fn in_bounds(self) -> Option<Poly> {
        (self.size() <= MAX_SIZE).then_some(self)
    }

    /// Adds `coefficient * monomial`, keeping the order.
    fn add_term(&mut self, monomial: Monomial, coefficient: i64) -> Option<()> {
        if coefficient == 0 {
            return Some(());
        }
        match self.terms.binary_search_by(|(have, _)| monomial.cmp(have)) {
            Ok(at) => {
                self.terms[at].1 = self.terms[at].1.checked_add(coefficient)?;
                if self.terms[at].1 == 0 {
                    self.terms.remove(at);
                }
            }
            Err(_) if self.terms.len() >= MAX_TERMS => return None,
            Err(at) => self.terms.insert(at, (monomial, coefficient)),
        }
        Some(())
    }

    pub(super) fn add(mut self, other: &Poly) -> Option<Poly> {
        for (monomial, coefficient) in &other.terms {
            self.add_term(monomial.clone(), *coefficient)?;
        }
        self.in_bounds()
    }

    pub(super) fn scale(mut self, by: i64) -> Option<Poly> {
        if by == 0 {
            return Some(Poly::default());
        }
        for (_, coefficient) in &mut self.terms {
            *coefficient = coefficient.checked_mul(by)?;
        }
        Some(self)
    }

    pub(super) fn mul(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                product.add_term(left.mul(right)?, a.checked_mul(*b)?)?;
            }
        }
        product.in_bounds()
    }

    /// Long division by the leading term; `None` unless the remainder is zero.
    pub(super) fn exact_div(mut self, divisor: &Poly) -> Option<Poly> {
        let (lead, lead_coefficient) = divisor.terms.first()?;
        let mut quotient = Poly::default();
        while let Some((monomial, coefficient)) = self.terms.first().cloned() {
            if coefficient.checked_rem(*lead_coefficient)? != 0 {
                return None;
            }
            let factor = (monomial.div(lead)?, coefficient / lead_coefficient);
            quotient.add_term(factor.0.clone(), factor.1)?;
            let step = Poly { terms: vec![factor] };
            self = self.add(&divisor.mul(&step)?.scale(-1)?)?;
        }
        Some(quotient)
    }

    /// `floor(self / divisor)` for a positive divisor: whole multiples of the divisor come out, common factors
    /// cancel, and a floor of a floor is one floor.
    pub(super) fn floor_div(&self, divisor: i64) -> Option<Poly> {
        let mut whole = Poly::default();
        let mut rest = Poly::default();
        for (monomial, coefficient) in &self.terms {
            whole.add_term(monomial.clone(), coefficient.div_euclid(divisor))?;
            rest.add_term(monomial.clone(), coefficient.rem_euclid(divisor))?;
        }
        let common = rest.terms.iter().filter(|(m, _)| !m.0.is_empty()).fold(divisor, |g, (_, c)| gcd(g, *c));
        for (_, coefficient) in &mut rest.terms {
            *coefficient = coefficient.div_euclid(common);
        }
        rest.terms.retain(|(_, coefficient)| *coefficient != 0);
        let divisor = divisor / common;
        if divisor == 1 {
            return whole.add(&rest);
        }
        if rest.as_const().is_some() {
            return Some(whole); // a constant in 0..divisor
        }
        if let Some((numerator, inner)) = rest.floor_plus_const() {
            return whole.add(&numerator?.floor_div(inner.checked_mul(divisor)?)?);
        }
        if rest.depth() >= MAX_DEPTH {
            return None;
        }
        let size = rest.size();
        whole.add(&Poly::atom(Atom::Floor { numerator: Arc::new(rest), divisor, size }))
    }

    /// For `floor(p / k) + c`: (`p + k*c`, `k`), so that a division around it can join.
    fn floor_plus_const(&self) -> Option<(Option<Poly>, i64)> {
        let mut head = self.clone();
        let offset = match head.terms.last() {
            Some((monomial, value)) if monomial.0.is_empty() => *value,
            _ => 0,
        };
        if offset != 0 {
            head.terms.pop();
        }
        match head.single_atom()? {
            Atom::Floor { numerator, divisor, .. } => {
                let shift = offset.checked_mul(*divisor);
                let joined = shift.and_then(|s| (**numerator).clone().add(&Poly::constant(s)));
                Some((joined, *divisor))
            }
            Atom::Symbol(_) | Atom::Unknown(_) | Atom::Number(_) => None,
        }
    }

    pub(super) fn collect_symbols(&self, names: &mut BTreeSet<String>) {
        for (atom, _) in self.terms.iter().flat_map(|(monomial, _)| &monomial.0) {
            match atom {
                Atom::Symbol(name) => {
                    names.insert(name.to_string());
                }
                Atom::Unknown(id) => {
                    names.insert(format!("?{id}"));
                }
                Atom::Number(id) => {
                    names.insert(format!("~{id}"));
                }
                Atom::Floor { numerator, .. } => numerator.collect_symbols(names),
            }
        }
    }

    /// Whether one of its atoms is so, those within floor divisions included.
    pub(super) fn any_atom(&self, is: &dyn Fn(&Atom) -> bool) -> bool {
        self.terms.iter().flat_map(|(monomial, _)| &monomial.0).any(|(atom, _)| match atom {
            Atom::Floor { numerator, .. } => numerator.any_atom(is),
            _ => is(atom),
        })
    }

    /// Whether no value of its symbols makes it negative, as far as its spelling shows.
    pub(super) fn is_never_negative(&self) -> bool {
        self.is_at_least(0)
            || self.without_floors().is_some_and(|(rest, least)| rest.is_at_least(least))
            || self.spelled_without_some(0, SPELLINGS)
    }

    /// Whether it is never negative when this is added, by the signs of its terms alone.
    fn is_at_least(&self, least: i64) -> bool {
        let (constants, others): (Vec<_>, Vec<_>) = self.terms.iter().partition(|(m, _)| m.0.is_empty());
        let constant = constants.first().map_or(0, |(_, value)| *value);
        constant.checked_add(least).is_some_and(|least| least >= 0)
            && others.iter().all(|(m, c)| *c > 0 && m.0.iter().all(|(atom, _)| atom.is_never_negative()))
    }

    /// The same where only some of the floor divisions are spelled by what they leave, one after the other: an atom of one may be
    /// what another one is made of.
    fn spelled_without_some(&self, least: i64, steps: u32) -> bool {
        if self.terms.len() > MOST_SPELLED {
            return false;
        }
        let spelled = |at: usize, by: i64| {
            let (rest, more) = self.without_floor(at, by)?;
            let least = least.checked_add(more)?;
            Some(rest.is_at_least(least) || (steps > 1 && rest.spelled_without_some(least, steps - 1)))
        };
        let ways = |(at, term): (usize, &(Monomial, i64))| match (term.0.0.as_slice(), term.1.checked_abs()) {
            ([(Atom::Floor { divisor, .. }, 1)], Some(coefficient)) => {
                let common = gcd(coefficient, *divisor);
                let divides = |by: &i64| common % by == 0;
                [common]
                    .into_iter()
                    .chain((2..common.min(MOST_DIVISOR)).filter(divides))
                    .any(|by| spelled(at, by) == Some(true))
            }
            _ => false,
        };
        self.terms.iter().enumerate().any(ways)
    }

    /// The same with `floor(n / k) - (floor(n / k) mod b)` for `b * floor(n / (b * k))` in this term, and the least that the remainder
    /// comes to.
    fn without_floor(&self, at: usize, by: i64) -> Option<(Poly, i64)> {
        let (monomial, coefficient) = self.terms.get(at)?;
        let [(Atom::Floor { numerator, divisor, .. }, 1)] = monomial.0.as_slice() else { return None };
        let times = coefficient / by;
        let mut rest = self.clone();
        rest.terms.remove(at);
        let least = if times > 0 { times.checked_mul(by - 1)?.checked_neg()? } else { 0 };
        Some((rest.add(&numerator.floor_div(divisor / by)?.scale(times)?)?, least))
    }

    /// The same with `floor(n / k) - (floor(n / k) mod b)` for each `b * floor(n / (b * k))`, and the least that these remainders
    /// come to.
    fn without_floors(&self) -> Option<(Poly, i64)> {
        let (mut rest, mut least) = (Poly::default(), 0_i64);
        for (monomial, coefficient) in &self.terms {
            match monomial.0.as_slice() {
                [(Atom::Floor { numerator, divisor, .. }, 1)] => {
                    let by = gcd(coefficient.checked_abs()?, *divisor);
                    let times = coefficient / by;
                    rest = rest.add(&numerator.floor_div(divisor / by)?.scale(times)?)?;
                    if times > 0 {
                        least = least.checked_sub(times.checked_mul(by - 1)?)?;
                    }
                }
                _ => rest.add_term(monomial.clone(), *coefficient)?,
            }
        }
        Some((rest, least))
    }

    pub(super) fn eval(&self, value_of: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let mut sum = 0i64;
        for (monomial, coefficient) in &self.terms {
            let mut term = *coefficient;
            for (atom, power) in &monomial.0 {
                let value = match atom {
                    Atom::Symbol(name) => value_of(name)?,
                    Atom::Unknown(id) => value_of(&format!("?{id}"))?,
                    Atom::Number(id) => value_of(&format!("~{id}"))?,
                    Atom::Floor { numerator, divisor, .. } => numerator.eval(value_of)?.div_euclid(*divisor),
                };
                term = term.checked_mul(value.checked_pow(*power)?)?;
            }
            sum = sum.checked_add(term)?;
        }
        Some(sum)
    }

    pub(super) fn substitute(&self, value_of: &dyn Fn(&str) -> Option<Dim>) -> Option<Dim> {
        let mut sum = Dim::ZERO;
        for (monomial, coefficient) in &self.terms {
            let mut term = Dim::from(*coefficient);
            for (atom, power) in &monomial.0 {
                let kept = || Dim(Repr::Poly(Arc::new(Poly::atom(atom.clone()))));
                let value = match atom {
                    Atom::Symbol(name) => value_of(name).unwrap_or_else(kept),
                    Atom::Unknown(id) => value_of(&format!("?{id}")).unwrap_or_else(kept),
                    Atom::Number(id) => value_of(&format!("~{id}")).unwrap_or_else(kept),
                    Atom::Floor { numerator, divisor, .. } => {
                        numerator.substitute(value_of)?.checked_floor_div(*divisor)?
                    }
                };
                for _ in 0..*power {
                    term = term.checked_mul(&value)?;
                }
            }
            sum = sum.checked_add(&term)?;
        }
        Some(sum)
    }
}

/// Greatest common divisor of non-negative numbers.
fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
