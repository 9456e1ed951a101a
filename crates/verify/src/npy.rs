//! The header of an array as numpy stores it: a magic number, a version, a length, and a literal of Python with three keys.
//!
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>. Only what numpy writes of plain arrays is read, without
//! recursion; the type of a structured array is kept as text, for the message that refuses it.

use std::io::Read;

use super::error::one_line;

/// Longest header that is read; those of plain arrays have about a hundred bytes.
const LONGEST: u64 = 1 << 16;

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The element type, such as `<f4`; text in parentheses for a structured one.
    pub(super) descriptor: String,
    /// The first axis is innermost.
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<i64>,
}

impl Header {
    /// Reads the header, and says how many bytes it has.
    pub(super) fn read(from: &mut dyn Read) -> Result<(Header, u64), String> {
        let failed = |error: std::io::Error| format!("its header cannot be read: {}", one_line(&error.to_string()));
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(failed)?;
        if !start.starts_with(b"\x93NUMPY") {
            return Err("it is not an array of numpy".to_owned());
        }
        // Version 1 has a length of two bytes, later ones of four.
        let wide = start[6] > 1;
        let mut length = [0; 4];
        from.read_exact(&mut length[..if wide { 4 } else { 2 }]).map_err(failed)?;
        let length = u64::from(u32::from_le_bytes(length));
        if length > LONGEST {
            return Err(format!("its header of {length} bytes is longer than that of any array"));
        }
        let mut text = Vec::new();
        from.take(length).read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 != length {
            return Err("its header is cut off".to_owned());
        }
        let text = String::from_utf8_lossy(&text);
        let header = parse(&text).ok_or_else(|| format!("its header is damaged: {}", one_line(&text)))?;
        Ok((header, 8 + if wide { 4 } else { 2 } + length))
    }

    /// The kind and the size in bytes of an element, as in `f4`.
    pub(super) fn code(&self) -> &str {
        self.descriptor.trim_start_matches(['<', '>', '|', '='])
    }

    pub(super) fn big_endian(&self) -> bool {
        self.descriptor.starts_with('>')
    }
}

fn parse(text: &str) -> Option<Header> {
    let (mut descriptor, mut fortran_order, mut shape) = (None, None, None);
    let mut rest = text.trim().strip_prefix('{')?;
    loop {
        rest = rest.trim_start();
        if let Some(end) = rest.strip_prefix('}') {
            let header = Header { descriptor: descriptor?, fortran_order: fortran_order?, shape: shape? };
            return end.trim().is_empty().then_some(header);
        }
        let (key, after) = quoted(rest)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let after = match key {
            "descr" => {
                let (found, after) = quoted(value).or_else(|| bracketed(value))?;
                descriptor = Some(found.to_owned());
                after
            }
            "fortran_order" => {
                let (found, after) = value.split_at_checked(value.find(|c: char| !c.is_ascii_alphabetic())?)?;
                fortran_order = Some(match found {
                    "True" => true,
                    "False" => false,
                    _ => return None,
                });
                after
            }
            "shape" => {
                let (list, after) = value.strip_prefix('(')?.split_once(')')?;
                let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
                // Python 2 wrote an L behind large ones.
                let number = |number: &str| number.trim_end_matches('L').parse::<i64>().ok().filter(|n| *n >= 0);
                shape = Some(numbers.map(number).collect::<Option<Vec<i64>>>()?);
                after
            }
            _ => return None,
        };
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after);
    }
}

/// A text in quotes without escapes, and what comes behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text.get(1..)?.split_once(quote)
}

/// A list with everything in it, as text, and what comes behind it.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth = depth.checked_add(1)?,
            ']' | ')' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 {
            return text.split_at_checked(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Header, parse};

    #[test]
    fn headers_are_read_in_every_order_and_nothing_else_is_one() {
        let header = |descriptor: &str, fortran_order, shape: &[i64]| {
            Some(Header { descriptor: descriptor.to_owned(), fortran_order, shape: shape.to_vec() })
        };
        for (text, want) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", header("<f4", false, &[2, 3])),
            ("{\"shape\":(7L,),\"descr\":\"|b1\",\"fortran_order\":True}", header("|b1", true, &[7])),
            ("{'descr': '>i8', 'fortran_order': False, 'shape': ()}", header(">i8", false, &[])),
            (
                "{'descr': [('a', '<f4', (2,)), ('b', '<i4')], 'fortran_order': False, 'shape': (1,)}",
                header("[('a', '<f4', (2,)), ('b', '<i4')]", false, &[1]),
            ),
            ("{'descr': '<f4', 'fortran_order': False}", None),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", None),
            ("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", None),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", None),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", None),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", None),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", None),
            ("", None),
        ] {
            assert_eq!(parse(text), want, "{text}");
        }
        // Deeper than any stack.
        assert_eq!(parse(&format!("{{'descr': {}", "[".repeat(60_000))), None);
    }
}
