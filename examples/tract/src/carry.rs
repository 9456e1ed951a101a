//! Carries a plan out: the same model by tract's own ops, with moves where the plan has them.

use crate::orders::{Order, between, is_plain, pick};
use crate::turn::{Orders, turned};
use relayout::ir::layout::Layout;
use relayout::plan::{Action, GraphPlan, NodePlan};
use std::collections::BTreeMap;
use tract_core::internal::*;
use tract_core::ops::konst::Const;
use tract_core::ops::source::TypedSource;

/// A plan in tract's names.
pub type Plan = GraphPlan<OutletId, usize>;

/// A node that tract does not take as the plan has it, and why.
#[derive(Debug)]
pub struct Refused {
    /// The node.
    pub node: usize,
    /// tract's words, or ours.
    pub why: String,
}

/// A model that is made, and where each tensor of the old one is in it.
pub struct Carried {
    /// The model.
    pub model: TypedModel,
    /// For each outlet of the old model, its order and its outlet.
    pub homes: BTreeMap<OutletId, (Order, OutletId)>,
}

struct Carrier<'a> {
    old: &'a TypedModel,
    new: TypedModel,
    /// How each value lies.
    layouts: BTreeMap<OutletId, Order>,
    homes: BTreeMap<OutletId, (Order, OutletId)>,
    copies: BTreeMap<(OutletId, Order), OutletId>,
}

/// The model that a plan says.
///
/// # Errors
/// The first node that can't be as the plan has it.
pub fn carried(old: &TypedModel, plan: &Plan) -> Result<Carried, Refused> {
    let layout = |v: &relayout::plan::ValuePlan<OutletId>| Some((v.value, v.layout.as_permutation()?));
    let mut carrier = Carrier {
        old,
        new: TypedModel { symbols: old.symbols.clone(), properties: old.properties.clone(), ..TypedModel::default() },
        layouts: plan.values.iter().filter_map(layout).collect(),
        homes: BTreeMap::new(),
        copies: BTreeMap::new(),
    };
    let plans: BTreeMap<usize, &NodePlan<_, _>> = plan.nodes.iter().map(|n| (n.node, n)).collect();
    let order = old.eval_order().map_err(|why| Refused { node: 0, why: format!("{why:#}") })?;
    for id in order {
        let refused = |why: TractError| Refused { node: id, why: format!("{why:#}") };
        carrier.node(id, plans.get(&id).copied()).map_err(refused)?;
    }
    let end = |why: TractError| Refused { node: old.outputs.first().map_or(0, |o| o.node), why: format!("{why:#}") };
    carrier.ends().map_err(end)?;
    Ok(Carried { model: carrier.new, homes: carrier.homes })
}

impl Carrier<'_> {
    fn node(&mut self, id: usize, plan: Option<&NodePlan<OutletId, usize>>) -> TractResult<()> {
        let node = self.old.node(id);
        if node.op_is::<TypedSource>() || node.op_is::<Const>() {
            return self.begin(id);
        }
        let plan = plan.context("the plan has no such node")?;
        let mut operands = plan.operands.iter();
        let mut inputs: Vec<Option<Order>> = Vec::new();
        for outlet in &node.inputs {
            if self.is_constant(*outlet) {
                inputs.push(None);
                continue;
            }
            let operand = operands.next().context("the plan has fewer operands")?;
            let order = match operand {
                Some(operand) if operand.shape.is_none() => order_of(&operand.layout)?,
                _ => bail!("an operand has another shape for this reader"),
            };
            inputs.push(Some(order));
        }
        let outputs = (0..node.outputs.len()).map(|slot| self.layout(OutletId::new(id, slot))).collect();
        let orders = Orders { inputs, outputs };
        match node.op_as::<AxisOp>() {
            Some(op) if !orders.is_plain() || plan.action != Action::Keep => self.view(id, op, plan, &orders),
            _ => self.own(id, &orders),
        }
    }

    fn is_constant(&self, outlet: OutletId) -> bool {
        self.old.node(outlet.node).op_is::<Const>()
    }

    fn layout(&self, outlet: OutletId) -> Order {
        let rank = self.old.outlet_fact(outlet).map_or(0, |fact| fact.rank());
        self.layouts.get(&outlet).cloned().unwrap_or_else(|| crate::orders::plain(rank))
    }

    /// Inputs and constants.
    fn begin(&mut self, id: usize) -> TractResult<()> {
        let node = self.old.node(id);
        let outlet = OutletId::new(id, 0);
        let order = if self.is_constant(outlet) {
            crate::orders::plain(node.outputs[0].fact.rank())
        } else {
            self.layout(outlet)
        };
        ensure!(is_plain(&order), "an input would lie otherwise");
        let wire = match node.op_as::<Const>() {
            Some(_) => self.new.wire_node(&node.name, node.op.clone(), &[])?[0],
            None => self.new.add_source(&node.name, node.outputs[0].fact.clone())?,
        };
        self.homes.insert(outlet, (order, wire));
        Ok(())
    }

    /// The tensor in this order; a copy is made when it is first asked for.
    fn get(&mut self, outlet: OutletId, order: &Order) -> TractResult<OutletId> {
        let (home, wire) = self.homes.get(&outlet).cloned().context("read before it is written")?;
        if home == *order {
            return Ok(wire);
        }
        if let Some(copy) = self.copies.get(&(outlet, order.clone())) {
            return Ok(*copy);
        }
        let moves = between(&home, order).context("an order of other axes")?;
        let copy = self.wired(outlet.node, wire, &moves)?;
        self.copies.insert((outlet, order.clone()), copy);
        Ok(copy)
    }

    /// These ops behind a tensor, named after a node.
    fn wired(&mut self, id: usize, mut wire: OutletId, ops: &[AxisOp]) -> TractResult<OutletId> {
        for op in ops {
            let name = self.new.unique_name(format!("{}.relayout", self.old.node(id).name)).into_owned();
            wire = self.new.wire_node(name, op.clone(), &[wire])?[0];
        }
        Ok(wire)
    }

    /// An op in its orders.
    fn own(&mut self, id: usize, orders: &Orders) -> TractResult<()> {
        let node = self.old.node(id);
        let facts: Vec<TypedFact> =
            node.inputs.iter().map(|outlet| self.old.outlet_fact(*outlet).cloned()).collect::<TractResult<_>>()?;
        let turned = turned(node.op.as_ref(), &facts, orders)?.context("tract has no such op in this order")?;
        let mut wires = tvec!();
        for (slot, outlet) in node.inputs.iter().enumerate() {
            wires.push(match &orders.inputs[slot] {
                Some(order) => self.get(*outlet, order)?,
                None => {
                    let (_, wire) = self.homes.get(outlet).cloned().context("a constant that is not there")?;
                    self.wired(outlet.node, wire, &turned.constants[slot])?
                }
            });
        }
        let results = self.new.wire_node(&node.name, turned.op, &wires)?;
        for (slot, wire) in results.iter().enumerate() {
            self.settle(OutletId::new(id, slot), orders.outputs[slot].clone(), *wire)?;
        }
        Ok(())
    }

    /// A result is there; it must have the type and the shape that it had, in its order.
    fn settle(&mut self, outlet: OutletId, order: Order, wire: OutletId) -> TractResult<()> {
        let (old, new) = (self.old.outlet_fact(outlet)?, self.new.outlet_fact(wire)?);
        let shape = pick(&old.shape.to_tvec(), &order).context("an order of other axes")?;
        ensure!(old.datum_type == new.datum_type, "{:?} would become {:?}", old.datum_type, new.datum_type);
        ensure!(*new.shape == *shape, "{:?} in order {order:?} would become {:?}", old.shape, new.shape);
        self.homes.insert(outlet, (order, wire));
        Ok(())
    }

    /// A view, or what is left to move of it.
    fn view(&mut self, id: usize, op: &AxisOp, plan: &NodePlan<OutletId, usize>, orders: &Orders) -> TractResult<()> {
        let outlet = OutletId::new(id, 0);
        let source = self.old.node(id).inputs[0];
        let to = orders.outputs[0].clone();
        let from = match &plan.action {
            Action::Move { from, .. } => order_of(from)?,
            _ => to.clone(),
        };
        let order = orders.inputs[0].clone().context("a view of a constant")?;
        let mut wire = self.get(source, &order)?;
        let place = |order: &Order, axis: &usize| order.iter().position(|a| a == axis).context("no such axis");
        match op {
            AxisOp::Move(..) => {}
            AxisOp::Rm(axis) => wire = self.wired(id, wire, &[AxisOp::Rm(place(&order, axis)?)])?,
            AxisOp::Add(axis) => wire = self.wired(id, wire, &[AxisOp::Add(place(&from, axis)?)])?,
            AxisOp::Reshape(..) => {
                let stored = self.new.outlet_fact(wire)?.shape.to_tvec();
                let shape = pick(&self.old.outlet_fact(outlet)?.shape.to_tvec(), &from).context("other axes")?;
                wire = self.wired(id, wire, &[AxisOp::Reshape(0, stored, shape.into())])?;
            }
        }
        let moves = between(&from, &to).context("an order of other axes")?;
        wire = self.wired(id, wire, &moves)?;
        self.settle(outlet, to, wire)
    }

    /// Inputs and outputs in the order of the old model, with their labels.
    fn ends(&mut self) -> TractResult<()> {
        let inputs: Vec<OutletId> = self
            .old
            .inputs
            .iter()
            .map(|o| Ok(self.homes.get(o).context("an input is not there")?.1))
            .collect::<TractResult<_>>()?;
        let mut outputs = Vec::new();
        for outlet in &self.old.outputs {
            let rank = self.old.outlet_fact(*outlet)?.rank();
            let wire = self.get(*outlet, &crate::orders::plain(rank))?;
            if let Some(label) = self.old.outlet_label(*outlet) {
                self.new.set_outlet_label(wire, label.to_owned())?;
            }
            outputs.push(wire);
        }
        self.new.set_input_outlets(&inputs)?;
        self.new.select_output_outlets(&outputs)
    }
}

fn order_of(layout: &Layout) -> TractResult<Order> {
    layout.as_permutation().with_context(|| format!("{layout} is not an order of axes"))
}
