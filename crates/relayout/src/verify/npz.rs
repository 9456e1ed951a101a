//! Input arrays from a file that `numpy.savez` wrote.
//!
//! `ndarray-npy` reads the archive, the headers and the axis order; the elements are decoded here, because half
//! precision is not among its types and because it would allocate what a header claims before it sees whether the data
//! is there. Arrays that the model does not ask for are left alone.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use half::f16;
use ndarray::{ArrayD, IxDyn, OwnedRepr};
use ndarray_npy::{NpzReader, ReadDataError, ReadNpyError, ReadNpzError, ReadableElement};
use py_literal::Value as Descriptor;

use super::error::{listed, one_line};
use super::model::{Model, Port};
use super::runtime::guarded;
use super::{Data, Tensor, VerifyError};

type Archive = NpzReader<BufReader<File>>;

/// The inputs of `model` from the file at `path`.
pub(super) fn read(path: &Path, model: &Model) -> Result<Vec<Tensor>, VerifyError> {
    guarded(&format!("reading `{}`", path.display()), || {
        let failed = |reason: String| VerifyError::Npz { path: path.to_owned(), reason: one_line(&reason) };
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let mut archive = NpzReader::new(BufReader::new(file)).map_err(|error| failed(error.to_string()))?;
        let mut names = archive.names().map_err(|error| failed(error.to_string()))?;
        names.sort();
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
            let (shape, data) = read_array(&mut archive, &port.name).map_err(bad)?;
            check(port, &shape, &data).map_err(bad)?;
            Tensor::new(port.name.clone(), shape, data)
        };
        model.inputs.iter().map(one).collect()
    })
}

/// Whether an array suits the declaration of the input; the error says what would.
fn check(port: &Port, shape: &[i64], data: &Data) -> Result<(), String> {
    let element = data.element_type();
    if port.accepts(element, shape) {
        return Ok(());
    }
    Err(format!("it is {element} of shape {shape:?}, and the model takes {}", port.spelling()))
}

/// The shape and the elements of the array `name`, whatever its type.
fn read_array(archive: &mut Archive, name: &str) -> Result<(Vec<i64>, Data), String> {
    let descriptor = match archive.by_name::<OwnedRepr<Unread>, IxDyn>(name) {
        Err(ReadNpzError::Npy(ReadNpyError::WrongDescriptor(descriptor))) => descriptor,
        Err(error) => return Err(one_line(&error.to_string())),
        Ok(_) => return Err("its header was not read".to_owned()),
    };
    let code = match &descriptor {
        Descriptor::String(text) => text.trim_start_matches(['<', '>', '|', '=']),
        _ => "",
    };
    macro_rules! by_code {
        ($($variant:ident $element:ty),*) => {
            match code {
                $(<$element as Element>::CODE => read_as::<$element>(archive, name).map(|(s, e)| (s, Data::$variant(e))),)*
                _ => Err(format!(
                    "its numpy type {descriptor} is none of float16 to float64, int8 to int64, uint8 to uint64 and bool"
                )),
            }
        };
    }
    by_code!(F16 f16, F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool bool)
}

/// The array's shape and its elements in row-major order.
fn read_as<T: Element>(archive: &mut Archive, name: &str) -> Result<(Vec<i64>, Vec<T>), String> {
    let array = archive.by_name::<OwnedRepr<Decoded<T>>, IxDyn>(name);
    let array = array.map_err(|error| one_line(&error.to_string()))?;
    Ok((array.shape().iter().map(|&dim| dim as i64).collect(), row_major(array)))
}

fn row_major<T: Element>(array: ArrayD<Decoded<T>>) -> Vec<T> {
    if array.is_standard_layout() {
        let (elements, offset) = array.into_raw_vec_and_offset();
        return elements.into_iter().skip(offset.unwrap_or(0)).map(|Decoded(element)| element).collect();
    }
    array.iter().map(|Decoded(element)| *element).collect()
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

/// Stops the reader after the header: no type descriptor is right for it, and the error says which one there is.
struct Unread;

impl ReadableElement for Unread {
    fn read_to_end_exact_vec<R: Read>(_: R, descriptor: &Descriptor, _: usize) -> Result<Vec<Self>, ReadDataError> {
        Err(ReadDataError::WrongDescriptor(descriptor.clone()))
    }
}

/// An element that was read by [`Element::decode`].
struct Decoded<T>(T);

impl<T: Element> ReadableElement for Decoded<T> {
    fn read_to_end_exact_vec<R: Read>(
        mut reader: R,
        descriptor: &Descriptor,
        len: usize,
    ) -> Result<Vec<Self>, ReadDataError> {
        let wrong = || ReadDataError::WrongDescriptor(descriptor.clone());
        let Descriptor::String(text) = descriptor else { return Err(wrong()) };
        let big_endian = match text.strip_suffix(T::CODE) {
            Some("<" | "|" | "=" | "") => false,
            Some(">") => true,
            _ => return Err(wrong()),
        };
        let size = size_of::<T>();
        let wanted = len.checked_mul(size).ok_or(ReadDataError::MissingData)?;
        let mut bytes = Vec::new();
        reader.by_ref().take(wanted as u64).read_to_end(&mut bytes)?;
        if bytes.len() < wanted {
            return Err(ReadDataError::MissingData);
        }
        let extra = std::io::copy(&mut reader, &mut std::io::sink())?;
        if extra > 0 {
            return Err(ReadDataError::ExtraBytes(extra as usize));
        }
        let decode = |bytes: &mut [u8]| {
            if big_endian {
                bytes.reverse();
            }
            T::decode(bytes).map(Self)
        };
        let elements: Option<Vec<Self>> = bytes.chunks_exact_mut(size).map(decode).collect();
        elements.ok_or_else(|| ReadDataError::ParseData("a bool is neither 0 nor 1".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Archive {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/verify/arrays.npz");
        NpzReader::new(BufReader::new(File::open(path).expect("tools/make_verify_models.py wrote it")))
            .expect("archive")
    }

    #[test]
    fn the_same_numbers_are_read_from_every_format_and_order() {
        let mut archive = archive();
        let mut names = archive.names().expect("names");
        names.retain(|name| !["bool", "complex", "text"].contains(&name.as_str()));
        assert_eq!(names.len(), 15);
        for name in names {
            let (shape, data) = read_array(&mut archive, &name).expect("a format that is supported");
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
        let (_, data) = read_array(&mut archive, "bool").expect("bools are supported");
        assert_eq!(data, Data::Bool(vec![true, false, true, false, true, false]));
        for (name, code) in [("complex", "<c8"), ("text", "<U1")] {
            let reason = read_array(&mut archive, name).expect_err("no input has that type");
            assert!(reason.contains(code), "{name}: {reason}");
        }
    }

    #[test]
    fn data_that_is_shorter_than_its_header_claims_is_an_error_however_much_it_claims() {
        let descriptor = Descriptor::String("<f4".to_owned());
        for claimed in [3, 1 << 40, usize::MAX / 2] {
            let result = Decoded::<f32>::read_to_end_exact_vec(&[0_u8; 8][..], &descriptor, claimed);
            assert!(matches!(result, Err(ReadDataError::MissingData)), "{claimed}");
        }
        let result = Decoded::<f32>::read_to_end_exact_vec(&[0_u8; 8][..], &descriptor, 1);
        assert!(matches!(result, Err(ReadDataError::ExtraBytes(4))));
    }
}
