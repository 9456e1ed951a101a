//! The walk over the tensors of a model.

use protox::prost_reflect::{Kind, MessageDescriptor};

use super::schema::{Schema, boxed, fields, holds_tensor, is_tensor};
use super::text::{Text, field as field_name, snake};

const DOC: &str = "Every tensor of a model, in one order.";

/// `src/proto/visit.rs`.
pub(super) fn source(schema: &Schema) -> String {
    let mut text = Text::new(DOC);
    let messages = schema.with_tensors();
    text.import("super", messages.iter().map(MessageDescriptor::name).collect());
    text.lines(&["", "impl ModelProto {"]);
    text.doc(
        "All tensors: initializers, sparse ones, attributes, in subgraphs, functions and training graphs too; in the order of the \
         messages in a file, so it is the same for the same model.",
    );
    text.lines(&["pub fn tensors(&self) -> Vec<&TensorProto> {", "let mut found = Vec::new();"]);
    text.lines(&["model_proto(self, &mut found);", "found", "}", "}"]);
    for message in messages.iter().filter(|message| !is_tensor(message)) {
        write_walk(&mut text, message);
    }
    text.finish()
}

fn write_walk(text: &mut Text, message: &MessageDescriptor) {
    let name = message.name();
    text.line("");
    text.line(&format!("fn {}<'a>(m: &'a {name}, found: &mut Vec<&'a TensorProto>) {{", snake(name)));
    for field in fields(message) {
        let Kind::Message(inner) = field.kind() else { continue };
        if !holds_tensor(&inner) {
            continue;
        }
        let (value, walk) = (format!("m.{}", field_name(field.name())), snake(inner.name()));
        if is_tensor(&inner) {
            let access = if boxed(&field) { ".as_deref()" } else { "" };
            let reference = if boxed(&field) { "" } else { "&" };
            text.line(&format!("found.extend({reference}{value}{access});"));
        } else {
            let values = if field.is_list() { "for inner in &" } else { "if let Some(inner) = &" };
            text.line(&format!("{values}{value} {{"));
            text.line(&format!("{walk}(inner, found);"));
            text.line("}");
        }
    }
    text.line("}");
}
