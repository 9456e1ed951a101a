//! Sizes of the dims that the inputs of a model leave open: which there are, how they are called, and what the nodes say of them.
//!
//! A file that says `sequence` may have weights that only fit one sequence. Such sizes are found from the nodes: operands of a product,
//! channels of a convolution, states of a recurrent network, targets of a Reshape, and what has to be 1 to be squeezed. Where nothing is
//! said a batch has the size 1 and any other dim 64.
//!
//! Absent: what depends on the numbers in a tensor, and extents that inference can't express in those of the inputs.

mod equations;
mod fix;
mod ranges;
mod solve;

use crate::error::Error;
use crate::model::Model;
use crate::options::Options;
use crate::source::Source;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, ValueId};
use relayout_target_api::hints::{Size, USUAL};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A dim of an input that has no number in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenDim {
    /// How callers name it: by its symbol, or as `INPUT.AXIS` where it has none.
    pub name: String,
    /// The sizes that it may have as far as the nodes say, the likeliest first. If they say nothing, 1 for a batch, else 64.
    pub sizes: Vec<i64>,
    /// Whether it can have no other size.
    pub only: bool,
    /// The node that asks for this size; `None` if none does, and the size is a guess.
    pub why: Option<String>,
}

impl OpenDim {
    /// The size that is taken where a caller says none.
    pub fn size(&self) -> i64 {
        self.sizes.first().copied().unwrap_or(USUAL)
    }
}

impl Model {
    /// The open dims of the inputs, in their order, and what the nodes say of their sizes when those of `given` have these. Names in
    /// `given` that are none of an open dim are not looked at.
    pub fn open_dims(&self, given: &BTreeMap<String, i64>) -> Vec<OpenDim> {
        let graph = &self.ir().graph;
        if axes(graph).next().is_none() { Vec::new() } else { open_dims(&self.typed(), given) }
    }

    /// What whole numbers an input consists of, by the name of the input, if it holds indices into an axis or lengths of one, where the
    /// inputs have these shapes: the lowest and the highest.
    pub fn whole_numbers(&self, shapes: &BTreeMap<String, Vec<i64>>) -> BTreeMap<String, (i64, i64)> {
        let graph = self.typed();
        let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
        for (v, axis, dim) in axes(&graph) {
            let size = shapes.get(&graph.value(v).name).and_then(|shape| shape.get(axis));
            sizes.extend(symbol(dim).zip(size.copied()));
        }
        let mut ranges: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for reach in ranges::reaches(&graph) {
            let Some(extent) = reach.extent.eval(&|name| sizes.get(name).copied()) else { continue };
            let high = extent.saturating_sub(1).saturating_add(reach.low);
            let range = ranges.entry(reach.input).or_insert((reach.low, high));
            *range = (range.0.max(reach.low), range.1.min(high));
        }
        ranges.retain(|_, (low, high)| low <= high);
        ranges
    }

    /// Whether an input has an open dim of this name: its symbol, or `INPUT.AXIS`.
    pub fn has_open_dim(&self, name: &str) -> bool {
        self.check_dims([&name.to_owned()]).is_ok()
    }

    /// That callers name only dims that are open.
    pub(crate) fn check_dims<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Result<(), Error> {
        check_names(&self.ir().graph, names)
    }

    fn typed(&self) -> Graph {
        Source::unchecked(self).map_or_else(|_| self.ir().graph.clone(), |source| source.typed())
    }
}

/// That each name is that of an open dim of an input.
pub(crate) fn check_names<'n>(graph: &Graph, names: impl IntoIterator<Item = &'n String>) -> Result<(), Error> {
    let mut known: Vec<String> = Vec::new();
    for (v, axis, dim) in axes(graph) {
        let place = place_of(graph, v, axis);
        known.extend([name_of(&place, dim), place]);
    }
    for name in names {
        if !known.contains(name) {
            let mut listed: Vec<String> = Vec::new();
            for (v, axis, dim) in axes(graph) {
                let name = name_of(&place_of(graph, v, axis), dim);
                if !listed.contains(&name) {
                    listed.push(name);
                }
            }
            return Err(Error::UnknownDim { name: name.clone(), known: all(&listed) });
        }
    }
    Ok(())
}

fn all(names: &[String]) -> String {
    if names.is_empty() {
        return "the inputs have no open dims".to_owned();
    }
    format!("the open dims are {}", names.join(", "))
}

/// Where the size of an open dim comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SizeSource {
    /// The caller said it.
    Given,
    /// A node of the model asks for it.
    Node,
    /// Nothing says it.
    Assumed,
}

/// The size that an open dim was priced at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SizeRecord {
    /// How callers name the dim.
    pub name: String,
    /// Its size; of a range the size in its middle.
    pub size: i64,
    /// Where the size comes from.
    pub source: SizeSource,
    /// The node that asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Options with the sizes that the nodes of a model ask for, and where all sizes come from.
pub(crate) struct Sized {
    pub(crate) options: Options,
    pub(crate) records: Vec<SizeRecord>,
}

impl Sized {
    /// Looks at a model.
    ///
    /// # Errors
    /// [`Error::UnknownDim`] where the options name a dim that no input leaves open.
    pub(crate) fn new(model: &Model, options: &Options) -> Result<Sized, Error> {
        model.check_dims(options.dims.keys())?;
        let mut options = options.clone();
        let given = options.dims.iter().map(|(name, size)| (name.clone(), size.typical())).collect();
        let mut records: Vec<SizeRecord> = options.dims.iter().map(given_record).collect();
        for dim in model.open_dims(&given) {
            let size = dim.size();
            let source = if dim.why.is_some() { SizeSource::Node } else { SizeSource::Assumed };
            if dim.why.is_some() {
                let only = if dim.only { Size::range(size, size) } else { None };
                options.dims.insert(dim.name.clone(), only.unwrap_or(Size::of(size)));
            }
            records.push(SizeRecord { name: dim.name, size, source, why: dim.why });
        }
        Ok(Sized { options, records })
    }
}

fn given_record((name, size): (&String, &Size)) -> SizeRecord {
    SizeRecord { name: name.clone(), size: size.typical(), source: SizeSource::Given, why: None }
}

/// The open dims of a graph whose types are inferred.
pub(crate) fn open_dims(graph: &Graph, given: &BTreeMap<String, i64>) -> Vec<OpenDim> {
    // By symbol: the name for callers, and whether it leads inputs only.
    let mut names: Vec<(String, String)> = Vec::new();
    let (mut known, mut usual) = (BTreeMap::new(), BTreeMap::new());
    for (v, axis, dim) in axes(graph) {
        let (Some(symbol), place) = (symbol(dim), place_of(graph, v, axis)) else { continue };
        let name = name_of(&place, dim);
        if let Some(&size) = given.get(&name).or_else(|| given.get(&place)) {
            known.insert(symbol.clone(), size);
        }
        let size = if axis == 0 { 1 } else { USUAL };
        usual.entry(symbol.clone()).and_modify(|before: &mut i64| *before = size.max(*before)).or_insert(size);
        if names.iter().all(|(before, _)| *before != symbol) {
            names.push((symbol, name));
        }
    }
    usual.retain(|symbol, _| !known.contains_key(symbol));
    let solved = solve::solve(&equations::equations(graph), &usual, &known);
    let one = |(symbol, name): (String, String)| {
        let usual = *usual.get(&symbol)?;
        Some(match solved.get(&symbol) {
            Some(found) => OpenDim { name, sizes: found.sizes.clone(), only: found.only, why: Some(found.why.clone()) },
            None => OpenDim { name, sizes: vec![usual], only: false, why: None },
        })
    };
    names.into_iter().filter_map(one).collect()
}

/// The axes of inputs that have no number.
fn axes(graph: &Graph) -> impl Iterator<Item = (ValueId, usize, &Dim)> {
    let fed = graph.inputs().iter();
    let axes = fed.flat_map(move |&v| {
        graph.value(v).ty.shape().unwrap_or_default().iter().enumerate().map(move |(axis, dim)| (v, axis, dim))
    });
    axes.filter(|(_, _, dim)| !dim.is_const())
}

/// What a graph calls the extent of an input.
fn symbol(dim: &Dim) -> Option<String> {
    dim.symbols().into_iter().next()
}

fn place_of(graph: &Graph, v: ValueId, axis: usize) -> String {
    format!("{}.{axis}", graph.value(v).name)
}

fn name_of(place: &str, dim: &Dim) -> String {
    dim.as_symbol().map_or_else(|| place.to_owned(), str::to_owned)
}
