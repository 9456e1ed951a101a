//! Checks whether two models compute the same: both run in ONNX Runtime on the same inputs, and their outputs are compared.
//!
//! The runtime is a shared library that is loaded when it is needed; nothing links to it. The first model is the reference. By
//! default all rewrites of the runtime are off, so the files themselves are compared. A [`Comparison`] is plain data: it has
//! figures for each output, and [`Comparison::holds`] judges them.
//!
//! Ops that the CPU's provider has no kernel of and whose meaning is known, such as `GroupNorm` of `com.microsoft`, run as ops of the
//! standard ([`relayout::Model::for_cpu_provider`]) where no other provider is named.
//!
//! Absent: execution providers that are built into a runtime, other than the CPU's ([`PluginProvider`] names a plugin, and what something
//! else runs is held against a [`Reference`]), and random inputs of the types string, sequence, map and optional
//! (a model that has such inputs is refused by name).
//!
//! ```no_run
//! use std::path::Path;
//! use relayout_verify::{Inputs, ModelSource, Options, Runtime, Tolerance, verify};
//!
//! # fn main() -> Result<(), relayout_verify::VerifyError> {
//! let runtime = Runtime::load(Path::new("libonnxruntime.so.1.31.1"))?;
//! let inputs = Inputs::Random { seed: 0, dims: [("N".to_owned(), 2)].into() };
//! let (a, b) = (ModelSource::Path(Path::new("a.onnx")), ModelSource::Path(Path::new("b.onnx")));
//! let comparison = verify(&runtime, a, b, &inputs, &Options::default())?;
//! assert!(comparison.holds(&Tolerance::default()));
//! # Ok(())
//! # }
//! ```

mod apart;
mod check;
mod compare;
mod draws;
mod elsewhere;
mod error;
mod find;
mod here;
mod inputs;
mod io;
mod known;
mod model;
mod noise;
mod npy;
mod npz;
mod original;
mod provider;
mod runtime;
mod side;
mod tensor;
mod time;

pub use self::apart::{APART, answer_apart, check_apart};
pub use self::check::{Answer, CheckOptions, CheckResult, CheckedOutput, check};
pub use self::compare::{Comparison, Difference, OutputComparison, Tolerance};
pub use self::elsewhere::{Reference, RunElsewhere};
pub use self::error::VerifyError;
pub use self::find::{SearchPlaces, find_library, provider_libraries};
pub use self::here::{equipment_of, has_device};
pub use self::inputs::Inputs;
pub use self::model::{Level, Model, ModelSource};
pub use self::noise::Near;
pub use self::provider::PluginProvider;
pub use self::runtime::Runtime;
pub use self::tensor::{Data, ElementType, Tensor};
pub use self::time::{Ratio, RunTimes, time_side_by_side};

use std::path::{Path, PathBuf};

use self::io::Ends;
use self::model::Port;
use relayout::io::End;

/// How two models are run. The defaults compare the files as they stand, on one thread, once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How much the runtime rewrites the first model.
    pub level_a: Level,
    /// How much the runtime rewrites the second model.
    pub level_b: Level,
    /// Threads per operator; 0 for as many as the machine has cores.
    pub threads: usize,
    /// How many sets of random inputs to run; 0 counts as 1. A file of inputs is one set.
    pub rounds: u32,
    /// Libraries of custom ops that are registered for both models, such as that of crate `relayout-ortop`. They stay loaded to
    /// the end of the process.
    pub custom_ops: Vec<PathBuf>,
    /// The execution provider that both models run on, where it takes their nodes; the CPU's alone without one.
    pub provider: Option<PluginProvider>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level_a: Level::Disabled,
            level_b: Level::Disabled,
            threads: 1,
            rounds: 1,
            custom_ops: Vec::new(),
            provider: None,
        }
    }
}

/// Runs `a` and `b` on the same inputs and compares their outputs.
///
/// One model is in memory at a time. Inputs are made for `a`. If the metadata `relayout.io` of a model says that it stores an
/// input or output otherwise than its original, those are put in the original's order first. If `b` does not take the inputs of
/// `a`, the comparison lists the differences and has no outputs.
pub fn verify(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    inputs: &Inputs,
    options: &Options,
) -> Result<Comparison, VerifyError> {
    compared(runtime, a, b, options, |model| inputs.feeds(a, model, options.rounds))
}

/// Runs `a` and `b` and compares their outputs on inputs that the caller has: tensors by the names of the inputs, in one round.
pub fn verify_on(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    inputs: &[Tensor],
    options: &Options,
) -> Result<Comparison, VerifyError> {
    compared(runtime, a, b, options, |_| Ok(vec![inputs.to_vec()]))
}

fn compared(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    options: &Options,
    feeds: impl FnOnce(&Model) -> Result<Vec<Vec<Tensor>>, VerifyError>,
) -> Result<Comparison, VerifyError> {
    let mut model = Model::load(runtime, a, options.level_a, options)?;
    let feeds = feeds(&model)?;
    let references = run_all(&mut model, &feeds)?;
    let ends = Ends::of(&model)?;
    let references = originals(&ends, End::Output, references)?;
    let feeds = originals(&ends, End::Input, feeds)?;
    let inputs_of_a = ends.original(End::Input, &model.inputs);
    let outputs_of_a = ends.original(End::Output, &model.outputs);
    drop(model);

    let mut model = Model::load(runtime, b, options.level_b, options)?;
    let ends = Ends::of(&model)?;
    let inputs_of_b = ends.original(End::Input, &model.inputs);
    let mut differences = input_differences(&inputs_of_a, &inputs_of_b);
    differences.extend(order_difference("order of the inputs", &inputs_of_a, &model.inputs));
    differences.extend(order_difference("order of the outputs", &outputs_of_a, &model.outputs));
    if !inputs_of_b.iter().all(|port| feeds.iter().all(|feeds| takes(port, feeds))) {
        return Ok(Comparison::new(0, differences, Vec::new()));
    }
    let feeds: Vec<Vec<Tensor>> =
        feeds.iter().map(|feeds| ends.feeds(&model.inputs, feeds)).collect::<Result<_, _>>()?;
    let results = originals(&ends, End::Output, run_all(&mut model, &feeds)?)?;
    let mut outputs = Vec::new();
    for (reference, result) in references.iter().zip(&results) {
        compare::add_round(&mut outputs, reference, result);
    }
    Ok(Comparison::new(results.len() as u32, differences, outputs))
}

/// Runs `model` once on `inputs`, on one thread, and gives its outputs in the model's order. Inputs that the model does
/// not have are left out; a sequence of tensors `name` comes out as `name[0]`, `name[1]`, ...
pub fn run(
    runtime: &Runtime,
    model: ModelSource<'_>,
    inputs: &[Tensor],
    level: Level,
) -> Result<Vec<Tensor>, VerifyError> {
    Model::load(runtime, model, level, &Options::default())?.run(inputs)
}

/// The inputs that [`verify`] would feed `model` in its first round, one per input, in the model's order.
pub fn example_inputs(runtime: &Runtime, model: ModelSource<'_>, inputs: &Inputs) -> Result<Vec<Tensor>, VerifyError> {
    let loaded = Model::load(runtime, model, Level::Disabled, &Options::default())?;
    Ok(inputs.feeds(model, &loaded, 1)?.into_iter().next().unwrap_or_default())
}

/// Every set of tensors in the order of the original.
fn originals(ends: &Ends, end: End, sets: Vec<Vec<Tensor>>) -> Result<Vec<Vec<Tensor>>, VerifyError> {
    sets.into_iter().map(|tensors| ends.to_original(end, tensors)).collect()
}

/// Writes to `path`, as a model file, what the runtime makes of `model` on load: the nodes that it would run.
///
/// # Errors
/// [`VerifyError::Load`] if the model does not load or the file can't be written.
pub fn save_as_loaded(runtime: &Runtime, model: ModelSource<'_>, level: Level, path: &Path) -> Result<(), VerifyError> {
    model::save_loaded(runtime, model, level, path)
}

fn run_all(model: &mut Model, feeds: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>, VerifyError> {
    feeds.iter().map(|feeds| model.run(feeds)).collect()
}

/// The inputs whose name, type or declared shape the models do not share.
fn input_differences(a: &[Port], b: &[Port]) -> Vec<Difference> {
    let spelled = |ports: &[Port], name: &str| ports.iter().find(|port| port.name == name).map(Port::spelling);
    let only_b = b.iter().filter(|port| a.iter().all(|other| other.name != port.name));
    let differing = a.iter().chain(only_b).map(|port| Difference {
        what: format!("input `{}`", port.name),
        a: spelled(a, &port.name),
        b: spelled(b, &port.name),
    });
    differing.filter(|difference| difference.a != difference.b).collect()
}

/// The orders of the names, if the models share the names but not the order.
fn order_difference(what: &str, a: &[Port], b: &[Port]) -> Option<Difference> {
    let names = |ports: &[Port]| ports.iter().map(|port| port.name.clone()).collect::<Vec<_>>();
    let (a, b) = (names(a), names(b));
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    (a != b && sorted(&a) == sorted(&b)).then(|| Difference {
        what: what.to_owned(),
        a: Some(a.join(", ")),
        b: Some(b.join(", ")),
    })
}

/// Whether `feeds` has a tensor that suits the input `port`.
fn takes(port: &Port, feeds: &[Tensor]) -> bool {
    feeds.iter().any(|tensor| tensor.name() == port.name && port.accepts(tensor.element_type(), tensor.shape()))
}
