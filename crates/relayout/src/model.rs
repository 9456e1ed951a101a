//! An opened model: its file and its graph.

use crate::error::Error;
use crate::io::property;
use crate::target_metadata::NEEDS_KEY;
use bytes::Bytes;
use relayout_ir::dtype::DType;
use relayout_ir::graph::Graph;
use relayout_ir::model::Model as IrModel;
use relayout_ir::op::LAST_OPSET;
use relayout_onnx::export::{FreshError, fresh, piece};
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::interop::encode;
use relayout_onnx::reference::written_out;
use relayout_target_api::moves::moved;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An ONNX model. Weights stay where they are, in the mapped file.
#[derive(Debug)]
pub struct Model {
    pub(crate) file: Arc<ModelFile>,
    pub(crate) ir: IrModel,
    /// What was done to it since it was read, for reports.
    pub(crate) notes: Vec<String>,
}

impl Model {
    /// Opens a model file. External data is looked for beside it.
    ///
    /// # Errors
    /// [`Error`], naming the file and every problem found in it.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, Error> {
        let path = path.as_ref();
        let file = ModelFile::open(path)?;
        Model::from_file(file, &path.display().to_string())
    }

    /// Reads a model from memory; `dir` is the folder of its external data, if it has any.
    ///
    /// # Errors
    /// [`Error`].
    pub fn from_bytes(bytes: Bytes, dir: Option<PathBuf>) -> Result<Model, Error> {
        Model::from_file(ModelFile::from_bytes(bytes, dir)?, "the model")
    }

    /// Reads a model from memory, and its external data from `read`. `read` gets a location and returns everything that is stored
    /// there. It is called once for each location, in the order of the tensors. The location is spelled as in the model, is
    /// relative and has no `..`. [`std::io::ErrorKind::NotFound`] means that the data is missing: such a model can be looked at,
    /// but not written.
    ///
    /// A result that is written later has the data in it or beside it, as for any model with external data.
    ///
    /// ```
    /// # fn fetch(name: &str) -> std::io::Result<Vec<u8>> { std::fs::read(name) }
    /// # fn open(bytes: bytes::Bytes) -> Result<(), relayout::Error> {
    /// let model = relayout::Model::from_bytes_with(bytes, |location| Ok(fetch(location)?.into()))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error`]: an error of `read`, or an offset or length that does not fit what it gave, with the name of the tensor.
    pub fn from_bytes_with(bytes: Bytes, read: impl FnMut(&str) -> io::Result<Bytes>) -> Result<Model, Error> {
        Model::from_file(ModelFile::from_bytes_with(bytes, read)?, "the model")
    }

    /// Makes a model of a graph that does not come from a file, such as that of a [`GraphBuilder`](crate::GraphBuilder). Values
    /// are row-major.
    ///
    /// # Errors
    /// [`Error`] if the graph has something that can't be written: bodies, constants without bytes, inputs and outputs that are
    /// no tensors.
    pub fn of_graph(graph: &Graph) -> Result<Model, Error> {
        let bytes = fresh(graph).map_err(|e| match e {
            FreshError::File(e) => Error::File(e),
            FreshError::Export(e) => Error::Export(e),
        })?;
        Model::from_bytes(bytes.into(), None)
    }

    pub(crate) fn from_file(file: ModelFile, name: &str) -> Result<Model, Error> {
        let file = Arc::new(file);
        let ir = import(&file).map_err(|source| Error::Import { file: name.to_owned(), source })?;
        Ok(Model { file, ir, notes: Vec::new() })
    }

    /// The graph, functions and operator sets.
    pub fn ir(&self) -> &IrModel {
        &self.ir
    }

    /// What there is to say if its operator set is newer than the newest that this version knows.
    pub fn newer_opset(&self) -> Option<String> {
        let opset = self.ir.opsets.get("").copied().filter(|&opset| opset > LAST_OPSET)?;
        Some(format!(
            "the model uses opset {opset}, newer than {LAST_OPSET}, the newest that this version knows: no layout passes through \
             its standard operators"
        ))
    }

    /// The file it was read from.
    pub fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    /// What the metadata of the model says under this key. Files that relayout wrote have `relayout.target` and `relayout.version`,
    /// those for target `ort-cpu` also `relayout.block`, and `relayout.needs` where older releases of the
    /// runtime do not run them.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        property(&self.file, key)
    }

    /// The first release of its runtime that runs the model, such as `ONNX Runtime 1.30`, if it says that older ones do not.
    pub fn needs(&self) -> Option<&str> {
        self.metadata(NEEDS_KEY)
    }

    /// Bytes of weights that the model has in other files.
    pub fn external_bytes(&self) -> u64 {
        self.file.external_bytes()
    }

    /// The data that the model has in other files, whole, by location, as far as it is there.
    pub fn external_data(&self) -> BTreeMap<String, Bytes> {
        self.file.beside()
    }

    /// Its name in messages.
    pub(crate) fn label(&self) -> String {
        self.path().map_or_else(|| "the model".to_owned(), |path| path.display().to_string())
    }

    /// The bytes of the model file.
    pub fn bytes(&self) -> &[u8] {
        &self.file.source
    }

    /// The bytes of a model of the same results in which each op that ONNX Runtime's CPU provider has no kernel of stands as ops that it
    /// has: `GroupNorm` and `SkipGroupNorm` of com.microsoft, and `MultiHeadAttention` of halves. Data in other files stays there. `None`
    /// if it has no such op.
    ///
    /// # Errors
    /// [`Error`] of a model with more than 2 GiB of data in its file.
    pub fn for_cpu_provider(&self) -> Result<Option<Bytes>, Error> {
        let typed = self.inferred();
        let graph = &typed.graph;
        let known = |name: &str| graph.value(graph.by_name(name)?).ty.dtype().map(DType::to_onnx);
        written_out(&self.file.proto, &known).map(|proto| encode(&proto)).transpose().map_err(Error::File)
    }

    /// The nodes of the main graph that make a value, as a model with this value as its output. `given` are the values that become its
    /// inputs: the name of the input and that of the value. Constants stay what they are.
    ///
    /// # Errors
    /// [`Error`] if a type is not known, if data beside the file is missing, or if more than 2 GiB of data would be in the file.
    pub fn piece(&self, given: &[(String, String)], value: &str) -> Result<Bytes, Error> {
        let proto = piece(&self.file, &self.inferred().graph, given, value)?;
        encode(&proto).map_err(Error::File)
    }

    /// The model as text, types and shapes inferred and nothing else done.
    pub fn print(&self) -> String {
        self.inferred().graph.to_string()
    }

    /// The model as JSON: [`relayout_ir::text::GraphJson`].
    ///
    /// # Errors
    /// What serialization reports, which for this type is nothing.
    pub fn print_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&relayout_ir::text::GraphJson::from(&self.inferred().graph))
    }

    /// The model as a drawing for Graphviz: [`dot`].
    pub fn print_dot(&self) -> String {
        dot(&self.inferred().graph)
    }

    fn inferred(&self) -> IrModel {
        let mut model = self.ir.clone();
        let mut unknowns = model.unknowns;
        // Problems of a model are `optimize`'s to report; printing shows what can be known.
        let _ = relayout_ir::op::infer::infer_graph(&mut model.graph, &mut unknowns);
        model
    }
}

/// A graph and its bodies in the language of Graphviz: nodes by op and name, those that move data coloured; edges by value, type and
/// layout.
pub fn dot(graph: &Graph) -> String {
    relayout_ir::text::dot(graph, &|graph, n| moved(graph, n).is_some())
}
