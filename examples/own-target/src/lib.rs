//! An embedder's own target: images in blocks of four channels, for a runtime that multiplies four numbers at once.
//!
//! It brings two forms, each in a file that says where the form applies, what it costs and which nodes it is written with, and a
//! pass that runs before anything is decided. Files that it makes hold standard operators only, so any runtime runs them:
//!
//! ```no_run
//! use relayout::{Model, Options, optimize};
//! let model = Model::open("model.onnx")?;
//! let optimized = optimize(&model, &own_target::Quads::default(), &Options::default())?;
//! # Ok::<(), relayout::Error>(())
//! ```

mod pointwise;
mod pool;
mod spell_out;

use relayout::ir::form::KernelLayouts;
use relayout::ir::graph::{Graph, ValueId};
use relayout::ir::layout::{Layout, LayoutNames};
use relayout::target::Cost;
use relayout::target::{Capabilities, MoveKind, MoveQuery, NodeQuery, Offer, OpQuery, Pass, Target, TargetForm};

/// Channels of a block.
const BLOCK: i64 = 4;

/// Images in blocks of four channels.
pub struct Quads {
    forms: Vec<Box<dyn TargetForm>>,
    passes: Vec<Pass>,
}

impl Default for Quads {
    fn default() -> Quads {
        Quads { forms: vec![Box::new(pointwise::Pointwise), Box::new(pool::Maxima)], passes: vec![spell_out::pass()] }
    }
}

impl Target for Quads {
    fn name(&self) -> &'static str {
        "quads"
    }

    fn about(&self) -> &'static str {
        "images in blocks of four channels"
    }

    fn layouts(&self) -> &'static str {
        "NCHW4c for images, O/4 I/4 H W I%4 O%4 for weights of one tap"
    }

    fn dialect(&self) -> &'static str {
        "standard operators"
    }

    fn cost_source(&self) -> &'static str {
        "assumed: four multiply-adds in a nanosecond, sixteen in blocks; ten bytes moved in a nanosecond"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { decides_again: false, may_move_more: true, ..Capabilities::STANDARD }
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn passes(&self) -> &[Pass] {
        &self.passes
    }

    fn op_cost(&self, _query: &OpQuery<'_>) -> Option<Cost> {
        Some(Cost::ZERO)
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        match query.kind {
            MoveKind::View => Some(self.view_cost()),
            MoveKind::Permute => Some(self.pass_cost(query.bytes)),
        }
    }

    fn view_cost(&self) -> Cost {
        Cost::new(100)
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.view_cost() + Cost::new(bytes / 10)
    }
}

/// An image in blocks: `N C/4 H W C%4`.
fn blocked() -> Option<Layout> {
    Layout::parse_with("N C/4 H W C%4", &LayoutNames::features(4)).ok()
}

/// Extents of an image whose channels are whole blocks.
fn image(q: &NodeQuery<'_>, v: ValueId) -> Option<[u64; 4]> {
    q.sizes.shape(q.graph, v).filter(|_| is_blockable(q.graph, v))?.try_into().ok()
}

/// What forms offer that do so many operations, sixteen at once, on a blocked image and other operands in these layouts.
fn offers(form: &'static str, operations: Option<u64>, others: Option<Vec<Option<Layout>>>) -> Vec<Offer> {
    let offer = |operations, blocked: Layout, others: Vec<Option<Layout>>| {
        let ins = [vec![Some(blocked.clone())], others].concat();
        let layouts = KernelLayouts { ins, outs: vec![Some(blocked)] };
        Offer { form, layouts, cost: Cost::new(operations / 16), becomes: None, adds_zeros: false }
    };
    operations.zip(blocked()).zip(others).map(|((n, blocked), others)| offer(n, blocked, others)).into_iter().collect()
}

/// Whether a value has four axes, and as many channels as whole blocks have.
fn is_blockable(graph: &Graph, v: ValueId) -> bool {
    let shape = graph.value(v).ty.shape().unwrap_or_default();
    shape.len() == 4 && shape[1].as_const().is_some_and(|c| c > 0 && c % BLOCK == 0)
}
