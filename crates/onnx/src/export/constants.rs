//! Constants that a pass made, as tensors. A permutation is carried out while the tensor is written.

use super::error::ExportError;
use super::out::{Exporter, GraphOut};
use crate::proto::make::tensor_attribute;
use crate::proto::{NodeProto, TensorProto};
use crate::write::PayloadSource;
use bytes::Bytes;
use relayout_codegen::{Options, Order, permute, permute_crumbs, permute_nibbles, plan, relayout, run_relayout};
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dtype::DType;
use std::io::{self, Write};

impl Exporter {
    /// The tensor of a constant.
    pub(super) fn tensor(&mut self, name: &str, c: &Constant) -> Result<TensorProto, ExportError> {
        let missing = |why: String| ExportError::Bytes { name: name.to_owned(), why };
        let size = c.size_bytes().ok_or_else(|| missing(format!("{} elements have no size", c.dtype)))?;
        let raw_data = match &c.pending {
            None if c.source.is_available() && !c.source.is_computed() => c.source.bytes().map_err(missing)?,
            // Made when it is written. What is not there is missed then: until then a graph can be looked at without its weights.
            _ => self.payloads.defer(DeferredConstant { name: name.to_owned(), constant: c.clone(), size }),
        };
        Ok(TensorProto {
            name: Some(name.to_owned()),
            dims: c.dims.clone(),
            data_type: Some(c.dtype.to_onnx()),
            raw_data: Some(raw_data),
            ..TensorProto::default()
        })
    }

    /// A constant as an initializer; before IR version 4 those have to be inputs too, so a new one is a node.
    pub(super) fn add_constant(&self, out: &mut GraphOut<'_>, tensor: TensorProto) {
        if self.ir_version >= 4 || tensor.name.as_deref().is_some_and(|name| out.known.contains(name)) {
            out.initializers.push(tensor);
        } else {
            out.nodes.push(constant_node(tensor));
        }
    }

    /// A list of integers as a new constant; its name.
    pub(super) fn ints(&mut self, out: &mut GraphOut<'_>, base: &str, values: &[i64]) -> String {
        self.ints_of(out, base, values, DType::I64)
    }

    /// A list of integers of 64 or 32 bits as a new constant; its name.
    pub(super) fn ints_of(&mut self, out: &mut GraphOut<'_>, base: &str, values: &[i64], dtype: DType) -> String {
        let name = self.taken.fresh(base);
        self.add_constant(out, int_tensor(name.clone(), values, dtype));
        name
    }
}

/// A constant that is made when it is written.
struct DeferredConstant {
    name: String,
    constant: Constant,
    /// In bytes.
    size: u64,
}

impl PayloadSource for DeferredConstant {
    fn byte_length(&self) -> u64 {
        self.size
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.made()?)
    }

    fn made(&self) -> io::Result<Bytes> {
        written(&self.constant, self.size).map_err(|why| io::Error::other(format!("constant `{}`: {why}", self.name)))
    }
}

/// The bytes of a constant as they are to be stored.
fn written(c: &Constant, size: u64) -> Result<Bytes, String> {
    let source = c.source.bytes()?;
    match &c.pending {
        None => Ok(source),
        Some(repack) => repacked(&source, c.dtype, repack, size).map(Bytes::from),
    }
}

/// The bytes of a constant in their new order.
fn repacked(source: &[u8], dtype: DType, repack: &Repack, size: u64) -> Result<Vec<u8>, String> {
    let shape: Option<Vec<usize>> = repack.extents.iter().map(|&e| usize::try_from(e).ok()).collect();
    let shape = shape.ok_or("negative extents")?;
    let perm = repack.to.as_permutation().unwrap_or_default();
    let mut out = vec![0u8; usize::try_from(size).map_err(|e| e.to_string())?];
    match dtype.bits() {
        Some(bits @ (8 | 16 | 32 | 64 | 128)) if repack.to.as_permutation().is_none() => {
            let to = Order::new(&repack.to, &repack.extents).map_err(|e| e.to_string())?;
            let from = Order::dense(&shape);
            let plan = relayout(&shape, &from, &to, &vec![0; bits as usize / 8]).map_err(|e| e.to_string())?;
            run_relayout(source, &mut out, &plan, &Options::default()).map_err(|e| e.to_string())?;
        }
        Some(bits @ (8 | 16 | 32 | 64 | 128)) => {
            let plan = plan(&shape, &perm, bits as usize / 8).map_err(|e| e.to_string())?;
            permute(source, &mut out, &plan).map_err(|e| e.to_string())?;
        }
        Some(4) if !perm.is_empty() || shape.is_empty() => {
            let plan = plan(&shape, &perm, 1).map_err(|e| e.to_string())?;
            permute_nibbles(source, &mut out, &plan).map_err(|e| e.to_string())?;
        }
        Some(2) if !perm.is_empty() || shape.is_empty() => {
            let plan = plan(&shape, &perm, 1).map_err(|e| e.to_string())?;
            permute_crumbs(source, &mut out, &plan).map_err(|e| e.to_string())?;
        }
        _ => return Err(format!("{dtype} elements can't be moved")),
    }
    Ok(out)
}

/// A vector of these entries of a list; `None` if their bytes are not there.
pub(super) fn picked(list: &Constant, picks: &[usize]) -> Option<TensorProto> {
    let width = list.dtype.bits().filter(|bits| bits % 8 == 0)? as usize / 8;
    let bytes = written(list, list.size_bytes()?).ok()?;
    let entry = |&at: &usize| bytes.get(at * width..(at + 1) * width);
    let raw: Vec<u8> = picks.iter().map(entry).collect::<Option<Vec<_>>>()?.concat();
    Some(TensorProto {
        dims: vec![picks.len() as i64],
        data_type: Some(list.dtype.to_onnx()),
        raw_data: Some(raw.into()),
        ..TensorProto::default()
    })
}

/// A vector of 64-bit integers.
pub(super) fn int_tensor(name: String, values: &[i64], dtype: DType) -> TensorProto {
    let narrow = if dtype == DType::I32 { values.iter().map(|&v| i32::try_from(v).ok()).collect() } else { None };
    let (dtype, raw): (DType, Vec<u8>) = match narrow {
        Some(values) => {
            let values: Vec<i32> = values;
            (DType::I32, values.iter().flat_map(|v| v.to_le_bytes()).collect())
        }
        None => (DType::I64, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    };
    TensorProto {
        name: Some(name),
        dims: vec![values.len() as i64],
        data_type: Some(dtype.to_onnx()),
        raw_data: Some(raw.into()),
        ..TensorProto::default()
    }
}

/// A tensor as a node.
pub(super) fn constant_node(tensor: TensorProto) -> NodeProto {
    let output = tensor.name.clone().unwrap_or_default();
    NodeProto {
        op_type: Some("Constant".to_owned()),
        name: Some(output.clone()),
        output: vec![output],
        attribute: vec![tensor_attribute("value", tensor)],
        ..NodeProto::default()
    }
}
