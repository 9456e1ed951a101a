//! Prints `docs/dialect.md`.

fn main() {
    print!("{}", relayout_onnx::dialect::markdown());
}
