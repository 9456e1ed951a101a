//! A place in a text, and the words that the grammar is made of.

use super::names::is_plain;
use super::parse::ParseError;

type Parsed<T> = Result<T, ParseError>;

/// Where the parser is. Every method leaves the cursor where it was unless it answers something.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns to a place passed before.
    pub(super) fn back_to(&mut self, at: usize) {
        self.at = at.min(self.at);
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// An error at this place.
    pub(super) fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        self.error_at(self.at, message)
    }

    /// An error at a place passed before.
    pub(super) fn error_at<T>(&self, at: usize, message: impl Into<String>) -> Parsed<T> {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |tail| tail.chars().count()) + 1;
        Err(ParseError { line, column, message: message.into() })
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        let hit = self.rest().starts_with(token);
        if hit {
            self.at += token.len();
        }
        hit
    }

    pub(super) fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) {
            return Ok(());
        }
        let found: String = self.rest().chars().take_while(|c| *c != '\n').take(16).collect();
        self.error(if found.is_empty() {
            format!("expected `{}`, but the line ends here", token.trim())
        } else {
            format!("expected `{}`, found `{found}`", token.trim())
        })
    }

    pub(super) fn take_while(&mut self, mut keep: impl FnMut(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Everything before the first of these, or before the end of the line.
    pub(super) fn take_until(&mut self, stops: &[&str]) -> &'t str {
        let rest = self.rest();
        let line = rest.find('\n').unwrap_or(rest.len());
        let length = stops.iter().filter_map(|stop| rest.find(stop)).fold(line, usize::min);
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Spaces at the start of a line, and lines that hold nothing but a comment.
    pub(super) fn line_start(&mut self) {
        loop {
            let before = self.at;
            self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
            if self.rest().starts_with(';') {
                self.take_until(&[]);
            }
            if self.at == before {
                return;
            }
        }
    }

    /// The rest of a line: nothing, or a comment, which it answers.
    pub(super) fn line_end(&mut self) -> Parsed<Option<&'t str>> {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\r'));
        let comment = self.eat(";").then(|| self.take_until(&[]).trim());
        if self.is_at_end() || self.eat("\n") {
            return Ok(comment);
        }
        self.expect("\n").map(|()| None)
    }

    /// A name, bare or quoted. In front of a type its last colon belongs to the grammar.
    pub(super) fn name(&mut self, before_type: bool) -> Parsed<String> {
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        let start = self.at;
        let mut name = self.take_while(is_plain);
        if let Some(shorter) = name.strip_suffix(':').filter(|_| before_type) {
            name = shorter;
            self.at -= 1;
        }
        if name.is_empty() { self.error_at(start, "expected a name") } else { Ok(name.to_owned()) }
    }

    /// An op's part of a name.
    pub(super) fn part(&mut self, keep: fn(char) -> bool) -> Parsed<String> {
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        match self.take_while(keep) {
            "" => self.error("expected the type of an op"),
            part => Ok(part.to_owned()),
        }
    }

    /// Text in double quotes with Rust's escapes.
    pub(super) fn quoted(&mut self) -> Parsed<String> {
        let start = self.at;
        self.expect("\"")?;
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != '"' && c != '\\'));
            if self.eat("\"") {
                return Ok(text);
            }
            if !self.eat("\\") {
                return self.error_at(start, "this quote is not closed");
            }
            text.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Parsed<char> {
        for (token, c) in [("n", '\n'), ("r", '\r'), ("t", '\t'), ("0", '\0'), ("\\", '\\'), ("\"", '"'), ("'", '\'')] {
            if self.eat(token) {
                return Ok(c);
            }
        }
        self.expect("u{")?;
        let digits = self.take_while(|c| c.is_ascii_hexdigit());
        let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
        self.expect("}")?;
        c.map_or_else(|| self.error(format!("`{digits}` is not a character's number")), Ok)
    }

    /// Bytes in double quotes, as `u8::escape_ascii` writes them.
    pub(super) fn quoted_bytes(&mut self) -> Parsed<Vec<u8>> {
        let start = self.at;
        self.expect("\"")?;
        let mut bytes = Vec::new();
        loop {
            bytes.extend_from_slice(self.take_while(|c| c != '"' && c != '\\').as_bytes());
            if self.eat("\"") {
                return Ok(bytes);
            }
            if !self.eat("\\") {
                return self.error_at(start, "this quote is not closed");
            }
            if self.eat("x") {
                let hex = self.rest().get(..2).and_then(|two| u8::from_str_radix(two, 16).ok());
                let Some(byte) = hex else { return self.error("expected two hexadecimal digits") };
                self.at += 2;
                bytes.push(byte);
            } else {
                bytes.extend_from_slice(self.escaped()?.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    /// An integer.
    pub(super) fn int(&mut self) -> Parsed<i64> {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '-');
        match digits.parse() {
            Ok(value) => Ok(value),
            Err(_) if digits.is_empty() => self.error_at(start, "expected an integer"),
            Err(_) => self.error_at(start, format!("`{digits}` is not a 64-bit integer")),
        }
    }

    /// `[a,b,...]`, spaces behind the commas allowed.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.expect("[")?;
        let mut items = Vec::new();
        if self.eat("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat("]") {
                return Ok(items);
            }
            self.expect(",")?;
            self.eat(" ");
        }
    }
}
