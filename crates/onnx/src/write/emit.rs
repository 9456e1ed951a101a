//! Bytes out: buffered, straight from memory, from a payload's source, or from file to file by the kernel.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

use bytes::Bytes;
use prost::encoding::{self, WireType};

use super::encode::Sink;
use super::fields::model_proto;
use super::plan::{Payload, Plan};
use super::size::Sizer;
use crate::error::{Error, Result};
use crate::file::ModelFile;
use crate::proto::{ModelProto, TensorProto};

/// From this many bytes on a payload passes the buffer, and one that lies in an open file is copied by the kernel.
const LARGE: usize = 64 << 10;

/// An output and what went through it.
pub(super) struct Out<'a> {
    target: Target<'a>,
    /// Name for errors.
    name: String,
    input: Option<&'a ModelFile>,
    pub(super) written: Written,
}

/// What went through an output.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) bytes: u64,
    /// Of these, what the kernel copied from the input.
    pub(super) copied: u64,
    /// Tickets of payloads that were made, and the places of their bytes.
    pub(super) made: Vec<(Bytes, Range<u64>)>,
}

enum Target<'a> {
    File(BufWriter<&'a mut File>),
    Stream(BufWriter<&'a mut dyn Write>),
}

impl Target<'_> {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::File(writer) => writer,
            Self::Stream(writer) => writer,
        }
    }
}

impl<'a> Out<'a> {
    pub(super) fn file(file: &'a mut File, name: String, input: Option<&'a ModelFile>) -> Self {
        let target = Target::File(BufWriter::with_capacity(LARGE, file));
        Self { target, name, input, written: Written::default() }
    }

    pub(super) fn stream(stream: &'a mut dyn Write, name: String) -> Self {
        let target = Target::Stream(BufWriter::with_capacity(LARGE, stream));
        Self { target, name, input: None, written: Written::default() }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let done = self.target.writer().write_all(bytes);
        self.written.bytes += bytes.len() as u64;
        done.map_err(|source| self.error(source))
    }

    pub(super) fn zeros(&mut self, count: u64) -> Result<()> {
        let done = io::copy(&mut io::Read::take(io::repeat(0), count), self.target.writer());
        self.written.bytes += count;
        done.map(drop).map_err(|source| self.error(source))
    }

    pub(super) fn payload(&mut self, tensor: &TensorProto, payload: &Payload<'_>) -> Result<()> {
        match payload {
            Payload::Bytes(bytes) => self.bytes(bytes),
            Payload::Deferred(source) => {
                let mut exactly = Exactly { to: self.target.writer(), left: payload.len(), failed: false };
                let made = source.write_to(&mut exactly);
                let (left, failed) = (exactly.left, exactly.failed);
                let begin = self.written.bytes;
                self.written.bytes += payload.len();
                let ticket = tensor.raw_data.clone().unwrap_or_default();
                self.written.made.push((ticket, begin..self.written.bytes));
                match made {
                    Err(source) if failed => Err(self.error(source)),
                    Err(source) => Err(Error::Payload { tensor: tensor.name().to_owned(), source }),
                    Ok(()) if left == 0 => Ok(()),
                    Ok(()) => Err(Error::Payload {
                        tensor: tensor.name().to_owned(),
                        source: io::Error::other(format!("it ended {left} bytes early")),
                    }),
                }
            }
        }
    }

    fn bytes(&mut self, bytes: &Bytes) -> Result<()> {
        if bytes.len() >= LARGE && self.copy(bytes).map_err(|source| self.error(source))? {
            self.written.bytes += bytes.len() as u64;
            self.written.copied += bytes.len() as u64;
            return Ok(());
        }
        self.write(bytes)
    }

    /// Copies `bytes` from file to file, if both are files.
    fn copy(&mut self, bytes: &Bytes) -> io::Result<bool> {
        let origin = self.input.and_then(|input| input.origin_of(bytes));
        let (Target::File(writer), Some((from, offset))) = (&mut self.target, origin) else {
            return Ok(false);
        };
        writer.flush()?;
        from.copy_to(offset, bytes.len() as u64, writer.get_mut())
    }

    pub(super) fn finish(mut self) -> Result<Written> {
        let done = self.target.writer().flush();
        done.map_err(|source| self.error(source))?;
        Ok(self.written)
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Write { file: self.name.clone(), source }
    }
}

/// Passes at most `left` bytes on, and remembers whether the writer behind it failed.
struct Exactly<'a> {
    to: &'a mut dyn Write,
    left: u64,
    failed: bool,
}

impl Write for Exactly<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(io::Error::other("it has more bytes than it announced"));
        }
        let written = self.to.write(bytes).inspect_err(|error| {
            self.failed = error.kind() != io::ErrorKind::Interrupted;
        })?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a model as it is planned and sized.
pub(super) fn emit(model: &ModelProto, plan: &Plan<'_>, sizer: Sizer, mut out: Out<'_>) -> Result<Written> {
    model_proto(&mut Emitter::new(&mut out, sizer.sizes), plan, model)?;
    out.finish()
}

/// The second walk: writes, with the sizes that the first one noted.
struct Emitter<'a, 'b> {
    out: &'b mut Out<'a>,
    sizes: std::vec::IntoIter<u64>,
    scratch: Vec<u8>,
}

impl<'a, 'b> Emitter<'a, 'b> {
    fn new(out: &'b mut Out<'a>, sizes: Vec<u64>) -> Self {
        Self { out, sizes: sizes.into_iter(), scratch: Vec::new() }
    }

    fn header(&mut self, tag: u32, size: u64) -> Result<()> {
        self.scratch.clear();
        encoding::encode_key(tag, WireType::LengthDelimited, &mut self.scratch);
        encoding::encode_varint(size, &mut self.scratch);
        self.out.write(&self.scratch)
    }
}

impl Sink for Emitter<'_, '_> {
    fn leaf(&mut self, _: impl FnOnce() -> usize, encode: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.scratch.clear();
        encode(&mut self.scratch);
        self.out.write(&self.scratch)
    }

    fn message(&mut self, tag: u32, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let size = self.sizes.next().expect("the walk that sized this model entered the same messages");
        self.header(tag, size)?;
        body(self)
    }

    fn payload(&mut self, tag: u32, tensor: &TensorProto, payload: &Payload<'_>) -> Result<()> {
        self.header(tag, payload.len())?;
        self.out.payload(tensor, payload)
    }
}
