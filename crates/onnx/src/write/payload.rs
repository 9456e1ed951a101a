//! Payloads that are made while they are written.
//!
//! A weight in a new layout need not exist before its bytes are due. The model holds a *ticket* in its place: a short `Bytes`
//! in `raw_data` that [`Payloads`] gave out and keeps a clone of. It is recognized by its address, never by its content, and
//! because the clone is kept, no other bytes can have that address. So a ticket can be set on any tensor, anywhere in the
//! model, when the tensor is made, and the model may be cloned or taken apart afterwards.
//!
//! A model with tickets is only meant for this crate's writer: prost alone would write the ticket's text, which no reader
//! accepts as data, because its length does not match the dims.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// Bytes of a tensor, made on demand.
pub trait PayloadSource: Send + Sync {
    /// Number of bytes, known beforehand.
    fn byte_length(&self) -> u64;

    /// Writes exactly [`byte_length`](Self::byte_length) bytes: elements as `raw_data` holds them. Called once for each
    /// tensor that holds the ticket; the same bytes each time.
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()>;

    /// The bytes in memory. A source that makes them as a whole anyway says so here: nobody copies them then.
    ///
    /// # Errors
    /// As of [`write_to`](Self::write_to).
    fn made(&self) -> io::Result<Bytes> {
        let mut made = Vec::with_capacity(self.byte_length() as usize);
        self.write_to(&mut made)?;
        Ok(made.into())
    }

    /// The bytes, if they are kept once they are made.
    ///
    /// # Errors
    /// As of [`write_to`](Self::write_to).
    fn kept(&self) -> Option<io::Result<Bytes>> {
        None
    }
}

/// The deferred payloads of a model.
#[derive(Default)]
pub struct Payloads {
    /// By address of the ticket. Looked up, never iterated: addresses are not the same in every run.
    sources: BTreeMap<usize, Deferred>,
}

struct Deferred {
    /// Keeps the address taken.
    ticket: Bytes,
    source: Arc<dyn PayloadSource>,
}

impl Payloads {
    /// No payloads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a source; answers the ticket to put into `raw_data`.
    pub fn defer(&mut self, source: impl PayloadSource + 'static) -> Bytes {
        let ticket = Bytes::from(TICKET.to_vec());
        let deferred = Deferred { ticket: ticket.clone(), source: Arc::new(source) };
        self.sources.insert(ticket.as_ptr().addr(), deferred);
        ticket
    }

    /// Takes a closure as a source: it writes `byte_length` bytes.
    pub fn defer_with<F>(&mut self, byte_length: u64, write: F) -> Bytes
    where
        F: Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    {
        self.defer(Closure { byte_length, write })
    }

    /// How many tickets were given out.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether no ticket was given out.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The source behind `raw`, if it is a ticket.
    pub fn get(&self, raw: &Bytes) -> Option<&dyn PayloadSource> {
        self.find(raw).map(AsRef::as_ref)
    }

    /// The source behind `raw`, shared, if it is a ticket.
    pub fn shared(&self, raw: &Bytes) -> Option<Arc<dyn PayloadSource>> {
        self.find(raw).cloned()
    }

    /// Keeps what is made: who asks for parts and then writes a file makes each payload once.
    pub fn keep(&mut self) {
        for deferred in self.sources.values_mut() {
            deferred.source = Arc::new(Kept { source: Arc::clone(&deferred.source), bytes: OnceLock::new() });
        }
    }

    /// Takes the bytes of the payload behind a ticket from here. They are not made again.
    pub(super) fn set_bytes(&mut self, ticket: &Bytes, bytes: Bytes) {
        if let Some(deferred) = self.sources.get_mut(&ticket.as_ptr().addr()) {
            deferred.source = Arc::new(Written(bytes));
        }
    }

    /// Takes over the tickets of another set.
    pub fn extend(&mut self, other: Payloads) {
        self.sources.extend(other.sources);
    }

    fn find(&self, raw: &Bytes) -> Option<&Arc<dyn PayloadSource>> {
        let deferred = self.sources.get(&raw.as_ptr().addr())?;
        (raw.len() == deferred.ticket.len()).then_some(&deferred.source)
    }
}

impl std::fmt::Debug for Payloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payloads").field("len", &self.len()).finish()
    }
}

const TICKET: &[u8] = b"this payload is made when the model is written by relayout";

struct Closure<F> {
    byte_length: u64,
    write: F,
}

impl<F: Fn(&mut dyn Write) -> io::Result<()> + Send + Sync> PayloadSource for Closure<F> {
    fn byte_length(&self) -> u64 {
        self.byte_length
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        (self.write)(out)
    }
}

/// A payload that is in a file.
struct Written(Bytes);

impl PayloadSource for Written {
    fn byte_length(&self) -> u64 {
        self.0.len() as u64
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.0)
    }

    fn made(&self) -> io::Result<Bytes> {
        Ok(self.0.clone())
    }
}

/// A payload that is kept once it was asked for as a whole.
struct Kept {
    source: Arc<dyn PayloadSource>,
    bytes: OnceLock<Bytes>,
}

impl PayloadSource for Kept {
    fn byte_length(&self) -> u64 {
        self.source.byte_length()
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.bytes.get() {
            Some(bytes) => out.write_all(bytes),
            None => self.source.write_to(out),
        }
    }

    fn kept(&self) -> Option<io::Result<Bytes>> {
        if let Some(bytes) = self.bytes.get() {
            return Some(Ok(bytes.clone()));
        }
        Some(self.source.made().map(|made| self.bytes.get_or_init(|| made).clone()))
    }
}
