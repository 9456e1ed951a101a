//! Networks in tract before and after: the same results, fewer moves, and what tract refuses stays as it is.

use relayout_tract::{Prices, Relayout, Report, TOLERANCE, moves_of, numbers, worst};
use std::path::Path;
use std::sync::Arc;
use tract_core::internal::*;
use tract_core::ops::cnn::conv::Conv;
use tract_core::ops::cnn::{KernelFormat, MaxPool, PaddingSpec, PoolSpec};
use tract_core::ops::nn::DataFormat;
use tract_nnef::internal::Nnef;
use tract_onnx::prelude::*;

fn loaded(name: &str, shape: &[usize]) -> TypedModel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    let model = tract_onnx::onnx().model_for_path(path).unwrap();
    let model = model.with_input_fact(0, InferenceFact::dt_shape(f32::datum_type(), shape)).unwrap();
    model.into_typed().unwrap().into_decluttered().unwrap()
}

fn results(mut model: TypedModel) -> TVec<TValue> {
    let inputs = model.input_outlets().unwrap().to_vec();
    let numbers =
        |(at, o): (usize, &OutletId)| numbers(model.outlet_fact(*o).unwrap(), at as u32).unwrap().into_tvalue();
    let inputs = inputs.iter().enumerate().map(numbers).collect();
    model.optimize().unwrap();
    model.into_runnable().unwrap().run(inputs).unwrap()
}

/// The model with moves priced by their bytes, and what was done; results are compared.
fn decided(model: &TypedModel) -> (TypedModel, Report) {
    let (after, report) = Relayout::default().prices(Arc::new(Prices::by_bytes())).decide(model).unwrap();
    assert!(report.kept.is_none() && report.given_back.is_empty(), "{report:?}");
    let difference = worst(&results(model.clone()), &results(after.clone())).unwrap();
    assert!(difference <= TOLERANCE, "{difference}");
    assert_eq!(report.moves, (moves_of(model), moves_of(&after)));
    (after, report)
}

/// A pool and convolutions between images that have their channels last, as TensorFlow's exports have: tract moves no axis through a pool.
fn around_a_pool() -> TypedModel {
    let mut model = TypedModel::default();
    let mut wire = model.add_source("x", f32::fact([16, 16, 8])).unwrap();
    let spec = |kernel: usize, out: usize| PoolSpec {
        data_format: DataFormat::CHW,
        kernel_shape: tvec!(kernel, kernel),
        padding: PaddingSpec::SameUpper,
        dilations: None,
        strides: Some(tvec!(1, 1)),
        input_channels: 8,
        output_channels: out,
    };
    wire = model.wire_node("in", AxisOp::Move(2, 0), &[wire]).unwrap()[0];
    for name in ["a", "b"] {
        let weights: Vec<f32> = (0..8 * 8 * 9).map(|i| (i * 5 % 11) as f32 * 0.01 - 0.05).collect();
        let w = model.add_const(format!("{name}.w"), Tensor::from_shape(&[8, 8, 3, 3], &weights).unwrap()).unwrap();
        let bias = model.add_const(format!("{name}.b"), Tensor::from_shape(&[8], &[0.5f32; 8]).unwrap()).unwrap();
        let conv = Conv { pool_spec: spec(3, 8), kernel_fmt: KernelFormat::OIHW, group: 1, q_params: None };
        wire = model.wire_node(name, conv, &[wire, w, bias]).unwrap()[0];
        let pool = MaxPool { pool_spec: spec(2, 8), with_index_outputs: None };
        wire = model.wire_node(format!("{name}.pool"), pool, &[wire]).unwrap()[0];
    }
    wire = model.wire_node("out", AxisOp::Move(0, 2), &[wire]).unwrap()[0];
    model.select_output_outlets(&[wire]).unwrap();
    model.into_decluttered().unwrap()
}

#[test]
fn moves_around_pools_vanish_and_all_that_is_between_runs_channels_last() {
    let model = around_a_pool();
    assert_eq!(moves_of(&model), 2, "tract removes them itself");
    let (after, report) = decided(&model);
    assert!(report.changed);
    assert_eq!(moves_of(&after), 0);
    let formats: Vec<_> = after.nodes().iter().filter_map(|n| Some(n.op_as::<Conv>()?.pool_spec.data_format)).collect();
    assert_eq!(formats, [DataFormat::HWC, DataFormat::HWC]);
}

#[test]
fn a_network_of_tensorflow_has_fewer_moves_and_the_same_results() {
    let model = loaded("demo/tf_unet.onnx", &[1, 192, 192, 3]);
    let (after, _) = decided(&model);
    assert!(moves_of(&after) <= moves_of(&model));
}

#[test]
fn small_networks_have_the_same_results() {
    for (name, shape) in [("cli/conv.onnx", [1, 6, 6, 4]), ("verify/conv_around.onnx", [2, 3, 8, 8])] {
        let model = loaded(name, &shape);
        let (after, _) = decided(&model);
        assert!(moves_of(&after) <= moves_of(&model), "{name}");
    }
}

#[test]
fn a_network_that_is_read_from_nnef_is_decided_as_well() {
    let model = around_a_pool();
    let mut bytes = Vec::new();
    let nnef: Nnef = tract_nnef::nnef();
    nnef.write_to_tar(&model, &mut bytes).unwrap();
    let read = nnef.model_for_read(&mut bytes.as_slice()).unwrap().into_decluttered().unwrap();
    let (after, _) = decided(&read);
    assert!(moves_of(&after) <= moves_of(&read));
}

#[test]
fn measured_prices_change_no_result() {
    let model = around_a_pool();
    let prices = Arc::new(Prices::new());
    let (after, report) = Relayout::default().prices(prices.clone()).decide(&model).unwrap();
    assert!(report.kept.is_none() && !prices.is_empty());
    assert!(worst(&results(model), &results(after)).unwrap() <= TOLERANCE);
}

#[test]
fn a_model_of_open_extents_is_not_run_and_its_moves_go_as_well() {
    let mut model = TypedModel::default();
    let batch = model.symbols.sym("B").to_dim();
    let x = model.add_source("x", f32::fact(tvec![batch, 4.to_dim(), 5.to_dim(), 3.to_dim()])).unwrap();
    let a = model.wire_node("a", AxisOp::Move(3, 1), &[x]).unwrap()[0];
    let pool = PoolSpec {
        data_format: DataFormat::NCHW,
        kernel_shape: tvec!(2, 2),
        padding: PaddingSpec::Valid,
        dilations: None,
        strides: None,
        input_channels: 3,
        output_channels: 3,
    };
    let b = model.wire_node("b", MaxPool { pool_spec: pool, with_index_outputs: None }, &[a]).unwrap()[0];
    let c = model.wire_node("c", AxisOp::Move(1, 3), &[b]).unwrap()[0];
    model.select_output_outlets(&[c]).unwrap();
    let (after, report) = Relayout::default().decide(&model).unwrap();
    assert!(report.changed, "{report:?}");
    assert_eq!(moves_of(&after), 0);
    assert_eq!(after.outlet_fact(after.outputs[0]).unwrap().shape, model.outlet_fact(model.outputs[0]).unwrap().shape);
}
