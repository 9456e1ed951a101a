//! What a model file says of the inputs that its nodes can take: sizes of open dims, and what whole numbers are.

use crate::ModelSource;
use crate::inputs::{Range, Shaped};
use relayout::sizes::OpenDim;
use std::collections::BTreeMap;

/// What is known of the inputs of a model.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// `None` if the file can't be read, which only costs knowledge.
    model: Option<relayout::Model>,
    dims: Vec<OpenDim>,
}

impl Known {
    /// Of a file, where callers say these sizes.
    pub(crate) fn look_up(source: ModelSource<'_>, given: &BTreeMap<String, i64>) -> Known {
        let model = source.read();
        let mut dims = model.as_ref().map(|model| model.open_dims(given)).unwrap_or_default();
        dims.retain(|dim| dim.why.is_some());
        Known { model, dims }
    }

    /// The file.
    pub(crate) fn model(&self) -> Option<&relayout::Model> {
        self.model.as_ref()
    }

    /// Sizes that the nodes ask for, by the names that callers use, the likeliest ones first. The last is none at all.
    pub(crate) fn sizes(&self) -> Vec<BTreeMap<String, i64>> {
        let choices = self.dims.iter().map(|dim| dim.sizes.len()).max().unwrap_or(0);
        let of = |dim: &OpenDim, choice: usize| dim.sizes.get(choice).or(dim.sizes.last()).copied();
        let choice = |choice| self.dims.iter().filter_map(|dim| Some((dim.name.clone(), of(dim, choice)?))).collect();
        (0..choices).map(choice).chain([BTreeMap::new()]).collect()
    }

    /// For inputs of these shapes, what those hold that are indices or lengths.
    pub(crate) fn ranges(&self, shapes: &[Shaped]) -> Vec<Option<Range>> {
        // Without whole numbers there is nothing to look for.
        if !shapes.iter().any(|(_, element, _)| element.is_wide()) {
            return vec![None; shapes.len()];
        }
        let by_name = shapes.iter().map(|(port, _, shape)| (port.name.clone(), shape.clone())).collect();
        let found = self.model.as_ref().map(|model| model.whole_numbers(&by_name)).unwrap_or_default();
        shapes.iter().map(|(port, ..)| found.get(&port.name).map(|&(low, high)| Range::new(low, high))).collect()
    }
}
