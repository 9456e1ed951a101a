//! Equations, applied to an e-graph.

use crate::facts::{Known, Terms};
use crate::term::{FUNCTIONS, Head, Term};
use egg::{ENodeOrVar, Id, Pattern, PatternAst, Searcher, Subst, Var};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_target_api::{Equation, When};

/// An equation that is no equation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("equation `{name}`: {what}")]
pub struct Unsound {
    /// Its name.
    pub name: &'static str,
    /// What is wrong.
    pub what: String,
}

/// An equation, ready to be applied.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// What it says.
    pub equation: Equation,
    left: Pattern<Term>,
    right: PatternAst<Term>,
}

impl Rewrite {
    /// Reads both sides.
    ///
    /// # Errors
    /// [`Unsound`] where a side is no term, or where the right side or a condition has a variable that the left side lacks.
    pub fn of(equation: &Equation) -> Result<Rewrite, Unsound> {
        let fault = |what: String| Unsound { name: equation.name, what };
        let side = |text: &str| text.parse::<Pattern<Term>>().map_err(|e| fault(format!("{text}: {e}")));
        let (left, right) = (side(equation.left)?, side(equation.right)?);
        let bound = left.vars();
        let of_conditions = equation.when.iter().flat_map(When::variables).map(variable);
        let unbound = right.vars().into_iter().chain(of_conditions.flatten()).find(|var| !bound.contains(var));
        if let Some(var) = unbound {
            return Err(fault(format!("{var} is not on the left side")));
        }
        Ok(Rewrite { equation: *equation, left, right: right.ast })
    }

    /// The ops of the left side, without which it is not found.
    pub(crate) fn ops(&self) -> impl Iterator<Item = &Head> {
        let op = |node: &'_ ENodeOrVar<Term>| matches!(node, ENodeOrVar::ENode(term) if term.head.is_op());
        self.left.ast.iter().filter(move |node| op(node)).filter_map(|node| match node {
            ENodeOrVar::ENode(term) => Some(&term.head),
            ENodeOrVar::Var(_) => None,
        })
    }

    /// The op of the left side.
    pub(crate) fn starts(&self) -> Option<&Head> {
        if let Some(ENodeOrVar::ENode(term)) = self.left.ast.last() { Some(&term.head) } else { None }
    }

    /// The op of the right side, if it is one.
    pub(crate) fn makes(&self) -> Option<&Head> {
        if let Some(ENodeOrVar::ENode(term)) = self.right.last() { Some(&term.head) } else { None }
    }

    /// What is equal to what, as far as this equation knows: classes, and what the right side needs.
    pub(crate) fn found(&self, terms: &Terms) -> Vec<(Id, Subst)> {
        let all = self.left.search(terms);
        let each = all.into_iter().flat_map(|of_class| {
            let class = of_class.eclass;
            of_class.substs.into_iter().map(move |subst| (class, subst))
        });
        each.filter(|(_, subst)| self.equation.when.iter().all(|when| holds(when, terms, subst))).collect()
    }

    /// Writes the right side; whether anything is new.
    pub(crate) fn apply(&self, terms: &mut Terms, class: Id, subst: &Subst) -> bool {
        if terms.are_explanations_enabled() {
            let Some(right) = self.right_as_written(terms, subst) else { return false };
            return terms.union_instantiations(&self.left.ast, &right, subst, self.equation.name).1;
        }
        let mut ids: Vec<Id> = Vec::with_capacity(self.right.len());
        for node in &self.right {
            let id = match node {
                ENodeOrVar::Var(var) => subst[*var],
                ENodeOrVar::ENode(term) => {
                    let args = term.args.iter().map(|&arg| ids[usize::from(arg)]).collect();
                    let Some(term) = written(terms, Term { head: term.head.clone(), args }) else { return false };
                    terms.add(term)
                }
            };
            ids.push(id);
        }
        ids.last().is_some_and(|&id| terms.union_trusted(class, id, self.equation.name))
    }
}

impl Rewrite {
    /// The right side with what its functions come to.
    fn right_as_written(&self, terms: &Terms, subst: &Subst) -> Option<PatternAst<Term>> {
        let mut written = self.right.clone();
        let mut literals: Vec<Option<Head>> = Vec::with_capacity(self.right.len());
        for (at, node) in self.right.iter().enumerate() {
            let own = match node {
                ENodeOrVar::Var(var) => terms[subst[*var]].data.literal.clone(),
                ENodeOrVar::ENode(term) if term.head.is_literal() => Some(term.head.clone()),
                ENodeOrVar::ENode(Term { head: Head::Function(of), args }) => {
                    let args: Option<Vec<&Head>> =
                        args.iter().map(|&arg| literals[usize::from(arg)].as_ref()).collect();
                    let result = function(*of, &args?)?;
                    written[Id::from(at)] = ENodeOrVar::ENode(Term::leaf(result.clone()));
                    Some(result)
                }
                ENodeOrVar::ENode(_) => None,
            };
            literals.push(own);
        }
        Some(written)
    }
}

/// A term of the right side: of a function what it comes to.
fn written(terms: &Terms, term: Term) -> Option<Term> {
    let Head::Function(at) = term.head else { return Some(term) };
    let args: Option<Vec<&Head>> = term.args.iter().map(|&id| terms[id].data.literal.as_ref()).collect();
    function(at, &args?).map(Term::leaf)
}

/// What a function comes to, by its place in [`FUNCTIONS`].
fn function(at: u16, args: &[&Head]) -> Option<Head> {
    let (_, function) = FUNCTIONS.get(usize::from(at))?;
    // No number is made that is none.
    function(args).filter(|result| result.as_number().is_none_or(f64::is_finite))
}

fn variable(name: &str) -> Option<Var> {
    name.parse().ok()
}

/// Whether a condition holds of what was found.
fn holds(when: &When, terms: &Terms, subst: &Subst) -> bool {
    let of = |name: &str| variable(name).and_then(|var| subst.get(var)).map(|&id| &terms[id].data);
    let facts: Option<Vec<&Known>> = when.variables().map(of).collect();
    facts.is_some_and(|facts| is_true(when, &facts).unwrap_or(false))
}

/// Whether it is true of these; `None` where that is not known.
fn is_true(when: &When, facts: &[&Known]) -> Option<bool> {
    let first = facts.first()?;
    let second = facts.get(1);
    Some(match when {
        When::Number(_) => first.number().is_some(),
        When::Near(_, near) => (first.number()? - near).abs() <= near.abs() * NEAR,
        When::Positive(_) => first.number()? > 0.0,
        When::Float(_) => matches!(first.dtype?, DType::F32 | DType::F16 | DType::BF16),
        When::Zeros(_) => first.zeros,
        When::Rank(_, rank) => first.rank()? == *rank,
        When::Within(..) => within(first.shape.as_ref()?, second?.shape.as_ref()?),
        When::IsShapeOf(..) => first.dims()? == &second?.shape.as_ref()?[..],
        When::SameBatch(..) => batch(first.shape.as_ref()?)? == batch(second?.shape.as_ref()?)?,
        When::RowsAndColumns(..) => {
            let (rows, columns) = (second?.shape.as_ref()?.split_last()?.1, facts.get(2)?.shape.as_ref()?.last()?);
            first.dims()?.split_last()? == (columns, rows)
        }
        When::OneOverExtent(..) => {
            let extent = extent(second?.shape.as_ref()?, facts.get(2)?.ints()?)?;
            (first.number()? * extent as f64 - 1.0).abs() <= NEAR
        }
        When::Groups(..) => groups(first.shape.as_ref()?, second?.dims()?)?,
        When::RankOfShape(_, rank) => first.dims()?.len() == *rank,
        When::TurnsMatrices(_) => turns_matrices(first.ints()?),
        When::MergesHeads(..) => merges(first.shape.as_ref()?, second?.dims()?)?,
        When::PerLast(..) => per_last(first, second?)?,
        When::KeepsLast(..) => first.dims()?.last()? == second?.shape.as_ref()?.last()?,
    })
}

fn turns_matrices(perm: &[i64]) -> bool {
    let rank = perm.len() as i64;
    rank >= 2 && (0..rank - 2).chain([rank - 1, rank - 2]).eq(perm.iter().copied())
}

/// How near a number is that is meant: files have some of them in fewer digits.
const NEAR: f64 = 1e-6;

/// The axes before those of matrices.
fn batch(shape: &[Dim]) -> Option<&[Dim]> {
    shape.split_last_chunk::<2>().map(|(batch, _)| batch)
}

fn within(small: &[Dim], large: &[Dim]) -> bool {
    let same = |(a, b): (&Dim, &Dim)| a == b || a.is_one();
    small.len() <= large.len() && small.iter().rev().zip(large.iter().rev()).all(same)
}

/// The extent along axes that count from the end.
fn extent(shape: &[Dim], axes: &[i64]) -> Option<i64> {
    let of = |&axis: &i64| shape.get(usize::try_from(shape.len() as i64 + axis).ok()?)?.as_const();
    axes.iter().map(of).try_fold(1_i64, |product, extent| product.checked_mul(extent?))
}

/// Whether a shape of the same elements has groups of the channels of an image in the place of these.
fn groups(image: &[Dim], rows: &[Dim]) -> Option<bool> {
    let ([images, channels, _, _], [of_rows, groups, _, ..]) = (image, rows) else { return Some(false) };
    let (channels, groups) = (channels.as_const()?, groups.as_const()?);
    Some(images == of_rows && groups > 0 && channels > 0 && channels % groups == 0)
}

/// Whether `[batch, heads, a, b]` is `[batch * heads, a, b]`.
fn merges(apart: &[Dim], merged: &[Dim]) -> Option<bool> {
    let ([batch, heads, inner @ ..], [both, rest @ ..]) = (apart, merged) else { return Some(false) };
    Some(inner == rest && inner.len() == 2 && batch.checked_mul(heads)? == *both)
}

/// Whether a constant has an entry per entry of the last axis of a tensor.
fn per_last(vector: &Known, tensor: &Known) -> Option<bool> {
    let (own, of) = (vector.shape.as_ref()?, tensor.shape.as_ref()?);
    let (last, rest) = own.split_last()?;
    Some(vector.constant && own.len() <= of.len() && last == of.last()? && rest.iter().all(Dim::is_one))
}
