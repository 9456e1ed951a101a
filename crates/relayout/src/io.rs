//! Inputs that the caller feeds, and outputs that the caller takes, in another order than the model has them.
//!
//! An end is spelled `NAME:FROM->TO`. `FROM` has one letter for each axis of the model, in the model's order. `TO` says in the
//! same letters how the file will take or give it. The metadata of a file records which ends were changed, see [`IoRecord`].

use relayout_ir::graph::{Graph, Op, ValueId};
use relayout_ir::layout::{Factor, Layout, LayoutNames};
use relayout_onnx::export::{Exported, set_property};
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::{GraphProto, ValueInfoProto, type_proto};
use relayout_passes::decide::{Ends, MovedEnd};
use relayout_target_api::{MoveQuery, Target};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Key of the metadata that lists the ends of a model that are stored otherwise than in the model it was made from: a JSON
/// array of [`IoRecord`]s.
pub const IO_KEY: &str = "relayout.io";

/// Which side of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// What the caller feeds.
    Input,
    /// What the caller gets.
    Output,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Input => "input",
            End::Output => "output",
        })
    }
}

/// How one input or output is to be stored.
///
/// ```
/// use relayout::IoLayout;
/// let end: IoLayout = "image:0:NCHW->NHWC".parse().unwrap();
/// assert_eq!((end.name(), end.from(), end.to()), ("image:0", "NCHW", "NHWC"));
/// assert!("image:NCHW->NHWD".parse::<IoLayout>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoLayout {
    name: String,
    from: String,
    to: String,
    names: LayoutNames,
    layout: Layout,
}

impl IoLayout {
    /// The end `name`, whose axes the model has as `from` says (a letter each), stored as `to`.
    ///
    /// # Errors
    /// [`IoError::Malformed`].
    pub fn new(name: &str, from: &str, to: &str) -> Result<IoLayout, IoError> {
        let malformed = |why: String| IoError::Malformed { text: format!("{name}:{from}->{to}"), why };
        if name.is_empty() {
            return Err(malformed("the name is missing".to_owned()));
        }
        let names = LayoutNames::custom(from).filter(|_| !from.is_empty());
        let names = names.ok_or_else(|| malformed(format!("`{from}` is not one letter for each axis of the model")))?;
        let layout = Layout::parse_with(to, &names).map_err(|e| malformed(e.to_string()))?;
        if layout.rank() != from.len() {
            return Err(malformed(format!("`{to}` does not have the axes of `{from}`")));
        }
        Ok(IoLayout { name: name.to_owned(), from: from.to_owned(), to: to.to_owned(), names, layout })
    }

    /// ONNX name of the input or output.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Letters of the axes that the model has, in its order.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// How the file stores them.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// The layout, over the axes of the model.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

impl FromStr for IoLayout {
    type Err = IoError;

    /// Reads `NAME:FROM->TO`; the name may have colons.
    fn from_str(text: &str) -> Result<IoLayout, IoError> {
        let parts = text.rsplit_once("->").and_then(|(end, to)| Some((end.rsplit_once(':')?, to)));
        let Some(((name, from), to)) = parts else {
            let why = "write NAME:FROM->TO, as in x:NCHW->NHWC".to_owned();
            return Err(IoError::Malformed { text: text.to_owned(), why });
        };
        IoLayout::new(name, from.trim(), to.trim())
    }
}

impl fmt::Display for IoLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}->{}", self.name, self.from, self.to)
    }
}

/// An input or output that a file stores otherwise than the model that it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IoRecord {
    /// Which side.
    pub end: End,
    /// ONNX name.
    pub name: String,
    /// Letters of the axes of the original, in its order.
    pub from: String,
    /// The layout in these letters.
    pub to: String,
    /// Whether the order was free, and the optimizer chose this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
}

impl IoRecord {
    /// The layout, over the axes of the original.
    ///
    /// # Errors
    /// [`IoError::Malformed`].
    pub fn layout(&self) -> Result<Layout, IoError> {
        Ok(IoLayout::new(&self.name, &self.from, &self.to)?.layout)
    }

    /// The records in the metadata of a model.
    ///
    /// # Errors
    /// [`IoError::Metadata`].
    pub fn parse_all(text: &str) -> Result<Vec<IoRecord>, IoError> {
        let metadata = |why: String| IoError::Metadata { why };
        let records: Vec<IoRecord> = serde_json::from_str(text).map_err(|e| metadata(e.to_string()))?;
        for record in &records {
            record.layout().map_err(|e| metadata(e.to_string()))?;
        }
        Ok(records)
    }
}

/// What is wrong with the layout of an input or output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// The text is not `NAME:FROM->TO`.
    #[error("`{text}` is not a layout of an input or output: {why}")]
    Malformed {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// An end has two layouts.
    #[error("{end} `{name}` is given two layouts; give it one")]
    Twice {
        /// Which side.
        end: End,
        /// Its name.
        name: String,
    },
    /// No such end.
    #[error("the model has no {end} `{name}`; it has {known}")]
    Unknown {
        /// Which side.
        end: End,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// An end that can't have a layout, or not this one.
    #[error("{end} `{name}` {why}")]
    Refused {
        /// Which side.
        end: End,
        /// Its name.
        name: String,
        /// What stands in the way, and what would help.
        why: String,
    },
    /// The metadata of a file can't be read.
    #[error("the metadata `relayout.io` can't be read: {why}; optimize the model that the file was made from")]
    Metadata {
        /// What is wrong.
        why: String,
    },
}

/// What the options ask of the ends of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes<'o> {
    pub(crate) inputs: &'o [IoLayout],
    pub(crate) outputs: &'o [IoLayout],
    pub(crate) free: bool,
}

impl<'o> Wishes<'o> {
    /// Whether nothing is asked for.
    pub(crate) fn is_empty(self) -> bool {
        !self.free && self.named().next().is_none()
    }

    /// Every named end, inputs first.
    pub(crate) fn named(self) -> impl Iterator<Item = (End, &'o IoLayout)> {
        let inputs = self.inputs.iter().map(|wish| (End::Input, wish));
        inputs.chain(self.outputs.iter().map(|wish| (End::Output, wish)))
    }

    /// The contract of a graph whose types are inferred. `records` has what was done to its ends before.
    pub(crate) fn resolve(self, graph: &Graph, target: &dyn Target, records: &[IoRecord]) -> Result<Ends, IoError> {
        let mut ends = Ends::default();
        ends.free = self.free;
        for (end, wish) in self.named() {
            let refuse = |why: String| IoError::Refused { end, name: wish.name.clone(), why };
            let v = find(graph, end, &wish.name)?;
            movable(graph, end, v).map_err(refuse)?;
            let layout = if met(records, end, wish)? {
                Layout::row_major(wish.from.len())
            } else {
                fitting(graph, target, end, v, wish).map_err(refuse)?;
                wish.layout.clone()
            };
            let side = match end {
                End::Input => &mut ends.inputs,
                End::Output => &mut ends.outputs,
            };
            if side.insert(wish.name.clone(), layout).is_some() {
                return Err(IoError::Twice { end, name: wish.name.clone() });
            }
        }
        Ok(ends)
    }

    /// The letters of an end, if it is named.
    fn names(self, end: End, name: &str) -> Option<&'o LayoutNames> {
        self.named().find(|(e, wish)| *e == end && wish.name == name).map(|(_, wish)| &wish.names)
    }

    /// What is recorded of the ends once those in `moved` have been: what was done before and what was done now.
    pub(crate) fn records(self, before: &[IoRecord], moved: &[MovedEnd]) -> Result<Vec<IoRecord>, IoError> {
        let mut records = before.to_vec();
        for end in moved {
            let side = if end.output { End::Output } else { End::Input };
            let old = records.iter().position(|r| r.end == side && r.name == end.name);
            let (names, layout) = match old.and_then(|i| records.get(i)) {
                Some(old) => {
                    let names = LayoutNames::custom(&old.from).unwrap_or_else(|| names_of(&end.layout));
                    (names, old.then(&end.layout)?)
                }
                None => {
                    (self.names(side, &end.name).cloned().unwrap_or_else(|| names_of(&end.layout)), end.layout.clone())
                }
            };
            let from = Layout::row_major(layout.rank()).display(&names).to_string();
            let to = layout.display(&names).to_string();
            let record = IoRecord { end: side, name: end.name.clone(), from, to, chosen: end.chosen };
            match old {
                Some(i) if layout.is_row_major() => drop(records.remove(i)),
                Some(i) => records[i] = record,
                None => records.push(record),
            }
        }
        Ok(records)
    }
}

impl IoRecord {
    /// The layout over the axes of the original of an end that has this record, once it is stored as `layout` says of its axes.
    fn then(&self, layout: &Layout) -> Result<Layout, IoError> {
        let metadata = |why: String| IoError::Metadata { why };
        let stored = self.layout()?;
        let order = stored.as_permutation().filter(|order| order.len() == layout.rank());
        let order =
            order.ok_or_else(|| metadata(format!("`{}` is not an order of the axes of `{}`", self.to, self.name)))?;
        let factors = layout.factors().iter().filter_map(|f| {
            let axis = order.get(usize::from(f.axis)).and_then(|&axis| u8::try_from(axis).ok())?;
            Some(Factor { axis, ..*f })
        });
        Layout::new(layout.rank(), factors, []).map_err(|e| metadata(e.to_string()))
    }
}

/// Letters for axes that nobody named: neutral ones.
fn names_of(layout: &Layout) -> LayoutNames {
    let letters: String = ('a'..='z').take(layout.rank()).collect();
    LayoutNames::custom(&letters).unwrap_or_else(|| LayoutNames::default_for(layout.rank()))
}

/// Whether a file has this end in the wanted layout already.
pub(crate) fn met(records: &[IoRecord], end: End, wish: &IoLayout) -> Result<bool, IoError> {
    let Some(record) = records.iter().find(|r| r.end == end && r.name == wish.name) else { return Ok(false) };
    if record.from.eq_ignore_ascii_case(&wish.from) && record.layout()? == wish.layout {
        return Ok(true);
    }
    if record.to.eq_ignore_ascii_case(&wish.from) {
        return Ok(false);
    }
    let (from, to) = (&record.from, &record.to);
    let why = format!("is stored as {to} in this file, which was made of one that had {from}: its axes are {to} now");
    Err(IoError::Refused { end, name: wish.name.clone(), why })
}

fn find(graph: &Graph, end: End, name: &str) -> Result<ValueId, IoError> {
    let values = match end {
        End::Input => graph.inputs(),
        End::Output => graph.outputs(),
    };
    values.iter().copied().find(|&v| graph.value(v).name == name).ok_or_else(|| {
        let known: Vec<String> = values.iter().map(|&v| format!("`{}`", graph.value(v).name)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        IoError::Unknown { end, name: name.to_owned(), known }
    })
}

/// Whether an end can have a layout of its own; why not.
fn movable(graph: &Graph, end: End, v: ValueId) -> Result<(), String> {
    let value = graph.value(v);
    if value.ty.as_tensor().is_none() {
        return Err(format!("is not a tensor but {}; only tensors have layouts", value.ty));
    }
    let op = &graph.node(value.producer().0).op;
    if matches!(op, Op::Input { default: Some(_) }) && end == End::Input {
        return Err("has a default in the file, which the caller may override; leave it as it is".to_owned());
    }
    if matches!(op, Op::Input { .. }) && graph.is_output(v) {
        return Err("is an input and an output of the model at once; leave it as it is".to_owned());
    }
    Ok(())
}

/// Whether an end fits the layout, and the target can move it there.
fn fitting(graph: &Graph, target: &dyn Target, end: End, v: ValueId, wish: &IoLayout) -> Result<(), String> {
    let value = graph.value(v);
    let layout = &wish.layout;
    let Some(shape) = value.ty.shape() else {
        return Err("has an unknown number of axes; declare its shape in the model".to_owned());
    };
    if shape.len() != layout.rank() {
        return Err(format!("is {}, of {} axes, but `{wish}` speaks of {}", value.ty, shape.len(), layout.rank()));
    }
    for (axis, extent) in shape.iter().enumerate() {
        let block = layout.block_of(axis);
        let whole = extent.as_const().and_then(|n| u64::try_from(n).ok()).is_some_and(|n| n.is_multiple_of(block));
        if layout.slot_map(axis).is_some() || (block > 1 && !whole) {
            return Err(format!(
                "is {}: axis {axis} is not a whole number of blocks of {block}, and padding can't be fed",
                value.ty
            ));
        }
    }
    // Extents that are not known have no say in whether a move can be said.
    let extents: Vec<u64> =
        shape.iter().map(|d| d.as_const().and_then(|n| u64::try_from(n).ok()).unwrap_or(1)).collect();
    let plain = Layout::row_major(shape.len());
    let (from, to) = if end == End::Input { (layout, &plain) } else { (&plain, layout) };
    let query = MoveQuery::permute(from, to, &extents).dtype(value.ty.dtype()).bytes(1);
    if layout.is_row_major() || target.move_cost(&query).is_some() {
        return Ok(());
    }
    Err(format!(
        "can't be moved from {from} to {to} in the operators of target `{}`; give it an order of whole axes",
        target.name()
    ))
}

/// A property in the metadata of a file.
pub(crate) fn property<'f>(file: &'f ModelFile, key: &str) -> Option<&'f str> {
    file.proto.metadata_props.iter().find(|p| p.key.as_deref() == Some(key))?.value.as_deref()
}

/// What a file says was done to its ends.
pub(crate) fn records_of(file: &ModelFile) -> Result<Vec<IoRecord>, IoError> {
    property(file, IO_KEY).map_or_else(|| Ok(Vec::new()), IoRecord::parse_all)
}

/// Writes into a result what became of its ends: denotations of the dims that somebody named, and the records.
pub(crate) fn declare(
    exported: &mut Exported,
    wishes: Wishes<'_>,
    moved: &[MovedEnd],
    records: &[IoRecord],
    metadata: &[(String, String)],
) {
    if moved.is_empty() {
        return;
    }
    for end in moved {
        let side = if end.output { End::Output } else { End::Input };
        let named = wishes.named().find(|(e, wish)| *e == side && wish.name == end.name);
        if let (Some((_, wish)), Some(graph)) = (named, exported.proto.graph.as_mut()) {
            denote(graph, side, wish);
        }
    }
    if !exported.changed {
        exported.changed = true;
        for (key, value) in metadata {
            set_property(&mut exported.proto.metadata_props, key, value);
        }
    }
    let props = &mut exported.proto.metadata_props;
    if records.is_empty() {
        props.retain(|p| p.key.as_deref() != Some(IO_KEY));
    } else if let Ok(text) = serde_json::to_string(records) {
        set_property(props, IO_KEY, &text);
    }
}

/// Denotations of the dims of an end, where the standard has them for its letters and the file has none.
fn denote(graph: &mut GraphProto, end: End, wish: &IoLayout) {
    let of = |letter: char| match letter.to_ascii_uppercase() {
        'N' => Some("DATA_BATCH"),
        'C' => Some("DATA_CHANNEL"),
        'D' | 'H' | 'W' => Some("DATA_FEATURE"),
        _ => None,
    };
    let denotations: Option<Vec<&str>> = wish.from.chars().map(of).collect();
    let (Some(denotations), Some(order)) = (denotations, wish.layout.as_permutation()) else { return };
    // Letters of an image; two axes that happen to be called H and W are none.
    if !denotations.contains(&"DATA_BATCH") || !denotations.contains(&"DATA_CHANNEL") {
        return;
    }
    let infos = match end {
        End::Input => &mut graph.input,
        End::Output => &mut graph.output,
    };
    let Some(dims) = infos.iter_mut().find(|info| info.name.as_deref() == Some(&wish.name)).and_then(dims) else {
        return;
    };
    if dims.len() != order.len() || dims.iter().any(|d| d.denotation.as_deref().is_some_and(|d| !d.is_empty())) {
        return;
    }
    for (dim, axis) in dims.iter_mut().zip(order) {
        dim.denotation = denotations.get(axis).map(|&d| d.to_owned());
    }
}

fn dims(info: &mut ValueInfoProto) -> Option<&mut Vec<relayout_onnx::proto::tensor_shape_proto::Dimension>> {
    match info.r#type.as_mut()?.value.as_mut()? {
        type_proto::Value::TensorType(tensor) => Some(&mut tensor.shape.as_mut()?.dim),
        _ => None,
    }
}
