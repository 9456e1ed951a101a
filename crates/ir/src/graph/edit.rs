//! Edits of what reads what and of what is called how.

use super::{Graph, NodeId, Op, Use, ValueId};
use crate::dim::Dim;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Small integer tensors of up to so many elements are followed element by element.
pub const CONTENTS_LIMIT: usize = 1024;

/// The readers of a value, to be handed to another value.
#[derive(Clone, Debug, Default)]
pub struct Handover {
    /// Operands and captures.
    pub uses: Vec<Use>,
    /// Graph outputs.
    pub outputs: Vec<usize>,
    /// The new value takes over the name of this one, which gets that of the new value.
    pub takes_name_of: Option<ValueId>,
}

impl Handover {
    /// All that read a value now, and its name.
    pub fn everything(graph: &Graph, v: ValueId) -> Handover {
        let (uses, outputs) = (graph.uses(v).into_vec(), graph.output_places(v).to_vec());
        Handover { uses, outputs, takes_name_of: Some(v) }
    }
}

impl Graph {
    /// Lets these readers read another value from now on.
    pub fn hand_over(&mut self, from: Handover, to: ValueId) {
        for u in from.uses {
            self.redirect(u, to);
        }
        for k in from.outputs {
            self.redirect_output(k, to);
        }
        if let Some(of) = from.takes_name_of {
            // What is known by the name holds no other elements than before, so it still differs from the model's if it did.
            let differs = self.value(of).differs;
            *self.value_mut(to).differs |= differs;
            self.swap_names(of, to);
        }
    }

    /// Makes `u` read `to`. The new value must be of this graph; cycles are found by [`order`](Graph::order).
    pub(crate) fn redirect(&mut self, u: Use, to: ValueId) {
        self.edit_topology();
        let node = &mut self.nodes[u.node];
        let inputs = node.inputs.len();
        let place = match u.slot.checked_sub(inputs) {
            None => node.inputs[u.slot].as_mut(),
            Some(k) => node.captures.get_mut(k),
        };
        let Some(place) = place else { return };
        let from = std::mem::replace(place, to);
        self.readers[from.index()].remove(u);
        self.readers[to.index()].insert(u);
    }

    /// Makes these the operands of a node.
    pub fn set_inputs(&mut self, n: NodeId, inputs: Vec<Option<ValueId>>) {
        self.edit_topology();
        self.disconnect(n);
        self.nodes[n].inputs = inputs;
        self.connect(n);
    }

    /// Makes an operand of a node this value, the slot added if it is not there.
    pub(crate) fn set_input(&mut self, n: NodeId, slot: usize, to: ValueId) {
        // Captures follow the inputs, so a new slot moves theirs: all are entered anew.
        self.edit_topology();
        self.disconnect(n);
        let inputs = &mut self.nodes[n].inputs;
        inputs.resize(inputs.len().max(slot + 1), None);
        inputs[slot] = Some(to);
        self.connect(n);
    }

    /// Lets the bodies of a node read this value by its name.
    pub fn add_capture(&mut self, n: NodeId, v: ValueId) {
        let node = &mut self.nodes[n];
        if node.captures.contains(&v) {
            return;
        }
        let slot = node.inputs.len() + node.captures.len();
        node.captures.push(v);
        self.edit_topology();
        self.readers[v.index()].insert(Use { node: n, slot });
    }

    /// Says that the bodies of a node do not read this value any more.
    pub fn remove_capture(&mut self, n: NodeId, v: ValueId) {
        self.edit_topology();
        self.disconnect(n);
        self.nodes[n].captures.retain(|&captured| captured != v);
        self.connect(n);
    }

    /// Makes the k-th graph output this value.
    pub(crate) fn redirect_output(&mut self, k: usize, to: ValueId) {
        self.edits += 1;
        let from = std::mem::replace(&mut self.outputs[k], to);
        if let Entry::Occupied(mut places) = self.places.entry(from) {
            places.get_mut().retain(|place| *place != k);
            if places.get().is_empty() {
                places.remove();
            }
        }
        let places = self.places.entry(to).or_default();
        places.push(k);
        places.sort_unstable();
    }

    /// Gives an outer value the name under which the enclosing graph has it now. A value of that name gets another one.
    pub fn rename_outer(&mut self, n: NodeId, renamed: &FxHashMap<String, String>) {
        let Some(v) = self.node(n).result(0) else { return };
        let Some(name) = renamed.get(&self.values[v.index()].name).cloned() else { return };
        if let Some(other) = self.by_name(&name).filter(|&other| other != v) {
            let free = self.fresh_name(&name);
            self.set_name(other, &free);
        }
        self.set_name(v, &name);
    }

    fn set_name(&mut self, v: ValueId, name: &str) {
        self.edits += 1;
        let before = std::mem::replace(&mut self.values[v.index()].name, name.to_owned());
        if self.names.get(&before) == Some(v) {
            self.names.remove(&before);
        }
        self.names.insert(name, v);
    }

    /// Exchanges the names of two values.
    pub(crate) fn swap_names(&mut self, a: ValueId, b: ValueId) {
        self.edits += 1;
        let name = std::mem::take(&mut self.values[a.index()].name);
        let other = std::mem::replace(&mut self.values[b.index()].name, name);
        self.values[a.index()].name = other;
        for v in [a, b] {
            self.names.insert(&self.values[v.index()].name, v);
        }
    }

    /// Removes a node whose results nobody reads; says whether it did. Graph inputs stay.
    pub(crate) fn remove_unused(&mut self, n: NodeId) -> bool {
        let node = &self.nodes[n];
        let wanted = node.outputs.iter().flatten().any(|&v| self.use_count(v) > 0 || self.is_output(v));
        if wanted || matches!(node.op, Op::Input { .. }) {
            return false;
        }
        self.edit_topology();
        self.disconnect(n);
        for v in self.nodes.remove(n).outputs.into_iter().flatten() {
            let value = &mut self.values[v.index()];
            self.names.remove(&value.name);
            // The number of the node may be given to another one; its values must not become that one's.
            value.source = (NodeId::NONE, 0);
        }
        true
    }

    /// Whether this is a value of the graph whose producer is still there.
    pub fn has(&self, v: ValueId) -> bool {
        self.values.get(v.index()).is_some_and(|value| self.contains(value.source.0))
    }

    /// Sets what is known of the contents of a constant; of other values nothing becomes known.
    pub fn know_contents(&mut self, v: ValueId) {
        let contents = self.constant(v).and_then(|c| c.to_ints(CONTENTS_LIMIT));
        if let Some(contents) = contents {
            *self.value_mut(v).contents = Some(contents.into_iter().map(Dim::from).collect());
        }
    }
}
