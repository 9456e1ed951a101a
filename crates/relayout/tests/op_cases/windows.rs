//! Convolutions, pools, normalizations, resizing and what samples.

use super::case::{Case, case, exact, f, float, fr, i64s, ints, u8s};
use relayout_verify::Data;

pub(crate) fn cases() -> Vec<Case> {
    [convolutions(), pools(), normalizations(), resizes(), interpolations(), sampling()].concat()
}

fn convolutions() -> Vec<Case> {
    let conv = |x: &[i64], w: &[i64]| case("Conv", 7, 26).x(f(x)).x(f(w));
    let transposed = |x: &[i64], w: &[i64]| case("ConvTranspose", 7, 26).x(f(x)).x(f(w));
    vec![
        conv(&[2, 3, 6, 5], &[4, 3, 3, 2]).x(f(&[4])).list("pads", &[1, 0, 1, 1]).list("strides", &[2, 1]),
        conv(&[2, 3, 6], &[4, 3, 2]).variant("1-D").list("dilations", &[2]),
        conv(&[1, 2, 4, 3, 5], &[3, 2, 2, 1, 3]).variant("3-D").x(f(&[3])),
        conv(&[2, 6, 5, 4], &[4, 3, 2, 2]).variant("in groups").int("group", 2).x(f(&[4])),
        conv(&[2, 3, 5, 4], &[6, 1, 2, 2]).variant("depthwise").int("group", 3).text("auto_pad", "SAME_UPPER"),
        transposed(&[2, 4, 3, 5], &[4, 3, 2, 2]).list("strides", &[2, 2]).list("output_padding", &[1, 0]),
        transposed(&[2, 4, 3], &[4, 2, 2]).variant("in groups").int("group", 2).x(f(&[4])),
        case("DeformConv", 19, 26).x(f(&[2, 2, 5, 5])).x(f(&[3, 2, 2, 2])).x(f(&[2, 8, 4, 4])).x(f(&[3])),
        case("DeformConv", 19, 26)
            .variant("in groups, with a mask")
            .int("group", 2)
            .int("offset_group", 2)
            .x(f(&[2, 4, 5, 5]))
            .x(f(&[6, 2, 2, 2]))
            .x(f(&[2, 16, 4, 4]))
            .none()
            .x(f(&[2, 8, 4, 4])),
    ]
}

fn pools() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["MaxPool", "AveragePool", "LpPool"] {
        let pool = |shape: &[i64]| case(op, 7, 26).x(f(shape)).list("kernel_shape", &vec![2; shape.len() - 2]);
        cases.push(pool(&[2, 3, 6, 5]).list("strides", &[2, 1]).list("pads", &[0, 1, 1, 0]));
        cases.push(pool(&[2, 3, 7]).variant("1-D").text("auto_pad", "SAME_LOWER"));
        cases.push(pool(&[1, 2, 4, 3, 5]).variant("3-D"));
    }
    cases.push(
        case("MaxPool", 10, 26)
            .variant("rounded up")
            .x(f(&[2, 3, 6, 5]))
            .list("kernel_shape", &[3, 2])
            .int("ceil_mode", 1)
            .list("strides", &[2, 2]),
    );
    cases.push(
        case("MaxPool", 8, 26).variant("with indices").x(f(&[2, 3, 6, 5])).list("kernel_shape", &[2, 2]).results(2),
    );
    // ONNX Runtime has no kernel for GlobalLpPool of opset 22.
    for (op, last) in [("GlobalAveragePool", 26), ("GlobalMaxPool", 26), ("GlobalLpPool", 21)] {
        cases.push(case(op, 7, last).x(f(&[2, 3, 4, 5])));
        cases.push(case(op, 7, last).variant("1-D").x(f(&[2, 3, 4])));
    }
    let indices = || exact(&[1, 1, 2, 2], Data::I64(vec![5, 7, 13, 15]));
    cases.push(
        case("MaxUnpool", 9, 26)
            .x(f(&[1, 1, 2, 2]))
            .x(indices())
            .list("kernel_shape", &[2, 2])
            .list("strides", &[2, 2]),
    );
    cases.push(
        case("MaxUnpool", 9, 26)
            .variant("of several channels")
            .x(f(&[2, 3, 2, 2]))
            .x(exact(&[2, 3, 2, 2], Data::I64((0..24).map(|i| i * 4 + i % 4).collect())))
            .list("kernel_shape", &[2, 2])
            .list("strides", &[2, 2]),
    );
    cases
}

fn normalizations() -> Vec<Case> {
    let positive = |shape: &[i64]| fr(shape, 0.5, 2.0);
    let layer =
        |axis, tail: &[i64]| case("LayerNormalization", 17, 26).int("axis", axis).x(f(&[2, 3, 4, 5])).x(f(tail));
    vec![
        case("BatchNormalization", 7, 26).x(f(&[2, 3, 4, 5])).x(f(&[3])).x(f(&[3])).x(f(&[3])).x(positive(&[3])),
        case("BatchNormalization", 9, 26)
            .variant("of a matrix")
            .x(f(&[4, 3]))
            .x(f(&[3]))
            .x(f(&[3]))
            .x(f(&[3]))
            .x(positive(&[3])),
        case("InstanceNormalization", 7, 26).x(f(&[2, 3, 4, 5])).x(f(&[3])).x(f(&[3])),
        case("InstanceNormalization", 7, 26).variant("1-D").x(f(&[2, 3, 7])).x(f(&[3])).x(f(&[3])),
        case("GroupNormalization", 18, 20).int("num_groups", 2).x(f(&[2, 4, 3, 5])).x(f(&[2])).x(f(&[2])),
        case("GroupNormalization", 21, 26)
            .variant("by channel")
            .int("num_groups", 2)
            .x(f(&[2, 4, 3, 5]))
            .x(f(&[4]))
            .x(f(&[4])),
        layer(2, &[4, 5]).x(f(&[4, 5])).results(3),
        layer(-1, &[5]).variant("of the last axis"),
        layer(1, &[5]).variant("with a scale of fewer axes"),
        case("LayerNormalization", 7, 7).variant("before it was standard").x(f(&[2, 3, 4])).x(f(&[4])).x(f(&[4])),
        case("RMSNormalization", 23, 26).x(f(&[2, 3, 4])).x(f(&[4])),
        case("SimplifiedLayerNormalization", 7, 26).int("axis", 2).x(f(&[2, 3, 4, 5])).x(f(&[4, 5])).results(2),
        case("LRN", 7, 26).int("size", 3).x(f(&[2, 6, 4, 5])),
        case("LpNormalization", 7, 26).int("axis", 1).x(f(&[2, 3, 4])),
        case("LpNormalization", 7, 26).variant("of the last axis").int("p", 1).x(f(&[2, 3, 4])),
        case("MeanVarianceNormalization", 9, 26).list("axes", &[0, -1]).x(f(&[2, 3, 4, 5])),
        case("MeanVarianceNormalization", 9, 26).variant("without axes").x(f(&[2, 3, 4, 5])),
    ]
}

fn resizes() -> Vec<Case> {
    let scales = |s: &[f32]| exact(&[s.len() as i64], Data::F32(s.to_vec()));
    let image = || f(&[1, 2, 3, 4]);
    vec![
        case("Upsample", 7, 8).nums("scales", &[1.0, 1.0, 2.0, 2.0]).x(image()),
        case("Upsample", 9, 9).x(image()).c(scales(&[1.0, 1.0, 2.0, 3.0])),
        case("Resize", 10, 10).x(image()).c(scales(&[1.0, 1.0, 2.0, 1.5])),
        case("Resize", 11, 12)
            .variant("with an empty region")
            .x(image())
            .c(scales(&[]))
            .c(scales(&[1.0, 1.0, 2.0, 1.5])),
        case("Resize", 13, 26).x(image()).none().c(scales(&[1.0, 1.0, 2.0, 1.5])).text("mode", "linear"),
        case("Resize", 13, 26).variant("to sizes").x(image()).none().none().c(ints(&[1, 2, 5, 8])),
        case("Resize", 18, 26).variant("of named axes").x(image()).none().c(scales(&[2.0, 3.0])).list("axes", &[3, 2]),
        case("Resize", 13, 26)
            .variant("that doubles")
            .text("coordinate_transformation_mode", "asymmetric")
            .text("nearest_mode", "floor")
            .x(f(&[2, 3, 4, 5]))
            .none()
            .c(scales(&[1.0, 1.0, 2.0, 2.0])),
        case("Resize", 13, 26)
            .variant("by computed scales")
            .partial()
            .x(image())
            .none()
            .x(scales(&[1.0, 2.0, 1.0, 1.5])),
        case("Resize", 13, 26).variant("to computed sizes").partial().x(image()).none().none().x(ints(&[1, 2, 6, 8])),
        case("Resize", 18, 26)
            .variant("of named axes to sizes that keep their ratio")
            .partial()
            .text("keep_aspect_ratio_policy", "not_larger")
            .list("axes", &[3, 2])
            .x(f(&[2, 3, 4, 5]))
            .none()
            .none()
            .c(ints(&[10, 6])),
        case("Resize", 11, 26)
            .variant("of a region")
            .text("coordinate_transformation_mode", "tf_crop_and_resize")
            .x(image())
            .c(scales(&[0.0, 0.0, 0.2, 0.1, 1.0, 1.0, 0.8, 0.7]))
            .c(scales(&[1.0, 1.0, 2.0, 1.5])),
        case("Resize", 13, 26)
            .variant("of bytes, linear")
            .text("mode", "linear")
            .x(u8s(&[2, 3, 4, 5]))
            .none()
            .c(scales(&[1.0, 1.0, 2.0, 1.5])),
        case("Resize", 13, 26)
            .variant("linear, by a scale that changes no extent")
            .text("mode", "linear")
            .x(f(&[2, 3, 4, 5]))
            .none()
            .c(scales(&[1.0, 1.0, 1.1, 1.5])),
    ]
}

/// Each mode on each number of axes for which ONNX Runtime has a kernel, with the kept axes outermost.
fn interpolations() -> Vec<Case> {
    let scales = |s: &[f32]| exact(&[s.len() as i64], Data::F32(s.to_vec()));
    let mut cases = Vec::new();
    for (mode, variant, shape, by) in [
        ("nearest", "nearest of three axes", vec![2, 3, 4], vec![1.0, 1.0, 1.5]),
        ("nearest", "nearest of five axes", vec![1, 2, 2, 3, 2], vec![1.0, 1.0, 2.0, 1.5, 2.0]),
        ("nearest", "nearest of all axes", vec![2, 3, 4, 5], vec![2.0, 1.5, 2.0, 3.0]),
        ("linear", "linear of two axes", vec![3, 4], vec![1.5, 2.0]),
        ("linear", "linear of three axes", vec![2, 3, 4], vec![1.0, 1.0, 1.5]),
        ("linear", "linear of four axes", vec![2, 3, 4, 5], vec![1.0, 1.0, 1.5, 1.2]),
        ("linear", "linear of four axes, to fewer", vec![2, 3, 4, 5], vec![1.0, 1.0, 1.5, 0.6]),
        ("linear", "linear of four axes, channels last", vec![2, 3, 4, 5], vec![1.0, 1.5, 2.0, 1.0]),
        ("linear", "linear of five axes", vec![1, 2, 3, 4, 2], vec![1.0, 1.0, 2.0, 1.5, 2.0]),
        ("cubic", "cubic of two axes", vec![4, 5], vec![1.5, 2.0]),
        ("cubic", "cubic of four axes", vec![2, 3, 4, 5], vec![1.0, 1.0, 1.5, 2.0]),
        ("cubic", "cubic of four axes, to fewer", vec![2, 3, 4, 6], vec![1.0, 1.0, 0.5, 0.5]),
    ] {
        let resize =
            |first| case("Resize", first, 26).variant(variant).text("mode", mode).x(f(&shape)).none().c(scales(&by));
        cases.push(resize(13));
        let of_four = shape.len() == 4;
        if of_four && mode != "cubic" && by.iter().all(|scale| *scale >= 1.0) {
            cases.push(case("Upsample", 7, 8).variant(variant).text("mode", mode).nums("scales", &by).x(f(&shape)));
            cases.push(case("Resize", 10, 10).variant(variant).text("mode", mode).x(f(&shape)).c(scales(&by)));
        }
        if of_four && mode != "nearest" {
            cases.push(resize(18).text("coordinate_transformation_mode", "align_corners"));
            cases.push(resize(18).int("antialias", 1));
        }
    }
    cases
}

fn sampling() -> Vec<Case> {
    let grid = |shape: &[i64]| fr(shape, -0.9, 0.9);
    vec![
        case("GridSample", 16, 26).x(f(&[2, 3, 4, 5])).x(grid(&[2, 3, 2, 2])),
        case("GridSample", 20, 26).variant("3-D").x(f(&[2, 1, 4, 5, 3])).x(grid(&[2, 3, 2, 2, 3])),
        case("DepthToSpace", 7, 26).int("blocksize", 2).x(f(&[2, 12, 2, 3])),
        case("DepthToSpace", 11, 26)
            .variant("columns first")
            .int("blocksize", 2)
            .text("mode", "CRD")
            .x(f(&[2, 12, 2, 3])),
        case("SpaceToDepth", 7, 26).int("blocksize", 2).x(f(&[2, 3, 4, 6])),
        case("RoiAlign", 10, 21)
            .int("output_height", 2)
            .int("output_width", 3)
            .x(f(&[1, 2, 6, 6]))
            .c(exact(&[2, 4], Data::F32(vec![0., 0., 3., 3., 1., 1., 5., 4.])))
            .c(ints(&[0, 0])),
        case("NonMaxSuppression", 10, 26)
            .partial()
            .x(exact(&[1, 3, 4], Data::F32(vec![0., 0., 1., 1., 0., 0.1, 1., 1.1, 0., 3., 1., 4.])))
            .x(f(&[1, 2, 3]))
            .c(ints(&[2]))
            .c(float(0.5))
            .c(float(0.0)),
        case("ReverseSequence", 10, 26).x(f(&[4, 3, 2, 5])).x(i64s(&[3], 1, 4)),
        case("ReverseSequence", 10, 26)
            .variant("with its batch first")
            .int("time_axis", 1)
            .int("batch_axis", 0)
            .x(f(&[3, 4, 2, 5]))
            .x(i64s(&[3], 1, 4)),
        case("MaxRoiPool", 7, 21)
            .list("pooled_shape", &[2, 2])
            .x(f(&[1, 3, 6, 6]))
            .x(exact(&[2, 5], Data::F32(vec![0., 0., 0., 3., 3., 0., 1., 1., 5., 4.]))),
        case("Col2Im", 18, 26).x(f(&[2, 12, 6])).c(ints(&[3, 4])).c(ints(&[2, 2])),
        case("AffineGrid", 20, 26).x(f(&[2, 2, 3])).c(ints(&[2, 3, 4, 5])),
        case("AffineGrid", 20, 26).variant("3-D").x(f(&[2, 3, 4])).c(ints(&[2, 3, 4, 5, 2])),
    ]
}
