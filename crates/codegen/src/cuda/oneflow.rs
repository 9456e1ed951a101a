//! `OneFlow`'s scheme, to compare with.
//!
//! Written after its article of 2022 on permute kernels, in this generator's dialect: the shape is an argument and division is
//! plain, every access is guarded, the grid is walked in strides. Units of 1 to 16 bytes are moved one at a time by looking each one
//! up; a batch of matrices with both extents of at least 32 goes through a padded tile of 32 x 33 with 32 x 8 threads; elements of 2
//! bytes with even extents through one of 64 x 66 that is read and written in words of two.
//!
//! It has no blocked layouts. Its index type is chosen by size, like ours.

use super::movement::Movement;
use super::text::{Access, Writer};
use super::{CudaError, Draft, KernelClass};

/// Blocks of a grid at most; the rest is done in strides.
const MOST_BLOCKS: usize = 65_535;

/// The kernel that the scheme has for a movement.
pub(super) fn draft(movement: &Movement, alignment: usize, out: Writer) -> Result<Draft, CudaError> {
    if movement.crop.is_some() || movement.tag.contains("pack") {
        return Err(CudaError::Variant { what: "blocked layouts" });
    }
    let swaps = |batch: usize, rows: usize, columns: usize, out: Writer| {
        if movement.elem == 2 && rows.is_multiple_of(2) && columns.is_multiple_of(2) && alignment >= 4 {
            halves(batch, rows, columns, out)
        } else {
            batch_transpose(movement.elem, batch, rows, columns, out)
        }
    };
    let extents: Vec<usize> = movement.axes.iter().map(|axis| axis.extent).collect();
    match (extents.as_slice(), movement.tag.as_str()) {
        (&[columns, rows], "1_0") if rows >= 32 && columns >= 32 => Ok(swaps(1, rows, columns, out)),
        (&[batch, columns, rows], "0_2_1") if rows >= 32 && columns >= 32 => Ok(swaps(batch, rows, columns, out)),
        _ => Ok(lookup(movement, out)),
    }
}

/// One unit a step, its place worked out by plain divisions.
fn lookup(movement: &Movement, mut out: Writer) -> Draft {
    let elem = movement.elem;
    let elems = movement.destination_bytes / elem;
    let threads = 256;
    out.plain_argument("count", elems);
    out.line(format!(
        "for (idx i = (idx)blockIdx.x * {threads}u + threadIdx.x; i < count; i += (idx){threads}u * gridDim.x) {{"
    ));
    out.line("idx rest = i, from = 0;");
    let mut below = elems;
    for (at, axis) in movement.axes.iter().enumerate() {
        below /= axis.extent;
        let (places, stride) = (format!("places{at}"), format!("stride{at}"));
        out.plain_argument(&places, below);
        out.plain_argument(&stride, axis.from / elem);
        out.line(format!("const idx i{at} = rest / {places}; rest -= i{at} * {places}; from += i{at} * {stride};"));
    }
    if movement.axes.is_empty() {
        out.line("from = rest;");
    }
    out.line(format!("u32 w[{}];", (elem / 4).max(1)));
    let read = out.access(Access::Read, elem, "w", &format!("src + from * {elem}u"));
    let write = out.access(Access::Write, elem, "w", &format!("dst + i * {elem}u"));
    out.line(read);
    out.line(write);
    out.line("}");
    let blocks = elems.div_ceil(threads).min(MOST_BLOCKS);
    let form = format!("unit{elem}");
    Draft { class: KernelClass::Gather, form, blocks, threads, shared: 0, out, inside: String::new() }
}

/// The head that both tiled kernels share: walks the tiles and defines `row0`, `column0` and `base`.
fn tiles(side: usize, batch: usize, rows: usize, columns: usize, out: &mut Writer) -> usize {
    let (down, across) = (rows.div_ceil(side), columns.div_ceil(side));
    let count = batch.saturating_mul(down).saturating_mul(across);
    for (name, value) in
        [("rows", rows), ("columns", columns), ("tiles_down", down), ("tiles_across", across), ("tiles", count)]
    {
        out.plain_argument(name, value);
    }
    out.line("const u32 tx = threadIdx.x % 32u, ty = threadIdx.x / 32u;");
    out.line("for (idx i = blockIdx.x; i < tiles; i += gridDim.x) {");
    out.line("const idx matrix = i / (tiles_down * tiles_across), one = i - matrix * (tiles_down * tiles_across);");
    out.line("const idx down = one / tiles_across, across = one - down * tiles_across;");
    out.line(format!("const idx row0 = down * {side}u, column0 = across * {side}u, base = matrix * rows * columns;"));
    count.min(MOST_BLOCKS)
}

/// The padded tile of 32 x 33 units.
fn batch_transpose(elem: usize, batch: usize, rows: usize, columns: usize, mut out: Writer) -> Draft {
    let shared = 32 * 33 * elem;
    out.line(format!("__shared__ uint4 shared[{}];", shared.div_ceil(16)));
    out.line("u8* const tile = (u8*)shared;");
    let blocks = tiles(32, batch, rows, columns, &mut out);
    out.line(format!("u32 w[{}];", (elem / 4).max(1)));
    let read =
        out.access(Access::Read, elem, "w", &format!("src + (base + (row0 + r) * columns + column0 + tx) * {elem}u"));
    let put = out.access(Access::Put, elem, "w", &format!("tile + (r * 33u + tx) * {elem}u"));
    let get = out.access(Access::Get, elem, "w", &format!("tile + (tx * 33u + c) * {elem}u"));
    let write =
        out.access(Access::Write, elem, "w", &format!("dst + (base + (column0 + c) * rows + row0 + tx) * {elem}u"));
    out.line("#pragma unroll");
    out.line("for (u32 r = ty; r < 32u; r += 8u) {");
    out.line(format!("if (row0 + r < rows && column0 + tx < columns) {{ {read} {put} }}"));
    out.line("}");
    out.line("__syncthreads();");
    out.line("#pragma unroll");
    out.line("for (u32 c = ty; c < 32u; c += 8u) {");
    out.line(format!("if (column0 + c < columns && row0 + tx < rows) {{ {get} {write} }}"));
    out.line("}");
    out.line("__syncthreads();");
    out.line("}");
    let form = format!("unit{elem}");
    Draft { class: KernelClass::Tile, form, blocks, threads: 256, shared, out, inside: String::new() }
}

/// The padded tile of 64 x 66 elements of 2 bytes, read and written two at a time.
fn halves(batch: usize, rows: usize, columns: usize, mut out: Writer) -> Draft {
    let shared = 64 * 66 * 2;
    out.line(format!("__shared__ uint4 shared[{}];", shared / 16));
    out.line("u8* const tile = (u8*)shared;");
    let blocks = tiles(64, batch, rows, columns, &mut out);
    out.line("u32 w[1], high[1];");
    let read = out.access(Access::Read, 4, "w", "src + (base + (row0 + r) * columns + column0 + 2u * tx) * 2u");
    let put = out.access(Access::Put, 4, "w", "tile + (r * 33u + tx) * 4u");
    let low = out.access(Access::Get, 2, "w", "tile + (2u * tx * 66u + c) * 2u");
    let up = out.access(Access::Get, 2, "high", "tile + ((2u * tx + 1u) * 66u + c) * 2u");
    let write = out.access(Access::Write, 4, "w", "dst + (base + (column0 + c) * rows + row0 + 2u * tx) * 2u");
    out.line("#pragma unroll");
    out.line("for (u32 r = ty; r < 64u; r += 8u) {");
    out.line(format!("if (row0 + r < rows && column0 + 2u * tx < columns) {{ {read} {put} }}"));
    out.line("}");
    out.line("__syncthreads();");
    out.line("#pragma unroll");
    out.line("for (u32 c = ty; c < 64u; c += 8u) {");
    out.line("if (column0 + c < columns && row0 + 2u * tx < rows) {");
    out.line(low);
    out.line(up);
    out.line("w[0] |= high[0] << 16;");
    out.line(write);
    out.line("}");
    out.line("}");
    out.line("__syncthreads();");
    out.line("}");
    let form = "pairs".to_owned();
    Draft { class: KernelClass::Tile, form, blocks, threads: 256, shared, out, inside: String::new() }
}
