//! Matrix products: rows and leading axes are carried, the rest is found by position.

use super::infer::{Answer, InferContext, Inferred, agree, same_dtype, typed};
use super::query::rank;
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::form::Renumber;
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
pub(super) const GEMM: &[Case] = &[
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

static EINSUM: Case =
    Case::new("its `equation`, each letter an axis in any order").renumber(&[Renumber::Letters("equation")]);

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("MatMul", (1, 28), Axes::Sig(MATMUL), matmul),
    OpDef::onnx("Gemm", (1, 28), Axes::Sig(GEMM), gemm),
    OpDef::onnx("Einsum", (12, 28), Axes::Spelled(&EINSUM, spelled), einsum),
];

fn transposed(node: &Node, left: bool, right: bool) -> Result<(), String> {
    let is = |name| node.flag(name);
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

pub(super) fn matmul(ctx: &mut InferContext<'_>) -> Answer {
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

pub(super) fn gemm(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [0, 1])?;
    let (mut a, mut b) = (ctx.shape_of_rank(0, 2)?, ctx.shape_of_rank(1, 2)?);
    if ctx.node.flag("transA") {
        a.reverse();
    }
    if ctx.node.flag("transB") {
        b.reverse();
    }
    agree(&a[1], &b[0], "the summed extents")?;
    Ok(Inferred::one(typed(dtype, Some(vec![a[0].clone(), b[1].clone()]))))
}

/// The terms of an Einsum's equation without its blanks: those of the operands, and that of the result, which is spelled even
/// where the equation implies it.
pub fn equation_terms(equation: &str) -> (Vec<String>, String) {
    let equation: String = equation.split_whitespace().collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, right.to_owned()),
        None => (equation.as_str(), implied(&equation)),
    };
    (left.split(',').map(str::to_owned).collect(), right)
}

/// The result of an equation without one: what the ellipsis stands for, and letters that occur once, in alphabetical order.
fn implied(left: &str) -> String {
    let mut letters: Vec<char> = left.chars().filter(|c| c.is_alphabetic()).collect();
    letters.sort_unstable();
    let once = letters.iter().filter(|c| letters.iter().filter(|b| b == c).count() == 1);
    let dots = if left.contains("...") { "..." } else { "" };
    dots.chars().chain(once.copied()).collect()
}

/// The axes of a term: a letter, or what stands for those of the ellipsis.
const ELLIPSIS: char = '.';

/// An Einsum's equation as a signature. The op finds its axes by letters of its own, so they are free; so is what an ellipsis stands
/// for if it is the same everywhere, since it can be spelled. Else it stays at its place.
///
/// A letter that stands twice in one term (a diagonal), or where no one order of the letters has those of each term in the
/// order of the term (a transposition), is another letter there. Of both nothing is claimed.
fn spelled(graph: &Graph, node: &Node) -> Result<String, String> {
    let (left, right) = equation_terms(node.str("equation").ok_or("lacks `equation`")?);
    if left.len() != node.inputs.len() {
        return Err("its equation is for another number of operands".to_owned());
    }
    let terms: Vec<Vec<char>> =
        left.iter().chain([&right]).map(|term| term.replace("...", ".").chars().collect()).collect();
    if terms.iter().flatten().any(|c| !c.is_alphabetic() && *c != ELLIPSIS) {
        return Err("its equation has other signs than letters, commas, an arrow and ellipses".to_owned());
    }
    let alike = same_ellipses(graph, node, &terms)?;
    let axes = distinct(&terms);
    // What has a stand-in somewhere is no letter that goes through.
    let doubtful = |c: char| axes.iter().flatten().any(|(b, copy)| *b == c && *copy > 0);
    let text = |(c, copy): &(char, usize)| match (*c, *copy) {
        (ELLIPSIS, _) if alike => "0*".to_owned(),
        (ELLIPSIS, _) => "0*!".to_owned(),
        (c, 0) if doubtful(c) => format!("<{c}>~"),
        (c, 0) => format!("<{c}>"),
        (c, copy) => format!("<{c}{copy}>~"),
    };
    let mut terms: Vec<String> = axes.iter().map(|term| term.iter().map(text).collect::<Vec<_>>().join(" ")).collect();
    let result = terms.pop().unwrap_or_default();
    Ok(format!("{} -> {result}", terms.join(", ")))
}

/// Whether every ellipsis stands for axes of the same extents. Refuses unless it stands for as many axes everywhere, and is not summed
/// over.
fn same_ellipses(graph: &Graph, node: &Node, terms: &[Vec<char>]) -> Result<bool, String> {
    let (mut axes, mut dims) = (Vec::new(), Vec::new());
    for (slot, term) in terms.iter().enumerate() {
        let Some(before) = term.iter().position(|&c| c == ELLIPSIS) else { continue };
        if slot == node.inputs.len() {
            return Ok(dims
                .first()
                .is_some_and(|first: &Option<Vec<Dim>>| first.is_some() && dims.iter().all(|d| d == first)));
        }
        let rank = rank(graph, node, slot).ok_or("the rank of an operand with an ellipsis is not known")?;
        let stands = rank.checked_sub(term.len() - 1).ok_or("an operand has fewer axes than its equation says")?;
        axes.push(stands);
        if axes.first() != axes.last() {
            return Err("its ellipsis stands for another number of axes in each operand".to_owned());
        }
        let shape = node.operand(slot).and_then(|v| graph.value(v).ty.shape());
        dims.push(shape.and_then(|shape| shape.get(before..before + stands)).map(<[Dim]>::to_vec));
    }
    if axes.is_empty() { Ok(true) } else { Err("sums over what its ellipsis stands for".to_owned()) }
}

/// The axes of each term, a number telling apart the letters that are not the same axis: some order of all has those of each
/// term in the order of the term, each once.
pub(super) fn distinct(terms: &[Vec<char>]) -> Vec<Vec<(char, usize)>> {
    let mut fixed: Vec<Vec<(char, usize)>> = Vec::new();
    let mut copies: BTreeMap<char, usize> = BTreeMap::new();
    for term in terms {
        let mut own: Vec<(char, usize)> = Vec::new();
        for &c in term {
            let with = [&own[..], &[(c, 0)]].concat();
            if own.contains(&(c, 0)) || !ascends(fixed.iter().chain([&with])) {
                let copy = copies.entry(c).or_default();
                *copy += 1;
                own.push((c, *copy));
            } else {
                own = with;
            }
        }
        fixed.push(own);
    }
    fixed
}

/// Whether some order of the axes has those of each term in the order of the term.
fn ascends<'t>(terms: impl Iterator<Item = &'t Vec<(char, usize)>>) -> bool {
    let mut left: Vec<Vec<(char, usize)>> = terms.map(|t| t.iter().rev().copied().collect()).collect();
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
    let equation = ctx.node.str("equation").ok_or("lacks `equation`")?;
    let (terms, right) = equation_terms(equation);
    if terms.len() != slots {
        return Err(format!("equation `{equation}` is for {} operands, has {slots}", terms.len()));
    }
    let mut extents: BTreeMap<char, Dim> = BTreeMap::new();
    let mut dots: Vec<Dim> = Vec::new();
    for (slot, term) in terms.iter().enumerate() {
        let (before, after) = term.split_once("...").unwrap_or((term, ""));
        let (before, after): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
        let spelled = before.len() + after.len();
        let shape = if term.contains("...") {
            // What the ellipsis stands for is not known without the rank.
            let Some(shape) = ctx.shape_from_rank(slot, spelled)? else { return Ok(Inferred::one(typed(dtype, None))) };
            shape.to_vec()
        } else {
            ctx.shape_of_rank(slot, spelled)?
        };
        let behind = shape.len() - after.len();
        for (letter, dim) in before.iter().zip(&shape).chain(after.iter().zip(&shape[behind..])) {
            let known = extents.get(letter).cloned().unwrap_or_else(|| dim.clone());
            // An extent of 1 broadcasts.
            let extent = if known.is_one() {
                dim.clone()
            } else if dim.is_one() {
                known
            } else {
                agree(&known, dim, "extents of one letter")?
            };
            extents.insert(*letter, extent);
        }
        let own = shape.get(before.len()..behind).unwrap_or_default();
        dots = ctx.broadcast(&[Some(&dots), Some(own)])?.unwrap_or_default();
    }
    let (before, after) = right.split_once("...").unwrap_or((&right, ""));
    let dim = |c: char| extents.get(&c).cloned().ok_or_else(|| format!("`{c}` is on no operand"));
    let mut shape: Vec<Dim> = before.chars().map(dim).collect::<Result<_, _>>()?;
    if right.contains("...") {
        shape.extend(dots);
    }
    shape.extend(after.chars().map(dim).collect::<Result<Vec<Dim>, _>>()?);
    Ok(Inferred::one(typed(dtype, Some(shape))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinguished(terms: &[&str]) -> Vec<String> {
        let terms: Vec<Vec<char>> = terms.iter().map(|t| t.chars().collect()).collect();
        let text = |(c, copy): &(char, usize)| if *copy == 0 { c.to_string() } else { format!("{c}{copy}") };
        distinct(&terms).iter().map(|term| term.iter().map(text).collect()).collect()
    }

    #[test]
    fn letters_are_one_axis_unless_a_term_turns_or_repeats_them() {
        assert_eq!(distinguished(&["bij", "bjk", "bik"]), ["bij", "bjk", "bik"]);
        assert_eq!(distinguished(&["ij", "jk", "ki"]), ["ij", "jk", "ki1"]);
        assert_eq!(distinguished(&["ii", "i"]), ["ii1", "i"]);
        assert_eq!(distinguished(&["ij", "ji"]), ["ij", "ji1"]);
    }

    #[test]
    fn an_equation_without_a_result_implies_it() {
        let implied = |equation: &str| equation_terms(equation).1;
        assert_eq!(implied("ij, jk"), "ik");
        assert_eq!(implied("...b, ...a"), "...ab");
        assert_eq!(implied("ii -> i"), "i");
    }
}
