//! Properties of a target's files and runtime, one per field.

use relayout_ir::storage::StorageRule;

/// Facts about a target that passes and the library ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Capabilities {
    /// How its dialect declares values whose axes are split or padded.
    pub storage: StorageRule,
    /// Its files hold standard operators only, so any runtime reads them.
    pub standard: bool,
    /// Its files can be decided about again, for this target or another.
    pub decides_again: bool,
    /// Its files call functions of domain `relayout`: kernels of that domain, and moves.
    pub calls_functions: bool,
    /// Its files can be written as bundles.
    pub bundles: bool,
    /// Its costs are good at any size, so a decision is checked at half and double of the size hints. Costs that were measured
    /// near the hints say little far from them.
    pub checks_sizes: bool,
    /// A region may move more bytes than the input did where that is cheaper.
    pub may_move_more: bool,
    /// A plan can list the decided layouts without writing its forms.
    pub plans: bool,
    /// Its runtimes read a `QuantizeLinear` and the `DequantizeLinear` behind it as one, so no move of signed bytes is put between the two.
    pub keeps_pairs: bool,
}

impl Capabilities {
    /// The capabilities of a target whose files hold standard operators, priced by a model.
    pub const STANDARD: Capabilities = Capabilities {
        storage: StorageRule::PerDigit,
        standard: true,
        decides_again: true,
        calls_functions: false,
        bundles: true,
        checks_sizes: true,
        may_move_more: false,
        plans: true,
        keeps_pairs: true,
    };
}
