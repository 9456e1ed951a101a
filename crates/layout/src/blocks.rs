//! A layout taken apart over a shape, and put together again: the machine behind reshape and canonical form.
//!
//! [`spell`] gives each axis as a list of [`Block`]s, most significant first: the index of the axis is the mixed-radix
//! number of the blocks' valid extents, and its slot that of the blocks' slots. A block of one digit with as many
//! slots as valid values is *full* and can be cut and merged like any number; one with pad slots can be cut only where
//! its pad stays at the end of its outermost digit. A block with unequal segments is never cut.
//!
//! A digit knows its place in storage order, so that two digits that are neighbours both in their axis and in storage
//! can become one. Cutting makes the inner part a place of its own, right after the outer part.

use smallvec::SmallVec;

use super::chain::{self, Link};
use super::{Factor, Layout, LayoutError, MAX_SEGMENTS, Refusal, Segment};
use crate::dim::Dim;

/// A digit of a block.
#[derive(Debug, Clone)]
pub(super) struct Digit {
    pub(super) extent: Dim,
    /// Sort key of storage order: the factor it comes from, then the cut.
    pub(super) place: (u32, u32),
    /// Last factor that it covers, if digits were merged.
    last: u32,
}

/// A part of an axis; see the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) valid: Dim,
    /// Most significant first; the slot within the block is their mixed-radix number.
    pub(super) digits: SmallVec<[Digit; 2]>,
    /// Unequal segments; otherwise slot = index within the block and the pad is at its end.
    pub(super) segments: Option<Vec<Segment>>,
}

impl Block {
    fn plain(digit: Digit) -> Block {
        Block { valid: digit.extent.clone(), digits: SmallVec::from_iter([digit]), segments: None }
    }

    /// A block of constants: digits are (slots, place), most significant first.
    pub(super) fn of_slots(valid: u64, digits: &[(u64, u32)], segments: Option<Vec<Segment>>) -> Block {
        let digit = |(slots, place): &(u64, u32)| Digit { extent: from_u64(*slots), place: (*place, 0), last: *place };
        Block { valid: from_u64(valid), digits: digits.iter().map(digit).collect(), segments }
    }

    pub(super) fn is_full(&self) -> bool {
        self.segments.is_none() && matches!(self.digits.as_slice(), [digit] if digit.extent == self.valid)
    }
}

/// The blocks of every axis.
pub(super) type Spelling = Vec<Vec<Block>>;

fn product<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> Result<Dim, Refusal> {
    dims.into_iter().try_fold(Dim::ONE, |acc, dim| acc.checked_mul(dim)).ok_or(Refusal::Overflow)
}

fn to_u64(dim: &Dim) -> Option<u64> {
    dim.as_const().and_then(|value| u64::try_from(value).ok())
}

fn from_u64(value: u64) -> Dim {
    // Slots and divisors are bounded by MAX_STORAGE_ELEMS.
    Dim::from(value as i64)
}

/// Takes a layout apart over a shape without zero extents. Digits of extent 1 are left out, so a size-1 axis has no
/// blocks unless it is padded.
pub(super) fn spell(layout: &Layout, shape: &[Dim]) -> Result<Spelling, Refusal> {
    if shape.len() != layout.rank() {
        return Err(LayoutError::RankMismatch { layout: layout.rank(), shape: shape.len() }.into());
    }
    let mut spelling = Spelling::with_capacity(shape.len());
    let mut cuts = Cuts::default();
    for (axis, extent) in shape.iter().enumerate() {
        if let Some(value) = extent.as_const().filter(|value| *value < 0) {
            return Err(LayoutError::NegativeExtent { axis, extent: value }.into());
        }
        let blocks = match layout.slot_map(axis) {
            None => spell_dense(layout, axis, extent)?,
            Some(segments) => spell_mapped(layout, axis, extent, segments, &mut cuts)?,
        };
        let mut kept = Vec::with_capacity(blocks.len());
        for block in blocks {
            peel(block, &mut kept)?;
        }
        spelling.push(kept);
    }
    rank_places(&mut spelling);
    Ok(spelling)
}

/// The digits of an axis, most significant first, with the outermost one's extent left to the caller.
fn chain(layout: &Layout, axis: usize, outermost: &Dim) -> SmallVec<[Digit; 2]> {
    let mut digits: SmallVec<[(u64, Digit); 4]> = SmallVec::new();
    for (at, factor) in layout.factors().iter().enumerate().filter(|(_, f)| usize::from(f.axis) == axis) {
        let extent = factor.modulo.map_or_else(|| outermost.clone(), from_u64);
        digits.push((factor.div, Digit { extent, place: (at as u32, 0), last: at as u32 }));
    }
    digits.sort_by_key(|(div, _)| std::cmp::Reverse(*div));
    digits.into_iter().map(|(_, digit)| digit).collect()
}

fn spell_dense(layout: &Layout, axis: usize, extent: &Dim) -> Result<Vec<Block>, Refusal> {
    let block = from_u64(layout.block_of(axis));
    let outermost = match extent.exact_div(&block) {
        Some(quotient) => quotient,
        None => extent.ceil_div(block.as_const().unwrap_or(1)).ok_or(Refusal::Overflow)?,
    };
    Ok(vec![Block { valid: extent.clone(), digits: chain(layout, axis, &outermost), segments: None }])
}

fn spell_mapped(
    layout: &Layout,
    axis: usize,
    extent: &Dim,
    segments: &[Segment],
    cuts: &mut Cuts,
) -> Result<Vec<Block>, Refusal> {
    let mapped: u64 = segments.iter().map(|segment| segment.len).sum();
    match extent.as_const() {
        None => return Err(Refusal::SymbolicPadding { axis, extent: extent.to_string() }),
        Some(value) if value != mapped as i64 => {
            return Err(LayoutError::SlotMapExtent { axis, mapped, extent: value }.into());
        }
        Some(_) => {}
    }
    let slots: u64 = segments.iter().map(|segment| segment.slots).sum();
    let digits = chain(layout, axis, &from_u64(slots / layout.block_of(axis)));
    let regular = levels(segments).and_then(|levels| align(digits.clone(), &levels, cuts));
    Ok(regular.unwrap_or_else(|| vec![Block { valid: extent.clone(), digits, segments: Some(segments.to_vec()) }]))
}

/// Equal segments as digits, most significant first: (values, slots in units of what is inside). `None` if the
/// segments are unequal.
pub(super) fn levels(segments: &[Segment]) -> Option<Vec<(u64, u64)>> {
    let mut list = segments.to_vec();
    let mut levels = Vec::new();
    while list.len() > 1 {
        let unit = *list.first()?;
        levels.push((unit.len, unit.slots));
        list = group(&list, unit)?;
    }
    let top = list.first()?;
    levels.push((top.len, top.slots));
    // So far each level counts elements; the ratio to the level inside of it is the digit.
    for at in (1..levels.len()).rev() {
        let (len, slots) = levels[at - 1];
        if levels[at].0 % len != 0 || levels[at].1 % slots != 0 {
            return None;
        }
        levels[at] = (levels[at].0 / len, levels[at].1 / slots);
    }
    levels.reverse();
    Some(levels)
}

/// Joins runs of equal segments. The first longer one ends a run, for it holds the pad of the level around it.
fn group(list: &[Segment], unit: Segment) -> Option<Vec<Segment>> {
    let count = list.iter().position(|s| s.slots != unit.slots).map_or(list.len(), |at| at + 1);
    let end = list.get(count - 1)?.slots;
    if !list.len().is_multiple_of(count) {
        return None;
    }
    let mut groups = Vec::with_capacity(list.len() / count);
    for run in list.chunks(count) {
        let (last, body) = run.split_last()?;
        if last.len != unit.len || last.slots < end || body.iter().any(|s| *s != unit) {
            return None;
        }
        groups.push(Segment { len: unit.len * count as u64, slots: unit.slots * body.len() as u64 + last.slots });
    }
    Some(groups)
}

#[derive(Default)]
struct Cuts(u32);

impl Cuts {
    /// Places for inner parts: a later cut of the same digit lies before the earlier one.
    fn inner_place(&mut self, place: (u32, u32)) -> (u32, u32) {
        self.0 += 1;
        (place.0, u32::MAX - self.0)
    }

    /// Cuts a digit in two: (outer with `extent / inner` values, inner).
    fn split(&mut self, digit: &Digit, outer: Dim, inner: Dim) -> (Digit, Digit) {
        let place = self.inner_place(digit.place);
        let part = Digit { extent: inner, place, last: digit.last };
        (Digit { extent: outer, ..*digit }, part)
    }

    /// Takes `need` slots' worth of digits off the inner end; `Err` holds the digit that has no boundary there.
    fn take_inner(&mut self, digits: &mut SmallVec<[Digit; 2]>, need: &Dim) -> Result<SmallVec<[Digit; 2]>, Dim> {
        let mut need = need.clone();
        let mut taken: SmallVec<[Digit; 2]> = SmallVec::new();
        while !need.is_one() {
            let Some(digit) = digits.pop() else { return Err(Dim::ONE) };
            if let Some(rest) = need.exact_div(&digit.extent) {
                need = rest;
                taken.push(digit);
            } else if let Some(outer) = digit.extent.exact_div(&need) {
                let (outer, inner) = self.split(&digit, outer, need);
                digits.push(outer);
                taken.push(inner);
                need = Dim::ONE;
            } else {
                return Err(digit.extent);
            }
        }
        taken.reverse();
        Ok(taken)
    }
}

/// Cuts a chain of digits at the boundaries of the levels. Levels that a digit straddles become one block with
/// segments. `None` if that is all of them.
fn align(mut digits: SmallVec<[Digit; 2]>, levels: &[(u64, u64)], cuts: &mut Cuts) -> Option<Vec<Block>> {
    let mut blocks = Vec::with_capacity(levels.len());
    let mut segments: Vec<Segment> = Vec::new();
    let (mut valid, mut slots) = (1u64, 1u64);
    for (level, (len, room)) in levels.iter().enumerate().rev() {
        let outer = [Segment { len: *len, slots: *room }];
        segments = if segments.is_empty() { outer.to_vec() } else { nest(level, &outer, &segments, slots).ok()? };
        (valid, slots) = (valid * len, slots * room);
        let mut rest = digits.clone();
        let Ok(taken) = cuts.take_inner(&mut rest, &from_u64(slots)) else { continue };
        digits = rest;
        let single = segments.len() == 1;
        let segments = Some(std::mem::take(&mut segments)).filter(|_| !single);
        blocks.push(Block { valid: from_u64(valid), digits: taken, segments });
        (valid, slots) = (1, 1);
    }
    // What is left are outermost digits of one value.
    blocks.reverse();
    segments.is_empty().then_some(blocks)
}

/// Splits full digits off the inner end of a block and digits that never move off its outer end.
fn peel(mut block: Block, into: &mut Vec<Block>) -> Result<(), Refusal> {
    block.digits.retain(|digit| !digit.extent.is_one());
    if block.segments.is_some() {
        into.push(block);
        return Ok(());
    }
    let mut inner = Vec::new();
    while block.digits.len() > 1 {
        let Some(digit) = block.digits.last() else { break };
        let Some(rest) = block.valid.exact_div(&digit.extent) else { break };
        block.valid = rest;
        inner.extend(block.digits.pop().map(Block::plain));
    }
    while let (Some(valid), [first, rest @ ..]) = (block.valid.as_const(), block.digits.as_slice()) {
        let span = product(rest.iter().map(|digit| &digit.extent))?;
        if valid == 0 || span.as_const().is_none_or(|span| valid > span) || (rest.is_empty() && valid == 1) {
            break;
        }
        into.push(Block { valid: Dim::ONE, digits: SmallVec::from_iter([first.clone()]), segments: None });
        block.digits.remove(0);
    }
    if !block.digits.is_empty() {
        into.push(block);
    }
    into.extend(inner.into_iter().rev());
    Ok(())
}

/// Renumbers the places 0, 1, 2.. so that neighbours in storage differ by one.
pub(super) fn rank_places(spelling: &mut Spelling) {
    let mut digits: Vec<&mut Digit> = spelling.iter_mut().flatten().flat_map(|block| block.digits.iter_mut()).collect();
    digits.sort_by_key(|digit| digit.place);
    for (rank, digit) in digits.into_iter().enumerate() {
        digit.place = (rank as u32, 0);
        digit.last = rank as u32;
    }
}

fn adjacent(outer: &Digit, inner: &Digit) -> bool {
    outer.last + 1 == inner.place.0
}

impl Link for Block {
    fn values(&self) -> &Dim {
        &self.valid
    }

    /// A full block continues the one before it where the digits lie together.
    fn join(&mut self, next: &Block) -> Result<bool, Refusal> {
        let (Some(outer), Some(digit)) = (self.digits.last_mut(), next.digits.first()) else { return Ok(false) };
        if !next.is_full() || self.segments.is_some() || !adjacent(outer, digit) {
            return Ok(false);
        }
        self.valid = product([&self.valid, &next.valid])?;
        outer.extent = product([&outer.extent, &digit.extent])?;
        outer.last = digit.last;
        Ok(true)
    }
}

/// Deals the blocks of a group of axes out to the axes of the result, cutting where an axis begins. `axes` are
/// (axis, extent), outermost first, extents other than 1.
pub(super) fn distribute(
    mut blocks: Vec<Block>,
    axes: &[(usize, Dim)],
    result: &mut Spelling,
) -> Result<Vec<Block>, Refusal> {
    let mut cuts = Cuts::default();
    for (axis, extent) in axes.iter().rev() {
        let cut = |block, need: &Dim| cut(block, need, *axis, &mut cuts);
        result[*axis] = chain::take(&mut blocks, extent.clone(), cut)?;
    }
    Ok(blocks)
}

fn cut(block: Block, need: &Dim, axis: usize, cuts: &mut Cuts) -> Result<(Block, Block), Refusal> {
    if block.segments.is_some() {
        return Err(Refusal::CutsSegments { axis });
    }
    let slots = product(block.digits.iter().map(|digit| &digit.extent))?;
    let padded =
        Refusal::CutsPadding { axis, need: need.to_string(), valid: block.valid.to_string(), slots: slots.to_string() };
    let is_padded = slots != block.valid;
    let Some(outer) = block.valid.exact_div(need) else {
        let digit = block.valid.to_string();
        return Err(if is_padded { padded } else { Refusal::CutsDigit { axis, need: need.to_string(), digit } });
    };
    let mut digits = block.digits;
    let inner = cuts.take_inner(&mut digits, need).map_err(|digit| {
        if is_padded { padded } else { Refusal::CutsDigit { axis, need: need.to_string(), digit: digit.to_string() } }
    })?;
    Ok((Block { valid: outer, digits, segments: None }, Block { valid: need.clone(), digits: inner, segments: None }))
}

/// Puts blocks together to a layout of a shape: digits that lie together become one. Axes without digits (size 1) are put before
/// the next axis, but outermost where all axes before them are so too: one image in channels-last order is NHWC, not HWNC.
pub(super) fn assemble(mut spelling: Spelling, shape: &[Dim]) -> Result<Layout, Refusal> {
    rank_places(&mut spelling);
    let mut placed: Vec<(u32, Factor)> = Vec::new();
    let mut maps: Vec<(u8, Vec<Segment>)> = Vec::new();
    for (axis, (blocks, extent)) in spelling.iter().zip(shape).enumerate() {
        let small = u8::try_from(axis).map_err(|_| LayoutError::RankTooLarge { rank: shape.len() })?;
        let digits = joined_digits(blocks)?;
        let mut div = 1u64;
        for (position, digit) in digits.iter().enumerate().rev() {
            let outermost = position == 0;
            let modulo = (!outermost).then(|| to_u64(&digit.extent));
            let modulo = match modulo {
                Some(None) => return Err(Refusal::SymbolicDigit { axis, digit: digit.extent.to_string() }),
                Some(Some(value)) => Some(value),
                None => None,
            };
            placed.push((digit.place.0, Factor { axis: small, div, modulo }));
            div = div.checked_mul(modulo.unwrap_or(1)).ok_or(Refusal::Overflow)?;
        }
        if let Some(segments) = slot_map(axis, blocks, &digits, extent, div)? {
            maps.push((small, segments));
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    let mut factors: Vec<Factor> = placed.into_iter().map(|(_, factor)| factor).collect();
    let lacks = |axis: usize, factors: &[Factor]| !factors.iter().any(|factor| usize::from(factor.axis) == axis);
    let leading = (0..shape.len()).take_while(|&axis| lacks(axis, &factors)).count();
    for axis in (0..shape.len()).rev() {
        if lacks(axis, &factors) {
            let next = factors.iter().position(|factor| usize::from(factor.axis) == axis + 1);
            let place = if axis < leading { 0 } else { next.unwrap_or(factors.len()) };
            factors.insert(place, Factor::whole(axis as u8));
        }
    }
    Ok(Layout::new(shape.len(), factors, maps)?)
}

/// The digits of an axis with neighbours joined; slots multiply, so pad between them does not matter.
fn joined_digits(blocks: &[Block]) -> Result<SmallVec<[Digit; 4]>, Refusal> {
    let mut joined: SmallVec<[Digit; 4]> = SmallVec::new();
    for block in blocks {
        let full = block.is_full();
        for digit in &block.digits {
            // A symbolic number of blocks stays a digit: joined with its block it would need a symbolic slot map.
            let constant = digit.extent.is_const() && joined.last().is_some_and(|outer| outer.extent.is_const());
            match joined.last_mut() {
                Some(outer) if adjacent(outer, digit) && (full || constant) => {
                    outer.extent = product([&outer.extent, &digit.extent])?;
                    outer.last = digit.last;
                }
                _ => joined.push(digit.clone()),
            }
        }
    }
    Ok(joined)
}

/// The slot map that the blocks of an axis need, if the digits alone do not say it.
fn slot_map(
    axis: usize,
    blocks: &[Block],
    digits: &[Digit],
    extent: &Dim,
    block: u64,
) -> Result<Option<Vec<Segment>>, Refusal> {
    if blocks.iter().all(Block::is_full) {
        return Ok(None);
    }
    if extent.is_const() {
        return segments_of(axis, blocks).map(Some);
    }
    let refusal = Refusal::SymbolicPadding { axis, extent: extent.to_string() };
    let inner_full = blocks.iter().skip(1).all(Block::is_full);
    let (Some(outermost), Ok(block)) = (digits.first(), i64::try_from(block)) else { return Err(refusal) };
    let implied = extent.exact_div(&Dim::from(block)).or_else(|| extent.ceil_div(block));
    if inner_full && implied.as_ref() == Some(&outermost.extent) { Ok(None) } else { Err(refusal) }
}

fn segments_of(axis: usize, blocks: &[Block]) -> Result<Vec<Segment>, Refusal> {
    let mut map = vec![Segment { len: 1, slots: 1 }];
    for block in blocks {
        let slots = to_u64(&product(block.digits.iter().map(|digit| &digit.extent))?).ok_or(Refusal::Overflow)?;
        let valid = to_u64(&block.valid).ok_or(Refusal::Overflow)?;
        let inner = block.segments.clone().unwrap_or_else(|| vec![Segment { len: valid, slots }]);
        map = nest(axis, &map, &inner, slots)?;
    }
    Ok(map)
}

/// The slot map of `outer` axes around an `inner` one of `slots` slots.
fn nest(axis: usize, outer: &[Segment], inner: &[Segment], slots: u64) -> Result<Vec<Segment>, Refusal> {
    let full = matches!(inner, [only] if only.len == only.slots);
    let mut map: Vec<Segment> = Vec::new();
    for segment in outer {
        let repeats = if full { 1 } else { segment.len };
        let room = (MAX_SEGMENTS / inner.len()).saturating_sub(map.len() / inner.len()) as u64;
        if repeats > room {
            return Err(Refusal::TooManySegments { axis });
        }
        if full {
            let len = segment.len.checked_mul(slots).ok_or(Refusal::Overflow)?;
            map.push(Segment { len, slots: len });
        } else {
            for _ in 0..repeats {
                map.extend_from_slice(inner);
            }
        }
        let pad = (segment.slots - segment.len).checked_mul(slots).ok_or(Refusal::Overflow)?;
        if let Some(last) = map.last_mut() {
            last.slots = last.slots.checked_add(pad).ok_or(Refusal::Overflow)?;
        }
    }
    Ok(map)
}
