//! Types and attribute values from text.

use super::cursor::Cursor;
use super::parse::ParseError;
use crate::attr::Attr;
use crate::constant::Constant;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::types::{TensorType, Type};

type Parsed<T> = Result<T, ParseError>;

/// An attribute as its line has it: a body follows below.
pub(super) enum AttrSlot {
    Here(Attr),
    Body,
    Bodies(i64),
}

/// Descriptions that the importer gives to [`Attr::Other`], which holds static text.
const OTHERS: [&str; 5] = ["tensors", "sparse tensor", "sparse tensors", "type", "types"];

/// A type, as its `Display` writes it.
pub(super) fn ty(c: &mut Cursor<'_>) -> Parsed<Type> {
    if c.rest().starts_with('<') {
        return Ok(Type::Other(angled(c)?));
    }
    let dtype = if c.eat("?") {
        if !c.rest().starts_with('[') {
            return Ok(Type::Unknown);
        }
        None
    } else {
        Some(dtype(c)?)
    };
    if c.eat("[*]") {
        return Ok(Type::Tensor(TensorType { dtype, shape: None }));
    }
    Ok(Type::Tensor(TensorType { dtype, shape: Some(c.list(dim)?) }))
}

fn dtype(c: &mut Cursor<'_>) -> Parsed<DType> {
    let at = c.at();
    let word = c.take_while(|c| c.is_ascii_alphanumeric());
    word.parse().or_else(|why: String| c.error_at(at, why))
}

/// A dim: everything up to a comma or bracket outside of backquotes.
fn dim(c: &mut Cursor<'_>) -> Parsed<Dim> {
    let at = c.at();
    let mut quoted = false;
    let text = c.take_while(|ch| {
        quoted ^= ch == '`';
        quoted || !matches!(ch, ',' | ']' | '\n')
    });
    text.parse().or_else(|why: crate::dim::ParseDimError| c.error_at(at, why.to_string()))
}

/// `<words>` or `<"words">`.
fn angled(c: &mut Cursor<'_>) -> Parsed<String> {
    c.expect("<")?;
    let text = if c.rest().starts_with('"') { c.quoted()? } else { c.take_until(&[">"]).to_owned() };
    c.expect(">")?;
    Ok(text)
}

/// ` {name=value, ...}`, or nothing.
pub(super) fn attrs(c: &mut Cursor<'_>) -> Parsed<Vec<(String, AttrSlot)>> {
    let mut attrs: Vec<(String, AttrSlot)> = Vec::new();
    if !c.eat(" {") {
        return Ok(attrs);
    }
    loop {
        let at = c.at();
        let name = c.name(false)?;
        c.expect("=")?;
        let value = attr(c)?;
        if attrs.iter().any(|(other, _)| *other == name) {
            return c.error_at(at, format!("attribute `{name}` is given twice"));
        }
        attrs.push((name, value));
        if c.eat("}") {
            return Ok(attrs);
        }
        c.expect(", ")?;
    }
}

fn attr(c: &mut Cursor<'_>) -> Parsed<AttrSlot> {
    if c.eat("bodies<") {
        let count = c.int()?;
        c.expect(">")?;
        return Ok(AttrSlot::Bodies(count));
    }
    if c.eat("body") {
        return Ok(AttrSlot::Body);
    }
    if c.eat("tensor<") {
        let dtype = dtype(c)?;
        let dims = c.list(Cursor::int)?;
        c.expect(">")?;
        let why = "the text of a graph does not hold the bytes of tensor attributes".to_owned();
        return Ok(AttrSlot::Here(Attr::Tensor(Constant::missing(dtype, dims, why))));
    }
    if c.eat("$") {
        return Ok(AttrSlot::Here(Attr::Ref(c.name(false)?)));
    }
    if c.rest().starts_with('<') {
        let at = c.at();
        let what = angled(c)?;
        return match OTHERS.iter().find(|known| **known == what) {
            Some(known) => Ok(AttrSlot::Here(Attr::Other(known))),
            None => {
                c.error_at(at, format!("`{what}` is not a kind of attribute; known ones are {}", OTHERS.join(", ")))
            }
        };
    }
    if c.rest().starts_with('[') {
        return list(c).map(AttrSlot::Here);
    }
    Ok(AttrSlot::Here(match scalar(c)? {
        Scalar::Int(i) => Attr::Int(i),
        Scalar::Float(x) => Attr::Float(x),
        Scalar::String(s) => Attr::String(s.into()),
    }))
}

enum Scalar {
    Int(i64),
    Float(f32),
    String(Vec<u8>),
}

fn scalar(c: &mut Cursor<'_>) -> Parsed<Scalar> {
    if c.rest().starts_with('"') {
        return Ok(Scalar::String(c.quoted()?.into_bytes()));
    }
    if c.eat("b") {
        return Ok(Scalar::String(c.quoted_bytes()?));
    }
    let at = c.at();
    let text = c.take_while(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '+' | '-' | '.'));
    if let Ok(i) = text.parse() {
        return Ok(Scalar::Int(i));
    }
    // Whatever is no integer says so with a point, an exponent or a word; too many digits are not a float.
    match text.parse() {
        Ok(x) if text.contains(['.', 'e', 'E', 'f', 'a']) => Ok(Scalar::Float(x)),
        _ => c.error_at(at, format!("`{text}` is neither a 64-bit integer nor a 32-bit float")),
    }
}

/// A list of one kind; an empty one is taken as integers.
fn list(c: &mut Cursor<'_>) -> Parsed<Attr> {
    let at = c.at();
    let items = c.list(scalar)?;
    let (mut ints, mut floats, mut strings) = (Vec::new(), Vec::new(), Vec::new());
    let count = items.len();
    for item in items {
        match item {
            Scalar::Int(i) => ints.push(i),
            Scalar::Float(x) => floats.push(x),
            Scalar::String(s) => strings.push(bytes::Bytes::from(s)),
        }
    }
    if ints.len() == count {
        Ok(Attr::Ints(ints))
    } else if floats.len() == count {
        Ok(Attr::Floats(floats))
    } else if strings.len() == count {
        Ok(Attr::Strings(strings))
    } else {
        c.error_at(at, "a list holds integers, floats or strings, not a mixture")
    }
}
