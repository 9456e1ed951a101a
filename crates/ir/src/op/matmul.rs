//! Matrix products: rows and leading axes are carried, the rest is found by position.

use super::infer::{Answer, InferContext, Inferred, agree, same_dtype, typed};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::graph::{Graph, Node};
use std::collections::BTreeMap;

/// NumPy's four readings. With a matrix or a vector on the right, every axis of the left one but the last is a row.
pub(super) const MATMUL: &[Case] = &[
    Case::new("a* k, k -> a*"),
    Case::new("a* k, k n -> a* n"),
    Case::new("k, a* k n -> a* n"),
    Case::new("a* m k, a* k n -> a* m n"),
];
// The third operand is a matrix, a row or one number. Where both others are transposed no one order has k before m, n before
// k and m before n: the summed axis has a letter on each side, of which nothing is claimed.
const GEMM: &[Case] = &[
    Case::new("m k, k n, m n? -> m n").when(plain),
    Case::new("m k, k n, n -> m n").when(plain),
    Case::new("m k, k n, _ -> m n").when(plain),
    Case::new("k m, k n, m n? -> m n").when(left_transposed),
    Case::new("k m, k n, n -> m n").when(left_transposed),
    Case::new("k m, k n, _ -> m n").when(left_transposed),
    Case::new("m k, n k, m n? -> m n").when(right_transposed),
    Case::new("m k, n k, n -> m n").when(right_transposed),
    Case::new("m k, n k, _ -> m n").when(right_transposed),
    Case::new("k~ m, n l~, m n? -> m n").when(both_transposed),
    Case::new("k~ m, n l~, n -> m n").when(both_transposed),
    Case::new("k~ m, n l~, _ -> m n").when(both_transposed),
];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("MatMul", (1, 26), Axes::Sig(MATMUL), matmul),
    OpDef::onnx("Gemm", (1, 26), Axes::Sig(GEMM), gemm),
    OpDef::onnx("Einsum", (12, 26), Axes::Spelled("its `equation`, each letter at its place", spelled), einsum),
];

fn transposed(node: &Node, left: bool, right: bool) -> Result<(), String> {
    let is = |name| node.int(name).unwrap_or(0) != 0;
    if is("transA") == left && is("transB") == right { Ok(()) } else { Err("transposes other operands".to_owned()) }
}

fn plain(_: &Graph, node: &Node) -> Result<(), String> {
    transposed(node, false, false)
}

fn left_transposed(_: &Graph, node: &Node) -> Result<(), String> {
    transposed(node, true, false)
}

fn right_transposed(_: &Graph, node: &Node) -> Result<(), String> {
    transposed(node, false, true)
}

fn both_transposed(_: &Graph, node: &Node) -> Result<(), String> {
    transposed(node, true, true)
}

fn matmul(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [0, 1])?;
    Ok(Inferred::one(typed(dtype, matmul_shape(ctx, 0, 1)?)))
}

/// Shape of NumPy's product of two operands; `None` if a rank is not known.
pub(super) fn matmul_shape(ctx: &mut InferContext<'_>, a: usize, b: usize) -> Result<Option<Vec<Dim>>, String> {
    let (Some(a), Some(b)) = (ctx.shape_from_rank(a, 1)?, ctx.shape_from_rank(b, 1)?) else { return Ok(None) };
    product_shape(ctx, a, b).map(Some)
}

/// The shape of a product of operands of these shapes.
pub(super) fn product_shape(ctx: &mut InferContext<'_>, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, String> {
    let (a_lead, a_tail) = a.split_at(a.len().saturating_sub(2));
    let (b_lead, b_tail) = b.split_at(b.len().saturating_sub(2));
    let (m, k) = match a_tail {
        [m, k] => (Some(m), Some(k)),
        tail => (None, tail.last()),
    };
    let (k2, n) = match b_tail {
        [k, n] => (Some(k), Some(n)),
        tail => (tail.first(), None),
    };
    if let (Some(k), Some(k2)) = (k, k2) {
        agree(k, k2, "the summed extents")?;
    }
    let lead = ctx.broadcast(&[Some(a_lead), Some(b_lead)])?.unwrap_or_default();
    Ok(lead.into_iter().chain(m.cloned()).chain(n.cloned()).collect())
}

fn gemm(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [0, 1])?;
    let (mut a, mut b) = (ctx.shape_of_rank(0, 2)?, ctx.shape_of_rank(1, 2)?);
    if ctx.int("transA", 0) != 0 {
        a.reverse();
    }
    if ctx.int("transB", 0) != 0 {
        b.reverse();
    }
    agree(&a[1], &b[0], "the summed extents")?;
    Ok(Inferred::one(typed(dtype, Some(vec![a[0].clone(), b[1].clone()]))))
}

/// An Einsum's equation as a signature: every letter is found by its place.
fn spelled(_: &Graph, node: &Node) -> Result<String, String> {
    let equation: String = node.str("equation").ok_or("lacks `equation`")?.split_whitespace().collect();
    if equation.contains('.') {
        return Err("its equation has an ellipsis".to_owned());
    }
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, right.to_owned()),
        None => (equation.as_str(), implied(&equation)),
    };
    let sides: Vec<&str> = left.split(',').chain([right.as_str()]).collect();
    if sides.iter().any(|term| term.chars().enumerate().any(|(i, c)| term.chars().take(i).any(|b| b == c))) {
        return Err("its equation has a letter twice in one operand".to_owned());
    }
    if !ascends(&sides) {
        return Err("its equation transposes: no one order of its letters fits all operands".to_owned());
    }
    let spaced = |term: &str| term.chars().map(String::from).collect::<Vec<_>>().join(" ");
    Ok(format!("{} -> {}", left.split(',').map(spaced).collect::<Vec<_>>().join(", "), spaced(&right)))
}

/// The result of an equation without one: letters that occur once, in alphabetical order.
fn implied(left: &str) -> String {
    let mut letters: Vec<char> = left.chars().filter(|c| *c != ',').collect();
    letters.sort_unstable();
    letters.iter().filter(|c| letters.iter().filter(|b| b == c).count() == 1).collect()
}

/// Whether some order of the letters has those of each term in the order of the term.
fn ascends(terms: &[&str]) -> bool {
    let mut left: Vec<Vec<char>> = terms.iter().map(|t| t.chars().rev().collect()).collect();
    while let Some(next) = left.iter().filter_map(|t| t.last().copied()).find(|c| {
        // What stands first wherever it still stands.
        left.iter().all(|t| t.last() == Some(c) || !t.contains(c))
    }) {
        for term in &mut left {
            term.retain(|c| *c != next);
        }
    }
    left.iter().all(Vec::is_empty)
}

fn einsum(ctx: &mut InferContext<'_>) -> Answer {
    let slots = ctx.node.inputs.len();
    let dtype = same_dtype(ctx, 0..slots)?;
    let equation: String = ctx.node.str("equation").ok_or("lacks `equation`")?.split_whitespace().collect();
    let (left, right) = equation.split_once("->").map_or((equation.as_str(), None), |(l, r)| (l, Some(r)));
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != slots {
        return Err(format!("equation `{equation}` is for {} operands, has {slots}", terms.len()));
    }
    if equation.contains('.') {
        return Ok(Inferred::one(typed(dtype, None)));
    }
    let mut extents: BTreeMap<char, (Dim, usize)> = BTreeMap::new();
    for (slot, term) in terms.iter().enumerate() {
        let shape = ctx.shape_of_rank(slot, term.chars().count())?;
        for (letter, dim) in term.chars().zip(shape) {
            let entry = extents.entry(letter).or_insert_with(|| (dim.clone(), 0));
            // An extent of 1 broadcasts.
            entry.0 = if entry.0.is_one() {
                dim
            } else if dim.is_one() {
                entry.0.clone()
            } else {
                agree(&entry.0, &dim, "extents of one letter")?
            };
            entry.1 += 1;
        }
    }
    let result: Vec<char> = match right {
        Some(right) => right.chars().collect(),
        // Without an arrow: letters that occur once, in alphabetical order.
        None => extents.iter().filter(|(_, (_, times))| *times == 1).map(|(c, _)| *c).collect(),
    };
    let dim = |c: &char| extents.get(c).map(|e| e.0.clone()).ok_or_else(|| format!("`{c}` is on no operand"));
    Ok(Inferred::one(typed(dtype, Some(result.iter().map(dim).collect::<Result<_, _>>()?))))
}
