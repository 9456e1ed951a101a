//! Tiles: matrices transposed in registers, rows and lines copied.
//!
//! A matrix is done in strips of one line of the source, each in tiles that write one line of the destination. What whole tiles
//! leave is done by a tile moved back to end with the matrix; matrices too small for that lane by lane, with partial loads and
//! stores; a few channels by permutations of whole registers.

use super::job::{LINE, MOST_CHANNELS};
use super::vector::{Registers, Vector};

/// Copies whole lines.
///
/// # Safety
/// Both pointers are valid for the lines; with `NT` the destination is aligned to one.
#[inline(always)]
pub(super) unsafe fn copy_lines<R: Registers, const NT: bool>(
    from: *const u8,
    to: *mut u8,
    lines: usize,
    ahead: usize,
) {
    let mut line = 0;
    // SAFETY: within the lines.
    unsafe {
        while line + 4 <= lines {
            if ahead != 0 {
                for next in line..line + 4 {
                    R::prefetch(from.wrapping_add(next * LINE).wrapping_add(ahead));
                }
            }
            copy_some::<R, NT, 4>(from.add(line * LINE), to.add(line * LINE));
            line += 4;
        }
        while line < lines {
            if ahead != 0 {
                R::prefetch(from.wrapping_add(line * LINE).wrapping_add(ahead));
            }
            copy_some::<R, NT, 1>(from.add(line * LINE), to.add(line * LINE));
            line += 1;
        }
    }
}

/// Copies `N` lines: all loads, then all stores, as far as there are registers.
///
/// # Safety
/// As for [`copy_lines`].
#[inline(always)]
pub(super) unsafe fn copy_some<R: Registers, const NT: bool, const N: usize>(from: *const u8, to: *mut u8) {
    let wide = R::Wide::BYTES;
    // SAFETY: within the lines.
    unsafe {
        let mut part = 0;
        while part < N * LINE / wide {
            let mut held = [R::Wide::load(from.add(part * wide)); 4];
            let count = (N * LINE / wide - part).min(4);
            for (at, held) in held.iter_mut().enumerate().take(count).skip(1) {
                *held = R::Wide::load(from.add((part + at) * wide));
            }
            for (at, &held) in held.iter().enumerate().take(count) {
                put::<R::Wide, NT>(held, to.add((part + at) * wide));
            }
            part += count;
        }
    }
}

/// Rows of `run` bytes, `count` of them.
///
/// # Safety
/// All rows are valid on both sides; with `NT` the destination's begin at a line and fill it, alone or in pairs.
#[inline(always)]
pub(super) unsafe fn rows<R: Registers, const NT: bool>(
    src: *const u8,
    step: usize,
    dst: *mut u8,
    pitch: usize,
    count: usize,
    run: usize,
    ahead: usize,
) {
    for row in 0..count {
        // SAFETY: rows of the block; the last line of a row ends with it.
        unsafe {
            let (from, to) = (src.add(row * step), dst.add(row * pitch));
            if run >= LINE {
                copy_lines::<R, NT>(from, to, run / LINE, ahead);
                if !run.is_multiple_of(LINE) {
                    copy_lines::<R, false>(from.add(run - LINE), to.add(run - LINE), 1, 0);
                }
            } else {
                if ahead != 0 {
                    R::prefetch(from.wrapping_add(ahead));
                }
                if run == LINE / 2 {
                    for part in 0..LINE / 2 / R::Half::BYTES {
                        let at = part * R::Half::BYTES;
                        put::<R::Half, NT>(R::Half::load(from.add(at)), to.add(at));
                    }
                } else {
                    R::copy_short(from, to, run);
                }
            }
        }
    }
}

/// Copies one unit.
///
/// # Safety
/// Both pointers are valid for `E` bytes.
#[inline(always)]
pub(super) unsafe fn copy_unit<const E: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller says; arrays of bytes need no alignment.
    unsafe { to.cast::<[u8; E]>().write(from.cast::<[u8; E]>().read()) }
}

/// Stores a register, past the caches or not.
///
/// # Safety
/// As for [`Vector::stream`] and [`Vector::store`].
#[inline(always)]
pub(super) unsafe fn put<V: Vector, const NT: bool>(value: V, to: *mut u8) {
    // SAFETY: passed on.
    unsafe { if NT { value.stream(to) } else { value.store(to) } }
}

/// A matrix that is transposed: contiguous across in the source, along in the destination.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) across: usize,
    pub(super) along: usize,
    /// Bytes from one unit along to the next, in the source.
    pub(super) from: usize,
    /// Bytes from one row to the next, in the source, where lines are asked for.
    pub(super) row: usize,
    /// Bytes from one unit across to the next, in the destination.
    pub(super) to: usize,
    /// Bytes from a line to the one to ask for; 0 asks for none.
    pub(super) ahead: usize,
    /// Copy the lines of a tile together first.
    pub(super) pack: bool,
    pub(super) near: bool,
}

impl Matrix {
    /// # Safety
    /// The matrix is valid on both sides; with `NT` the destination's rows are whole lines.
    #[inline(always)]
    pub(super) unsafe fn run<R: Registers, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
    ) {
        // SAFETY: passed on, with widths that fit.
        unsafe {
            if self.across < G || self.along * E < 16 {
                self.narrow::<R, E, G, NT>(src, dst);
                return;
            }
            let mut across = 0;
            while across < self.across {
                let strip = Strip { start: across, end: self.across.min(across + LINE / E) };
                self.strip::<R, E, G, NT>(src, dst, strip);
                across = strip.end;
            }
        }
    }

    /// The columns of one line of the source.
    ///
    /// # Safety
    /// As for [`Matrix::run`].
    #[inline(always)]
    unsafe fn strip<R: Registers, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
    ) {
        let per_line = LINE / E;
        let mut along = 0;
        // SAFETY: tiles within the matrix; the last of each width is moved back to end with it.
        unsafe {
            while along + per_line <= self.along {
                if self.pack && strip.end - strip.start == per_line {
                    self.packed::<R, E, G, NT>(src, dst, strip, along);
                } else {
                    self.whole::<R, E, G, NT>(src, dst, strip, along, src.add(along * self.from + strip.start * E));
                }
                along += per_line;
            }
            let left = (self.along - along) * E;
            if left == 0 {
                return;
            }
            // One tile that covers what is left, of the narrowest register that does, if there is room for it.
            if left <= 16 {
                self.tiles::<R::Lane, E, G, false>(src, dst, strip, self.along - 16 / E, 1);
            } else if left <= 32 && self.along * E >= 32 {
                let half = R::Half::BYTES;
                self.tiles::<R::Half, E, G, false>(src, dst, strip, self.along - 32 / E, 32 / half);
            } else if self.along * E >= LINE {
                self.tiles::<R::Wide, E, G, false>(src, dst, strip, self.along - per_line, LINE / R::Wide::BYTES);
            } else {
                // 17 to 63 bytes in all.
                let lane = 16 / E;
                while along + lane <= self.along {
                    self.tiles::<R::Lane, E, G, false>(src, dst, strip, along, 1);
                    along += lane;
                }
                if along < self.along {
                    self.tiles::<R::Lane, E, G, false>(src, dst, strip, self.along - lane, 1);
                }
            }
        }
    }

    /// A line of the destination along from `along`, all groups of the strip. Lines are asked for one by one between the loads:
    /// in bursts they would wait for each other. `origin` is where the tile begins in the source.
    ///
    /// # Safety
    /// As for [`Matrix::run`]; the line lies within the matrix.
    #[inline(always)]
    unsafe fn whole<R: Registers, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
        along: usize,
        origin: *const u8,
    ) {
        let parts = LINE / R::Wide::BYTES;
        if NT && parts > 1 {
            // SAFETY: passed on.
            unsafe { self.lines::<R, E, G>(src, dst, strip, along, origin) }
            return;
        }
        if self.ahead == 0 && !self.near {
            // SAFETY: passed on.
            unsafe { self.tiles::<R::Wide, E, G, NT>(src, dst, strip, along, parts) }
            return;
        }
        let step = if self.near { LINE / E * self.row } else { self.ahead };
        // Of a line that is cut, the part that the block before did not see.
        let mut ask = origin.wrapping_add(step).wrapping_add(LINE - 1);
        let mut across = strip.start;
        while across < strip.end {
            let start = across.min(self.across - G);
            for part in 0..parts {
                let row = along + part * (R::Wide::BYTES / E);
                // SAFETY: G columns from `start`, and as many rows as the register has units from `row`.
                unsafe {
                    let from = src.add(row * self.from + start * E);
                    let to = dst.add(start * self.to + row * E);
                    tile_and_ask::<R, E, G, NT>(from, self.from, to, self.to, ask, self.row, self.near);
                }
                ask = ask.wrapping_add(G / parts * self.row);
            }
            across += G;
        }
    }

    /// A line of the destination, written past the caches with registers that are parts of a line.
    ///
    /// # Safety
    /// As for [`Matrix::whole`].
    #[inline(always)]
    unsafe fn lines<R: Registers, const E: usize, const G: usize>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
        along: usize,
        origin: *const u8,
    ) {
        let step = if self.near { LINE / E * self.row } else { self.ahead };
        let mut ask = origin.wrapping_add(step).wrapping_add(LINE - 1);
        let mut across = strip.start;
        while across < strip.end {
            let start = across.min(self.across - G);
            // SAFETY: G columns from `start` of the rows of the line; what is asked for need not be there.
            unsafe {
                if step != 0 {
                    for _ in 0..G {
                        if self.near {
                            R::prefetch_near(ask);
                        } else {
                            R::prefetch(ask);
                        }
                        ask = ask.wrapping_add(self.row);
                    }
                }
                let from = src.add(along * self.from + start * E);
                tile_of_lines::<R::Wide, E, G>(from, self.from, dst.add(start * self.to + along * E), self.to);
            }
            across += G;
        }
    }

    /// `count` registers along from `along`, all groups of the strip.
    ///
    /// # Safety
    /// As for [`Matrix::run`]; the registers lie within the matrix.
    #[inline(always)]
    unsafe fn tiles<V: Vector, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
        along: usize,
        count: usize,
    ) {
        let mut across = strip.start;
        while across < strip.end {
            let start = across.min(self.across - G);
            for part in 0..count {
                let row = along + part * (V::BYTES / E);
                // SAFETY: G columns from `start`, and as many rows as the register has units from `row`.
                unsafe {
                    tile::<V, E, G, NT>(
                        src.add(row * self.from + start * E),
                        self.from,
                        dst.add(start * self.to + row * E),
                        self.to,
                    );
                }
            }
            across += G;
        }
    }

    /// A tile of whole lines on both sides by way of a copy of its source: for rows that fall into the same cache sets.
    ///
    /// # Safety
    /// As for [`Matrix::tiles`], with a strip of a whole line.
    #[inline(always)]
    unsafe fn packed<R: Registers, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
        along: usize,
    ) {
        #[repr(align(64))]
        struct Room([core::mem::MaybeUninit<u8>; LINE * LINE]);
        let mut room = Room([const { core::mem::MaybeUninit::uninit() }; LINE * LINE]);
        let room = room.0.as_mut_ptr().cast::<u8>();
        // SAFETY: LINE / E rows of a line each, all of which are written before they are read.
        unsafe {
            let from = src.add(along * self.from + strip.start * E);
            for row in 0..LINE / E {
                copy_lines::<R, false>(from.add(row * self.from), room.add(row * LINE), 1, 0);
            }
            let copy = Self { across: LINE / E, from: LINE, row: self.from, ..self };
            let dst = dst.add(strip.start * self.to + along * E);
            let whole = Strip { start: 0, end: LINE / E };
            copy.whole::<R, E, G, NT>(room, dst, whole, 0, from);
        }
    }

    /// A matrix with fewer columns than a lane has units, or fewer rows.
    ///
    /// # Safety
    /// As for [`Matrix::run`].
    #[inline(always)]
    unsafe fn narrow<R: Registers, const E: usize, const G: usize, const NT: bool>(self, src: *const u8, dst: *mut u8) {
        // SAFETY: as the caller says; what an interleave has done is left out.
        unsafe {
            let (mut across, mut along) = (0, 0);
            if self.along <= MOST_CHANNELS && self.to == self.along * E {
                across = R::interleave::<E, true, NT>(src, dst, self.from, self.along, self.across);
            } else if self.across <= MOST_CHANNELS && self.from == self.across * E {
                along = R::interleave::<E, false, NT>(src, dst, self.to, self.across, self.along);
            }
            let rest = Self { across: self.across - across, along: self.along - along, ..self };
            rest.parts::<R, E, G>(src.add(across * E + along * self.from), dst.add(across * self.to + along * E));
        }
    }

    /// Tiles of one lane's width with loads and stores of just what is there.
    ///
    /// # Safety
    /// As for [`Matrix::run`].
    #[inline(always)]
    unsafe fn parts<R: Registers, const E: usize, const G: usize>(self, src: *const u8, dst: *mut u8) {
        let mut along = 0;
        while along < self.along {
            let rows = G.min(self.along - along);
            let mut across = 0;
            while across < self.across {
                let columns = G.min(self.across - across);
                // SAFETY: parts within the matrix; rows past the last one read the last one again.
                unsafe {
                    let src = src.add(along * self.from + across * E);
                    let dst = dst.add(across * self.to + along * E);
                    let first = R::load_part(src, columns * E);
                    let mut registers = [first; G];
                    for (row, register) in registers.iter_mut().enumerate().take(rows).skip(1) {
                        *register = R::load_part(src.add(row * self.from), columns * E);
                    }
                    transpose::<R::Lane, E, G>(&mut registers);
                    for (column, &register) in registers.iter().enumerate().take(columns) {
                        R::store_part(register, dst.add(column * self.to), rows * E);
                    }
                }
                across += G;
            }
            along += G;
        }
    }
}

/// Some columns of a matrix.
#[derive(Clone, Copy)]
struct Strip {
    start: usize,
    end: usize,
}

/// `G` columns of as many rows as the register has units.
///
/// # Safety
/// Valid on both sides; with `NT` the destination is aligned to the register.
#[inline(always)]
unsafe fn tile<V: Vector, const E: usize, const G: usize, const NT: bool>(
    src: *const u8,
    from: usize,
    dst: *mut u8,
    to: usize,
) {
    // SAFETY: passed on.
    unsafe {
        for (column, &register) in transposed::<V, E, G>(src, from).iter().enumerate() {
            put::<V, NT>(register, dst.add(column * to));
        }
    }
}

/// `G` columns of as many rows as a line has units, past the caches: each line is written at once. The machine holds back few lines
/// until they are whole; parts of more would be writes to memory of their own.
///
/// # Safety
/// Valid on both sides; the destination's columns are lines.
#[inline(always)]
unsafe fn tile_of_lines<V: Vector, const E: usize, const G: usize>(
    src: *const u8,
    from: usize,
    dst: *mut u8,
    to: usize,
) {
    let count = LINE / V::BYTES;
    // SAFETY: each part has as many rows as a register has units.
    unsafe {
        let mut parts = [transposed::<V, E, G>(src, from); LINE / 16];
        for (at, part) in parts.iter_mut().enumerate().take(count).skip(1) {
            *part = transposed::<V, E, G>(src.add(at * (V::BYTES / E) * from), from);
        }
        for column in 0..G {
            for (at, part) in parts.iter().enumerate().take(count) {
                part[column].stream(dst.add(column * to + at * V::BYTES));
            }
        }
    }
}

/// The registers of a tile: column `c` of all rows in register `c`.
///
/// # Safety
/// `G` columns of as many rows as the register has units are valid.
#[inline(always)]
unsafe fn transposed<V: Vector, const E: usize, const G: usize>(src: *const u8, from: usize) -> [V; G] {
    // Multiples of the stride that the compiler keeps from tile to tile would not fit the registers: it shall add.
    let from = if G > 4 { core::hint::black_box(from) } else { from };
    // SAFETY: lane `l` of register `k` is row `l * G + k`.
    unsafe {
        let mut registers = [V::lanes(src, G * from); G];
        for (row, register) in registers.iter_mut().enumerate().skip(1) {
            *register = V::lanes(src.add(row * from), G * from);
        }
        transpose::<V, E, G>(&mut registers);
        registers
    }
}

/// The registers of a tile, asking for a line with each of them.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn tile_and_ask<R: Registers, const E: usize, const G: usize, const NT: bool>(
    src: *const u8,
    from: usize,
    dst: *mut u8,
    to: usize,
    ask: *const u8,
    step: usize,
    near: bool,
) {
    let from = if G > 4 { core::hint::black_box(from) } else { from };
    // SAFETY: as for `tile`; what is asked for need not be there.
    unsafe {
        let mut registers = [R::Wide::lanes(src, G * from); G];
        for (row, register) in registers.iter_mut().enumerate() {
            if row > 0 {
                *register = R::Wide::lanes(src.add(row * from), G * from);
            }
            if row % (LINE / R::Wide::BYTES) == 0 {
                let ask = ask.wrapping_add(row / (LINE / R::Wide::BYTES) * step);
                if near { R::prefetch_near(ask) } else { R::prefetch(ask) }
            }
        }
        transpose::<R::Wide, E, G>(&mut registers);
        for (column, &register) in registers.iter().enumerate() {
            put::<R::Wide, NT>(register, dst.add(column * to));
        }
    }
}

/// Transposes the `G` x `G` units of each lane.
///
/// # Safety
/// The instruction set is available.
#[inline(always)]
unsafe fn transpose<V: Vector, const E: usize, const G: usize>(registers: &mut [V; G]) {
    let mut round = 1;
    while round < G {
        let old = *registers;
        let mut k = 0;
        while k < G / 2 {
            // SAFETY: as the caller says.
            let (low, high) = unsafe { old[k].zip::<E>(old[k + G / 2]) };
            registers[2 * k] = low;
            registers[2 * k + 1] = high;
            k += 1;
        }
        round *= 2;
    }
}
