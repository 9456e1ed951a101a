//! The target: standard ONNX at the runtime's prices, and the price of operands that are repeated within a tensor.

use relayout::Target;
use relayout::ir::dim::Dim;
use relayout::ir::layout::Layout;
use relayout::target::{Cost, MoveQuery, OpQuery, Pass, TargetForm};
use relayout::targets::{DataTarget, TargetError};

/// Nanoseconds for an element of the result where an operand is repeated along an axis that does not come first: the kernel then goes
/// through the tensor with coordinates (`examples/kernels.rs`).
const REPEATED: u64 = 55;

/// Ops of two operands that one kernel computes.
pub const BINARY: [&str; 4] = ["Add", "Sub", "Mul", "Div"];

/// The runtime's CPU kernels.
#[derive(Debug)]
pub struct Nxrt(DataTarget);

impl Nxrt {
    /// With the prices of a target file.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Nxrt, TargetError> {
        DataTarget::parse("nxrt", text).map(Nxrt)
    }
}

/// What a sum or a product costs beyond a pass over its bytes, in the order of its result.
fn repeated(query: &OpQuery<'_>) -> Option<Cost> {
    let node = query.graph.node(query.node);
    let shape = |v: &Option<_>| query.graph.value((*v)?).ty.shape();
    let order = query.outs.first().and_then(Layout::as_permutation)?;
    let result = shape(node.outputs.first().filter(|_| BINARY.contains(&node.onnx().unwrap_or_default()))?)?;
    for v in &node.inputs {
        let operand = shape(v)?;
        let missing = result.len().checked_sub(operand.len())?;
        let extent = |axis: usize| axis.checked_sub(missing).map_or(&Dim::ONE, |axis| &operand[axis]);
        // What the operand lacks must be repeated as a whole: extents of 1, then those of the result.
        let own: Vec<usize> = order.iter().copied().skip_while(|axis| *extent(*axis) == Dim::ONE).collect();
        let is_end = own.iter().all(|axis| extent(*axis) == &result[*axis]);
        // A constant is stored as often as it is read, see `dense.rs`.
        let is_stored =
            query.graph.constant((*v)?).is_some() && own.iter().all(|axis| result[*axis].as_const().is_some());
        if !is_end && !is_stored {
            let extents = result.iter().map(|dim| dim.as_const().and_then(|n| u64::try_from(n).ok()).unwrap_or(1));
            return Some(Cost::new(REPEATED * extents.product::<u64>()));
        }
    }
    None
}

impl Target for Nxrt {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn about(&self) -> &str {
        self.0.about()
    }

    fn layouts(&self) -> &str {
        self.0.layouts()
    }

    fn dialect(&self) -> &str {
        self.0.dialect()
    }

    fn cost_source(&self) -> &str {
        self.0.cost_source()
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        Some(self.0.op_cost(query)? + repeated(query).unwrap_or(Cost::ZERO))
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        self.0.forms()
    }

    fn passes(&self) -> &[Pass] {
        self.0.passes()
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        self.0.move_cost(query)
    }

    fn view_cost(&self) -> Cost {
        self.0.view_cost()
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.0.pass_cost(bytes)
    }
}
