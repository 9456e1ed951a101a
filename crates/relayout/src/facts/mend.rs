//! What a runtime would do wrong is written otherwise, where that says the same.

use super::{FACTS, PADS, Place, Written, places, reader::Reader};
use relayout_ir::dtype::DType;
use relayout_onnx::proto::{GraphProto, TensorProto};
use std::collections::BTreeSet;

/// Writes otherwise what a runtime would do wrong, where that says the same: a Pad of zeros in front of a pool pads with -0.0, which is as
/// large and is left alone. What a Pad fills with has to be known for that.
pub(super) fn mend(before: Written<'_>, after: &mut GraphProto) {
    let Written { graph, opset, .. } = before;
    // Before that the number is an attribute, in which a sign makes no difference.
    if opset < PAD_OPERANDS_SINCE {
        return;
    }
    let is_pad = |place: &Place| FACTS.get(place.fact).is_some_and(|fact| fact.heading == PADS);
    let written = Written { proto: after, ..before };
    let found: Vec<Place> = places(written).into_iter().filter(is_pad).collect();
    if found.is_empty() {
        return;
    }
    let had: BTreeSet<Place> = places(before).into_iter().collect();
    let reader = Reader::of(written);
    let new = found.iter().filter(|place| !had.contains(place));
    let pads = new.filter_map(|place| reader.producer(reader.producers.get(place.value.as_str())?, 0));
    let pads: BTreeSet<String> = pads
        .filter(|pad| reader.fills_with_zeros(pad) == Some(true))
        .filter_map(|pad| pad.output.first().cloned())
        .collect();
    let taken: BTreeSet<String> = reader.tensors.keys().map(|&name| name.to_owned()).collect();
    let mut numbers = Vec::new();
    for pad in after.node.iter_mut().filter(|n| n.output.first().is_some_and(|y| pads.contains(y))) {
        let dtype = pad.input.first().and_then(|x| graph.by_name(x)).and_then(|v| graph.value(v).ty.dtype());
        let name = format!("{}.zero", pad.output.first().map_or("", String::as_str));
        let Some(raw_data) = dtype.and_then(negative_zero) else { continue };
        if graph.by_name(&name).is_some() || taken.contains(&name) {
            continue;
        }
        pad.input.resize(3, String::new());
        pad.input[2].clone_from(&name);
        let (data_type, raw_data) = (dtype.map(DType::to_onnx), Some(raw_data.into()));
        numbers.push(TensorProto { name: Some(name), data_type, raw_data, ..TensorProto::default() });
    }
    after.initializer.extend(numbers);
}

/// The first version of Pad that takes its number as an operand.
const PAD_OPERANDS_SINCE: i64 = 11;

/// The bytes of -0.0.
fn negative_zero(dtype: DType) -> Option<Vec<u8>> {
    let width = match dtype {
        DType::F16 | DType::BF16 => 2,
        DType::F32 => 4,
        DType::F64 => 8,
        _ => return None,
    };
    let mut bytes = vec![0; width];
    *bytes.last_mut()? = 0x80;
    Some(bytes)
}
