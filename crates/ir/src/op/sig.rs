//! The language of signatures.
//!
//! ```text
//! signature := side "->" side
//! side      := operand ("," operand)*
//! operand   := axis* suffix | "_" suffix          `_`: read as it is, no axes
//! axis      := place mark
//! place     := letter                             one axis, found by its position: pinned
//!            | letter "*"                         a run of axes, as many as the rank leaves; free
//!            | letter "*!"                        a run found by position: pinned
//!            | letter "*:1"                       (results) the run, each axis of extent 1
//!            | letter "*@x"                       a run that takes the place of `[x]` in the results, together and in order
//!            | "[" letter "]"                     the axis that the op's axis attribute names; free
//!            | "<" letter ">"                     one axis that the op finds by a letter of its own (Einsum); free
//!            | "(" digit+ ")"                     one axis spelled by several digits, outermost first; pinned
//! digit     := letter "~"?                       with `~`: nothing is said of this digit
//! mark      := "" | "~" | "^" | "|"               `~`: whole, an element of the result reads all of it or its extent
//!                                                 changes; `^`: goes through a sliding window; `|`: joined, runs of it
//!                                                 stand one after another
//! suffix    := "" | "?" | "..." digit?            optional; repeated, with the same letters, any number of times, with a
//!                                                 digit together with the operands before it, that many in all
//! ```
//!
//! A run that stands only in results is as long as their rank leaves it.
//! Operands that share a run at different lengths are aligned at its end, as NumPy broadcasts. Of two runs in one operand
//! the axis attribute says where the second begins, and both lengths are then settled: an operand may have fewer axes of
//! such a run, never more. A mark on one occurrence of a letter holds for all; without one the role of a letter follows from
//! the sides on which it stands.

use crate::form::Role;

/// Where an axis or a run of axes of an operand is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    Single(&'a str),
    Run { letter: &'a str, pinned: bool, replaces: Option<&'a str> },
    Named(&'a str),
    Lettered(&'a str),
    Digits(&'a str),
}

/// One axis or run of axes, with the role that a mark gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) role: Option<Role>,
}

/// How often an operand occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    Optional,
    /// With so many operands in one repetition, this one being the last.
    Repeated(usize),
}

/// One operand or result of a signature; no items and `whole` for `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern<'a> {
    pub(crate) items: Vec<Item<'a>>,
    pub(crate) whole: bool,
    pub(crate) times: Times,
}

impl<'a> Pattern<'a> {
    /// Number of axes that are not in a run.
    pub(crate) fn singles(&self) -> usize {
        self.items.len() - self.runs().count()
    }

    /// Number of axes before the first run.
    pub(crate) fn before_runs(&self) -> usize {
        self.items.iter().take_while(|i| !matches!(i.place, Place::Run { .. })).count()
    }

    /// Letters of the runs.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.items.iter().filter_map(|i| match i.place {
            Place::Run { letter, .. } => Some(letter),
            _ => None,
        })
    }
}

/// A parsed signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature<'a> {
    pub(crate) operands: Vec<Pattern<'a>>,
    pub(crate) results: Vec<Pattern<'a>>,
}

/// Parses a signature. The texts are the project's own constants; a test parses them all.
pub(crate) fn parse(text: &str) -> Result<Signature<'_>, String> {
    let (operands, results) = text.split_once("->").ok_or_else(|| format!("`{text}` has no `->`"))?;
    let (operands, results) = (side(operands)?, side(results)?);
    if operands.iter().any(|p| p.runs().count() > 2) {
        return Err(format!("`{text}`: more than two runs in one operand"));
    }
    Ok(Signature { operands, results })
}

fn side(text: &str) -> Result<Vec<Pattern<'_>>, String> {
    let side: Vec<Pattern<'_>> = text.split(',').map(|operand| pattern(operand.trim())).collect::<Result<_, _>>()?;
    let last = side.len() - 1;
    let repeated = |p: &Pattern<'_>| matches!(p.times, Times::Repeated(_));
    if side[..last].iter().any(repeated) {
        return Err(format!("`{text}`: only the last operand can be repeated"));
    }
    if matches!(side[last].times, Times::Repeated(n) if n == 0 || n > side.len()) {
        return Err(format!("`{text}`: repeats more operands than it has"));
    }
    Ok(side)
}

fn pattern(text: &str) -> Result<Pattern<'_>, String> {
    let repeated = text.split_once("...").map(|(t, n)| (t, if n.is_empty() { Ok(1) } else { n.parse() }));
    let (text, times) = if let Some((t, n)) = repeated {
        (t, Times::Repeated(n.map_err(|_| format!("`{text}`: `...` is followed by no number"))?))
    } else if let Some(t) = text.strip_suffix('?') {
        (t, Times::Optional)
    } else {
        (text, Times::Once)
    };
    let text = text.trim();
    if text == "_" {
        return Ok(Pattern { items: vec![], whole: true, times });
    }
    let mut items = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        // A space ends an axis, but not within parentheses.
        let from = if rest.starts_with('(') {
            rest.find(')').ok_or_else(|| format!("`{text}`: `(` is not closed"))?
        } else {
            0
        };
        let end = rest[from..].find(' ').map_or(rest.len(), |i| from + i);
        items.push(item(&rest[..end])?);
        rest = rest[end..].trim_start();
    }
    Ok(Pattern { items, whole: false, times })
}

fn item(token: &str) -> Result<Item<'_>, String> {
    let (token, role) = if let Some(t) = token.strip_suffix('~') {
        (t, Some(Role::Whole))
    } else if let Some(t) = token.strip_suffix('^') {
        (t, Some(Role::Windowed))
    } else if let Some(t) = token.strip_suffix('|') {
        (t, Some(Role::Joined))
    } else {
        (token, None)
    };
    let bad = || format!("`{token}` is not an axis");
    let letters = |text: &str| !text.is_empty() && text.chars().all(char::is_alphanumeric);
    let place = if let Some(inner) = token.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Place::Digits(inner)
    } else if let Some(inner) = token.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
        Place::Lettered(inner)
    } else if let Some(inner) = token.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Place::Named(inner)
    } else {
        let run = |letter, pinned, replaces| Place::Run { letter, pinned, replaces };
        match token.split_once('*') {
            None => Place::Single(token),
            Some((letter, "" | ":1")) => run(letter, false, None),
            Some((letter, "!")) => run(letter, true, None),
            Some((letter, at)) => {
                run(letter, false, Some(at.strip_prefix('@').filter(|x| letters(x)).ok_or_else(bad)?))
            }
        }
    };
    let well_formed = match &place {
        Place::Single(l) | Place::Named(l) | Place::Lettered(l) | Place::Run { letter: l, .. } => letters(l),
        Place::Digits(inner) => inner.split(' ').all(|digit| letters(digit.strip_suffix('~').unwrap_or(digit))),
    };
    well_formed.then_some(Item { place, role }).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convolution_reads_as_digits_runs_and_an_optional_bias() {
        let s = parse("n (g ci) s*!^, (g co) ci k*!, (g co)? -> n (g co) s*!^").unwrap();
        assert_eq!(s.operands.len(), 3);
        assert_eq!(s.operands[0].items[1], Item { place: Place::Digits("g ci"), role: None });
        assert_eq!(s.operands[2].times, Times::Optional);
        let windows = Place::Run { letter: "s", pinned: true, replaces: None };
        assert_eq!(s.results[0].items[2], Item { place: windows, role: Some(Role::Windowed) });
    }

    #[test]
    fn a_mark_may_follow_any_place() {
        for text in ["c~ -> c", "[x]~ -> [x]", "a*~ -> a*", "a*!~ -> a*", "(g ci)~ -> (g ci)"] {
            let s = parse(text).unwrap();
            assert_eq!(s.operands[0].items[0].role, Some(Role::Whole), "{text}");
            assert_eq!(s.operands[0].items.len(), 1, "{text}");
        }
    }

    #[test]
    fn a_letter_of_the_ops_own_and_a_digit_of_which_nothing_is_said_are_read() {
        let s = parse("<i> (c k~) -> <i>~ c").unwrap();
        assert_eq!(s.operands[0].items[0], Item { place: Place::Lettered("i"), role: None });
        assert_eq!(s.operands[0].items[1].place, Place::Digits("c k~"));
        assert_eq!(s.results[0].items[0].role, Some(Role::Whole));
    }

    #[test]
    fn malformed_texts_are_refused() {
        for text in [
            "a* -> a*...2",
            "a*...x -> a*",
            "a*",
            "a$ -> a",
            "<a -> a",
            "(a~~ b) -> a",
            "(g ci -> a",
            "a** -> a*",
            "a*@ -> a*",
            "~ -> a",
            "a*..., b -> a*",
            "a* b* c* -> a*",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
