//! Models in which ops stand between Transposes, optimized: they run as their files stand, give what the original gives, and
//! the Transposes are gone where the op can run in the other order. Among them the cases that ONNX Runtime's own optimizer gets
//! wrong (Pad and Resize that name their axes, quantization by blocks) or leaves alone.

use crate::law::{agree_all, encode, execute};
use crate::op_cases::case::{Case, case, exact, f, fr, i64s, ints, u8s};
use relayout::{Model, Options, optimize};
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use relayout_onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, type_proto};
use relayout_verify::{Data, Tensor};

/// From channels last to channels first, for ranks 3 and 4.
fn perm(rank: usize) -> Vec<usize> {
    [&[0, rank - 1], &(1..rank - 1).collect::<Vec<_>>()[..]].concat()
}

fn inverse(perm: &[usize]) -> Vec<usize> {
    (0..perm.len()).map(|axis| perm.iter().position(|&p| p == axis).unwrap_or(axis)).collect()
}

fn transpose(from: &str, to: &str, perm: &[usize]) -> NodeProto {
    let perm = AttributeProto {
        name: Some("perm".to_owned()),
        ints: perm.iter().map(|&p| p as i64).collect(),
        r#type: Some(AttributeType::Ints as i32),
        ..AttributeProto::default()
    };
    NodeProto {
        op_type: Some("Transpose".to_owned()),
        name: Some(to.to_owned()),
        input: vec![from.to_owned()],
        output: vec![to.to_owned()],
        attribute: vec![perm],
        ..NodeProto::default()
    }
}

fn declare(info: &mut ValueInfoProto, shape: &[i64]) {
    let Some(type_proto::Value::TensorType(ty)) = info.r#type.as_mut().and_then(|t| t.value.as_mut()) else { return };
    let dim = |&d: &i64| Dimension { value: Some(dimension::Value::DimValue(d)), denotation: None };
    ty.shape.as_mut().expect("cases declare shapes").dim = shape.iter().map(dim).collect();
}

/// A chain of ops between Transposes, each op on the result of the one before and on operands of its own.
struct Chain {
    proto: ModelProto,
    feeds: Vec<Tensor>,
}

impl Chain {
    /// Operand 0 of the first case is stored with its channels last, and so is what comes out; other operands are as they are.
    fn new(cases: &[Case], opset: i64) -> Chain {
        let shape = cases[0].operands[0].as_ref().expect("a first operand").tensor.shape().to_vec();
        let to_first = perm(shape.len());
        let to_last = inverse(&to_first);
        let (mut proto, mut graph, mut feeds) = (cases[0].model(opset), GraphProto::default(), Vec::new());
        graph.node.push(transpose("x", "v0", &to_first));
        for (i, case) in cases.iter().enumerate() {
            let mut own = case.model(opset).graph.expect("a case has a graph");
            let rename = |name: &mut String| match name.as_str() {
                "" => {}
                "x0" => *name = format!("v{i}"),
                "y0" => *name = format!("v{}", i + 1),
                other => *name = format!("{other}.{i}"),
            };
            let node = &mut own.node[0];
            node.name = Some(format!("{} {i}", case.op));
            node.input.iter_mut().chain(&mut node.output).for_each(rename);
            own.input.iter_mut().chain(&mut own.output).filter_map(|v| v.name.as_mut()).for_each(rename);
            own.initializer.iter_mut().filter_map(|t| t.name.as_mut()).for_each(rename);
            graph.node.append(&mut own.node);
            graph.initializer.append(&mut own.initializer);
            graph.input.extend(own.input.into_iter().filter(|v| i == 0 || v.name.as_deref() != Some(&format!("v{i}"))));
            for (k, mut tensor) in case.feeds().into_iter().enumerate().filter(|(k, _)| i == 0 || *k > 0) {
                let name = if k == 0 { "x".to_owned() } else { format!("{}.{i}", tensor.name()) };
                let stored: Vec<i64> = to_last.iter().map(|&axis| shape[axis]).collect();
                let shape = if k == 0 { stored } else { tensor.shape().to_vec() };
                tensor = Tensor::new(name, shape, tensor.data().clone()).expect("as many elements");
                feeds.push(tensor);
            }
            if i + 1 == cases.len() {
                let mut results = own.output;
                for info in &mut results {
                    let name = info.name.clone().unwrap_or_default();
                    let out = format!("{name}.out");
                    graph.node.push(transpose(&name, &out, &to_last));
                    info.name = Some(out);
                }
                graph.output = results;
            }
        }
        declare(&mut graph.input[0], feeds[0].shape());
        graph.input[0].name = Some("x".to_owned());
        proto.graph = Some(graph);
        Chain { proto, feeds }
    }

    /// Optimizes it, checks that it computes the same, and counts the Transposes that are left.
    fn transposes_left(&self) -> Result<usize, String> {
        let bytes = encode(&self.proto);
        let expected = execute(&bytes, &self.feeds)?;
        let model = Model::from_bytes(bytes.into(), None).map_err(|e| e.to_string())?;
        let target = relayout::target("onnx").map_err(|e| e.to_string())?;
        let optimized = optimize(&model, target.as_ref(), &Options::default()).map_err(|e| e.to_string())?;
        let found = execute(&optimized.to_bytes().map_err(|e| e.to_string())?, &self.feeds)?;
        agree_all(&expected, &found)?;
        let proto = optimized.exported().map_or(&self.proto, |(proto, _)| proto);
        let nodes = &proto.graph.as_ref().ok_or("no graph")?.node;
        Ok(nodes.iter().filter(|n| n.op_type.as_deref() == Some("Transpose")).count())
    }
}

/// Checks cases between Transposes: so many are left.
fn through(cases: &[(usize, Case)]) {
    let mut wrong = Vec::new();
    for (expected, case) in cases {
        for opset in [case.opsets.0, case.opsets.1] {
            match Chain::new(std::slice::from_ref(case), opset).transposes_left() {
                Ok(left) if left == *expected => {}
                Ok(left) => wrong.push(format!("{}: {left} Transposes are left, not {expected}", case.label(opset))),
                Err(why) => wrong.push(format!("{}: {why}", case.label(opset))),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pads_that_name_their_axes_stay_right_and_lose_their_transposes() {
    let x = || f(&[2, 3, 4, 5]);
    through(&[
        (0, case("Pad", 18, 26).variant("of two axes").x(x()).c(ints(&[1, 2, 3, 0])).none().c(ints(&[1, 3]))),
        (0, case("Pad", 18, 26).variant("of one axis from the end").x(x()).c(ints(&[1, 2])).none().c(ints(&[-1]))),
        (
            0,
            case("Pad", 18, 26)
                .variant("of all axes in reverse")
                .x(x())
                .c(ints(&[1, 2, 3, 4, 5, 6, 7, 8]))
                .none()
                .c(ints(&[3, 2, 1, 0])),
        ),
        (0, case("Pad", 11, 17).variant("of all axes").x(x()).c(ints(&[1, 2, 3, 4, 5, 6, 7, 8]))),
    ]);
}

#[test]
fn resizes_that_name_their_axes_stay_right_and_lose_their_transposes() {
    let image = || f(&[1, 2, 3, 4]);
    let scales = || exact(&[2], Data::F32(vec![2.0, 3.0]));
    through(&[
        (0, case("Resize", 18, 26).variant("by scales").x(image()).none().c(scales()).list("axes", &[3, 2])),
        (0, case("Resize", 18, 26).variant("to sizes").x(image()).none().none().c(ints(&[5, 8])).list("axes", &[2, 3])),
        (
            0,
            case("Resize", 18, 26)
                .variant("of all axes in reverse")
                .x(image())
                .none()
                .c(exact(&[4], Data::F32(vec![3.0, 2.0, 1.0, 1.0])))
                .list("axes", &[3, 2, 1, 0]),
        ),
    ]);
}

#[test]
fn resizes_keep_their_transposes_where_a_runtime_has_no_kernel_or_a_slower_one() {
    let scales = |s: &[f32]| exact(&[s.len() as i64], Data::F32(s.to_vec()));
    let resize = |mode| case("Resize", 13, 26).text("mode", mode);
    let by = || scales(&[1.0, 1.0, 2.0, 1.5]);
    let double =
        || resize("nearest").text("coordinate_transformation_mode", "asymmetric").text("nearest_mode", "floor");
    through(&[
        (0, resize("nearest").variant("nearest").x(f(&[2, 3, 4, 5])).none().c(by())),
        (2, resize("linear").variant("linear").x(f(&[2, 3, 4, 5])).none().c(by())),
        (2, resize("linear").variant("linear, of bytes").x(u8s(&[2, 3, 4, 5])).none().c(by())),
        (2, resize("cubic").variant("cubic").x(f(&[2, 3, 4, 5])).none().c(by())),
        (2, double().variant("that doubles").x(f(&[2, 3, 4, 5])).none().c(scales(&[1.0, 1.0, 2.0, 2.0]))),
        (
            2,
            case("Upsample", 7, 8)
                .variant("linear")
                .text("mode", "linear")
                .nums("scales", &[1.0, 1.0, 2.0, 2.0])
                .x(f(&[2, 3, 4, 5])),
        ),
    ]);
}

#[test]
fn equations_are_written_for_the_order_in_which_their_operands_lie() {
    through(&[
        (0, case("Einsum", 12, 26).text("equation", "abcd,b->abcd").x(f(&[2, 3, 4, 5])).c(f(&[3]))),
        // The result lies as the letters it shares with the operand do, so one order can't suit both of its Transposes.
        (1, case("Einsum", 12, 26).variant("that transposes").text("equation", "abcd->acdb").x(f(&[2, 3, 4, 5]))),
    ]);
}

#[test]
fn quantization_by_blocks_stays_right_and_loses_its_transposes() {
    let scales = |shape: &[i64]| fr(shape, 0.05, 0.2);
    through(&[
        (
            0,
            case("DequantizeLinear", 21, 26)
                .int("axis", 1)
                .int("block_size", 2)
                .x(u8s(&[2, 4, 3, 5]))
                .c(scales(&[2, 2, 3, 5]))
                .c(u8s(&[2, 2, 3, 5])),
        ),
        (
            0,
            case("QuantizeLinear", 21, 26)
                .int("axis", -1)
                .int("block_size", 3)
                .x(fr(&[2, 4, 6], 0.0, 5.0))
                .c(scales(&[2, 4, 2]))
                .c(u8s(&[2, 4, 2])),
        ),
        (0, case("DequantizeLinear", 13, 26).variant("by channel").int("axis", 1).x(u8s(&[2, 4, 3])).c(scales(&[4]))),
    ]);
}

#[test]
fn what_picks_sorts_repeats_or_normalizes_along_an_axis_runs_in_any_order() {
    let x = || f(&[2, 3, 4, 5]);
    let axis = || exact(&[], Data::I64(vec![1]));
    through(&[
        (0, case("Gather", 7, 26).variant("by a vector").int("axis", 1).x(x()).c(ints(&[2, 0, 1, 1]))),
        (0, case("GatherElements", 11, 26).int("axis", 2).x(x()).c(i64s(&[2, 3, 2, 5], 0, 4))),
        (
            0,
            case("ScatterElements", 11, 26)
                .int("axis", 1)
                .x(f(&[2, 3, 4]))
                .c(exact(&[1, 2, 2], Data::I64(vec![0, 1, 2, 2])))
                .c(f(&[1, 2, 2])),
        ),
        (0, case("TopK", 10, 26).int("axis", 1).x(x()).c(ints(&[2])).results(2)),
        (0, case("Expand", 8, 26).x(f(&[2, 3, 1, 5])).c(ints(&[1, 3, 4, 5]))),
        (0, case("LpNormalization", 7, 26).int("axis", 1).x(x())),
        (0, case("CumSum", 11, 26).x(x()).c(axis())),
        (0, case("Softmax", 13, 26).int("axis", 1).x(x())),
        (0, case("ArgMax", 7, 26).int("axis", 1).x(x())),
        (0, case("MeanVarianceNormalization", 9, 26).list("axes", &[0, 2, 3]).x(x())),
        (0, case("Tile", 7, 26).x(x()).c(ints(&[1, 2, 1, 3]))),
        (0, case("Slice", 10, 26).variant("that names no axes").x(x()).c(ints(&[0, 1])).c(ints(&[2, 3]))),
        (0, case("Compress", 9, 26).int("axis", 2).x(x()).c(exact(&[4], Data::Bool(vec![true, false, true, true])))),
        (0, case("CenterCropPad", 18, 26).list("axes", &[1, 3]).x(x()).c(ints(&[2, 7]))),
    ]);
}

#[test]
fn a_sum_along_an_axis_twice_with_an_addition_between_keeps_no_transpose() {
    let cum_sum = |axis: i64| case("CumSum", 14, 26).x(f(&[2, 3, 4, 5])).c(exact(&[], Data::I64(vec![axis])));
    let add = || case("Add", 14, 26).x(f(&[2, 3, 4, 5])).c(f(&[3, 1, 1]));
    let left = Chain::new(&[cum_sum(1), add(), cum_sum(-2)], 17).transposes_left();
    assert_eq!(left, Ok(0));
}
