//! Windows of convolutions and pools, and how convolutions group their channels.

use super::super::query::{op_name, ty};
use crate::dim::Dim;
use crate::graph::{Graph, Node};
use crate::types::Type;

/// How a window runs along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Elements that the window spans along the axis before dilation; `None` if not known.
    pub kernel: Option<i64>,
    /// Step, at least 1.
    pub stride: i64,
    /// Step within the window, at least 1.
    pub dilation: i64,
    /// Padding before and after, where `auto` is not set.
    pub pads: (i64, i64),
    /// What replaces `pads`.
    pub auto: AutoPad,
    /// Whether a last, partial window counts.
    pub ceil: bool,
}

/// ONNX's `auto_pad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoPad {
    /// `pads` says it.
    NotSet,
    /// Results have `ceil(extent / stride)` elements.
    Same,
    /// No padding.
    Valid,
}

impl AutoPad {
    /// The padding that a node asks for by its attribute `auto_pad`.
    ///
    /// # Errors
    /// If the attribute is a word that ONNX does not have.
    pub fn of(node: &Node) -> Result<AutoPad, String> {
        match node.str("auto_pad") {
            None | Some("NOTSET" | "") => Ok(AutoPad::NotSet),
            Some("SAME_UPPER" | "SAME_LOWER") => Ok(AutoPad::Same),
            Some("VALID") => Ok(AutoPad::Valid),
            Some(other) => Err(format!("auto_pad `{other}` is not one that ONNX has")),
        }
    }
}

impl Window {
    /// The padding before and after; `None` where the runtime makes it.
    pub fn padding(&self) -> Option<(i64, i64)> {
        match self.auto {
            AutoPad::NotSet => Some(self.pads),
            AutoPad::Valid => Some((0, 0)),
            AutoPad::Same => None,
        }
    }

    /// From the first element of a window to behind its last.
    pub fn span(&self) -> Option<i64> {
        (self.kernel? - 1).checked_mul(self.dilation)?.checked_add(1)
    }

    /// Number of places along an axis of this extent; `None` if it is not known.
    ///
    /// # Errors
    /// If the window is larger than the axis with its padding.
    pub fn places(&self, extent: &Dim) -> Result<Option<Dim>, String> {
        let Some((before, after)) = self.padding() else { return Ok(extent.checked_ceil_div(self.stride)) };
        let Some(span) = self.span() else { return Ok(None) };
        let Some(slack) = before.checked_add(after).and_then(|p| p.checked_sub(span)) else { return Ok(None) };
        let Some(room) = extent.checked_add(&Dim::from(slack)) else { return Ok(None) };
        if room.as_const().is_some_and(|r| r < 0) {
            return Err(format!("a window of {span} does not fit extent {extent} with padding {before} and {after}"));
        }
        let steps = if self.ceil { room.checked_ceil_div(self.stride) } else { room.checked_floor_div(self.stride) };
        let Some(count) = steps.and_then(|s| s.checked_add(&Dim::ONE)) else { return Ok(None) };
        if !self.ceil || self.stride == 1 {
            return Ok(Some(count));
        }
        // A window that would start in the padding after the data does not count.
        match (count.as_const(), extent.as_const()) {
            (Some(count), Some(extent)) => {
                let last = (count - 1).checked_mul(self.stride);
                Ok(last.map(|last| Dim::from(if last >= extent.saturating_add(before) { count - 1 } else { count })))
            }
            _ if after.checked_add(self.stride).is_some_and(|reach| reach <= span) => Ok(Some(count)),
            _ => Ok(None),
        }
    }

    /// Extent of the result of the transposed convolution with this window, `extra` elements longer at its end.
    pub fn places_of_transposed(&self, extent: &Dim, extra: i64) -> Option<Dim> {
        let Some((before, after)) = self.padding() else { return extent.checked_mul(&Dim::from(self.stride)) };
        let rest = self.span()?.checked_add(extra)?.checked_sub(before)?.checked_sub(after)?;
        let rest = rest.checked_sub(self.stride)?;
        extent.checked_mul(&Dim::from(self.stride))?.checked_add(&Dim::from(rest))
    }
}

/// An attribute with so many entries, or the same number everywhere.
///
/// # Errors
/// If it has another number of entries.
pub(in crate::op) fn per_axis(node: &Node, name: &str, entries: usize, default: i64) -> Result<Vec<i64>, String> {
    match node.ints(name) {
        None => Ok(vec![default; entries]),
        Some(v) if v.len() == entries => Ok(v.to_vec()),
        Some(v) => Err(format!("`{name}` has {} entries, needs {entries}", v.len())),
    }
}

/// The windows of a convolution or a pool with a kernel of these extents, one per spatial axis.
///
/// # Errors
/// If an attribute does not fit.
pub fn windows_over(node: &Node, kernel: &[Option<i64>]) -> Result<Vec<Window>, String> {
    let axes = kernel.len();
    let strides = per_axis(node, "strides", axes, 1)?;
    let dilations = per_axis(node, "dilations", axes, 1)?;
    let pads = per_axis(node, "pads", 2 * axes, 0)?;
    let (auto, ceil) = (AutoPad::of(node)?, node.flag("ceil_mode"));
    if let Some(bad) = strides.iter().chain(&dilations).chain(kernel.iter().flatten()).find(|v| **v < 1) {
        return Err(format!("a stride, dilation or kernel extent is {bad}"));
    }
    let window = |i: usize| Window {
        kernel: kernel[i],
        stride: strides[i],
        dilation: dilations[i],
        pads: (pads[i], pads[axes + i]),
        auto,
        ceil,
    };
    Ok((0..axes).map(window).collect())
}

/// The windows of a convolution or a pool, one per spatial axis: their kernel is what the attribute says, or else that of the
/// weights.
///
/// # Errors
/// If an attribute does not fit, or nothing says the kernel.
pub fn windows(graph: &Graph, node: &Node) -> Result<Vec<Window>, String> {
    let slot = if op_name(node) == "QLinearConv" { 3 } else { 1 };
    let weights = || ty(graph, node, slot).and_then(Type::shape)?.get(2..);
    let kernel: Vec<Option<i64>> = match (node.ints("kernel_shape"), weights()) {
        (Some(kernel), _) => kernel.iter().copied().map(Some).collect(),
        (None, Some(kernel)) if op_name(node).contains("Conv") => kernel.iter().map(Dim::as_const).collect(),
        _ => return Err("lacks `kernel_shape`".to_owned()),
    };
    windows_over(node, &kernel)
}

/// The number of groups of a convolution.
///
/// # Errors
/// If it is not positive.
pub fn group(node: &Node) -> Result<i64, String> {
    match node.int("group").unwrap_or(1) {
        group if group < 1 => Err(format!("`group` is {group}")),
        group => Ok(group),
    }
}

/// How a convolution groups channels, by the first two extents of its weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Groups.
    pub group: i64,
    /// First extent of the weights: filters of a convolution, channels that are read by a transposed one.
    pub outer: i64,
    /// Second extent of the weights: channels of a group that are read, or filters of a group of a transposed convolution.
    pub inner: i64,
}

impl Groups {
    /// The groups of a convolution with weights of these extents; `None` if they are fewer than two, or the group is not positive.
    pub fn read(node: &Node, weights: &[i64]) -> Option<Groups> {
        let &[outer, inner, ..] = weights else { return None };
        Some(Groups { group: group(node).ok()?, outer, inner })
    }

    /// Whether each channel has a filter of its own, which reads it alone.
    pub fn is_depthwise(self) -> bool {
        self.group > 1 && self.inner == 1 && self.outer == self.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Attr;
    use crate::dtype::DType;
    use crate::graph::{Op, OpName};

    fn window(kernel: i64, stride: i64, dilation: i64, pads: (i64, i64), ceil: bool) -> Window {
        Window { kernel: Some(kernel), stride, dilation, pads, auto: AutoPad::NotSet, ceil }
    }

    #[test]
    fn a_partial_last_window_counts_only_where_it_starts_in_the_data() {
        let cases = [
            (window(3, 2, 1, (0, 0), true), 4, 2),
            (window(3, 2, 1, (0, 0), false), 4, 1),
            (window(1, 2, 1, (0, 0), true), 2, 1),
            (window(2, 3, 1, (0, 1), true), 6, 2),
            (window(3, 2, 2, (1, 1), false), 10, 4),
        ];
        for (w, extent, expected) in cases {
            assert_eq!(w.places(&Dim::from(extent)).unwrap(), Some(Dim::from(expected)), "{w:?} over {extent}");
        }
    }

    #[test]
    fn a_symbolic_partial_window_is_known_only_where_it_must_start_in_the_data() {
        let h = Dim::symbol("H");
        assert_eq!(window(3, 2, 1, (0, 0), true).places(&h).unwrap(), "H//2".parse().ok());
        assert_eq!(window(3, 2, 1, (1, 1), true).places(&h).unwrap(), "H//2+1".parse().ok());
        assert_eq!(window(2, 2, 1, (1, 1), true).places(&h).unwrap(), None);
        assert_eq!(window(3, 2, 1, (1, 1), false).places(&h).unwrap(), "(H+1)//2".parse().ok());
    }

    #[test]
    fn a_kernel_is_that_of_the_attribute_or_of_the_weights() {
        let mut graph = Graph::new("g");
        let mut input = |name: &str, dims: [i64; 4]| {
            graph.add_input(name, Type::tensor(DType::F32, dims.map(Dim::from).to_vec())).unwrap()
        };
        let (x, w) = (input("x", [1, 8, 9, 9]), input("w", [8, 1, 3, 5]));
        let mut conv = Node::new(Op::Onnx(OpName::onnx("Conv")), vec![Some(x), Some(w)]);
        conv.attrs.insert("auto_pad".to_owned(), Attr::String("VALID".into()));
        conv.attrs.insert("pads".to_owned(), Attr::Ints(vec![1; 4]));
        let found = windows(&graph, &conv).unwrap();
        assert_eq!(
            found.iter().map(|w| (w.kernel, w.padding())).collect::<Vec<_>>(),
            [3, 5].map(|k| (Some(k), Some((0, 0))))
        );
        conv.attrs.insert("kernel_shape".to_owned(), Attr::Ints(vec![2, 0]));
        assert_eq!(windows(&graph, &conv), Err("a stride, dilation or kernel extent is 0".to_owned()));
        let pool = Node::new(Op::Onnx(OpName::onnx("MaxPool")), vec![Some(x), Some(w)]);
        assert!(windows(&graph, &pool).is_err());
    }

    #[test]
    fn a_depthwise_convolution_has_a_filter_per_channel() {
        let mut conv = Node::new(Op::Onnx(OpName::onnx("Conv")), vec![]);
        let depthwise = |conv: &Node, dims: &[i64]| Groups::read(conv, dims).map(Groups::is_depthwise);
        assert_eq!(depthwise(&conv, &[1, 1, 3, 3]), Some(false));
        conv.attrs.insert("group".to_owned(), Attr::Int(4));
        let found = [&[4, 1, 3, 3][..], &[8, 1, 3, 3], &[4, 2], &[4]].map(|dims| depthwise(&conv, dims));
        assert_eq!(found, [Some(true), Some(false), Some(false), None]);
        conv.attrs.insert("group".to_owned(), Attr::Int(0));
        assert_eq!(depthwise(&conv, &[0, 1]), None);
    }
}
