//! Tensor data: every element type from every field, files beside the model, and what may not be reached.

use std::fs;
use std::path::Path;

use crate::common::{external, raw};
use bytes::Bytes;
use relayout_onnx::error::{Error, TensorFault};
use relayout_onnx::external::{ExternalData, TensorData, element_count};
use relayout_onnx::proto::TensorProto;
use relayout_onnx::proto::tensor_proto::{DataLocation, DataType, Segment};

fn inline(tensor: &TensorProto) -> Result<Bytes, Error> {
    ExternalData::default().tensor_bytes(tensor)
}

fn tensor(data_type: DataType, dims: &[i64]) -> TensorProto {
    let data_type = Some(data_type as i32);
    TensorProto { name: Some("w".to_owned()), dims: dims.to_vec(), data_type, ..TensorProto::default() }
}

/// What is wrong with the tensor `w`.
fn fault(result: Result<impl std::fmt::Debug, Error>) -> TensorFault {
    match result.unwrap_err() {
        Error::Tensor { tensor, fault } if tensor == "w" => fault,
        other => panic!("{other}"),
    }
}

#[test]
fn typed_fields_become_the_bytes_that_raw_data_would_hold() {
    use DataType::*;
    let int32 = |kind, dims: &[i64], data: &[i32]| TensorProto { int32_data: data.to_vec(), ..tensor(kind, dims) };
    let cases: Vec<(TensorProto, Vec<u8>)> = vec![
        (
            TensorProto { float_data: vec![1.0, -2.5], ..tensor(Float, &[2]) },
            [1f32.to_le_bytes(), (-2.5f32).to_le_bytes()].concat(),
        ),
        (
            TensorProto { float_data: vec![1.0, 2.0], ..tensor(Complex64, &[]) },
            [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat(),
        ),
        (TensorProto { double_data: vec![0.1], ..tensor(Double, &[1, 1]) }, 0.1f64.to_le_bytes().to_vec()),
        (
            TensorProto { double_data: vec![0.1, 0.2], ..tensor(Complex128, &[1]) },
            [0.1f64.to_le_bytes(), 0.2f64.to_le_bytes()].concat(),
        ),
        (
            TensorProto { int64_data: vec![-1, i64::MAX], ..tensor(Int64, &[2]) },
            [(-1i64).to_le_bytes(), i64::MAX.to_le_bytes()].concat(),
        ),
        (TensorProto { uint64_data: vec![u64::MAX], ..tensor(Uint64, &[1]) }, vec![255; 8]),
        (
            TensorProto { uint64_data: vec![4_000_000_000], ..tensor(Uint32, &[1]) },
            4_000_000_000u32.to_le_bytes().to_vec(),
        ),
        (int32(Int32, &[2], &[-1, 7]), [(-1i32).to_le_bytes(), 7i32.to_le_bytes()].concat()),
        (int32(Int16, &[1], &[-2]), vec![0xfe, 0xff]),
        (int32(Uint16, &[1], &[0xfffe]), vec![0xfe, 0xff]),
        (int32(Float16, &[2], &[0x3c00, 0xbc00]), vec![0, 0x3c, 0, 0xbc]),
        (int32(Bfloat16, &[1], &[0x3f80]), vec![0x80, 0x3f]),
        (int32(Int8, &[2], &[-128, 127]), vec![0x80, 0x7f]),
        (int32(Uint8, &[2], &[0, 255]), vec![0, 255]),
        (int32(Bool, &[3], &[0, 1, 2]), vec![0, 1, 1]),
        (int32(Float8e4m3fn, &[1], &[0x7e]), vec![0x7e]),
        (int32(Float8e8m0, &[1], &[0x80]), vec![0x80]),
        (int32(Int4, &[3], &[0x21, 0x0f]), vec![0x21, 0x0f]),
        (int32(Float4e2m1, &[2], &[0xf1]), vec![0xf1]),
        (int32(Uint2, &[5], &[0xe4, 0x01]), vec![0xe4, 0x01]),
        // 24 bits, lowest first: 1, 2, 3, 63 and then a 5 alone.
        (int32(Float6e2m3, &[5], &[1, 2, 3, 63, 5]), vec![0x81, 0x30, 0xfc, 5]),
        (tensor(Float, &[0, 3]), vec![]),
    ];
    for (tensor, expected) in cases {
        let kind = tensor.data_type();
        assert_eq!(inline(&tensor).unwrap(), expected, "typed, type {kind}");
        let raw = TensorProto { dims: tensor.dims, data_type: tensor.data_type, ..raw("w", expected.clone().into()) };
        assert_eq!(inline(&TensorProto { dims: raw.dims.clone(), ..raw }).unwrap(), expected, "raw, type {kind}");
    }
}

#[test]
fn data_that_contradicts_its_dims_is_refused() {
    use DataType::*;
    let cases: Vec<(&str, TensorProto)> = vec![
        (
            "dims and type need 8 bytes, raw_data has 2",
            TensorProto { data_type: Some(1), dims: vec![2], ..raw("w", vec![0; 2].into()) },
        ),
        (
            "dims and type need 2 entries in float_data, which has 1",
            TensorProto { float_data: vec![1.0], ..tensor(Float, &[2]) },
        ),
        (
            "dims and type need 2 entries in float_data, which has 1",
            TensorProto { float_data: vec![1.0], ..tensor(Complex64, &[]) },
        ),
        ("need 1 entries in int64_data, which has 0", tensor(Int64, &[])),
        ("need 2 entries in int32_data, which has 3", TensorProto { int32_data: vec![1; 3], ..tensor(Int4, &[3]) }),
        ("the value 256 does not fit in 8 bits", TensorProto { int32_data: vec![256], ..tensor(Uint8, &[1]) }),
        ("the value -129 does not fit in 8 bits", TensorProto { int32_data: vec![-129], ..tensor(Int8, &[1]) }),
        ("the value 64 does not fit in 6 bits", TensorProto { int32_data: vec![64], ..tensor(Float6e3m2, &[1]) }),
        (
            "the value 4294967296 does not fit in 32 bits",
            TensorProto { uint64_data: vec![1 << 32], ..tensor(Uint32, &[1]) },
        ),
        ("the dim -1 of [2, -1] is negative", tensor(Float, &[2, -1])),
        ("the dim -1 of [0, -1] is negative", tensor(Float, &[0, -1])),
        ("more elements than any memory holds", tensor(Float, &[i64::MAX, i64::MAX])),
        ("more elements than any memory holds", tensor(Complex128, &[1 << 60])),
        ("element type 0 is not one", tensor(Undefined, &[1])),
        ("element type 99 is not one", TensorProto { data_type: Some(99), ..tensor(Float, &[1]) }),
        ("holds strings", TensorProto { string_data: vec![Bytes::from("a")], ..tensor(String, &[1]) }),
        ("stored in segments", TensorProto { segment: Some(Segment::default()), ..tensor(Float, &[0]) }),
    ];
    for (expected, tensor) in cases {
        let sentence = inline(&tensor).expect_err(expected).to_string();
        assert!(sentence.starts_with("tensor \"w\": ") && sentence.contains(expected), "{expected}: {sentence}");
    }
}

#[test]
fn an_empty_raw_data_gives_way_to_typed_elements() {
    let tensor = TensorProto { raw_data: Some(Bytes::new()), int64_data: vec![3], ..tensor(DataType::Int64, &[1]) };
    assert_eq!(inline(&tensor).unwrap(), 3i64.to_le_bytes().to_vec());
}

#[test]
fn a_zero_dim_beats_dims_that_would_overflow() {
    assert_eq!(element_count(&[i64::MAX, i64::MAX, 0]), Ok(0));
    assert_eq!(element_count(&[]), Ok(1));
}

/// A folder with a model's data in it, beside a file that is none of the model's business.
struct Folders {
    _root: tempfile::TempDir,
    dir: std::path::PathBuf,
}

fn folders() -> Folders {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("model");
    fs::create_dir_all(dir.join("sub")).unwrap();
    fs::write(dir.join("w.bin"), (0..=255).collect::<Vec<u8>>()).unwrap();
    fs::write(dir.join("sub/v.bin"), [9; 4]).unwrap();
    fs::write(root.path().join("secret"), [1; 16]).unwrap();
    Folders { _root: root, dir }
}

fn bytes(dir: &Path, tensor: &TensorProto) -> Result<Bytes, Error> {
    ExternalData::new(Some(dir.to_owned())).tensor_bytes(tensor)
}

#[test]
fn external_data_is_found_relative_to_the_folder() {
    let folders = folders();
    let data = ExternalData::new(Some(folders.dir.clone()));
    let whole = data.tensor_bytes(&external("w", 256, &[("location", "w.bin")])).unwrap();
    let part = external("w", 3, &[("location", "./w.bin"), ("offset", "250"), ("length", "3"), ("checksum", "none")]);
    let part = data.tensor_bytes(&part).unwrap();
    assert_eq!(&part[..], [250, 251, 252]);
    // One mapping for both, by whatever name.
    assert_eq!(part.as_ptr(), whole[250..].as_ptr());
    // Without a length the dims say how much of the file is meant.
    let rest = external("w", 2, &[("location", "sub/v.bin"), ("offset", "1")]);
    assert_eq!(&data.tensor_bytes(&rest).unwrap()[..], [9, 9]);
}

#[test]
fn data_that_is_not_there_is_a_state_and_an_error_only_if_it_is_needed() {
    let folders = folders();
    let long = "x".repeat(5000);
    for location in ["gone.bin", "hydrate:normal", "w.bin/below", "\0", &long] {
        let tensor = external("w", 4, &[("location", location)]);
        let data = ExternalData::new(Some(folders.dir.clone()));
        assert!(matches!(data.tensor_data(&tensor), Ok(TensorData::Missing { .. })), "{location:?}");
        assert!(matches!(fault(data.tensor_bytes(&tensor)), TensorFault::Missing { .. }));
    }
    let nowhere = ExternalData::new(None).tensor_data(&external("w", 4, &[("location", "w.bin")]));
    assert!(matches!(nowhere, Ok(TensorData::Missing { .. })));
}

#[test]
fn a_location_may_not_leave_the_folder() {
    let folders = folders();
    let absolute = folders.dir.join("w.bin").display().to_string();
    for location in ["../secret", "sub/../../secret", "sub/../w.bin", "/etc/passwd", &absolute, ".."] {
        let fault = fault(bytes(&folders.dir, &external("w", 16, &[("location", location)])));
        assert!(matches!(fault, TensorFault::LeavesFolder { .. }), "{location}: {fault}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_may_stay_in_the_folder_but_not_lead_out_of_it() {
    use std::os::unix::fs::symlink;
    let folders = folders();
    symlink("../secret", folders.dir.join("out")).unwrap();
    symlink("..", folders.dir.join("up")).unwrap();
    symlink("w.bin", folders.dir.join("in")).unwrap();
    for location in ["out", "up/secret"] {
        let tensor = external("w", 16, &[("location", location)]);
        assert!(matches!(fault(bytes(&folders.dir, &tensor)), TensorFault::LinkLeaves { .. }), "{location}");
        let allowed = ExternalData::new(Some(folders.dir.clone())).follow_links(true);
        assert_eq!(allowed.tensor_bytes(&tensor).unwrap(), [1; 16].to_vec());
    }
    assert_eq!(bytes(&folders.dir, &external("w", 256, &[("location", "in")])).unwrap().len(), 256);
    // The model's own folder may be reached by a link.
    let by_link = folders.dir.with_file_name("alias");
    symlink(&folders.dir, &by_link).unwrap();
    assert_eq!(bytes(&by_link, &external("w", 256, &[("location", "w.bin")])).unwrap().len(), 256);
}

/// Bytes that the dims say, `external_data`, and what the refusal must contain.
type Refusal<'a> = (u64, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn ranges_and_numbers_that_do_not_fit_are_refused() {
    let folders = folders();
    let max = u64::MAX.to_string();
    let cases: &[Refusal] = &[
        (4, &[], "no location"),
        (4, &[("location", "")], "no location"),
        (4, &[("location", "w.bin"), ("offset", "253"), ("length", "4")], "bytes 253+4 are not all in"),
        (4, &[("location", "w.bin"), ("offset", "253")], "bytes 253+4 are not all in"),
        (4, &[("location", "w.bin"), ("offset", &max), ("length", "4")], "are not all in"),
        (4, &[("location", "w.bin"), ("length", "5")], "dims and type need 4 bytes"),
        (4, &[("location", "w.bin"), ("offset", "-1")], "offset in its external_data is \"-1\""),
        (4, &[("location", "w.bin"), ("length", "four")], "length in its external_data is \"four\""),
        (4, &[("location", "sub")], "sub: it is a directory, not a file"),
    ];
    for (length, entries, expected) in cases {
        let sentence = bytes(&folders.dir, &external("w", *length, entries)).expect_err(expected).to_string();
        assert!(sentence.starts_with("tensor \"w\": ") && sentence.contains(expected), "{expected}: {sentence}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_mapped_file_does_not_stay_open() {
    let folders = folders();
    let data = ExternalData::new(Some(folders.dir.clone()));
    let kept = data.tensor_bytes(&external("w", 256, &[("location", "w.bin")])).unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    let file = folders.dir.join("w.bin").canonicalize().unwrap();
    assert_eq!(open.filter(|target| *target == file).count(), 0);
    assert_eq!(kept[255], 255);
}

#[test]
fn an_empty_file_holds_an_empty_tensor() {
    let folders = folders();
    fs::write(folders.dir.join("empty"), b"").unwrap();
    let tensor = TensorProto {
        data_location: Some(DataLocation::External as i32),
        ..external("w", 0, &[("location", "empty")])
    };
    assert_eq!(bytes(&folders.dir, &tensor).unwrap().len(), 0);
}
