//! Sizes that are written into a file, so that its inputs no longer leave them open.

use super::{check_names, place_of};
use crate::error::Error;
use crate::model::Model;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::tensor_shape_proto::{Dimension, dimension::Value as Extent};
use relayout_onnx::proto::{GraphProto, ValueInfoProto, type_proto};
use relayout_onnx::write::{WriteOptions, write_model_to};
use std::collections::BTreeMap;
use std::io;

impl Model {
    /// The same model with numbers in the place of open dims: where a symbol has a size, in all inputs, outputs and declared values of the
    /// main graph; where an axis has none, in that input. A report of what is made of it says which declarations changed. External data
    /// stays where it is.
    ///
    /// # Errors
    /// [`Error::UnknownDim`] for a name that is none of an open dim; [`Error`] if the model is too large to be held in memory again.
    pub fn with_sizes(&self, sizes: &BTreeMap<String, i64>) -> Result<Model, Error> {
        check_names(&self.ir.graph, sizes.keys())?;
        let mut proto = self.file.proto.clone();
        let changed = proto.graph.as_mut().map(|graph| fix(graph, &self.symbols(sizes))).unwrap_or_default();
        let mut bytes = Vec::new();
        // Without its input, references to external data are written as they are.
        write_model_to(&proto, &mut bytes, &WriteOptions::default())?;
        let file = if let Some(dir) = self.file.dir() {
            ModelFile::from_bytes(bytes.into(), Some(dir.to_path_buf()))?
        } else {
            // What lay beside a model in memory is given on.
            let beside = self.file.beside();
            let read = |location: &str| beside.get(location).cloned().ok_or(io::ErrorKind::NotFound);
            ModelFile::from_bytes_with(bytes.into(), |location| Ok(read(location)?))?
        };
        let mut model = Model::from_file(file, &self.label())?;
        if !changed.is_empty() {
            model.notes.push(format!("sizes were written into the file: {}", changed.join(", ")));
        }
        Ok(model)
    }

    /// The sizes with symbols by their names, however callers named them.
    fn symbols(&self, sizes: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
        let graph = &self.ir.graph;
        let mut named = sizes.clone();
        for (v, axis, dim) in super::axes(graph) {
            if let (Some(symbol), Some(&size)) = (dim.as_symbol(), sizes.get(&place_of(graph, v, axis))) {
                named.entry(symbol.to_owned()).or_insert(size);
            }
        }
        named
    }
}

/// Sets the sizes; the declarations that changed, each as it is now.
fn fix(graph: &mut GraphProto, sizes: &BTreeMap<String, i64>) -> Vec<String> {
    let mut changed = Vec::new();
    for (side, infos) in [("input", &mut graph.input), ("output", &mut graph.output), ("value", &mut graph.value_info)]
    {
        for info in infos {
            if fix_one(info, side == "input", sizes) {
                let dims = spelled(info);
                changed.push(format!("{side} `{}` {dims}", info.name.as_deref().unwrap_or_default()));
            }
        }
    }
    // Of values inside the graph it is enough to say how many.
    let inner = changed.iter().filter(|text| text.starts_with("value ")).count();
    changed.retain(|text| !text.starts_with("value "));
    if inner > 0 {
        changed.push(format!("{inner} values"));
    }
    changed
}

fn dims(info: &mut ValueInfoProto) -> Option<&mut Vec<Dimension>> {
    match info.r#type.as_mut()?.value.as_mut()? {
        type_proto::Value::TensorType(tensor) => Some(&mut tensor.shape.as_mut()?.dim),
        _ => None,
    }
}

fn fix_one(info: &mut ValueInfoProto, is_input: bool, sizes: &BTreeMap<String, i64>) -> bool {
    let name = info.name.clone().unwrap_or_default();
    let mut changed = false;
    for (axis, dim) in dims(info).into_iter().flatten().enumerate() {
        let size = match &dim.value {
            Some(Extent::DimParam(symbol)) if !symbol.is_empty() => sizes.get(symbol),
            Some(Extent::DimValue(0..)) => None,
            _ if is_input => sizes.get(&format!("{name}.{axis}")),
            _ => None,
        };
        if let Some(&size) = size {
            dim.value = Some(Extent::DimValue(size));
            changed = true;
        }
    }
    changed
}

/// The dims of a declaration, as in `[1,3,H,?]`.
fn spelled(info: &mut ValueInfoProto) -> String {
    let one = |dim: &Dimension| match &dim.value {
        Some(Extent::DimValue(size @ 0..)) => size.to_string(),
        Some(Extent::DimParam(symbol)) if !symbol.is_empty() => symbol.clone(),
        _ => "?".to_owned(),
    };
    format!("[{}]", dims(info).into_iter().flatten().map(|dim| one(dim)).collect::<Vec<_>>().join(","))
}
