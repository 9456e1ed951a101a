//! Runs a model in rten, as `tools/runtimes/worker.py` says: `relayout-rten MODEL.onnx INPUTS RESULTS`.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rten::{Model, NodeId, RunOptions, ThreadPool, Value};
use rten_tensor::prelude::*;
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An entry of `tensors.json`.
#[derive(Serialize, Deserialize)]
struct Listed {
    name: String,
    dtype: String,
    shape: Vec<usize>,
}

/// A tensor of the element type that numpy calls so. rten has all integers as 32 bits, and so truth values.
fn value(entry: &Listed, bytes: &[u8]) -> Result<Value> {
    fn numbers<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
        bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect()
    }
    let wide = |n: i64| n.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    let shape = &entry.shape;
    Ok(match entry.dtype.as_str() {
        "float32" => Value::from_shape(shape, numbers(bytes, f32::from_le_bytes))?,
        "int64" => {
            Value::from_shape(shape, numbers(bytes, i64::from_le_bytes).into_iter().map(wide).collect::<Vec<i32>>())?
        }
        "int32" => Value::from_shape(shape, numbers(bytes, i32::from_le_bytes))?,
        "bool" => Value::from_shape(shape, bytes.iter().map(|&b| i32::from(b)).collect::<Vec<i32>>())?,
        "uint8" => Value::from_shape(shape, bytes.to_vec())?,
        "int8" => Value::from_shape(shape, bytes.iter().map(|&b| b as i8).collect::<Vec<i8>>())?,
        other => return Err(format!("tensors of {other} are not passed to rten").into()),
    })
}

fn read(folder: &Path) -> Result<Vec<(String, Value)>> {
    let listed: Vec<Listed> = serde_json::from_slice(&std::fs::read(folder.join("tensors.json"))?)?;
    let one = |(at, entry): (usize, Listed)| {
        let value = value(&entry, &std::fs::read(folder.join(format!("{at}.bin")))?)?;
        Ok((entry.name, value))
    };
    listed.into_iter().enumerate().map(one).collect()
}

/// Type, shape and bytes as numpy has them.
fn stored(value: Value) -> Result<(&'static str, Vec<usize>, Vec<u8>)> {
    Ok(match value {
        Value::FloatTensor(t) => {
            ("float32", t.shape().to_vec(), t.to_vec().into_iter().flat_map(f32::to_le_bytes).collect())
        }
        Value::Int32Tensor(t) => {
            ("int32", t.shape().to_vec(), t.to_vec().into_iter().flat_map(i32::to_le_bytes).collect())
        }
        Value::Int8Tensor(t) => {
            ("int8", t.shape().to_vec(), t.to_vec().into_iter().flat_map(i8::to_le_bytes).collect())
        }
        Value::UInt8Tensor(t) => ("uint8", t.shape().to_vec(), t.to_vec()),
        other => return Err(format!("rten gives a result of {}", other.dtype()).into()),
    })
}

fn write(folder: &Path, names: &[String], results: Vec<Value>) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut listed = Vec::new();
    for (at, (name, result)) in names.iter().zip(results).enumerate() {
        let (dtype, shape, bytes) = stored(result)?;
        std::fs::write(folder.join(format!("{at}.bin")), bytes)?;
        listed.push(Listed { name: name.clone(), dtype: dtype.to_owned(), shape });
    }
    Ok(std::fs::write(folder.join("tensors.json"), serde_json::to_vec(&listed)?)?)
}

/// A model with its inputs, on one thread.
struct Loaded {
    model: Model,
    given: Vec<(NodeId, Value)>,
    options: RunOptions,
}

impl Loaded {
    fn of(path: &Path, given: Vec<(String, Value)>) -> Result<Loaded> {
        let model = Model::load_file(path)?;
        let given = given.into_iter().map(|(name, value)| Ok((model.node_id(&name)?, value))).collect::<Result<_>>()?;
        let options = RunOptions::default().with_thread_pool(Some(Arc::new(ThreadPool::with_num_threads(1))));
        Ok(Loaded { model, given, options })
    }

    fn run(&self) -> Result<Vec<Value>> {
        let given = self.given.iter().map(|(id, value)| (*id, value.as_view().into())).collect();
        Ok(self.model.run(given, self.model.output_ids(), Some(self.options.clone()))?)
    }

    fn names(&self) -> Vec<String> {
        let name =
            |id: &NodeId| self.model.node_info(*id).and_then(|node| node.name().map(str::to_owned)).unwrap_or_default();
        self.model.output_ids().iter().map(name).collect()
    }
}

fn first(model: &Path, inputs: &Path, results: &Path) -> Result<Loaded> {
    let loaded = Loaded::of(model, read(inputs)?)?;
    write(results, &loaded.names(), loaded.run()?)?;
    Ok(loaded)
}

fn serve(loaded: &Loaded) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let times: u32 = line?.trim().parse()?;
        let begin = Instant::now();
        for _ in 0..times {
            loaded.run()?;
        }
        println!("@{}", begin.elapsed().as_secs_f64() / f64::from(times.max(1)));
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, inputs, results] = arguments.iter().map(Path::new).collect::<Vec<_>>()[..] else {
        return Err("usage: relayout-rten MODEL.onnx INPUTS RESULTS".into());
    };
    match first(model, inputs, results) {
        Ok(loaded) => {
            println!("@ready");
            std::io::stdout().flush()?;
            serve(&loaded)
        }
        Err(problem) => {
            let said = problem.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            println!("@note {}", said.chars().take(300).collect::<String>());
            Ok(())
        }
    }
}
