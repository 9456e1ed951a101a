//! Inference over a whole graph, bodies included.
//!
//! One visit per node in topological order, so the time is linear in the graph and in what each op does; only bodies recurse,
//! at most [`MAX_NESTING`] deep. What the file declares and what inference finds are merged dim by dim: a constant beats an
//! expression of symbols, which beats an anonymous dim. Where two constants contradict each other inference wins and says so.

use super::{FLOATS_LIMIT, InferContext, Inferred};
use crate::constant::Constant;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::graph::{CONTENTS_LIMIT, Graph, NodeId, Op, ValueId};
use crate::layout::{Layout, MAX_RANK};
use crate::op::{control, def_of};
use crate::types::{Shape, TensorType, Type};
use rustc_hash::FxHashMap;

/// Most bodies within bodies that inference enters.
pub const MAX_NESTING: usize = 64;

/// How often a body is inferred: with the first assumption, with a weaker one, and with none.
const ROUNDS: usize = 3;

/// Depth from which on nothing is assumed, so that the rounds of nested loops do not multiply without end.
const ASSUMING_DEPTH: usize = 2;

/// Something that can't be right about a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The node, in the graph that was given (for a node of a body, the node that holds the body).
    pub node: NodeId,
    /// A sentence that names it.
    pub message: String,
}

/// What a scope knows of the values that its bodies may read, by name.
type Scope = FxHashMap<String, Known>;

#[derive(Clone)]
struct Known {
    ty: Type,
    contents: Option<Vec<Dim>>,
}

/// Sets types, row-major layouts and contents of all values of the graph and of its bodies. `unknowns` is the number of
/// anonymous dims that the model has so far; it is advanced. Returns what can't be right, in the order of the graph.
pub fn infer_graph(graph: &mut Graph, unknowns: &mut u32) -> Vec<Problem> {
    let mut problems = Vec::new();
    infer_scope(graph, &Scope::default(), unknowns, 0, &mut problems);
    problems
}

fn infer_scope(graph: &mut Graph, outer: &Scope, unknowns: &mut u32, depth: usize, problems: &mut Vec<Problem>) {
    let order = match graph.order() {
        Ok(order) => order,
        Err(stuck) => {
            let cycle = |node| Problem { node, message: format!("{} is on a cycle", graph.node(node).describe(graph)) };
            problems.extend(stuck.into_iter().map(cycle));
            return;
        }
    };
    for id in order {
        match &graph.node(id).op {
            Op::Constant(_) | Op::Input { .. } => seed(graph, id),
            Op::Outer => read_outer(graph, id, outer),
            Op::Relayout => {}
            Op::Onnx(_) => {
                let mut found = Vec::new();
                infer_bodies(graph, id, outer, unknowns, depth, &mut found);
                infer_node(graph, id, unknowns, &mut found);
                let named = |m| Problem { node: id, message: format!("{}: {m}", graph.node(id).describe(graph)) };
                problems.extend(found.into_iter().map(named));
            }
        }
    }
}

/// Contents of a constant. A default that the caller may override says nothing about contents.
fn seed(graph: &mut Graph, id: NodeId) {
    let contents = match &graph.node(id).op {
        Op::Constant(c) if c.dtype.is_float() => whole_numbers(c),
        Op::Constant(c) => c.to_ints(CONTENTS_LIMIT).map(|v| v.into_iter().map(Dim::from).collect()),
        _ => None,
    };
    for v in graph.node(id).outputs.clone().into_iter().flatten() {
        set_layout(graph, v);
        if contents.is_some() {
            graph.value_mut(v).contents.clone_from(&contents);
        }
    }
}

/// The elements of a small float constant, if all of them are whole numbers.
fn whole_numbers(c: &Constant) -> Option<Vec<Dim>> {
    let most = exact_below(c.dtype)?;
    let whole = |x: &f64| (x.fract() == 0.0 && x.abs() <= most as f64).then(|| Dim::from(*x as i64));
    c.to_floats(FLOATS_LIMIT)?.iter().map(whole).collect()
}

/// Up to where a float type holds every whole number; `None` for types in which nobody computes sizes.
fn exact_below(dtype: DType) -> Option<i64> {
    match dtype {
        DType::F64 => Some(1 << 53),
        DType::F32 => Some(1 << 24),
        _ => None,
    }
}

/// Row-major; a shape that no memory holds is forgotten, so that a value without a layout is at least opaque.
fn set_layout(graph: &mut Graph, v: ValueId) {
    if graph.value(v).ty.shape().is_some_and(|shape| !can_be_stored(shape)) {
        let dtype = graph.value(v).ty.dtype();
        *graph.value_mut(v).ty = Type::Tensor(TensorType { dtype, shape: None });
    }
    let rank = graph.value(v).ty.rank().unwrap_or(0);
    *graph.value_mut(v).layout = Layout::row_major(rank);
}

/// Whether a tensor of this shape has a layout. A symbolic extent may be anything; 1 is what adds nothing to the size.
fn can_be_stored(shape: &[Dim]) -> bool {
    let extents: Vec<i64> = shape.iter().map(|d| d.as_const().unwrap_or(1)).collect();
    shape.len() <= MAX_RANK && Layout::row_major(shape.len()).bind(&extents).is_ok()
}

fn read_outer(graph: &mut Graph, id: NodeId, outer: &Scope) {
    for v in graph.node(id).outputs.clone().into_iter().flatten() {
        if let Some(known) = outer.get(&graph.value(v).name) {
            let value = graph.value_mut(v);
            *value.ty = known.ty.clone();
            value.contents.clone_from(&known.contents);
        }
        set_layout(graph, v);
    }
}

/// Infers the bodies of a node, with what they read of this graph and, through it, of the graphs around.
fn infer_bodies(
    graph: &mut Graph,
    id: NodeId,
    outer: &Scope,
    unknowns: &mut u32,
    depth: usize,
    found: &mut Vec<String>,
) {
    if graph.node(id).bodies().next().is_none() {
        return;
    }
    if depth >= MAX_NESTING {
        found.push(format!("bodies are nested more than {MAX_NESTING} deep; types within are left as declared"));
        return;
    }
    let mut scope = Scope::default();
    for (name, known) in graph.node(id).captures.iter().map(|&v| capture(graph, v)) {
        scope.insert(name, known);
    }
    // A name that this graph itself reads from around may be read by its bodies without a capture.
    for body in graph.node(id).bodies() {
        for node in body.nodes().filter(|&n| matches!(body.node(n).op, Op::Outer)) {
            for name in body.node(node).outputs.iter().flatten().map(|&v| &body.value(v).name) {
                if scope.contains_key(name) {
                    continue;
                }
                if let Some(v) = graph.by_name(name) {
                    scope.insert(name.clone(), capture(graph, v).1);
                } else if let Some(known) = outer.get(name) {
                    scope.insert(name.clone(), known.clone());
                }
            }
        }
    }
    infer_iterations(graph, id, &scope, unknowns, depth, found);
}

/// Infers the bodies of a node until what is assumed of the values that they carry from one run to the next holds.
fn infer_iterations(
    graph: &mut Graph,
    id: NodeId,
    scope: &Scope,
    unknowns: &mut u32,
    depth: usize,
    found: &mut Vec<String>,
) {
    let mut assumption = control::first_assumption(graph, id);
    if depth >= ASSUMING_DEPTH {
        assumption = control::without_shapes(graph, id, assumption);
    }
    let carries = !assumption.inputs.is_empty();
    for round in 0..ROUNDS {
        let last = round + 1 == ROUNDS;
        if last {
            assumption = control::without_shapes(graph, id, assumption);
        }
        // Types within the body that follow from an assumption go with it.
        let before = (carries && !last).then(|| graph.node(id).attrs.clone());
        let messages = infer_each(graph, id, &assumption.inputs, scope, unknowns, depth);
        let weaker = control::next_assumption(graph, id, &assumption, unknowns);
        if let (Some(weaker), Some(before)) = (weaker, before) {
            assumption = weaker;
            *graph.attrs_mut(id) = before;
        } else {
            found.extend(messages);
            return;
        }
    }
}

/// Infers each body with these types of its inputs.
fn infer_each(
    graph: &mut Graph,
    id: NodeId,
    inputs: &[Type],
    scope: &Scope,
    unknowns: &mut u32,
    depth: usize,
) -> Vec<String> {
    let mut found = Vec::new();
    for attr in graph.attrs_mut(id).values_mut() {
        for body in attr.bodies_mut() {
            for (v, ty) in body.inputs().to_vec().into_iter().zip(inputs) {
                let merged = merge(&body.value(v).ty, ty).0;
                *body.value_mut(v).ty = merged;
            }
            let mut inner = Vec::new();
            infer_scope(body, scope, unknowns, depth + 1, &mut inner);
            found.extend(inner.into_iter().map(|p| format!("in its body `{}`: {}", body.name, p.message)));
        }
    }
    found
}

fn capture(graph: &Graph, v: ValueId) -> (String, Known) {
    let value = graph.value(v);
    (value.name.clone(), Known { ty: value.ty.clone(), contents: value.contents.clone() })
}

/// Infers one node whose operands are typed already, for graphs that are built node by node. Bodies are left as they are.
///
/// # Errors
/// Everything that is wrong with it, in sentences.
pub fn infer_one(graph: &mut Graph, id: NodeId, unknowns: &mut u32) -> Result<(), String> {
    let mut found = Vec::new();
    infer_node(graph, id, unknowns, &mut found);
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

fn infer_node(graph: &mut Graph, id: NodeId, unknowns: &mut u32, found: &mut Vec<String>) {
    let inferred = match def_of(graph, id) {
        None => Inferred::default(),
        Some(def) => {
            let mut ctx = InferContext { graph, node: graph.node(id), unknowns };
            (def.infer)(&mut ctx).unwrap_or_else(|why| {
                found.push(why);
                Inferred::default()
            })
        }
    };
    let mut types = inferred.types.into_iter();
    let mut contents = inferred.contents.into_iter();
    for output in graph.node(id).outputs.clone() {
        let known = contents.next().flatten();
        let ty = types.next().map(|ty| extents_only(ty, unknowns)).unwrap_or_default();
        let Some(v) = output else { continue };
        let (merged, conflict) = merge(&graph.value(v).ty, &ty);
        if let Some(what) = conflict {
            let name = &graph.value(v).name;
            found.push(format!("`{name}` is declared as {}, but is {ty}: {what}", graph.value(v).ty));
        }
        *graph.value_mut(v).ty = merged;
        set_layout(graph, v);
        let known = known.filter(|c| fits(&graph.value(v).ty, c));
        *graph.value_mut(v).contents = known;
    }
}

/// The type with each extent that is spelled with a number of unknown sign as an unknown extent: ops that are given such a number
/// for an extent may take it for an order to find one.
fn extents_only(mut ty: Type, unknowns: &mut u32) -> Type {
    if let Type::Tensor(TensorType { shape: Some(shape), .. }) = &mut ty {
        for d in shape.iter_mut().filter(|d| d.holds_number()) {
            *unknowns = unknowns.saturating_add(1);
            *d = Dim::unknown(*unknowns);
        }
    }
    ty
}

/// Whether these can be the elements of a tensor of this type: as many, and none that the element type can't hold.
fn fits(ty: &Type, contents: &[Dim]) -> bool {
    let elems = ty.const_shape().and_then(|s| s.iter().try_fold(1i64, |n, d| n.checked_mul(*d)));
    let range = match ty.dtype() {
        Some(DType::I64) => i64::MIN..=i64::MAX,
        Some(DType::U64) => 0..=i64::MAX,
        Some(DType::I32) => i64::from(i32::MIN)..=i64::from(i32::MAX),
        Some(DType::U32) => 0..=i64::from(u32::MAX),
        Some(DType::I16) => i64::from(i16::MIN)..=i64::from(i16::MAX),
        Some(DType::U16) => 0..=i64::from(u16::MAX),
        Some(DType::I8) => i64::from(i8::MIN)..=i64::from(i8::MAX),
        Some(DType::U8) => 0..=i64::from(u8::MAX),
        Some(DType::Bool) => 0..=1,
        Some(float) => match exact_below(float).filter(|_| contents.len() <= FLOATS_LIMIT) {
            Some(most) => -most..=most,
            None => return false,
        },
        None => return false,
    };
    elems == Some(contents.len() as i64) && contents.iter().filter_map(Dim::as_const).all(|c| range.contains(&c))
}

/// What is known of a type from the file's declaration and from inference, and how the two contradict each other.
pub(super) fn merge(declared: &Type, inferred: &Type) -> (Type, Option<String>) {
    match (declared, inferred) {
        (_, Type::Unknown) => (declared.clone(), None),
        (Type::Tensor(d), Type::Tensor(i)) => {
            let (shape, shapes) = merge_shapes(d.shape.as_deref(), i.shape.as_deref());
            let dtypes = match (d.dtype, i.dtype) {
                (Some(a), Some(b)) if a != b => Some(format!("element types {a} and {b}")),
                _ => None,
            };
            (Type::Tensor(TensorType { dtype: i.dtype.or(d.dtype), shape }), dtypes.or(shapes))
        }
        (Type::Unknown, _) | (Type::Other(_), Type::Other(_)) => (inferred.clone(), None),
        _ => (inferred.clone(), Some("a tensor and no tensor".to_owned())),
    }
}

fn merge_shapes(declared: Option<&[Dim]>, inferred: Option<&[Dim]>) -> (Option<Shape>, Option<String>) {
    match (declared, inferred) {
        (shape, None) | (None, shape) => (shape.map(<[Dim]>::to_vec), None),
        (Some(d), Some(i)) if d.len() != i.len() => {
            (Some(i.to_vec()), Some(format!("ranks {} and {}", d.len(), i.len())))
        }
        (Some(d), Some(i)) => {
            let contradiction =
                d.iter().zip(i).enumerate().find_map(|(axis, (d, i))| match (d.as_const(), i.as_const()) {
                    (Some(a), Some(b)) if a != b => Some(format!("extents {a} and {b} of axis {axis}")),
                    _ => None,
                });
            (Some(d.iter().zip(i).map(|(d, i)| better(d, i).clone()).collect()), contradiction)
        }
    }
}

/// The dim that says more; inference's own if they say as much.
fn better<'d>(declared: &'d Dim, inferred: &'d Dim) -> &'d Dim {
    let says = |d: &Dim| match d {
        d if d.is_const() => 2,
        d if d.is_anonymous() => 0,
        _ => 1,
    };
    if says(declared) > says(inferred) { declared } else { inferred }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn ty(dims: &[&str]) -> Type {
        Type::tensor(DType::F32, dims.iter().map(|d| d.parse().unwrap()).collect())
    }

    #[test]
    fn a_constant_beats_a_symbol_and_a_symbol_beats_an_unknown() {
        let (merged, conflict) = merge(&ty(&["N", "3", "?4", "batch"]), &ty(&["2", "H", "W", "?9"]));
        assert_eq!(merged, ty(&["2", "3", "W", "batch"]));
        assert_eq!(conflict, None);
    }

    #[test]
    fn a_shape_that_no_memory_holds_is_forgotten() {
        for (dims, stored) in [(vec!["4611686018427387904", "4"], false), (vec!["-1"], false), (vec!["N", "7"], true)] {
            let shape: Vec<Dim> = dims.iter().map(|d| d.parse().unwrap()).collect();
            assert_eq!(can_be_stored(&shape), stored);
            let mut graph = Graph::new("g");
            let x = graph.add_input("x", ty(&dims)).unwrap();
            infer_graph(&mut graph, &mut 0);
            assert_eq!(graph.value(x).ty.rank(), stored.then_some(dims.len()));
        }
        assert!(!can_be_stored(&vec![Dim::from(1); MAX_RANK + 1]));
    }

    #[test]
    fn inference_wins_a_contradiction_which_is_told() {
        let (merged, conflict) = merge(&ty(&["1", "3"]), &ty(&["1", "4"]));
        assert_eq!(merged, ty(&["1", "4"]));
        assert_eq!(conflict.unwrap(), "extents 3 and 4 of axis 1");
        assert_eq!(merge(&ty(&["1"]), &ty(&["1", "1"])).1.unwrap(), "ranks 1 and 2");
    }
}
