//! The reference page of the dialect, written from the table.

use super::op::{DialectOp, Operand};
use super::spell::{Letters, spell};
use super::table::{Entry, LAST, Slot, TABLE};
use super::{FIRST_IR_VERSION, FIRST_OPSET, OVERLOAD_IR_VERSION, VERSION, canonical_weight};
use crate::proto::{FunctionProto, NodeProto};
use relayout_ir::layout::Layout;
use std::fmt::Write as _;

const HEAD: &str = "# The dialect

Ops of domain `relayout`: standard ops on operands that are stored in other layouts than ONNX's, and moves between layouts. Each is
a function local to the model whose body is standard ONNX. A runtime that inlines functions runs the file; a compiler that knows the
domain matches calls by name and need not look at a body. Generated from the table in `crates/onnx/src/dialect/`; a test
compares. To write it anew:

    cargo run -p relayout-onnx --example dialect > docs/dialect.md

";

const STORAGE: &str = "## Storage shapes

A value that is stored as a layout is a tensor with one dim per digit of the layout, outermost first.

| layout | digits | storage shape of a value of 20 channels |
|---|---|---|
";

/// Layouts of which the page tells the storage shape, with their general form and the shape for 20 channels.
const LAYOUTS: &[(&str, &str)] = &[
    ("NHWC", "`[N, H, W, 20]`"),
    ("N H W C[20:24]", "`[N, H, W, 24]`"),
    ("NCHW16c", "`[N, 2, H, W, 16]`"),
    ("NCHW8c", "`[N, 3, H, W, 8]`"),
    ("NCHW4c", "`[N, 5, H, W, 4]`"),
    ("CHWN4", "`[5, H, W, N, 4]`"),
];

const LANES: &str = "
Dims of an axis multiply to its *slots*. Slots that no index has are pad lanes, at the end of the axis: 12 in `NCHW16c` above, 4 in
`C[20:24]`. Functions compute on slots. They neither crop nor refill, so a name says nothing of slot maps, and one function
serves every shape. What this asks of the caller:

- Weights have as many slots as the features that they meet, with zeros in pad lanes (quantized weights: their zero point) on the
  sides of input and output channels; a bias, a scale or a zero point by channel has an entry per slot.
- `group` of a depthwise convolution is the number of slots. Other grouped convolutions need blocks that lie within groups, and no
  pad lanes.
- Entries of `sizes` of a Resize speak of slots. There is no `axes`: `scales` and `sizes` list all axes.
- The column *pad lanes* says what lanes of operand 0 may hold so that the other slots are right.

## Names

The standard op; the number of spatial axes where it has a window; the layout of operand 0. A capital is the outermost digit of its
axis, a number with a small letter a block (`4cx16x`: a block of 4 whose steps span 16 slots, where that does not follow from the
blocks to its right). Then, each by ONNX's name of it and after an underscore: optional operands that are there, and operands and
results whose layout is not the usual one, with that layout. Usual are: for results of features, the layout of operand 0; for
weights, output channels in the place of N and input channels in that of C (`NHWC`: `OHWI`, `CHWN4`: `I/4 H W O I%4`), but blocks
of both where channels are the innermost block (`NCHW16c`: `OIHW16i16o`); for everything else, ONNX's order. So `Conv2d_NHWC` has
two operands, `Conv2d_NHWC_B` a bias too, and `Conv2d_NCHW_W_OIHW16o_Y_NCHW16c` makes blocks of plain features. Weights of a
transposed convolution have the letters `IOHW`.

## Calls

- *Operands.* A call lists the operands that are there, in ONNX's order, and no empty name in the place of one that is absent:
  another set of operands is another function.
- *Attributes.* A function has every attribute that the op has at the model's opset, under the same name. What the call leaves out
  is absent on the op in the body: ONNX Runtime and the inliner of the Python package `onnx` drop the reference. The reference
  evaluator of that package does not; inline first.
- *Order of axes.* All that functions say of axes is said of ONNX's order, as on the standard op, and is **not** renumbered:
  `strides`, `pads`, `dilations`, `kernel_shape`, `output_padding` and `output_shape` go by spatial axes; `axis` counts
  logical axes; `scales`, `sizes` and `roi` have an entry per logical axis. This is unlike standard ops that the optimizer leaves
  standard and runs on permuted storage: there the exporter **does** renumber `axis`, `axes`, `perm` and operands such as the pads
  of Pad or the scales of Resize, because such an op knows nothing of layouts.
- *Body.* Each stored operand is brought to ONNX's order of axes, the standard op runs, the result is brought to its layout. An
  order of whole axes takes one Transpose, blocks also a Reshape whose target is computed from Shape; an operand in ONNX's order
  takes nothing.
- *Halves.* Where calls of a function compute on float16, and all on floats, its body has a Sum of one operand before a move of
  operand 0, between two moves and behind the last. It computes nothing: a runtime that computes arithmetic on halves in float32,
  such as ONNX Runtime on a CPU, does not round between functions then, as it does not between the ops of the model itself.

";

const MOVES: &str = "## Moves

Input `X`, output `Y`. Slots keep their numbers: slot i of an axis becomes slot i where the result has one, further slots of the
result are zero. So pad lanes that both layouts have are carried as they are.

Every move is a call of `Relayout`; its attributes say all of it, and its `overload` tells functions whose bodies differ apart.

| overload | attributes | body | from opset |
|---|---|---|---|
| none | `perm`: dim i of Y is dim `perm[i]` of X | Transpose. Every move that only puts storage dims in another order, blocked or not | FIRST |
| `FROM_TO` | `from`, `to`: the layouts of X and Y, spelled out | Reshape to the digits that both layouts are made of, Transpose, Reshape, as far as needed; targets are computed from Shape | FIRST |
| `.._roundC` | | also: Pad of axis C with zeros up to a multiple of the block that it has in TO, computed from Shape | 11 |
| `.._fillC` | `slots`: number of slots of Y, one entry per axis that is filled, by axis | also: Pad of axis C with zeros up to its entry | 12 |
| `.._cropC` | `shape`: number of slots of Y per axis, -1 for those that are not cropped | also: Slice of axis C to its entry | 12 |

`from` and `to` are spelled as above under *layout* or *digits*. Where X has more slots of an axis than are kept, `shape` says how many are,
and where that is not `from` rounded up to its block, `from` has a slot map; where Y is filled, `to` has one (`C[20:24]`: 20 are
kept, of 24). Letters are those of features (`NCW`, `NCHW`, `NCDHW`) at ranks 3 to 5, whatever the value is, and at others `a`, `b`, .. in
attributes, capitals in overloads. Slots change while their axis is one dim: before the move where FROM has it whole, else after.
Where both have it in blocks there are two moves, and the slots change in between. A move whose pad lanes lie in several places
(`C[58:64,58:64]` to `C`) has no function, nor has one that crops an axis of unknown size.

### Moves and libraries of kernels

A runtime that has a kernel for op `Relayout` of the domain runs every move on it, and without one the bodies run: the same file, the
same bits. That is why moves are one op. A library registers kernels by name, and there is no end to layouts, so a function named by
them could have none; attributes have no such limit, but one name has one body. The `overload` of ONNX's IR version 10 is what
lets one op have many: ONNX Runtime looks registered kernels up by name and domain alone, and functions by overload too. Seen with
1.31 at IR versions 8 to 13 and opsets 7 to 26, in the graph and in branches. `crates/ortop` is such a library, and its attributes are these.
Moves of elements of less than a byte and of strings, for which it has no kernel, and moves in models of older opsets are a Transpose of
the standard where that says them.

";

/// The contents of `docs/dialect.md`.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    versions(&mut page);
    page.push_str(STORAGE);
    for (text, shape) in LAYOUTS {
        let Ok(layout) = text.parse::<Layout>() else { continue };
        let names = relayout_ir::layout::LayoutNames::features(layout.rank());
        let _ = writeln!(page, "| `{layout}` | `{}` | {shape} |", layout.general_form(&names));
    }
    page.push_str(LANES);
    ops(&mut page);
    page.push_str(&MOVES.replace("FIRST", &FIRST_OPSET.to_string()));
    examples(&mut page);
    page
}

fn versions(page: &mut String) {
    let _ = write!(
        page,
        "## Versions

The domain has version {VERSION}: a model imports `relayout` {VERSION} and the standard domain, and has IR version \
         {FIRST_IR_VERSION} or later,
{OVERLOAD_IR_VERSION} or later if a move in it has an overload (ONNX Runtime reads that from 1.18 on). Bodies are written in the
model's own opset, {FIRST_OPSET} to {LAST}. A function that changes what it computes gets another name or overload or the domain
another version; a file has the body of every function that it calls.

"
    );
}

fn ops(page: &mut String) {
    page.push_str("## Ops\n\n*Operands* lists the letters of those that may be stored; `_` are read as they are, `?` may be absent.\n\n");
    page.push_str(
        "| op | opsets | operands | result | attributes | pad lanes | for example |\n|---|---|---|---|---|---|---|\n",
    );
    for entry in TABLE {
        let (first, last) = (entry.opsets.0.max(FIRST_OPSET), entry.opsets.1);
        let opsets = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let list = |slots: &[Slot]| slots.iter().map(|s| operand(entry, s)).collect::<Vec<_>>().join(", ");
        let attributes: Vec<String> = entry
            .attributes
            .iter()
            .flat_map(|some| some.iter())
            .filter(|a| a.opsets.0 <= last && a.opsets.1 >= first)
            .map(|a| match (a.opsets.0 > first, a.opsets.1 < last) {
                (true, _) => format!("`{}` ({}-)", a.name, a.opsets.0),
                (false, true) => format!("`{}` (-{})", a.name, a.opsets.1),
                (false, false) => format!("`{}`", a.name),
            })
            .collect();
        let forms: Vec<String> =
            ["NHWC", "NCHW16c"].iter().filter_map(|x| Some(format!("`{}`", form(entry, x)?.name()))).collect();
        let _ = writeln!(
            page,
            "| {} | {opsets} | {} | {} | {} | {} | {} |",
            entry.op,
            list(entry.inputs),
            list(entry.outputs),
            attributes.join(", "),
            entry.lanes,
            forms.join(", ")
        );
    }
    page.push('\n');
}

/// An operand with the letters of its plain layout.
fn operand(entry: &Entry, slot: &Slot) -> String {
    let rank = match slot.letters {
        None => 0,
        Some(Letters::Channels) => 1,
        Some(Letters::Matrix(letters)) => letters.len(),
        Some(_) => entry.ranks.1.min(4),
    };
    let letters = slot.letters.and_then(|letters| spell(&Layout::row_major(rank), letters).ok());
    let optional = if slot.optional { "?" } else { "" };
    format!("{}{optional} `{}`", slot.name, letters.as_deref().unwrap_or("_"))
}

/// The form of an op with all its operands, features stored as `x`, weights as goes with that.
fn form(entry: &Entry, x: &str) -> Option<DialectOp> {
    let x: Layout = x.parse().ok()?;
    let stored = |slot: &Slot| match slot.letters {
        Some(Letters::Features) => Operand::Stored(x.clone()),
        Some(Letters::Weights | Letters::TransposedWeights) => {
            canonical_weight(entry.op, &x).map_or(Operand::Plain, Operand::Stored)
        }
        _ if slot.optional && slot.name != "B" => Operand::Absent,
        _ => Operand::Plain,
    };
    let ins: Vec<Operand> = entry.inputs.iter().map(stored).collect();
    let outs: Vec<Operand> = entry.outputs.iter().map(stored).collect();
    DialectOp::new(entry.op, entry.opsets.1, &ins, &outs).ok()
}

fn examples(page: &mut String) {
    page.push_str("## Two bodies\n\n");
    for x in ["NHWC", "NCHW16c"] {
        let Some(form) = TABLE.first().and_then(|conv| form(conv, x)) else { continue };
        let function = form.function();
        let _ = writeln!(page, "`{}`: {}\n", form.name(), function.doc_string());
        for line in body(&function) {
            let _ = writeln!(page, "    {line}");
        }
        page.push('\n');
    }
    while page.ends_with("\n\n") {
        page.pop();
    }
}

/// A body, one node a line.
fn body(function: &FunctionProto) -> Vec<String> {
    function.node.iter().map(node).collect()
}

fn node(node: &NodeProto) -> String {
    let attributes: Vec<String> = node
        .attribute
        .iter()
        .map(|a| match (a.ref_attr_name.as_deref(), a.t.as_deref()) {
            (Some(from), _) => format!("{}=@{from}", a.name()),
            (None, Some(tensor)) => {
                let bytes = tensor.raw_data.as_deref().unwrap_or_default();
                let values = bytes.chunks_exact(8).filter_map(|b| Some(i64::from_le_bytes(b.try_into().ok()?)));
                format!("{:?}", values.collect::<Vec<_>>())
            }
            (None, None) if a.i.is_some() => format!("{}={}", a.name(), a.i()),
            (None, None) => format!("{}={:?}", a.name(), a.ints),
        })
        .collect();
    let words = if attributes.is_empty() { String::new() } else { format!(" {{{}}}", attributes.join(", ")) };
    format!("{} = {}({}){words}", node.output.join(", "), node.op_type(), node.input.join(", "))
}
