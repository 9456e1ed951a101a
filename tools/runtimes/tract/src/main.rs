//! Runs a model in tract, as `tools/runtimes/worker.py` says: `relayout-tract MODEL.onnx INPUTS RESULTS`.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tract_onnx::prelude::*;

/// An entry of `tensors.json`.
#[derive(Serialize, Deserialize)]
struct Listed {
    name: String,
    dtype: String,
    shape: Vec<usize>,
}

/// The element type that numpy calls so.
fn kind(name: &str) -> TractResult<DatumType> {
    Ok(match name {
        "float16" => DatumType::F16,
        "float32" => DatumType::F32,
        "float64" => DatumType::F64,
        "bool" => DatumType::Bool,
        "int8" => DatumType::I8,
        "uint8" => DatumType::U8,
        "int16" => DatumType::I16,
        "uint16" => DatumType::U16,
        "int32" => DatumType::I32,
        "uint32" => DatumType::U32,
        "int64" => DatumType::I64,
        "uint64" => DatumType::U64,
        _ => return Err(TractError::msg(format!("tensors of {name} are not passed to tract"))),
    })
}

/// What numpy calls an element type. Symbolic numbers are written as `i64`.
fn numpy(kind: DatumType) -> TractResult<&'static str> {
    Ok(match kind.unquantized() {
        DatumType::F16 => "float16",
        DatumType::F32 => "float32",
        DatumType::F64 => "float64",
        DatumType::Bool => "bool",
        DatumType::I8 => "int8",
        DatumType::U8 => "uint8",
        DatumType::I16 => "int16",
        DatumType::U16 => "uint16",
        DatumType::I32 => "int32",
        DatumType::U32 => "uint32",
        DatumType::I64 => "int64",
        DatumType::U64 => "uint64",
        other => return Err(TractError::msg(format!("tract gives a result of {other:?}"))),
    })
}

fn read(folder: &Path) -> TractResult<Vec<(String, Tensor)>> {
    let listed: Vec<Listed> = serde_json::from_slice(&std::fs::read(folder.join("tensors.json"))?)?;
    let one = |(at, entry): (usize, Listed)| {
        let bytes = std::fs::read(folder.join(format!("{at}.bin")))?;
        let mut tensor = Tensor::zero_dt(kind(&entry.dtype)?, &entry.shape)?;
        let room = tensor.as_bytes_mut();
        if room.len() != bytes.len() {
            return Err(TractError::msg(format!("{at}.bin has {} bytes, not {}", bytes.len(), room.len())));
        }
        room.copy_from_slice(&bytes);
        Ok((entry.name, tensor))
    };
    listed.into_iter().enumerate().map(one).collect()
}

fn write(folder: &Path, results: &[TValue]) -> TractResult<()> {
    std::fs::create_dir_all(folder)?;
    let mut listed = Vec::new();
    for (at, result) in results.iter().enumerate() {
        let mut tensor = result.clone().into_tensor();
        if tensor.datum_type().is_tdim() {
            tensor = tensor.cast_to::<i64>()?.into_owned();
        }
        std::fs::write(folder.join(format!("{at}.bin")), tensor.as_bytes())?;
        let dtype = numpy(tensor.datum_type())?.to_owned();
        listed.push(Listed { name: format!("result{at}"), dtype, shape: tensor.shape().to_vec() });
    }
    std::fs::write(folder.join("tensors.json"), serde_json::to_vec(&listed)?)?;
    Ok(())
}

type Plan = Arc<TypedRunnableModel>;

/// The plan for inputs of these types and shapes, and the inputs in its order.
fn loaded(path: &Path, given: &[(String, Tensor)]) -> TractResult<(Plan, TVec<TValue>)> {
    let mut model = tract_onnx::onnx().model_for_path(path)?;
    let names: Vec<String> = model.input_outlets()?.iter().map(|outlet| model.node(outlet.node).name.clone()).collect();
    let mut inputs = tvec![];
    for (at, name) in names.iter().enumerate() {
        let found = given.iter().find(|(other, _)| other == name);
        let (_, tensor) = found.ok_or_else(|| TractError::msg(format!("there is no tensor for input {name}")))?;
        model.set_input_fact(at, InferenceFact::dt_shape(tensor.datum_type(), tensor.shape()))?;
        inputs.push(tensor.clone().into_tvalue());
    }
    Ok((model.into_optimized()?.into_runnable()?, inputs))
}

fn first(model: &Path, inputs: &Path, results: &Path) -> TractResult<(Plan, TVec<TValue>)> {
    let (plan, inputs) = loaded(model, &read(inputs)?)?;
    write(results, &plan.run(inputs.clone())?)?;
    Ok((plan, inputs))
}

fn serve(plan: &Plan, inputs: &TVec<TValue>) -> TractResult<()> {
    for line in std::io::stdin().lock().lines() {
        let times: u32 = line?.trim().parse()?;
        let begin = Instant::now();
        for _ in 0..times {
            plan.run(inputs.clone())?;
        }
        println!("@{}", begin.elapsed().as_secs_f64() / f64::from(times.max(1)));
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn main() -> TractResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, inputs, results] = arguments.iter().map(Path::new).collect::<Vec<_>>()[..] else {
        return Err(TractError::msg("usage: relayout-tract MODEL.onnx INPUTS RESULTS"));
    };
    match first(model, inputs, results) {
        Ok((plan, inputs)) => {
            println!("@ready");
            std::io::stdout().flush()?;
            serve(&plan, &inputs)
        }
        Err(problem) => {
            let said = format!("{problem:#}").split_whitespace().collect::<Vec<_>>().join(" ");
            println!("@note {}", said.chars().take(300).collect::<String>());
            Ok(())
        }
    }
}
