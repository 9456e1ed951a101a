//! The file of weights: safetensors, written tensor by tensor, looked into without its data being read.

use super::error::BundleError;
use super::schema::FileEntry;
use relayout_fsio::Inside;
use relayout_ir::dim::element_count;
use relayout_ir::dtype::DType;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::TensorProto;
use relayout_onnx::write::Payloads;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Key and value of the metadata that says who wrote the file.
const FORMAT: (&str, &str) = ("format", "relayout");

/// Bytes before the header: its length.
const LENGTH: u64 = 8;

/// Longest header that readers of the format accept.
const LONGEST_HEADER: u64 = 100_000_000;

/// Bytes that are collected before the file gets them.
const BUFFER: usize = 256 << 10;

/// A tensor on its way into the file.
pub(super) struct Weight<'p> {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// Extents as they are stored.
    pub(super) dims: Vec<u64>,
    pub(super) tensor: &'p TensorProto,
}

/// Where tensors have their data: in the model, or where a pass left a ticket.
pub(super) struct Data<'p> {
    pub(super) file: &'p ModelFile,
    pub(super) payloads: Vec<&'p Payloads>,
}

impl Data<'_> {
    /// Writes the bytes of a tensor; how many.
    fn write(&self, weight: &Weight<'_>, out: &mut dyn Write) -> Result<u64, String> {
        let ticket = weight.tensor.raw_data.as_ref();
        let deferred = ticket.and_then(|raw| self.payloads.iter().find_map(|payloads| payloads.get(raw)));
        if let Some(source) = deferred {
            source.write_to(out).map_err(|e| e.to_string())?;
            return Ok(source.byte_length());
        }
        let bytes = self.file.tensor_bytes(weight.tensor).map_err(|e| e.to_string())?;
        out.write_all(&bytes).map_err(|e| e.to_string())?;
        Ok(bytes.len() as u64)
    }
}

/// The element type that the format has for ours; `None` where it has none, or packs elements otherwise.
fn known(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::F8E4M3FN => Dtype::F8_E4M3,
        DType::F8E8M0 => Dtype::F8_E8M0,
        DType::F8E4M3FNUZ => Dtype::F8_E4M3FNUZ,
        DType::F8E5M2FNUZ => Dtype::F8_E5M2FNUZ,
        DType::I16 => Dtype::I16,
        DType::U16 => Dtype::U16,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
        DType::F32 => Dtype::F32,
        DType::C64 => Dtype::C64,
        DType::F64 => Dtype::F64,
        DType::I64 => Dtype::I64,
        DType::U64 => Dtype::U64,
        _ => return None,
    })
}

/// How a tensor of this type and these extents stands in the file: elements that the format does not have are bytes in a row.
pub(super) fn as_stored(dtype: DType, dims: &[u64]) -> Result<(Dtype, Vec<usize>), String> {
    let too_large = || format!("{dims:?} elements of {dtype} are more than a tensor has");
    let size = |n: u64| usize::try_from(n).map_err(|_| too_large());
    if let Some(known) = known(dtype) {
        return Ok((known, dims.iter().map(|&n| size(n)).collect::<Result<_, _>>()?));
    }
    let elems = element_count(dims.iter().copied()).ok_or_else(too_large)?;
    let bytes = dtype.bytes(elems).ok_or_else(|| format!("a bundle has no place for elements of type {dtype}"))?;
    Ok((Dtype::U8, vec![size(bytes)?]))
}

/// Bytes of a tensor of the file.
fn size_of(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    let bits = element_count(shape.iter().map(|&n| n as u64))?.checked_mul(dtype.bitsize() as u64)?;
    usize::try_from(bits / 8).ok()
}

/// Writes the file: the tensors in the order that the format asks for, each made when it is due.
pub(super) fn write(
    place: &Path,
    path: &str,
    weights: &[Weight<'_>],
    data: &Data<'_>,
) -> Result<FileEntry, BundleError> {
    let cannot_express =
        |name: &str, why: String| BundleError::CannotExpress { what: format!("constant `{name}`"), why };
    let mut order: Vec<(Dtype, Vec<usize>, &Weight<'_>)> = Vec::with_capacity(weights.len());
    for weight in weights {
        let (dtype, shape) = as_stored(weight.dtype, &weight.dims).map_err(|why| cannot_express(&weight.name, why))?;
        order.push((dtype, shape, weight));
    }
    order.sort_by(|a, b| (Reverse(a.0), &a.2.name).cmp(&(Reverse(b.0), &b.2.name)));
    let (mut infos, mut offset) = (Vec::with_capacity(order.len()), 0_usize);
    for (dtype, shape, weight) in &order {
        let end = size_of(*dtype, shape).and_then(|size| offset.checked_add(size));
        let end = end.ok_or_else(|| cannot_express(&weight.name, "it is larger than a file can be".to_owned()))?;
        let info = TensorInfo { dtype: *dtype, shape: shape.clone(), data_offsets: (offset, end) };
        infos.push((weight.name.clone(), info));
        offset = end;
    }
    let header = header(infos).map_err(|why| BundleError::Broken { path: place.join(path), why })?;
    let failed = |source: io::Error| BundleError::Write { path: place.join(path), source };
    let mut out = Hashed::create(&place.join(path)).map_err(failed)?;
    out.write_all(&(header.len() as u64).to_le_bytes()).and_then(|()| out.write_all(&header)).map_err(failed)?;
    for (_, _, weight) in &order {
        let before = out.bytes;
        let length = data.write(weight, &mut out).map_err(|why| cannot_express(&weight.name, why))?;
        if out.bytes - before != length {
            return Err(cannot_express(
                &weight.name,
                format!("it has {} bytes in place of {length}", out.bytes - before),
            ));
        }
    }
    out.finish(path).map_err(failed)
}

/// The header, filled up with blanks so that data begins at a multiple of eight bytes.
fn header(infos: Vec<(String, TensorInfo)>) -> Result<Vec<u8>, String> {
    let metadata = HashMap::from([(FORMAT.0.to_owned(), FORMAT.1.to_owned())]);
    let metadata = Metadata::new(Some(metadata), infos).map_err(|e| e.to_string())?;
    let mut header = serde_json::to_vec(&metadata).map_err(|e| e.to_string())?;
    header.resize(header.len().next_multiple_of(LENGTH as usize), b' ');
    if header.len() as u64 > LONGEST_HEADER {
        return Err("there are more constants than the header of a file of weights can list".to_owned());
    }
    Ok(header)
}

/// A file of weights, opened.
#[derive(Debug)]
pub(super) struct Weights {
    folder: Inside,
    path: String,
    /// Where data begins.
    start: u64,
    metadata: Metadata,
}

impl Weights {
    /// Reads the header and checks that it and the file's size agree.
    pub(super) fn open(folder: Inside, path: &str) -> Result<Weights, String> {
        let read = |e: io::Error| format!("cannot read it: {e}");
        let mut file = folder.open(path).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        let mut length = [0; LENGTH as usize];
        file.read_exact(&mut length).map_err(|_| "it has no header".to_owned())?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER || length > size.saturating_sub(LENGTH) {
            return Err(format!("its header of {length} bytes is longer than the file, or than any may be"));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(read)?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| format!("its header is damaged: {e}"))?;
        let start = LENGTH + length;
        // What the header says may be beyond any number of bytes.
        let end = start.checked_add(metadata.data_len() as u64);
        if end != Some(size) {
            let end = end.map_or_else(|| "more than any file has".to_owned(), |end| format!("{end} bytes"));
            return Err(format!("its header speaks of {end}, and it has {size}"));
        }
        let format = metadata.metadata().as_ref().and_then(|metadata| metadata.get(FORMAT.0));
        if format.map(String::as_str) != Some(FORMAT.1) {
            return Err(format!("its metadata do not say that `{}` is `{}`", FORMAT.0, FORMAT.1));
        }
        Ok(Weights { folder, path: path.to_owned(), start, metadata })
    }

    /// Names of the tensors, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = self.metadata.offset_keys();
        names.sort();
        names
    }

    pub(super) fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.metadata.info(name)
    }

    /// The bytes of a tensor.
    pub(super) fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        let info = self.info(name).ok_or_else(|| format!("there is no constant `{name}`"))?;
        let (from, to) = info.data_offsets;
        let read = |e: io::Error| format!("cannot read constant `{name}`: {e}");
        let mut file = self.folder.open(&self.path).map_err(read)?;
        // Both are within the file, which `open` compared with the end of the last tensor.
        file.seek(SeekFrom::Start(self.start + from as u64)).map_err(read)?;
        let mut bytes = vec![0; to - from];
        file.read_exact(&mut bytes).map_err(read)?;
        Ok(bytes)
    }
}

/// A file that is digested while it is written.
pub(super) struct Hashed {
    file: BufWriter<File>,
    digest: Sha256,
    bytes: u64,
}

impl Hashed {
    pub(super) fn create(path: &Path) -> io::Result<Hashed> {
        let file = BufWriter::with_capacity(BUFFER, File::create_new(path)?);
        Ok(Hashed { file, digest: Sha256::new(), bytes: 0 })
    }

    /// The file's entry in the manifest, under this path.
    pub(super) fn finish(mut self, path: &str) -> io::Result<FileEntry> {
        self.file.flush()?;
        Ok(FileEntry { path: path.to_owned(), bytes: self.bytes, sha256: hex(self.digest) })
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A digest in hexadecimal.
fn hex(digest: Sha256) -> String {
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Size and digest of a file.
pub(super) fn digest_of(mut file: File) -> io::Result<(u64, String)> {
    let (mut digest, mut size) = (Sha256::new(), 0);
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((size, hex(digest)));
        }
        digest.update(buffer.get(..read).unwrap_or_default());
        size += read as u64;
    }
}
