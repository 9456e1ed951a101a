//! The messages, as prost derives its code from them.

use protox::prost_reflect::{
    EnumDescriptor, EnumValueDescriptor, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor,
};

use super::Result;
use super::schema::{Schema, boxed, fields, path, value_name};
use super::text::{Text, field as field_name, pascal, relative, rust_path, snake};

const DOC: &str = "The messages of an ONNX file, field by field as the standard's schema has them.";

/// `src/proto/messages.rs`.
pub(super) fn source(schema: &Schema) -> Result<String> {
    let mut text = Text::new(DOC);
    text.lines(&["use bytes::Bytes;", "", "use super::equal::{same_bytes, same_doubles, same_floats};"]);
    for message in &schema.messages {
        write_message(&mut text, schema, message, &[])?;
    }
    Ok(text.finish())
}

/// A message, when two of it are equal, and the module of what is nested in it. `module` is where it stands.
fn write_message(text: &mut Text, schema: &Schema, message: &MessageDescriptor, module: &[String]) -> Result<()> {
    text.line("");
    text.doc(schema.doc(path(message.full_name()))?);
    let own_equality = fields(message).iter().any(compared_by_bits);
    text.line(if own_equality {
        "#[derive(Clone, prost::Message)]"
    } else {
        "#[derive(Clone, PartialEq, prost::Message)]"
    });
    text.line(&format!("pub struct {} {{", message.name()));
    let mut oneofs = Vec::new();
    for field in fields(message) {
        match field.containing_oneof() {
            Some(oneof) if oneofs.contains(&oneof) => {}
            Some(oneof) => {
                write_oneof_field(text, schema, &oneof, module)?;
                oneofs.push(oneof);
            }
            None => write_field(text, schema, &field, module)?,
        }
    }
    text.line("}");
    if own_equality {
        write_equality(text, message);
    }
    write_nested(text, schema, message, module)
}

fn write_field(text: &mut Text, schema: &Schema, field: &FieldDescriptor, module: &[String]) -> Result<()> {
    text.doc(schema.doc(path(field.full_name()))?);
    let (name, inner) = kind(field, module)?;
    let one_by_one = matches!(field.kind(), Kind::String | Kind::Bytes | Kind::Message(_));
    let (label, ty) = match (field.is_list(), boxed(field)) {
        (true, _) if one_by_one => ("repeated".to_owned(), format!("Vec<{inner}>")),
        (true, _) => (format!("repeated, packed = \"{}\"", field.is_packed()), format!("Vec<{inner}>")),
        (false, true) => ("optional, boxed".to_owned(), format!("Option<Box<{inner}>>")),
        (false, false) => ("optional".to_owned(), format!("Option<{inner}>")),
    };
    text.line(&format!("#[prost({name}, {label}, tag = \"{}\")]", field.number()));
    text.line(&format!("pub {}: {ty},", field_name(field.name())));
    Ok(())
}

fn write_oneof_field(text: &mut Text, schema: &Schema, oneof: &OneofDescriptor, module: &[String]) -> Result<()> {
    text.doc(schema.doc(path(oneof.full_name()))?);
    let of =
        relative(module, &rust_path(&format!("{}.{}", path(oneof.parent_message().full_name()), pascal(oneof.name()))));
    let mut numbers: Vec<u32> = oneof.fields().map(|field| field.number()).collect();
    numbers.sort_unstable();
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    text.line(&format!("#[prost(oneof = \"{of}\", tags = \"{}\")]", numbers.join(", ")));
    text.line(&format!("pub {}: Option<{of}>,", field_name(oneof.name())));
    Ok(())
}

/// What prost and Rust call the type of a field, of one element if it is repeated.
fn kind(field: &FieldDescriptor, module: &[String]) -> Result<(String, String)> {
    let (name, inner) = match field.kind() {
        Kind::Int32 => ("int32", "i32"),
        Kind::Int64 => ("int64", "i64"),
        Kind::Uint64 => ("uint64", "u64"),
        Kind::Float => ("float", "f32"),
        Kind::Double => ("double", "f64"),
        Kind::String => ("string", "String"),
        Kind::Bytes => ("bytes = \"bytes\"", "Bytes"),
        Kind::Message(inner) => {
            return Ok(("message".to_owned(), relative(module, &rust_path(path(inner.full_name())))));
        }
        Kind::Enum(of) => {
            let of = relative(module, &rust_path(path(of.full_name())));
            return Ok((format!("enumeration = \"{of}\""), "i32".to_owned()));
        }
        other => {
            return Err(format!("{}: a type that this generator does not know: {other:?}", field.full_name()).into());
        }
    };
    Ok((name.to_owned(), inner.to_owned()))
}

/// Whether a derived comparison would take a NaN for a difference, or read weights that are the same memory.
fn compared_by_bits(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Float | Kind::Double | Kind::Bytes)
}

fn write_equality(text: &mut Text, message: &MessageDescriptor) {
    text.line("");
    text.line(&format!("impl PartialEq for {} {{", message.name()));
    text.line("fn eq(&self, other: &Self) -> bool {");
    for (place, field) in fields(message).iter().enumerate() {
        let name = field_name(field.name());
        let equal = match (field.kind(), field.is_list()) {
            (Kind::Float, true) => format!("same_floats(&self.{name}, &other.{name})"),
            (Kind::Double, true) => format!("same_doubles(&self.{name}, &other.{name})"),
            (Kind::Float, false) => format!("self.{name}.map(f32::to_bits) == other.{name}.map(f32::to_bits)"),
            (Kind::Double, false) => format!("self.{name}.map(f64::to_bits) == other.{name}.map(f64::to_bits)"),
            (Kind::Bytes, false) => format!("same_bytes(self.{name}.as_ref(), other.{name}.as_ref())"),
            _ => format!("self.{name} == other.{name}"),
        };
        text.line(&if place == 0 { equal } else { format!("    && {equal}") });
    }
    text.lines(&["}", "}"]);
}

fn write_nested(text: &mut Text, schema: &Schema, message: &MessageDescriptor, module: &[String]) -> Result<()> {
    if message.oneofs().len() + message.child_enums().len() + message.child_messages().len() == 0 {
        return Ok(());
    }
    let name = snake(message.name());
    text.line("");
    text.doc("Types nested in the message of this name.");
    text.line(&format!("pub mod {name} {{"));
    let module = &[module, &[name]].concat();
    let mut first = true;
    for oneof in message.oneofs() {
        write_gap(text, &mut first);
        write_oneof(text, schema, &oneof, module)?;
    }
    for of in message.child_enums() {
        write_gap(text, &mut first);
        write_enum(text, schema, &of)?;
    }
    for nested in message.child_messages() {
        write_message(text, schema, &nested, module)?;
    }
    text.line("}");
    Ok(())
}

fn write_gap(text: &mut Text, first: &mut bool) {
    if !std::mem::take(first) {
        text.line("");
    }
}

fn write_oneof(text: &mut Text, schema: &Schema, oneof: &OneofDescriptor, module: &[String]) -> Result<()> {
    text.doc(schema.doc(path(oneof.full_name()))?);
    text.line("#[derive(Clone, PartialEq, prost::Oneof)]");
    text.line(&format!("pub enum {} {{", pascal(oneof.name())));
    let mut fields: Vec<_> = oneof.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    for field in fields {
        text.doc(schema.doc(path(field.full_name()))?);
        let (name, inner) = kind(&field, module)?;
        text.line(&format!("#[prost({name}, tag = \"{}\")]", field.number()));
        text.line(&format!("{}({inner}),", pascal(field.name())));
    }
    text.line("}");
    Ok(())
}

fn write_enum(text: &mut Text, schema: &Schema, of: &EnumDescriptor) -> Result<()> {
    text.doc(schema.doc(path(of.full_name()))?);
    text.line("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]");
    text.line("#[repr(i32)]");
    text.line(&format!("pub enum {} {{", of.name()));
    let mut values: Vec<_> = of.values().collect();
    values.sort_by_key(EnumValueDescriptor::number);
    for value in values {
        text.doc(schema.doc(&value_name(of, value.name()))?);
        text.line(&format!("{} = {},", pascal(value.name()), value.number()));
    }
    text.line("}");
    Ok(())
}
