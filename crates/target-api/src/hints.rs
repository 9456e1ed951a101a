//! Size hints: the numbers at which symbolic dims are priced.
//!
//! A decision should be good at every size. So prices are compared at the hints and at half and double of them, or at the ends of
//! a range. The report prints the hints that were used. Defaults: 1 for a batch dim (a symbol that leads a graph input and
//! appears nowhere else in the inputs), 64 for others. A dim of an input is called by its symbol, or as `INPUT.AXIS`, which is all that
//! one without a symbol has. An extent that inference does not know is taken to be as large as what it comes from: that of the same axis
//! of an operand, or what makes the elements as many as those of the operand.

use crate::Sizes;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::types::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// The size of a dim that nobody gave one for, if it is no batch.
pub const USUAL: i64 = 64;

/// Hint of such a dim.
const DEFAULT: Size = Size::of(USUAL);

/// Sizes that a symbolic dim is priced at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    low: i64,
    typical: i64,
    high: i64,
}

impl Size {
    /// A typical size; prices are checked at half and double of it too.
    pub const fn of(typical: i64) -> Size {
        let typical = if typical < 1 { 1 } else { typical };
        let low = if typical < 2 { 1 } else { typical / 2 };
        Size { low, typical, high: typical.saturating_mul(2) }
    }

    /// A range, both ends included; prices are taken in its middle and checked at its ends. `None` if it is empty or begins below 1.
    pub fn range(low: i64, high: i64) -> Option<Size> {
        (1 <= low && low <= high).then(|| Size { low, typical: low + (high - low) / 2, high })
    }

    /// The smallest size and the largest one.
    pub fn ends(self) -> (i64, i64) {
        (self.low, self.high)
    }

    /// The size that prices are taken at.
    pub fn typical(self) -> i64 {
        self.typical
    }

    /// The only size that it can have; `None` for a range.
    pub fn number(self) -> Option<i64> {
        (self == Size::of(self.typical)).then_some(self.typical)
    }
}

impl FromStr for Size {
    type Err = String;

    /// `224` or `1..32`.
    fn from_str(text: &str) -> Result<Size, String> {
        let number = |t: &str| t.trim().parse::<i64>().map_err(|_| format!("`{t}` is not a number"));
        let Some((low, high)) = text.split_once("..") else {
            let n = number(text)?;
            return if n < 1 {
                Err(format!("`{n}` is not a size of a dim: expected a positive integer"))
            } else {
                Ok(Size::of(n))
            };
        };
        let (low, high) = (number(low)?, number(high)?);
        Size::range(low, high).ok_or_else(|| format!("`{text}` is not a range of sizes"))
    }
}

/// Numbers for symbolic dims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    given: BTreeMap<String, Size>,
    scale: Scale,
}

/// Which sizes are priced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The hints.
    #[default]
    Typical,
    /// The low end of a range; half of a single size, at least 1.
    Low,
    /// The high end; double of a single size.
    High,
}

impl Sizes for Hints {
    fn extent(&self, dim: &Dim) -> u64 {
        self.number(dim)
    }
}

impl Hints {
    /// The user's numbers, and 1 for batch dims of the inputs that have none.
    pub fn new(given: &BTreeMap<String, Size>, graph: &Graph) -> Hints {
        let mut hints = given.clone();
        for (place, dim) in open_axes(graph) {
            if let (Some(&size), Some(symbol)) = (given.get(&place), dim.symbols().into_iter().next()) {
                hints.entry(symbol).or_insert(size);
            }
        }
        for name in batch_symbols(graph) {
            hints.entry(name).or_insert(Size::of(1));
        }
        let mut hints = Hints { given: hints, scale: Scale::Typical };
        hints.guess(graph);
        hints
    }

    /// Finds sizes for what inference does not know, in the order of the graph, that of bodies as well.
    fn guess(&mut self, graph: &Graph) {
        let mut open = Open::of(graph);
        let order = graph.order().unwrap_or_default();
        // What a result is declared to be says what its operand is.
        for &n in order.iter().rev() {
            self.look_back(graph, n, &open);
        }
        for n in order {
            for &y in graph.node(n).outputs.iter().flatten() {
                let shape = graph.value(y).ty.shape().unwrap_or_default();
                for (axis, dim) in shape.iter().enumerate() {
                    // What stands for itself; where it is a part of something else it is guessed already, or not at all.
                    let Some(name) = open.name(dim).filter(|name| !self.given.contains_key(name)) else { continue };
                    match self.guessed(graph, n, (shape, axis), &open) {
                        Some(size) => drop(self.given.insert(name, size)),
                        None => open.known.extend([name]),
                    }
                }
            }
            for body in graph.node(n).bodies() {
                self.guess(body);
            }
        }
    }

    /// Finds sizes of the operand of a node that leaves each extent as it is, by the result.
    fn look_back(&mut self, graph: &Graph, n: NodeId, open: &Open) {
        let node = graph.node(n);
        if !node.onnx().is_some_and(|op| KEEPS_EXTENTS.contains(&op)) {
            return;
        }
        let shape = |v: Option<ValueId>| v.and_then(|v| graph.value(v).ty.shape());
        let (Some(from), Some(to)) = (shape(node.operand(0)), shape(node.result(0))) else { return };
        for (axis, dim) in to.iter().enumerate() {
            let known = dim.as_const().filter(|n| *n > 0).map(|n| Size { low: n, typical: n, high: n });
            let known = known.or_else(|| self.given.get(&open.name(dim)?).copied());
            let name = before(node, axis, to.len()).and_then(|axis| open.name(from.get(axis)?));
            if let (Some(size), Some(name)) = (known, name) {
                self.given.entry(name).or_insert(size);
            }
        }
    }

    /// The size of an axis of a result, by the operands.
    fn guessed(&self, graph: &Graph, n: NodeId, (shape, axis): (&[Dim], usize), open: &Open) -> Option<Size> {
        let node = graph.node(n);
        let operands = node.inputs.iter().flatten().filter_map(|&x| graph.value(x).ty.shape());
        let scales = [Scale::Low, Scale::Typical, Scale::High].map(|scale| self.scaled(scale));
        let keeps_elements = matches!(node.onnx(), Some("Reshape" | "Flatten" | "SpaceToDepth" | "DepthToSpace"));
        let sizes = if keeps_elements {
            let x = node.operand(0).and_then(|x| graph.value(x).ty.shape())?;
            scales.map(|at| at.rest_of(x, shape, open))
        } else {
            let from = before(node, axis, shape.len())?;
            let alike: Vec<&Dim> = operands.filter(|x| x.len() == shape.len()).filter_map(|x| x.get(from)).collect();
            scales.map(|at| alike.iter().map(|dim| at.number(dim)).max())
        };
        let [low, typical, high] = sizes.map(|n| n.and_then(|n| i64::try_from(n).ok()).filter(|n| *n > 0));
        Some(Size { low: low?, typical: typical?, high: high? })
    }

    /// How many elements of `x` there are for each of those that the known axes of a shape count, as the edge of a square, cube and so on
    /// of as many axes as are not known.
    fn rest_of(&self, x: &[Dim], shape: &[Dim], open: &Open) -> Option<u64> {
        let product = |dims: &mut dyn Iterator<Item = &Dim>| dims.fold(1_u64, |n, d| n.saturating_mul(self.number(d)));
        let is_open = |d: &&Dim| open.name(d).is_some_and(|name| !self.given.contains_key(&name));
        let unknown = shape.iter().filter(is_open).count();
        let known = product(&mut shape.iter().filter(|d| !is_open(d)));
        let rest = product(&mut x.iter()).checked_div(known)?;
        Some((rest as f64).powf(1.0 / unknown.max(1) as f64).round().max(1.0) as u64)
    }

    /// These hints at another scale.
    #[must_use]
    pub fn scaled(&self, scale: Scale) -> Hints {
        Hints { given: self.given.clone(), scale }
    }

    /// Whether these are the hints themselves, and not the ends of their ranges.
    #[must_use]
    pub fn is_typical(&self) -> bool {
        self.scale == Scale::Typical
    }

    fn number(&self, dim: &Dim) -> u64 {
        let lookup = |name: &str| {
            let hint = self.given.get(name).copied().unwrap_or(DEFAULT);
            Some(match self.scale {
                Scale::Typical => hint.typical,
                Scale::Low => hint.low,
                Scale::High => hint.high,
            })
        };
        dim.as_const()
            .or_else(|| dim.eval(&lookup))
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(DEFAULT.typical as u64)
    }

    /// Bytes of a value; 0 for what is not a tensor of known rank, saturating.
    pub fn bytes(&self, graph: &Graph, v: ValueId) -> u64 {
        let Type::Tensor(t) = &graph.value(v).ty else { return 0 };
        let Some(shape) = &t.shape else { return 0 };
        let elems = shape.iter().fold(1u64, |n, d| n.saturating_mul(self.number(d)));
        let bits = t.dtype.and_then(relayout_ir::dtype::DType::bits).unwrap_or(32);
        elems.saturating_mul(u64::from(bits)).div_ceil(8)
    }

    /// The hints that were used for these symbols, for the report.
    pub fn used(&self, graph: &Graph) -> BTreeMap<String, i64> {
        let mut used = BTreeMap::new();
        for (place, dim) in open_axes(graph) {
            for symbol in dim.symbols() {
                let hint = self.given.get(&symbol).copied().unwrap_or(DEFAULT);
                used.insert(if dim.is_anonymous() { place.clone() } else { symbol }, hint.typical);
            }
        }
        used
    }
}

/// Ops whose result has the extents of the operand, in another order for a Transpose.
const KEEPS_EXTENTS: &[&str] =
    &["Transpose", "Identity", "Cast", "Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Exp", "Sqrt", "Erf", "Softmax"];

/// The axis of the operand that an axis of a result of as many axes is: another one for a Transpose.
fn before(node: &Node, axis: usize, rank: usize) -> Option<usize> {
    match node.ints("perm") {
        _ if node.onnx() != Some("Transpose") => Some(axis),
        Some(perm) => usize::try_from(*perm.get(axis)?).ok(),
        None => rank.checked_sub(axis + 1),
    }
}

/// Names of extents that no input says: those of inference, and those with which a file declares what it does not say otherwise.
struct Open {
    /// Names that are no such ones.
    known: BTreeSet<String>,
}

impl Open {
    fn of(graph: &Graph) -> Open {
        Open { known: open_axes(graph).flat_map(|(_, dim)| dim.symbols()).collect() }
    }

    /// The name of an extent that is nothing but one of them.
    fn name(&self, dim: &Dim) -> Option<String> {
        if dim.is_const() {
            return None;
        }
        let name = match dim.as_symbol() {
            Some(symbol) => symbol.to_owned(),
            None if dim.is_anonymous() => {
                let text = dim.to_string();
                let digits = text.strip_prefix('?')?;
                let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                whole.then_some(text)?
            }
            None => return None,
        };
        (!self.known.contains(&name)).then_some(name)
    }
}

/// The axes of inputs that have no number: what callers can name them by, and what they are.
fn open_axes(graph: &Graph) -> impl Iterator<Item = (String, &Dim)> {
    graph.inputs().iter().flat_map(move |&v| {
        let value = graph.value(v);
        let axes = value.ty.shape().unwrap_or_default().iter().enumerate();
        let open = axes.filter(|(_, dim)| !dim.is_const());
        open.map(|(axis, dim)| (format!("{}.{axis}", value.name), dim))
    })
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
