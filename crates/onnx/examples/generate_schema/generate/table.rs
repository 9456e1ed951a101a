//! The schema as data, for the walk over a file's bytes.

use protox::prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::Result;
use super::schema::{Schema, fields, path};
use super::text::{Text, rust_path, snake};

const DOC: &str = "The schema as data: every field of every message, by number.\n\
    \n\
    What is absent: reserved numbers. A file that uses one was written by a schema that no longer exists, and the field is reported \
    as unknown.";

/// `src/wire/schema.rs`.
pub(super) fn source(schema: &Schema) -> Result<String> {
    let mut text = Text::new(DOC);
    text.lines(&[
        "use super::Kind::{Bytes, Double, Enum, Float, Int32, Int64, Message, Str, Uint64};",
        "use super::Label::{Optional, Packed, Repeated};",
        "use super::{FieldDesc, Kind, Label, MessageDesc};",
        "use crate::proto;",
        "",
        "const fn field(number: u32, name: &'static str, label: Label, kind: Kind) -> FieldDesc {",
        "FieldDesc { number, name, label, kind }",
        "}",
    ]);
    for message in schema.all() {
        write_table(&mut text, &message)?;
    }
    Ok(text.finish())
}

fn write_table(text: &mut Text, message: &MessageDescriptor) -> Result<()> {
    let name = path(message.full_name());
    text.line("");
    text.line(&format!("pub(super) static {}: MessageDesc = MessageDesc {{", table(message)));
    text.line(&format!("name: \"{name}\","));
    text.line(&format!("size: size_of::<proto::{}>(),", rust_path(name).join("::")));
    text.line("fields: &[");
    for field in fields(message) {
        let (number, name, label, kind) = (field.number(), field.name(), label(&field), kind(&field)?);
        text.line(&format!("field({number}, \"{name}\", {label}, {kind}),"));
    }
    text.lines(&["],", "};"]);
    Ok(())
}

/// `TENSOR_PROTO_SEGMENT` for `TensorProto.Segment`.
fn table(message: &MessageDescriptor) -> String {
    let parts: Vec<String> = path(message.full_name()).split('.').map(snake).collect();
    parts.join("_").to_uppercase()
}

fn label(field: &FieldDescriptor) -> &'static str {
    match (field.is_list(), field.is_packed()) {
        (true, true) => "Packed",
        (true, false) => "Repeated",
        (false, _) => "Optional",
    }
}

fn kind(field: &FieldDescriptor) -> Result<String> {
    let kind = match field.kind() {
        Kind::Int32 => "Int32",
        Kind::Int64 => "Int64",
        Kind::Uint64 => "Uint64",
        Kind::Enum(_) => "Enum",
        Kind::Float => "Float",
        Kind::Double => "Double",
        Kind::String => "Str",
        Kind::Bytes => "Bytes",
        Kind::Message(inner) => return Ok(format!("Message(&{})", table(&inner))),
        other => return Err(format!("{}: the walk does not know the type {other:?}", field.full_name()).into()),
    };
    Ok(kind.to_owned())
}
