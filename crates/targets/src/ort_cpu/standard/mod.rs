//! Target `onnx` for ONNX Runtime: files of standard operators, priced by what the runtime makes of them when it loads them.
//!
//! The runtime blocks convolutions and pools by itself, one by one, and lets some ops stand in blocks between them. So a value that it would
//! store in blocks is decided about as one in blocks, at the measured costs of target `ort-cpu`: reorders stand where the runtime puts them,
//! and an op for which it has no rule is offered no blocks. Nothing of that is written: once the decision is, `leave_blocks` declares these
//! values in the order of their axes that the runtime blocks, channels first, and the moves into blocks and out of them go.
//!
//! `carried` of `ort_cpu` has the runtime's rules; what is offered in standard operators is in `standard` of its forms.

mod leave_blocks;

use super::machine::Machine;
use super::{OrtCpu, carried, forms, prepare};
use crate::TargetError;
use crate::shared::data::DataTarget;
use crate::shared::numbers;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::layout::Layout;
use relayout_target_api::{Capabilities, Cost, Loaded, MoveKind, MoveQuery, OpQuery, Pass, Target, TargetForm};
use std::sync::Arc;

/// The target.
#[derive(Clone)]
pub struct OnnxRuntime {
    /// Where the runtime's costs come from, and what moves cost.
    on: OrtCpu,
    /// The target of the same files for any runtime.
    standard: DataTarget,
    forms: Arc<[Box<dyn TargetForm>]>,
    passes: Arc<[Pass]>,
    source: String,
}

impl OnnxRuntime {
    /// Standard operators for what such a target is for: its block, costs and release.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] if the built-in data does not read.
    pub fn on(on: OrtCpu) -> Result<OnnxRuntime, TargetError> {
        let standard = crate::standard()?;
        let mut forms = forms::of_standard(&on.machine);
        forms.extend(standard.own_forms());
        let passes = prepare::of_standard().into_iter().chain([leave_blocks::pass(), numbers::pass()]);
        let release = on.machine.release.map_or_else(String::new, |release| format!(" {release}"));
        let blocks = on.machine.block.channels();
        let source = format!("for ONNX Runtime{release} on hosts with blocks of {blocks}: {}", on.source);
        Ok(OnnxRuntime { forms: forms.into(), passes: passes.collect(), source, standard, on })
    }

    fn machine(&self) -> &Machine {
        &self.on.machine
    }
}

impl Target for OnnxRuntime {
    fn name(&self) -> &str {
        self.standard.name()
    }

    fn about(&self) -> &str {
        self.standard.about()
    }

    fn layouts(&self) -> &str {
        self.standard.layouts()
    }

    fn dialect(&self) -> &str {
        self.standard.dialect()
    }

    fn cost_source(&self) -> &str {
        &self.source
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            checks_sizes: false,
            may_move_more: true,
            bundles: false,
            plans: false,
            ..Capabilities::STANDARD
        }
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn passes(&self) -> &[Pass] {
        &self.passes
    }

    fn loads(&self, graph: &Graph, is_constant: &dyn Fn(ValueId) -> bool) -> Option<Loaded> {
        Some(carried::loaded(graph, is_constant, self.machine()))
    }

    fn written(&self, layout: &Layout) -> Option<Layout> {
        leave_blocks::unblocked(layout)
    }

    fn crosses(&self, layout: &Layout) -> bool {
        // The runtime blocks each graph by itself.
        !self.machine().is_blocked_image(layout)
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        let machine = self.machine();
        if query.ins.iter().chain(query.outs).any(|layout| machine.is_blocked_image(layout)) {
            return carried::in_blocks(query, machine);
        }
        Some(self.standard.op_cost(query)? + carried::behind_moves(query, machine))
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        let blocked = [query.from, query.to].into_iter().any(|layout| self.machine().is_blocked_image(layout));
        // Where nothing is blocked the prices are those that all runtimes have together: what forms of products and normalizations cost was
        // measured beside them.
        if blocked && query.kind == MoveKind::Permute {
            self.on.move_cost(query)
        } else {
            self.standard.move_cost(query)
        }
    }

    fn view_cost(&self) -> Cost {
        self.standard.view_cost()
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.standard.pass_cost(bytes)
    }

    fn copy_cost(&self, bytes: u64, run: u64) -> Cost {
        self.on.copy_cost(bytes, run)
    }
}
