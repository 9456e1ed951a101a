//! Where each tensor's data goes: into the model, into a data file beside it, or nowhere because a reference stays.
//!
//! - Data in the model stays in the model, and a deferred payload joins it, while the model stays under the limit.
//! - Over the limit every payload of at least [`SMALL`] bytes goes to the data file.
//! - A reference to external data stays if the output is in the input's folder or the data is missing; else, and if the
//!   caller gave the data, it is copied to the data file. So is one whose file the output replaces, or whose file is the
//!   data file of an earlier output.
//! - A model that has external data gets its new payloads external too.
//! - A stream has no folder: external data goes into the model.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use relayout_fsio::FileTarget;
use rustc_hash::FxHashMap;

use super::options::WriteOptions;
use super::plan::{PROTOBUF_LIMIT, Part, Payload, Placement, Plan, Run};
use super::size::Sizer;
use crate::error::{Error, Result, TensorFault};
use crate::external::{Reference, TensorData, byte_length, is_external};
use crate::proto::{ModelProto, StringStringEntryProto, TensorProto};

/// Payloads under this many bytes are not worth a reference; they stay in the model.
const SMALL: u64 = 1024;

/// Data begins at multiples of this, so that a reader can map it.
const ALIGNMENT: u64 = 4096;

/// A deferred payload announces its size; beyond this (16 TiB) it is a mistake, and sums of sizes could overflow.
const LARGEST: u64 = 1 << 44;

/// The plan for a stream.
pub(super) fn plan_for_stream<'a>(model: &'a ModelProto, options: &WriteOptions<'a>) -> Result<(Plan<'a>, Sizer)> {
    let (plan, sizer) = plan_in_one(model, options)?;
    let bytes = sizer.total;
    if bytes > options.inline_limit.min(PROTOBUF_LIMIT) {
        return Err(Error::TooLarge { bytes, fix: "write to a file, so that weights can go to a data file beside it" });
    }
    Ok((plan, sizer))
}

/// The plan in which all data that is there goes into the model, however large that is.
pub(super) fn plan_in_one<'a>(model: &'a ModelProto, options: &WriteOptions<'a>) -> Result<(Plan<'a>, Sizer)> {
    let mut plan = Plan::default();
    for tensor in model.tensors() {
        if let State::Deferred(payload) | State::Elsewhere(payload) = survey(tensor, options, false)? {
            plan.place(tensor, Placement::Inline(payload));
        }
    }
    let sizer = Sizer::measure(model, &plan)?;
    Ok((plan, sizer))
}

/// The plan for a model in parts: data of at least `smallest` bytes is apart, each with a location of its own. Tensors that share
/// their bytes share a part.
pub(super) fn plan_for_parts<'a>(
    model: &'a ModelProto,
    smallest: u64,
    options: &WriteOptions<'a>,
) -> Result<(Plan<'a>, Sizer, Vec<Part<'a>>)> {
    let mut plan = Plan::default();
    let mut parts = Vec::new();
    let mut shared = FxHashMap::default();
    for tensor in model.tensors() {
        let (payload, in_place) = match survey(tensor, options, false)? {
            State::Typed | State::Reference => continue,
            State::Raw(bytes) => (Payload::Bytes(bytes), true),
            State::Deferred(payload) | State::Elsewhere(payload) => (payload, false),
        };
        if payload.len() >= smallest {
            let next = parts.len();
            let part = payload.key().map_or(next, |key| *shared.entry(key).or_insert(next));
            if part == next {
                parts.push((tensor, payload));
            }
            plan.place(tensor, Placement::External(vec![entry("location", part_location(part))]));
        } else if !in_place {
            plan.place(tensor, Placement::Inline(payload));
        }
    }
    let sizer = Sizer::measure(model, &plan)?;
    if sizer.total > PROTOBUF_LIMIT {
        return Err(Error::TooLarge { bytes: sizer.total, fix: "take data of fewer bytes apart" });
    }
    Ok((plan, sizer, parts))
}

/// The plan for a file.
pub(super) fn plan_for_file<'a>(
    model: &'a ModelProto,
    target: &FileTarget,
    options: &WriteOptions<'a>,
) -> Result<(Plan<'a>, Sizer)> {
    let survey = Survey::new(model, target, options)?;
    let levels = if survey.has_external { [Spill::New, Spill::All] } else { [Spill::Nothing, Spill::All] };
    let mut bytes = 0;
    for spill in levels {
        let plan = survey.plan(spill);
        let sizer = Sizer::measure(model, &plan)?;
        bytes = sizer.total;
        if bytes <= options.inline_limit || (spill == Spill::All && bytes <= PROTOBUF_LIMIT) {
            return Ok((plan, sizer));
        }
    }
    Err(Error::TooLarge { bytes, fix: "what is left besides raw tensor data cannot be moved to a data file" })
}

/// Which payloads go to the data file, besides external data that cannot stay where it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spill {
    Nothing,
    /// Deferred ones.
    New,
    /// Those in the model too.
    All,
}

/// Where a tensor's data is now.
enum State<'a> {
    /// In a typed field, or there is none.
    Typed,
    Raw(Bytes),
    Deferred(Payload<'a>),
    /// In another file, and present.
    Elsewhere(Payload<'a>),
    /// In another file and not to be had, or not to be touched.
    Reference,
}

/// The tensors of a model and what the plan depends on besides them.
struct Survey<'a, 'b> {
    tensors: Vec<(&'a TensorProto, State<'a>)>,
    options: &'b WriteOptions<'a>,
    target: &'b FileTarget,
    dangling: BTreeSet<PathBuf>,
    data_name: String,
    /// Data files of earlier outputs, which the new one makes superfluous.
    earlier: Vec<PathBuf>,
    /// Whether references are good as they are in the output's folder.
    stays: bool,
    has_external: bool,
}

impl<'a, 'b> Survey<'a, 'b> {
    fn new(model: &'a ModelProto, target: &'b FileTarget, options: &'b WriteOptions<'a>) -> Result<Self> {
        let input_dir = options.input.and_then(|input| input.dir()?.canonicalize().ok());
        let given = options.input.is_some_and(|input| input.external.is_given());
        let stays = !given && input_dir.is_none_or(|dir| dir == target.dir);
        let tensors = model.tensors().into_iter().map(|tensor| Ok((tensor, survey(tensor, options, stays)?)));
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let has_external = tensors.iter().any(|(_, state)| matches!(state, State::Elsewhere(_)));
        let dangling: BTreeSet<PathBuf> = tensors
            .iter()
            .filter(|(_, state)| matches!(state, State::Reference))
            .filter_map(|(tensor, _)| Some(normal(Reference::of(tensor).ok()?.location)))
            .collect();
        let mut names = data_names(target).into_iter().flatten();
        let data_name = names.find(|name| !dangling.contains(Path::new(name)));
        let data_name = data_name.ok_or_else(|| Error::OutputName { path: target.path.clone() })?;
        let earlier = earlier_data(target);
        Ok(Self { tensors, options, target, dangling, data_name, earlier, stays, has_external })
    }

    fn plan(&self, spill: Spill) -> Plan<'a> {
        let model = [self.target.path.clone()];
        let writes_data = self.tensors.iter().any(|(tensor, state)| {
            self.moved(tensor, state, spill, &model).is_some_and(|payload| payload.len() >= SMALL)
        });
        let all: Vec<PathBuf> = model.iter().chain(&self.earlier).cloned().collect();
        let replaced: &[PathBuf] = if writes_data { &all } else { &model };

        let (data_name, dangling) = (self.data_name.clone(), self.dangling.clone());
        let mut plan = Plan { data_name, dangling, ..Plan::default() };
        let mut end = 0u64;
        let mut shared = FxHashMap::default();
        for (tensor, state) in &self.tensors {
            let Some(payload) = self.moved(tensor, state, spill, replaced) else {
                if let State::Deferred(payload) = state {
                    plan.place(tensor, Placement::Inline(payload.clone()));
                }
                continue;
            };
            if payload.len() < SMALL {
                plan.place(tensor, Placement::Inline(payload));
                continue;
            }
            let length = payload.len();
            let begin = end.next_multiple_of(ALIGNMENT);
            // Tensors that share their bytes share them in the data file.
            let offset = payload.key().map_or(begin, |key| *shared.entry(key).or_insert(begin));
            if offset == begin {
                end = begin + length;
                plan.data.push(Run { offset, tensor, payload });
            }
            plan.place(tensor, Placement::External(self.reference(offset, length)));
        }
        plan
    }

    /// What the data file gets of a tensor. `replaced` are the files that the output takes the place of.
    fn moved(
        &self,
        tensor: &TensorProto,
        state: &State<'a>,
        spill: Spill,
        replaced: &[PathBuf],
    ) -> Option<Payload<'a>> {
        match state {
            State::Typed | State::Reference => None,
            State::Raw(bytes) => {
                (spill == Spill::All && bytes.len() as u64 >= SMALL).then(|| Payload::Bytes(bytes.clone()))
            }
            State::Deferred(payload) => (spill != Spill::Nothing).then(|| payload.clone()),
            State::Elsewhere(payload) => {
                let file = self.options.input.and_then(|input| input.external.file_of(tensor));
                let name = Reference::of(tensor).ok().map(|reference| self.target.dir.join(normal(reference.location)));
                // By name too: what is replaced may be a link to the data.
                let stays = self.stays && !file.iter().chain(&name).any(|path| replaced.contains(path));
                (!stays).then(|| payload.clone())
            }
        }
    }

    fn reference(&self, offset: u64, length: u64) -> Vec<StringStringEntryProto> {
        vec![
            entry("location", self.data_name.clone()),
            entry("offset", offset.to_string()),
            entry("length", length.to_string()),
        ]
    }
}

fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) }
}

/// The location of a part of a model.
pub(super) fn part_location(part: usize) -> String {
    format!("relayout.part.{part}")
}

fn survey<'a>(tensor: &'a TensorProto, options: &WriteOptions<'a>, stays: bool) -> Result<State<'a>> {
    let deferred = options.payloads.zip(tensor.raw_data.as_ref()).and_then(|(payloads, raw)| payloads.get(raw));
    if let Some(source) = deferred {
        let expected = byte_length(tensor).map_err(|fault| Error::tensor(tensor, fault))?;
        if expected > LARGEST {
            return Err(Error::tensor(tensor, TensorFault::TooManyElements { dims: tensor.dims.clone() }));
        }
        let found = source.byte_length();
        if expected != found {
            let place = "its deferred payload".to_owned();
            return Err(Error::tensor(tensor, TensorFault::Length { expected, found, place }));
        }
        return Ok(State::Deferred(Payload::Deferred(source)));
    }
    if !is_external(tensor) {
        return Ok(tensor.raw_data.as_ref().map_or(State::Typed, |raw| State::Raw(raw.clone())));
    }
    match options.input.map(|input| input.tensor_data(tensor)) {
        None | Some(Ok(TensorData::Missing { .. })) => Ok(State::Reference),
        Some(Ok(TensorData::Inline(bytes))) => Ok(State::Elsewhere(Payload::Bytes(bytes))),
        // A reference that need not be followed is not this writer's to judge.
        Some(Err(_)) if stays => Ok(State::Reference),
        Some(Err(error)) => Err(error),
    }
}

/// `<output>.data`, then the same with a number; none if the output's name is not UTF-8.
pub(super) fn data_names(target: &FileTarget) -> Option<impl Iterator<Item = String> + use<>> {
    let output = target.path.file_name()?.to_str()?.to_owned();
    let usual = format!("{output}.data");
    Some(std::iter::once(usual).chain((1u64..).map(move |n| format!("{output}.{n}.data"))))
}

/// Data files that are there under the names that this output's may have, without a gap but for the first.
pub(super) fn earlier_data(target: &FileTarget) -> Vec<PathBuf> {
    let there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let mut paths = data_names(target).into_iter().flatten().map(|name| target.dir.join(name));
    let usual = paths.next().filter(there);
    usual.into_iter().chain(paths.take_while(there)).collect()
}

pub(super) fn normal(location: &str) -> PathBuf {
    Path::new(location).components().filter(|part| *part != Component::CurDir).collect()
}
