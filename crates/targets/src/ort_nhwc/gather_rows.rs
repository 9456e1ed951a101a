//! `gather_rows`: rows that are rotated and put in another order, as windows that shift are, are picked once.
//!
//! ```text
//! Transpose(Reshape(Concat(Slice(x), Slice(x)))) = Reshape(Gather(Reshape(x), rows))
//! ```
//!
//! A roll of an image is two Slices and a Concat along each axis, and taking windows apart is a Transpose of parts of axes. None of them
//! touches the innermost axis, so each moves rows. Together they are one Gather of rows whose numbers are known.
//!
//! Absent: extents that are known at run time only.

use super::providers::Provider;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{DuplicateName, Graph, Handover, NodeId, ValueId};
use relayout_ir::op::read::{Cut, cuts, elements_taken, transpose_perm};
use relayout_ir::op::{int_or_default, normalize_axis};
use relayout_ir::patch::remove_dead;
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::{Context, Counted, Declared, Numerics, Pass, Rule, Slot};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "gather_rows",
    equation: "Transpose(Reshape(Concat(Slice(x), Slice(x)))) = Gather(x, rows)",
    condition: "all extents are numbers; nothing moves along the innermost axis; nobody else reads what lies between; the device starts a \
                kernel for each node",
    buys: "nodes: each moved rows of its own, and a Transpose is among them or two Slices",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// Most rows whose numbers are written into a file.
const MOST_ROWS: usize = 1 << 20;

/// The pass; for a device without that property it does nothing.
pub(super) fn pass(provider: &Provider) -> Pass {
    let wanted = provider.device.gathers_rows;
    let is = Declared::new(RULE.name, Slot::Prepare, "what copies nothing is gone, and what is around rows is decided")
        .after(&["fold_copies"])
        .rules(&[&RULE]);
    Pass::on_each_graph(is, move |graph, cx: &mut Context<'_>| {
        for n in graph.order().unwrap_or_default().into_iter().rev().filter(|_| wanted) {
            let moved = graph.contains(n).then(|| Moved::recognize(graph, n)).flatten();
            if let Some(moved) = moved {
                cx.count(&RULE, moved.between.len() - 1);
                moved.write(graph, n)?;
            }
        }
        Ok(())
    })
}

/// Rows in another order.
struct Moved {
    x: ValueId,
    y: ValueId,
    /// Which row of `x` each row of `y` is.
    rows: Vec<i64>,
    /// The nodes that it is now, views aside.
    between: Vec<NodeId>,
}

/// Rows with their extents: numbers of rows of what is read, in the order of what is made.
struct Rows {
    dims: Vec<usize>,
    numbers: Vec<i64>,
}

/// A node that moves rows, or several that do so together.
struct Step {
    x: ValueId,
    nodes: Vec<NodeId>,
    does: Does,
}

enum Does {
    Reshape,
    Transpose(Vec<usize>),
    /// Along an axis: which of its elements there are, in this order.
    Pick(usize, Vec<usize>),
}

impl Moved {
    /// What ends at a node that moves rows.
    fn recognize(graph: &Graph, n: NodeId) -> Option<Moved> {
        let y = graph.node(n).only_result()?;
        let (mut at, mut steps) = (y, Vec::new());
        while let Some(step) = Step::recognize(graph, at) {
            at = step.x;
            let inside = graph.uses(at).iter().all(|u| step.nodes.contains(&u.node)) && !graph.is_read_by_name(at);
            steps.push(step);
            if !inside {
                break;
            }
        }
        let moves = |step: &&Step| !matches!(step.does, Does::Reshape);
        let between: Vec<NodeId> = steps.iter().filter(moves).flat_map(|step| step.nodes.iter().copied()).collect();
        let picks = steps.iter().any(|step| matches!(step.does, Does::Pick(..)));
        let last = steps.first().is_some_and(|step| moves(&step));
        if !picks || !last {
            return None;
        }
        let mut rows = Rows::of(&extents(graph, at)?)?;
        for step in steps.iter().rev() {
            rows = rows.after(&step.does, &extents(graph, graph.node(*step.nodes.first()?).only_result()?)?)?;
        }
        Some(Moved { x: at, y, rows: rows.numbers, between })
    }

    fn write(self, graph: &mut Graph, n: NodeId) -> Result<(), DuplicateName> {
        let (name, ty) = (graph.value(self.y).name.clone(), graph.value(self.y).ty.clone());
        let readers = Handover::everything(graph, self.y);
        let inner =
            |v: ValueId| graph.value(v).ty.shape().and_then(|shape| shape.last().cloned()).unwrap_or(Dim::from(1));
        let (width, dtype) = (inner(self.x), ty.dtype());
        let (before, after) = (rows_of(graph, self.x), self.rows.len());
        let flat = |rows: usize| vec![Dim::from(i64::try_from(rows).unwrap_or(i64::MAX)), width.clone()];
        let target: Vec<Dim> = ty.shape().unwrap_or_default().to_vec();
        let mut make = Builder::at(graph, n).named(&name);
        let list = make.ints("rows", &self.rows)?;
        let x = make.reshape(self.x, "flat", flat(before))?;
        let gathered = Type::Tensor(TensorType { dtype, shape: Some(flat(after)) });
        let rows = make.op("Gather", [x, list]).attr("axis", Attr::Int(0)).result("gathered", gathered)?;
        let sizes: Vec<i64> = target.iter().filter_map(Dim::as_const).collect();
        let sizes = make.known_ints("sizes", &sizes)?;
        make.op("Reshape", [rows, sizes]).result_for("whole", ty, readers)?;
        remove_dead(graph, [n]);
        Ok(())
    }
}

impl Step {
    /// What makes a value that is rows of another one.
    fn recognize(graph: &Graph, y: ValueId) -> Option<Step> {
        let n = graph.value(y).producer().0;
        let node = graph.node(n);
        let rank = extents(graph, y)?.len();
        match node.onnx()? {
            "Reshape" => {
                let x = node.operand(0)?;
                let same = extents(graph, x)?.last() == extents(graph, y)?.last();
                same.then_some(Step { x, nodes: vec![n], does: Does::Reshape })
            }
            "Transpose" => {
                let perm = transpose_perm(node, rank).ok()?;
                let whole = perm.last() == Some(&(rank - 1));
                Some(Step { x: node.operand(0)?, nodes: vec![n], does: Does::Transpose(perm) }).filter(|_| whole)
            }
            "Concat" => rotated(graph, n, rank),
            _ => None,
        }
    }
}

/// Parts of one value along one axis, put beside each other.
fn rotated(graph: &Graph, n: NodeId, rank: usize) -> Option<Step> {
    let node = graph.node(n);
    let axis = normalize_axis(int_or_default(node, "axis")?, rank).filter(|axis| axis + 1 < rank)?;
    let (mut nodes, mut picked, mut from) = (vec![n], Vec::new(), None);
    for &part in &node.inputs {
        let part = part.filter(|&v| graph.only_use(v).is_some() && !graph.is_read_by_name(v))?;
        let slice = graph.value(part).producer().0;
        let x = graph.node(slice).operand(0)?;
        let [Cut { axis: along, start, end, step }] = cuts(graph, graph.node(slice))?[..] else { return None };
        if along != axis || *from.get_or_insert(x) != x || nodes.contains(&slice) {
            return None;
        }
        let (first, count) = elements_taken(i64::try_from(*extents(graph, x)?.get(axis)?).ok()?, start, end, step);
        picked.extend((0..count).filter_map(|i| usize::try_from(first + i * step).ok()));
        nodes.push(slice);
    }
    (nodes.len() > 2).then_some(Step { x: from?, nodes, does: Does::Pick(axis, picked) })
}

/// The extents of a value, if all are numbers and it has a row.
fn extents(graph: &Graph, v: ValueId) -> Option<Vec<usize>> {
    let shape = graph.value(v).ty.shape()?;
    let dims: Option<Vec<usize>> = shape.iter().map(|d| usize::try_from(d.as_const()?).ok()).collect();
    dims.filter(|dims| dims.len() > 1 && dims.iter().all(|&d| d > 0))
}

fn rows_of(graph: &Graph, v: ValueId) -> usize {
    extents(graph, v).map_or(0, |dims| dims[..dims.len() - 1].iter().product())
}

impl Rows {
    /// All rows of a value, in their order.
    fn of(dims: &[usize]) -> Option<Rows> {
        let dims = dims.split_last()?.1.to_vec();
        let count = dims.iter().try_fold(1usize, |all, &d| all.checked_mul(d)).filter(|&count| count <= MOST_ROWS)?;
        Some(Rows { dims, numbers: (0..i64::try_from(count).ok()?).collect() })
    }

    /// What a step makes of them, a value of these extents.
    fn after(&self, does: &Does, made: &[usize]) -> Option<Rows> {
        let dims = made.split_last()?.1.to_vec();
        if let Does::Pick(along, picked) = does {
            (dims.get(*along) == Some(&picked.len())).then_some(())?;
        }
        let count = dims.iter().try_fold(1usize, |all, &d| all.checked_mul(d)).filter(|&count| count <= MOST_ROWS)?;
        let strides = strides(&self.dims);
        let place = |at: usize, of: &dyn Fn(usize, usize) -> usize| {
            let mut left = at;
            let places = (0..dims.len()).rev().map(|axis| {
                let i = left % dims[axis];
                left /= dims[axis];
                of(axis, i)
            });
            places.sum::<usize>()
        };
        let from = |at: usize| match does {
            Does::Reshape => at,
            Does::Transpose(perm) => place(at, &|axis, i| i * strides[perm[axis]]),
            Does::Pick(along, picked) => {
                place(at, &|axis, i| strides[axis] * if axis == *along { picked[i] } else { i })
            }
        };
        let numbers = (0..count).map(|at| self.numbers.get(from(at)).copied()).collect::<Option<_>>()?;
        Some(Rows { dims, numbers })
    }
}

/// How many rows lie between two neighbours along each axis.
fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis];
    }
    strides
}
