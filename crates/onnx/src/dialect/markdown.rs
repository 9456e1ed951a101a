//! The reference page of the dialect, written from the table.

use super::op::{DialectOp, Operand};
use super::spell::{Letters, spell};
use super::table::{Entry, LAST, Slot, TABLE};
use super::{FIRST_IR_VERSION, FIRST_OPSET, VERSION, canonical_weight};
use crate::proto::{FunctionProto, NodeProto};
use relayout_ir::layout::Layout;
use std::fmt::Write as _;

const HEAD: &str = "# The dialect

This page is for those who write a compiler or a runtime that reads files of domain `relayout`, and for those who want to know
what is in such a file. The targets `nhwc`, `cuda-tensorcore`, `cuda-dp4a`, `x86-avx512`, `x86-avx2` and `arm-neon` write them:

    relayout optimize model.onnx --target nhwc -o out.onnx

The domain has two kinds of ops: standard ops on operands that are stored in other layouts than ONNX's, and moves between layouts.
Each is a function local to the model, and its body is standard ONNX. So there are two ways to read a file:

- A runtime that inlines functions runs it as it is.
- A compiler that knows the domain matches calls by name, and need not look at a body.

The tables come from `crates/onnx/src/dialect/`, and a test compares the page with them. To write the page anew:

    cargo run -p relayout-onnx --example dialect > docs/dialect.md

";

const STORAGE: &str = "## Storage shapes

A value in a layout is stored as a tensor with one dim per digit of the layout, outermost first.

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
The dims of an axis multiply to the number of its *slots*. Slots at the end of the axis that hold no index are *padding slots*: 12
in `NCHW16c` above, 4 in `C[20:24]`. Functions compute on slots. They neither crop nor refill, so a name says nothing of slot
maps, and one function serves every shape. The caller must see to this:

- Weights have as many slots as the features that they meet. Padding slots of input and output channels are zeros; in quantized
  weights they are the zero point. A bias, a scale or a zero point by channel has an entry per slot.
- `group` of a depthwise convolution is the number of slots. Other grouped convolutions need blocks that lie within groups, and no
  padding slots.
- Entries of `sizes` of a Resize count slots. There is no `axes`: `scales` and `sizes` list all axes.
- Operand 0 holds in its padding slots only what the column *padding slots* allows. Then the other slots are right.

## Names

The name of a function has these parts. The last two rows are one list, in the order of operands and results.

| part | when | in `Conv2d_NCHW_W_OIHW16o_Y_NCHW16c` |
|---|---|---|
| the standard op | always | `Conv` |
| the number of spatial axes | if the op has a window | `2d` |
| the layout of operand 0 | if operand 0 is features; products of matrices name every layout below | `_NCHW` |
| each optional operand that is there, by ONNX's name of it | in the order of operands | none; a bias would be `_B` between the next two |
| each operand and result whose layout is not the usual one, by ONNX's name of it, with that layout | in the order of operands, then of results | `_W_OIHW16o`, `_Y_NCHW16c` |

This example makes blocks of plain features. `Conv2d_NHWC` has two operands, `Conv2d_NHWC_B` a bias too.

In a layout a capital is the outermost digit of its axis, and a number with a small letter is a block. `4cx16x` is a block of 4
whose steps span 16 slots; the span is written only if it does not follow from the blocks to its right.

| of | the usual layout is | example |
|---|---|---|
| results of features | the layout of operand 0 | |
| weights | output channels in the place of N, input channels in the place of C | `NHWC`: `OHWI`, `CHWN4`: `I/4 H W O I%4` |
| weights, where channels are the innermost block of features | blocks of both | `NCHW16c`: `OIHW16i16o` |
| everything else | ONNX's order | |

Weights of a transposed convolution have the letters `IOHW`.

## Calls

- *Operands.* A call lists the operands that are there, in ONNX's order. It has no empty name for an absent operand: another set
  of operands is another function.
- *Attributes.* A function has every attribute that the op has at the model's opset, under the same name. If the call leaves one
  out, it is absent on the op in the body: ONNX Runtime and the inliner of the Python package `onnx` drop the reference. The
  reference evaluator of that package does not, so inline first.
- *Order of axes.* All that functions say of axes is about ONNX's order, as on the standard op, and is **not** renumbered:
  `strides`, `pads`, `dilations`, `kernel_shape`, `output_padding` and `output_shape` go by spatial axes; `axis` counts logical
  axes; `scales`, `sizes` and `roi` have an entry per logical axis. This differs from standard ops that the optimizer leaves
  standard and runs on permuted storage. Such an op knows nothing of layouts, so there the exporter **does** renumber `axis`,
  `axes`, `perm`, and operands such as the pads of Pad or the scales of Resize.
- *Body.* Each stored operand is brought to ONNX's order of axes, the standard op runs, and the result is brought to its layout.
  An order of whole axes takes one Transpose. Blocks also take a Reshape, whose target is computed from Shape. An operand in
  ONNX's order takes nothing.
- *Halves.* If some calls of a function compute on float16, and all of them on floats, its body has a Sum of one operand before a
  move of operand 0, between two moves, and behind the last one. The Sum computes nothing. But a runtime that computes halves in
  float32, such as ONNX Runtime on a CPU, then does not round between functions, as it does not between the ops of the model
  itself.

";

const MOVES: &str = "## Moves

Every move is a call of `Relayout`, `Relayout_2`, `Relayout_3`, .. with input `X` and output `Y`. Its attributes say all of it. A name has
one body in a file: `Relayout` is the first row, and each other kind of moves that the file has gets the next number. Numbers mean nothing
else, and another file counts anew. *Kind* is how this page and error messages spell it.

| kind | attributes | body | from opset |
|---|---|---|---|
| `Relayout` | `perm`: dim i of Y is dim `perm[i]` of X | Transpose. Every move that only puts storage dims in another order, blocked or not | FIRST |
| `FROM_TO` | `from`, `to`: the layouts of X and Y, spelled out | Reshape to the digits that both layouts are made of, Transpose, Reshape, as far as needed; targets are computed from Shape | FIRST |
| `.._roundC` | | also: Pad of axis C with zeros up to a multiple of the block that it has in TO, computed from Shape | 11 |
| `.._fillC` | `slots`: number of slots of Y, one entry per axis that is filled, by axis | also: Pad of axis C with zeros up to its entry | 12 |
| `.._cropC` | `shape`: number of slots of Y per axis, -1 for those that are not cropped | also: Slice of axis C to its entry | 12 |

- *Slots* keep their numbers: slot i of an axis becomes slot i of the result, if the result has one. Further slots of the result
  are zero. So padding slots that both layouts have are carried as they are.
- *Layouts* in `from` and `to` are spelled as above under *layout* or *digits*. Letters at ranks 3 to 5 are those of features
  (`NCW`, `NCHW`, `NCDHW`), whatever the value is. At other ranks they are `a`, `b`, .. in attributes, and capitals in kinds.
- *Cropping.* If X has more slots of an axis than are kept, `shape` says how many are kept. `from` has a slot map, unless its
  slots are that number rounded up to the block.
- *Filling.* If Y is filled, `to` has a slot map: `C[20:24]` means that 20 are kept, of 24.
- *When slots change.* They change while their axis is one dim: before the move if FROM has the axis whole, else after it. If both
  have it in blocks there are two moves, and the slots change in between.
- *What has no function.* A move whose padding slots lie in several places (`C[58:64,58:64]` to `C`), and a move that crops an
  axis of unknown size.

### Moves and libraries of kernels

A runtime that has one kernel for `Relayout` and the names with numbers runs every move on it. Without a kernel the bodies run. The
file is the same, and so are the bits. `crates/ortop` is such a library for ONNX Runtime, with numbers up to 32. Elements of less than a byte and strings
have no kernel there; their moves are standard Transposes if a Transpose can express them. So are moves in models of opsets before 7.

This is why moves are told by attributes and numbers. A library registers kernels by name. There are endless layouts, so functions that
are named by their layouts could have no kernels. Attributes have no such limit, but a name has only one body. ONNX Runtime takes a
registered kernel before a function of the same name. This was seen with version 1.31 at IR versions 8 to 13 and opsets 7 to 26, in the
graph and in branches.

*Files that were written before 2026-11-28* have IR version 10, name every move `Relayout` and have the kind as the field `overload` of
node and function. They are read as before, and `crates/ortop` runs them. Tools that drop overloads break them.

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

- The domain has version {VERSION}. A model imports `relayout` {VERSION} and the standard domain.
- It has IR version {FIRST_IR_VERSION} or later.
- Bodies are written in the model's own opset, {FIRST_OPSET} to {LAST}.
- If a function changes what it computes, it gets another name, or the domain gets another version.
- A file has the body of every function that it calls.

"
    );
}

fn ops(page: &mut String) {
    page.push_str("## Ops\n\n*Operands* has the letters of each operand that may be stored in a layout. `_` is read as it is, `?` may be absent.\n\n");
    page.push_str(
        "| op | opsets | operands | result | attributes | padding slots | for example |\n|---|---|---|---|---|---|---|\n",
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
