//! Models whose inputs and outputs are stored otherwise than in the original, as their metadata `relayout.io` says: what goes in
//! and what comes out is put into the order of the original, so that such a model can be compared with it.

use super::model::{Dim, Model, Port};
use super::tensor::element_count;
use super::{Tensor, VerifyError};
use relayout::io::{End, IO_KEY, IoRecord};
use relayout_ir::layout::Layout;
use relayout_ir::storage::{StorageRule, storage_shape};

/// The ends of one model that are stored otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    label: String,
    records: Vec<(IoRecord, Layout)>,
}

impl Ends {
    /// Reads the metadata of a model.
    pub(super) fn of(model: &Model) -> Result<Ends, VerifyError> {
        let label = model.label.clone();
        let failed = |reason: String| VerifyError::Io { model: label.clone(), reason };
        let Some(text) = model.property(IO_KEY)? else { return Ok(Ends::default()) };
        let records = IoRecord::parse_all(&text).map_err(|e| failed(e.to_string()))?;
        let with_layout = |record: IoRecord| Ok((record.layout()?, record)).map(|(layout, record)| (record, layout));
        let records: Result<_, relayout::io::IoError> = records.into_iter().map(with_layout).collect();
        Ok(Ends { records: records.map_err(|e| failed(e.to_string()))?, label })
    }

    fn layout(&self, end: End, name: &str) -> Option<&Layout> {
        self.records.iter().find(|(record, _)| record.end == end && record.name == name).map(|(_, layout)| layout)
    }

    /// The ports of one side as the original declares them.
    pub(super) fn original(&self, end: End, ports: &[Port]) -> Vec<Port> {
        let of = |port: &Port| match self.layout(end, &port.name) {
            Some(layout) => port.with_dims(|dims| logical_dims(dims, layout)),
            None => port.clone(),
        };
        ports.iter().map(of).collect()
    }

    /// Tensors of this model, in the order of the original.
    pub(super) fn to_original(&self, end: End, tensors: Vec<Tensor>) -> Result<Vec<Tensor>, VerifyError> {
        let of = |tensor: Tensor| match self.layout(end, tensor.name()) {
            Some(layout) => unstored(&tensor, layout).ok_or_else(|| self.misfit(&tensor, layout)),
            None => Ok(tensor),
        };
        tensors.into_iter().map(of).collect()
    }

    /// Tensors in the order of the original, as this model takes them. `ports` are its inputs.
    pub(super) fn feeds(&self, ports: &[Port], tensors: &[Tensor]) -> Result<Vec<Tensor>, VerifyError> {
        let of = |tensor: &Tensor| {
            let Some(layout) = self.layout(End::Input, tensor.name()) else { return Ok(tensor.clone()) };
            let declared = ports.iter().find(|port| port.name == tensor.name()).and_then(|port| port.tensor.as_ref());
            let rule = rule(declared.map_or(0, |(_, dims)| dims.len()), layout);
            stored(tensor, layout, rule).ok_or_else(|| self.misfit(tensor, layout))
        };
        tensors.iter().map(of).collect()
    }

    fn misfit(&self, tensor: &Tensor, layout: &Layout) -> VerifyError {
        let reason = format!("`{}` of shape {:?} is not stored as {layout}", tensor.name(), tensor.shape());
        VerifyError::Io { model: self.label.clone(), reason }
    }
}

/// How a value of this many declared dims is declared.
fn rule(declared: usize, layout: &Layout) -> StorageRule {
    if declared == layout.factors().len() { StorageRule::PerDigit } else { StorageRule::PerAxis }
}

/// Logical dims of a declaration; `None` if it is not one of this layout.
fn logical_dims(dims: &[Dim], layout: &Layout) -> Option<Vec<Dim>> {
    if layout.as_permutation().is_none() && rule(dims.len(), layout) == StorageRule::PerAxis {
        // Nothing is padded, so the declaration is the shape.
        return (dims.len() == layout.rank()).then(|| dims.to_vec());
    }
    let digits = |axis: usize| {
        let digits = layout.factors().iter().zip(dims).filter(move |(f, _)| usize::from(f.axis) == axis);
        digits.map(|(_, dim)| dim).collect::<Vec<_>>()
    };
    let of = |axis: usize| match digits(axis)[..] {
        [dim] => Some(dim.clone()),
        ref several => {
            let extent = |dim: &&Dim| if let Dim::Fixed(n) = dim { Some(*n) } else { None };
            several.iter().map(extent).try_fold(1i64, |all, n| all.checked_mul(n?)).map(Dim::Fixed)
        }
    };
    (dims.len() == layout.factors().len()).then(|| (0..layout.rank()).map(of).collect::<Option<_>>())?
}

/// The tensor in the order of the original.
fn unstored(tensor: &Tensor, layout: &Layout) -> Option<Tensor> {
    let dims: Vec<Dim> = tensor.shape().iter().map(|&n| Dim::Fixed(n)).collect();
    let fixed = |dim: Dim| if let Dim::Fixed(n) = dim { Some(n) } else { None };
    let shape: Vec<i64> = logical_dims(&dims, layout)?.into_iter().map(fixed).collect::<Option<_>>()?;
    let count = element_count(&shape)?;
    let bound = layout.bind(&shape).ok()?;
    let plain = Layout::row_major(shape.len()).bind(&shape).ok()?;
    let place = |i: usize| usize::try_from(bound.offset(&plain.coordinate(i as u64)?)?).ok();
    tensor.picked(shape, (0..count).map(place))
}

/// The tensor as a model stores it that declares its values by this rule.
fn stored(tensor: &Tensor, layout: &Layout, rule: StorageRule) -> Option<Tensor> {
    let bound = layout.bind(tensor.shape()).ok()?;
    let plain = Layout::row_major(layout.rank()).bind(tensor.shape()).ok()?;
    let dims: Vec<relayout_ir::dim::Dim> = tensor.shape().iter().map(|&n| n.into()).collect();
    let shape: Vec<i64> =
        storage_shape(&dims, layout, rule)?.iter().map(relayout_ir::dim::Dim::as_const).collect::<Option<_>>()?;
    let place = |i: u64| usize::try_from(plain.offset(&bound.coordinate(i)?)?).ok();
    tensor.picked(shape, (0..bound.storage_elems()).map(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Data;

    fn counted(shape: &[i64]) -> Tensor {
        let count: i64 = shape.iter().product();
        Tensor::new("x", shape, Data::I64((0..count).collect())).unwrap()
    }

    #[test]
    fn a_tensor_stored_otherwise_reads_as_it_was() {
        for (text, shape) in [("NHWC", [2, 4, 3, 5]), ("CHWN", [2, 4, 3, 5]), ("NCHW2c", [1, 4, 3, 2])] {
            let layout: Layout = text.parse().unwrap();
            let x = counted(&shape);
            for rule in [StorageRule::PerDigit, StorageRule::PerAxis] {
                let there = stored(&x, &layout, rule).unwrap();
                assert_ne!(there, x, "{text}");
                assert_eq!(unstored(&there, &layout).unwrap(), x, "{text} {rule:?}");
            }
        }
    }

    #[test]
    fn a_channels_last_image_has_its_channels_last() {
        let there = stored(&counted(&[1, 2, 1, 3]), &"NHWC".parse().unwrap(), StorageRule::PerDigit).unwrap();
        assert_eq!((there.shape(), there.data()), (&[1, 1, 3, 2][..], &Data::I64(vec![0, 3, 1, 4, 2, 5])));
    }

    #[test]
    fn a_tensor_of_another_rank_is_refused() {
        let layout: Layout = "NHWC".parse().unwrap();
        assert!(unstored(&counted(&[2, 3]), &layout).is_none());
        assert!(stored(&counted(&[2, 3]), &layout, StorageRule::PerDigit).is_none());
    }
}
