//! The text of a few kernels and their launches, so that a change of the generator shows as what it changes.
//!
//! The same sources are compiled and run by the other tests of the generator.

use crate::cuda_common::{Case, blocked, odd, permuted};
use relayout_codegen::cuda::{CudaError, CudaOptions, Direction, KernelClass, Shape, Variant, generate};
use relayout_codegen::plan;

/// The launch as JSON in comments, then the source.
fn rendered(case: &Case) -> String {
    let kernel = case.generate().expect("a kernel");
    let launch = serde_json::to_string_pretty(&kernel.launch).expect("plain data");
    format!("// {}\n{}", launch.replace('\n', "\n// "), kernel.source)
}

#[test]
fn a_transpose_is_a_swizzled_tile() {
    insta::assert_snapshot!(rendered(&permuted(&[1, 128, 192], &[0, 2, 1], 4)));
}

#[test]
fn long_rows_have_four_words_in_flight() {
    insta::assert_snapshot!(rendered(&permuted(&[8, 512, 12, 64], &[0, 2, 1, 3], 4)));
}

#[test]
fn three_channels_are_packed() {
    insta::assert_snapshot!(rendered(&permuted(&[1, 3, 224, 224], &[0, 2, 3, 1], 4)));
}

#[test]
fn blocks_of_4_bytes_are_joined_to_words_of_16() {
    insta::assert_snapshot!(rendered(&blocked(Direction::Pack, [1, 8, 4096], 4, 1)));
}

#[test]
fn a_pack_pads_the_last_block_with_zeros() {
    insta::assert_snapshot!(rendered(&blocked(Direction::Pack, [8, 58, 784], 16, 4)));
}

#[test]
fn a_shape_at_run_time_divides_by_multiplying() {
    let case = permuted(&[64, 3, 130], &[2, 1, 0], 2).with(|options| options.shape = Shape::RunTime);
    insta::assert_snapshot!(rendered(&case));
}

#[test]
fn a_launch_survives_its_serialized_form() {
    for case in odd() {
        let kernel = case.generate().expect("a kernel");
        let text = serde_json::to_string(&kernel).expect("plain data");
        assert_eq!(serde_json::from_str::<relayout_codegen::cuda::CudaKernel>(&text).expect("its own text"), kernel);
    }
}

#[test]
fn a_source_for_run_time_holds_for_other_shapes_of_the_same_form() {
    let at = |rows: usize, columns: usize| {
        let case = permuted(&[5, rows, columns], &[0, 2, 1], 4).with(|options| options.shape = Shape::RunTime);
        case.generate().expect("a kernel")
    };
    let (one, other) = (at(128, 256), at(640, 1000));
    assert_eq!((&one.name, &one.source), (&other.name, &other.source));
    assert_ne!(one.launch, other.launch);
    assert_ne!(one.name, at(127, 256).name, "rows of odd length are read by narrower words");
}

#[test]
fn the_class_follows_the_movement() {
    use KernelClass::{Copy, Gather, Packed, Rows, Tile};
    let cases: &[(&[usize], &[usize], usize, KernelClass)] = &[
        (&[1, 7, 1, 9], &[2, 1, 0, 3], 4, Copy),
        (&[8, 512, 12, 64], &[0, 2, 1, 3], 4, Rows),
        (&[8, 512, 12, 64], &[0, 2, 1, 3], 2, Rows),
        (&[64, 64, 8], &[1, 0, 2], 4, Packed),
        (&[4096, 4096], &[1, 0], 1, Tile),
        (&[4099, 4093], &[1, 0], 4, Tile),
        (&[8, 512, 28, 28], &[0, 2, 3, 1], 2, Tile),
        (&[1, 3, 224, 224], &[0, 2, 3, 1], 4, Packed),
        (&[1, 224, 224, 3], &[0, 3, 1, 2], 1, Packed),
        (&[64, 3, 128], &[2, 1, 0], 4, Tile),
        (&[3, 5], &[1, 0], 4, Gather),
    ];
    for (shape, perm, elem, class) in cases {
        assert_eq!(permuted(shape, perm, *elem).generate().expect("a kernel").class, *class, "{shape:?} by {perm:?}");
    }
}

#[test]
fn what_cannot_be_generated_is_refused_with_the_reason() {
    let options = CudaOptions::default();
    let empty = plan(&[3, 0], &[1, 0], 4).expect("a permutation");
    assert_eq!(generate(&empty, &options), Err(CudaError::Empty));
    let square = permuted(&[64, 64], &[1, 0], 4);
    let rows = square.with(|options| options.class = Some(KernelClass::Copy)).generate();
    assert_eq!(rows, Err(CudaError::Class { class: KernelClass::Copy }));
    let odd = square.with(|options| options.alignment = 3).generate();
    assert_eq!(odd, Err(CudaError::Alignment { bytes: 3 }));
    let block = blocked(Direction::Pack, [1, 8, 8], 1, 4).generate();
    assert_eq!(block, Err(CudaError::Block { block: 1, elem_bytes: 4 }));
    let none = blocked(Direction::Pack, [1, 0, 8], 4, 4).generate();
    assert_eq!(none, Err(CudaError::Empty));
    let theirs = blocked(Direction::Pack, [1, 20, 8], 16, 4).with(|options| options.variant = Variant::OneFlow);
    assert_eq!(theirs.generate(), Err(CudaError::Variant { what: "blocked layouts" }));
    let endless = plan(&[1 << 33, 2], &[1, 0], 1).expect("a permutation");
    assert_eq!(generate(&endless, &options), Err(CudaError::TooLarge { count: 1 << 33 }));
}
