//! Writes the sources that spell the schema anew, from `schema/onnx-ml.proto`:
//!
//!     cargo run -p relayout-onnx --example generate_schema

mod generate;

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, text) in generate::sources(&root.join("schema"))? {
        std::fs::write(root.join(name), text).map_err(|error| format!("cannot write {name}: {error}"))?;
        println!("{name}");
    }
    Ok(())
}
