//! The forms of the target, a file each.

mod attention;
mod conv;
mod depth;
mod digits;
mod heads;
pub(crate) mod norm;
mod pool;
mod product;
mod quantized;
mod reduce;
mod resize;
mod scale;
mod standard;
mod transposed_conv;
mod volume;
mod volume_conv;
mod volume_max;
mod wide_conv;

pub(crate) use standard::of_standard;

use super::machine::Machine;
use crate::shared::forms::packed::PackedHeads;
use relayout_target_api::TargetForm;
use std::sync::Arc;

/// Every form on a machine. Where two offer the same layouts at the same cost, the first one is taken.
pub(crate) fn all(machine: &Arc<Machine>) -> Vec<Box<dyn TargetForm>> {
    let m = || Arc::clone(machine);
    vec![
        Box::new(quantized::QuantizedImages(m())),
        Box::new(conv::Conv(m())),
        Box::new(wide_conv::WideConv(m())),
        Box::new(transposed_conv::TransposedConv(m())),
        Box::new(volume_conv::VolumeConv(m())),
        Box::new(pool::Pools(m())),
        Box::new(volume_max::VolumeMax(m())),
        Box::new(reduce::Reductions(m())),
        Box::new(digits::Digits(m())),
        Box::new(depth::Depths(m())),
        Box::new(resize::Resizes(m())),
        Box::new(scale::Scales(m())),
        Box::new(scale::innermost(machine)),
        Box::new(norm::NormsOfRows(m())),
        Box::new(norm::NormsOfChannels(m())),
        Box::new(attention::Attentions(m())),
        Box::new(heads::Projections(m())),
        Box::new(product::Products(m())),
        Box::new(PackedHeads(machine.small_node())),
    ]
}
