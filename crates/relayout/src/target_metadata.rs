//! Recognises files that were made for a target before. If their operators are not standard, nothing can be decided again.

use crate::error::Error;
use crate::io::{IoError, IoRecord, Wishes, met, property};
use crate::model::Model;
use relayout_ir::graph::OpName;
use relayout_onnx::proto::{GraphProto, ModelProto, NodeProto, StringStringEntryProto};
use relayout_target_api::{Since, Target};
use relayout_targets::builtin;

/// Key of the metadata that names the target of a file.
pub(crate) const TARGET_KEY: &str = "relayout.target";
/// Key of the metadata that names the execution provider of ONNX Runtime which alone runs the file.
const RUNS_ON_KEY: &str = "relayout.runs_on";
/// Key of the metadata that names the first release of its runtime that runs the file, where older ones run other files of the target.
pub(crate) const NEEDS_KEY: &str = "relayout.needs";
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

/// Notes in a file that is made for a target where alone it runs: on which execution provider, if an op of it is one that no other has, and
/// since which release of its runtime. What is to be said of that.
pub(crate) fn needs(proto: &mut ModelProto, target: &dyn Target) -> Vec<String> {
    let Some(graph) = &proto.graph else { return Vec::new() };
    let provider = each_node(graph, &mut |node| {
        let op = name_of(node);
        target.only_on(&op).map(|provider| (format!("{} of {}", op.name, op.domain), provider.to_owned()))
    });
    let newest = each_node(graph, &mut |node| target.since(&name_of(node), &|name| text(node, name))).into_iter().max();
    let mut note = |key: &str, value: &str| {
        let (key, value) = (Some(key.to_owned()), Some(value.to_owned()));
        proto.metadata_props.push(StringStringEntryProto { key, value });
    };
    let mut remarks = Vec::new();
    if let Some((op, provider)) = provider.into_iter().next() {
        note(RUNS_ON_KEY, &provider);
        remarks.push(format!("it runs on {provider} only, which alone has {op}"));
    }
    if let Some(Since { release, what, before }) = newest {
        note(NEEDS_KEY, &release);
        remarks.push(format!(
            "it needs {release} or newer, {what}: ask for `runtime` {before} to have it run on older ones"
        ));
    }
    remarks
}

/// What is found of the nodes of a graph and of its bodies.
fn each_node<T>(graph: &GraphProto, find: &mut dyn FnMut(&NodeProto) -> Option<T>) -> Vec<T> {
    let mut all = Vec::new();
    for node in &graph.node {
        all.extend(find(node));
        for body in node.bodies() {
            all.extend(each_node(body, find));
        }
    }
    all
}

fn name_of(node: &NodeProto) -> OpName {
    OpName::new(node.domain.as_deref().unwrap_or_default(), node.op_type.as_deref().unwrap_or_default())
}

/// An attribute of a node that is a text.
fn text(node: &NodeProto, name: &str) -> Option<String> {
    let attribute = node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))?;
    attribute.s.as_ref().map(|text| String::from_utf8_lossy(text).into_owned())
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
    if let Some(release) = model.needs().filter(|release| !target.runs_since(release)) {
        return Err(other(
            format!("`{made_for}` with {NEEDS_KEY}={release}"),
            format!("`{made_for}` for an older release"),
        ));
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
