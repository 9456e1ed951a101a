//! Input arrays from a file that `numpy.savez` wrote.
//!
//! An archive may inflate to a thousand times its size. So the header of an array is read first, and nothing else of it unless its
//! type and shape are what the model takes and the archive says that it has as many bytes as they need; then exactly so many are
//! inflated. Arrays that the model does not ask for are left alone.

use std::io::{Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use half::f16;
use relayout_fsio::Mapped;
use zip::ZipArchive;

use super::error::{listed, one_line};
use super::inputs::MOST_ELEMENTS;
use super::model::{Model, Port};
use super::npy::Header;
use super::runtime::guarded;
use super::tensor::element_count;
use super::{Data, ElementType, Tensor, VerifyError};

type Archive = ZipArchive<Cursor<Bytes>>;

/// Whether an input takes an array of this type and shape, and if not, what it takes.
type Fits<'f> = &'f dyn Fn(ElementType, &[i64]) -> Result<(), String>;

/// What the names of arrays have behind them in the archive.
const SUFFIX: &str = ".npy";

/// The inputs of `model` from the file at `path`.
pub(super) fn read(path: &Path, model: &Model) -> Result<Vec<Tensor>, VerifyError> {
    guarded(&format!("reading `{}`", path.display()), || {
        let failed = |reason: String| VerifyError::Npz { path: path.to_owned(), reason: one_line(&reason) };
        let file = Mapped::file(path).map_err(|error| failed(error.to_string()))?;
        let mut archive = opened(file.bytes().clone()).map_err(failed)?;
        let names = names(&archive);
        let one = |port: &Port| {
            if !names.contains(&port.name) {
                return Err(VerifyError::NpzLacks {
                    path: path.to_owned(),
                    input: port.name.clone(),
                    model: model.label.clone(),
                    known: listed(names.iter().map(String::as_str)),
                });
            }
            let bad = |reason| VerifyError::NpzArray { path: path.to_owned(), array: port.name.clone(), reason };
            let fits = |element, shape: &[i64]| check(port, element, shape);
            let (shape, data) = read_array(&mut archive, &port.name, &fits).map_err(bad)?;
            Tensor::new(port.name.clone(), shape, data)
        };
        model.inputs.iter().map(one).collect()
    })
}

fn opened(bytes: Bytes) -> Result<Archive, String> {
    ZipArchive::new(Cursor::new(bytes)).map_err(|error| error.to_string())
}

/// Names of the arrays, sorted.
fn names(archive: &Archive) -> Vec<String> {
    let mut names: Vec<String> =
        archive.file_names().map(|name| name.strip_suffix(SUFFIX).unwrap_or(name).to_owned()).collect();
    names.sort();
    names
}

/// Whether an array suits the declaration of the input; the error says what would.
fn check(port: &Port, element: ElementType, shape: &[i64]) -> Result<(), String> {
    if port.accepts(element, shape) {
        return Ok(());
    }
    Err(format!("it is {element} of shape {shape:?}, and the model takes {}", port.spelling()))
}

/// The shape and the elements of the array `name`, if `fits` says so of its type and shape.
fn read_array(archive: &mut Archive, name: &str, fits: Fits<'_>) -> Result<(Vec<i64>, Data), String> {
    let with_suffix = format!("{name}{SUFFIX}");
    let index = archive.index_for_name(&with_suffix).or_else(|| archive.index_for_name(name));
    let index = index.ok_or_else(|| "it is not in the archive".to_owned())?;
    let mut entry = archive.by_index(index).map_err(|error| one_line(&error.to_string()))?;
    let announced = entry.size();
    let (header, header_bytes) = Header::read(&mut entry)?;
    macro_rules! by_code {
        ($($variant:ident $element:ty),*) => {
            match header.code() {
                $(<$element as Element>::CODE => {
                    fits(ElementType::$variant, &header.shape)?;
                    let count = counted(&header, size_of::<$element>(), announced.saturating_sub(header_bytes))?;
                    elements::<$element>(&mut entry, &header, count).map(|e| (header.shape.clone(), Data::$variant(e)))
                })*
                _ => Err(format!(
                    "its numpy type {} is none of float16 to float64, int8 to int64, uint8 to uint64 and bool",
                    header.descriptor
                )),
            }
        };
    }
    by_code!(F16 f16, F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool bool)
}

/// Number of elements of an array whose data has so many bytes as the archive says.
fn counted(header: &Header, size: usize, bytes: u64) -> Result<usize, String> {
    let shape = &header.shape;
    let count = element_count(shape).filter(|&count| count <= MOST_ELEMENTS);
    let count = count.ok_or_else(|| format!("its shape {shape:?} has more than 2^30 elements"))?;
    let wanted = count as u64 * size as u64;
    if wanted == bytes {
        return Ok(count);
    }
    Err(format!("its shape {shape:?} needs {wanted} bytes of data, and the archive has {bytes}"))
}

/// `count` elements in row-major order.
fn elements<T: Element>(data: &mut dyn Read, header: &Header, count: usize) -> Result<Vec<T>, String> {
    let size = size_of::<T>();
    let wanted = count * size;
    let mut bytes = Vec::new();
    // What the archive says of its own sizes need not be so.
    data.take(wanted as u64).read_to_end(&mut bytes).map_err(|error| one_line(&error.to_string()))?;
    if bytes.len() < wanted {
        return Err(format!("its data ends {} bytes early", wanted - bytes.len()));
    }
    if data.read(&mut [0]).map_err(|error| one_line(&error.to_string()))? != 0 {
        return Err(format!("it has more than the {wanted} bytes of data that its shape {:?} needs", header.shape));
    }
    let decode = |bytes: &mut [u8]| {
        if header.big_endian() {
            bytes.reverse();
        }
        T::decode(bytes)
    };
    let elements: Option<Vec<T>> = bytes.chunks_exact_mut(size).map(decode).collect();
    let elements = elements.ok_or_else(|| "a bool is neither 0 nor 1".to_owned())?;
    Ok(if header.fortran_order { row_major(&elements, &header.shape) } else { elements })
}

/// Elements whose first axis is innermost, with the last one innermost.
fn row_major<T: Copy>(elements: &[T], shape: &[i64]) -> Vec<T> {
    let extents: Vec<usize> = shape.iter().map(|&extent| extent.unsigned_abs() as usize).collect();
    let mut index = vec![0; extents.len()];
    let mut at = 0;
    let mut ordered = Vec::with_capacity(elements.len());
    while ordered.len() < elements.len() {
        ordered.extend(elements.get(at).copied());
        // The next index in row-major order: its offset where the first axis has stride 1.
        let mut axis = extents.len();
        while let Some(last) = axis.checked_sub(1) {
            axis = last;
            let stride: usize = extents[..axis].iter().product();
            index[axis] += 1;
            at += stride;
            if index[axis] < extents[axis] {
                break;
            }
            at -= stride * extents[axis];
            index[axis] = 0;
        }
    }
    ordered
}

/// An element type of numpy's.
trait Element: Copy {
    /// The kind and the size in bytes, as numpy's type descriptors spell them after the byte order.
    const CODE: &'static str;
    /// The element whose bytes, least significant first, are `bytes`; `None` if there is none.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($element:ty: $code:literal),*) => {
        $(impl Element for $element {
            const CODE: &'static str = $code;
            fn decode(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        })*
    };
}
numbers!(f16: "f2", f32: "f4", f64: "f8", i8: "i1", i16: "i2", i32: "i4", i64: "i8", u8: "u1", u16: "u2", u32: "u4", u64: "u8");

impl Element for bool {
    const CODE: &'static str = "b1";
    fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Archive {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/verify/arrays.npz");
        opened(std::fs::read(path).expect("tools/make_verify_models.py wrote it").into()).expect("archive")
    }

    fn any(archive: &mut Archive, name: &str) -> Result<(Vec<i64>, Data), String> {
        read_array(archive, name, &|_, _| Ok(()))
    }

    #[test]
    fn the_same_numbers_are_read_from_every_format_and_order() {
        let mut archive = archive();
        let mut names = names(&archive);
        names.retain(|name| !["bool", "complex", "text"].contains(&name.as_str()));
        assert_eq!(names.len(), 15);
        for name in names {
            let (shape, data) = any(&mut archive, &name).expect("a format that is supported");
            assert_eq!(shape, [2, 3], "{name}");
            macro_rules! numbers {
                ($($variant:ident),*) => {
                    match data {
                        $(Data::$variant(x) => format!("{x:?}"),)*
                        other => panic!("{name}: {other:?}"),
                    }
                };
            }
            let text = numbers!(F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64).replace(".0", "");
            assert_eq!(text, "[0, 1, 2, 3, 4, 5]", "{name}");
        }
    }

    #[test]
    fn bools_are_read_and_types_that_no_input_has_are_named() {
        let mut archive = archive();
        let (_, data) = any(&mut archive, "bool").expect("bools are supported");
        assert_eq!(data, Data::Bool(vec![true, false, true, false, true, false]));
        for (name, code) in [("complex", "<c8"), ("text", "<U1")] {
            let reason = any(&mut archive, name).expect_err("no input has that type");
            assert!(reason.contains(code), "{name}: {reason}");
        }
    }

    /// An archive with one array `x` of this header and data.
    fn stored(shape: &str, data: &[u8]) -> Archive {
        use std::io::Write as _;
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file("x.npy", options).expect("an entry");
        let length = u16::try_from(header.len()).expect("short").to_le_bytes();
        for part in [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), data] {
            writer.write_all(part).expect("memory");
        }
        opened(writer.finish().expect("an archive").into_inner().into()).expect("archive")
    }

    #[test]
    fn nothing_is_inflated_whose_shape_does_not_fit() {
        // Neither array has data: whoever looks for it says so in place of what is wrong with the shape.
        let refuse = |_: ElementType, shape: &[i64]| Err(format!("not {shape:?}"));
        assert_eq!(read_array(&mut stored("(1, 3, 9, 9)", &[]), "x", &refuse), Err("not [1, 3, 9, 9]".to_owned()));
        let error = any(&mut stored("(1099511627776, 1)", &[]), "x").expect_err("too large");
        assert!(error.contains("more than 2^30 elements"), "{error}");
    }

    #[test]
    fn data_of_another_length_than_its_header_claims_is_an_error_however_much_it_claims() {
        for (shape, data) in [("(3,)", 8), ("(536870912,)", 8), ("(1,)", 8), ("()", 8), ("(0, 5)", 1)] {
            let error = any(&mut stored(shape, &vec![0; data]), "x").expect_err("another length");
            assert!(error.contains(&format!("the archive has {data}")), "{error}");
        }
        assert_eq!(any(&mut stored("(2,)", &[0; 8]), "x"), Ok((vec![2], Data::F32(vec![0.0; 2]))));
        assert_eq!(any(&mut stored("()", &[0; 4]), "x"), Ok((vec![], Data::F32(vec![0.0]))));
        assert_eq!(any(&mut stored("(0, 5)", &[]), "x"), Ok((vec![0, 5], Data::F32(vec![]))));
    }

    #[test]
    fn what_inflates_to_more_than_the_archive_says_is_an_error() {
        let mut bytes = stored("(2,)", &[0; 4096]).into_inner().into_inner().to_vec();
        // The size of the entry in the directory at the end: as if the data were that of two elements.
        let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").expect("a directory");
        let size = bytes[directory + 24..][..4].try_into().map(u32::from_le_bytes).expect("four bytes");
        bytes[directory + 24..][..4].copy_from_slice(&(size - 4088).to_le_bytes());
        let error = any(&mut opened(bytes.into()).expect("archive"), "x").expect_err("more data");
        assert!(error.contains("more than the 8 bytes"), "{error}");
    }
}
