//! The wire format of protobuf: fields of a message, one after the other.

use bytes::Bytes;

/// What a field holds.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    /// A number: varint, or the bits of a fixed one.
    Number(u64),
    /// Bytes: a string, a message, or packed numbers.
    Bytes(Bytes),
}

impl Field {
    /// The bytes, nothing for a number.
    pub(crate) fn bytes(self) -> Bytes {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => Bytes::new(),
        }
    }

    /// The number, zero for bytes.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Field::Number(number) => *number,
            Field::Bytes(_) => 0,
        }
    }

    pub(crate) fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

/// The fields of a message with their numbers; `None` if it is damaged.
pub(crate) fn fields(message: &Bytes) -> Option<Vec<(u32, Field)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < message.len() {
        let key = varint(message, &mut at)?;
        let field = match key & 7 {
            0 => Field::Number(varint(message, &mut at)?),
            1 => Field::Number(u64::from_le_bytes(fixed(message, &mut at)?)),
            5 => Field::Number(u64::from(u32::from_le_bytes(fixed(message, &mut at)?))),
            2 => {
                let length = usize::try_from(varint(message, &mut at)?).ok()?;
                let end = at.checked_add(length).filter(|end| *end <= message.len())?;
                let bytes = message.slice(at..end);
                at = end;
                Field::Bytes(bytes)
            }
            _ => return None,
        };
        found.push((u32::try_from(key >> 3).ok()?, field));
    }
    Some(found)
}

/// Numbers of a repeated field, packed or not.
pub(crate) fn varints(field: Field) -> Option<Vec<u64>> {
    let bytes = match field {
        Field::Number(number) => return Some(vec![number]),
        Field::Bytes(bytes) => bytes,
    };
    let (mut at, mut numbers) = (0, Vec::new());
    while at < bytes.len() {
        numbers.push(varint(&bytes, &mut at)?);
    }
    Some(numbers)
}

/// Fixed numbers of `N` bytes of a repeated field, packed or not, as little-endian bytes.
pub(crate) fn fixeds<const N: usize>(field: Field) -> Vec<u8> {
    match field {
        Field::Number(number) => number.to_le_bytes()[..N].to_vec(),
        Field::Bytes(bytes) => bytes.to_vec(),
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn fixed<const N: usize>(bytes: &[u8], at: &mut usize) -> Option<[u8; N]> {
    let end = at.checked_add(N)?;
    let found = bytes.get(*at..end)?.try_into().ok()?;
    *at = end;
    Some(found)
}
