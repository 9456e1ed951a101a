//! The laws that prove an entry of the table of ops, checked on one case against ONNX Runtime.
//!
//! - *Types*: what inference says of the results is what they are.
//! - *Orders*: in every order of axes that the signature allows, the node that the exporter writes computes the same. The
//!   operands are moved into the order before it and the results back after it, by Transposes, so that the passes' own path
//!   is what is tested: layouts on values, broadcast operands raised, attributes renumbered.
//! - *Digits* (`digits.rs`): the same with an axis in blocks, stored with a dim per digit.
//! - *Shuffles* (`shuffle.rs`): data shuffled along a letter that is carried comes out shuffled alike; along one that is
//!   contracted, it changes nothing.
//!
//! The entry is an argument: a wrong one must be found (`wrong.rs`).

use crate::common::runtime;
use crate::digits;
use crate::op_cases::case::{Case, RMS};
use crate::shuffle;
use relayout::ir::dim::Dim;
use relayout::ir::form::{AtomOrder, Bound, Form, Slot, View};
use relayout::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout::ir::layout::Layout;
use relayout::ir::model::Model;
use relayout::ir::op::infer::{InferContext, infer_graph};
use relayout::ir::op::{Axes, OpDef, bind_as, lookup};
use relayout::ir::patch::{Insert, Patch};
use relayout::ir::types::Type;
use relayout::ir::verify::verify;
use relayout_onnx::export::export;
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::proto::ModelProto;
use relayout_onnx::write::{WriteOptions, write_model_to};
use relayout_passes::write::raise_digits::raise_to_digits;
use relayout_passes::write::raise_operands::raise_operands;
use relayout_verify::{Data, Level, ModelSource, Tensor, run};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most orders in which a case is run; more are sampled evenly.
const MOST_ORDERS: usize = 48;

/// How much of an entry a case exercised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Orders other than ONNX's own, and blocks, in which the op was run.
    pub(crate) orders: usize,
    /// Letters along which data was shuffled.
    pub(crate) letters: usize,
}

/// Checks a case against an entry.
pub(crate) fn check(case: &Case, opset: i64, def: &'static OpDef) -> Result<Checked, String> {
    let subject = Subject::new(case, opset, def)?;
    subject.types()?;
    match &subject.form {
        Form::Opaque(why) => subject.opaque(why),
        Form::Borders(_) => subject.opaque("runs bodies"),
        Form::Kernel(_) => subject.opaque("is a kernel of a dialect"),
        Form::View(view) => subject.views(view),
        Form::Axes(_) if case.opaque.is_some() => Err("is not opaque, as the case says".to_owned()),
        Form::Axes(bound) => {
            let orders = subject.orders(bound)?;
            let letters = shuffle::check(case, opset, bound, &subject.base)?;
            let digits = digits::check(&subject, bound)?;
            Ok(Checked { orders: orders + digits, letters })
        }
    }
}

/// The entry of the table for a case.
pub(crate) fn entry(case: &Case, opset: i64) -> Option<&'static OpDef> {
    let name = relayout::ir::graph::OpName {
        domain: case.domain.to_owned(),
        name: case.op.to_owned(),
        overload: String::new(),
    };
    lookup(&name, opset)
}

/// A case as a graph, with what ONNX Runtime makes of it.
pub(crate) struct Subject<'c> {
    case: &'c Case,
    def: &'static OpDef,
    file: Arc<ModelFile>,
    pub(crate) model: Model,
    pub(crate) node: NodeId,
    form: Form,
    base: Vec<Tensor>,
}

impl<'c> Subject<'c> {
    fn new(case: &'c Case, opset: i64, def: &'static OpDef) -> Result<Subject<'c>, String> {
        let bytes = encode(&case.model(opset));
        let base = execute(&bytes, &case.feeds())?;
        let file = Arc::new(ModelFile::from_bytes(bytes.into(), None).map_err(|e| e.to_string())?);
        let mut model = import(&file).map_err(|e| e.to_string())?;
        let mut unknowns = model.unknowns;
        if let Some(problem) = infer_graph(&mut model.graph, &mut unknowns).first() {
            return Err(format!("inference objects: {problem}"));
        }
        model.unknowns = unknowns;
        let mut nodes = model.graph.nodes().filter(|&n| matches!(model.graph.node(n).op, Op::Onnx(_)));
        let node = nodes.next().ok_or("the model lost its node")?;
        drop(nodes);
        let form = bind_as(&model.graph, node, def);
        Ok(Subject { case, def, file, model, node, form, base })
    }

    /// The law of types.
    fn types(&self) -> Result<(), String> {
        let graph = &self.model.graph;
        let node = graph.node(self.node);
        let mut unknowns = self.model.unknowns;
        let mut cx = InferContext { graph, node, unknowns: &mut unknowns };
        let inferred = (self.def.infer)(&mut cx).map_err(|why| format!("inference objects: {why}"))?;
        for (slot, real) in self.base.iter().enumerate() {
            let contents = inferred.contents.get(slot).and_then(Option::as_ref);
            let ty = inferred.types.get(slot).cloned().unwrap_or_default();
            self.type_of_result(real, &ty, contents)?;
        }
        Ok(())
    }

    fn type_of_result(&self, real: &Tensor, inferred: &Type, contents: Option<&Vec<Dim>>) -> Result<(), String> {
        let name = real.name();
        if inferred.dtype().map(|d| d.to_string()) != Some(real.element_type().to_string()) {
            return Err(format!("inferred `{name}` as {inferred}, it is of type {}", real.element_type()));
        }
        let fits = |dim: &Dim, extent: i64| dim.as_const().map_or(self.case.partial, |d| d == extent);
        match inferred.shape() {
            None if self.case.partial => {}
            Some(shape)
                if shape.len() == real.shape().len() && shape.iter().zip(real.shape()).all(|(d, &r)| fits(d, r)) => {}
            _ => return Err(format!("inferred `{name}` as {inferred}, its shape is {:?}", real.shape())),
        }
        let known: Option<Vec<i64>> = contents.and_then(|c| c.iter().map(Dim::as_const).collect());
        match (known, integers(real.data())) {
            (Some(known), Some(elements)) if known != elements => {
                Err(format!("inferred the contents of `{name}` as {known:?}, they are {elements:?}"))
            }
            _ => Ok(()),
        }
    }

    fn opaque(&self, why: &str) -> Result<Checked, String> {
        let expected = match self.case.opaque {
            Some(words) => why.contains(words),
            None => matches!(self.def.axes, Axes::Opaque(_)),
        };
        if expected { Ok(Checked::default()) } else { Err(format!("binds to no reading: {why}")) }
    }

    /// The law of orders.
    fn orders(&self, bound: &Bound) -> Result<usize, String> {
        let orders = orders(bound);
        for order in &orders {
            let layout = |slot| bound.restrict(order, slot).map(|axes| Layout::permutation(&axes));
            let slots = bound.slots().map(|slot| Ok((slot, layout(slot).ok_or("a slot without axes")?)));
            let layouts = slots.collect::<Result<Vec<_>, &str>>()?;
            let layouts = layouts
                .into_iter()
                .map(|(s, l)| Ok((s, l.map_err(|e| e.to_string())?)))
                .collect::<Result<_, String>>()?;
            let names: Vec<&str> = order.iter().map(|&a| bound.atoms[usize::from(a)].name.as_str()).collect();
            self.run_in(&layouts).map_err(|why| format!("{bound} in the order {}: {why}", names.join(" ")))?;
        }
        Ok(orders.len())
    }

    /// A view in every order of its operand that the result can spell as an order of its own.
    fn views(&self, view: &View) -> Result<Checked, String> {
        let graph = &self.model.graph;
        let node = graph.node(self.node);
        let (Some(x), Some(y)) = (node.inputs.first().copied().flatten(), node.outputs.first().copied().flatten())
        else {
            return Err("a view without operand or result".to_owned());
        };
        let (Some(from), Some(to)) = (graph.value(x).ty.shape(), graph.value(y).ty.shape()) else {
            return Err("a view of unknown rank".to_owned());
        };
        let mut checked = Checked::default();
        for axes in permutations(from.len()) {
            let operand = Layout::permutation(&axes).map_err(|e| e.to_string())?;
            let Ok(result) = view.forward(&operand, from, to) else { continue };
            let back = view.backward(&result, from, to).map_err(|e| format!("{view:?} does not go back: {e}"))?;
            if !back.equivalent(&operand, from) {
                return Err(format!("{view:?} of {operand} is {result}, and back {back}"));
            }
            if result.as_permutation().is_none() {
                continue;
            }
            let layouts = BTreeMap::from([(Slot::In(0), operand.clone()), (Slot::Out(0), result)]);
            self.run_in(&layouts).map_err(|why| format!("{view:?} of {operand}: {why}"))?;
            checked.orders += 1;
        }
        Ok(checked)
    }

    /// Runs the node with its slots in these layouts and compares its results with those in ONNX's order.
    pub(crate) fn run_in(&self, layouts: &BTreeMap<Slot, Layout>) -> Result<(), String> {
        let mut model = self.model.clone();
        model.graph = self.arranged(layouts)?;
        let exported = export(&self.file, &model, &[]).map_err(|e| e.to_string())?;
        let mut bytes = Vec::new();
        let options = WriteOptions::for_input(&self.file).payloads(&exported.payloads);
        write_model_to(&exported.proto, &mut bytes, &options).map_err(|e| e.to_string())?;
        let results = execute(&bytes, &self.case.feeds())?;
        agree_all(&self.base, &results)
    }

    /// The graph with these layouts, and Relayouts from and to ONNX's order around the node.
    fn arranged(&self, layouts: &BTreeMap<Slot, Layout>) -> Result<Graph, String> {
        let mut graph = self.model.graph.clone();
        graph.set_form(self.node, self.form.clone());
        let mut patch = Patch::new();
        for (&slot, layout) in layouts.iter().filter(|(_, layout)| !layout.is_row_major()) {
            patch_slot(&graph, self.node, slot, layout, &mut patch);
        }
        patch.apply(&mut graph).map_err(|e| e.to_string())?;
        raised(&mut graph)?;
        // Raised operands have other ranks; one raised to digits is in a kernel's layouts.
        if !matches!(self.form, Form::View(_)) && !matches!(graph.node(self.node).form, Form::Kernel(_)) {
            graph.set_form(self.node, bind_as(&graph, self.node, self.def));
        }
        match verify(&graph) {
            Ok(()) => Ok(graph),
            Err(violations) => Err(format!("the verifier refuses it: {}", violations[0])),
        }
    }
}

fn patch_slot(graph: &Graph, node: NodeId, slot: Slot, layout: &Layout, patch: &mut Patch) {
    let of = |v: ValueId, layout: &Layout| {
        let mut relayout = Node::new(Op::Relayout, vec![Some(v)]);
        relayout.rank = graph.node(node).rank;
        Insert {
            node: relayout,
            name: format!("{}.{layout}", graph.value(v).name),
            ty: graph.value(v).ty.clone(),
            layout: layout.clone(),
            uses: Vec::new(),
            outputs: Vec::new(),
            takes_name_of: None,
        }
    };
    match slot {
        Slot::In(slot) => {
            let Some(x) = graph.node(node).inputs[slot] else { return };
            patch.insert(Insert { uses: vec![relayout::ir::graph::Use { node, slot }], ..of(x, layout) });
        }
        Slot::Out(slot) => {
            let Some(y) = graph.node(node).outputs[slot] else { return };
            patch.set_layout(y, layout.clone());
            let rank = graph.value(y).ty.rank().unwrap_or(0);
            let outputs = (0..graph.outputs().len()).filter(|&k| graph.outputs()[k] == y).collect();
            patch.insert(Insert { outputs, takes_name_of: Some(y), ..of(y, &Layout::row_major(rank)) });
        }
    }
}

fn raised(graph: &mut Graph) -> Result<(), String> {
    raise_operands(graph).and_then(|()| raise_to_digits(graph, 0)).map_err(|e| e.to_string())
}

/// Every order other than ONNX's own that a signature allows and that some slot shows.
fn orders(bound: &Bound) -> Vec<AtomOrder> {
    let restricted = |order: &AtomOrder| bound.slots().map(|slot| bound.restrict(order, slot)).collect::<Vec<_>>();
    let mut seen = BTreeSet::from([restricted(&bound.identity())]);
    let mut orders = Vec::new();
    for order in candidates(bound) {
        if bound.allows(&order) && seen.insert(restricted(&order)) {
            orders.push(order);
        }
    }
    let step = orders.len().div_ceil(MOST_ORDERS).max(1);
    orders.into_iter().step_by(step).collect()
}

/// All orders of few atoms, a walk through those of many.
fn candidates(bound: &Bound) -> Vec<AtomOrder> {
    let n = bound.atoms.len();
    if n <= 7 {
        let named = |axes: Vec<usize>| axes.into_iter().map(|a| a as u16).collect();
        return permutations(n).into_iter().map(named).collect();
    }
    let (mut order, mut walk, mut state) = (bound.identity(), Vec::new(), 1usize);
    let mut draw = || {
        // Knuth's MMIX constants.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..600 {
        let mut next = order.clone();
        next.swap(draw(), draw());
        if bound.allows(&next) {
            walk.push(next.clone());
            order = next;
        }
    }
    walk
}

/// All permutations of `0..n` in lexicographic order.
pub(crate) fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        all = all
            .into_iter()
            .flat_map(|p: Vec<usize>| {
                (0..n).filter(|i| !p.contains(i)).map(|i| [&p[..], &[i]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    all
}

/// A model as bytes.
pub(crate) fn encode(model: &ModelProto) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_model_to(model, &mut bytes, &WriteOptions::default()).expect("a model of a case is small and in memory");
    bytes
}

/// Runs a model as it stands.
pub(crate) fn execute(bytes: &[u8], feeds: &[Tensor]) -> Result<Vec<Tensor>, String> {
    run(runtime(), ModelSource::Bytes(bytes), feeds, Level::Disabled).map_err(|e| e.to_string())
}

/// Whether results are the same, each within the relative rms error of rounding if it is of floats.
pub(crate) fn agree_all(expected: &[Tensor], found: &[Tensor]) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("has {} results, not {}", found.len(), expected.len()));
    }
    expected.iter().zip(found).try_for_each(|(e, f)| agree(e, f))
}

fn agree(expected: &Tensor, found: &Tensor) -> Result<(), String> {
    let name = expected.name();
    if expected.shape() != found.shape() {
        return Err(format!("`{name}` has shape {:?}, not {:?}", found.shape(), expected.shape()));
    }
    let error = match (floats(expected.data()), floats(found.data())) {
        (Some(e), Some(f)) => relative_rms(&e, &f),
        _ if expected.data() == found.data() => 0.0,
        _ => f64::INFINITY,
    };
    if error <= RMS { Ok(()) } else { Err(format!("`{name}` differs (relative rms {error:e})")) }
}

/// Root of the mean square of the difference over that of the reference; infinite where one is not finite and the other not
/// the same.
fn relative_rms(expected: &[f64], found: &[f64]) -> f64 {
    let (mut difference, mut norm) = (0.0, 0.0);
    for (e, f) in expected.iter().zip(found) {
        if e.to_bits() == f.to_bits() || (e.is_nan() && f.is_nan()) {
            norm += if e.is_finite() { e * e } else { 0.0 };
        } else if e.is_finite() && f.is_finite() {
            difference += (e - f) * (e - f);
            norm += e * e;
        } else {
            return f64::INFINITY;
        }
    }
    if difference == 0.0 { 0.0 } else { (difference / norm.max(f64::MIN_POSITIVE)).sqrt() }
}

fn floats(data: &Data) -> Option<Vec<f64>> {
    match data {
        Data::F32(v) => Some(v.iter().map(|&x| f64::from(x)).collect()),
        Data::F64(v) => Some(v.clone()),
        Data::F16(v) => Some(v.iter().map(|x| x.to_f64()).collect()),
        _ => None,
    }
}

fn integers(data: &Data) -> Option<Vec<i64>> {
    match data {
        Data::I64(v) => Some(v.clone()),
        Data::I32(v) => Some(v.iter().map(|&x| i64::from(x)).collect()),
        Data::U8(v) => Some(v.iter().map(|&x| i64::from(x)).collect()),
        Data::Bool(v) => Some(v.iter().map(|&x| i64::from(x)).collect()),
        Data::F32(v) => v.iter().map(|&x| (x.fract() == 0.0).then_some(x as i64)).collect(),
        _ => None,
    }
}
