//! The choice of loops: block sizes, order and stores, from the movement and what is known of the caches.
//!
//! The figures were found by trying on Zen 4 and Zen 5; what they say is this. In the caches the loads are what takes time, and long
//! strips of one line keep their sources near: longer ones in the cache that cores share. Out of them it is the order in which memory is asked: lines one by one, well ahead,
//! and written whole past the caches, in runs of about 1 KB; where strides are powers of two in shorter runs on both sides, as
//! rows that far apart share cache sets. Those of registers that are parts of a line were found on Zen 3, and follow the caches of the
//! machine.

#![forbid(unsafe_code)]

use super::caches::Caches;
use super::job::{Ask, LINE, Stores, Tuning};
use super::{Axis, Hint, Movement};
use crate::{Class, Plan};

/// Bytes of both sides up to which data is taken to be in a core's own cache, of those that are in some cache.
const NEAR_BYTES: usize = 1 << 20;

/// Strides from which on no machine foresees the lines of a source.
const FAR_BYTES: usize = 4096;

/// Bytes of destination runs in a staged block: each has odd ends that cost more than lines.
const STAGED_RUN: usize = 4 << 10;

/// Bytes of these runs where registers are parts of a line, and a core's own caches are half as large.
const NARROW_STAGED_RUN: usize = 2 << 10;

/// Bytes of these runs where rows share cache sets: few rows, and some lines of each run of the destination.
const SHARED_SETS_STAGED_RUN: usize = 768;

/// Bytes below which an axis alone makes no good run.
const SHORT_RUN: usize = 512;

/// How a movement is to be run.
pub(super) fn tuning(movement: &Movement, hint: Hint, whole: bool) -> Tuning {
    let caches = Caches::of(whole);
    let cold = is_cold(movement, hint, whole);
    let rows = movement.axes.last().is_none_or(|last| last.from == last.to);
    // The lines of a tile are read several times.
    let alias = caches.overflow(movement, 1);
    let near = movement.bytes() <= NEAR_BYTES / 2;
    let base = Tuning {
        from_run: 0,
        to_run: 128 << 10,
        staged_run: STAGED_RUN,
        sweep_to: rows,
        stores: if cold { Stores::Stream } else { Stores::Plain },
        ask: if cold { Ask::Block } else { Ask::Nothing },
        pack: false,
    };
    let (from_run, to_run) = hot_runs(movement, whole);
    match (rows, cold) {
        (true, false) => base,
        (true, true) => Tuning { from_run: 4096, to_run: 1024, ..base },
        (false, false) => Tuning {
            from_run,
            to_run,
            // Far strides are foreseen by no machine, and where a tile takes whole blocks of a line, stores keep it from looking ahead.
            // Where a register is a part of a line, a tile takes long enough for the lines of the next to come.
            ask: match movement.axes.last() {
                Some(last) if whole && last.from >= FAR_BYTES => Ask::Tile,
                Some(_) if !whole && crowded(movement) => Ask::Nothing,
                Some(last) if !near && (last.from == LINE || !whole && last.from > LINE) => Ask::Tile,
                _ => Ask::Nothing,
            },
            pack: alias,
            ..base
        },
        // Short runs on both sides: several axes make a run, and blocks are as wide as they are long.
        (false, true) if is_short(movement) => {
            Tuning { from_run: SHORT_RUN, to_run: SHORT_RUN, staged_run: SHORT_RUN, pack: true, ..base }
        }
        (false, true) => Tuning {
            from_run: if alias { 256 } else { LINE },
            to_run: if alias { 256 } else { 1024 },
            staged_run: match (whole, alias) {
                (true, _) => STAGED_RUN,
                (false, true) => SHARED_SETS_STAGED_RUN,
                (false, false) => NARROW_STAGED_RUN,
            },
            // A tile of bytes has 64 rows: even odd strides put many of them into one set.
            pack: whole || alias || movement.unit == 1,
            ..base
        },
    }
}

/// Bytes of runs of the source and of the destination in a block that is in the caches.
fn hot_runs(movement: &Movement, whole: bool) -> (usize, usize) {
    let caches = Caches::of(whole);
    let near = movement.bytes() <= NEAR_BYTES / 2;
    match whole {
        true if near || caches.overflow(movement, 1) => (1024, 256),
        true => (2 * LINE, 4096),
        false if crowded(movement) => (1024, 256),
        // Far out in the caches each line of the source is read once.
        false if movement.bytes() > caches.last_bytes / 16 => (LINE, 4096),
        false => (256, 1024),
    }
}

/// Whether the lines of a tile leave no room for those of the next one and for what is written, where registers are parts of a line.
fn crowded(movement: &Movement) -> bool {
    Caches::of(false).overflow(movement, 3)
}

/// Whether rows are better found by a list than by strides: what either costs beyond a copy in the caches, or in all out of them.
pub(super) fn gathers(plan: &Plan, movement: &Movement, hint: Hint, whole: bool) -> bool {
    let Class::Rows { row_bytes } = plan.class() else { return false };
    let cold = is_cold(movement, hint, whole);
    let costs = row_costs(movement.bytes() / row_bytes, row_bytes, cold);
    costs.gather_ps < costs.strided_ps
}

/// Whether a movement is taken to be out of the caches: its two sides are more than half of the last one. Where registers are parts
/// of a line, and nobody said that the source was just written, more than a quarter: plain stores of what is not in the caches lose
/// more there than stores past them of what is.
fn is_cold(movement: &Movement, hint: Hint, whole: bool) -> bool {
    let part = if whole || hint == Hint::Hot { 2 } else { 4 };
    hint == Hint::Cold || movement.bytes() > Caches::of(whole).last_bytes / part / 2
}

/// What the two forms of a move of rows cost, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowCosts {
    strided_ps: usize,
    gather_ps: usize,
}

/// Fitted to the best of 25 rounds on Zen 4 at one thread, rows of 32 B to 16 kB, tensors of 4 kB to 64 MB.
///
/// In the caches strides cost some time to set up and more for each row, above all for one that ends with a part of a line. Out of
/// them strides win by writing past the caches, unless rows are so short and odd that they go by way of a stage.
fn row_costs(rows: usize, row_bytes: usize, cold: bool) -> RowCosts {
    const START_PS: usize = 200_000;
    let odd = !row_bytes.is_multiple_of(LINE) && row_bytes != LINE / 2;
    let (strided, gather) = if cold {
        (if odd { 7_000 + 44 * row_bytes } else { 50 * row_bytes }, 1_000 + 65 * row_bytes)
    } else {
        (1_300 + if odd { 2_500 } else { 0 }, 1_000 + if row_bytes < LINE { 500 } else { 0 })
    };
    RowCosts { strided_ps: START_PS + rows.saturating_mul(strided), gather_ps: rows.saturating_mul(gather) }
}

/// Whether the innermost axes of both sides are shorter than a run should be, and there are others to lengthen them.
fn is_short(movement: &Movement) -> bool {
    let short = |axis: &Axis| axis.extent * movement.unit < SHORT_RUN;
    let across = movement.axes.iter().find(|axis| axis.from == movement.unit);
    movement.axes.len() > 3 && across.is_some_and(short) && movement.axes.last().is_some_and(short)
}

#[cfg(test)]
mod tests {
    use super::{Ask, Caches, Hint, Stores, gathers, tuning};
    use crate::kernels::Movement;
    use crate::plan;

    fn listed(shape: &[usize], hint: Hint) -> bool {
        let plan = plan(shape, &[0, 2, 1, 3], 1).expect("a permutation");
        gathers(&plan, &Movement::of(&plan).expect("something moves"), hint, true)
    }

    #[test]
    fn rows_are_listed_in_the_caches_and_go_by_strides_out_of_them() {
        for shape in [[1, 2, 58, 3136], [1, 2, 232, 196], [8, 128, 12, 256]] {
            assert!(listed(&shape, Hint::Hot) && listed(&shape, Hint::Auto), "{shape:?}");
        }
        for shape in [[1, 2, 58, 3136], [8, 128, 12, 256], [8, 2, 64, 16384]] {
            assert!(!listed(&shape, Hint::Cold), "{shape:?}");
        }
    }

    #[test]
    fn many_short_rows_go_by_strides_and_few_or_odd_ones_by_a_list() {
        assert!(!listed(&[1, 256, 256, 32], Hint::Hot));
        assert!(listed(&[1, 2, 58, 32], Hint::Hot) && listed(&[1, 2, 58, 32], Hint::Cold));
        assert!(listed(&[1, 2, 232, 196], Hint::Cold));
    }

    fn matrices(rows: usize, columns: usize, elem: usize) -> Movement {
        let plan = plan(&[2, rows, columns], &[0, 2, 1], elem).expect("a permutation");
        Movement::of(&plan).expect("something moves")
    }

    #[test]
    fn only_sources_just_written_may_fill_half_of_the_last_cache() {
        let stores = |bytes: usize, hint: Hint, whole: bool| tuning(&matrices(bytes / 64, 32, 1), hint, whole).stores;
        for whole in [false, true] {
            let last = Caches::of(whole).last_bytes;
            for hint in [Hint::Auto, Hint::Hot] {
                assert_eq!(stores(last / 8, hint, whole), Stores::Plain, "a quarter, whole lines: {whole}");
                assert_eq!(stores(last / 2, hint, whole), Stores::Stream, "all, whole lines: {whole}");
            }
            assert_eq!(stores(last / 4, Hint::Hot, whole), Stores::Plain, "half, whole lines: {whole}");
            assert_eq!(stores(64, Hint::Cold, whole), Stores::Stream);
        }
        assert_eq!(stores(Caches::of(true).last_bytes / 4, Hint::Auto, true), Stores::Plain);
        assert_eq!(stores(Caches::of(false).last_bytes / 4, Hint::Auto, false), Stores::Stream);
    }

    #[test]
    fn narrow_tiles_ask_for_the_next_one_where_its_lines_have_room() {
        // 600 kB: more than a core's own cache is taken to hold, and in some cache of every machine.
        let ask = |columns: usize| tuning(&matrices(300_000 / columns, columns, 1), Hint::Hot, false).ask;
        // Rows a way of the first cache apart share one set; odd ones lie in all.
        assert_eq!(ask(Caches::of(false).way_bytes), Ask::Nothing);
        assert_eq!(ask(255), Ask::Tile);
    }

    #[test]
    fn what_moves_no_rows_has_no_list() {
        let plan = plan(&[30, 40], &[1, 0], 4).expect("a permutation");
        assert!(!gathers(&plan, &Movement::of(&plan).expect("something moves"), Hint::Hot, true));
    }
}
