//! Weights for models that were stripped of theirs.
//!
//! A stripped tensor keeps name, extents and type and says `location = hydrate:KIND`, a seed and the parameters of the kind in
//! place of its data. What stands here for the data depends on the seed alone. It is not what `hydrate.py` of the corpus
//! makes: only mean and spread agree.

use bytes::Bytes;
use half::f16;
use prost::Message;
use relayout_onnx::proto::tensor_proto::{DataLocation, DataType};
use relayout_onnx::proto::{AttributeProto, GraphProto, ModelProto, TensorProto};

/// The model with every stripped tensor filled.
pub(crate) fn fill(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut model = ModelProto::decode(bytes).map_err(|e| e.to_string())?;
    if let Some(graph) = &mut model.graph {
        fill_graph(graph)?;
    }
    for node in model.functions.iter_mut().flat_map(|f| &mut f.node) {
        node.attribute.iter_mut().try_for_each(fill_attribute)?;
    }
    Ok(model.encode_to_vec())
}

fn fill_graph(graph: &mut GraphProto) -> Result<(), String> {
    graph.initializer.iter_mut().try_for_each(fill_tensor)?;
    graph.node.iter_mut().flat_map(|n| &mut n.attribute).try_for_each(fill_attribute)
}

fn fill_attribute(a: &mut AttributeProto) -> Result<(), String> {
    a.t.iter_mut().try_for_each(|t| fill_tensor(t))?;
    a.tensors.iter_mut().try_for_each(fill_tensor)?;
    a.g.iter_mut().try_for_each(|g| fill_graph(g))?;
    a.graphs.iter_mut().try_for_each(fill_graph)
}

fn fill_tensor(t: &mut TensorProto) -> Result<(), String> {
    let said = |key: &str| {
        t.external_data.iter().find(|e| e.key.as_deref() == Some(key)).and_then(|e| e.value.clone()).unwrap_or_default()
    };
    let location = said("location");
    let Some(kind) = location.strip_prefix("hydrate:") else { return Ok(()) };
    let number = |key: &str| said(key).parse::<f64>().map_err(|e| format!("{key} of {:?}: {e}", t.name));
    let (base, spread) = match kind {
        // A uniform number of the same variance stands for a normal one.
        "normal" => (number("mean")? - number("std")? * 3f64.sqrt(), number("std")? * 12f64.sqrt()),
        "uniform" => (number("low")?, number("high")? - number("low")?),
        "randint" => (number("low")? - 0.5, number("high")? - number("low")? + 1.0),
        "const" => (number("value")?, 0.0),
        other => return Err(format!("{:?} is stripped in an unknown way: {other}", t.name)),
    };
    let count: i64 = t.dims.iter().product();
    let dtype = DataType::try_from(t.data_type.unwrap_or(0)).map_err(|e| e.to_string())?;
    t.raw_data = Some(numbers(&said("seed"), count as usize, base, spread, dtype)?);
    t.external_data.clear();
    t.data_location = Some(DataLocation::Default as i32);
    Ok(())
}

/// So many numbers of a tensor are drawn; a longer one repeats them. A prime, so that no axis repeats with them.
const DRAWN: usize = 8_191;

/// `count` numbers in base..base + spread.
fn numbers(seed: &str, count: usize, base: f64, spread: f64, dtype: DataType) -> Result<Bytes, String> {
    let mut state =
        seed.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut next = || {
        // The steps of Knuth's MMIX; the upper bits are good enough for weights.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        base + spread * ((state >> 40) as f64 / (1u64 << 24) as f64)
    };
    let mut data = Vec::new();
    macro_rules! write {
        ($convert:expr) => {
            for _ in 0..count.min(DRAWN) {
                data.extend_from_slice(&$convert(next()).to_le_bytes());
            }
        };
    }
    match dtype {
        DataType::Float => write!(|x| x as f32),
        DataType::Float16 => write!(f16::from_f64),
        DataType::Double => write!(|x: f64| x),
        DataType::Int8 => write!(|x: f64| x.round() as i8),
        DataType::Uint8 => write!(|x: f64| x.round() as u8),
        DataType::Int32 => write!(|x: f64| x.round() as i32),
        DataType::Int64 => write!(|x: f64| x.round() as i64),
        other => return Err(format!("no weights of type {other:?} can be made")),
    }
    let drawn = data.len();
    let bytes = drawn / count.clamp(1, DRAWN) * count;
    data.reserve_exact(bytes - drawn);
    while data.len() < bytes {
        data.extend_from_within(..drawn.min(bytes - data.len()));
    }
    Ok(data.into())
}
