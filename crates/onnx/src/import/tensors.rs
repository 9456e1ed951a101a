//! Tensors as constants: checked against their dims, never copied to be looked at.

use crate::external::TensorData;
use crate::file::ModelFile;
use crate::proto::{SparseTensorProto, TensorProto};
use crate::write::{PayloadSource, Payloads};
use bytes::Bytes;
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::constant::{ConstSource, Constant};
use relayout_ir::dim::{Dim, element_count};
use relayout_ir::dtype::DType;
use relayout_ir::types::{TensorType, Type};
use std::sync::Arc;

/// Typed fields of up to this many bytes are put together at once.
const KEPT: usize = 64 << 10;

/// A tensor whose bytes are in typed fields and are put together when they are asked for.
struct Typed {
    file: Arc<ModelFile>,
    tensor: TensorProto,
}

impl std::fmt::Debug for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Typed({:?})", self.tensor.name)
    }
}

impl ConstSource for Typed {
    fn bytes(&self) -> Result<Bytes, String> {
        self.file.tensor_bytes(&self.tensor).map_err(|e| e.to_string())
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// A tensor that is made when the model is written.
struct Deferred(Arc<dyn PayloadSource>);

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Deferred({} bytes)", self.0.byte_length())
    }
}

impl ConstSource for Deferred {
    fn bytes(&self) -> Result<Bytes, String> {
        let mut bytes = Vec::new();
        self.0.write_to(&mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes.into())
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// A tensor as a constant.
///
/// # Errors
/// A sentence that names the tensor: an element type that is not known, negative or absurd dims, data of another length.
pub(super) fn constant(file: &Arc<ModelFile>, payloads: &Payloads, tensor: &TensorProto) -> Result<Constant, String> {
    let name = tensor.name.as_deref().unwrap_or_default();
    let code = tensor.data_type.unwrap_or(0);
    let dtype =
        DType::from_onnx(code).ok_or_else(|| format!("tensor `{name}` has element type {code}, which is not known"))?;
    let dims = tensor.dims.clone();
    if elements(&dims).is_none() {
        return Err(format!("tensor `{name}` has dims {dims:?}, which no tensor can have"));
    }
    if dtype == DType::String {
        let elems: i64 = dims.iter().product();
        if elems != tensor.string_data.len() as i64 {
            return Err(format!("tensor `{name}` has dims {dims:?} and {} strings", tensor.string_data.len()));
        }
        return Ok(Constant::missing(dtype, dims, format!("tensor `{name}` holds strings")));
    }
    if let Some(source) = tensor.raw_data.as_ref().and_then(|raw| payloads.shared(raw)) {
        return Ok(Constant { dtype, dims, source: Arc::new(Deferred(source)), pending: None });
    }
    if !is_typed(tensor) {
        return match file.tensor_data(tensor).map_err(|e| e.to_string())? {
            TensorData::Inline(bytes) => Ok(Constant::inline(dtype, dims, bytes)),
            TensorData::Missing { reason } => Ok(Constant::missing(dtype, dims, format!("tensor `{name}`: {reason}"))),
        };
    }
    // Putting the bytes together once checks the counts; small ones are then at hand for shape arithmetic.
    let bytes = file.tensor_bytes(tensor).map_err(|e| e.to_string())?;
    if bytes.len() <= KEPT {
        return Ok(Constant::inline(dtype, dims, bytes));
    }
    Ok(Constant {
        dtype,
        dims,
        source: Arc::new(Typed { file: Arc::clone(file), tensor: tensor.clone() }),
        pending: None,
    })
}

fn is_typed(t: &TensorProto) -> bool {
    !(t.float_data.is_empty()
        && t.int32_data.is_empty()
        && t.int64_data.is_empty()
        && t.double_data.is_empty()
        && t.uint64_data.is_empty())
}

/// Type of a tensor, as far as it is one.
pub(super) fn type_of(tensor: &TensorProto) -> Type {
    let shape = tensor.dims.iter().map(|&d| Dim::from(d)).collect();
    Type::Tensor(TensorType { dtype: tensor.data_type.and_then(DType::from_onnx), shape: Some(shape) })
}

/// A tensor whose data can't be had, for want of it; `None` if not even its type is one.
pub(super) fn without_data(tensor: &TensorProto, why: &str) -> Option<Constant> {
    let dtype = DType::from_onnx(tensor.data_type())?;
    elements(&tensor.dims)?;
    Some(Constant::missing(dtype, tensor.dims.clone(), why.to_owned()))
}

/// How many elements a tensor of these dims has; `None` if no tensor can have them.
fn elements(dims: &[i64]) -> Option<i64> {
    i64::try_from(element_count(dims.iter().copied())?).ok()
}

/// How the declared type of an initializer contradicts the tensor, if it does.
pub(super) fn misdeclared(tensor: &TensorProto, declared: Option<&Type>) -> Option<String> {
    let Some(Type::Tensor(declared)) = declared else { return None };
    let found = type_of(tensor);
    let dtypes = declared.dtype.zip(found.dtype()).is_some_and(|(a, b)| a != b);
    let shapes = declared.shape.as_ref().zip(found.shape()).is_some_and(|(a, b)| {
        a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.as_const().zip(b.as_const()).is_some_and(|(a, b)| a != b))
    });
    let declared = Type::Tensor(declared.clone());
    (dtypes || shapes)
        .then(|| format!("initializer `{}` is {found}, but the input of its name is {declared}", tensor.name()))
}

/// Name of a sparse initializer.
pub(super) fn sparse_name(sparse: &SparseTensorProto) -> &str {
    sparse.values.as_ref().map(TensorProto::name).unwrap_or_default()
}

/// A sparse initializer as a constant whose bytes nobody can have: it is kept as it is.
///
/// # Errors
/// A sentence that names the tensor: no element type that is known, or dims that no tensor can have.
pub(super) fn sparse(sparse: &SparseTensorProto) -> Result<Constant, String> {
    let name = sparse_name(sparse);
    let code = sparse.values.as_ref().map_or(0, TensorProto::data_type);
    let dtype = DType::from_onnx(code)
        .ok_or_else(|| format!("sparse tensor `{name}` has element type {code}, which is not known"))?;
    match elements(&sparse.dims) {
        Some(_) => Ok(Constant::fixed(dtype, sparse.dims.clone(), format!("tensor `{name}` is stored sparse"))),
        None => Err(format!("sparse tensor `{name}` has dims {:?}, which no tensor can have", sparse.dims)),
    }
}

/// Dense type of a sparse initializer.
pub(super) fn sparse_type(sparse: &SparseTensorProto) -> Type {
    let dtype = sparse.values.as_ref().and_then(|v| v.data_type).and_then(DType::from_onnx);
    Type::Tensor(TensorType { dtype, shape: Some(sparse.dims.iter().map(|&d| Dim::from(d)).collect()) })
}

/// Type of a constant.
pub(super) fn constant_type(c: &Constant) -> Type {
    Type::tensor(c.dtype, c.dims.iter().map(|&d| Dim::from(d)).collect())
}

/// The value of an op Constant, if it is a tensor or numbers.
pub(super) fn of_constant_node(attrs: &Attrs) -> Option<Constant> {
    let floats = |v: &[f32]| -> Bytes { v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>().into() };
    match attrs.iter().find(|(name, _)| name.starts_with("value")).map(|(_, a)| a)? {
        Attr::Tensor(c) => Some(c.clone()),
        Attr::Int(i) => Some(Constant::inline(DType::I64, vec![], Bytes::copy_from_slice(&i.to_le_bytes()))),
        Attr::Ints(v) => Some(Constant::ints(v)),
        Attr::Float(x) => Some(Constant::inline(DType::F32, vec![], floats(&[*x]))),
        Attr::Floats(v) => Some(Constant::inline(DType::F32, vec![v.len() as i64], floats(v))),
        _ => None,
    }
}
