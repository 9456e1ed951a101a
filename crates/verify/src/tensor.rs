//! Tensors on the host: what goes into a model and what comes out of it.
//!
//! A [`Tensor`] owns its elements in row-major order; the product of its shape is always the number of elements. The
//! types that ONNX packs below a byte, the 8-bit floats and the complex numbers are absent: the binding has no Rust
//! type for them, so a model with such an input or output is refused by name.

use std::fmt;

use half::{bf16, f16};
use ort::session::SessionInputValue;
use ort::value::{DynValue, Tensor as OrtTensor, TensorElementType, TensorRef};
use relayout_ir::dim;
use serde::{Deserialize, Serialize};

use super::VerifyError;

/// Calls the macro with every variant of [`Data`] that holds plain numbers, with its Rust type and its ONNX Runtime type.
macro_rules! for_each_number {
    ($call:ident) => {
        $call! {
            F16 f16 Float16 "f16", BF16 bf16 Bfloat16 "bf16", F32 f32 Float32 "f32", F64 f64 Float64 "f64",
            I8 i8 Int8 "i8", I16 i16 Int16 "i16", I32 i32 Int32 "i32", I64 i64 Int64 "i64",
            U8 u8 Uint8 "u8", U16 u16 Uint16 "u16", U32 u32 Uint32 "u32", U64 u64 Uint64 "u64",
            Bool bool Bool "bool"
        }
    };
}

macro_rules! define {
    ($($variant:ident $rust:ident $onnx:ident $name:literal),*) => {
        /// The type of a tensor's elements.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        #[non_exhaustive]
        pub enum ElementType {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
            /// UTF-8 strings.
            Str,
        }

        impl ElementType {
            /// The type that the runtime calls `ty`, if a tensor on the host can hold it.
            pub(super) fn from_ort(ty: TensorElementType) -> Option<Self> {
                match ty {
                    $(TensorElementType::$onnx => Some(Self::$variant),)*
                    TensorElementType::String => Some(Self::Str),
                    _ => None,
                }
            }
        }

        impl fmt::Display for ElementType {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $name,)*
                    Self::Str => "str",
                })
            }
        }

        /// The elements of a tensor, row-major.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Data {
            $(#[doc = concat!("Elements of type `", $name, "`.")] $variant(Vec<$rust>),)*
            /// Strings.
            Str(Vec<String>),
        }

        impl Data {
            /// The number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(elements) => elements.len(),)*
                    Self::Str(elements) => elements.len(),
                }
            }

            /// The type of the elements.
            pub fn element_type(&self) -> ElementType {
                match self {
                    $(Self::$variant(_) => ElementType::$variant,)*
                    Self::Str(_) => ElementType::Str,
                }
            }
        }

        impl Tensor {
            /// The tensor as the runtime takes it; numbers are borrowed, strings copied.
            pub(super) fn as_input(&self) -> ort::Result<SessionInputValue<'_>> {
                let shape = self.shape.clone();
                Ok(match &self.data {
                    $(Data::$variant(elements) => {
                        TensorRef::from_array_view((shape, elements.as_slice()))?.into()
                    })*
                    Data::Str(elements) => OrtTensor::from_string_array((shape, elements.as_slice()))?.into(),
                })
            }

            /// The tensor as the runtime keeps it; `None` for strings.
            pub(super) fn to_owned_value(&self) -> ort::Result<Option<DynValue>> {
                Ok(match &self.data {
                    $(Data::$variant(elements) => {
                        Some(OrtTensor::from_array((self.shape.clone(), elements.clone()))?.into_dyn())
                    })*
                    Data::Str(_) => None,
                })
            }

            /// Element `at` for people; nothing if there is none.
            pub(super) fn spelled(&self, at: usize) -> String {
                match &self.data {
                    $(Data::$variant(elements) => elements.get(at).map(|element| format!("{element:?}")),)*
                    Data::Str(elements) => elements.get(at).map(|element| format!("{element:?}")),
                }
                .unwrap_or_default()
            }

            /// The elements as they lie in memory, row-major and little-endian; `None` for strings.
            pub fn to_raw(&self) -> Option<Vec<u8>> {
                let mut raw = Vec::new();
                match &self.data {
                    $(Data::$variant(elements) => {
                        for element in elements {
                            element.put(&mut raw);
                        }
                    })*
                    Data::Str(_) => return None,
                }
                Some(raw)
            }

            /// A tensor of elements as [`Tensor::to_raw`] gives them; `None` for strings, or if there are not as many as its shape has.
            pub fn from_raw(name: &str, element_type: ElementType, shape: Vec<i64>, raw: &[u8]) -> Option<Tensor> {
                let data = match element_type {
                    $(ElementType::$variant => {
                        Data::$variant(raw.chunks(size_of::<$rust>()).map(<$rust>::get).collect::<Option<_>>()?)
                    })*
                    ElementType::Str => return None,
                };
                Tensor::new(name, shape, data).ok()
            }

            /// The elements at these places as a tensor of another shape; `None` if a place is none.
            pub(super) fn picked(&self, shape: Vec<i64>, places: impl Iterator<Item = Option<usize>>) -> Option<Tensor> {
                let places: Vec<usize> = places.collect::<Option<_>>()?;
                let data = match &self.data {
                    $(Data::$variant(elements) => {
                        Data::$variant(places.iter().map(|&i| elements.get(i).copied()).collect::<Option<_>>()?)
                    })*
                    Data::Str(elements) => {
                        Data::Str(places.iter().map(|&i| elements.get(i).cloned()).collect::<Option<_>>()?)
                    }
                };
                Tensor::new(self.name.clone(), shape, data).ok()
            }

            /// A copy of the runtime's tensor `value`, whose elements are of type `element_type`.
            pub(super) fn from_output(name: &str, element_type: ElementType, value: &DynValue) -> ort::Result<Self> {
                let (shape, data) = match element_type {
                    $(ElementType::$variant => {
                        let (shape, elements) = value.try_extract_tensor::<$rust>()?;
                        (shape, Data::$variant(elements.to_vec()))
                    })*
                    ElementType::Str => {
                        let (shape, elements) = value.try_extract_strings()?;
                        (shape, Data::Str(elements))
                    }
                };
                Ok(Self { name: name.to_owned(), shape: shape.to_vec(), data })
            }
        }
    };
}

for_each_number!(define);

/// An element as it lies in memory, little-endian.
trait Raw: Sized {
    fn put(&self, raw: &mut Vec<u8>);
    fn get(raw: &[u8]) -> Option<Self>;
}

macro_rules! raw {
    ($($rust:ident)*) => {
        $(impl Raw for $rust {
            fn put(&self, raw: &mut Vec<u8>) {
                raw.extend(self.to_le_bytes());
            }

            fn get(raw: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(raw.try_into().ok()?))
            }
        })*
    };
}

raw!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);

impl Raw for bool {
    fn put(&self, raw: &mut Vec<u8>) {
        raw.push(u8::from(*self));
    }

    fn get(raw: &[u8]) -> Option<Self> {
        Some(*raw.first()? != 0)
    }
}

impl ElementType {
    /// Whether the elements are floating-point numbers, which a tolerance applies to; all others must be equal.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Whether the elements are integers of 32 or 64 bits, which are often indices.
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::I32 | Self::I64 | Self::U32 | Self::U64)
    }
}

impl Data {
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A named tensor on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    name: String,
    shape: Vec<i64>,
    data: Data,
}

impl Tensor {
    /// A tensor named `name` of the dimensions `shape`, row-major. Fails if `data` does not have as many elements.
    pub fn new(name: impl Into<String>, shape: impl Into<Vec<i64>>, data: Data) -> Result<Self, VerifyError> {
        let (name, shape) = (name.into(), shape.into());
        if element_count(&shape) == Some(data.len()) {
            Ok(Self { name, shape, data })
        } else {
            Err(VerifyError::ShapeDataMismatch { name, shape, elements: data.len() })
        }
    }

    /// The name of the input it is for, or of the output it came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dimensions.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The elements, row-major.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.data.element_type()
    }
}

/// The product of the dimensions; `None` if one is negative or the product does not fit.
pub(super) fn element_count(shape: &[i64]) -> Option<usize> {
    usize::try_from(dim::element_count(shape.iter().copied())?).ok()
}
