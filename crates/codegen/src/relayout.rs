//! Moving a tensor from one order to another, with padding written and padding left out.
//!
//! The plan is a list of strided movements and a list of fills, none of which write the same byte, all of which together write
//! every byte of the destination. Where blocks divide the extents there is one movement and no fill; an odd end of a blocked axis
//! is a movement of its own, and its padding a fill.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::kernels::{Axis, Movement};
use crate::order::{Digit, Order, dense_strides};
use crate::pattern::{self, Pattern, Side};

/// More movements than this are no plan but a list of elements.
const MOST_PARTS: usize = 1 << 14;

/// A planned move from one order to another.
///
/// Serializes as the request it was made from, and is planned anew when read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Request", into = "Request")]
pub struct Relayout {
    request: Request,
    pub(crate) moves: Vec<Movement>,
    /// Units of the padding at strided places; their source is the one element of padding.
    pub(crate) fills: Vec<Movement>,
    from_bytes: usize,
    to_bytes: usize,
}

/// What is to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Request {
    shape: Vec<usize>,
    from: Order,
    to: Order,
    pad: Vec<u8>,
}

impl TryFrom<Request> for Relayout {
    type Error = Error;

    fn try_from(request: Request) -> Result<Self, Error> {
        relayout(&request.shape, &request.from, &request.to, &request.pad)
    }
}

impl From<Relayout> for Request {
    fn from(relayout: Relayout) -> Self {
        relayout.request
    }
}

impl Relayout {
    /// Bytes of the source, padding included.
    #[must_use]
    pub fn from_bytes(&self) -> usize {
        self.from_bytes
    }

    /// Bytes of the destination, padding included.
    #[must_use]
    pub fn to_bytes(&self) -> usize {
        self.to_bytes
    }

    /// Bytes of an element.
    #[must_use]
    pub fn elem_bytes(&self) -> usize {
        self.request.pad.len()
    }

    /// The element that padding is made of.
    #[must_use]
    pub fn pad(&self) -> &[u8] {
        &self.request.pad
    }

    /// Bytes that must be read and written at least: the elements once, the destination once.
    #[must_use]
    pub fn traffic_bytes(&self) -> usize {
        self.to_bytes.saturating_add(self.moves.iter().map(Movement::bytes).fold(0, usize::saturating_add))
    }

    /// Strided movements, and fills of padding.
    #[must_use]
    pub fn parts(&self) -> (usize, usize) {
        (self.moves.len(), self.fills.len())
    }
}

impl fmt::Display for Relayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "relayout, {} B to {} B", self.from_bytes, self.to_bytes)?;
        for part in &self.moves {
            write!(f, "; {part}")?;
        }
        for part in &self.fills {
            write!(f, "; fill {part}")?;
        }
        Ok(())
    }
}

/// Plans moving a tensor of logical `shape` from one order to another.
///
/// `pad` is the element that padding of the destination becomes; its length is the size of an element in bytes. Padding of the
/// source is not read.
pub fn relayout(shape: &[usize], from: &Order, to: &Order, pad: &[u8]) -> Result<Relayout, Error> {
    let elem = pad.len();
    if elem == 0 {
        return Err(Error::NoElementBytes);
    }
    let request = Request { shape: shape.to_vec(), from: from.clone(), to: to.clone(), pad: pad.to_vec() };
    let (from_bytes, to_bytes) = (bytes("source", from, elem)?, bytes("destination", to, elem)?);
    let mut made = Relayout { request, moves: Vec::new(), fills: Vec::new(), from_bytes, to_bytes };
    let (sources, targets) = (sides("source", from, shape)?, sides("destination", to, shape)?);
    let axes = || shape.iter().zip(sources.iter().zip(&targets));
    if !shape.contains(&0) {
        let moves: Option<Vec<_>> =
            axes().map(|(&extent, (from, to))| pattern::moves(|at| from.run(at), |at| to.run(at), extent)).collect();
        made.moves = product(&moves.ok_or(Error::Scattered { parts: from_bytes / elem })?, elem, (0, 0))?;
    }
    if to_bytes > 0 && targets.iter().any(|side| !side.is_full()) {
        made.fills = fills(&targets, elem)?;
    }
    if made.moves.len() + made.fills.len() > MOST_PARTS {
        return Err(Error::Scattered { parts: made.moves.len() + made.fills.len() });
    }
    Ok(made)
}

/// Bytes of a side; those of the source and the destination fit an `isize`.
fn bytes(side: &'static str, order: &Order, elem: usize) -> Result<usize, Error> {
    let bytes = order.slots().and_then(|slots| slots.checked_mul(elem));
    bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(Error::OrderTooLarge { side })
}

/// The side of each axis.
fn sides(side: &'static str, order: &Order, shape: &[usize]) -> Result<Vec<Side>, Error> {
    if let Some(digit) = order.digits.iter().find(|digit| digit.axis >= shape.len()) {
        return Err(Error::NotAnOrder { side, axis: digit.axis });
    }
    let memory = dense_strides(order.digits.iter().map(|digit| digit.extent));
    let digits: Vec<(Digit, usize)> = order.digits.iter().copied().zip(memory).collect();
    let of = |(axis, &extent)| {
        let segments = order.segments.get(axis).map_or(&[][..], Vec::as_slice);
        Side::new(&digits, segments, axis, extent).ok_or(Error::NotAnOrder { side, axis })
    };
    shape.iter().enumerate().map(of).collect()
}

/// The movements of all combinations of one pattern for each axis; `start` is where index 0 lies on both sides, in elements.
pub(crate) fn product(axes: &[Vec<Pattern>], elem: usize, start: (isize, isize)) -> Result<Vec<Movement>, Error> {
    let parts = axes.iter().fold(1_usize, |parts, patterns| parts.saturating_mul(patterns.len()));
    if parts > MOST_PARTS {
        return Err(Error::Scattered { parts });
    }
    // No step and no first element is negative: a place that wrapped would lie outside of every buffer, which a kernel refuses.
    let bytes = |elems: isize| elems as usize * elem;
    let movement = |number: usize| {
        let ((mut from, mut to), mut rest) = (start, number);
        let mut steps = Vec::new();
        for patterns in axes {
            let pattern = &patterns[rest % patterns.len()];
            rest /= patterns.len();
            from += pattern.from;
            to += pattern.to;
            let bytes = |step: &pattern::Step| Axis { extent: step.count, from: bytes(step.from), to: bytes(step.to) };
            steps.extend(pattern.steps.iter().map(bytes));
        }
        Movement::new(elem, steps, bytes(from), bytes(to))
    };
    Ok((0..parts).map(movement).collect())
}

/// Fills of all slots that have no element: for each axis those that its padding adds to the elements of the axes before.
fn fills(targets: &[Side], elem: usize) -> Result<Vec<Movement>, Error> {
    let mut fills = Vec::new();
    for axis in 0..targets.len() {
        let of = |(at, side): (usize, &Side)| match at.cmp(&axis) {
            std::cmp::Ordering::Less => pattern::used(side),
            std::cmp::Ordering::Equal => pattern::unused(side),
            std::cmp::Ordering::Greater => pattern::all(side),
        };
        let axes: Option<Vec<_>> = targets.iter().enumerate().map(of).collect();
        fills.extend(product(&axes.ok_or(Error::Scattered { parts: MOST_PARTS })?, elem, (0, 0))?);
    }
    Ok(fills)
}
