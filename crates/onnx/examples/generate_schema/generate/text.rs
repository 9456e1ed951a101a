//! Names and lines of Rust.

use std::fmt::Write as _;

/// The widest line.
const WIDTH: usize = 120;

/// A source that is being written.
pub(super) struct Text {
    text: String,
    /// Levels of indentation.
    depth: usize,
}

impl Text {
    /// A source that says what made it, and what it is.
    pub(super) fn new(doc: &str) -> Self {
        let mut text = Self { text: String::new(), depth: 0 };
        text.line("// @generated from schema/onnx-ml.proto; do not edit: `cargo run -p relayout-onnx --example generate_schema`");
        text.line("// writes it anew.");
        text.line("");
        text.wrapped("//! ", doc);
        text.line("");
        text
    }

    /// Appends a line; one that ends with an opening bracket indents what follows, one that begins with a closing one ends that.
    pub(super) fn line(&mut self, line: &str) {
        if line.starts_with(['}', ']', ')']) {
            self.depth -= 1;
        }
        if line.is_empty() {
            self.text.push('\n');
        } else {
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{:1$}{line}", "", self.depth * 4);
        }
        if line.ends_with(['{', '[', '(']) {
            self.depth += 1;
        }
    }

    /// Appends lines.
    pub(super) fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.line(line);
        }
    }

    /// Appends the import of these names.
    pub(super) fn import(&mut self, from: &str, mut names: Vec<&str>) {
        names.sort_unstable();
        self.line(&format!("use {from}::{{"));
        for name in names {
            self.line(&format!("{name},"));
        }
        self.line("};");
    }

    /// Appends a doc comment.
    pub(super) fn doc(&mut self, sentence: &str) {
        self.wrapped("/// ", sentence);
    }

    fn wrapped(&mut self, prefix: &str, text: &str) {
        for paragraph in text.split('\n') {
            let mut line = prefix.to_owned();
            for word in paragraph.split(' ') {
                if self.depth * 4 + line.len() + word.len() > WIDTH {
                    self.line(line.trim_end());
                    prefix.clone_into(&mut line);
                }
                line.push_str(word);
                line.push(' ');
            }
            self.line(line.trim_end());
        }
    }

    /// The source.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// `TensorProto` as `tensor_proto`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `TENSOR_TYPE` and `tensor_type` as `TensorType`.
pub(super) fn pascal(name: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + &rest.to_lowercase()
    };
    name.split('_').map(capital).collect()
}

/// The name of a field as Rust has it.
pub(super) fn field(name: &str) -> String {
    if name == "type" { "r#type".to_owned() } else { name.to_owned() }
}

/// `TensorProto.Segment` as the modules and the name: `tensor_proto`, `Segment`.
pub(super) fn rust_path(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = path.split('.').map(str::to_owned).collect();
    if let Some((_, modules)) = parts.split_last_mut() {
        for module in modules {
            *module = snake(module);
        }
    }
    parts
}

/// How a module names an item of another: without the modules that they share.
pub(super) fn relative(from: &[String], to: &[String]) -> String {
    let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    "super::".repeat(from.len() - shared) + &to[shared..].join("::")
}
