//! Text of a [`Dim`], both ways.
//!
//! Printed: terms in descending degree, `2*H*W+1`, powers as `H^2`, floor division as `(H+1)//2` (in parentheses of
//! its own where it is multiplied), unknowns as `?7` (`~7` if they may be negative), and names that are not identifiers in backquotes with a
//! backquote doubled. Read: the same, and any expression of `+ - * // ^` and parentheses, `*` and `//` binding from
//! the left as in Python. Reading what was printed gives the same `Dim`.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::poly::{Atom, Poly};
use super::{Dim, MAX_DEPTH, Repr};

/// Why a text is not a [`Dim`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDimError {
    /// Something else was due at this place.
    #[error("dimension `{text}`: expected {expected} at byte {at}")]
    Expected {
        /// The whole text.
        text: String,
        /// What would have fitted.
        expected: &'static str,
        /// Byte offset into the text.
        at: usize,
    },
    /// A number or an intermediate result is too large, or parentheses nest too deeply.
    #[error(
        "dimension `{text}`: the value does not fit (64-bit integers, 256 terms, 4096 terms and names, 32 levels of nesting)"
    )]
    TooLarge {
        /// The whole text.
        text: String,
    },
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Const(value) => write!(f, "{value}"),
            Repr::Poly(poly) => fmt_poly(poly, f),
        }
    }
}

fn fmt_poly(poly: &Poly, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, (monomial, coefficient)) in poly.terms.iter().enumerate() {
        if index > 0 && *coefficient > 0 {
            f.write_char('+')?;
        }
        let alone = monomial.0.len() == 1 && *coefficient == 1 && monomial.0[0].1 == 1;
        match *coefficient {
            value if monomial.0.is_empty() => write!(f, "{value}")?,
            1 => {}
            -1 => f.write_char('-')?,
            value => write!(f, "{value}*")?,
        }
        for (position, (atom, power)) in monomial.0.iter().enumerate() {
            if position > 0 {
                f.write_char('*')?;
            }
            fmt_atom(atom, alone, f)?;
            if *power > 1 {
                write!(f, "^{power}")?;
            }
        }
    }
    Ok(())
}

fn fmt_atom(atom: &Atom, alone: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match atom {
        Atom::Symbol(name) if is_identifier(name) => f.write_str(name),
        Atom::Symbol(name) => write!(f, "`{}`", name.replace('`', "``")),
        Atom::Unknown(id) => write!(f, "?{id}"),
        Atom::Number(id) => write!(f, "~{id}"),
        Atom::Floor { numerator, divisor, .. } => {
            if !alone {
                f.write_char('(')?;
            }
            if numerator.as_symbol().is_some() {
                fmt_poly(numerator, f)?;
            } else {
                f.write_char('(')?;
                fmt_poly(numerator, f)?;
                f.write_char(')')?;
            }
            write!(f, "//{divisor}")?;
            if alone { Ok(()) } else { f.write_char(')') }
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl FromStr for Dim {
    type Err = ParseDimError;

    fn from_str(text: &str) -> Result<Dim, ParseDimError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let value = parser.sum()?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.expected("an operator or the end"));
        }
        Ok(value)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn expected(&self, expected: &'static str) -> ParseDimError {
        ParseDimError::Expected { text: self.text.to_owned(), expected, at: self.at }
    }

    fn fits<T>(&self, value: Option<T>) -> Result<T, ParseDimError> {
        value.ok_or_else(|| ParseDimError::TooLarge { text: self.text.to_owned() })
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let hit = self.rest().starts_with(token);
        if hit {
            self.at += token.len();
        }
        hit
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &str {
        let start = self.at;
        let length = self.rest().find(|c| !keep(c)).unwrap_or(self.rest().len());
        self.at += length;
        &self.text[start..self.at]
    }

    fn sum(&mut self) -> Result<Dim, ParseDimError> {
        let mut value = self.product()?;
        loop {
            if self.eat("+") {
                let right = self.product()?;
                value = self.fits(value.checked_add(&right))?;
            } else if self.eat("-") {
                let right = self.product()?;
                value = self.fits(value.checked_sub(&right))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<Dim, ParseDimError> {
        // The sign belongs to the whole product, but a literal takes its own so that i64::MIN can be read.
        let negative = self.eat("-");
        let mut value = self.power(negative)?;
        loop {
            if self.eat("*") {
                let right = self.power(false)?;
                value = self.fits(value.checked_mul(&right))?;
            } else if self.eat("//") {
                let divisor = self.power(false)?;
                let divisor = divisor.as_const().filter(|d| *d > 0);
                let divisor = divisor.ok_or_else(|| self.expected("a positive constant divisor before this"))?;
                value = self.fits(value.checked_floor_div(divisor))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self, negative: bool) -> Result<Dim, ParseDimError> {
        let base = self.primary(negative)?;
        if !self.eat("^") {
            return Ok(base);
        }
        self.skip_space();
        let digits = self.take_while(|c| c.is_ascii_digit()).to_owned();
        let exponent: u32 = digits.parse().map_err(|_| self.expected("an exponent"))?;
        if exponent > super::MAX_DEGREE {
            return self.fits(None);
        }
        // The sign is outside of the power: -H^2 is -(H^2).
        let (base, sign) = if negative { (self.fits(Dim::ZERO.checked_sub(&base))?, -1) } else { (base, 1) };
        let mut value = Dim::from(sign);
        for _ in 0..exponent {
            value = self.fits(value.checked_mul(&base))?;
        }
        Ok(value)
    }

    fn primary(&mut self, negative: bool) -> Result<Dim, ParseDimError> {
        self.skip_space();
        let value = match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() => {
                let digits = self.take_while(|c| c.is_ascii_digit());
                let literal = if negative { format!("-{digits}") } else { digits.to_owned() };
                return self.fits(literal.parse().ok()).map(|value: i64| Dim::from(value));
            }
            Some(mark @ ('?' | '~')) => {
                self.at += 1;
                let digits = self.take_while(|c| c.is_ascii_digit()).to_owned();
                let id = digits.parse().map_err(|_| self.expected("the number of an unknown"))?;
                if mark == '?' { Dim::unknown(id) } else { Dim::unknown_number(id) }
            }
            Some('`') => Dim::symbol(&self.quoted()?),
            Some('(') => {
                self.at += 1;
                self.depth += 1;
                if self.depth > 2 * MAX_DEPTH {
                    return self.fits(None);
                }
                let inner = self.sum()?;
                if !self.eat(")") {
                    return Err(self.expected("`)`"));
                }
                self.depth -= 1;
                inner
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                Dim::symbol(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_'))
            }
            _ => return Err(self.expected("a number, a name, `?` or `(`")),
        };
        if negative { self.fits(Dim::ZERO.checked_sub(&value)) } else { Ok(value) }
    }

    fn quoted(&mut self) -> Result<String, ParseDimError> {
        self.at += 1;
        let mut name = String::new();
        loop {
            name.push_str(self.take_while(|c| c != '`'));
            if self.at >= self.text.len() {
                return Err(self.expected("a closing backquote"));
            }
            self.at += 1;
            if !self.rest().starts_with('`') {
                return Ok(name);
            }
            self.at += 1;
            name.push('`');
        }
    }
}
