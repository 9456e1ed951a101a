//! What inputs are drawn where a file leaves sizes open and does not say which whole numbers are indices.

use crate::runtime;
use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::graph::ValueId;
use relayout::{GraphBuilder, Model};
use relayout_verify::{CheckOptions, CheckResult, Inputs, ModelSource, VerifyError, check, example_inputs};
use std::collections::BTreeMap;

fn input(b: &mut GraphBuilder, name: &str, dtype: DType, symbols: &[&str]) -> ValueId {
    b.input(name, dtype, symbols.iter().map(|name| Dim::symbol(name))).unwrap()
}

fn file(mut b: GraphBuilder, output: ValueId) -> Vec<u8> {
    b.output(output).unwrap();
    Model::of_graph(&b.finish()).expect("it can be written").bytes().to_vec()
}

/// The model held against itself.
fn checked(model: &[u8], dims: &[(&str, i64)]) -> Result<CheckResult, VerifyError> {
    let dims = dims.iter().map(|&(name, size)| (name.to_owned(), size)).collect();
    let source = ModelSource::Bytes(model);
    check(runtime(), source, source, &Inputs::Random { seed: 1, dims }, &CheckOptions::default(), &mut |_| {})
}

#[test]
fn weights_say_how_long_a_sequence_is() {
    let mut b = GraphBuilder::new("g");
    let x = input(&mut b, "x", DType::F32, &["N", "sequence"]);
    let w = b.constant("w", Constant::floats((0..266 * 3).map(|i| f64::from(i % 7) - 3.0), &[266, 3])).unwrap();
    let y = b.op("MatMul", "y", &[x, w], []).unwrap();
    let model = file(b, y);
    let result = checked(&model, &[]).expect("it runs");
    let shapes: Vec<bool> =
        (0..3).map(|at| result.inputs[at].contains(&format!("`x` [{}, 266]", [2, 3, 1][at]))).collect();
    assert_eq!(shapes, [true; 3], "{:?}", result.inputs);
    let inputs = Inputs::Random { seed: 1, dims: BTreeMap::new() };
    let made = example_inputs(runtime(), ModelSource::Bytes(&model), &inputs).expect("inputs are made");
    assert_eq!(made[0].shape(), [1, 266]);
    // What callers say holds, even where it can't run.
    assert!(checked(&model, &[("x.1", 5)]).is_err());
}

#[test]
fn sizes_that_were_assumed_are_in_the_error_and_so_is_how_others_are_said() {
    let mut b = GraphBuilder::new("g");
    let x = input(&mut b, "x", DType::F32, &["N", "T"]);
    // How many numbers are not zero nobody can say.
    let found = b.op("NonZero", "found", &[x], []).unwrap();
    let target = b.constant("target", Constant::ints(&[2, 7])).unwrap();
    let y = b.op("Reshape", "y", &[found, target], []).unwrap();
    let model = file(b, y);
    let error = checked(&model, &[]).expect_err("it does not run").to_string();
    assert!(error.contains("nothing says how large T=64, N=2 are"), "{error}");
    assert!(error.ends_with("say other sizes (--dim T=SIZE --dim N=SIZE)"), "{error}");
    let error = checked(&model, &[("N", 1)]).expect_err("it does not run").to_string();
    assert!(error.ends_with("say other sizes (--dim T=SIZE)"), "{error}");
    checked(&model, &[("N", 1), ("T", 7)]).expect("it runs");
}

#[test]
fn indices_and_lengths_are_drawn_from_what_they_can_be() {
    let mut b = GraphBuilder::new("g");
    let ids = input(&mut b, "ids", DType::I64, &["N", "T"]);
    let lengths = input(&mut b, "lengths", DType::I64, &["N"]);
    let table = b.constant("table", Constant::floats((0..100).map(f64::from), &[50, 2])).unwrap();
    let rows = b.op("Gather", "rows", &[table, ids], []).unwrap();
    let axes = [("time_axis", Attr::Int(1)), ("batch_axis", Attr::Int(0))];
    let y = b.op("ReverseSequence", "y", &[rows, lengths], axes).unwrap();
    let result = checked(&file(b, y), &[("T", 12)]).expect("it runs");
    assert!(result.holds(), "{result}");
    for what in &result.inputs {
        assert!(what.contains("`ids` in 0..=49, `lengths` in 1..=12"), "{what}");
    }
}
