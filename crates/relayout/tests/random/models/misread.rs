//! Wrong entries of the table of ops, and random models that find them: whoever reads an op wrongly moves what must not be moved,
//! and the result computes something else or does not run.
//!
//! The pipeline runs with one more pass between its own, which binds the nodes of one op to a wrong entry after each pass that
//! binds nodes. That speaks of axes only: a mistake about types is for the laws of the table (`tests/ops`), and so are some that
//! no order of whole axes shows. The models are dealt the ops that have a wrong entry and nothing else.

use super::{feeds, tolerance};
use crate::common;
use crate::models::cards::Deck;
use crate::models::histogram::{Histogram, entry, entry_row, nodes};
use crate::models::recipe::recipes;
use crate::models::sketch::{self, Sample};
use crate::op_cases::mistakes::{Mistake, mistakes};
use crate::sampling::Draw;
use proptest::strategy::{Strategy, ValueTree};
use relayout::Size;
use relayout::ir::form::Form;
use relayout::ir::graph::{Graph, NodeId, Op, OpName};
use relayout::ir::op::{OpDef, bind_as, def_of, lookup};
use relayout_onnx::export::export;
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::write::{WriteOptions, write_model_to};
use relayout_passes::pipeline::{PipelineOptions, Step, run_steps, steps};
use relayout_target_api::{Context, Declared, Pass, PassError, Slot};
use relayout_verify::Tensor;
use std::cell::Cell;
use std::sync::Arc;

/// How many models are drawn at most.
const MODELS: usize = 24;
/// How many of the wrong entries they have to find.
const LEAST_FOUND: usize = 10;

/// Passes that bind nodes.
const BINDING: &[&str] = &["canonicalize", "fold_scales", "raise_to_digits"];

thread_local! {
    /// The entry that is misread, and what it is taken for.
    static MISREAD: Cell<Option<(&'static OpDef, &'static OpDef)>> = const { Cell::new(None) };
}

#[expect(clippy::unnecessary_wraps, reason = "passes share one function type")]
fn misread(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    let Some((right, wrong)) = MISREAD.get() else { return Ok(()) };
    let is_it = |n: &NodeId| {
        let node = graph.node(*n);
        // What a kernel was chosen for was read before.
        let is_read = matches!(node.op, Op::Onnx(_)) && !matches!(node.form, Form::Kernel(_));
        is_read && def_of(graph, *n).is_some_and(|def| std::ptr::eq(def, right))
    };
    let nodes: Vec<NodeId> = graph.nodes().filter(is_it).collect();
    for n in nodes {
        let form = bind_as(graph, n, wrong);
        graph.set_form(n, form);
    }
    Ok(())
}

/// One round of `optimize` with an entry misread.
fn optimized(sample: &Sample, right: &'static OpDef, wrong: &'static OpDef) -> Result<Vec<u8>, String> {
    let file = Arc::new(ModelFile::from_bytes(sample.bytes.clone().into(), None).map_err(|e| e.to_string())?);
    let mut model = import(&file).map_err(|e| e.to_string())?;
    let target = relayout::target("onnx").map_err(|e| e.to_string())?;
    let mut options = PipelineOptions::default();
    options.dims = sample.dims.iter().map(|(name, &size)| (name.clone(), Size::of(size))).collect();
    let own = steps(target.as_ref()).map_err(|e| e.to_string())?;
    let reason = "stands where an entry of the table is wrong";
    let misreading = |slot: Slot| Pass::on_each_graph(Declared::new("misread", slot, reason), misread);
    let passes: Vec<Option<Pass>> =
        own.iter().map(|step| BINDING.contains(&step.is.name).then(|| misreading(step.is.slot))).collect();
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (step, pass) in own.iter().zip(&passes) {
        steps.push(*step);
        steps.extend(pass.iter().map(Step::from));
    }
    MISREAD.set(Some((right, wrong)));
    let ran = run_steps(&mut model, target.as_ref(), &options, &steps);
    MISREAD.set(None);
    ran.map_err(|e| e.to_string())?;
    let exported = export(&file, &model, &[]).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    let options = WriteOptions::for_input(&file).payloads(&exported.payloads);
    write_model_to(&exported.proto, &mut bytes, &options).map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// What gives a wrong entry away in a model.
fn found_in(sample: &Sample, feeds: &[Tensor], right: &'static OpDef, wrong: &'static OpDef) -> Result<(), String> {
    let bytes = optimized(sample, right, wrong)?;
    let comparison = common::compared_on(&sample.bytes, &bytes, feeds)?;
    common::judged(&comparison, tolerance(sample))
}

/// The entry that a mistake is about.
fn right(mistake: &Mistake) -> &'static OpDef {
    let name =
        OpName { domain: mistake.case.domain.to_owned(), name: mistake.case.op.to_owned(), overload: String::new() };
    lookup(&name, mistake.case.opsets.1).expect("mistakes are about entries of the table")
}

#[test]
fn wrong_entries_are_found_by_random_models() {
    let mut drawn = Draw::new("misread", MODELS as u64, 0).part(0);
    let mut hidden: Vec<Mistake> = mistakes().into_iter().filter(|mistake| mistake.law != "inferred").collect();
    let all = hidden.len();
    let rows: Vec<String> = hidden.iter().map(|mistake| entry_row(right(mistake))).collect();
    let (mut deck, mut counted) = (Deck::only(&rows, drawn.seed), Histogram::default());
    for model in 0..MODELS {
        if hidden.is_empty() {
            break;
        }
        let (opset, hand) = deck.deal(&counted);
        let tree = recipes(opset, hand).new_tree(&mut drawn.runner).expect("recipes need no filter");
        let sample = sketch::sample(&tree.current());
        let Ok(feeds) = feeds(&sample) else { continue };
        counted.add(&sample);
        let there: Vec<&OpDef> = nodes(&sample.proto).into_iter().filter_map(|n| entry(&sample.proto, n)).collect();
        hidden.retain(|mistake| {
            let right = right(mistake);
            if !there.iter().any(|def| std::ptr::eq(*def, right)) {
                return true;
            }
            assert_eq!(found_in(&sample, &feeds, right, right), Ok(()), "{} read rightly", right.name);
            match found_in(&sample, &feeds, right, mistake.def) {
                Ok(()) => true,
                Err(why) => {
                    println!("model {model}: {}: {}", mistake.what, why.lines().next().unwrap_or_default());
                    false
                }
            }
        });
    }
    let left: Vec<&str> = hidden.iter().map(|mistake| mistake.what).collect();
    println!("{} of {all} wrong entries are found; not: {left:?}", all - left.len());
    assert!(all - left.len() >= LEAST_FOUND, "these wrong entries are not found by {MODELS} models: {left:?}");
}
