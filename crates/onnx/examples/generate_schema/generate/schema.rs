//! The schema as read: its messages, and the sentence that documents each name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use protox::prost_reflect::{DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::Result;

/// The message that a file is.
const ROOT: &str = "ModelProto";

/// The message that holds the weights.
const TENSOR: &str = "TensorProto";

/// The messages of a model file.
pub(super) struct Schema {
    /// Those that are not nested in another, in the order of the schema file.
    pub(super) messages: Vec<MessageDescriptor>,
    docs: BTreeMap<String, String>,
}

impl Schema {
    /// Reads `onnx-ml.proto` and `docs.txt`.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut compiler = protox::Compiler::new([folder])?;
        compiler.open_file("onnx-ml.proto")?;
        // The compiler's own descriptors do not know yet which fields are packed: options are read after fields.
        let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice())?;
        let file = pool.files().next().ok_or("the schema is empty")?;
        let root = file.messages().find(|message| message.name() == ROOT).ok_or("the schema has no ModelProto")?;
        let reached: BTreeSet<String> = reached(&root).into_keys().collect();
        let messages = file.messages().filter(|message| reached.contains(message.full_name())).collect();
        let schema = Self { messages, docs: docs(&std::fs::read_to_string(folder.join("docs.txt"))?)? };
        schema.check_docs()?;
        Ok(schema)
    }

    /// All messages, each before those nested in it.
    pub(super) fn all(&self) -> Vec<MessageDescriptor> {
        let mut found = Vec::new();
        let mut open: Vec<MessageDescriptor> = self.messages.iter().rev().cloned().collect();
        while let Some(message) = open.pop() {
            let nested: Vec<_> = message.child_messages().collect();
            open.extend(nested.into_iter().rev());
            found.push(message);
        }
        found
    }

    /// Messages that can hold a tensor, the tensor itself among them.
    pub(super) fn with_tensors(&self) -> Vec<MessageDescriptor> {
        self.all().into_iter().filter(holds_tensor).collect()
    }

    /// The sentence for a name such as `TensorProto.dims`.
    pub(super) fn doc(&self, name: &str) -> Result<&str> {
        Ok(self.docs.get(name).ok_or_else(|| format!("docs.txt has no line for {name}"))?)
    }

    fn check_docs(&self) -> Result<()> {
        let names: BTreeSet<String> = self.all().iter().flat_map(names).collect();
        if let Some(name) = names.iter().find(|name| !self.docs.contains_key(*name)) {
            return Err(format!("docs.txt has no line for {name}").into());
        }
        match self.docs.keys().find(|name| !names.contains(*name)) {
            Some(name) => Err(format!("docs.txt has a line for {name}, which the schema does not have").into()),
            None => Ok(()),
        }
    }
}

/// The fields of a message in the order of their numbers.
pub(super) fn fields(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    fields
}

/// The name of a message or enum without the schema's package: nested ones with a dot.
pub(super) fn path(full_name: &str) -> &str {
    full_name.strip_prefix("onnx.").unwrap_or(full_name)
}

/// Name of a value in docs.txt.
pub(super) fn value_name(of: &EnumDescriptor, value: &str) -> String {
    format!("{}.{value}", path(of.full_name()))
}

/// Whether a field's Rust type is a box: where the type would contain itself, and in attributes, most of which have none of their
/// messages.
pub(super) fn boxed(field: &FieldDescriptor) -> bool {
    let parent = field.parent_message();
    match field.kind() {
        Kind::Message(inner) if !field.is_list() && field.containing_oneof().is_none() => {
            parent.name() == "AttributeProto" || reached(&inner).contains_key(parent.full_name())
        }
        _ => false,
    }
}

/// Whether this is the message that holds the weights.
pub(super) fn is_tensor(message: &MessageDescriptor) -> bool {
    path(message.full_name()) == TENSOR
}

/// Whether a message is a tensor or can hold one, however deep.
pub(super) fn holds_tensor(message: &MessageDescriptor) -> bool {
    reached(message).values().any(is_tensor)
}

/// A message and all that it can hold, by full name.
fn reached(message: &MessageDescriptor) -> BTreeMap<String, MessageDescriptor> {
    let mut found = BTreeMap::new();
    let mut open = vec![message.clone()];
    while let Some(message) = open.pop() {
        if found.contains_key(message.full_name()) {
            continue;
        }
        open.extend(message.fields().filter_map(|field| field.kind().as_message().cloned()));
        found.insert(message.full_name().to_owned(), message);
    }
    found
}

/// The names that a message brings: its own and those of its fields, oneofs, enums and their values.
fn names(message: &MessageDescriptor) -> Vec<String> {
    let own = path(message.full_name()).to_owned();
    let within = |name: &str| format!("{own}.{name}");
    let mut names: Vec<String> = message.fields().map(|field| within(field.name())).collect();
    names.extend(message.oneofs().map(|oneof| within(oneof.name())));
    for of in message.child_enums() {
        names.push(path(of.full_name()).to_owned());
        names.extend(of.values().map(|value| value_name(&of, value.name())));
    }
    names.push(own);
    names
}

/// Reads docs.txt: lines of a name, a colon and a sentence; empty lines and comments between them.
fn docs(text: &str) -> Result<BTreeMap<String, String>> {
    let mut docs = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, sentence) =
            line.split_once(": ").ok_or_else(|| format!("docs.txt: no name and sentence: {line}"))?;
        if docs.insert(name.to_owned(), sentence.to_owned()).is_some() {
            return Err(format!("docs.txt has two lines for {name}").into());
        }
    }
    Ok(docs)
}
