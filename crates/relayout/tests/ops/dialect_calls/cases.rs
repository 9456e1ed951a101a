//! The calls that are tried: every op of the dialect in the layouts of its targets.

use super::case::{Case, layout, packed, plain};
use super::{Array, float, int, ints, text};
use relayout_ir::layout::{Layout, LayoutNames, Segment};
use relayout_onnx::dialect;
use relayout_onnx::proto::AttributeProto;
use relayout_verify::Data;

/// A layout of weights (`OIHW` letters).
fn weights(text: &str, rank: usize) -> Layout {
    Layout::parse_with(text, &LayoutNames::weights(rank)).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Layouts of features with the usual weights beside them: channels of a case, name, features, weights.
const CONV2D: &[(i64, i64, &str, &str, &str, &str)] = &[
    (8, 12, "Conv2d_NHWC", "NHWC", "OHWI", "NHWC"),
    (20, 35, "Conv2d_NCHW16c", "NCHW16c", "OIHW16i16o", "NCHW16c"),
    (20, 7, "Conv2d_NCHW8c", "NCHW8c", "OIHW8i8o", "NCHW8c"),
    (5, 6, "Conv2d_NCHW4c", "NCHW4c", "OIHW4i4o", "NCHW4c"),
    (6, 5, "Conv2d_CHWN4", "CHWN4", "I/4 H W O[5:8] I%4", "CHWN4"),
    (3, 20, "Conv2d_NCHW_W_OIHW16o_Y_NCHW16c", "NCHW", "OIHW16o", "NCHW16c"),
    (20, 3, "Conv2d_NCHW16c_W_OIHW16i_Y_NCHW", "NCHW16c", "OIHW16i", "NCHW"),
    (20, 10, "Conv2d_NHWC", "N H W C[20:24]", "O[10:16] H W I[20:24]", "N H W C[10:16]"),
    (8, 8, "Conv2d_NHWC_W_HWIO", "NHWC", "HWIO", "NHWC"),
    (20, 24, "Conv2d_NCHW4c_W_OIHW4i", "NCHW4c", "OIHW4i", "NCHW4c"),
    (70, 40, "Conv2d_NCHW32c", "NCHW32c", "OIHW32i32o", "NCHW32c"),
];

pub(crate) fn convolutions_in_every_layout_are_the_convolution(each: &mut dyn FnMut(&Case)) {
    for &(c_in, c_out, name, x, w, y) in CONV2D {
        let (x_layout, w_layout, y_layout) = (layout(x), weights(w, 4), layout(y));
        let attributes = vec![ints("strides", &[2, 1]), ints("pads", &[1, 0, 1, 2]), ints("dilations", &[1, 2])];
        let (x, w) = (Array::floats(&[2, c_in, 7, 9], 1), Array::floats(&[c_out, c_in, 3, 3], 2));
        // Whatever finite number a lane of x holds meets weights of zero.
        let (x, w) = (packed(x, &x_layout, 7), packed(w, &w_layout, 0));
        Case::new("Conv", name, attributes).with(x).with(w).to(&y_layout).zero_lanes().give(each);
    }
}

/// One entry per channel, padded as the channels of `features` are.
fn per_channel(channels: i64, features: &Layout) -> Layout {
    if let Some(map) = features.slot_map(1) {
        return Layout::row_major(1).with_slot_map(0, map).unwrap();
    }
    let block = features.block_of(1);
    let slots = (channels as u64).div_ceil(block) * block;
    Layout::row_major(1).with_slot_map(0, &[Segment { len: channels as u64, slots }]).unwrap()
}

pub(crate) fn a_bias_is_one_entry_per_slot(each: &mut dyn FnMut(&Case)) {
    for &(c_in, c_out, name, x, w, y) in CONV2D {
        let (x_layout, w_layout, y_layout) = (layout(x), weights(w, 4), layout(y));
        let bias = per_channel(c_out, &if w.contains("O[5:8]") { layout("C/4 H W N C%4") } else { y_layout.clone() });
        let (x, w) = (Array::floats(&[1, c_in, 5, 6], 1), Array::floats(&[c_out, c_in, 2, 3], 2));
        let case = Case::new("Conv", &with_bias(name), vec![text("auto_pad", "SAME_UPPER")]);
        let case = case.with(packed(x, &x_layout, 1)).with(packed(w, &w_layout, 0));
        case.with(packed(Array::floats(&[c_out], 3), &bias, 0)).to(&y_layout).zero_lanes().give(each);
    }
}

/// The name of a convolution with a bias: operands are named in their order.
fn with_bias(name: &str) -> String {
    match name.find("_Y_") {
        Some(at) => format!("{}_B{}", &name[..at], &name[at..]),
        None => format!("{name}_B"),
    }
}

pub(crate) fn convolutions_of_one_and_three_axes_are_the_convolution(each: &mut dyn FnMut(&Case)) {
    for (name, x, w, x_shape, w_shape) in [
        ("Conv1d_NWC", "NWC", "OWI", &[2, 6, 11][..], &[4, 6, 3][..]),
        ("Conv1d_NCW16c", "NCW16c", "OIW16i16o", &[2, 18, 11], &[20, 18, 3]),
        ("Conv1d_NCW4c", "NCW4c", "OIW4i4o", &[1, 5, 8], &[3, 5, 2]),
        ("Conv3d_NDHWC", "NDHWC", "ODHWI", &[1, 5, 4, 5, 6], &[3, 5, 2, 3, 2]),
        ("Conv3d_NCDHW8c", "NCDHW8c", "OIDHW8i8o", &[2, 9, 4, 3, 5], &[7, 9, 2, 2, 3]),
    ] {
        let rank = x_shape.len();
        let (x_layout, w_layout) = (layout(x), weights(w, rank));
        let (x, w) = (Array::floats(x_shape, 1), Array::floats(w_shape, 2));
        let (x, w) = (packed(x, &x_layout, 3), packed(w, &w_layout, 0));
        let attributes = vec![ints("strides", &vec![2; rank - 2]), ints("kernel_shape", &w_shape[2..])];
        Case::new("Conv", name, attributes).with(x).with(w).to(&x_layout).zero_lanes().give(each);
    }
}

pub(crate) fn grouped_convolutions_have_weights_of_one_group(each: &mut dyn FnMut(&Case)) {
    // Blocks lie within groups: 2 groups of 16 channels in, of 8 out.
    let (x, w, y) = (layout("NCHW8c"), weights("OIHW8i8o", 4), layout("NCHW8c"));
    let case = Case::new("Conv", "Conv2d_NCHW8c", vec![int("group", 2), ints("pads", &[1, 1, 1, 1])]);
    let case = case.with(packed(Array::floats(&[2, 32, 6, 5], 1), &x, 0));
    case.with(packed(Array::floats(&[16, 16, 3, 3], 2), &w, 0)).to(&y).give(each);
    let (x, w) = (layout("NHWC"), weights("OHWI", 4));
    let case = Case::new("Conv", "Conv2d_NHWC", vec![int("group", 3)]);
    let case = case.with(packed(Array::floats(&[2, 6, 6, 5], 1), &x, 0));
    case.with(packed(Array::floats(&[9, 2, 3, 3], 2), &w, 0)).to(&x).give(each);
}

pub(crate) fn a_depthwise_convolution_has_as_many_groups_as_slots(each: &mut dyn FnMut(&Case)) {
    for (x, w, name, slots) in [
        ("NCHW16c", "OIHW16o", "Conv2d_NCHW16c_W_OIHW16o", 32),
        ("NCHW4c", "OIHW4o", "Conv2d_NCHW4c_W_OIHW4o", 20),
        ("N H W C[20:24]", "H W O[20:24] I", "Conv2d_NHWC_W_HWOI", 24),
    ] {
        let (x_layout, w_layout) = (layout(x), weights(w, 4));
        let (x, w) = (Array::floats(&[2, 20, 6, 7], 1), Array::floats(&[20, 1, 3, 3], 2));
        let case = Case::new("Conv", name, vec![int("group", 20), ints("strides", &[1, 2])]);
        let case = case.with(packed(x, &x_layout, 5)).with(packed(w, &w_layout, 0));
        case.instead(int("group", slots)).to(&x_layout).zero_lanes().give(each);
    }
}

pub(crate) fn transposed_convolutions_are_the_transposed_convolution(each: &mut dyn FnMut(&Case)) {
    let letters = LayoutNames::custom("IOHW").unwrap();
    for (x, w, name) in [
        ("NHWC", "OHWI", "ConvTranspose2d_NHWC"),
        ("NHWC", "IHWO", "ConvTranspose2d_NHWC_W_IHWO"),
        ("NCHW8c", "O/8 I/8 H W I%8 O%8", "ConvTranspose2d_NCHW8c_W_OIHW8i8o"),
    ] {
        let (x_layout, w_layout) = (layout(x), Layout::parse_with(w, &letters).unwrap());
        let usual = dialect::canonical_weight("ConvTranspose", &x_layout).unwrap() == w_layout;
        let name = if usual { name.split("_W_").next().unwrap() } else { name };
        let (x, w) = (Array::floats(&[2, 9, 4, 5], 1), Array::floats(&[9, 6, 3, 2], 2));
        let attributes = vec![ints("strides", &[2, 3]), ints("output_padding", &[1, 0])];
        let case = Case::new("ConvTranspose", name, attributes);
        case.with(packed(x, &x_layout, 2)).with(packed(w, &w_layout, 0)).to(&x_layout).zero_lanes().give(each);
    }
}

pub(crate) fn pools_keep_channels_apart(each: &mut dyn FnMut(&Case)) {
    for (tail, x, shape) in [
        ("NHWC", "NHWC", &[2, 5, 8, 9][..]),
        ("NCHW16c", "NCHW16c", &[2, 20, 8, 9]),
        ("NCHW8c", "NCHW8c", &[1, 3, 8, 9]),
        ("CHWN4", "CHWN4", &[3, 6, 8, 9]),
        ("NHWC", "N H W C[5:8]", &[2, 5, 8, 9]),
        ("NCW4c", "NCW4c", &[2, 5, 13]),
        ("NDHWC", "NDHWC", &[1, 3, 5, 6, 4]),
    ] {
        let x_layout = layout(x);
        let axes = shape.len() - 2;
        let window = || {
            let pads = vec![1; 2 * axes];
            vec![ints("kernel_shape", &vec![3; axes]), ints("strides", &vec![2; axes]), ints("pads", &pads)]
        };
        let with = |more: Vec<AttributeProto>| window().into_iter().chain(more).collect::<Vec<_>>();
        let x = || packed(Array::floats(shape, 4), &x_layout, 9);
        let mut check = |op: &'static str, name: String, attributes| {
            Case::new(op, &name, attributes).with(x()).to(&x_layout).give(each);
        };
        check(
            "MaxPool",
            format!("MaxPool{axes}d_{tail}"),
            with(vec![int("ceil_mode", 1), ints("dilations", &vec![1; axes])]),
        );
        check("AveragePool", format!("AveragePool{axes}d_{tail}"), with(vec![int("count_include_pad", 1)]));
        check("LpPool", format!("LpPool{axes}d_{tail}"), with(vec![int("p", 2)]));
        check("GlobalAveragePool", format!("GlobalAveragePool_{tail}"), vec![]);
        check("GlobalMaxPool", format!("GlobalMaxPool_{tail}"), vec![]);
        check("GlobalLpPool", format!("GlobalLpPool_{tail}"), vec![int("p", 1)]);
    }
}

pub(crate) fn resizing_reads_its_lists_in_onnx_order(each: &mut dyn FnMut(&Case)) {
    for (tail, x, slots) in [("NHWC", "NHWC", 20), ("NCHW16c", "NCHW16c", 32), ("NHWC", "N H W C[20:24]", 24)] {
        let x_layout = layout(x);
        let x = || packed(Array::floats(&[1, 20, 4, 5], 4), &x_layout, 9);
        let scales = Array::new(&[4], Data::F32(vec![1.0, 1.0, 2.0, 1.5]));
        let linear = vec![text("mode", "linear"), text("coordinate_transformation_mode", "half_pixel")];
        let case = Case::new("Resize", &format!("Resize_{tail}_scales"), linear.clone());
        case.with(x()).absent().with(plain(scales.clone())).to(&x_layout).give(each);
        let case = Case::new("Upsample", &format!("Upsample_{tail}"), vec![text("mode", "nearest")]);
        case.with(x()).with(plain(scales.clone())).to(&x_layout).at(9).give(each);
        let case = Case::new("Resize", &format!("Resize_{tail}"), vec![text("mode", "nearest")]);
        case.with(x()).with(plain(scales)).to(&x_layout).at(10).give(each);
        if slots == 20 {
            let sizes = plain(Array::new(&[4], Data::I64(vec![1, 20, 7, 3])));
            let case = Case::new("Resize", &format!("Resize_{tail}_sizes"), linear);
            case.with(x()).absent().absent().with(sizes).to(&x_layout).give(each);
        }
        let scales = plain(Array::new(&[4], Data::F32(vec![1.0, 1.0, 0.5, 3.0])));
        let cubic = vec![text("mode", "cubic"), int("antialias", 1), float("cubic_coeff_a", -0.5)];
        let case = Case::new("Resize", &format!("Resize_{tail}_scales"), cubic);
        case.with(x()).absent().with(scales).to(&x_layout).at(19).give(each);
    }
}

pub(crate) fn samples_of_a_grid_are_those_of_the_op(each: &mut dyn FnMut(&Case)) {
    for (tail, x) in [("NHWC", "NHWC"), ("NCHW8c", "NCHW8c")] {
        let x_layout = layout(x);
        let grid = Array::new(&[2, 3, 2, 2], Data::F32((0..24).map(|i| (i as f32 - 12.0) / 13.0).collect()));
        let case = Case::new(
            "GridSample",
            &format!("GridSample_{tail}"),
            vec![text("mode", "bilinear"), int("align_corners", 1)],
        );
        let case = case.with(packed(Array::floats(&[2, 9, 4, 5], 4), &x_layout, 1));
        case.with(plain(grid)).to(&x_layout).at(16).give(each);
    }
}

pub(crate) fn depth_and_space_change_places(each: &mut dyn FnMut(&Case)) {
    for (tail, x) in [("NHWC", "NHWC"), ("NCHW4c", "NCHW4c")] {
        let x_layout = layout(x);
        let case =
            Case::new("DepthToSpace", &format!("DepthToSpace_{tail}"), vec![int("blocksize", 2), text("mode", "CRD")]);
        case.with(packed(Array::floats(&[2, 16, 3, 4], 4), &x_layout, 0)).to(&x_layout).give(each);
        let case = Case::new("SpaceToDepth", &format!("SpaceToDepth_{tail}"), vec![int("blocksize", 2)]);
        case.with(packed(Array::floats(&[2, 4, 6, 4], 4), &x_layout, 0)).to(&x_layout).give(each);
    }
}

pub(crate) fn normalizations_take_padded_parameters(each: &mut dyn FnMut(&Case)) {
    for (tail, x) in [("NHWC", "NHWC"), ("NCHW16c", "NCHW16c"), ("CHWN4", "CHWN4"), ("NHWC", "N H W C[20:24]")] {
        let x_layout = layout(x);
        let c = per_channel(20, &x_layout);
        let x = || packed(Array::floats(&[3, 20, 4, 5], 4), &x_layout, 0);
        let parameter = |salt| packed(Array::floats(&[20], salt), &c, 0);
        let variance = packed(Array::new(&[20], Data::F32((1..=20).map(|v| v as f32).collect())), &c, 1);
        let case = Case::new("BatchNormalization", &format!("BatchNormalization_{tail}"), vec![float("epsilon", 0.5)]);
        case.with(x())
            .with(parameter(1))
            .with(parameter(2))
            .with(parameter(3))
            .with(variance)
            .to(&x_layout)
            .zero_lanes()
            .give(each);
        let case = Case::new("InstanceNormalization", &format!("InstanceNormalization_{tail}"), vec![]);
        case.with(x()).with(parameter(1)).with(parameter(2)).to(&x_layout).zero_lanes().give(each);
        let case = Case::new("LRN", &format!("LRN_{tail}"), vec![int("size", 5), float("alpha", 0.3)]);
        case.with(x()).to(&x_layout).zero_lanes().give(each);
    }
    for (tail, x) in [("NHWC", "NHWC"), ("NCHW4c", "NCHW4c")] {
        let x_layout = layout(x);
        let x = || packed(Array::floats(&[3, 24, 4, 5], 4), &x_layout, 0);
        let groups = || vec![int("num_groups", 3)];
        let case = Case::new("GroupNormalization", &format!("GroupNormalization_{tail}"), groups());
        case.with(x())
            .with(plain(Array::floats(&[24], 1)))
            .with(plain(Array::floats(&[24], 2)))
            .to(&x_layout)
            .at(21)
            .give(each);
        let case = Case::new("Softmax", &format!("Softmax_{tail}"), vec![int("axis", 1)]);
        case.with(x()).to(&x_layout).give(each);
        let case = Case::new("LogSoftmax", &format!("LogSoftmax_{tail}"), vec![int("axis", -2)]);
        case.with(x()).to(&x_layout).give(each);
        let case = Case::new("LpNormalization", &format!("LpNormalization_{tail}"), vec![int("axis", 1)]);
        case.with(x()).to(&x_layout).give(each);
    }
}

pub(crate) fn quantized_convolutions_pad_weights_with_their_zero_point(each: &mut dyn FnMut(&Case)) {
    let scalar = |value: f32| plain(Array::new(&[], Data::F32(vec![value])));
    let zero = |value: u8| plain(Array::new(&[], Data::U8(vec![value])));
    for &(c_in, c_out, name, x, w, y) in CONV2D.iter().filter(|c| !c.2.contains("CHWN4")) {
        let (x_layout, w_layout, y_layout) = (layout(x), weights(w, 4), layout(y));
        let c = per_channel(c_out, &y_layout);
        let x = || packed(Array::unsigned(&[1, c_in, 5, 6], 1), &x_layout, 3);
        let w = || packed(Array::signed(&[c_out, c_in, 3, 3], 2), &w_layout, 0);
        let scales = Array::new(&[c_out], Data::F32((1..=c_out).map(|i| 0.25 * i as f32).collect()));
        let points = packed(Array::new(&[c_out], Data::I8(vec![0; c_out as usize])), &c, 0);
        let bias = packed(Array::new(&[c_out], Data::I32((0..c_out as i32).collect())), &c, 0);
        let case = Case::new("QLinearConv", &with_bias_y(&format!("QLinear{name}")), vec![ints("pads", &[1, 1, 1, 1])]);
        let case = case.with(x()).with(scalar(0.5)).with(zero(101)).with(w()).with(packed(scales, &c, 1)).with(points);
        case.with(scalar(4.0)).with(zero(128)).with(bias).to(&y_layout).give(each);
        let name = lower(&name.replacen("Conv2d", "ConvInteger2d", 1)).replace("_y_", "_x_zero_point_y_");
        let name = if name.contains("_x_zero_point") { name } else { format!("{name}_x_zero_point") };
        let case = Case::new("ConvInteger", &name, vec![]);
        case.with(x()).with(w()).with(zero(101)).to(&y_layout).zero_lanes().give(each);
    }
}

/// Names of slots as quantized ops have them.
fn lower(name: &str) -> String {
    name.replace("_W_", "_w_").replace("_Y_", "_y_")
}

fn with_bias_y(name: &str) -> String {
    lower(&with_bias(name))
}

pub(crate) fn quantization_by_channel_reads_the_logical_axis(each: &mut dyn FnMut(&Case)) {
    let x_layout = layout("NCHW8c");
    let scales = || plain(Array::new(&[16], Data::F32((1..=16).map(|v| v as f32).collect())));
    let case = Case::new("QuantizeLinear", "QuantizeLinear_NCHW8c_y_zero_point", vec![int("axis", 1)]);
    let case = case.with(packed(Array::floats(&[2, 16, 3, 4], 4), &x_layout, 0)).with(scales());
    case.with(plain(Array::unsigned(&[16], 3))).to(&x_layout).give(each);
    let case = Case::new("DequantizeLinear", "DequantizeLinear_NCHW8c", vec![int("axis", 1)]);
    case.with(packed(Array::unsigned(&[2, 16, 3, 4], 4), &x_layout, 0)).with(scales()).to(&x_layout).give(each);
}

pub(crate) fn products_of_matrices_take_blocked_weights(each: &mut dyn FnMut(&Case)) {
    let letters = LayoutNames::custom("KN").unwrap();
    let b = Layout::parse_with("N/16 K N%16", &letters).unwrap();
    let case = Case::new("MatMul", "MatMul_B_NK16n", vec![]);
    case.with(plain(Array::floats(&[5, 12], 1))).with(packed(Array::floats(&[12, 32], 2), &b, 0)).give(each);
    let column = layout("ba");
    let case = Case::new("Gemm", "Gemm_B_BA_C", vec![float("alpha", 2.0)]);
    let case = case.with(plain(Array::floats(&[5, 12], 1))).with(packed(Array::floats(&[12, 7], 2), &column, 0));
    case.with(plain(Array::floats(&[7], 3))).give(each);
}
