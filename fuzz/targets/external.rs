//! Tensors whose data lies elsewhere: references of any spelling to data of any length, which a function gives, withholds or fails to
//! give.
#![no_main]

use std::io::{Error, ErrorKind};

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use relayout::{Model, Options, audit, optimize, target};
use relayout_fuzz::memory::{Bound, bounded};
use relayout_onnx::prost::Message as _;
use relayout_onnx::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, ValueInfoProto,
};

/// What is given is not copied; what refers to it may be asked for once for each tensor.
const BOUND: Bound = Bound { per_byte: 4 << 10, free: 128 << 20 };

#[derive(Arbitrary, Debug)]
struct Case {
    tensors: Vec<Tensor>,
    /// Length of what a location has, and how the function answers.
    files: [(u16, Answer); 3],
    folder: bool,
}

#[derive(Arbitrary, Debug)]
struct Tensor {
    dims: Vec<i16>,
    large: Option<i64>,
    data_type: u8,
    location: Option<Location>,
    offset: Option<Number>,
    length: Option<Number>,
    other: Option<(String, String)>,
    raw: Option<u8>,
    read_as_shape: bool,
}

#[derive(Arbitrary, Debug)]
enum Location {
    Of(u8),
    Dotted(u8),
    Odd(String),
}

#[derive(Arbitrary, Debug)]
enum Number {
    Small(u16),
    Any(i64),
    Text(String),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Answer {
    Given,
    Missing,
    Failed,
}

fuzz_target!(|case: Case| {
    let model = model(&case);
    let bytes = model.encode_to_vec();
    let given: usize = case.files.iter().map(|file| usize::from(file.0)).sum();
    bounded(&BOUND, bytes.len() + given, || run(&case, bytes.into()));
});

fn run(case: &Case, bytes: Bytes) {
    let mut asked = Vec::new();
    let read = |location: &str| {
        assert!(!asked.contains(&location.to_owned()), "`{location}` is asked for twice");
        asked.push(location.to_owned());
        assert!(
            !location.starts_with('/') && !location.split('/').any(|part| part == ".."),
            "`{location}` leaves the folder"
        );
        let (length, answer) = case.files[location.len() % 3];
        match answer {
            Answer::Given => Ok(Bytes::from(vec![1; usize::from(length)])),
            Answer::Missing => Err(Error::from(ErrorKind::NotFound)),
            Answer::Failed => Err(Error::other("no")),
        }
    };
    // A folder that is not there is one way to have no data.
    let model = if case.folder {
        Model::from_bytes(bytes, Some("no such folder".into()))
    } else {
        Model::from_bytes_with(bytes, read)
    };
    let Ok(model) = model else { return };
    let _ = model.print();
    for name in ["onnx", "nhwc"] {
        let target = target(name).expect("it is built in");
        let _ = audit(&model, target.as_ref(), &Options::default());
        if let Ok(optimized) = optimize(&model, target.as_ref(), &Options::default()) {
            let _ = optimized.to_bytes();
        }
    }
}

/// Every tensor is transposed; some say into which shape something is reshaped.
fn model(case: &Case) -> ModelProto {
    let mut graph = GraphProto { name: Some("g".into()), ..GraphProto::default() };
    for (at, tensor) in case.tensors.iter().take(6).enumerate() {
        let (name, out) = (format!("w{at}"), format!("y{at}"));
        graph.initializer.push(self::tensor(tensor, name.clone()));
        let (op, input) =
            if tensor.read_as_shape { ("Reshape", vec!["w0".into(), name]) } else { ("Transpose", vec![name]) };
        let node = NodeProto { input, output: vec![out.clone()], op_type: Some(op.into()), ..NodeProto::default() };
        graph.node.push(node);
        graph.output.push(ValueInfoProto { name: Some(out), ..ValueInfoProto::default() });
    }
    let opset_import = vec![OperatorSetIdProto { domain: None, version: Some(18) }];
    ModelProto { ir_version: Some(9), graph: Some(graph), opset_import, ..ModelProto::default() }
}

fn tensor(tensor: &Tensor, name: String) -> TensorProto {
    let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.into()), value: Some(value) };
    let number = |n: &Number| match n {
        Number::Small(n) => n.to_string(),
        Number::Any(n) => n.to_string(),
        Number::Text(text) => text.clone(),
    };
    let location = tensor.location.as_ref().map(|location| match location {
        Location::Of(n) => "w".repeat(1 + usize::from(n % 3)),
        Location::Dotted(n) => format!("./{}", "w".repeat(1 + usize::from(n % 3))),
        Location::Odd(text) => text.clone(),
    });
    let entries = [
        location.map(|text| entry("location", text)),
        tensor.offset.as_ref().map(|n| entry("offset", number(n))),
        tensor.length.as_ref().map(|n| entry("length", number(n))),
        tensor.other.as_ref().map(|(key, value)| entry(key, value.clone())),
    ];
    TensorProto {
        name: Some(name),
        dims: tensor.dims.iter().take(6).map(|&dim| i64::from(dim)).chain(tensor.large).collect(),
        data_type: Some(i32::from(tensor.data_type % 28)),
        external_data: entries.into_iter().flatten().collect(),
        data_location: Some(1),
        raw_data: tensor.raw.map(|byte| vec![byte; 8].into()),
        ..TensorProto::default()
    }
}
