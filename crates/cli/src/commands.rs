//! The commands.

use crate::args;
use crate::failure::Failure;
use crate::ops;
use crate::page::{self, PageFile};
use crate::progress::Progress;
use crate::solve::described;
use crate::terminal::{json, remark, say, say_json, tell};
use crate::written::check_written;
use relayout::fsio::Output;
use relayout::io::IoError;
use relayout::ir::op::{Description, describe};
use relayout::ir::text::GraphJson;
use relayout::targets::BUILTIN;
use relayout::units::{bytes, elapsed};
use relayout::why::RecognizedPiece;
use relayout::{Model, Request, Target, optimize as optimize_model};
use relayout_html::{PageKind, optimized_page};
use relayout_verify::{Inputs, PluginProvider, Runtime, SearchPlaces, find_library};
use std::fmt::Write as _;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

/// What a model and its result are fed to be compared.
pub(crate) fn random_inputs(a: &args::Decide, model: &Model) -> Inputs {
    // Of several models not each has all dims that are named.
    let dims = a.dims.iter().filter(|(name, _)| model.has_open_dim(name));
    Inputs::Random { seed: 0, dims: dims.map(|(name, size)| (name.clone(), size.typical())).collect() }
}

/// A report on its way to its place.
pub(crate) enum ReportFile {
    Stdout(String),
    File(Output),
}

impl ReportFile {
    pub(crate) fn new(path: &Path, json: String) -> Result<ReportFile, Failure> {
        if is_stdout(path) {
            return Ok(ReportFile::Stdout(json));
        }
        Ok(ReportFile::File(Output::new(path, (json + "\n").into_bytes()).map_err(Failure::model)?))
    }

    pub(crate) fn commit(self) -> Result<(), Failure> {
        match self {
            ReportFile::Stdout(json) => say(&json),
            ReportFile::File(output) => output.commit().map_err(Failure::model),
        }
    }
}

/// `relayout print`
pub(crate) fn print(a: &args::Print) -> Result<(), Failure> {
    if a.dot && json() {
        return Err(Failure::usage("--dot and JSON are two forms of the same graph; take one"));
    }
    let model = open(&a.model)?;
    if let Some(note) = model.newer_opset() {
        tell(&format!("relayout: {note}\n"));
    }
    let Some(pass) = &a.after else {
        if a.decide.target_file.is_some() || a.decide.target.is_some() {
            return Err(Failure::usage(
                "a target needs `--after PASS`: before its passes the graph is that of the file",
            ));
        }
        let text = match (json(), a.dot) {
            (true, _) => model.print_json().map_err(Failure::model)?,
            (_, true) => model.print_dot(),
            _ => model.print(),
        };
        return say(text.trim_end());
    };
    let request = a.decide.request();
    let mut options = request.options();
    options.print_after = Some(pass.clone());
    let optimized = optimize_model(&model, target(&request)?.as_ref(), &options).map_err(of_library)?;
    // A file that was made for this target is left as it is.
    let graph = optimized.printed().unwrap_or(optimized.graph());
    let text = match (json(), a.dot) {
        (true, _) => serde_json::to_string_pretty(&GraphJson::from(graph)).map_err(Failure::model)?,
        (_, true) => relayout::model::dot(graph),
        _ => graph.to_string(),
    };
    say(text.trim_end())
}

/// `relayout explain`
pub(crate) fn explain(a: &args::Explain) -> Result<(), Failure> {
    if a.network_dot.is_some() && json() {
        return Err(Failure::usage("--network-dot is a drawing and not JSON; leave one of them out"));
    }
    if a.problem.is_some() && json() {
        return Err(Failure::usage("--problem has a form of its own that is not JSON; leave one of them out"));
    }
    let (html, dot, problem) = (a.html.as_deref(), a.network_dot.as_deref(), a.problem.as_deref());
    check_written(&[("--html", html), ("--network-dot", dot), ("--problem", problem)], &[&a.model])?;
    // What is said of one value or piece is said of the model as its inputs and outputs are.
    let alone = a.decide.request();
    let target = target(&alone)?;
    let progress = Progress::start(format!("looking at {}", a.model.display()));
    let model = open(&a.model)?;
    if let Some(value) = &a.why {
        let explained = relayout::why(&model, target.as_ref(), &alone.options(), value).map_err(of_library)?;
        drop(progress);
        if json() {
            return say_json(&explained);
        }
        return say(explained.explain().trim_end());
    }
    if a.pieces {
        let told = relayout::why::pieces(&model, target.as_ref(), &alone.options()).map_err(of_library)?;
        drop(progress);
        return if json() { say_json(&told) } else { say(pieces(&told).trim_end()) };
    }
    if let Some(path) = dot.or(problem) {
        let options = a.request().options();
        let posed = relayout::certificate::problem(&model, target.as_ref(), &options).map_err(of_library)?;
        drop(progress);
        let text = if dot.is_some() { posed.dot().trim_end().to_owned() } else { described(&posed, path)? };
        return ReportFile::new(path, text)?.commit();
    }
    let options = page::wanted(a.request().options());
    let optimized = optimize_model(&model, target.as_ref(), &options).map_err(of_library)?;
    let made = match &a.html {
        None => None,
        Some(path) => {
            let name = page::name(&a.model);
            let page = optimized_page(PageKind::Explain, &name, &model, target.as_ref(), &options, &optimized, None);
            Some(PageFile::new(path, &page.map_err(of_library)?)?)
        }
    };
    drop(progress);
    let report = optimized.report();
    if made.map_or(Ok(false), PageFile::commit)? {
        return Ok(());
    }
    if json() {
        return say_json(report);
    }
    say(report.explain_dearest(if a.most == 0 { usize::MAX } else { a.most }).trim_end())
}

/// One paragraph per piece.
fn pieces(all: &[RecognizedPiece]) -> String {
    let mut text = String::new();
    for RecognizedPiece { op, result, nodes, why, graph, written, .. } in all {
        let place = if graph.is_empty() { String::new() } else { format!(" in {graph}") };
        let written = written.as_ref().map_or("kept as it is".to_owned(), |form| format!("written as {form}"));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{op} that leaves `{result}`{place}, of {} nodes, {written}", nodes.len());
        for line in why.to_string().lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    if text.is_empty() {
        text.push_str("no piece of several nodes is one op that equations give a name to");
    }
    text
}

/// `relayout targets`
pub(crate) fn targets(_: &args::Targets) -> Result<(), Failure> {
    let mut all = Vec::new();
    for name in BUILTIN {
        all.push(relayout::target(name).map_err(Failure::model)?);
    }
    if json() {
        let list: Vec<serde_json::Value> = all
            .iter()
            .map(|t| serde_json::json!({"name": t.name(), "about": t.about(), "layouts": t.layouts(), "dialect": t.dialect(), "costs": t.cost_source()}))
            .collect();
        return say_json(&list);
    }
    for t in &all {
        let (about, dialect, layouts, costs) = (t.about(), t.dialect(), t.layouts(), t.cost_source());
        say(&format!("{}\n  {about}\n  dialect: {dialect}\n  layouts: {layouts}\n  costs: {costs}", t.name()))?;
    }
    Ok(())
}

/// `relayout ops`
pub(crate) fn ops(a: &args::Ops) -> Result<(), Failure> {
    if a.markdown && json() {
        return Err(Failure::usage("--markdown and JSON are two forms of the same table; take one"));
    }
    if a.markdown {
        return say(ops::markdown(&describe()).trim_end());
    }
    if let Some(unknown) = a.names.iter().find(|name| !describe().iter().any(|d| d.op == **name)) {
        return Err(Failure::usage(format!("there is no op `{unknown}` in the table; `relayout ops` lists all")));
    }
    let wanted = |op: &str| a.names.is_empty() || a.names.iter().any(|name| name == op);
    let entries: Vec<Description> = describe().into_iter().filter(|d| wanted(d.op)).collect();
    if json() {
        return say_json(&entries);
    }
    say(ops::text(&entries).trim_end())
}

/// The provider that models run on, beside the CPU's.
pub(crate) fn plugin(a: &args::PluginArgs) -> Option<PluginProvider> {
    let library = a.provider_library.clone()?;
    Some(PluginProvider { library, options: a.provider_options.clone() })
}

pub(crate) fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether an output goes to stdout. Its name among the devices means the stream too: where stdout is a file, to open the device
/// would be to write over what the program said before.
pub(crate) fn is_stdout(path: &Path) -> bool {
    is_stdio(path) || ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path.as_os_str() == *name)
}

/// A model, from its file or from stdin.
pub(crate) fn open(path: &Path) -> Result<Model, Failure> {
    let begun = Instant::now();
    let model = if is_stdio(path) { from_stdin()? } else { Model::open(path).map_err(of_library)? };
    remark(|| {
        let (nodes, size) = (model.ir().graph.node_count(), bytes(model.bytes().len() as u64));
        format!("{}: read, {nodes} nodes, {size} ({})", path.display(), elapsed(begun.elapsed()))
    });
    Ok(model)
}

fn from_stdin() -> Result<Model, Failure> {
    let mut bytes = Vec::new();
    stdin().lock().read_to_end(&mut bytes).map_err(|e| Failure::model(format!("stdin: {e}")))?;
    Model::from_bytes(bytes.into(), None).map_err(of_library)
}

pub(crate) fn of_library(error: relayout::Error) -> Failure {
    match error {
        relayout::Error::Request(wrong) => wrong.into(),
        relayout::Error::UnknownValue { .. } => {
            Failure::Usage(format!("{error}; `relayout print MODEL` shows the values"))
        }
        relayout::Error::UnknownPass { .. }
        | relayout::Error::UnknownDim { .. }
        | relayout::Error::Io(IoError::Twice { .. }) => Failure::usage(error),
        relayout::Error::Certificate(_) | relayout::Error::Unproved { .. } => Failure::Check(error.to_string()),
        _ => Failure::model(error),
    }
}

/// The target that is asked for.
pub(crate) fn target(request: &Request) -> Result<Box<dyn Target>, Failure> {
    let target = request.target()?;
    remark(|| format!("target {}, costs {}", target.name(), target.cost_source()));
    Ok(target)
}

/// ONNX Runtime, loaded.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Runtime::load(&runtime_library()?).map_err(Failure::model)
}

/// ONNX Runtime's library: where `ORT_DYLIB_PATH` says, or in the packages of `python3`. Nothing is looked for where the program
/// happens to be started: what is loaded is run.
pub(crate) fn runtime_library() -> Result<PathBuf, Failure> {
    // To ask Python takes as long as to optimize a small model; of several models each asks for it.
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let mut places = SearchPlaces::default();
        places.explicit = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        places.site_packages = python_folders().to_vec();
        find_library(&places)
    });
    found.clone().ok_or_else(|| Failure::model(format!("{NO_RUNTIME}; `relayout doctor` says what is found")))
}

/// What is said where there is no ONNX Runtime.
pub(crate) const NO_RUNTIME: &str =
    "ONNX Runtime is not installed: run `pip install onnxruntime`, or set ORT_DYLIB_PATH to its shared library";

/// Folders in which the `python3` of the search path keeps packages; the working directory, which Python looks in too, is none.
pub(crate) fn python_folders() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(ask_python)
}

fn ask_python() -> Vec<PathBuf> {
    let script = "import sys; sys.path[:] = filter(None, sys.path); import site; \
                  print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()] + sys.path))";
    let output = std::process::Command::new("python3").args(["-c", script]).output();
    let Ok(output) = output else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(PathBuf::from).filter(|folder| folder.is_absolute()).collect()
}
