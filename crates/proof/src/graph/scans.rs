//! Scans: what one step makes of the states that it carries and of a part of each scanned value, as terms of names for these.
//!
//! States are named as what a loop carries is. A part is a name over the axes of the scanned value behind that of steps, in the order of
//! what the value is made of. So it does not matter how states and scanned values lie.

use crate::files::model::{DeclaredDim, Graph, Input, Node};
use crate::graph::eval::{Machine, Scope, Values};
use crate::graph::loops::{Carried, stays};
use crate::graph::opaque::Told;
use crate::ops::{axis_of, back, ordered};
use crate::terms::arg::Term;
use crate::terms::name::Name;
use crate::terms::value::Value;
use crate::terms::view;
use std::rc::Rc;

/// The first operator set whose Scan has no axis of batches.
const WITHOUT_BATCHES: i64 = 9;

/// A scanned value with the axis of steps in front, and the name for a part of it as the body sees it.
struct Scanned {
    whole: Value,
    part: Value,
}

/// What a Scan is told: how many states it has, and along which axes it reads and writes, and in which direction.
struct Steps {
    states: usize,
    read: Vec<i64>,
    written: Vec<i64>,
    attrs: Vec<u8>,
}

impl Steps {
    fn recognize(node: &Node, told: &Told<'_>, body: &Graph) -> Option<Steps> {
        let scanned = usize::try_from(told.int("num_scan_inputs")?).ok()?;
        let states = told.inputs.len().checked_sub(scanned)?;
        let made = body.outputs.len().checked_sub(states)?;
        let list = |name: &str, count: usize| {
            let absent = told.attrs.iter().all(|(known, _)| known != name);
            told.ints(name).or_else(|| absent.then(|| vec![0; count])).filter(|list| list.len() == count)
        };
        let directions = [list("scan_input_directions", scanned)?, list("scan_output_directions", made)?];
        let fits = scanned > 0 && body.inputs.len() == told.inputs.len() && node.outputs.len() <= body.outputs.len();
        let attrs = format!("{states} {directions:?}").into_bytes();
        let (read, written) = (list("scan_input_axes", scanned)?, list("scan_output_axes", made)?);
        fits.then_some(Steps { states, read, written, attrs })
    }
}

impl Machine {
    /// The states after the last step of a Scan, and what it collects. An error if nobody knows the shapes of all that a step makes.
    pub(crate) fn scanned(
        &mut self,
        scope: &Scope<'_>,
        (node, body): (&Node, &Rc<Graph>),
        told: &Told<'_>,
        values: &Values,
    ) -> Result<Vec<Option<Value>>, String> {
        let unknown = "nobody knows what it scans";
        let inner = scope.inside(values, "Scan.body");
        let opset = scope.opsets.get("").copied().unwrap_or(0);
        let steps = Some(()).filter(|()| opset >= WITHOUT_BATCHES && self.terms.symbolic.is_none());
        let steps = steps.and_then(|()| Steps::recognize(node, told, body)).ok_or(unknown)?;
        let operands: Vec<&Value> = told.inputs.iter().map(Option::as_ref).collect::<Option<_>>().ok_or(unknown)?;
        let (first, read) = operands.split_at(steps.states);
        let (mut made, mut carried, mut scanned) = (Values::default(), Vec::new(), Vec::new());
        for (at, value) in first.iter().enumerate() {
            let one = self.carried(value, inner.depth(), at).ok_or(unknown)?;
            made.insert(body.inputs[at].name.clone(), one.name.clone());
            carried.push(one);
        }
        for (at, (value, axis)) in read.iter().zip(&steps.read).enumerate() {
            let one = self.scanned_value(value, *axis, &format!("{} part {at}", inner.depth())).ok_or(unknown)?;
            made.insert(body.inputs[steps.states + at].name.clone(), one.part.clone());
            scanned.push(one);
        }
        if !body.inputs.iter().all(|input| made.get(&input.name).is_some_and(|value| is_declared(input, value))) {
            return Err("its body declares other operands".to_owned());
        }
        self.body(&inner, body, &mut made).map_err(|r| format!("in its body: {}: {}", r.node, r.why))?;
        let results: Option<Vec<Value>> = body.outputs.iter().map(|name| inner.find(&made, name)).collect();
        let results = results.ok_or("nothing makes a result of its body")?;
        let (next, collected) = results.split_at(steps.states);
        let stay = carried.iter().zip(first).zip(next).all(|((one, value), next)| stays(one, value, next));
        if !stay || collected.iter().any(Value::is_opaque) {
            return Err(unknown.to_owned());
        }
        self.after_steps(&steps, (&carried, first, next), &scanned, collected)
    }

    /// A value that is scanned along an axis.
    fn scanned_value(&mut self, value: &Value, axis: i64, name: &str) -> Option<Scanned> {
        let axis = axis_of(axis, value.rank()).ok().filter(|_| !value.is_opaque())?;
        let order = ordered(&[value], (0..value.rank()).filter(|other| *other != axis).collect());
        let whole = value.permuted(&[&[axis], order.as_slice()].concat())?;
        let (base, view) = view::identity(&whole.shape()[1..]);
        let named = self.named(&format!("{name} {base:?}"), &base, value.dtype);
        let inner: Vec<usize> = order.iter().map(|&other| other - usize::from(other > axis)).collect();
        let part = Value { view, ..named }.permuted(&back(&inner))?;
        Some(Scanned { whole, part })
    }

    /// The results of a Scan, by what one step makes.
    fn after_steps(
        &mut self,
        steps: &Steps,
        (carried, first, next): (&[Carried], &[&Value], &[Value]),
        scanned: &[Scanned],
        collected: &[Value],
    ) -> Result<Vec<Option<Value>>, String> {
        let apart = "its operands have not as many parts as each other";
        let count = scanned.first().and_then(|one| one.whole.shape().first().copied()).ok_or(apart)?;
        if scanned.iter().any(|one| one.whole.shape()[0] != count) {
            return Err(apart.to_owned());
        }
        let mut term = Term { attrs: steps.attrs.clone(), ..Term::of(Name::Model("Scan")) };
        for ((one, value), next) in carried.iter().zip(first).zip(next) {
            term.args.extend(self.operands(&[Some(&one.seen(value)?), Some(&one.seen(next)?)])?);
        }
        term.args.extend(self.operands(&scanned.iter().map(|one| Some(&one.whole)).collect::<Vec<_>>())?);
        let whole: Vec<Value> = collected.iter().map(|one| self.as_made(one, Some(count))).collect();
        term.args.extend(self.operands(&whole.iter().map(Some).collect::<Vec<_>>())?);
        let last = carried.iter().enumerate().map(|(at, one)| self.after(&term, one, at));
        let mut results: Vec<Option<Value>> = last.map(Some).collect();
        for (at, (one, axis)) in collected.iter().zip(&steps.written).enumerate() {
            let all = self.collected(&term, steps.states + at, one, Some(count))?;
            let axis = axis_of(*axis, all.rank())?;
            let order: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..all.rank()).collect();
            results.push(Some(all.permuted(&order).ok_or(apart)?));
        }
        Ok(results)
    }
}

/// Whether a body's input may be declared so.
fn is_declared(input: &Input, value: &Value) -> bool {
    let is = |(dim, extent): (&DeclaredDim, i64)| match dim {
        DeclaredDim::Known(known) => *known < 0 || *known == extent,
        DeclaredDim::Symbol(_) | DeclaredDim::Unknown => true,
    };
    let shape = value.shape();
    let dims = |dims: &Vec<DeclaredDim>| dims.len() == shape.len() && dims.iter().zip(shape.iter().copied()).all(is);
    input.dtype == 0 || input.dtype == value.dtype && input.dims.as_ref().is_none_or(dims)
}
