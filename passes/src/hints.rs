//! Size hints: the numbers at which symbolic dims are priced.
//!
//! A decision has to hold for every size, so prices are compared at the hints and at half and double; the report prints the
//! hints it used. Defaults: 1 for a batch dim (a symbol that leads a graph input and appears nowhere else in the inputs), 64
//! for others.

use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::types::Type;
use std::collections::BTreeMap;

/// Hint of a dim that nobody gave one for.
const DEFAULT: i64 = 64;

/// Numbers for symbolic dims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    given: BTreeMap<String, i64>,
    scale: Scale,
}

/// Which sizes are priced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The hints.
    #[default]
    AtHint,
    /// Half of each, at least 1.
    Half,
    /// Double.
    Double,
}

impl Hints {
    /// The user's numbers, and 1 for batch dims of the inputs that have none.
    pub fn new(given: &BTreeMap<String, i64>, graph: &Graph) -> Hints {
        let mut hints = given.clone();
        for name in batch_symbols(graph) {
            hints.entry(name).or_insert(1);
        }
        Hints { given: hints, scale: Scale::AtHint }
    }

    /// The same hints at another scale.
    #[must_use]
    pub fn scaled(&self, scale: Scale) -> Hints {
        Hints { given: self.given.clone(), scale }
    }

    /// A dim as a number of at least 0.
    pub fn extent(&self, dim: &Dim) -> u64 {
        let lookup = |name: &str| {
            let hint = self.given.get(name).copied().unwrap_or(DEFAULT);
            Some(match self.scale {
                Scale::AtHint => hint,
                Scale::Half => (hint / 2).max(1),
                Scale::Double => hint.saturating_mul(2),
            })
        };
        dim.as_const().or_else(|| dim.eval(&lookup)).and_then(|n| u64::try_from(n).ok()).unwrap_or(DEFAULT as u64)
    }

    /// Bytes of a value; 0 for what is not a tensor of known rank, saturating.
    pub fn bytes(&self, graph: &Graph, v: ValueId) -> u64 {
        let Type::Tensor(t) = &graph.value(v).ty else { return 0 };
        let Some(shape) = &t.shape else { return 0 };
        let elems = shape.iter().fold(1u64, |n, d| n.saturating_mul(self.extent(d)));
        let bits = t.dtype.and_then(relayout_ir::dtype::DType::bits).unwrap_or(32);
        elems.saturating_mul(u64::from(bits)).div_ceil(8)
    }

    /// The hints that were used for these symbols, for the report.
    pub fn used(&self, graph: &Graph) -> BTreeMap<String, i64> {
        let mut used = BTreeMap::new();
        for &v in graph.inputs() {
            for dim in graph.value(v).ty.shape().unwrap_or_default() {
                for name in dim.symbols() {
                    let hint = self.given.get(&name).copied().unwrap_or(DEFAULT);
                    used.insert(name, hint);
                }
            }
        }
        used
    }
}

fn batch_symbols(graph: &Graph) -> Vec<String> {
    let mut leading = Vec::new();
    let mut elsewhere = Vec::new();
    for &v in graph.inputs() {
        for (axis, dim) in graph.value(v).ty.shape().unwrap_or_default().iter().enumerate() {
            let names = dim.symbols();
            if axis == 0 { leading.extend(names) } else { elsewhere.extend(names) }
        }
    }
    leading.retain(|name| !elsewhere.contains(name));
    leading
}
