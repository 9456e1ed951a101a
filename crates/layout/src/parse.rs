//! Text of a layout, reading: the general form, and the choice between it and the compact names.

use std::str::FromStr;

use super::names::{FAMILIES, LayoutNames};
use super::{Factor, Layout, LayoutError, MAX_SEGMENTS, Segment, alias};

/// A factor as written: the axis by name, everything else as it will be.
pub(super) struct Word {
    pub(super) name: String,
    pub(super) div: u64,
    pub(super) modulo: Option<u64>,
    pub(super) segments: Vec<Segment>,
}

pub(super) fn error(text: &str, why: impl Into<String>) -> LayoutError {
    LayoutError::Parse { text: text.to_owned(), why: why.into() }
}

impl FromStr for Layout {
    type Err = LayoutError;

    /// Reads the general form, a name, or an alias of oneDNN, TVM or MegEngine. The letters tell the logical order:
    /// `a`, `b`, `c`.. or one of the known families (`NCHW`, `OIHW`, `MN`, `XF`, ..).
    fn from_str(text: &str) -> Result<Layout, LayoutError> {
        Layout::parse_words(text, None)
    }
}

impl Layout {
    /// Like `parse`, with these letters for the axes.
    pub fn parse_with(text: &str, names: &LayoutNames) -> Result<Layout, LayoutError> {
        Layout::parse_words(text, Some(names))
    }

    fn parse_words(text: &str, names: Option<&LayoutNames>) -> Result<Layout, LayoutError> {
        let trimmed = text.trim();
        if trimmed == "scalar" {
            return Ok(Layout::row_major(0));
        }
        let general = trimmed.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '%' | '['));
        let words = if general { general_words(trimmed)? } else { alias::compact_words(trimmed)? };
        layout_of(trimmed, &words, names)
    }
}

fn layout_of(text: &str, words: &[Word], names: Option<&LayoutNames>) -> Result<Layout, LayoutError> {
    let mut used: Vec<String> = Vec::new();
    for word in words {
        if !used.iter().any(|name| name.eq_ignore_ascii_case(&word.name)) {
            used.push(word.name.clone());
        }
    }
    let rank = used.len();
    let inferred = if names.is_some() { None } else { LayoutNames::infer(&used) };
    let names = names.or(inferred.as_ref()).ok_or_else(|| {
        let families = FAMILIES.join(", ");
        error(text, format!("the letters {} are none of a b c.. or {families}", used.join(" ")))
    })?;
    let mut factors = Vec::with_capacity(words.len());
    let mut maps = Vec::new();
    for word in words {
        let axis = names.find(&word.name, rank).and_then(|axis| u8::try_from(axis).ok());
        let axis = axis.ok_or_else(|| error(text, format!("`{}` is not an axis here", word.name)))?;
        factors.push(Factor { axis, div: word.div, modulo: word.modulo });
        if !word.segments.is_empty() {
            maps.push((axis, word.segments.clone()));
        }
    }
    Layout::new(rank, factors, maps).map_err(|wrong| error(text, wrong.to_string()))
}

fn general_words(text: &str) -> Result<Vec<Word>, LayoutError> {
    text.split_whitespace().map(|token| general_word(text, token)).collect()
}

fn general_word(text: &str, token: &str) -> Result<Word, LayoutError> {
    let wrong = || {
        error(
            text,
            format!("`{token}` is not a factor; write a letter, then `[len:slots,..]`, `/div` and `%modulo` as needed"),
        )
    };
    let end = token.find(['[', '/', '%']).unwrap_or(token.len());
    let (name, mut rest) = token.split_at(end);
    let mut chars = name.chars();
    if !chars.next().is_some_and(|c| c.is_ascii_alphabetic()) || !chars.all(|c| c.is_ascii_digit()) {
        return Err(wrong());
    }
    let mut segments = Vec::new();
    if let Some(inside) = rest.strip_prefix('[') {
        let (list, after) = inside.split_once(']').ok_or_else(wrong)?;
        segments = segment_list(list).ok_or_else(wrong)?;
        rest = after;
    }
    let (div, modulo) = match rest.split_once('%') {
        Some((div, modulo)) => (div, Some(number(modulo).ok_or_else(wrong)?)),
        None => (rest, None),
    };
    let div = match div.strip_prefix('/') {
        Some(digits) => number(digits).filter(|div| *div > 0).ok_or_else(wrong)?,
        None if div.is_empty() => 1,
        None => return Err(wrong()),
    };
    Ok(Word { name: name.to_owned(), div, modulo, segments })
}

fn segment_list(list: &str) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    for item in list.split(',') {
        let (item, count) = match item.split_once('*') {
            Some((item, count)) => (item, usize::try_from(number(count)?).ok()?),
            None => (item, 1),
        };
        let (len, slots) = item.split_once(':')?;
        if count == 0 || count > MAX_SEGMENTS || segments.len() > MAX_SEGMENTS {
            return None;
        }
        segments.extend(std::iter::repeat_n(Segment { len: number(len)?, slots: number(slots)? }, count));
    }
    Some(segments)
}

/// A number written in digits only.
pub(super) fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

impl<'de> serde::Deserialize<'de> for Layout {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Layout, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
