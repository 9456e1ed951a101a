//! Ops of tract on tensors that lie in another order: the same op with other attributes, by tract's own means.

use crate::orders::{Order, after, is_plain, moves, pick};
use tract_core::dyn_clone;
use tract_core::internal::*;
use tract_core::ops::array::Pad;
use tract_core::ops::cnn::conv::Conv;
use tract_core::ops::cnn::{MaxPool, PoolSpec, SumPool};
use tract_core::ops::downsample::Downsample;
use tract_core::ops::einsum::EinSum;
use tract_core::ops::logic::Iff;
use tract_core::ops::nn::{DataFormat, NearestUpsample};

/// A node in other orders.
pub struct Turned {
    /// Its op.
    pub op: Box<dyn TypedOp>,
    /// What is to be done to the constants among its operands; nothing for others.
    pub constants: Vec<Vec<AxisOp>>,
}

/// How the operands and results of a node lie; `None` for operands that are constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Of each operand.
    pub inputs: Vec<Option<Order>>,
    /// Of each result.
    pub outputs: Vec<Order>,
}

impl Orders {
    /// Whether nothing is moved.
    pub fn is_plain(&self) -> bool {
        self.inputs.iter().flatten().chain(&self.outputs).all(|order| is_plain(order))
    }

    /// The one order that all of them are, if they are one.
    fn one(&self) -> Option<&Order> {
        let mut all = self.inputs.iter().flatten().chain(&self.outputs);
        let first = all.next()?;
        all.all(|order| order == first).then_some(first)
    }
}

/// An op in other orders; `None` if tract has no such op.
pub fn turned(op: &dyn TypedOp, facts: &[TypedFact], orders: &Orders) -> TractResult<Option<Turned>> {
    let constants = vec![Vec::new(); facts.len()];
    if orders.is_plain() {
        return Ok(Some(Turned { op: dyn_clone::clone_box(op), constants }));
    }
    if let Some(op) = op.downcast_ref::<EinSum>() {
        return Ok(einsum(op, orders).map(|op| Turned { op: Box::new(op), constants }));
    }
    let Some(order) = orders.one() else { return Ok(None) };
    let own: Option<Box<dyn TypedOp>> = if let Some(op) = op.downcast_ref::<Conv>() {
        swapped(&op.pool_spec, order).map(|pool_spec| Box::new(Conv { pool_spec, ..op.clone() }) as _)
    } else if let Some(op) = op.downcast_ref::<MaxPool>() {
        swapped(&op.pool_spec, order).map(|pool_spec| Box::new(MaxPool { pool_spec, ..op.clone() }) as _)
    } else if let Some(op) = op.downcast_ref::<SumPool>() {
        swapped(&op.pool_spec, order).map(|pool_spec| Box::new(SumPool { pool_spec, ..op.clone() }) as _)
    } else if let Some(op) = op.downcast_ref::<Pad>() {
        pick(&op.pads, order).map(|pads| Box::new(Pad { pads, mode: op.mode.clone() }) as _)
    } else if let Some(op) = op.downcast_ref::<Downsample>() {
        let axis = order.iter().position(|axis| *axis == op.axis);
        axis.map(|axis| Box::new(Downsample { axis, ..op.clone() }) as _)
    } else if let Some(op) = op.downcast_ref::<NearestUpsample>() {
        pick(&op.scales, order).map(|scales| Box::new(NearestUpsample { scales: scales.into() }) as _)
    } else if op.is::<Iff>() {
        let constants = orders.inputs.iter().map(|o| if o.is_none() { moves(order) } else { Vec::new() }).collect();
        return Ok(Some(Turned { op: dyn_clone::clone_box(op), constants }));
    } else {
        return asked(op, facts, orders, order);
    };
    Ok(own.map(|op| Turned { op, constants }))
}

/// Windows over data whose channels are at the other end.
fn swapped(spec: &PoolSpec, order: &[usize]) -> Option<PoolSpec> {
    let rank = order.len();
    let (data_format, from, to) = match spec.data_format {
        DataFormat::NCHW => (DataFormat::NHWC, 1, rank - 1),
        DataFormat::CHW => (DataFormat::HWC, 0, rank - 1),
        DataFormat::NHWC => (DataFormat::NCHW, rank - 1, 1),
        DataFormat::HWC => (DataFormat::CHW, rank - 1, 0),
    };
    let swap = after(rank, &[AxisOp::Move(from, to)])?;
    (swap == order).then(|| PoolSpec { data_format, ..spec.clone() })
}

/// A product whose letters are in other orders.
fn einsum(op: &EinSum, orders: &Orders) -> Option<EinSum> {
    let (mut inputs, mut outputs) = op.axes.to_strs();
    let turn = |term: &String, order: &Order| {
        let letters: Vec<char> = term.chars().collect();
        (letters.len() == order.len()).then(|| pick(&letters, order)).flatten().map(|l| l.into_iter().collect())
    };
    for (term, order) in inputs.iter_mut().zip(&orders.inputs) {
        if let Some(order) = order {
            *term = turn(term, order)?;
        }
    }
    for (term, order) in outputs.iter_mut().zip(&orders.outputs) {
        *term = turn(term, order)?;
    }
    let axes = AxesMapping::from_strs(&inputs, &outputs).ok()?;
    Some(EinSum { axes, ..op.clone() })
}

/// What tract answers, one move after the other, if an operand is changed.
fn asked(op: &dyn TypedOp, facts: &[TypedFact], orders: &Orders, order: &[usize]) -> TractResult<Option<Turned>> {
    let (mut op, mut facts) = (dyn_clone::clone_box(op), facts.to_vec());
    let Some(first) = orders.inputs.iter().position(Option::is_some) else { return Ok(None) };
    let mut done: Vec<Vec<AxisOp>> = vec![Vec::new(); facts.len()];
    let mut results: Vec<Vec<AxisOp>> = vec![Vec::new(); orders.outputs.len()];
    for step in moves(order) {
        let (model, node) = alone(op.clone(), &facts)?;
        let answer = op.change_axes(&model, model.node(node), InOut::In(first), &step)?;
        let Some(AxisChangeConsequence { substitute_op, wire_changes }) = answer else { return Ok(None) };
        for (wire, change) in wire_changes {
            match wire {
                InOut::In(slot) => {
                    facts[slot] = changed(&facts[slot], &change)?;
                    done[slot].push(change);
                }
                InOut::Out(slot) => results[slot].push(change),
            }
        }
        op = substitute_op.unwrap_or(op);
    }
    let mut fits = results.iter().zip(&orders.outputs).all(|(changes, o)| after(o.len(), changes).as_ref() == Some(o));
    for (changes, order) in done.iter_mut().zip(&orders.inputs) {
        if let Some(order) = order {
            fits &= after(order.len(), changes).as_ref() == Some(order);
            changes.clear();
        }
    }
    Ok(fits.then_some(Turned { op, constants: done }))
}

fn changed(fact: &TypedFact, change: &AxisOp) -> TractResult<TypedFact> {
    let mut shape = fact.shape.clone();
    change.change_shape(&mut shape, false)?;
    let mut new = fact.datum_type.fact(shape);
    if let Some(value) = &fact.konst {
        let mut value = value.clone().into_tensor();
        change.change_tensor(&mut value, false)?;
        new.konst = Some(value.into_arc_tensor());
    }
    Ok(new)
}

/// A model of one node that reads such tensors: constants where they are known, inputs else.
pub fn alone(op: Box<dyn TypedOp>, facts: &[TypedFact]) -> TractResult<(TypedModel, usize)> {
    let mut model = TypedModel::default();
    let mut wires = tvec!();
    for (slot, fact) in facts.iter().enumerate() {
        wires.push(match &fact.konst {
            Some(value) => model.add_const(format!("constant{slot}"), value.clone())?,
            None => model.add_source(format!("input{slot}"), fact.datum_type.fact(fact.shape.clone()))?,
        });
    }
    let results = model.wire_node("alone", op, &wires)?;
    model.select_output_outlets(&results)?;
    Ok((model, results[0].node))
}
