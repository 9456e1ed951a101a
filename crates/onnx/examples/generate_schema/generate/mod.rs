//! From the schema to the sources that spell it: messages, the walk over their tensors, the table of the wire format, the encoder.
//!
//! Fields come in the order of their numbers everywhere: it is the order in which protobuf writes them.

mod encode;
mod messages;
mod schema;
mod table;
mod text;
mod visit;

use std::error::Error;
use std::path::Path;

use schema::Schema;

/// What a generator answers.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The sources, by their path in the crate, from the schema in `folder`.
pub(crate) fn sources(folder: &Path) -> Result<[(&'static str, String); 4]> {
    let schema = Schema::read(folder)?;
    Ok([
        ("src/proto/messages.rs", messages::source(&schema)?),
        ("src/proto/visit.rs", visit::source(&schema)),
        ("src/wire/schema.rs", table::source(&schema)?),
        ("src/write/fields.rs", encode::source(&schema)?),
    ])
}
