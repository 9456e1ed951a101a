//! Every op of the dialect beside the standard op that it stands for, and every move beside the definition of its layouts, in
//! ONNX Runtime: as the file stands, fully optimized, with constant weights, with symbolic dims.

use crate::dialect_calls::{Array, Case, cases, checked, dims, layout, moved};
use prost::Message;
use relayout_ir::dim::Dim;
use relayout_onnx::dialect::{DialectError, Relayout};
use relayout_verify::Level;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn convolutions_in_every_layout_are_the_convolution() {
    cases::convolutions_in_every_layout_are_the_convolution(&mut Case::check);
}

#[test]
fn a_bias_is_one_entry_per_slot() {
    cases::a_bias_is_one_entry_per_slot(&mut Case::check);
}

#[test]
fn convolutions_of_one_and_three_axes_are_the_convolution() {
    cases::convolutions_of_one_and_three_axes_are_the_convolution(&mut Case::check);
}

#[test]
fn grouped_convolutions_have_weights_of_one_group() {
    cases::grouped_convolutions_have_weights_of_one_group(&mut Case::check);
}

#[test]
fn a_depthwise_convolution_has_as_many_groups_as_slots() {
    cases::a_depthwise_convolution_has_as_many_groups_as_slots(&mut Case::check);
}

#[test]
fn transposed_convolutions_are_the_transposed_convolution() {
    cases::transposed_convolutions_are_the_transposed_convolution(&mut Case::check);
}

#[test]
fn pools_keep_channels_apart() {
    cases::pools_keep_channels_apart(&mut Case::check);
}

#[test]
fn resizing_reads_its_lists_in_onnx_order() {
    cases::resizing_reads_its_lists_in_onnx_order(&mut Case::check);
}

#[test]
fn samples_of_a_grid_are_those_of_the_op() {
    cases::samples_of_a_grid_are_those_of_the_op(&mut Case::check);
}

#[test]
fn depth_and_space_change_places() {
    cases::depth_and_space_change_places(&mut Case::check);
}

#[test]
fn normalizations_take_padded_parameters() {
    cases::normalizations_take_padded_parameters(&mut Case::check);
}

#[test]
fn quantized_convolutions_pad_weights_with_their_zero_point() {
    cases::quantized_convolutions_pad_weights_with_their_zero_point(&mut Case::check);
}

#[test]
fn quantization_by_channel_reads_the_logical_axis() {
    cases::quantization_by_channel_reads_the_logical_axis(&mut Case::check);
}

#[test]
fn products_of_matrices_take_blocked_weights() {
    cases::products_of_matrices_take_blocked_weights(&mut Case::check);
}

/// Reads the files named on its input, checks them, inlines their functions and checks them again.
const CHECK: &str = "
import sys, onnx, onnx.inliner
for path in sys.stdin.read().splitlines():
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.checker.check_model(onnx.inliner.inline_local_functions(model), full_check=True)
    except Exception as e:
        f = model.functions[0]
        sys.exit(f'{f.name}: {e}')
    print(path)
";

#[test]
fn the_python_package_accepts_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    let mut keep = |model: relayout_onnx::proto::ModelProto| {
        let path = folder.path().join(format!("{}.onnx", files.len()));
        std::fs::write(&path, model.encode_to_vec()).unwrap();
        files.push(path.display().to_string());
    };
    for group in [
        cases::convolutions_in_every_layout_are_the_convolution,
        cases::a_bias_is_one_entry_per_slot,
        cases::convolutions_of_one_and_three_axes_are_the_convolution,
        cases::grouped_convolutions_have_weights_of_one_group,
        cases::a_depthwise_convolution_has_as_many_groups_as_slots,
        cases::transposed_convolutions_are_the_transposed_convolution,
        cases::pools_keep_channels_apart,
        cases::resizing_reads_its_lists_in_onnx_order,
        cases::samples_of_a_grid_are_those_of_the_op,
        cases::depth_and_space_change_places,
        cases::normalizations_take_padded_parameters,
        cases::quantized_convolutions_pad_weights_with_their_zero_point,
        cases::quantization_by_channel_reads_the_logical_axis,
        cases::products_of_matrices_take_blocked_weights,
    ] {
        group(&mut |case| keep(case.file()));
    }
    for &(from, to, shape, _) in MOVES {
        let (from, to) = (layout(from), layout(to));
        let relayout = Relayout::new(&from, &to, &dims(shape)).unwrap();
        keep(moved(&relayout, &Array::numbered(shape).packed(&from, 0), &to, true, 17));
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = std::env::var_os("PYTHON").map_or_else(|| root.join(".relayout/venv/bin/python"), PathBuf::from);
    let list = folder.path().join("list");
    std::fs::write(&list, files.join("\n")).unwrap();
    let input = std::fs::File::open(&list).unwrap();
    let run = Command::new(&python).args(["-c", CHECK]).stdin(input).output();
    let run = run.unwrap_or_else(|e| panic!("{} does not run ({e}); run tools/setup once", python.display()));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stdout).lines().count(), files.len());
    assert!(files.len() > 150, "only {} files", files.len());
}

/// Pairs of layouts, and shapes whose number of slots differs between them in every way.
const MOVES: &[(&str, &str, &[i64], &str)] = &[
    ("NCHW", "NHWC", &[2, 5, 3, 4], ""),
    ("CHWN4", "NCHW4c", &[3, 8, 2, 5], ""),
    ("NCHW", "NCHW16c", &[2, 32, 3, 4], "NCHW_NCHW16c"),
    ("NCHW", "NCHW16c", &[2, 20, 3, 4], "NCHW_NCHW16c_roundC"),
    ("NHWC", "NCHW16c", &[2, 20, 3, 4], "NHWC_NCHW16c_roundC"),
    ("NCHW16c", "NCHW", &[2, 32, 3, 4], "NCHW16c_NCHW"),
    ("NCHW16c", "NCHW", &[2, 20, 3, 4], "NCHW16c_NCHW_cropC"),
    ("NCHW16c", "NHWC", &[2, 20, 3, 4], "NCHW16c_NHWC_cropC"),
    ("NCHW16c", "NHWC", &[2, 32, 3, 4], "NCHW16c_NHWC"),
    ("NCHW16c", "NCHW8c", &[2, 32, 3, 4], "NCHW16c_NCHW8c"),
    ("NCHW8c", "NCHW16c", &[2, 32, 3, 4], "NCHW8c_NCHW16c"),
    ("NCHW16c", "NCHW8c", &[2, 20, 3, 4], "NCHW16c_NCHW8c_cropC"),
    ("NCHW8c", "NCHW16c", &[2, 20, 3, 4], "NCHW8c_NCHW16c_roundC"),
    ("NCHW16c", "NCHW24c", &[2, 48, 3, 4], "NCHW16c_NCHW24c"),
    ("NCHW16c", "NCHW24c", &[2, 20, 3, 4], "NCHW16c_NCHW24c_cropC"),
    ("NCHW", "CHWN4", &[3, 6, 2, 5], "NCHW_CHWN4_roundC"),
    ("CHWN4", "NHWC", &[3, 6, 2, 5], "CHWN4_NHWC_cropC"),
    ("CHWN4", "NCHW16c", &[3, 6, 2, 5], "CHWN4_NCHW16c_roundC"),
    ("NCHW", "N H W C[20:24]", &[2, 20, 3, 4], "NCHW_NHWC_fillC"),
    ("N H W C[20:24]", "NCHW", &[2, 20, 3, 4], "NHWC_NCHW_cropC"),
    ("N H W C[20:24]", "NCHW16c", &[2, 20, 3, 4], "NHWC_NCHW16c_roundC"),
    ("N H W C[20:32]", "NCHW16c", &[2, 20, 3, 4], "NHWC_NCHW16c"),
    ("N H W C[20:40]", "NCHW8c", &[2, 20, 3, 4], "NHWC_NCHW8c_cropC"),
    ("NCHW16c", "N H W C[20:24]", &[2, 20, 3, 4], "NCHW16c_NHWC_cropC"),
    ("NCHW", "N[2:3] C/4 H W C%4", &[2, 6, 3, 4], "NCHW_NCHW4c_fillN_roundC"),
    ("N[2:3] C/4 H W C%4", "N H W C[6:7]", &[2, 6, 3, 4], "NCHW4c_NHWC_cropN_cropC"),
    ("N[2:5] C[6:9] H W", "N[2:3] H W C/4 C%4", &[2, 6, 3, 4], "NCHW_NHWC4c_cropN_cropC"),
    ("NCHW", "N C/16 H W C/4%4 C%4", &[2, 20, 3, 4], "NCHW_NCHW4c4c_roundC"),
    ("N C/16 H W C/4%4 C%4", "N C/16 H W C%4 C/4%4", &[2, 20, 3, 4], ""),
    ("NCHW", "N C/16 H W C%4 C/4%4", &[2, 20, 3, 4], "NCHW_NCHW4cx1x4cx4x_roundC"),
    ("OIHW", "OIHW16i16o", &[20, 3, 3, 2], "NCHW_NCHW16c16n_roundN_roundC"),
    ("OIHW16i16o", "OHWI", &[20, 3, 3, 2], "NCHW16c16n_NHWC_cropN_cropC"),
    ("NCW", "NCW8c", &[2, 9, 5], "NCW_NCW8c_roundC"),
    ("NDHWC", "NCDHW8c", &[1, 9, 2, 3, 2], "NDHWC_NCDHW8c_roundC"),
    ("a b", "b/4 a b%4", &[3, 10], "AB_BA4b_roundB"),
];

#[test]
fn moves_are_what_their_layouts_say() {
    for &(from, to, shape, name) in MOVES {
        let (from, to) = (layout(from), layout(to));
        let relayout = Relayout::new(&from, &to, &dims(shape)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(relayout.kind(), name, "{from} to {to}");
        let logical = Array::numbered(shape);
        let x = logical.packed(&from, 0);
        for (level, symbolic, opset) in
            [(Level::Disabled, false, 17), (Level::Disabled, true, 13), (Level::All, false, 21), (Level::All, true, 17)]
        {
            let model = moved(&relayout, &x, &to, symbolic, opset);
            let inputs = [("x".to_owned(), x.clone(), false)];
            let y = checked(&model, &inputs, level).unwrap_or_else(|e| panic!("{name}, {from} to {to}: {e}"));
            let (y, lanes) = y.unpacked(&to, shape);
            assert_eq!(y.values(), logical.values(), "{from} to {to} at {level:?}");
            assert!(lanes.iter().all(|&lane| lane == 0.0), "{from} to {to}: pad lanes {lanes:?}");
        }
    }
}

#[test]
fn moves_of_narrow_types_and_of_no_elements_run() {
    let (from, to) = (layout("NCHW"), layout("NCHW16c"));
    for x in [Array::halves(&[2, 20, 3, 4], 1), Array::unsigned(&[2, 20, 3, 4], 1), Array::signed(&[0, 20, 3, 4], 1)] {
        let there = Relayout::new(&from, &to, &dims(&x.shape)).unwrap();
        let back = Relayout::new(&to, &from, &dims(&x.shape)).unwrap();
        let inputs = |x: &Array| [("x".to_owned(), x.clone(), false)];
        let y = checked(&moved(&there, &x, &to, true, 17), &inputs(&x), Level::All).unwrap();
        assert_eq!(y.shape, [x.shape[0], 2, 3, 4, 16]);
        let z = checked(&moved(&back, &y, &from, true, 17), &inputs(&y), Level::All).unwrap();
        assert_eq!((z.shape.clone(), z.values()), (x.shape.clone(), x.values()));
    }
}

#[test]
fn a_symbolic_axis_is_rounded_and_never_cropped() {
    let shape = [Dim::from(2), Dim::symbol("C"), Dim::symbol("H"), Dim::from(4)];
    let (nchw, blocked) = (layout("NCHW"), layout("NCHW16c"));
    let round = Relayout::new(&nchw, &blocked, &shape).unwrap();
    assert_eq!(round.kind(), "NCHW_NCHW16c_roundC");
    let x = Array::numbered(&[2, 21, 3, 4]);
    let y = checked(&moved(&round, &x, &blocked, true, 17), &[("x".to_owned(), x.clone(), false)], Level::All).unwrap();
    assert_eq!(y.unpacked(&blocked, &x.shape).0.values(), x.values());
    let refused = Relayout::new(&blocked, &nchw, &shape).unwrap_err();
    assert!(matches!(refused, DialectError::UnknownSlots { axis: 1, .. }), "{refused}");
    let whole = [Dim::from(2), Dim::symbol("K").checked_mul(&Dim::from(16)).unwrap(), Dim::symbol("H"), Dim::from(4)];
    assert_eq!(Relayout::new(&blocked, &nchw, &whole).unwrap().kind(), "NCHW16c_NCHW");
}
