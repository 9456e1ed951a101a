//! A line in words.

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Plain(&'a str),
    /// What stood between quotes.
    Name(String),
    Colon,
    Bar,
}

/// The words of a line, without its comment.
pub(super) fn words(line: &str) -> Result<Vec<Word<'_>>, String> {
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '#' => return Ok(found),
            ':' => {
                found.push(Word::Colon);
                &rest[1..]
            }
            '|' => {
                found.push(Word::Bar);
                &rest[1..]
            }
            '"' => {
                let (name, behind) = name(&rest[1..])?;
                found.push(Word::Name(name));
                behind
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || matches!(c, ':' | '|' | '"' | '#');
                let (word, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
                found.push(Word::Plain(word));
                behind
            }
        }
        .trim_start();
    }
    Ok(found)
}

/// A name up to its closing quote, and what follows it.
fn name(text: &str) -> Result<(String, &str), String> {
    let (mut name, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => return Ok((name, rest)),
            '\\' => {
                let (c, behind) = escaped(rest)?;
                name.push(c);
                rest = behind;
            }
            c => name.push(c),
        }
    }
    Err("a name has no closing quote: put `\"` at its end".to_owned())
}

/// The character that stands behind a backslash, and what follows it.
fn escaped(text: &str) -> Result<(char, &str), String> {
    let wrong = || "behind a backslash in a name comes `\"`, `\\` or u{HEX}".to_owned();
    if let Some(c @ ('"' | '\\')) = text.chars().next() {
        return Ok((c, &text[1..]));
    }
    let (hex, behind) = text.strip_prefix("u{").and_then(|rest| rest.split_once('}')).ok_or_else(wrong)?;
    let c = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32).ok_or_else(wrong)?;
    Ok((c, behind))
}
