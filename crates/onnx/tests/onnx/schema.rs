//! The sources that spell the schema are what the generator makes of it.

#[path = "../../examples/generate_schema/generate/mod.rs"]
mod generate;

use std::path::Path;

#[test]
fn the_sources_are_those_of_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, text) in generate::sources(&root.join("schema")).unwrap() {
        let found = std::fs::read_to_string(root.join(name)).unwrap();
        let line = text.lines().zip(found.lines()).position(|(a, b)| a != b).map_or(0, |line| line + 1);
        assert!(
            found == text,
            "{name} is not what the schema gives (line {line}); run `cargo run -p relayout-onnx --example generate_schema`"
        );
    }
}
