//! The fields of the messages that can hold a tensor, in the order in which the writer writes them.

use protox::prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::Result;
use super::schema::{Schema, fields, holds_tensor, is_tensor, path};
use super::text::{Text, field as field_name, snake};

const DOC: &str = "The fields of the messages that can hold a tensor, in the order of their numbers.\n\
    \n\
    Everything else is a leaf that prost encodes. What a tensor has for its data is the plan's to say.";

/// The field that holds a tensor's elements as bytes; it is written as a payload, not from a buffer.
const PAYLOAD: &str = "TensorProto.raw_data";

/// Fields of a tensor that are not written as they are, but as the plan places its data.
const PLACED: [&str; 3] = [PAYLOAD, "TensorProto.external_data", "TensorProto.data_location"];

/// `src/write/fields.rs`.
pub(super) fn source(schema: &Schema) -> Result<String> {
    let messages = schema.with_tensors();
    let found: Vec<FieldDescriptor> = messages.iter().flat_map(fields).collect();
    if let Some(name) = PLACED.iter().find(|name| found.iter().all(|field| path(field.full_name()) != **name)) {
        return Err(format!("the schema has no {name}, which the writer places").into());
    }
    let mut text = Text::new(DOC);
    text.lines(&[
        "use super::encode::{Placed, Sink, leaf, nested};",
        "use super::plan::Plan;",
        "use crate::error::Result;",
    ]);
    text.import("crate::proto", messages.iter().map(MessageDescriptor::name).collect());
    for message in &messages {
        write_message(&mut text, message)?;
    }
    Ok(text.finish())
}

fn write_message(text: &mut Text, message: &MessageDescriptor) -> Result<()> {
    let name = message.name();
    text.line("");
    text.line(&format!(
        "pub(super) fn {}(s: &mut impl Sink, plan: &Plan<'_>, m: &{name}) -> Result<()> {{",
        snake(name)
    ));
    if is_tensor(message) {
        text.line("let placed = Placed::new(m, plan);");
    }
    for field in fields(message) {
        text.line(&write(&field)?);
    }
    text.lines(&["Ok(())", "}"]);
    Ok(())
}

/// The statement that writes a field.
fn write(field: &FieldDescriptor) -> Result<String> {
    let (number, placed) = (field.number(), PLACED.contains(&path(field.full_name())));
    let value = format!("{}.{}", if placed { "placed" } else { "m" }, field_name(field.name()));
    if path(field.full_name()) == PAYLOAD {
        return Ok(format!("s.optional_payload({number}, m, {value}.as_ref())?;"));
    }
    let label = match (field.is_list(), field.is_packed()) {
        (true, true) => "packed",
        (true, false) => "repeated",
        (false, _) => "optional",
    };
    let kind = match field.kind() {
        Kind::Message(inner) if holds_tensor(&inner) => {
            return Ok(format!("nested!(s, plan, {label}, {number}, {value}, {});", snake(inner.name())));
        }
        Kind::Message(_) => "message",
        Kind::Int32 | Kind::Enum(_) => "int32",
        Kind::Int64 => "int64",
        Kind::Uint64 => "uint64",
        Kind::Float => "float",
        Kind::Double => "double",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        other => return Err(format!("{}: the writer does not know the type {other:?}", field.full_name()).into()),
    };
    Ok(format!("leaf!(s, {kind}, {label}, {number}, {value});"))
}
