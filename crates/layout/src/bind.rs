//! A layout bound to a shape: extents, strides, offsets.
//!
//! The storage of a bound layout is dense: the stride of a factor is the product of the extents of the factors inside
//! of it, so the element at digits `d_k` lies at `sum(d_k * stride_k)` elements from the start. That is the row-major
//! formula of NumPy and of MegEngine's `TensorLayout`, over digits in place of axes. Arithmetic is checked once, when
//! binding: no tensor has more than [`MAX_STORAGE_ELEMS`] slots, so nothing after it can overflow.

use crate::dim::Dim;
use smallvec::SmallVec;

use super::{Factor, Layout, LayoutError, Segment};

/// Most slots of a bound layout: with it, sizes in bytes of 16-byte elements fit an `i64`.
pub const MAX_STORAGE_ELEMS: u64 = 1 << 59;

/// Logical indices, one per axis.
pub type Coordinate = SmallVec<[u64; 6]>;

/// A factor with the extent and stride that a shape gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BoundFactor {
    /// The logical axis.
    pub axis: usize,
    /// Slots of the axis that one step spans.
    pub div: u64,
    /// Values that the digit takes, pad included.
    pub extent: u64,
    /// Elements between neighbouring values of the digit.
    pub stride: u64,
}

/// A [`Layout`] for one shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoundLayout {
    shape: Coordinate,
    factors: SmallVec<[BoundFactor; 6]>,
    slot_maps: Vec<(usize, Vec<Segment>)>,
    slots: u64,
}

impl Layout {
    /// That a value of this shape can lie so. A symbolic extent may be anything.
    pub fn fits(&self, shape: &[Dim]) -> Result<(), LayoutError> {
        // 1 is what adds nothing to the size.
        let extents: SmallVec<[i64; 6]> = shape.iter().map(|d| d.as_const().unwrap_or(1)).collect();
        self.bind(&extents).map(|_| ())
    }

    /// The extents, strides and offsets of this layout for a shape.
    pub fn bind(&self, shape: &[i64]) -> Result<BoundLayout, LayoutError> {
        if shape.len() != self.rank() {
            return Err(LayoutError::RankMismatch { layout: self.rank(), shape: shape.len() });
        }
        let mut extents = Coordinate::new();
        for (axis, extent) in shape.iter().enumerate() {
            let value = u64::try_from(*extent).map_err(|_| LayoutError::NegativeExtent { axis, extent: *extent })?;
            extents.push(value);
        }
        let mut factors: SmallVec<[BoundFactor; 6]> = SmallVec::new();
        for factor in self.factors() {
            let axis = usize::from(factor.axis);
            let extent = self.factor_extent(factor, extents[axis])?;
            factors.push(BoundFactor { axis, div: factor.div, extent, stride: 1 });
        }
        // A zero extent does not hide the others, as in NumPy: strides stay meaningful and the limit holds.
        let mut span = 1u64;
        for factor in factors.iter_mut().rev() {
            factor.stride = span;
            span = span.checked_mul(factor.extent.max(1)).ok_or(LayoutError::TooLarge)?;
            if span > MAX_STORAGE_ELEMS {
                return Err(LayoutError::TooLarge);
            }
        }
        let empty = factors.iter().any(|factor| factor.extent == 0);
        let slot_maps = self.spelled.slots.iter().map(|(axis, map)| (usize::from(*axis), map.clone())).collect();
        Ok(BoundLayout { shape: extents, factors, slot_maps, slots: if empty { 0 } else { span } })
    }

    fn factor_extent(&self, factor: &Factor, extent: u64) -> Result<u64, LayoutError> {
        let axis = usize::from(factor.axis);
        let slots = match self.slot_map(axis) {
            None => extent,
            Some(segments) => {
                let mapped = segments.iter().map(|segment| segment.len).sum();
                if mapped != extent {
                    return Err(LayoutError::SlotMapExtent { axis, mapped, extent: extent as i64 });
                }
                segments.iter().map(|segment| segment.slots).sum()
            }
        };
        Ok(factor.modulo.unwrap_or_else(|| slots.div_ceil(factor.div)))
    }
}

impl BoundLayout {
    /// The logical shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The factors, outermost first.
    pub fn factors(&self) -> &[BoundFactor] {
        &self.factors
    }

    /// Elements of the logical shape.
    pub fn logical_elems(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Elements of the storage, pad slots included.
    pub fn storage_elems(&self) -> u64 {
        self.slots
    }

    /// Bytes of the storage for elements of this many bits, rounded up to a whole byte.
    pub fn storage_bytes(&self, element_bits: u32) -> Result<u64, LayoutError> {
        let bits = u128::from(self.slots) * u128::from(checked_bits(element_bits)?);
        u64::try_from(bits.div_ceil(8)).map_err(|_| LayoutError::TooLarge)
    }

    /// Whether storage has slots that no coordinate reaches.
    pub fn is_padded(&self) -> bool {
        self.slots != self.logical_elems()
    }

    /// Stride of each factor in bits, outermost first; the form for elements narrower than a byte.
    pub fn strides_bits(&self, element_bits: u32) -> Result<SmallVec<[u64; 6]>, LayoutError> {
        let bits = u64::from(checked_bits(element_bits)?);
        self.factors.iter().map(|f| f.stride.checked_mul(bits).ok_or(LayoutError::TooLarge)).collect()
    }

    /// Stride of each factor in bytes, outermost first; refused where one is no whole number of bytes.
    pub fn strides_bytes(&self, element_bits: u32) -> Result<SmallVec<[u64; 6]>, LayoutError> {
        let whole = |bits: u64| {
            if bits.is_multiple_of(8) { Ok(bits / 8) } else { Err(LayoutError::SubByteStride { stride_bits: bits }) }
        };
        self.strides_bits(element_bits)?.into_iter().map(whole).collect()
    }

    /// Stride of each logical axis in elements, as NumPy and PyTorch have it; `None` unless every axis is one whole
    /// factor without a slot map.
    pub fn axis_strides(&self) -> Option<SmallVec<[u64; 6]>> {
        if !self.slot_maps.is_empty() || self.factors.len() != self.shape.len() {
            return None;
        }
        let mut strides: SmallVec<[u64; 6]> = SmallVec::from_elem(0, self.shape.len());
        for factor in &self.factors {
            strides[factor.axis] = factor.stride;
        }
        Some(strides)
    }

    fn slot(&self, axis: usize, index: u64) -> u64 {
        let Some((_, segments)) = self.slot_maps.iter().find(|(have, _)| *have == axis) else { return index };
        let (mut first_index, mut first_slot) = (0, 0);
        for segment in segments {
            if index < first_index + segment.len {
                break;
            }
            first_index += segment.len;
            first_slot += segment.slots;
        }
        first_slot + (index - first_index)
    }

    fn index(&self, axis: usize, slot: u64) -> Option<u64> {
        let Some((_, segments)) = self.slot_maps.iter().find(|(have, _)| *have == axis) else { return Some(slot) };
        let (mut first_index, mut first_slot) = (0, 0);
        for segment in segments {
            if slot < first_slot + segment.slots {
                let within = slot - first_slot;
                return (within < segment.len).then_some(first_index + within);
            }
            first_index += segment.len;
            first_slot += segment.slots;
        }
        None
    }

    /// What index `index` of one axis adds to the offset; `None` if there is no such index.
    pub fn axis_offset(&self, axis: usize, index: u64) -> Option<u64> {
        if index >= *self.shape.get(axis)? {
            return None;
        }
        let slot = self.slot(axis, index);
        let digits = self.factors.iter().filter(|factor| factor.axis == axis);
        Some(digits.map(|f| slot / f.div % f.extent * f.stride).sum())
    }

    /// Storage offset, in elements, of the element at a coordinate; `None` outside of the shape.
    pub fn offset(&self, coordinate: &[u64]) -> Option<u64> {
        if coordinate.len() != self.shape.len() {
            return None;
        }
        coordinate.iter().enumerate().map(|(axis, index)| self.axis_offset(axis, *index)).sum()
    }

    /// The coordinate whose element is stored at an offset; `None` in pad slots and past the end.
    pub fn coordinate(&self, offset: u64) -> Option<Coordinate> {
        if offset >= self.slots {
            return None;
        }
        let mut coordinate: Coordinate = SmallVec::from_elem(0, self.shape.len());
        for factor in &self.factors {
            coordinate[factor.axis] += offset / factor.stride % factor.extent * factor.div;
        }
        for (axis, extent) in self.shape.iter().enumerate() {
            let index = self.index(axis, coordinate[axis]).filter(|index| index < extent)?;
            coordinate[axis] = index;
        }
        Some(coordinate)
    }
}

fn checked_bits(bits: u32) -> Result<u32, LayoutError> {
    if (1..=128).contains(&bits) { Ok(bits) } else { Err(LayoutError::ElementBits { bits }) }
}
