//! The choice of loops: block sizes, order and stores, from the movement and what is known of the caches.

use super::job::Tuning;
use super::{Hint, Movement};

/// Bytes of both sides from which on data is taken to be out of the caches: half of a usual last-level cache.
const CACHED_BYTES: usize = 16 << 20;

/// How a movement is to be run.
pub(super) fn tuning(movement: &Movement, hint: Hint, _threads: usize) -> Tuning {
    let fits = 2 * movement.bytes() <= CACHED_BYTES;
    let cold = hint == Hint::Cold || !fits;
    if let Ok(text) = std::env::var("RELAYOUT_TUNE") {
        let v: Vec<usize> = text.split(',').map(|x| x.parse().unwrap()).collect();
        return Tuning {
            from_run: v[0],
            to_run: v[1],
            sweep_to: v[2] != 0,
            stream: v[3] != 0,
            stage: v[3] == 2,
            prefetch: v[4] & 1 != 0,
            near: v[4] & 2 != 0,
            pack: v[5] == 1 || (v[5] == 2 && aliases(movement)),
        };
    }
    let rows = movement.axes.last().is_none_or(|last| last.from == last.to);
    let pack = aliases(movement);
    let near = !cold && movement.axes.last().is_some_and(|last| last.from >= 4096);
    match (rows, cold) {
        (true, false) => Tuning {
            from_run: 0,
            to_run: 32 << 10,
            sweep_to: true,
            stream: false,
            stage: false,
            prefetch: false,
            near: false,
            pack,
        },
        (true, true) => Tuning {
            from_run: 4096,
            to_run: 1024,
            sweep_to: true,
            stream: true,
            stage: false,
            prefetch: true,
            near: false,
            pack,
        },
        (false, false) => Tuning {
            from_run: 1024,
            to_run: 256,
            sweep_to: false,
            stream: false,
            stage: false,
            prefetch: false,
            near,
            pack,
        },
        (false, true) => Tuning {
            from_run: if pack { 256 } else { 64 },
            to_run: if pack { 256 } else { 1024 },
            sweep_to: false,
            stream: true,
            stage: false,
            prefetch: true,
            near: false,
            pack: true,
        },
    }
}

/// Whether the rows of a tile fall into few sets of the first cache: the lines of a tile are read several times.
fn aliases(movement: &Movement) -> bool {
    let Some(last) = movement.axes.last() else { return false };
    let rows = 64 / movement.unit.max(1);
    let sets = 4096 / (1 << last.from.trailing_zeros().min(12)).max(64);
    movement.unit <= 8 && rows > 8 * sets
}
