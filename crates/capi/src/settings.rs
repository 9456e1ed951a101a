//! Options as JSON: what they say, and the target and the options of the library that they ask for.

use std::collections::BTreeMap;

use relayout::proof::Unproved;
use relayout::targets::{BUILTIN, Block, OrtCpu};
use relayout::{IoLayout, Numerics, Options, Size, Target, parse_target, target};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Status;
use crate::border::Failure;

/// The options of a call, checked. Plain data, so that threads may share it.
#[derive(Debug)]
pub(crate) struct Settings {
    target: TargetName,
    options: Options,
    /// The sizes of dims are written into the file.
    fix_sizes: bool,
}

/// Which target is asked for.
#[derive(Debug)]
enum TargetName {
    /// A built-in one, by its name.
    Builtin(String),
    /// One that a text describes.
    Described(String),
    /// `ort-cpu`, with options of its own.
    OrtCpu { block: Block, guard: bool, threads: u64 },
}

impl Default for TargetName {
    fn default() -> TargetName {
        TargetName::Builtin("onnx".to_owned())
    }
}

/// The JSON form.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own, as callers give it")]
struct Given {
    target: Option<String>,
    target_text: Option<String>,
    block: Option<u64>,
    guard: bool,
    threads: Option<u64>,
    dims: BTreeMap<String, Value>,
    fix_sizes: bool,
    numerics: Precision,
    inputs: Vec<String>,
    outputs: Vec<String>,
    free_io: bool,
    price_moves: usize,
    strict: bool,
    unproved: String,
}

impl Default for Given {
    fn default() -> Given {
        Given {
            target: None,
            target_text: None,
            block: None,
            guard: true,
            threads: None,
            dims: BTreeMap::new(),
            fix_sizes: false,
            numerics: Precision::Reassociate,
            inputs: Vec::new(),
            outputs: Vec::new(),
            free_io: false,
            price_moves: 0,
            strict: false,
            unproved: Unproved::USUAL.to_string(),
        }
    }
}

/// `numerics`, as it is spelled.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Precision {
    Exact,
    Reassociate,
}

fn bad(text: impl std::fmt::Display) -> Failure {
    Failure::new(Status::BadOptions, format!("options: {text}"))
}

impl Default for Settings {
    fn default() -> Settings {
        let options = Options::default().unproved(Unproved::USUAL);
        Settings { options, target: TargetName::default(), fix_sizes: false }
    }
}

impl Settings {
    /// Reads options, and makes the target once, so that what is wrong shows here.
    pub(crate) fn parse(json: &str) -> Result<Settings, Failure> {
        let given: Given = serde_json::from_str(json).map_err(bad)?;
        let fix_sizes = given.fix_sizes;
        let settings = Settings { options: options(&given)?, target: target_name(given)?, fix_sizes };
        settings.target()?;
        settings.sizes()?;
        Ok(settings)
    }

    /// What the model is optimized for.
    pub(crate) fn target(&self) -> Result<Box<dyn Target>, Failure> {
        match &self.target {
            TargetName::Builtin(name) => target(name).map_err(bad),
            TargetName::Described(text) => parse_target("target_text", text).map_err(bad),
            TargetName::OrtCpu { block, guard, threads } => {
                let target = OrtCpu::new(*block).and_then(|target| target.on_threads(*threads)).map_err(bad)?;
                Ok(Box::new(if *guard { target } else { target.unguarded() }))
            }
        }
    }

    /// The options of the library.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The sizes that are written into the file, if that is asked for.
    pub(crate) fn sizes(&self) -> Result<Option<BTreeMap<String, i64>>, Failure> {
        let number = |(name, size): (&String, &Size)| {
            let why = || bad(format!("fix_sizes writes numbers, and the size of {name} in dims is a range"));
            Ok((name.clone(), size.number().ok_or_else(why)?))
        };
        self.fix_sizes.then(|| self.options.dims.iter().map(number).collect()).transpose()
    }
}

fn options(given: &Given) -> Result<Options, Failure> {
    let mut options = Options::default().price_moves(given.price_moves).numerics(match given.numerics {
        Precision::Exact => Numerics::Exact,
        Precision::Reassociate => Numerics::Reassociate,
    });
    for (name, size) in &given.dims {
        let text = size.as_str().map_or_else(|| size.to_string(), str::to_owned);
        let size = text.parse().map_err(|why: String| bad(format!("dims: {name}: {why}")))?;
        options = options.dim(name, size);
    }
    let end = |text: &String| -> Result<IoLayout, Failure> { text.parse().map_err(bad) };
    for input in &given.inputs {
        options = options.input(end(input)?);
    }
    for output in &given.outputs {
        options = options.output(end(output)?);
    }
    let unproved = given.unproved.parse().map_err(|why: String| bad(format!("unproved: {why}")))?;
    let options = options.unproved(unproved);
    let options = if given.strict { options.strict() } else { options };
    Ok(if given.free_io { options.free_io() } else { options })
}

fn target_name(given: Given) -> Result<TargetName, Failure> {
    let name = match (given.target, given.target_text) {
        (Some(_), Some(_)) => return Err(bad("`target` and `target_text` exclude each other")),
        (None, Some(text)) => TargetName::Described(text),
        (name, None) => name.map_or_else(TargetName::default, TargetName::Builtin),
    };
    let own = given.block.is_some() || !given.guard || given.threads.is_some();
    match name {
        TargetName::Builtin(name) if name == "ort-cpu" => {
            let block = given.block.map(|n| Block::of(n).ok_or_else(|| bad(format!("block: {n} is neither 8 nor 16"))));
            let block = block.transpose()?.unwrap_or_else(Block::of_host);
            Ok(TargetName::OrtCpu { block, guard: given.guard, threads: given.threads.unwrap_or(1) })
        }
        _ if own => Err(bad("`block`, `guard` and `threads` are options of target `ort-cpu` only")),
        name => Ok(name),
    }
}

/// The built-in targets, as a JSON array.
pub(crate) fn targets() -> Result<String, Failure> {
    let about = |name: &&str| -> Result<Value, Failure> {
        let target = target(name).map_err(bad)?;
        Ok(json!({
            "name": target.name(),
            "about": target.about(),
            "layouts": target.layouts(),
            "dialect": target.dialect(),
            "costs": target.cost_source(),
        }))
    };
    let list = BUILTIN.iter().map(about).collect::<Result<Vec<Value>, Failure>>()?;
    Ok(Value::Array(list).to_string())
}

#[cfg(test)]
mod tests {
    use super::{BUILTIN, Settings, Status, Value, targets};
    use relayout::Numerics;
    use relayout::proof::Unproved;

    const fn shared_by_threads<T: Send + Sync>() {}
    const _: () = shared_by_threads::<Settings>();

    #[test]
    fn everything_that_can_be_said_is_heard() {
        let settings = Settings::parse(
            r#"{"target": "ort-cpu", "block": 8, "guard": false, "threads": 2, "dims": {"N": 4, "H": "32..512"}, "numerics": "exact",
                "inputs": ["x:NCHW->NHWC"], "outputs": ["y:NCHW->NHWC"], "free_io": true, "price_moves": 3,
                "strict": true, "unproved": "keep-input"}"#,
        )
        .unwrap();
        let options = settings.options();
        assert_eq!(options.dims["N"].typical(), 4);
        assert_eq!(options.dims["H"], "32..512".parse().unwrap());
        assert_eq!((options.numerics, options.price_moves, options.free_io), (Numerics::Exact, 3, true));
        assert!(options.strict);
        assert_eq!(options.unproved, Unproved::KeepInput);
        assert_eq!((options.inputs[0].name(), options.outputs[0].name()), ("x", "y"));
        let target = settings.target().unwrap();
        assert_eq!(target.name(), "ort-cpu");
        assert!(target.layouts().contains("NCHW8c"), "{}", target.layouts());
        assert!(target.cost_source().contains("2 threads"), "{}", target.cost_source());
        let described = include_str!("../../targets/src/functions/nhwc.toml");
        let text = serde_json::json!({ "target_text": described }).to_string();
        assert_eq!(Settings::parse(&text).unwrap().target().unwrap().name(), "nhwc");
    }

    #[test]
    fn empty_options_are_the_defaults() {
        let (empty, default) = (Settings::parse("{}").unwrap(), Settings::default());
        assert_eq!(format!("{empty:?}"), format!("{default:?}"));
        assert_eq!(default.target().unwrap().name(), "onnx");
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        for (json, named) in [
            ("", "EOF"),
            ("[1]", "options"),
            (r#"{"targt": "onnx"}"#, "targt"),
            (r#"{"target": "tpu"}"#, "tpu"),
            (r#"{"target": 7}"#, "integer `7`"),
            (r#"{"target": "onnx", "target_text": ""}"#, "exclude"),
            (r#"{"target_text": "nonsense"}"#, "target_text"),
            (r#"{"target": "ort-cpu", "block": 12}"#, "12"),
            (r#"{"block": 8}"#, "ort-cpu"),
            (r#"{"target": "nhwc", "guard": false}"#, "ort-cpu"),
            (r#"{"threads": 2}"#, "ort-cpu"),
            (r#"{"dims": {"N": 0}}"#, "N: `0`"),
            (r#"{"dims": {"N": true}}"#, "N: `true`"),
            (r#"{"dims": {"N": "2..4"}, "fix_sizes": true}"#, "size of N"),
            (r#"{"numerics": "loose"}"#, "loose"),
            (r#"{"inputs": ["x:NCHW"]}"#, "x:NCHW"),
            (r#"{"outputs": ["y:NCHW->NHWD"]}"#, "y:NCHW->NHWD"),
            (r#"{"price_moves": -1}"#, "-1"),
            (r#"{"unproved": "quiet"}"#, "quiet"),
        ] {
            let failure = Settings::parse(json).expect_err(json);
            assert_eq!(failure.status, Status::BadOptions, "{json}");
            assert!(failure.text.starts_with("options: ") && failure.text.contains(named), "{json}: {}", failure.text);
        }
    }

    #[test]
    fn targets_are_listed() {
        let list: Value = serde_json::from_str(&targets().unwrap()).unwrap();
        let names: Vec<&str> = list.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, BUILTIN);
    }
}
