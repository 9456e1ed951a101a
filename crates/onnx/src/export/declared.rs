//! Types that a file declares, as values are stored now.

use super::names::Names;
use crate::proto::tensor_shape_proto::{Dimension, dimension::Value as Extent};
use crate::proto::{ValueInfoProto, type_proto};
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, ValueId};
use rustc_hash::FxHashSet;

/// Inputs, as they are stored now. Those of the main graph change only if a contract says so.
pub(super) fn restate_inputs(graph: &Graph, ends: &mut [ValueInfoProto]) {
    let inputs: FxHashSet<ValueId> = graph.inputs().iter().copied().collect();
    for info in ends {
        let name = info.name.as_deref().unwrap_or_default();
        let value = graph.by_name(name).filter(|v| inputs.contains(v));
        if let Some(restated) = value.and_then(|v| restored(graph, v, info)) {
            *info = restated;
        }
    }
}

/// Outputs of a body, as they are stored now: a copy in the layout in which the result leaves has a name of its own. Those of the
/// main graph never change: what callers were told stays, also where it contradicts the rank, as an output has to have a shape.
pub(super) fn restate_outputs(graph: &Graph, names: &Names, ends: &mut [ValueInfoProto]) {
    for (info, &v) in ends.iter_mut().zip(graph.outputs()) {
        let restated = restored(graph, v, info).filter(|new| has_shape(new) || !has_shape(info));
        if let Some(restated) = restated {
            *info = restated;
        }
        if info.name.as_deref() != Some(names.of(v)) {
            info.name = Some(names.of(v).to_owned());
        }
    }
}

fn has_shape(info: &ValueInfoProto) -> bool {
    let value = info.r#type.as_ref().and_then(|t| t.value.as_ref());
    matches!(value, Some(type_proto::Value::TensorType(tensor)) if tensor.shape.is_some())
}

/// The declared type of a value as it is stored now; `None` for values that are gone or live on in another one. An extent that is another
/// one now, as that of channels which were filled up, is left open: whoever reads the file finds it.
pub(super) fn restated(graph: &Graph, names: &Names, info: &ValueInfoProto) -> Option<ValueInfoProto> {
    let name = info.name.as_deref().unwrap_or_default();
    let v = graph.by_name(name)?;
    if names.of(v) != name {
        return None;
    }
    let mut info = info.clone();
    let tensor = info.r#type.as_mut().and_then(|t| t.value.as_mut());
    if let Some((type_proto::Value::TensorType(tensor), shape)) = tensor.zip(graph.value(v).ty.shape()) {
        let declared = tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim);
        for (declared, now) in declared.zip(shape) {
            let said = declared.value.as_ref();
            if now.as_const().is_some_and(|now| matches!(said, Some(Extent::DimValue(said)) if *said != now)) {
                declared.value = None;
            }
        }
    }
    restored(graph, v, &info)
}

/// A declared type with the dims as they are stored; without any where the rank that was declared is not the value's.
fn restored(graph: &Graph, v: ValueId, info: &ValueInfoProto) -> Option<ValueInfoProto> {
    let mut info = info.clone();
    let (layout, ty) = (&graph.value(v).layout, &graph.value(v).ty);
    if let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_mut().and_then(|t| t.value.as_mut())
        && let Some(dtype) = ty.dtype()
    {
        tensor.elem_type = Some(dtype.to_onnx());
        let ranks = ty.rank().zip(tensor.shape.as_ref().map(|shape| shape.dim.len()));
        if ranks.is_some_and(|(rank, declared)| rank != declared) {
            tensor.shape = None;
            return Some(info);
        }
    }
    if layout.is_row_major() {
        return Some(info);
    }
    let value = info.r#type.as_mut().and_then(|t| t.value.as_mut())?;
    let type_proto::Value::TensorType(tensor) = value else { return None };
    let dims = &mut tensor.shape.as_mut()?.dim;
    *dims = match layout.as_permutation() {
        Some(order) => order.iter().map(|&axis| dims.get(axis).cloned()).collect::<Option<_>>()?,
        None => graph.storage_shape(v, layout)?.iter().map(|dim| dimension(dim).unwrap_or_default()).collect(),
    };
    Some(info)
}

/// An extent that is a number or one symbol.
pub(super) fn dimension(dim: &Dim) -> Option<Dimension> {
    let value = match dim.as_const() {
        Some(extent) => Extent::DimValue(extent),
        None => Extent::DimParam(dim.as_symbol()?.to_owned()),
    };
    Some(Dimension { value: Some(value), ..Dimension::default() })
}
