//! Element types: all that ONNX has, integers and floats of less than a byte included.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! dtypes {
    ($($variant:ident $text:literal $onnx:literal $bits:literal),* $(,)?) => {
        /// The element type of a tensor. The discriminant is ONNX's `TensorProto.DataType`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum DType {
            $(#[doc = concat!("`", $text, "`")] #[serde(rename = $text)] $variant = $onnx),*
        }

        impl DType {
            /// Every element type, in ONNX's order.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The type with this `TensorProto.DataType`; `None` for 0 (undefined) and for numbers newer than this table.
            pub fn from_onnx(code: i32) -> Option<DType> {
                match code {
                    $($onnx => Some(DType::$variant),)*
                    _ => None,
                }
            }

            /// Width of one element in bits; `None` for strings, which have no fixed width.
            pub fn bits(self) -> Option<u32> {
                let bits = match self { $(DType::$variant => $bits),* };
                (bits != 0).then_some(bits)
            }

            /// Short name, as the text form prints it.
            pub fn as_str(self) -> &'static str {
                match self { $(DType::$variant => $text),* }
            }
        }
    };
}

dtypes! {
    F32 "f32" 1 32, U8 "u8" 2 8, I8 "i8" 3 8, U16 "u16" 4 16, I16 "i16" 5 16, I32 "i32" 6 32, I64 "i64" 7 64,
    String "str" 8 0, Bool "bool" 9 8, F16 "f16" 10 16, F64 "f64" 11 64, U32 "u32" 12 32, U64 "u64" 13 64,
    C64 "c64" 14 64, C128 "c128" 15 128, BF16 "bf16" 16 16, F8E4M3FN "f8e4m3fn" 17 8, F8E4M3FNUZ "f8e4m3fnuz" 18 8,
    F8E5M2 "f8e5m2" 19 8, F8E5M2FNUZ "f8e5m2fnuz" 20 8, U4 "u4" 21 4, I4 "i4" 22 4, F4E2M1 "f4e2m1" 23 4,
    F8E8M0 "f8e8m0" 24 8, U2 "u2" 25 2, I2 "i2" 26 2, F6E2M3 "f6e2m3" 27 6, F6E3M2 "f6e3m2" 28 6,
}

impl DType {
    /// ONNX's `TensorProto.DataType` of this type.
    pub fn to_onnx(self) -> i32 {
        self as i32
    }

    /// Bytes that `elems` elements take in a dense buffer, sub-byte types packed; `None` for strings and on overflow.
    pub fn bytes(self, elems: u64) -> Option<u64> {
        let bits = elems.checked_mul(u64::from(self.bits()?))?;
        Some(bits.div_ceil(8))
    }

    /// Whether values of this type round (floats of any width, complex ones included).
    pub fn is_float(self) -> bool {
        use DType::{BF16, C64, C128, F4E2M1, F6E2M3, F6E3M2, F16, F32, F64};
        use DType::{F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0};
        let wide = matches!(self, F32 | F16 | F64 | BF16 | C64 | C128);
        wide || matches!(self, F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 | F6E2M3 | F6E3M2 | F4E2M1)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        DType::ALL
            .iter()
            .copied()
            .find(|d| d.as_str() == text)
            .ok_or_else(|| format!("`{text}` is not an element type"))
    }
}
