//! Recognises files that were made for a target before. If their operators are not standard, nothing can be decided again.

use crate::error::Error;
use crate::io::{IoError, IoRecord, Wishes, met, property};
use crate::model::Model;
use relayout_ir::graph::OpName;
use relayout_onnx::proto::{GraphProto, ModelProto, StringStringEntryProto};
use relayout_target_api::Target;
use relayout_targets::builtin;

/// Key of the metadata that names the target of a file.
pub(crate) const TARGET_KEY: &str = "relayout.target";
/// Key of the metadata that names the execution provider of ONNX Runtime which alone runs the file.
const RUNS_ON_KEY: &str = "relayout.runs_on";
/// Key of the metadata that names the version of this program.
pub(crate) const VERSION_KEY: &str = "relayout.version";

/// What a file for this target has in its metadata.
pub(crate) fn metadata(target: &dyn Target) -> Vec<(String, String)> {
    let mut metadata = vec![
        (VERSION_KEY.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        (TARGET_KEY.to_owned(), target.name().to_owned()),
    ];
    metadata.extend(target.metadata());
    metadata
}

/// Notes in a file that is made for a target where alone it runs, if an op of it is one that only one execution provider has; what is to
/// be said of that.
pub(crate) fn only_on(proto: &mut ModelProto, target: &dyn Target) -> Option<String> {
    let (op, provider) = op_of_one(proto.graph.as_ref()?, target)?;
    proto
        .metadata_props
        .push(StringStringEntryProto { key: Some(RUNS_ON_KEY.to_owned()), value: Some(provider.clone()) });
    Some(format!("it runs on {provider} only, which alone has {op}"))
}

/// An op of a graph or of its bodies that only one execution provider has, and that provider.
fn op_of_one(graph: &GraphProto, target: &dyn Target) -> Option<(String, String)> {
    graph.node.iter().find_map(|node| {
        let op = OpName::new(node.domain.as_deref().unwrap_or_default(), node.op_type.as_deref().unwrap_or_default());
        let own = target.only_on(&op).map(|provider| (format!("{} of {}", op.name, op.domain), provider.to_owned()));
        own.or_else(|| node.bodies().find_map(|body| op_of_one(body, target)))
    })
}

/// Whether a model was made for this target before and is to be left as it is. An error if it was made for another one whose
/// operators are not standard, or with other options.
pub(crate) fn is_settled(
    model: &Model,
    target: &dyn Target,
    wishes: Wishes<'_>,
    records: &[IoRecord],
) -> Result<bool, Error> {
    let Some(made_for) = property(&model.file, TARGET_KEY) else { return Ok(false) };
    let same = made_for == target.name();
    let decides_again = |t: &dyn Target| t.capabilities().decides_again;
    let again =
        if same { decides_again(target) } else { builtin(made_for).map_or(true, |t| decides_again(t.as_ref())) };
    if again {
        return Ok(false);
    }
    let other = |made_for: String, asked: String| Error::OtherTarget { file: model.label(), made_for, asked };
    if !same {
        return Err(other(format!("`{made_for}`"), format!("`{}`", target.name())));
    }
    let wanted = metadata(target);
    for key in ["relayout.block", "relayout.guard", "relayout.provider"] {
        let here = property(&model.file, key);
        let there = wanted.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        if here != there {
            let said = |value: Option<&str>| format!("`{made_for}` with {key}={}", value.unwrap_or("default"));
            return Err(other(said(here), said(there)));
        }
    }
    for (end, wish) in wishes.named() {
        let refused = |why: &str| IoError::Refused { end, name: wish.name().to_owned(), why: why.to_owned() };
        if !met(records, end, wish)? && !wish.layout().is_row_major() {
            let why = "can't be given another layout in a file that was made for this target; optimize the model that it was made from";
            return Err(Error::Io(refused(why)));
        }
    }
    Ok(true)
}
