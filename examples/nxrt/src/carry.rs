//! Carries a plan out on the runtime's graph: values are stored in other orders, nodes get other attributes, and moves stand where the
//! plan has them. A move is a Transpose, which is a view in this runtime, so it says nothing but strides.

use crate::Refused;
use onnx_runtime_ir::{
    Attribute, DataType, Dim as HostDim, Graph, Node, NodeId, Shape, TensorData, ValueId, WeightRef,
};
use onnx_runtime_optimizer::PassContext;
use relayout::ir::dim::Dim;
use relayout::ir::layout::Layout;
use relayout::ir::text::json::{AttrJson, FloatJson};
use relayout::plan::{Action, GraphPlan, ListPlan, NodePlan};
use std::collections::{BTreeMap, HashMap};

/// A plan in the runtime's numbers.
type Plan = GraphPlan<u32, u32>;

struct Carrier<'a> {
    old: &'a Graph,
    context: &'a PassContext,
    plan: &'a Plan,
    new: Graph,
    /// How each value is planned to lie, and with which shape.
    planned: HashMap<u32, (&'a Layout, &'a [Dim])>,
    /// Where a value is that has no tensor of its own any more.
    homes: HashMap<ValueId, ValueId>,
    copies: BTreeMap<(u32, String), ValueId>,
    gone: Vec<NodeId>,
}

/// The graph that a plan says.
///
/// # Errors
/// The first node that can't be as the plan has it.
pub fn carried(old: &Graph, context: &PassContext, plan: &Plan) -> Result<Graph, Refused> {
    let planned = plan.values.iter().map(|v| (v.value, (&v.layout, v.shape.as_slice()))).collect();
    let (homes, copies, gone) = (HashMap::new(), BTreeMap::new(), Vec::new());
    let mut carrier = Carrier { old, context, plan, new: old.clone(), planned, homes, copies, gone };
    for node in &plan.nodes {
        carrier.node(node)?;
    }
    carrier.ends()?;
    carrier.cleared()
}

impl<'a> Carrier<'a> {
    fn node(&mut self, plan: &NodePlan<u32, u32>) -> Result<(), Refused> {
        let id = NodeId(plan.node);
        let node = self.old.node(id);
        let results_lie = |result: &ValueId| self.is_plain(result.0);
        let plain = node.outputs.iter().all(results_lie)
            && plan.operands.iter().flatten().all(|operand| operand.layout.is_row_major() && operand.shape.is_none());
        let mut inputs = node.inputs.clone();
        for (slot, operand) in plan.operands.iter().enumerate() {
            if let Some(operand) = operand {
                let tensor = self.get(node, operand.value, &operand.layout)?;
                inputs[slot] = Some(match (&operand.shape, &plan.action) {
                    (Some(shape), Action::Keep) => self.shaped(node, tensor, shape)?,
                    _ => tensor,
                });
            }
        }
        if plain {
            self.rewired(id, inputs);
            return Ok(());
        }
        for result in &node.outputs {
            self.settle(*result);
        }
        match &plan.action {
            Action::Keep => self.kept(node, plan, inputs),
            Action::Alias => self.aliased(node, inputs),
            Action::Reshape { shape } => {
                let tensor = operand(node, &inputs)?;
                let shape = self.extents(node, shape)?;
                self.becomes(node, "Reshape", vec![Some(tensor), Some(shape)], None);
                Ok(())
            }
            Action::Move { from, to } => self.moved(node, operand(node, &inputs)?, from, to),
            other => Err(Refused::new(node, format!("{other:?} is nothing that this runtime has"))),
        }
    }

    fn is_plain(&self, value: u32) -> bool {
        self.planned.get(&value).is_none_or(|(layout, _)| layout.is_row_major())
    }

    /// Other operands for a node.
    fn rewired(&mut self, id: NodeId, inputs: Vec<Option<ValueId>>) {
        for (slot, input) in inputs.into_iter().enumerate() {
            self.new.replace_input(id, slot, input);
        }
    }

    /// Gives a result the shape with which it is stored.
    fn settle(&mut self, result: ValueId) {
        if let Some(&(layout, shape)) = self.planned.get(&result.0)
            && !layout.is_row_major()
        {
            let shape = self.host_shape(shape);
            self.new.value_mut(result).shape = shape;
            self.new.mark_value_shape_known(result);
        }
    }

    fn host_shape(&mut self, dims: &[Dim]) -> Shape {
        let dim = |dim: &Dim| match dim.as_const().and_then(|n| usize::try_from(n).ok()) {
            Some(n) => HostDim::Static(n),
            None => HostDim::Symbolic(self.new.intern_symbol(&dim.to_string())),
        };
        dims.iter().map(dim).collect()
    }

    /// The tensor that has a value in this order; a copy is made when it is first asked for.
    fn get(&mut self, reader: &Node, value: u32, layout: &Layout) -> Result<ValueId, Refused> {
        let id = ValueId(value);
        let own = self.planned.get(&value).map(|(layout, _)| *layout);
        if own.is_none_or(|own| own == layout) {
            return Ok(self.homes.get(&id).copied().unwrap_or(id));
        }
        let key = (value, layout.to_string());
        if let Some(copy) = self.copies.get(&key) {
            return Ok(*copy);
        }
        let plan = self.plan;
        let copy = match plan.constants.iter().find(|c| c.value == value && c.to == *layout) {
            Some(constant) => self.repacked(reader, id, layout, &constant.extents)?,
            None => {
                let copy = plan.relayouts.iter().find(|r| r.value == value && r.to == *layout);
                let copy = copy.ok_or_else(|| Refused::new(reader, "nobody makes its operand in that order"))?;
                let from = self.get(reader, value, &copy.from)?;
                let shape = self.host_shape(&copy.shape);
                self.transposed(reader, from, &copy.from, &copy.to, shape)?
            }
        };
        self.copies.insert(key, copy);
        Ok(copy)
    }

    /// A Transpose of a tensor.
    fn transposed(
        &mut self,
        reader: &Node,
        tensor: ValueId,
        from: &Layout,
        to: &Layout,
        shape: Shape,
    ) -> Result<ValueId, Refused> {
        let perm =
            between(from, to).ok_or_else(|| Refused::new(reader, format!("{from} to {to} is not an order of axes")))?;
        let result = self.made(tensor, shape);
        let mut node = Node::new(NodeId(0), "Transpose", vec![Some(tensor)], vec![result]);
        node.attributes.insert("perm".to_owned(), Attribute::Ints(perm));
        self.new.insert_node(node);
        Ok(result)
    }

    /// A new value of a tensor's type.
    fn made(&mut self, tensor: ValueId, shape: Shape) -> ValueId {
        let value = self.new.value(tensor);
        let (kind, name) = (value.dtype, value.name.clone().unwrap_or_default());
        let name = format!("{name}.relayout{}", self.new.num_values());
        self.new.create_named_value(name, kind, shape)
    }

    /// A constant in another order: its bytes are moved now.
    fn repacked(&mut self, reader: &Node, id: ValueId, layout: &Layout, extents: &[i64]) -> Result<ValueId, Refused> {
        let no_order = || Refused::new(reader, format!("{layout} is not an order of axes"));
        let order = layout.as_permutation().ok_or_else(no_order)?;
        let shape: Vec<usize> = extents.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect();
        let kind = self.old.value(id).dtype;
        let data = self.data(id).and_then(|bytes| permuted(bytes, kind.byte_size(), &shape, &order));
        let stored: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        match data {
            Some(data) => Ok(self.constant(&format!("constant{}", id.0), kind, stored, data)),
            // It is computed, or its elements are no whole bytes: then it is moved when the model runs.
            None => {
                let shape = stored.into_iter().map(HostDim::Static).collect();
                self.transposed(reader, id, &Layout::row_major(order.len()), layout, shape)
            }
        }
    }

    /// The bytes of an initializer, or of a node that holds a constant.
    fn data(&self, id: ValueId) -> Option<&'a [u8]> {
        if let Some(weight) = self.old.initializers.get(&id) {
            return self.context.initializer_bytes(weight);
        }
        let node = self.old.try_node(self.old.value(id).producer?)?;
        match node.attributes.get("value").filter(|_| node.op_type == "Constant")? {
            Attribute::Tensor(data) => Some(&data.data),
            _ => None,
        }
    }

    fn constant(&mut self, name: &str, kind: DataType, dims: Vec<usize>, data: Vec<u8>) -> ValueId {
        let name = format!("{name}.relayout{}", self.new.num_values());
        let value = self.new.create_named_value(name, kind, dims.iter().copied().map(HostDim::Static).collect());
        self.new.set_initializer(value, WeightRef::Inline(TensorData::from_raw(kind, dims, data)));
        value
    }

    fn list(&mut self, kind: DataType, values: &[i64]) -> ValueId {
        let bytes = |n: &i64| match kind {
            // A list of axes or extents of 32 bits holds numbers that fit.
            DataType::Int32 => (*n as i32).to_le_bytes().to_vec(),
            _ => n.to_le_bytes().to_vec(),
        };
        self.constant("list", kind, vec![values.len()], values.iter().flat_map(bytes).collect())
    }

    /// The operand of a Reshape to these extents: one of them may be open.
    fn extents(&mut self, node: &Node, dims: &[Dim]) -> Result<ValueId, Refused> {
        let list: Vec<i64> = dims.iter().map(|dim| dim.as_const().unwrap_or(-1)).collect();
        match list.iter().filter(|n| **n == -1).count() {
            0 | 1 => Ok(self.list(DataType::Int64, &list)),
            _ => Err(Refused::new(node, "two extents of a new shape are open")),
        }
    }

    /// A tensor with another shape, in the order in which it lies.
    fn shaped(&mut self, node: &Node, tensor: ValueId, dims: &[Dim]) -> Result<ValueId, Refused> {
        let known: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from(dim.as_const()?).ok()).collect();
        if let Some((known, WeightRef::Inline(data))) = known.zip(self.new.initializers.get(&tensor).cloned()) {
            return Ok(self.constant(&format!("constant{}", tensor.0), data.dtype, known, data.data));
        }
        let extents = self.extents(node, dims)?;
        let shape = self.host_shape(dims);
        let result = self.made(tensor, shape);
        self.new.insert_node(Node::new(NodeId(0), "Reshape", vec![Some(tensor), Some(extents)], vec![result]));
        Ok(result)
    }

    /// Other entries of a list that is computed at run time.
    fn picked(&mut self, list: ValueId, picks: &[usize]) -> ValueId {
        let picks: Vec<i64> = picks.iter().map(|pick| *pick as i64).collect();
        let count = picks.len();
        let picks = self.list(DataType::Int64, &picks);
        let result = self.made(list, vec![HostDim::Static(count)]);
        self.new.insert_node(Node::new(NodeId(0), "Gather", vec![Some(list), Some(picks)], vec![result]));
        result
    }

    /// A node with another op, which leaves the same result.
    fn becomes(&mut self, node: &Node, op: &str, inputs: Vec<Option<ValueId>>, perm: Option<Vec<i64>>) {
        let mut new = Node::new(node.id, op, inputs, node.outputs.clone());
        new.name.clone_from(&node.name);
        new.attributes.extend(perm.map(|perm| ("perm".to_owned(), Attribute::Ints(perm))));
        self.new.replace_node(node.id, new);
    }

    /// The same op on operands in other orders.
    fn kept(
        &mut self,
        node: &Node,
        plan: &NodePlan<u32, u32>,
        mut inputs: Vec<Option<ValueId>>,
    ) -> Result<(), Refused> {
        let mut new = node.clone();
        for (name, said) in &plan.attributes {
            let said =
                attribute(said).ok_or_else(|| Refused::new(node, format!("attribute `{name}` has no such value")))?;
            new.attributes.insert(name.clone(), said);
        }
        plan.removed.iter().for_each(|name| drop(new.attributes.remove(name)));
        for list in &plan.lists {
            let (ListPlan::Values { slot, .. } | ListPlan::Picked { slot, .. }) = list else {
                return Err(Refused::new(node, "a list of a kind that is not known"));
            };
            inputs.resize(inputs.len().max(slot + 1), None);
            inputs[*slot] = Some(match (list, inputs[*slot]) {
                (ListPlan::Picked { picks, .. }, Some(list)) => self.picked(list, picks),
                (ListPlan::Values { values, .. }, list) => {
                    let like = list.or_else(|| inputs.get(1).copied().flatten());
                    let kind = like.map(|id| self.new.value(id).dtype).filter(|kind| *kind == DataType::Int32);
                    self.list(kind.unwrap_or(DataType::Int64), values)
                }
                _ => return Err(Refused::new(node, "a list that is not there")),
            });
        }
        if let Some(picks) = &plan.extents {
            let result = node.outputs[0];
            let all = self.made(result, vec![HostDim::Static(self.rank_read(plan))]);
            new.outputs = vec![all];
            new.inputs = inputs;
            self.new.replace_node(node.id, new);
            let picks: Vec<i64> = picks.iter().map(|pick| *pick as i64).collect();
            let picks = self.list(DataType::Int64, &picks);
            self.new.insert_node(Node::new(NodeId(0), "Gather", vec![Some(all), Some(picks)], vec![result]));
            return Ok(());
        }
        new.inputs = inputs;
        self.new.replace_node(node.id, new);
        Ok(())
    }

    fn rank_read(&self, plan: &NodePlan<u32, u32>) -> usize {
        plan.operands
            .first()
            .and_then(Option::as_ref)
            .map_or(0, |operand| operand.layout.as_permutation().map_or(0, |o| o.len()))
    }

    /// A node that is not needed: its result is its operand as it is stored.
    fn aliased(&mut self, node: &Node, inputs: Vec<Option<ValueId>>) -> Result<(), Refused> {
        let tensor = operand(node, &inputs)?;
        self.homes.insert(node.outputs[0], tensor);
        self.gone.push(node.id);
        Ok(())
    }

    /// A move: other extents first if the operand is a view of something else.
    fn moved(&mut self, node: &Node, tensor: ValueId, from: &Layout, to: &Layout) -> Result<(), Refused> {
        let no_order = || Refused::new(node, format!("{from} to {to} is not an order of axes"));
        let perm = between(from, to).ok_or_else(no_order)?;
        let (_, stored) = self.planned.get(&node.outputs[0].0).copied().ok_or_else(no_order)?;
        // What lies at place `i` of the result lies at place `perm[i]` before the move.
        let mut before = stored.to_vec();
        for (dim, place) in stored.iter().zip(&perm) {
            before[*place as usize] = dim.clone();
        }
        let shape = self.host_shape(&before);
        let tensor = match self.new.value(tensor).shape == shape {
            true => tensor,
            false => self.shaped(node, tensor, &before)?,
        };
        let moves = perm.iter().enumerate().any(|(place, from)| place as i64 != *from);
        match moves {
            true => self.becomes(node, "Transpose", vec![Some(tensor)], Some(perm)),
            false => self.becomes(node, "Identity", vec![Some(tensor)], None),
        }
        Ok(())
    }

    /// Inputs and outputs in the orders that they had, with their names.
    fn ends(&mut self) -> Result<(), Refused> {
        if self.old.inputs.iter().any(|id| !self.is_plain(id.0)) {
            return Err(Refused::whole("an input would lie otherwise"));
        }
        let mut outputs = Vec::new();
        for (id, planned) in self.old.outputs.iter().zip(&self.plan.outputs) {
            let Some(layout) = &planned.layout else {
                outputs.push(*id);
                continue;
            };
            let maker = self.old.value(*id).producer.map(|node| self.old.node(node).clone());
            let maker = maker.unwrap_or_else(|| Node::new(NodeId(0), "", Vec::new(), Vec::new()));
            let tensor = self.get(&maker, id.0, layout)?;
            outputs.push(if tensor == *id { tensor } else { self.ended(*id, tensor) });
        }
        self.new.set_outputs(outputs);
        Ok(())
    }

    /// An output that is now another tensor: that one is copied, and the copy has the name.
    fn ended(&mut self, id: ValueId, tensor: ValueId) -> ValueId {
        let (name, shape) = (self.old.value(id).name.clone(), self.old.value(id).shape.clone());
        let end = self.made(tensor, shape);
        let aside = self.new.value(end).name.clone();
        self.new.value_mut(id).name = aside;
        self.new.value_mut(end).name = name;
        self.new.insert_node(Node::new(NodeId(0), "Identity", vec![Some(tensor)], vec![end]));
        end
    }

    /// Without the nodes and constants that nobody reads any more.
    fn cleared(mut self) -> Result<Graph, Refused> {
        for id in self.gone.iter().rev() {
            self.new.remove_node(*id);
        }
        let unread: Vec<ValueId> = self.old.initializers.keys().copied().collect();
        for id in unread {
            let value = self.new.try_value(id);
            if value.is_some_and(|v| v.consumers.is_empty() && !v.is_graph_output && !v.is_graph_input) {
                self.new.initializers.remove(&id);
                self.new.gc_value_if_orphan(id);
            }
        }
        self.new.validate().map_err(|why| Refused::whole(format!("the graph contradicts itself: {why:?}")))?;
        Ok(self.new)
    }
}

fn operand(node: &Node, inputs: &[Option<ValueId>]) -> Result<ValueId, Refused> {
    inputs.first().copied().flatten().ok_or_else(|| Refused::new(node, "it has no operand"))
}

/// Place `i` of `to` is place `perm[i]` of `from`.
fn between(from: &Layout, to: &Layout) -> Option<Vec<i64>> {
    let (from, to) = (from.as_permutation()?, to.as_permutation()?);
    to.iter().map(|axis| from.iter().position(|a| a == axis).and_then(|place| i64::try_from(place).ok())).collect()
}

/// Elements of a row-major tensor in another order of its axes; `None` if they are no whole bytes, or not as many as there should be.
fn permuted(bytes: &[u8], size: usize, shape: &[usize], order: &[usize]) -> Option<Vec<u8>> {
    let count: usize = shape.iter().product();
    if size == 0 || bytes.len() != count.checked_mul(size)? {
        return None;
    }
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut moved = Vec::with_capacity(bytes.len());
    for slot in 0..count {
        let (mut rest, mut from) = (slot, 0);
        for axis in order.iter().rev() {
            from += rest % shape[*axis] * strides[*axis];
            rest /= shape[*axis];
        }
        moved.extend_from_slice(&bytes[from * size..][..size]);
    }
    Some(moved)
}

fn attribute(said: &AttrJson) -> Option<Attribute> {
    let float = |x: &FloatJson| match x {
        FloatJson::Number(x) => Some(*x),
        FloatJson::Text(text) => text.parse().ok(),
    };
    Some(match said {
        AttrJson::Int(n) => Attribute::Int(*n),
        AttrJson::Float(x) => Attribute::Float(float(x)?),
        AttrJson::String(text) => Attribute::String(text.clone().into_bytes()),
        AttrJson::Bytes(bytes) => Attribute::String(bytes.clone()),
        AttrJson::Ints(list) => Attribute::Ints(list.clone()),
        AttrJson::Floats(list) => Attribute::Floats(list.iter().map(float).collect::<Option<_>>()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_put_in_another_order() {
        let bytes: Vec<u8> = (0..6).collect();
        assert_eq!(permuted(&bytes, 1, &[2, 3], &[1, 0]), Some(vec![0, 3, 1, 4, 2, 5]));
        assert_eq!(permuted(&bytes, 2, &[3, 1], &[1, 0]), Some(bytes.clone()));
        assert_eq!(permuted(&bytes, 4, &[2, 3], &[1, 0]), None);
    }

    #[test]
    fn moves_between_orders_are_relative() {
        let order = |order: &[usize]| Layout::permutation(order).unwrap();
        assert_eq!(between(&order(&[0, 2, 3, 1]), &order(&[0, 1, 2, 3])), Some(vec![0, 3, 1, 2]));
    }
}
