//! Blocked convolutions of volumes whose frames are apart: for each frame of the result a chain of convolutions, one for each tap that
//! reads a frame, each of which takes in the sum so far. The first one has the bias and the sum of the whole, the last one its activation.
//!
//! Who reads a result frame by frame reads these; others have them one behind the other.

use crate::ort_cpu::nodes::{constant_behind_moves, convolution};
use relayout_eval::Picked;
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{DuplicateName, Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::Volume;
use relayout_ir::types::Type;
use std::collections::BTreeMap;

/// The attribute in which a convolution has its activation, and that of the numbers which this reads.
const ACTIVATION: [&str; 2] = ["activation", "activation_params"];

/// Batches that lie in parts: the images of each, one behind the other.
pub(super) type Parts = BTreeMap<ValueId, Vec<ValueId>>;

/// The images of a batch, each by itself.
pub(super) fn each(
    graph: &mut Graph,
    n: NodeId,
    batch: ValueId,
    parts: &mut Parts,
    opset: i64,
) -> Result<Vec<ValueId>, DuplicateName> {
    if let Some(parts) = parts.get(&batch) {
        return Ok(parts.clone());
    }
    let shape = graph.value(batch).ty.shape().unwrap_or_default().to_vec();
    let count = shape.first().and_then(Dim::as_const).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let ty = Type::tensor(DType::F32, one_of(&shape));
    let name = graph.value(batch).name.clone();
    let results: Vec<(String, Type)> = (0..count).map(|frame| (format!("{name}.{frame}"), ty.clone())).collect();
    let mut make = Builder::at(graph, n);
    let split = make.op("Split", [batch]).attr("axis", Attr::Int(0)).kernel();
    let images = split.told("split", &format!("{name}.sizes"), &vec![1; count], opset)?.results(results)?;
    parts.insert(batch, images.clone());
    Ok(images)
}

/// Extents of one image of a batch.
fn one_of(batch: &[Dim]) -> Vec<Dim> {
    std::iter::once(Dim::from(1)).chain(batch.iter().skip(1).cloned()).collect()
}

/// A convolution of volumes, its operands by frame.
pub(super) struct Apart<'v> {
    pub(super) volume: &'v Volume,
    pub(super) x: Vec<ValueId>,
    pub(super) sum: Option<Vec<ValueId>>,
    /// Extents of all frames of the result, as images of a batch.
    pub(super) result: Vec<Dim>,
    /// What each convolution is told of its windows.
    pub(super) attrs: Attrs,
    pub(super) layouts: KernelLayouts,
}

impl Apart<'_> {
    /// The frames of the result. `n` is the convolution of volumes, whose weights are those of its taps one behind the other; `None`
    /// where these can't be taken apart.
    pub(super) fn write(&self, graph: &mut Graph, n: NodeId) -> Result<Option<Vec<ValueId>>, DuplicateName> {
        let node = graph.node(n).clone();
        let (Some(w), Some(y)) = (node.operand(1), node.result(0)) else { return Ok(None) };
        let name = graph.value(y).name.clone();
        let Some(taps) = self.taps(graph, n, w)? else { return Ok(None) };
        let mut frames = Vec::new();
        for left in 0..self.volume.left {
            let read: Vec<(usize, usize)> =
                (0..self.volume.taps).filter_map(|tap| Some((tap, self.volume.frame(left, tap)?))).collect();
            let mut sum = self.sum.as_ref().and_then(|sum| sum.get(left).copied());
            for (at, &(tap, frame)) in read.iter().enumerate() {
                let (Some(&x), Some(&weights)) = (self.x.get(frame), taps.get(tap)) else { return Ok(None) };
                let (is_first, is_last) = (at == 0, at + 1 == read.len());
                let bias = node.operand(2).filter(|_| is_first);
                let operands = [Some(x), Some(weights), bias, sum];
                let wide = operands.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                let what = if is_last { format!("{name}.{left}") } else { format!("{name}.{left}.{tap}") };
                sum = Some(self.convolve(graph, n, &operands[..wide], is_last, &what)?);
            }
            let Some(frame) = sum.filter(|_| !read.is_empty()) else { return Ok(None) };
            frames.push(frame);
        }
        Ok(Some(frames))
    }

    /// The weights of each tap.
    fn taps(&self, graph: &mut Graph, n: NodeId, w: ValueId) -> Result<Option<Vec<ValueId>>, DuplicateName> {
        let layout = graph.value(w).layout.clone();
        let name = graph.value(w).name.clone();
        let Some(whole) = constant_behind_moves(graph, w).filter(|whole| whole.pending.is_none()) else {
            return Ok(None);
        };
        let filters = whole.dims.first().and_then(|&m| usize::try_from(m).ok()).unwrap_or(0) / self.volume.taps;
        let mut taps = Vec::new();
        for tap in 0..self.volume.taps {
            let places = (tap * filters..(tap + 1) * filters).map(Some).collect();
            let Some(own) = Picked::constant(whole.clone(), 0, places) else { return Ok(None) };
            let mut make = Builder::at(graph, n);
            let plain = make.constant(&format!("{name}.tap.{tap}.plain"), own)?;
            taps.push(make.moved(plain, &format!("{name}.tap.{tap}"), layout.clone())?);
        }
        Ok(Some(taps))
    }

    fn convolve(
        &self,
        graph: &mut Graph,
        n: NodeId,
        operands: &[Option<ValueId>],
        is_last: bool,
        what: &str,
    ) -> Result<ValueId, DuplicateName> {
        let told = self.attrs.iter().filter(|(name, _)| is_last || !ACTIVATION.contains(&name.as_str()));
        let told: Vec<(String, Attr)> = told.map(|(name, attr)| (name.clone(), attr.clone())).collect();
        let mut layouts = self.layouts.clone();
        layouts.ins.resize(operands.len(), None::<Layout>);
        let mut make = Builder::at(graph, n);
        let conv = make.op_of(convolution(), 1, operands.iter().copied()).attrs(told);
        conv.form(Form::Kernel(Box::new(layouts))).result(what, Type::tensor(DType::F32, one_of(&self.result)))
    }
}
