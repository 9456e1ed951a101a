//! The functions of domain `relayout` that a model gets: the body of every function that it calls.

use super::attributes::set_kinds;
use crate::dialect::{DOMAIN, DialectError, FIRST_IR_VERSION, FIRST_OPSET, VERSION, part_moves};
use crate::import::function_name;
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto};
use relayout_ir::dtype::DType;
use relayout_ir::graph::OpName;
use std::collections::BTreeMap;

/// The functions that calls need, by what calls them.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// The version of the standard domain that the model imports.
    opset: i64,
    bodies: BTreeMap<OpName, Called>,
    /// The function of each kind of calls.
    named: BTreeMap<String, OpName>,
    /// The functions that the model has of its own.
    theirs: BTreeMap<OpName, FunctionProto>,
}

/// A function that is called.
#[derive(Debug)]
struct Called {
    body: FunctionProto,
    /// Whether a call computes on float16.
    halves: bool,
    /// Whether every call's operand 0 and result are floats.
    floats: bool,
}

impl Functions {
    pub(super) fn new(opset: i64, model: &ModelProto) -> Functions {
        let own = model.functions.iter().filter(|f| f.domain.as_deref() == Some(DOMAIN));
        let theirs = own.map(|f| (function_name(f), f.clone())).collect();
        Functions { opset, bodies: BTreeMap::new(), named: BTreeMap::new(), theirs }
    }

    /// The version of the standard domain that the model imports.
    pub(super) fn opset(&self) -> i64 {
        self.opset
    }

    /// Whether bodies are written in the model's operator set.
    pub(super) fn have_bodies(&self) -> bool {
        self.opset >= FIRST_OPSET
    }

    /// Adds the functions to a model, and what it has to say to have any. Those that it has stay where they are.
    ///
    /// Before IR version 4 every initializer had to be an input too, and none could be overridden; from then on such an input
    /// is one that callers may set. So the inputs go where the version is raised past it. Before version 2 attributes did not say of
    /// which kind they are.
    pub(super) fn add_to(self, proto: &mut ModelProto) {
        if self.bodies.is_empty() {
            return;
        }
        let before = proto.ir_version.unwrap_or(0);
        if before < 4
            && let Some(graph) = &mut proto.graph
        {
            drop_initialized_inputs(graph);
        }
        if before < 2 {
            let nodes = proto.functions.iter_mut().flat_map(|f| &mut f.node);
            nodes.chain(proto.graph.iter_mut().flat_map(|graph| &mut graph.node)).for_each(set_kinds);
        }
        proto.ir_version = Some(before.max(FIRST_IR_VERSION));
        let imported = |set: &OperatorSetIdProto| set.domain.as_deref() == Some(DOMAIN);
        if !proto.opset_import.iter().any(imported) {
            proto.opset_import.push(OperatorSetIdProto { domain: Some(DOMAIN.to_owned()), version: Some(VERSION) });
        }
        for (name, Called { mut body, halves, floats }) in self.bodies {
            if halves && floats {
                part_moves(&mut body);
            }
            if !proto.functions.iter().any(|f| function_name(f) == name) {
                proto.functions.push(body);
            }
        }
    }

    /// Has the body that a call of this kind needs, whose operand 0 and result have these types. The call gets the first of these names
    /// that no function of another kind has.
    pub(super) fn need(
        &mut self,
        call: &mut NodeProto,
        types: &[Option<DType>],
        (kind, names): (&str, impl Iterator<Item = String>),
        body: impl FnOnce(i64) -> Result<FunctionProto, DialectError>,
    ) -> Result<(), DialectError> {
        let name = if let Some(name) = self.named.get(kind) {
            name.clone()
        } else {
            let (name, body) = self.free(body(self.opset)?, names);
            self.named.insert(kind.to_owned(), name.clone());
            self.bodies.insert(name.clone(), Called { body, halves: false, floats: true });
            name
        };
        if let Some(called) = self.bodies.get_mut(&name) {
            called.halves |= types.contains(&Some(DType::F16));
            called.floats &= types.iter().all(|t| matches!(t, Some(DType::F16 | DType::F32 | DType::F64)));
        }
        call.op_type = Some(name.name);
        Ok(())
    }

    /// The first of these names that no other function has, and the function by that name.
    fn free(&self, mut body: FunctionProto, names: impl Iterator<Item = String>) -> (OpName, FunctionProto) {
        for name in names {
            body.name = Some(name);
            let name = function_name(&body);
            let theirs = self.theirs.get(&name).is_none_or(|theirs| *theirs == body);
            if theirs && self.bodies.get(&name).is_none_or(|ours| ours.body == body) {
                return (name, body);
            }
        }
        (function_name(&body), body)
    }
}

fn drop_initialized_inputs(graph: &mut GraphProto) {
    let names: std::collections::BTreeSet<String> = graph.initializer.iter().filter_map(|t| t.name.clone()).collect();
    graph.input.retain(|i| i.name.as_ref().is_none_or(|name| !names.contains(name)));
}
