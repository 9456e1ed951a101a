//! Target `ort-nhwc` with costs that were measured on a device: here with made-up ones, each of which makes one way the faster one.

use super::contributed_norms;
use super::regions::{channels_last, convolutions, unet};
use prost::Message;
use relayout::targets::device::{Case, ConvCase, DeviceCosts, DeviceMachine, Points, specs};
use relayout::targets::measured::{CostsError, Measurement, points_of};
use relayout::targets::{OrtNhwc, Provider};
use relayout::{Model, Optimized, Options, optimize};
use relayout_ir::op::MICROSOFT;
use relayout_onnx::proto::ModelProto;

/// A table of these times.
fn table(ns: impl Fn(&Case, bool) -> u64) -> DeviceCosts {
    let measured = specs(Points::Few).into_iter().map(|spec| {
        let axes: Vec<Vec<u64>> = spec.axes.iter().map(|(_, points)| points.clone()).collect();
        Measurement {
            name: spec.name.clone(),
            axes: spec.axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect(),
            ns: points_of(&axes).iter().map(|point| ns(&spec.case(point), spec.half)).collect(),
        }
    });
    let measured: Vec<Measurement> = measured.collect();
    let [machine, provider, device, date, runtime] =
        ["a GPU", "cuda", "own", "2026-11-30", "ONNX Runtime 1.31.1"].map(str::to_owned);
    let machine = DeviceMachine { machine, provider, device, date, runtime, node_ns: 1000 };
    let text = DeviceCosts::text(&machine, &measured);
    assert_eq!(text, DeviceCosts::text(&machine, &measured));
    DeviceCosts::parse("made-up", &text).expect("it is a table")
}

/// Times of a device on which everything takes a rate for its work, but for one kind of op.
fn usual(case: &Case) -> u64 {
    1000 + (case.work() / 64.0) as u64
}

fn made(bytes: Vec<u8>, provider: Provider, costs: DeviceCosts) -> Optimized {
    let model = Model::from_bytes(bytes.into(), None).expect("it opens");
    let target = OrtNhwc::of(provider).with_costs("made-up", costs).expect("costs of this provider");
    optimize(&model, &target, &Options::default().strict()).expect("it is optimized")
}

fn count(result: &Optimized, op: &str) -> usize {
    let model = ModelProto::decode(&*result.to_bytes().expect("it is written")).expect("a model");
    let graph = model.graph.expect("a graph");
    graph.node.iter().filter(|node| node.op_type.as_deref() == Some(op)).count()
}

#[test]
fn the_session_is_the_one_whose_convolutions_are_fast() {
    for (last_is_fast, session) in [(true, "prefer_nhwc=1"), (false, "prefer_nhwc=0")] {
        let costs = table(|case, _| match case {
            Case::Conv(ConvCase { channels_last, .. }) if *channels_last != last_is_fast => 20 * usual(case),
            _ => usual(case),
        });
        let result = made(convolutions(28, 32).bytes(), Provider::of("cuda").expect("a known provider"), costs);
        let device = result.report().device.clone().expect("a device");
        assert_eq!(device.session.as_deref(), Some(session));
        let instead = device.instead.expect("another kind of sessions").predicted_ns;
        assert!(device.predicted_ns.is_some_and(|ns| ns < instead), "{:?} and {instead}", device.predicted_ns);
        let written = Model::from_bytes(result.to_bytes().expect("it is written").into(), None).expect("it opens");
        assert!(written.metadata("relayout.costs").is_some_and(|costs| costs.starts_with("measured on a GPU for")));
    }
}

#[test]
fn dear_transposes_go_for_products_and_cheap_ones_stay() {
    for (transpose, product, resizes) in [(500, 1, 0), (1, 500, 3)] {
        let costs = table(|case, _| match case {
            Case::Transpose(_) => transpose * usual(case),
            Case::Product { .. } => product * usual(case),
            _ => usual(case),
        });
        let result = made(unet("linear", "half_pixel").bytes(), channels_last("cuda"), costs);
        assert_eq!(count(&result, "Resize"), resizes, "Transposes {transpose}, products {product}");
    }
}

#[test]
fn a_normalization_is_the_op_of_the_provider_where_that_is_fast() {
    for (last, ops) in [(1, 1), (5000, 0)] {
        let costs = table(|case, _| match case {
            Case::Norm { channels_last: true, .. } => last * usual(case),
            _ => usual(case),
        });
        let cuda = channels_last("cuda").allowing(MICROSOFT).expect("it has such ops");
        assert_eq!(count(&made(contributed_norms::usual(), cuda, costs), "GroupNorm"), ops, "{last}");
    }
}

#[test]
fn halves_have_times_of_their_own() {
    let costs = |half_is_dear: bool| {
        table(move |case, half| match case {
            Case::Transpose(_) if half == half_is_dear => 500 * usual(case),
            Case::Product { .. } => 10 * usual(case),
            _ => usual(case),
        })
    };
    let resizes = |half_is_dear| {
        let result = made(unet("linear", "half_pixel").bytes(), channels_last("cuda"), costs(half_is_dear));
        count(&result, "Resize")
    };
    assert_eq!([resizes(true), resizes(false)], [3, 0], "the network has floats");
}

#[test]
fn a_table_of_another_provider_is_refused() {
    let target = OrtNhwc::of(Provider::of("qnn").expect("a known provider"));
    let refused = target.with_costs("made-up", table(|case, _| usual(case))).map(drop).expect_err("it is CUDA's");
    assert!(matches!(refused, CostsError::OtherTarget { .. }));
    let why = refused.to_string();
    assert!(why.contains("`ort-nhwc --provider cuda`, not `ort-nhwc --provider qnn`"), "{why}");
}

#[test]
fn a_table_that_lacks_a_grid_is_refused_unless_only_some_runtimes_have_its_op() {
    let full = table(|case, _| usual(case));
    let text = |left_out: &str| {
        let measured = specs(Points::Few).into_iter().filter(|spec| !spec.name.starts_with(left_out)).map(|spec| {
            let axes: Vec<(String, Vec<u64>)> =
                spec.axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect();
            let count = axes.iter().map(|(_, points)| points.len()).product();
            Measurement { name: spec.name.clone(), axes, ns: vec![5000; count] }
        });
        DeviceCosts::text(full.machine(), &measured.collect::<Vec<_>>())
    };
    assert!(DeviceCosts::parse("t", &text("norm-last")).is_ok());
    let why = DeviceCosts::parse("t", &text("conv-last")).map(drop).expect_err("it lacks a grid").to_string();
    assert!(why.contains("there is no grid `conv-last-f32`"), "{why}");
    let other = text("norm-last").replace("device = \"own\"", "device = \"toaster\"");
    assert!(DeviceCosts::parse("t", &other).is_err());
}
