//! A model before and after, in ONNX Runtime.

use own_target::Quads;
use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::graph::ValueId;
use relayout::{BuildError, GraphBuilder, Model, Options, optimize};
use relayout_verify::{Inputs, ModelSource, Runtime, SearchPlaces, Tolerance, find_library, verify};
use std::collections::BTreeMap;

/// Numbers between -1 and 1.
fn numbers(dims: &[i64]) -> Constant {
    let count: i64 = dims.iter().product();
    Constant::floats((0..count).map(|i| f64::from((i * 7919 % 2003) as i32 - 1001) / 1001.0), dims)
}

fn conv(b: &mut GraphBuilder, name: &str, x: ValueId, filters: [i64; 4]) -> Result<ValueId, BuildError> {
    let weights = b.constant(&format!("{name}.w"), numbers(&filters))?;
    let bias = b.constant(&format!("{name}.b"), numbers(&filters[..1]))?;
    let pads = vec![filters[2] / 2; 4];
    b.op("Conv", name, &[x, weights, bias], [("pads", Attr::Ints(pads))])
}

/// A convolution of several taps, which no form takes, and a network that stays in blocks.
fn model() -> Result<Model, Box<dyn std::error::Error>> {
    let mut b = GraphBuilder::new("net").opset(17);
    let x = b.input("x", DType::F32, [Dim::symbol("N"), 3.into(), 32.into(), 32.into()])?;
    let x = conv(&mut b, "stem", x, [16, 3, 3, 3])?;
    let x = conv(&mut b, "wide", x, [64, 16, 1, 1])?;
    let x = b.op("Relu", "active", &[x], [])?;
    let windows = [("kernel_shape", vec![3, 3]), ("strides", vec![2, 2]), ("pads", vec![1; 4])];
    let x = b.op("MaxPool", "half", &[x], windows.map(|(name, list)| (name, Attr::Ints(list))))?;
    let x = conv(&mut b, "narrow", x, [16, 64, 1, 1])?;
    let y = b.op("GlobalMaxPool", "y", &[x], [])?;
    b.output(y)?;
    Ok(Model::of_graph(&b.finish())?)
}

#[test]
fn a_target_of_ones_own_writes_its_forms_and_the_result_runs() -> Result<(), Box<dyn std::error::Error>> {
    let model = model()?;
    let optimized = optimize(&model, &Quads::default(), &Options::default())?;
    let bytes = optimized.to_bytes()?;
    let printed = Model::from_bytes(bytes.clone().into(), None)?.print();
    let count = |op: &str| printed.matches(&format!("= {op}(")).count();
    assert_eq!(["Conv", "Einsum", "MaxPool", "GlobalMaxPool"].map(count), [1, 2, 2, 0], "{printed}");
    assert_eq!(optimized.report().rewrites.get("spell_out_windows"), Some(&1));

    let mut places = SearchPlaces::default();
    places.explicit = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(Into::into);
    places.environment = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.relayout/venv").into());
    let runtime = Runtime::load(&find_library(&places).ok_or("these tests need ONNX Runtime: run tools/setup once")?)?;
    let inputs = Inputs::Random { seed: 1, dims: BTreeMap::from([("N".to_owned(), 2)]) };
    let (a, b) = (ModelSource::Bytes(model.bytes()), ModelSource::Bytes(&bytes));
    let comparison = verify(&runtime, a, b, &inputs, &relayout_verify::Options::default())?;
    assert!(comparison.holds(&Tolerance::default()), "{comparison}\n{printed}");

    let again = Model::from_bytes(bytes.into(), None)?;
    assert!(
        !optimize(&again, &Quads::default(), &Options::default())?.report().changed,
        "a second look changes something"
    );
    Ok(())
}
