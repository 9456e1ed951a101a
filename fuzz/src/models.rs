//! Models that stay models while they are damaged: a mutation of the messages where the engine mutates bytes.

use bytes::Bytes;
use relayout_onnx::prost::Message as _;
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, tensor_shape_proto, type_proto,
};

use crate::choice::Choice;

/// Numbers at which things break.
const NUMBERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    -2,
    3,
    4,
    5,
    7,
    8,
    9,
    13,
    16,
    17,
    18,
    21,
    31,
    63,
    64,
    127,
    255,
    256,
    1 << 16,
    1 << 31,
    1 << 32,
    1 << 40,
    1 << 62,
    i64::MAX,
    i64::MIN,
    i32::MAX as i64,
    i32::MIN as i64,
];

/// Operators whose signatures look at shapes, attributes and constants.
const OPS: &[&str] = &[
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "DequantizeLinear",
    "Einsum",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gemm",
    "GlobalAveragePool",
    "GroupNormalization",
    "If",
    "InstanceNormalization",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "Loop",
    "MatMul",
    "MaxPool",
    "Mul",
    "NonZero",
    "OneHot",
    "PRelu",
    "Pad",
    "QuantizeLinear",
    "Range",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Resize",
    "Scan",
    "ScatterND",
    "Shape",
    "Slice",
    "Softmax",
    "SpaceToDepth",
    "Split",
    "SplitToSequence",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Identity",
];

/// Writes a damaged copy of the model in `data[..size]` to `data`; its new size. `None` if there is no model, or the copy is larger
/// than `most`.
pub fn mutate(data: &mut [u8], size: usize, most: usize, seed: u32) -> Option<usize> {
    let mut model = ModelProto::decode(&data[..size]).ok()?;
    let mut choice = Choice::new(u64::from(seed));
    for _ in 0..=choice.below(3) {
        mutate_model(&mut model, &mut choice);
    }
    let written = model.encode_to_vec();
    if written.len() > most.min(data.len()) {
        return None;
    }
    data[..written.len()].copy_from_slice(&written);
    Some(written.len())
}

fn mutate_model(model: &mut ModelProto, choice: &mut Choice) {
    let Some(graph) = model.graph.as_mut() else { return };
    match choice.below(20) {
        0 => {
            let at = choice.below(model.opset_import.len());
            if let Some(import) = model.opset_import.get_mut(at) {
                import.version = Some(1 + choice.below(26) as i64);
            }
        }
        1 => model.ir_version = Some(choice.below(14) as i64),
        2 if !model.functions.is_empty() => {
            let at = choice.below(model.functions.len());
            let function = &mut model.functions[at];
            if let Some(node) = some(&mut function.node, choice) {
                mutate_node(node, &[], choice);
            }
        }
        _ => mutate_graph(graph, choice),
    }
}

fn some<'t, T>(all: &'t mut [T], choice: &mut Choice) -> Option<&'t mut T> {
    let at = choice.below(all.len());
    all.get_mut(at)
}

/// Names of values that a graph has.
fn names(graph: &GraphProto) -> Vec<String> {
    let inputs = graph.input.iter().filter_map(|input| input.name.clone());
    let constants = graph.initializer.iter().filter_map(|tensor| tensor.name.clone());
    inputs.chain(constants).chain(graph.node.iter().flat_map(|node| node.output.clone())).collect()
}

fn mutate_graph(graph: &mut GraphProto, choice: &mut Choice) {
    let names = names(graph);
    match choice.below(24) {
        0..=8 => {
            if let Some(node) = some(&mut graph.node, choice) {
                mutate_node(node, &names, choice);
            }
        }
        9..=12 => {
            if let Some(tensor) = some(&mut graph.initializer, choice) {
                mutate_tensor(tensor, choice);
            }
        }
        13 | 14 => {
            if let Some(input) = some(&mut graph.input, choice) {
                mutate_type(input, choice);
            }
        }
        15 => {
            if let Some(output) = some(&mut graph.output, choice) {
                mutate_type(output, choice);
            }
        }
        16 | 17 => insert_node(graph, &names, choice),
        18 => drop_one(&mut graph.node, choice),
        19 => {
            let name = choice.of(&names).cloned();
            graph.output.push(ValueInfoProto { name, ..ValueInfoProto::default() });
        }
        20 => drop_one(&mut graph.output, choice),
        21 => drop_one(&mut graph.initializer, choice),
        22 => {
            // What was computed is a constant, or what the caller gives is.
            let tensor = TensorProto {
                dims: dims(choice),
                data_type: Some(7),
                name: choice.of(&names).cloned(),
                ..TensorProto::default()
            };
            graph.initializer.push(filled(tensor, choice));
        }
        _ => {
            let (a, b) = (choice.below(graph.node.len()), choice.below(graph.node.len()));
            if a < graph.node.len() {
                graph.node.swap(a, b);
            }
        }
    }
}

fn drop_one<T>(all: &mut Vec<T>, choice: &mut Choice) {
    if !all.is_empty() {
        all.remove(choice.below(all.len()));
    }
}

/// Puts a node between a value and all of its readers.
fn insert_node(graph: &mut GraphProto, names: &[String], choice: &mut Choice) {
    let Some(value) = choice.of(names).cloned() else { return };
    let fresh = format!("{value}_{}", choice.below(1000));
    for node in &mut graph.node {
        for input in node.input.iter_mut().filter(|input| **input == value) {
            input.clone_from(&fresh);
        }
    }
    let op_type = Some(
        (*choice.of(&["Transpose", "Transpose", "Relu", "Identity", "Reshape", "Conv", "Add"]).unwrap_or(&"Relu"))
            .to_owned(),
    );
    let mut node = NodeProto { input: vec![value], output: vec![fresh], op_type, ..NodeProto::default() };
    if node.op_type() == "Transpose" {
        let mut perm: Vec<i64> = (0..1 + choice.below(6) as i64).collect();
        for at in (1..perm.len()).rev() {
            perm.swap(at, choice.below(at + 1));
        }
        let name = Some("perm".to_owned());
        node.attribute.push(AttributeProto { name, ints: perm, r#type: Some(7), ..AttributeProto::default() });
    } else if matches!(node.op_type(), "Reshape" | "Conv" | "Add") {
        node.input.extend(choice.of(names).cloned());
    }
    let at = choice.below(graph.node.len() + 1);
    graph.node.insert(at, node);
}

fn mutate_node(node: &mut NodeProto, names: &[String], choice: &mut Choice) {
    match choice.below(12) {
        0 | 1 => node.op_type = choice.of(OPS).map(|&op| op.to_owned()),
        2 | 3 => {
            if let (Some(input), Some(name)) = (some(&mut node.input, choice), choice.of(names)) {
                input.clone_from(name);
            }
        }
        4 => {
            if let Some(input) = some(&mut node.input, choice) {
                input.clear();
            }
        }
        5 => node.input.extend(choice.of(names).cloned()),
        6 => drop_one(&mut node.input, choice),
        7 => drop_one(&mut node.attribute, choice),
        8 => drop_one(&mut node.output, choice),
        _ => {
            if let Some(attribute) = some(&mut node.attribute, choice) {
                mutate_attribute(attribute, names, choice);
            }
        }
    }
}

fn mutate_attribute(attribute: &mut AttributeProto, names: &[String], choice: &mut Choice) {
    if let Some(body) = attribute.g.as_mut().filter(|_| choice.below(8) != 0) {
        return mutate_graph(body, choice);
    }
    if let Some(tensor) = attribute.t.as_mut().filter(|_| choice.below(8) != 0) {
        return mutate_tensor(tensor, choice);
    }
    match choice.below(8) {
        0 => attribute.r#type = Some(choice.below(16) as i32),
        1 => {
            attribute.s = choice
                .of(&["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "DCR", "CRD", "bhwc,oc->bhwo"])
                .map(|s| (*s).into())
        }
        2 => attribute.ints.push(number(choice)),
        3 => drop_one(&mut attribute.ints, choice),
        4 => attribute.ref_attr_name = choice.of(names).cloned(),
        _ if attribute.ints.is_empty() => attribute.i = Some(number(choice)),
        _ => {
            if let Some(int) = some(&mut attribute.ints, choice) {
                *int = number(choice);
            }
        }
    }
}

fn number(choice: &mut Choice) -> i64 {
    // Mostly small: those lead into the program, the others mostly out of it.
    if choice.below(4) == 0 { choice.of(NUMBERS).copied().unwrap_or(0) } else { choice.below(12) as i64 - 3 }
}

fn dims(choice: &mut Choice) -> Vec<i64> {
    (0..choice.below(5)).map(|_| choice.below(6) as i64).collect()
}

fn mutate_tensor(tensor: &mut TensorProto, choice: &mut Choice) {
    match choice.below(8) {
        0 => tensor.data_type = Some(choice.below(28) as i32),
        1 => tensor.dims.push(number(choice)),
        2 => drop_one(&mut tensor.dims, choice),
        3 => {
            if let Some(dim) = some(&mut tensor.dims, choice) {
                *dim = number(choice);
            }
        }
        4 | 5 => {
            // Another shape with data to match.
            if let Some(dim) = some(&mut tensor.dims, choice) {
                *dim = choice.below(9) as i64;
            }
            *tensor = filled(std::mem::take(tensor), choice);
        }
        6 => {
            if let Some(int) = some(&mut tensor.int64_data, choice) {
                *int = number(choice);
            }
        }
        _ => {
            let mut bytes = tensor.raw_data.take().unwrap_or_default().to_vec();
            let at = choice.below(bytes.len() / 8) * 8;
            if let Some(element) = bytes.get_mut(at..at + 8) {
                element.copy_from_slice(&number(choice).to_le_bytes());
            }
            tensor.raw_data = Some(bytes.into());
        }
    }
}

/// With data of the size that its dims say, if that is small.
fn filled(mut tensor: TensorProto, choice: &mut Choice) -> TensorProto {
    let elems: i64 = tensor.dims.iter().map(|&dim| dim.clamp(0, 1 << 12)).fold(1, i64::saturating_mul);
    if (0..4096).contains(&elems) {
        let width = match tensor.data_type() {
            1 | 6 | 12 => 4,
            7 | 11 | 13 | 14 => 8,
            4 | 5 | 10 | 16 => 2,
            _ => 1,
        };
        let bytes: Vec<u8> =
            (0..elems as usize * width).map(|at| if at % width == 0 { choice.below(4) as u8 } else { 0 }).collect();
        tensor =
            TensorProto { dims: tensor.dims, data_type: tensor.data_type, name: tensor.name, ..TensorProto::default() };
        tensor.raw_data = Some(Bytes::from(bytes));
    }
    tensor
}

fn mutate_type(value: &mut ValueInfoProto, choice: &mut Choice) {
    let Some(type_proto::Value::TensorType(tensor)) = value.r#type.as_mut().and_then(|ty| ty.value.as_mut()) else {
        return;
    };
    if choice.below(6) == 0 {
        tensor.elem_type = Some(choice.below(28) as i32);
        return;
    }
    let Some(shape) = tensor.shape.as_mut().filter(|_| choice.below(8) != 0) else {
        tensor.shape = None;
        return;
    };
    let dim = match choice.below(4) {
        0 => Some(tensor_shape_proto::dimension::Value::DimParam(
            (*choice.of(&["N", "H", "W", "C"]).unwrap_or(&"N")).to_owned(),
        )),
        1 => None,
        _ => Some(tensor_shape_proto::dimension::Value::DimValue(number(choice))),
    };
    match choice.below(8) {
        0 => drop_one(&mut shape.dim, choice),
        1 => shape.dim.push(tensor_shape_proto::Dimension { value: dim, denotation: None }),
        _ => {
            if let Some(place) = some(&mut shape.dim, choice) {
                place.value = dim;
            }
        }
    }
}
