//! Transposing through shared memory.
//!
//! The *column* axis is innermost in the source, the *row* axis in the destination; all others are loops, one block each. A block
//! moves a tile of `rows` x `columns` elements in three steps:
//!
//! 1. a thread reads a *corner*, `corner_rows` vectors of `corner_columns` elements, all before it uses any;
//! 2. it transposes the corner in its registers (renaming words; bytes and halves by `__byte_perm`) and puts each column, now a
//!    *chunk* of `corner_rows` elements along the destination, into shared memory;
//! 3. after the barrier the chunks leave in the order of the destination.
//!
//! Chunks lie in shared memory in the order of the destination, but for the [`Swizzle`], which moves no chunk into another row of
//! banks. With it both steps 2 and 3 touch each bank once, for every width of vectors on either side; the tests enumerate that.
//! A corner is as wide as the vectors that strides, extents and alignment allow on each side, at least one word on the shared side.
//!
//! Where a matrix is so narrow that its whole row (or column) is less than 16 bytes, as in blocks of 4 bytes, several of them are
//! neighbours in memory and are *joined*: read, or put and written, as one vector.
//!
//! A tile that is whole has no guards. Rows or columns that only pad a block are read as zeros or not written.

use super::movement::{Axis, Crop, Movement};
use super::text::{Access, Number, Writer, zeros};
use super::{Draft, KernelClass, vector_bytes};

/// Bytes of a row of shared memory: 32 banks of 4.
const BANKS_BYTES: usize = 128;

/// Bytes that a thread should have in flight, unless its corner has more.
const THREAD_BYTES: usize = 64;

/// The figures of a tile; extents in elements, all powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    /// Index of the axis that is innermost in the destination.
    pub(super) row_axis: usize,
    /// Index of the axis that is innermost in the source.
    pub(super) column_axis: usize,
    pub(super) elem: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) corner_rows: usize,
    pub(super) corner_columns: usize,
    /// Elements of a write; those of a chunk, unless less is aligned.
    pub(super) write: usize,
    /// Rows that one read brings, 1 unless a row of the matrix is a corner's.
    pub(super) join_rows: usize,
    /// Columns of a chunk, 1 unless a column of the matrix is a corner's.
    pub(super) join_columns: usize,
    pub(super) threads: usize,
}

/// Which bits of a chunk's number change its place: `chunk ^ (chunk >> down & mask) << up`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Swizzle {
    down: u32,
    mask: usize,
    up: u32,
}

impl Swizzle {
    /// The place of a chunk.
    #[cfg(test)]
    fn apply(self, chunk: usize) -> usize {
        chunk ^ (((chunk >> self.down) & self.mask) << self.up)
    }

    /// The place of a chunk in C++, `chunk` being a variable.
    fn text(self, chunk: &str) -> String {
        match self {
            Self { mask: 0, .. } => chunk.to_owned(),
            Self { down, mask, up: 0 } => format!("({chunk} ^ ({chunk} >> {down} & {mask}))"),
            Self { down, mask, up } => format!("({chunk} ^ ({chunk} >> {down} & {mask}) << {up})"),
        }
    }
}

impl Tile {
    /// The tile for a movement whose innermost axis changes, or `None` where there is too little for a warp.
    pub(super) fn new(movement: &Movement, alignment: usize) -> Option<Self> {
        let elem = movement.elem;
        let row_axis = movement.axes.len().checked_sub(1)?;
        let column_axis = movement.axes.iter().position(|axis| axis.from == elem)?;
        if row_axis == column_axis || movement.axes[row_axis].to != elem {
            return None;
        }
        let (down, across) = (movement.axes[row_axis].extent, movement.axes[column_axis].extent);
        let others = |skip: usize, stride: fn(&Axis) -> usize| {
            movement.axes.iter().enumerate().filter(move |&(at, _)| at != skip).map(move |(_, axis)| stride(axis))
        };
        let corner_columns =
            vector_bytes(alignment, others(column_axis, |axis| axis.from).chain([across * elem])) / elem;
        let write = vector_bytes(alignment, others(row_axis, |axis| axis.to).chain([down * elem])) / elem;
        let corner_rows = write.max(4 / elem.min(4));
        let (rows, columns) = extents(elem, (down, corner_rows), (across, corner_columns));
        let corners = rows / corner_rows * (columns / corner_columns);
        let threads = (rows * columns * elem / THREAD_BYTES).max(32).min(corners).min(256);
        let (join_rows, join_columns) = (1, 1);
        let mut tile = Self {
            row_axis,
            column_axis,
            elem,
            rows,
            columns,
            corner_rows,
            corner_columns,
            write,
            join_rows,
            join_columns,
            threads,
        };
        tile.join(movement, alignment);
        (corners >= 32).then_some(tile)
    }

    /// Joins narrow rows and columns, unless some of them only pad a block.
    fn join(&mut self, movement: &Movement, alignment: usize) {
        let (down, across) = (movement.axes[self.row_axis], movement.axes[self.column_axis]);
        let others = |stride: fn(&Axis) -> usize| {
            let inner = [self.row_axis, self.column_axis];
            movement
                .axes
                .iter()
                .enumerate()
                .filter(move |(at, _)| !inner.contains(at))
                .map(move |(_, axis)| stride(axis))
        };
        let cut = |pads_destination| movement.crop.is_some_and(|crop| crop.pads_destination == pads_destination);
        let row = self.corner_columns * self.elem;
        let column = self.corner_rows * self.elem;
        if across.extent == self.corner_columns && down.from == row && row >= 4 && !cut(true) {
            let bytes = vector_bytes(alignment, others(|axis| axis.from).chain([down.extent * row]));
            self.join_rows = (bytes / row).clamp(1, self.corner_rows);
        }
        if down.extent == self.corner_rows && across.to == column && self.write == self.corner_rows && !cut(false) {
            let bytes = vector_bytes(alignment, others(|axis| axis.to).chain([across.extent * column]));
            self.join_columns = (bytes / column).clamp(1, self.corner_columns);
            self.write = self.corner_rows * self.join_columns;
        }
    }

    /// Bytes of a chunk.
    fn chunk(&self) -> usize {
        self.corner_rows * self.join_columns * self.elem
    }

    /// Bytes of shared memory.
    pub(super) fn bytes(&self) -> usize {
        self.rows * self.columns * self.elem
    }

    /// Corners of a thread.
    fn corners(&self) -> usize {
        self.rows / self.corner_rows * (self.columns / self.corner_columns) / self.threads
    }

    /// Writes of a thread.
    fn writes(&self) -> usize {
        self.rows * self.columns / self.write / self.threads
    }

    /// The part of a tile's elements that exist, in 1/1000, over a whole matrix.
    pub(super) fn use_per_mille(&self, movement: &Movement) -> usize {
        let (down, across) = (movement.axes[self.row_axis].extent, movement.axes[self.column_axis].extent);
        down * 1000 / down.next_multiple_of(self.rows) * across / across.next_multiple_of(self.columns)
    }

    /// True where both sides move 16 bytes at a time.
    pub(super) fn is_wide(&self) -> bool {
        self.join_rows * self.corner_columns * self.elem == 16 && self.write * self.elem == 16
    }

    /// The swizzle: the bits of a corner's column number go onto those bits of the bank that neighbouring threads do not set.
    pub(super) fn swizzle(&self) -> Swizzle {
        let banks = (BANKS_BYTES / self.chunk()).ilog2();
        let across = (self.columns / self.corner_columns).ilog2();
        let below = (self.rows / self.corner_rows).ilog2() + (self.corner_columns / self.join_columns).ilog2();
        let bits = across.min(banks);
        let up = banks - bits;
        if below <= up {
            // Neighbouring threads put neighbouring chunks.
            return Swizzle { down: 0, mask: 0, up: 0 };
        }
        Swizzle { down: below, mask: (1 << bits) - 1, up }
    }
}

/// Rows and columns of a tile. Each is given as extent and least multiple; what a short one leaves free goes to the other.
fn extents(elem: usize, rows: (usize, usize), columns: (usize, usize)) -> (usize, usize) {
    let side: usize = match elem {
        1 => 128,
        2 | 4 => 64,
        _ => 32,
    };
    let area = side * side;
    let fit = |(extent, least): (usize, usize), most: usize| extent.next_power_of_two().min(most).max(least);
    let (mut down, mut across) = (fit(rows, side), fit(columns, side));
    if down < side {
        across = fit(columns, area / down);
    } else if across < side {
        down = fit(rows, area / across);
    }
    (down, across)
}

/// Where the rows or columns of a block end that exist.
struct Limits {
    /// Rows, and whether the tile must be guarded against their end.
    rows: Number,
    columns: Number,
}

/// The kernel.
pub(super) fn draft(movement: &Movement, tile: &Tile, mut out: Writer) -> Draft {
    let limits = Limits {
        rows: out.number("rows", movement.axes[tile.row_axis].extent),
        columns: out.number("columns", movement.axes[tile.column_axis].extent),
    };
    out.line(format!("__shared__ uint4 shared[{}];", tile.bytes() / 16));
    out.line("u8* const tile = (u8*)shared;");
    out.line("const u32 t = threadIdx.x;");
    let blocks = place(movement, tile, &mut out);
    let ends = ends(movement, tile, &limits, &mut out);
    read(movement, tile, &ends, &mut out);
    put(tile, &mut out);
    out.line("__syncthreads();");
    write(movement, tile, &ends, &mut out);
    let Tile { rows, columns, corner_rows, corner_columns, write, join_rows, threads, .. } = *tile;
    let form = format!("t{rows}x{columns}_c{corner_rows}x{corner_columns}_v{}_{write}", corner_columns * join_rows);
    let inside = if tile.elem == 1 { COLUMN.to_owned() } else { String::new() };
    Draft { class: KernelClass::Tile, form, blocks, threads, shared: tile.bytes(), out, inside }
}

/// Which tile this block has: defines `row`, `column`, the digits of the other axes, and `s` and `d`, where the tile begins.
fn place(movement: &Movement, tile: &Tile, out: &mut Writer) -> usize {
    let (down, across) = (movement.axes[tile.row_axis].extent, movement.axes[tile.column_axis].extent);
    let (tiles_down, tiles_across) = (down.div_ceil(tile.rows), across.div_ceil(tile.columns));
    let mut blocks = tiles_down.saturating_mul(tiles_across);
    out.line("// Blocks run along the source's rows, then down, then over the other axes.");
    out.line("u32 block = blockIdx.x;");
    let count = out.number("tiles_across", tiles_across);
    out.digit("across", "block", &count, false);
    let others: Vec<usize> =
        movement.by_source().into_iter().filter(|&at| at != tile.row_axis && at != tile.column_axis).collect();
    if others.is_empty() {
        out.line("const u32 down = block;");
    } else {
        let count = out.number("tiles_down", tiles_down);
        out.digit("down", "block", &count, false);
    }
    for (turn, &at) in others.iter().enumerate() {
        let extent = movement.axes[at].extent;
        blocks = blocks.saturating_mul(extent);
        if turn + 1 == others.len() {
            out.line(format!("const u32 i{at} = block;"));
        } else {
            let extent = out.number(&format!("n{at}"), extent);
            out.digit(&format!("i{at}"), "block", &extent, false);
        }
    }
    out.line(format!("const u32 row = down * {}u, column = across * {}u;", tile.rows, tile.columns));
    let strides = |out: &mut Writer, side: &str, stride: fn(&Axis) -> usize| -> String {
        let terms = others.iter().map(|&at| {
            let by = out.offset(&format!("{side}{at}"), stride(&movement.axes[at]));
            format!(" + (idx)i{at} * {}", by.text)
        });
        terms.collect()
    };
    let (from, to) = (strides(out, "from", |axis| axis.from), strides(out, "to", |axis| axis.to));
    let step = out.offset("row_from", movement.axes[tile.row_axis].from).text;
    out.line(format!("const u8* const s = src + ((idx)row * {step} + (idx)column * {}u{from});", tile.elem));
    let step = out.offset("column_to", movement.axes[tile.column_axis].to).text;
    out.line(format!("u8* const d = dst + ((idx)column * {step} + (idx)row * {}u{to});", tile.elem));
    blocks
}

/// What the guards of a tile compare with; empty texts where nothing has to be compared.
struct Ends {
    /// Rows and columns that are read.
    read: (String, String),
    /// Rows and columns that are written.
    write: (String, String),
    whole: Whole,
}

/// When a tile needs no guards.
enum Whole {
    Always,
    Never,
    /// Under this condition, the same for the whole block.
    If(String),
}

/// Defines how much of the tile exists.
fn ends(movement: &Movement, tile: &Tile, limits: &Limits, out: &mut Writer) -> Ends {
    let (down, across) = (movement.axes[tile.row_axis].extent, movement.axes[tile.column_axis].extent);
    let partial = |extent: usize, step: usize, out: &Writer| !extent.is_multiple_of(step) || !out.literal();
    let mut whole = Vec::new();
    let (mut rows, mut columns) = (String::new(), String::new());
    if partial(down, tile.rows, out) {
        out.line(format!("const u32 rows_here = {} - row;", limits.rows.text));
        "rows_here".clone_into(&mut rows);
        whole.push(format!("rows_here >= {}u", tile.rows));
    }
    if partial(across, tile.columns, out) {
        out.line(format!("const u32 columns_here = {} - column;", limits.columns.text));
        "columns_here".clone_into(&mut columns);
        whole.push(format!("columns_here >= {}u", tile.columns));
    }
    let mut read = (rows.clone(), columns.clone());
    let mut write = (rows, columns);
    if let Some(Crop { outer, inner, limit, pads_destination }) = movement.crop {
        let block = movement.axes[inner].extent;
        let limit = out.number("limit", limit).text;
        out.line("// Channels of this tile that exist.");
        let (start, side) = if pads_destination { ("row", tile.rows) } else { ("column", tile.columns) };
        out.line(format!("const u32 real = max((int)({limit} - i{outer} * {block}u - {start}), 0);"));
        "real".clone_into(if pads_destination { &mut read.0 } else { &mut write.1 });
        whole.push(format!("real >= {}u", side.min(block)));
    }
    let whole = if out.literal() && (down < tile.rows || across < tile.columns) {
        Whole::Never
    } else if whole.is_empty() {
        Whole::Always
    } else {
        Whole::If(whole.join(" && "))
    };
    Ends { read, write, whole }
}

/// The condition that `row` and `column` are below the ends; empty if they always are.
fn guard(row: &str, column: &str, ends: &(String, String)) -> String {
    let terms = [(row, &ends.0), (column, &ends.1)];
    let terms: Vec<String> =
        terms.iter().filter(|(_, end)| !end.is_empty()).map(|(at, end)| format!("{at} < {end}")).collect();
    if terms.is_empty() { String::new() } else { format!("if ({}) ", terms.join(" && ")) }
}

/// `body` once without guards, for whole tiles, and once with them, as far as either is needed.
fn both(out: &mut Writer, ends: &Ends, body: impl Fn(&mut Writer, bool)) {
    let whole = match &ends.whole {
        Whole::Always => return body(out, false),
        Whole::Never => return body(out, true),
        Whole::If(whole) => whole,
    };
    out.line(format!("if ({whole}) {{"));
    body(out, false);
    out.line("} else {");
    body(out, true);
    out.line("}");
}

/// Step 1: defines `in`, the corners of the thread.
fn read(movement: &Movement, tile: &Tile, ends: &Ends, out: &mut Writer) {
    let Tile { elem, columns, corner_rows, corner_columns, join_rows, threads, .. } = *tile;
    let bytes = join_rows * corner_columns * elem;
    let (words, reads) = ((bytes / 4).max(1), corner_rows / join_rows);
    let corners = tile.corners();
    out.line(format!("u32 in[{corners}][{reads}][{words}];"));
    let step = out.offset("row_from", movement.axes[tile.row_axis].from).text;
    let i = if join_rows > 1 { format!("i * {join_rows}") } else { "i".to_owned() };
    let fetch = out.access(Access::Read, bytes, "in[k][i]", &format!("p + {i} * {step}"));
    both(out, ends, |out, guarded| {
        out.unrolled("k", corners);
        corner(out, columns, corner_rows, corner_columns, threads);
        out.line(format!("const u8* const p = s + ((idx)r * {step} + c * {elem}u);"));
        out.unrolled("i", reads);
        if guarded {
            out.line(zeros("in[k][i]", words).trim_end());
            out.line(format!("{}{fetch}", guard(&format!("r + {i}"), "c", &ends.read)));
        } else {
            out.line(&fetch);
        }
        out.line("}");
        out.line("}");
    });
}

/// Defines `r` and `c`, where the thread's corner `k` begins in the tile.
fn corner(out: &mut Writer, columns: usize, corner_rows: usize, corner_columns: usize, threads: usize) {
    let across = columns / corner_columns;
    out.line(format!("const u32 m = t + k * {threads}u;"));
    out.line(format!("const u32 r = m / {across}u * {corner_rows}u, c = m % {across}u * {corner_columns}u;"));
}

/// Step 2: the columns of the corners, transposed, into shared memory.
fn put(tile: &Tile, out: &mut Writer) {
    let Tile { elem, rows, columns, corner_rows, corner_columns, join_rows, join_columns, threads, .. } = *tile;
    let chunk = tile.chunk();
    // Word `word` of the corner's row `row`.
    let held = |row: &str, word: &str| match join_rows {
        1 => format!("in[k][{row}][{word}]"),
        _ => format!("in[k][({row}) / {join_rows}][({row}) % {join_rows} * {} + {word}]", corner_columns * elem / 4),
    };
    // Word `i` of the chunk is word `i` of column `j`, or with joined columns of one of several.
    let (i, j) = if join_columns > 1 {
        let words = corner_rows * elem / 4;
        (format!("(i % {words})"), format!("(j * {join_columns} + i / {words})"))
    } else {
        ("i".to_owned(), "j".to_owned())
    };
    out.unrolled("k", tile.corners());
    corner(out, columns, corner_rows, corner_columns, threads);
    out.unrolled("j", corner_columns / join_columns);
    out.line(format!("u32 w[{}];", chunk / 4));
    out.unrolled("i", chunk / 4);
    out.line(match elem {
        1 => {
            let word = format!("{j} / 4");
            let rows: Vec<String> = (0..4).map(|row| held(&format!("4 * {i} + {row}"), &word)).collect();
            format!("w[i] = column_of({}, {j});", rows.join(", "))
        }
        2 => {
            let word = format!("{j} / 2");
            let (low, high) = (held(&format!("2 * {i}"), &word), held(&format!("2 * {i} + 1"), &word));
            format!("w[i] = __byte_perm({low}, {high}, {j} % 2 ? 0x7632 : 0x5410);")
        }
        4 => format!("w[i] = {};", held(&i, &j)),
        _ => {
            let words = elem / 4;
            format!("w[i] = {};", held(&format!("{i} / {words}"), &format!("{j} * {words} + {i} % {words}")))
        }
    });
    out.line("}");
    out.line(if join_columns > 1 {
        format!("const u32 y = c / {join_columns}u + j;")
    } else {
        format!("const u32 y = (c + j) * {}u + r / {corner_rows}u;", rows / corner_rows)
    });
    let store = out.access(Access::Put, chunk, "w", &format!("tile + {} * {chunk}u", tile.swizzle().text("y")));
    out.line(store);
    out.line("}");
    out.line("}");
}

/// Step 3: from shared memory to the destination, in its order.
fn write(movement: &Movement, tile: &Tile, ends: &Ends, out: &mut Writer) {
    let Tile { elem, rows, corner_rows, write, join_columns, threads, .. } = *tile;
    let chunk = tile.chunk();
    let bytes = write * elem;
    let step = out.offset("column_to", movement.axes[tile.column_axis].to).text;
    let part = if write < corner_rows { format!(" + r % {corner_rows}u * {elem}u") } else { String::new() };
    let place = format!("tile + ({} * {chunk}u{part})", tile.swizzle().text("y"));
    let fetch = out.access(Access::Get, bytes, "w", &place);
    let store = out.access(Access::Write, bytes, "w", &format!("d + ((idx)c * {step} + r * {elem}u)"));
    both(out, ends, |out, guarded| {
        out.unrolled("k", tile.writes());
        out.line(format!("const u32 x = (t + k * {threads}u) * {write}u;"));
        out.line(format!("const u32 c = x / {rows}u, r = x % {rows}u, y = x / {}u;", corner_rows * join_columns));
        out.line(format!("u32 w[{}];", (bytes / 4).max(1)));
        out.line(&fetch);
        out.line(if guarded { format!("{}{store}", guard("r", "c", &ends.write)) } else { store.clone() });
        out.line("}");
    });
}

/// Byte `j` of four rows as one word; two neighbouring columns share the inner permutations.
const COLUMN: &str = "\
static __device__ __forceinline__ u32 column_of(u32 a, u32 b, u32 c, u32 d, int j) {
  const u32 two = j & 2 ? 0x7362 : 0x5140;
  return __byte_perm(__byte_perm(a, b, two), __byte_perm(c, d, two), j & 1 ? 0x7632 : 0x5410);
}
";

#[cfg(test)]
mod tests {
    use super::{Swizzle, Tile, extents};
    use crate::cuda::model::bank_turns;

    /// Every tile that vectors of every width on either side can lead to, for long and short extents.
    fn tiles() -> Vec<Tile> {
        let mut tiles = Vec::new();
        let lengths = [4096, 100, 49, 32, 16, 8, 4];
        for elem in [1, 2, 4, 8, 16_usize] {
            let widths = || (0..).map(|log| 1 << log).take_while(move |&width| width * elem <= 16);
            for (write, corner_columns) in widths().flat_map(|write| widths().map(move |read| (write, read))) {
                for (down, across) in lengths.iter().flat_map(|&down| lengths.map(|across| (down, across))) {
                    let corner_rows = write.max(4 / elem.min(4));
                    let (rows, columns) = extents(elem, (down, corner_rows), (across, corner_columns));
                    let corners = rows / corner_rows * (columns / corner_columns);
                    let threads = (rows * columns * elem / super::THREAD_BYTES).max(32).min(corners).min(256);
                    let (row_axis, column_axis) = (0, 1);
                    let tile = Tile {
                        row_axis,
                        column_axis,
                        elem,
                        rows,
                        columns,
                        corner_rows,
                        corner_columns,
                        write,
                        join_rows: 1,
                        join_columns: 1,
                        threads,
                    };
                    tiles.extend((corners >= 32).then_some(tile));
                }
            }
        }
        tiles
    }

    /// Turns of the banks that a warp's accesses need over those they would need without conflicts.
    fn excess(tile: &Tile, swizzle: Swizzle) -> (usize, usize) {
        let Tile { elem, rows, columns, corner_rows, corner_columns, write, threads, .. } = *tile;
        let chunk = corner_rows * elem;
        let least = |bytes: usize| (bytes / 4).max(1);
        let (mut put, mut get) = (0, 0);
        for warp in 0..threads / 32 {
            for k in 0..tile.corners() {
                for j in 0..corner_columns {
                    let at = (0..32).map(|lane| {
                        let m = warp * 32 + lane + k * threads;
                        let (r, c) = (
                            m / (columns / corner_columns) * corner_rows,
                            m % (columns / corner_columns) * corner_columns,
                        );
                        swizzle.apply((c + j) * (rows / corner_rows) + r / corner_rows) * chunk
                    });
                    put += bank_turns(at, chunk) - least(chunk);
                }
            }
            for k in 0..tile.writes() {
                let at = (0..32).map(|lane| {
                    let x = (warp * 32 + lane + k * threads) * write;
                    swizzle.apply(x / corner_rows) * chunk + x % corner_rows * elem
                });
                get += bank_turns(at, write * elem) - least(write * elem);
            }
        }
        (put, get)
    }

    #[test]
    fn no_tile_has_a_bank_conflict() {
        let tiles = tiles();
        assert!(tiles.len() > 1000, "{} tiles", tiles.len());
        for tile in tiles {
            assert_eq!(excess(&tile, tile.swizzle()), (0, 0), "{tile:?}, {:?}", tile.swizzle());
        }
    }

    #[test]
    fn without_the_swizzle_there_are_conflicts() {
        let plain = Swizzle { down: 0, mask: 0, up: 0 };
        let square =
            tiles().into_iter().find(|tile| (tile.elem, tile.rows, tile.columns, tile.write) == (4, 64, 64, 4));
        assert_ne!(excess(&square.expect("the usual tile"), plain), (0, 0));
    }

    #[test]
    fn a_swizzle_moves_no_two_chunks_to_one_place() {
        for tile in tiles() {
            let chunks = tile.rows * tile.columns / tile.corner_rows;
            let mut met = vec![false; chunks];
            for chunk in 0..chunks {
                let place = tile.swizzle().apply(chunk);
                assert!(!std::mem::replace(&mut met[place], true), "{tile:?}: {place} twice");
            }
        }
    }
}
