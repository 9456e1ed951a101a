//! What the attributes of ops say, each bundle of them read in one place, with symbols where extents are symbolic.
//!
//! | Module | Reads |
//! |---|---|
//! | `operand` | which number an op is told by an attribute and since which version by an operand; lists told in either way |
//! | `window` | kernel, strides, dilations, padding and groups of convolutions and pools |
//! | `cut` | what a Slice takes of each axis |
//! | `pad` | what a Pad adds to each axis, and the number it fills with |
//! | `reduced` | the axes of a reduction |
//! | `transpose` | the order that a Transpose leaves |
//! | `depth` | the mode of `DepthToSpace` |
//! | `number` | numbers of constants, epsilon |
//! | `units` | what quantized integers stand for |
//!
//! Lists that older versions have as attributes are taken from there if they are there, whatever the version.

mod cut;
mod depth;
mod number;
mod operand;
mod pad;
mod reduced;
mod transpose;
mod units;
mod window;

pub use cut::{Cut, SymbolicCut, axes_of_slice, cuts, elements_taken, symbolic_cuts};
pub use depth::is_depth_first;
pub use number::{EPSILON, epsilon, is_constant, known_ints, number, number_told};
pub use operand::{List, OPERANDS, Place, Told, list, place_of};
pub use pad::{Fill, Padding, SymbolicPad, fill, paddings, pads, symbolic_pads, zero_padding};
pub use reduced::{keeps_axes, reduced};
pub use transpose::transpose_perm;
pub use units::{Units, between_units, units};
pub use window::{AutoPad, Groups, Window, group, windows, windows_over};

pub(super) use reduced::reduced_by;
pub(super) use window::per_axis;

use super::query::{op_name, ty};
use crate::graph::{Graph, Node};
use crate::types::Type;

/// Whether a Pad adds nothing, a Slice takes every element in its order, or a Cast keeps the type: whatever the sizes at run time.
pub(super) fn takes_all(graph: &Graph, node: &Node) -> bool {
    let (from, to) = (ty(graph, node, 0), node.result(0).map(|y| &graph.value(y).ty));
    let same_shape = || from.and_then(Type::shape).is_some_and(|shape| to.and_then(Type::shape) == Some(shape));
    match op_name(node) {
        "Pad" => same_shape() && pads(graph, node).is_some_and(|pads| pads.iter().all(|p| *p == (0, 0))),
        // As many elements as there are, one after the other, are all of them.
        "Slice" => same_shape() && cuts(graph, node).is_some_and(|cuts| cuts.iter().all(|cut| cut.step == 1)),
        "Cast" => {
            same_shape() && from.and_then(Type::dtype).is_some_and(|dtype| to.and_then(Type::dtype) == Some(dtype))
        }
        _ => false,
    }
}
