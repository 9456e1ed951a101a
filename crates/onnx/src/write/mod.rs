//! Models to files and streams.
//!
//! What is written is byte for byte what prost would encode, but never in one buffer: sizes first, then fields as they come,
//! weights straight from where they lie. A weight that is still a slice of the mapped input goes from file to file in the
//! kernel; one that [`Payloads`] defers is made as it is written. A file appears whole or not at all, and so does the data
//! file beside it; `pair.rs` says how the two stay together.
//!
//! What is absent: a file is not flushed to the disk unless asked (`sync`), and the permissions of a replaced file are not
//! kept.

mod emit;
mod encode;
#[rustfmt::skip]
mod fields;
mod options;
mod pair;
mod parts;
mod payload;
mod plan;
mod size;
mod survey;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;

pub use options::WriteOptions;
pub use parts::{Parts, split_model};
pub use payload::{PayloadSource, Payloads};

use relayout_fsio::{Destination, FileTarget, Mapped, Staged, destination, open_special};

use crate::error::{Error, Result};
use crate::file::ModelFile;
use crate::proto::ModelProto;
use emit::{Out, Written, emit};
use plan::{PROTOBUF_LIMIT, Plan};
use size::Sizer;

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteStats {
    /// Bytes of the model.
    pub model_bytes: u64,
    /// Bytes of the data file; 0 without one.
    pub data_bytes: u64,
    /// Bytes of both that the kernel copied from the input.
    pub copied_bytes: u64,
    /// The data file, if one was written.
    pub data_path: Option<PathBuf>,
}

/// Writes `model` to the file `path`, and what does not fit to `<path>.data`. A data file never takes another's place: where one
/// with other bytes is there, the new one is `<path>.1.data`, and so on, and the old one goes when the model that refers to it
/// has been replaced. So model and data are always those of one call, whenever the process ends. On an error both are as they
/// were. A device or a pipe is written to as a stream.
pub fn write_model(model: &ModelProto, path: impl AsRef<Path>, options: &WriteOptions<'_>) -> Result<WriteStats> {
    write_pair(model, path.as_ref(), options, || ())
}

/// Writes as [`write_model`] does; `between` is called when the data file is in its place and the model is not.
fn write_pair(
    model: &ModelProto,
    path: &Path,
    options: &WriteOptions<'_>,
    between: impl FnOnce(),
) -> Result<WriteStats> {
    let Destination::File(target) = destination(path)? else {
        return write_model_to(model, &mut open_special(path)?, options);
    };
    staged(model, &target, options, false)?.put(between)
}

/// Writes `model` as [`write_model`] does, but beside its place: [`StagedModel::commit`] puts it there. `None` for a device or a pipe,
/// where nothing can be beside.
///
/// # Errors
/// As of [`write_model`].
pub fn stage_model(
    model: &ModelProto,
    path: impl AsRef<Path>,
    options: &WriteOptions<'_>,
) -> Result<Option<StagedModel>> {
    match destination(path.as_ref())? {
        Destination::File(target) => Ok(Some(staged(model, &target, options, true)?)),
        _ => Ok(None),
    }
}

/// A model that is written, and not in its place yet. It goes if it is dropped.
#[derive(Debug)]
pub struct StagedModel {
    data: Option<Staged>,
    model: Staged,
    /// Tickets of payloads, and their bytes where they are in the files.
    made: Vec<(Bytes, Bytes)>,
    stats: WriteStats,
    sync: bool,
    /// Data files that go once it is in its place.
    superseded: Vec<PathBuf>,
}

impl StagedModel {
    /// Whether this is where it goes.
    pub fn is_for(&self, path: &Path) -> bool {
        matches!(destination(path), Ok(Destination::File(target)) if target.path == self.model.path())
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// [`Error::Write`]; what is there stays then.
    pub fn commit(self) -> Result<WriteStats> {
        self.put(|| ())
    }

    fn put(self, between: impl FnOnce()) -> Result<WriteStats> {
        pair::commit(self.data, self.model, self.sync, between)?;
        for path in self.superseded {
            // A file that can't be removed does no harm.
            let _ = std::fs::remove_file(path);
        }
        Ok(self.stats)
    }

    /// Has payloads take their bytes from where this model has them. They are not made again.
    pub fn share_with(&self, payloads: &mut Payloads) {
        for (ticket, bytes) in &self.made {
            payloads.set_bytes(ticket, bytes.clone());
        }
    }
}

/// Writes model and data beside their places. `maps` says whether the bytes of payloads are wanted.
fn staged(model: &ModelProto, target: &FileTarget, options: &WriteOptions<'_>, maps: bool) -> Result<StagedModel> {
    // If the input was cut off, writing its bytes fails; the output is not to blame.
    let blame = |error: Error| options.check_unchanged().err().unwrap_or(error);
    let (mut plan, mut sizer) = survey::plan_for_file(model, target, options)?;
    let (mut stats, mut made) = (WriteStats::default(), Vec::new());
    let data = write_data(&plan, target, options).map_err(blame)?;
    if let Some((data, written)) = &data {
        (stats.data_bytes, stats.copied_bytes) = (written.bytes, written.copied);
        made.extend(if maps { mapped(data, written)? } else { Vec::new() });
    }
    let data = pair::place(data.map(|(data, _)| data), &mut plan, target)?;
    if plan.has_data() {
        sizer = Sizer::measure(model, &plan)?;
        if sizer.total > PROTOBUF_LIMIT {
            return Err(Error::TooLarge { bytes: sizer.total, fix: "give the output a shorter name" });
        }
        stats.data_path = Some(target.dir.join(&plan.data_name));
    }

    let mut staged = Staged::new(target.path.clone())?;
    let name = staged.path().display().to_string();
    let written = emit(model, &plan, sizer, Out::file(staged.file(), name, options.input)).map_err(blame)?;
    stats.model_bytes = written.bytes;
    stats.copied_bytes += written.copied;
    made.extend(if maps { mapped(&staged, &written)? } else { Vec::new() });
    if options.sync {
        staged.sync()?;
    }
    options.check_unchanged()?;
    let superseded = pair::superseded(model, &plan, target, options);
    Ok(StagedModel { data, model: staged, made, stats, sync: options.sync, superseded })
}

/// Tickets of payloads with their bytes in a file.
fn mapped(file: &Staged, written: &Written) -> Result<Vec<(Bytes, Bytes)>> {
    if written.made.is_empty() {
        return Ok(Vec::new());
    }
    let file = file.map()?;
    let bytes = |range: &Range<u64>| file.bytes().slice(range.start as usize..range.end as usize);
    Ok(written.made.iter().map(|(ticket, range)| (ticket.clone(), bytes(range))).collect())
}

/// Writes `model` to a stream. External data that is present goes into the model; a model of more than 2 GiB is an error.
pub fn write_model_to(model: &ModelProto, out: &mut dyn Write, options: &WriteOptions<'_>) -> Result<WriteStats> {
    let (plan, sizer) = survey::plan_for_stream(model, options)?;
    let written = emit(model, &plan, sizer, Out::stream(out, "the output".to_owned()));
    let written = written.map_err(|error| options.check_unchanged().err().unwrap_or(error))?;
    options.check_unchanged()?;
    Ok(WriteStats { model_bytes: written.bytes, ..WriteStats::default() })
}

/// How many bytes a model has with all its data, whether that lies in the model or beside it. Nothing is read or made for that.
///
/// # Errors
/// As of [`write_model_to`], but for models that are too large for a stream.
pub fn bytes_in_all(model: &ModelProto, options: &WriteOptions<'_>) -> Result<u64> {
    Ok(survey::plan_in_one(model, options)?.1.total)
}

fn write_data(plan: &Plan<'_>, target: &FileTarget, options: &WriteOptions<'_>) -> Result<Option<(Staged, Written)>> {
    if plan.data.is_empty() {
        return Ok(None);
    }
    let mut staged = Staged::new(target.dir.join(&plan.data_name))?;
    let name = staged.path().display().to_string();
    let mut out = Out::file(staged.file(), name, options.input);
    for run in &plan.data {
        out.zeros(run.offset - out.written.bytes)?;
        out.payload(run.tensor, &run.payload)?;
    }
    let written = out.finish()?;
    if options.sync {
        staged.sync()?;
    }
    Ok(Some((staged, written)))
}

/// Copies the bytes of `input` as they are, unknown fields and all; only the model, not its external data. If `path` is the
/// input itself, nothing is done.
pub fn copy_unchanged(input: &ModelFile, path: impl AsRef<Path>) -> Result<WriteStats> {
    copy(&input.source, input.mapped(), path.as_ref())
}

/// Copies the bytes of a file that was not opened as a model, and need not be one.
pub fn copy_file_unchanged(from: impl AsRef<Path>, path: impl AsRef<Path>) -> Result<WriteStats> {
    let from = Mapped::open(from.as_ref())?;
    copy(from.bytes(), Some(&from), path.as_ref())
}

fn copy(bytes: &[u8], from: Option<&Mapped>, path: &Path) -> Result<WriteStats> {
    let error = |source| Error::Write { file: path.display().to_string(), source };
    let check = || from.map_or(Ok(()), Mapped::check);
    let Destination::File(target) = destination(path)? else {
        open_special(path)?.write_all(bytes).map_err(error)?;
        check()?;
        return Ok(WriteStats { model_bytes: bytes.len() as u64, ..WriteStats::default() });
    };
    if from.is_some_and(|from| from.is_at(&target.path)) {
        return Ok(WriteStats::default());
    }
    let mut staged = Staged::new(target.path)?;
    let model_bytes = bytes.len() as u64;
    let by_kernel = from.map_or(Ok(false), |from| from.copy_to(0, model_bytes, staged.file())).map_err(error)?;
    if !by_kernel {
        staged.file().write_all(bytes).map_err(error)?;
    }
    let copied_bytes = if by_kernel { model_bytes } else { 0 };
    check()?;
    staged.commit()?;
    Ok(WriteStats { model_bytes, copied_bytes, ..WriteStats::default() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::proto::{GraphProto, TensorProto, tensor_proto::DataType};

    fn model(byte: u8, bytes: usize) -> ModelProto {
        let weight = TensorProto {
            name: Some("w".to_owned()),
            dims: vec![bytes as i64],
            data_type: Some(DataType::Uint8 as i32),
            raw_data: Some(vec![byte; bytes].into()),
            ..TensorProto::default()
        };
        let graph = GraphProto { initializer: vec![weight], ..GraphProto::default() };
        ModelProto { graph: Some(graph), ..ModelProto::default() }
    }

    fn weight(path: &Path) -> Vec<u8> {
        let model = ModelFile::open(path).unwrap();
        model.tensor_bytes(&model.proto.graph.as_ref().unwrap().initializer[0]).unwrap().to_vec()
    }

    #[test]
    fn a_process_that_ends_between_data_and_model_leaves_the_old_pair_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.onnx");
        let options = WriteOptions::default().inline_limit(100);
        let names = || {
            let mut names: Vec<String> =
                fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        for (byte, data) in [(1, "m.onnx.data"), (2, "m.onnx.1.data"), (2, "m.onnx.data"), (3, "m.onnx.1.data")] {
            let before = path.exists().then(|| weight(&path));
            let mut looked = false;
            let stats = write_pair(&model(byte, 5000), &path, &options, || {
                looked = true;
                assert_eq!(path.exists().then(|| weight(&path)), before);
            });
            assert!(looked);
            assert_eq!(weight(&path), [byte; 5000]);
            assert_eq!(stats.unwrap().data_path.unwrap().file_name().unwrap(), data);
            assert_eq!(names(), ["m.onnx", data], "{byte}");
        }
    }
}
