//! Which kernel of the project a move takes.

use relayout_ir::layout::Layout;

/// Rows of so many bytes and fewer are what one access carries, and a matrix with such a side is packed.
const UNIT_BYTES: u64 = 64;

/// Classes of moves, as `docs/kernels.md` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveClass {
    /// Nothing changes its order.
    Copy,
    /// The innermost axis stays innermost.
    Rows,
    /// One or many matrices.
    Transpose,
    /// A matrix with a side of at most 64 bytes, and whatever goes into blocks or comes out of them.
    Pack,
    /// The innermost axis changes, and others do too.
    Generic,
}

impl MoveClass {
    /// All of them.
    pub const ALL: [MoveClass; 5] =
        [MoveClass::Copy, MoveClass::Rows, MoveClass::Transpose, MoveClass::Pack, MoveClass::Generic];

    /// The class in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            MoveClass::Copy => "copy",
            MoveClass::Rows => "rows",
            MoveClass::Transpose => "transpose",
            MoveClass::Pack => "pack",
            MoveClass::Generic => "generic",
        }
    }

    /// The class of a move between two layouts of a tensor of this shape and so many bytes an element.
    #[must_use]
    pub fn classify(from: &Layout, to: &Layout, shape: &[u64], elem_bytes: u64) -> MoveClass {
        let (Some(source), Some(result)) = (axes(from, shape), axes(to, shape)) else { return MoveClass::Pack };
        let mut runs = merged(&source, &result, shape);
        let mut unit = elem_bytes.max(1);
        let stays = |runs: &[Run]| runs.last().is_some_and(|run| run.from + 1 == runs.len());
        if runs.len() < 2 {
            return MoveClass::Copy;
        }
        if stays(&runs) {
            let row = runs.last().map_or(unit, |run| run.extent.saturating_mul(unit));
            if row > UNIT_BYTES || !row.is_power_of_two() {
                return MoveClass::Rows;
            }
            unit = row;
            runs.pop();
        }
        let matrix = match runs.as_slice() {
            [a, b] => Some([a, b]),
            [batch, a, b] if batch.from == 0 => Some([a, b]),
            _ => None,
        };
        match matrix.map(|[a, b]| a.extent.min(b.extent).saturating_mul(unit)) {
            Some(side) if side <= UNIT_BYTES => MoveClass::Pack,
            Some(_) => MoveClass::Transpose,
            None => MoveClass::Generic,
        }
    }
}

/// Axes that are neighbours before and after, and their place before.
struct Run {
    from: usize,
    extent: u64,
}

/// The axes from outermost to innermost, without those of extent 1; `None` where one is in several digits.
fn axes(layout: &Layout, shape: &[u64]) -> Option<Vec<usize>> {
    if layout.factors().len() != layout.rank() {
        return None;
    }
    let axes = layout.factors().iter().map(|factor| usize::from(factor.axis));
    Some(axes.filter(|&axis| shape.get(axis).is_none_or(|&extent| extent != 1)).collect())
}

/// The runs of the result, outermost first.
fn merged(source: &[usize], result: &[usize], shape: &[u64]) -> Vec<Run> {
    let place = |axis: &usize| source.iter().position(|other| other == axis).unwrap_or(0);
    let mut runs: Vec<(usize, Run)> = Vec::new();
    for axis in result {
        let (at, extent) = (place(axis), shape.get(*axis).copied().unwrap_or(1));
        match runs.last_mut() {
            Some((last, run)) if *last + 1 == at => {
                *last = at;
                run.extent = run.extent.saturating_mul(extent);
            }
            _ => runs.push((at, Run { from: at, extent })),
        }
    }
    // Places count runs, no longer axes.
    let mut starts: Vec<usize> = runs.iter().map(|(_, run)| run.from).collect();
    starts.sort_unstable();
    let numbered = |run: Run| Run { from: starts.partition_point(|&start| start < run.from), ..run };
    runs.into_iter().map(|(_, run)| numbered(run)).collect()
}
