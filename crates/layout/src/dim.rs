//! Extents: constants, named symbols, and what shape arithmetic makes of them.
//!
//! A [`Dim`] is a polynomial with integer coefficients over *atoms*. An atom is a named symbol (`N`), an anonymous
//! unknown (`?7`; `~7` if it is no extent and may be negative) or a floor division of a polynomial by a positive constant (`(H+1)//2`). Every constructor brings
//! the value into one canonical form, and equality, order and hash are those of the form: `(H-1)//2+1` and `(H+1)//2`
//! are the same `Dim`.
//!
//! Invariants: a polynomial that is a constant is stored as the constant, so the common case costs no allocation;
//! monomials are sorted in descending graded lexicographic order and have non-zero coefficients; the numerator of a
//! floor atom has all coefficients in `0..k`, none of them sharing a factor with `k`.
//!
//! Absent on purpose: ranges (a symbol is any integer), division by a polynomial that leaves a remainder, and
//! minimum and maximum. Every operation answers `None` on overflow of `i64` and above [`MAX_TERMS`] terms, and never
//! panics.

mod poly;
mod text;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use poly::Poly;
pub use text::ParseDimError;

/// Most terms that a polynomial may have, inner polynomials of floor divisions included one by one. Arithmetic that
/// would pass it answers `None`.
pub const MAX_TERMS: usize = 256;

/// Most terms and names that a polynomial is written with, those of floor divisions in each place where these stand: divisions within
/// products within divisions would grow without bounds otherwise. Arithmetic that would pass it answers `None`.
pub const MAX_SIZE: usize = 4096;

/// Highest total degree of a monomial.
pub const MAX_DEGREE: u32 = 64;

/// Deepest nesting of floor divisions, and of parentheses in text.
pub const MAX_DEPTH: u32 = 32;

/// An extent of a tensor axis, or a number computed from extents.
///
/// ```
/// use relayout_layout::dim::Dim;
/// let h: Dim = "(H-1)//2+1".parse().unwrap();
/// assert_eq!(h, Dim::symbol("H").ceil_div(2).unwrap());
/// assert_eq!(h.eval(&|name| (name == "H").then_some(225)), Some(113));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dim(Repr);

/// `Const` is used whenever the value is constant, so a `Poly` always has a symbol in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    Const(i64),
    Poly(Arc<Poly>),
}

impl Dim {
    /// The extent of a size-1 axis.
    pub const ONE: Dim = Dim(Repr::Const(1));
    /// The extent of an empty axis.
    pub const ZERO: Dim = Dim(Repr::Const(0));

    /// The symbol of this name, which may be any text (ONNX puts no limit on a `dim_param`).
    pub fn symbol(name: &str) -> Dim {
        Dim::from_poly(Poly::atom(poly::Atom::Symbol(Arc::from(name))))
    }

    /// The anonymous extent number `id`; two unknowns are equal iff their numbers are.
    pub fn unknown(id: u32) -> Dim {
        Dim::from_poly(Poly::atom(poly::Atom::Unknown(id)))
    }

    /// The anonymous number `id`, which need not be an extent: nothing is assumed of its sign.
    pub fn unknown_number(id: u32) -> Dim {
        Dim::from_poly(Poly::atom(poly::Atom::Number(id)))
    }

    /// Whether there is a number in it that may be negative without saying so: no extent is spelled with it.
    pub fn holds_number(&self) -> bool {
        self.any_atom(&|atom| matches!(atom, poly::Atom::Number(_)))
    }

    /// Whether something anonymous is in it.
    pub fn is_anonymous(&self) -> bool {
        self.any_atom(&|atom| matches!(atom, poly::Atom::Unknown(_) | poly::Atom::Number(_)))
    }

    /// Whether no value of its symbols makes it negative, as far as its spelling shows: symbols and unknown extents are not negative,
    /// and what a floor division leaves of its numerator lies between 0 and its divisor. Nothing is known of the sign of a number.
    ///
    /// ```
    /// use relayout_layout::dim::Dim;
    /// let negative = |text: &str| !text.parse::<Dim>().unwrap().is_never_negative();
    /// assert!(!negative("2 - (H - 2*(H//2))") && negative("1 - (H - 3*(H//3))") && negative("H - 1"));
    /// assert!(!negative("H//2 - 3*(H//6)"));
    /// assert!(!negative("6 - 4*((H+31)//32) + 6*((2*((H+31)//32))//3)") && !negative("2*((H+31)//32) - 6*((H+31)//96)"));
    /// assert!(negative("2*((H+31)//32) - 7*((H+31)//96)") && negative("1 - 2*((H+31)//32) + 6*((H+31)//96)"));
    /// ```
    pub fn is_never_negative(&self) -> bool {
        match &self.0 {
            Repr::Const(value) => *value >= 0,
            Repr::Poly(poly) => poly.is_never_negative(),
        }
    }

    fn any_atom(&self, is: &dyn Fn(&poly::Atom) -> bool) -> bool {
        match &self.0 {
            Repr::Const(_) => false,
            Repr::Poly(poly) => poly.any_atom(is),
        }
    }

    fn from_poly(poly: Poly) -> Dim {
        match poly.as_const() {
            Some(value) => Dim(Repr::Const(value)),
            None => Dim(Repr::Poly(Arc::new(poly))),
        }
    }

    fn to_poly(&self) -> Poly {
        match &self.0 {
            Repr::Const(value) => Poly::constant(*value),
            Repr::Poly(poly) => (**poly).clone(),
        }
    }

    /// The value, if no symbol is left in it.
    pub fn as_const(&self) -> Option<i64> {
        match self.0 {
            Repr::Const(value) => Some(value),
            Repr::Poly(_) => None,
        }
    }

    /// Whether the value is known.
    pub fn is_const(&self) -> bool {
        matches!(self.0, Repr::Const(_))
    }

    /// Whether the extent is known to be 1.
    pub fn is_one(&self) -> bool {
        matches!(self.0, Repr::Const(1))
    }

    /// The name, if the extent is exactly one named symbol.
    pub fn as_symbol(&self) -> Option<&str> {
        match &self.0 {
            Repr::Const(_) => None,
            Repr::Poly(poly) => poly.as_symbol(),
        }
    }

    /// `self + other`.
    pub fn checked_add(&self, other: &Dim) -> Option<Dim> {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.checked_add(*b).map(Dim::from),
            _ => self.to_poly().add(&other.to_poly()).map(Dim::from_poly),
        }
    }

    /// `self - other`.
    pub fn checked_sub(&self, other: &Dim) -> Option<Dim> {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.checked_sub(*b).map(Dim::from),
            _ => self.to_poly().add(&other.to_poly().scale(-1)?).map(Dim::from_poly),
        }
    }

    /// `self * other`.
    pub fn checked_mul(&self, other: &Dim) -> Option<Dim> {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.checked_mul(*b).map(Dim::from),
            (Repr::Const(1), _) => Some(other.clone()),
            (_, Repr::Const(1)) => Some(self.clone()),
            _ => self.to_poly().mul(&other.to_poly()).map(Dim::from_poly),
        }
    }

    /// `floor(self / divisor)`; `None` unless `divisor > 0`.
    pub fn checked_floor_div(&self, divisor: i64) -> Option<Dim> {
        if divisor <= 0 {
            return None;
        }
        match &self.0 {
            Repr::Const(value) => Some(Dim::from(value.div_euclid(divisor))),
            Repr::Poly(_) if divisor == 1 => Some(self.clone()),
            Repr::Poly(poly) => poly.floor_div(divisor).map(Dim::from_poly),
        }
    }

    /// `ceil(self / divisor)`; `None` unless `divisor > 0`.
    pub fn checked_ceil_div(&self, divisor: i64) -> Option<Dim> {
        if divisor <= 0 {
            return None;
        }
        match &self.0 {
            Repr::Const(value) => {
                let up = i64::from(value.rem_euclid(divisor) != 0);
                value.div_euclid(divisor).checked_add(up).map(Dim::from)
            }
            Repr::Poly(_) => self.checked_add(&Dim::from(divisor - 1))?.checked_floor_div(divisor),
        }
    }

    /// Shorthand of [`Dim::checked_floor_div`].
    pub fn floor_div(&self, divisor: i64) -> Option<Dim> {
        self.checked_floor_div(divisor)
    }

    /// Shorthand of [`Dim::checked_ceil_div`].
    pub fn ceil_div(&self, divisor: i64) -> Option<Dim> {
        self.checked_ceil_div(divisor)
    }

    /// The quotient, if `divisor` divides `self` as a polynomial: `2*H*W / H = 2*W`, but `N / 2` is `None`.
    /// `None` also for a divisor of zero.
    pub fn exact_div(&self, divisor: &Dim) -> Option<Dim> {
        match (&self.0, &divisor.0) {
            (_, Repr::Const(0)) => None,
            (Repr::Const(a), Repr::Const(b)) => (a.checked_rem(*b)? == 0).then(|| Dim::from(a / b)),
            (_, Repr::Const(1)) => Some(self.clone()),
            (Repr::Const(0), _) => Some(Dim::ZERO),
            (Repr::Const(_), Repr::Poly(_)) => None,
            _ if self == divisor => Some(Dim::ONE),
            _ => self.to_poly().exact_div(&divisor.to_poly()).map(Dim::from_poly),
        }
    }

    /// The product of all, 1 for none.
    pub fn product(dims: &[Dim]) -> Option<Dim> {
        dims.iter().try_fold(Dim::ONE, |acc, dim| acc.checked_mul(dim))
    }

    /// The symbols in it, sorted; an unknown goes by its text, `?7` or `~7`.
    pub fn symbols(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        if let Repr::Poly(poly) = &self.0 {
            poly.collect_symbols(&mut names);
        }
        names
    }

    /// The value where `value_of` gives that of each symbol (an unknown is asked for as `?7`). `None` if one is not
    /// given or the arithmetic overflows.
    pub fn eval(&self, value_of: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        match &self.0 {
            Repr::Const(value) => Some(*value),
            Repr::Poly(poly) => poly.eval(value_of),
        }
    }

    /// The dim with each symbol replaced by what `value_of` gives, and kept where it gives `None`. The outer `None`
    /// is overflow or too many terms.
    pub fn substitute(&self, value_of: &dyn Fn(&str) -> Option<Dim>) -> Option<Dim> {
        match &self.0 {
            Repr::Const(_) => Some(self.clone()),
            Repr::Poly(poly) => poly.substitute(value_of),
        }
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        Dim(Repr::Const(value))
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Dim {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Dim {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Dim, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
/// How many elements a tensor of these extents has: their product, 1 for a scalar. One extent of 0 makes it empty, whatever the others
/// multiply to. `None` if an extent is negative, or if there are more elements than `u64` counts.
///
/// ```
/// use relayout_layout::dim::element_count;
/// assert_eq!(element_count([2_i64, 3]), Some(6));
/// assert_eq!(element_count([i64::MAX, i64::MAX, 0]), Some(0));
/// assert_eq!(element_count([i64::MAX, i64::MAX]), None);
/// assert_eq!(element_count([0, -1]), None);
/// ```
pub fn element_count<T: TryInto<u64>>(extents: impl IntoIterator<Item = T>) -> Option<u64> {
    let (mut count, mut is_empty) = (Some(1_u64), false);
    for extent in extents {
        let extent = extent.try_into().ok()?;
        is_empty |= extent == 0;
        count = count.and_then(|count| count.checked_mul(extent));
    }
    if is_empty { Some(0) } else { count }
}

/// How many bytes a tensor of these extents has, at so many bytes an element; `None` if that is more than one piece of memory can have.
pub fn byte_count<T: TryInto<u64>>(extents: impl IntoIterator<Item = T>, elem_bytes: usize) -> Option<usize> {
    let bytes = element_count(extents)?.checked_mul(elem_bytes as u64)?;
    isize::try_from(bytes).ok()?;
    usize::try_from(bytes).ok()
}
