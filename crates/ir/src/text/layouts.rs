//! Layouts in the text: which letters a value's layout is printed with, and what the line of a constant implies.

use crate::constant::Repack;
use crate::dtype::DType;
use crate::graph::{Graph, ValueId};
use crate::layout::{Layout, LayoutNames};
use crate::storage::{StorageRule, storage_shape};
use crate::types::Type;

/// The layout of a value, without the `@`; `None` where the line leaves it out.
pub(super) fn print(graph: &Graph, v: ValueId) -> Option<String> {
    let value = graph.value(v);
    let rank = value.ty.rank()?;
    if rank < 2 && value.layout == Layout::row_major(rank) {
        return None;
    }
    let names = if is_weight(graph, v) { LayoutNames::weights(rank) } else { LayoutNames::default_for(rank) };
    Some(value.layout.display(&names).to_string())
}

/// Whether a two-dimensional convolution reads the value as its weight.
fn is_weight(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).ty.rank() == Some(4)
        && graph.uses(v).iter().any(|u| u.slot == 1 && graph.node(u.node).onnx() == Some("Conv"))
}

/// A layout; its letters tell the logical order of the axes.
pub(super) fn parse(text: &str) -> Result<Layout, String> {
    text.parse().map_err(|e: crate::layout::LayoutError| e.to_string())
}

/// Element type and stored extents of a value of this type and layout, where they are numbers: what its constant has
/// unless its line says otherwise.
pub(super) fn stored_type(ty: &Type, layout: &Layout, rule: StorageRule) -> Option<(DType, Vec<i64>)> {
    let shape = ty.shape()?;
    let stored = storage_shape(shape, layout, rule).unwrap_or_else(|| shape.to_vec());
    Some((ty.dtype()?, stored.iter().map(crate::dim::Dim::as_const).collect::<Option<_>>()?))
}

/// What a repack makes of the source, with the source's extents where the constant's do not imply them: `@NHWC`,
/// `[64,3,49]@acb`.
pub(super) fn repack_text(repack: &Repack, dims: &[i64]) -> String {
    let extents = format!("{:?}", repack.extents).replace(' ', "");
    let implied = repack.to.as_permutation().and_then(|perm| implied_extents(&perm, dims));
    let given = if implied.as_ref() == Some(&repack.extents) { "" } else { &extents };
    format!("{given}@{}", repack.to)
}

/// The extents of which `perm` makes `dims`.
fn implied_extents(perm: &[usize], dims: &[i64]) -> Option<Vec<i64>> {
    if perm.len() != dims.len() {
        return None;
    }
    let mut extents = vec![0; perm.len()];
    for (&place, &dim) in perm.iter().zip(dims) {
        *extents.get_mut(place)? = dim;
    }
    Some(extents)
}

/// What the comment of a constant says beside its size.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    pub(super) missing: bool,
    pub(super) pending: Option<Box<Repack>>,
}

/// Reads the comment of a constant: `37632 B, missing, stored as @NHWC, whatever else`. Reading stops at the first part that
/// is none of these.
pub(super) fn read_notes(comment: &str, dims: &[i64]) -> Result<Notes, String> {
    let mut notes = Notes::default();
    for (i, part) in comment.split(", ").enumerate() {
        let is_size = part.strip_suffix(" B").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if let Some(text) = part.strip_prefix("stored as ") {
            notes.pending = Some(Box::new(read_repack(text, dims)?));
            break;
        } else if part == "missing" && !notes.missing {
            notes.missing = true;
        } else if !(is_size && i == 0) {
            break;
        }
    }
    Ok(notes)
}

fn read_repack(text: &str, dims: &[i64]) -> Result<Repack, String> {
    let wrong =
        || format!("`stored as {text}` is not an order of axes; write `stored as @NHWC` or `stored as [2,3]@ba`");
    let (extents, order) = text.split_once('@').ok_or_else(wrong)?;
    let to = parse(order)?;
    let extents = match extents.strip_prefix('[') {
        Some(list) => numbers(list).ok_or_else(wrong)?,
        None => to.as_permutation().and_then(|perm| implied_extents(&perm, dims)).ok_or_else(wrong)?,
    };
    Ok(Repack { extents, to })
}

/// The numbers before a closing bracket.
fn numbers<T: std::str::FromStr>(list: &str) -> Option<Vec<T>> {
    let list = list.strip_suffix(']')?;
    if list.is_empty() {
        return Some(Vec::new());
    }
    list.split(',').map(|n| n.parse().ok()).collect()
}
