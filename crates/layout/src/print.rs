//! Text of a layout, printing.
//!
//! A permutation is its letters in storage order (`NHWC`), a blocked layout its name if it has one (`NCHW16c`,
//! `OIHW16i16o`, `CHWN4`), everything else the general form: one word per factor, `/div`, `%modulo`, and the slot map
//! with the outermost digit of its axis (`C[58:64,58:64]`).

use std::fmt::{self, Write as _};

use super::names::LayoutNames;
use super::{Factor, Layout, Segment};

/// Families whose blocked forms have names.
const BLOCKED: &[&str] = &["NCHW", "NCDHW", "NCW", "OIHW", "OIDHW", "OIW"];

/// MegEngine's names for orders that are no family with blocks appended, with their general form.
const SPECIAL: &[(&str, &str)] = &[("CHWN4", "C/4 H W N C%4"), ("NHCWc4", "N H C/4 W C%4")];

/// A layout with letters, ready to be printed.
#[derive(Debug)]
pub(super) struct Named<'l> {
    layout: &'l Layout,
    names: LayoutNames,
}

impl Layout {
    /// The text with these letters; with letters for another rank, the default ones.
    pub fn display(&self, names: &LayoutNames) -> impl fmt::Display + '_ {
        let fitting = if names.fits(self.rank()) { names.clone() } else { LayoutNames::default_for(self.rank()) };
        Named { layout: self, names: fitting }
    }

    /// The general form with these letters, also where the layout has a name.
    pub fn general_form(&self, names: &LayoutNames) -> String {
        let names = if names.fits(self.rank()) { names.clone() } else { LayoutNames::default_for(self.rank()) };
        let words: Vec<String> = self.factors().iter().map(|factor| self.word(factor, &names)).collect();
        if words.is_empty() { "scalar".to_owned() } else { words.join(" ") }
    }

    fn word(&self, factor: &Factor, names: &LayoutNames) -> String {
        let axis = usize::from(factor.axis);
        let mut word = names.of(axis);
        if let (None, Some(segments)) = (factor.modulo, self.slot_map(axis)) {
            word.push_str(&segments_text(segments));
        }
        if factor.div > 1 {
            let _ = write!(word, "/{}", factor.div);
        }
        if let Some(modulo) = factor.modulo {
            let _ = write!(word, "%{modulo}");
        }
        word
    }

    /// The name of a family with blocks appended: outer digits in logical order, then the blocks.
    fn blocked_name(&self, names: &LayoutNames) -> Option<String> {
        let mut name = names.word();
        if !self.spelled.slots.is_empty() || !BLOCKED.contains(&name.as_str()) {
            return None;
        }
        let (outer, inner) = self.factors().split_at_checked(self.rank())?;
        let ordered = outer.iter().enumerate().all(|(at, f)| usize::from(f.axis) == at && f.modulo.is_none());
        // A name lists the blocks of one axis from coarse to fine.
        let falling = inner
            .iter()
            .enumerate()
            .all(|(at, f)| inner.iter().take(at).all(|before| before.axis != f.axis || before.div > f.div));
        if !ordered || !falling {
            return None;
        }
        for factor in inner {
            write!(name, "{}{}", factor.modulo?, names.of(usize::from(factor.axis)).to_ascii_lowercase()).ok()?;
        }
        Some(name)
    }
}

fn segments_text(segments: &[Segment]) -> String {
    let mut words: Vec<String> = Vec::new();
    for run in segments.chunk_by(|a, b| a == b) {
        let Some(first) = run.first() else { continue };
        let word = format!("{}:{}", first.len, first.slots);
        match run.len() {
            count @ 3.. => words.push(format!("{word}*{count}")),
            count => words.extend(std::iter::repeat_n(word, count)),
        }
    }
    format!("[{}]", words.join(","))
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.layout.rank();
        if rank == 0 {
            return f.write_str("scalar");
        }
        match self.layout.as_permutation() {
            Some(axes) if rank <= 26 => return axes.iter().try_for_each(|axis| f.write_str(&self.names.of(*axis))),
            _ => {}
        }
        if let Some(name) = self.layout.blocked_name(&self.names) {
            return f.write_str(&name);
        }
        let general = self.layout.general_form(&self.names);
        let special = SPECIAL.iter().find(|(_, form)| *form == general);
        f.write_str(special.map_or(general.as_str(), |(name, _)| name))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Named { layout: self, names: LayoutNames::default_for(self.rank()) }, f)
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Layout {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
