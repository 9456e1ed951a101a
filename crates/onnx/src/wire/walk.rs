//! The walk itself: one loop over a stack of open messages.

use std::fmt::Write as _;

use super::{FieldDesc, Kind, Label, MAX_DEPTH, MAX_LISTED_UNKNOWN, MessageDesc, UnknownField, WireType, schema};

/// What a walk over a sound file found.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The first [`MAX_LISTED_UNKNOWN`] unknown fields, in file order.
    pub(crate) unknown: Vec<UnknownField>,
    /// All unknown fields, the unlisted ones too.
    pub(crate) unknown_count: u64,
    /// Bytes that the decoded messages occupy, without the payloads that stay slices of the file.
    pub(crate) decoded_bytes: u64,
}

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) fault: Fault,
    /// Offset of the damaged field's key.
    pub(crate) offset: u64,
    /// The field or message, such as `graph.node[3].name`.
    pub(crate) path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A field wants more bytes than the file has.
    CutOff {
        wanted: u64,
        left: u64,
    },
    /// A field wants more bytes than the message around it has, though the file goes on.
    Overrun {
        wanted: u64,
        left: u64,
    },
    Varint,
    Key,
    WireType {
        found: WireType,
        expected: WireType,
    },
    /// A packed run whose length is not a multiple of its element.
    Packed {
        length: u64,
        element: u64,
    },
    Utf8,
    Group,
    TooDeep,
}

/// Reads `bytes` as a `ModelProto`.
pub(crate) fn walk(bytes: &[u8]) -> Result<Walk, Malformed> {
    let mut walker = Walker {
        bytes,
        pos: 0,
        field_start: 0,
        frames: Vec::new(),
        counts: Vec::new(),
        found: Walk { unknown: Vec::new(), unknown_count: 0, decoded_bytes: 0 },
    };
    walker.push(Inside::Message(&schema::MODEL_PROTO), None, 0, bytes.len());
    match walker.run() {
        Ok(()) => Ok(walker.found),
        Err((fault, field)) => Err(Malformed { fault, offset: walker.field_start as u64, path: walker.path(field) }),
    }
}

/// A fault and, if it is known, the field of the innermost message that has it.
type Stop = (Fault, Option<&'static FieldDesc>);

#[derive(Clone, Copy)]
enum Inside {
    Message(&'static MessageDesc),
    /// A group of this field number; unknown by definition.
    Group(u32),
}

struct Frame {
    inside: Inside,
    /// The field of the frame below that opened this one, and which of its occurrences.
    field: Option<&'static FieldDesc>,
    index: u32,
    end: usize,
    /// Where this frame's occurrence counts begin in `counts`.
    counts_at: usize,
}

struct Walker<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Start of the key of the field being read.
    field_start: usize,
    frames: Vec<Frame>,
    counts: Vec<u32>,
    found: Walk,
}

impl Walker<'_> {
    fn push(&mut self, inside: Inside, field: Option<&'static FieldDesc>, index: u32, end: usize) {
        let counts_at = self.counts.len();
        if let Inside::Message(desc) = inside {
            self.counts.resize(counts_at + desc.fields.len(), 0);
        }
        self.frames.push(Frame { inside, field, index, end, counts_at });
    }

    fn pop(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.counts.truncate(frame.counts_at);
        }
    }

    fn run(&mut self) -> Result<(), Stop> {
        while let Some(frame) = self.frames.last() {
            let (inside, end) = (frame.inside, frame.end);
            if self.pos < end {
                self.field(inside, end)?;
            } else if let Inside::Message(_) = inside {
                self.pop();
            } else {
                return Err((Fault::Group, None));
            }
        }
        Ok(())
    }

    /// Reads one field of the innermost frame: passes over a value, or opens or closes a frame.
    fn field(&mut self, inside: Inside, end: usize) -> Result<(), Stop> {
        self.field_start = self.pos;
        let (number, wire) = self.key(end).map_err(|fault| (fault, None))?;
        match (wire, inside) {
            (Some(wire), Inside::Message(desc)) => {
                if let Some((slot, field)) = desc.field(number) {
                    return self.known(slot, field, wire, end).map_err(|fault| (fault, Some(field)));
                }
                self.report(desc, number, wire);
                self.unknown(number, wire, end).map_err(|fault| (fault, None))
            }
            (Some(wire), Inside::Group(_)) => self.unknown(number, wire, end).map_err(|fault| (fault, None)),
            (None, Inside::Group(open)) if open == number => {
                self.pop();
                Ok(())
            }
            (None, _) => Err((Fault::Group, None)),
        }
    }

    fn known(&mut self, slot: usize, field: &'static FieldDesc, wire: WireType, end: usize) -> Result<(), Fault> {
        let index = self.count(slot);
        let expected = field.kind.wire_type();
        let many = field.label != Label::Optional;
        if many && wire == WireType::Len && expected != WireType::Len {
            return self.packed(field.kind, end);
        }
        if wire != expected {
            return Err(Fault::WireType { found: wire, expected });
        }
        if many {
            self.found.decoded_bytes += field.kind.size() as u64;
        }
        match field.kind {
            Kind::Message(desc) => {
                let end = self.length(end)?;
                if self.frames.len() > MAX_DEPTH {
                    return Err(Fault::TooDeep);
                }
                if !many {
                    self.found.decoded_bytes += desc.size as u64;
                }
                self.push(Inside::Message(desc), Some(field), index, end);
            }
            Kind::Str => {
                let end = self.length(end)?;
                let text = self.bytes.get(self.pos..end).unwrap_or_default();
                std::str::from_utf8(text).map_err(|_| Fault::Utf8)?;
                self.found.decoded_bytes += text.len() as u64;
                self.pos = end;
            }
            _ => self.skip(wire, end)?,
        }
        Ok(())
    }

    /// Counts an occurrence of the innermost message's field in `slot`; answers how many came before.
    fn count(&mut self, slot: usize) -> u32 {
        let at = self.frames.last().map_or(0, |frame| frame.counts_at) + slot;
        self.counts.get_mut(at).map_or(0, |count| {
            let before = *count;
            *count = before.saturating_add(1);
            before
        })
    }

    fn packed(&mut self, kind: Kind, end: usize) -> Result<(), Fault> {
        let end = self.length(end)?;
        let length = (end - self.pos) as u64;
        let element = kind.size() as u64;
        if kind.wire_type() == WireType::Varint {
            while self.pos < end {
                self.varint(end)?;
                self.found.decoded_bytes += element;
            }
        } else if length.is_multiple_of(element) {
            self.found.decoded_bytes += length;
            self.pos = end;
        } else {
            return Err(Fault::Packed { length, element });
        }
        Ok(())
    }

    /// Passes over the value of an unknown field, opening a frame if it is a group.
    fn unknown(&mut self, number: u32, wire: WireType, end: usize) -> Result<(), Fault> {
        if self.frames.len() > MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        if wire == WireType::Group {
            self.push(Inside::Group(number), None, 0, end);
            return Ok(());
        }
        self.skip(wire, end)
    }

    /// Passes over a value that opens no frame.
    fn skip(&mut self, wire: WireType, end: usize) -> Result<(), Fault> {
        match wire {
            WireType::Varint => {
                self.varint(end)?;
            }
            WireType::Fixed64 => self.pos = self.after(8, end)?,
            WireType::Fixed32 => self.pos = self.after(4, end)?,
            WireType::Len => self.pos = self.length(end)?,
            WireType::Group => return Err(Fault::Group),
        }
        Ok(())
    }

    /// Reads a key: field number and wire type, the latter `None` for the end of a group.
    fn key(&mut self, end: usize) -> Result<(u32, Option<WireType>), Fault> {
        let key = u32::try_from(self.varint(end)?).map_err(|_| Fault::Key)?;
        let wire = match key & 7 {
            0 => Some(WireType::Varint),
            1 => Some(WireType::Fixed64),
            2 => Some(WireType::Len),
            3 => Some(WireType::Group),
            4 => None,
            5 => Some(WireType::Fixed32),
            _ => return Err(Fault::Key),
        };
        if key >> 3 == 0 { Err(Fault::Key) } else { Ok((key >> 3, wire)) }
    }

    /// Reads a length; answers where the run that it announces ends.
    fn length(&mut self, end: usize) -> Result<usize, Fault> {
        let length = self.varint(end)?;
        self.after(length, end)
    }

    fn after(&self, wanted: u64, end: usize) -> Result<usize, Fault> {
        let left = (end - self.pos) as u64;
        if wanted <= left {
            return Ok(self.pos + wanted as usize);
        }
        let in_file = (self.bytes.len() - self.pos) as u64;
        Err(if wanted > in_file { Fault::CutOff { wanted, left: in_file } } else { Fault::Overrun { wanted, left } })
    }

    fn varint(&mut self, end: usize) -> Result<u64, Fault> {
        let mut value = 0u64;
        for shift in 0..10 {
            let here = if self.pos < end { self.bytes.get(self.pos) } else { None };
            let Some(&byte) = here else {
                return Err(if end == self.bytes.len() {
                    Fault::CutOff { wanted: 1, left: 0 }
                } else {
                    Fault::Overrun { wanted: 1, left: 0 }
                });
            };
            self.pos += 1;
            value |= u64::from(byte & 0x7f) << (7 * shift);
            if byte < 0x80 {
                return if shift == 9 && byte > 1 { Err(Fault::Varint) } else { Ok(value) };
            }
        }
        Err(Fault::Varint)
    }

    fn report(&mut self, desc: &MessageDesc, number: u32, wire_type: WireType) {
        self.found.unknown_count += 1;
        if self.found.unknown.len() < MAX_LISTED_UNKNOWN {
            let path = self.path(None);
            let offset = self.field_start as u64;
            self.found.unknown.push(UnknownField { path, message: desc.name, number, wire_type, offset });
        }
    }

    /// Spells the open messages, and `field` of the innermost one if it is given.
    fn path(&self, field: Option<&'static FieldDesc>) -> String {
        let opened = self.frames.iter().filter_map(|frame| frame.field.map(|field| (field, Some(frame.index))));
        let mut path = String::new();
        for (field, index) in opened.chain(field.map(|field| (field, None))) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(field.name);
            if let (Label::Repeated, Some(index)) = (field.label, index) {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
            }
        }
        if path.is_empty() { "model".to_owned() } else { path }
    }
}
