//! Options as JSON: from their fields to the request that the command line and Python have too.

use std::fmt;

use relayout::request::{RequestError, RequestOption, Takes};
use relayout::targets::BUILTIN;
use relayout::{Request, target};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

use crate::Status;
use crate::border::Failure;

/// The options of a call, checked. Plain data, so that threads may share it.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    request: Request,
}

impl Settings {
    /// Reads options, chooses for this machine if that is asked for, and makes the target once, so that what is wrong shows here.
    pub(crate) fn parse(json: &str) -> Result<Settings, Failure> {
        let Fields(fields) = serde_json::from_str(json).map_err(bad)?;
        let mut request = Request::default();
        for (key, value) in &fields {
            set(&mut request, key, value).map_err(|e| refused(&e))?;
        }
        request.fit(&request.equipment());
        let checked = request.check_tuning().and_then(|()| request.target());
        checked.map_err(|e| refused(&e))?;
        if request.tune {
            return Err(refused(&RequestError::Untuned));
        }
        Ok(Settings { request })
    }

    /// What is asked for.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }
}

/// An option that can't be had.
pub(crate) fn refused(error: &RequestError) -> Failure {
    let status = match error {
        RequestError::TargetFile { .. } | RequestError::CostsFile { .. } => Status::File,
        _ => Status::BadOptions,
    };
    Failure::new(status, format!("options: {error}"))
}

fn bad(text: impl fmt::Display) -> Failure {
    Failure::new(Status::BadOptions, format!("options: {text}"))
}

/// Sets an option to what JSON says of it; null says nothing.
fn set(request: &mut Request, key: &str, value: &Value) -> Result<(), RequestError> {
    let option = RequestOption::of(key)?;
    let expected = |what: &str| {
        let why = format!("expected {what}, found `{value}`");
        RequestError::Value { option: option.key, why }
    };
    match (option.takes, value) {
        (_, Value::Null) => Ok(()),
        (Takes::List, Value::Array(all)) => all.iter().try_for_each(|each| request.set(key, text(each))),
        (Takes::List, _) => Err(expected("an array of texts")),
        (Takes::Table, Value::Object(all)) => {
            all.iter().try_for_each(|(name, each)| request.set(key, format!("{name}={}", text(each))))
        }
        (Takes::Table, _) => Err(expected("an object")),
        (_, Value::Array(_) | Value::Object(_)) => Err(expected("one value")),
        _ => request.set(key, text(value)),
    }
}

/// A value as the command line would have it.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The fields of an object, in their order, also those that are there twice.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        deserializer.deserialize_map(AllFields)
    }
}

struct AllFields;

impl<'de> Visitor<'de> for AllFields {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
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
    use relayout::request::OPTIONS;

    const fn shared_by_threads<T: Send + Sync>() {}
    const _: () = shared_by_threads::<Settings>();

    #[test]
    fn everything_that_can_be_said_is_heard() {
        let settings = Settings::parse(
            r#"{"target": "ort-cpu", "block": 8, "guard": false, "threads": 2, "dims": {"N": 4, "H": "32..512"}, "numerics": "exact",
                "inputs": ["x:NCHW->NHWC"], "outputs": ["y:NCHW->NHWC"], "free_io": true, "price_moves": 3,
                "strict": true, "unproved": "keep-input", "costs": null}"#,
        )
        .unwrap();
        let request = settings.request();
        let options = request.checked_options();
        assert_eq!(options.dims["N"].typical(), 4);
        assert_eq!(options.dims["H"], "32..512".parse().unwrap());
        assert_eq!((options.numerics, options.price_moves, options.free_io), (Numerics::Exact, 3, true));
        assert!(options.strict && request.no_guard);
        assert_eq!(options.unproved, Unproved::KeepInput);
        assert_eq!((options.inputs[0].name(), options.outputs[0].name()), ("x", "y"));
        let target = request.target().unwrap();
        assert_eq!(target.name(), "ort-cpu");
        assert!(target.layouts().contains("NCHW8c"), "{}", target.layouts());
        assert!(target.cost_source().contains("2 threads"), "{}", target.cost_source());
        let described = include_str!("../../targets/src/functions/nhwc.toml");
        let text = serde_json::json!({ "target_text": described }).to_string();
        assert_eq!(Settings::parse(&text).unwrap().request().target().unwrap().name(), "nhwc");
        let device =
            r#"{"for_this_machine": true, "runtime": "1.31.1", "session_providers": ["CUDAExecutionProvider"]}"#;
        assert_eq!(Settings::parse(device).unwrap().request().provider.as_deref(), Some("cuda"));
    }

    #[test]
    fn empty_options_are_the_defaults() {
        let (empty, default) = (Settings::parse("{}").unwrap(), Settings::default());
        assert_eq!(format!("{empty:?}"), format!("{default:?}"));
        assert_eq!(default.request().target().unwrap().name(), "onnx");
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        for (json, named) in [
            ("", "EOF"),
            ("[1]", "options"),
            (r#"{"targt": "onnx"}"#, "targt"),
            (r#"{"target": "tpu"}"#, "tpu"),
            (r#"{"target": 7}"#, "`7`"),
            (r#"{"target": "onnx", "target_text": ""}"#, "exclude"),
            (r#"{"target": "onnx", "target": "nhwc"}"#, "target is set twice"),
            (r#"{"target_text": "nonsense"}"#, "target_text"),
            (r#"{"target": "ort-cpu", "block": 12}"#, "12"),
            (r#"{"block": 8}"#, "ort-cpu"),
            (r#"{"target": "nhwc", "guard": false}"#, "ort-cpu"),
            (r#"{"threads": 2}"#, "ort-cpu"),
            (r#"{"provider": "tpu"}"#, "provider: `tpu`"),
            (r#"{"dims": {"N": 0}}"#, "N: `0`"),
            (r#"{"dims": {"N": true}}"#, "N: `true`"),
            (r#"{"dims": 7}"#, "dims: expected an object"),
            (r#"{"dims": {"N": "2..4"}, "fix_sizes": true}"#, "dims N is a range"),
            (r#"{"numerics": "loose"}"#, "loose"),
            (r#"{"inputs": ["x:NCHW"]}"#, "x:NCHW"),
            (r#"{"inputs": "x:NCHW->NHWC"}"#, "expected an array"),
            (r#"{"outputs": ["y:NCHW->NHWD"]}"#, "y:NCHW->NHWD"),
            (r#"{"price_moves": -1}"#, "-1"),
            (r#"{"unproved": "quiet"}"#, "quiet"),
            (r#"{"tune": true}"#, "the command line or Python"),
        ] {
            let failure = Settings::parse(json).expect_err(json);
            assert_eq!(failure.status, Status::BadOptions, "{json}");
            assert!(failure.text.starts_with("options: ") && failure.text.contains(named), "{json}: {}", failure.text);
        }
        let unread = Settings::parse(r#"{"target": "ort-cpu", "costs": "none.toml"}"#).unwrap_err();
        assert!(unread.status == Status::File && unread.text.contains("none.toml"), "{unread:?}");
    }

    /// Both pages that a C programmer reads: the header, whose text is that of the sources, and docs/c.md.
    #[test]
    fn every_option_is_documented() {
        let header = include_str!("optimize.rs");
        let page = include_str!("../../../docs/c.md");
        // What only tuning has, which C has not.
        let of_tuning = |key: &str| key == "python" || key.starts_with("tune") || key.starts_with("provider_");
        for option in OPTIONS.iter().filter(|option| !of_tuning(option.key)) {
            let name = format!("`{}`", option.key);
            assert!(header.contains(&name), "the header lacks {name}");
            assert!(page.contains(&name), "docs/c.md lacks {name}");
        }
    }

    #[test]
    fn targets_are_listed() {
        let list: Value = serde_json::from_str(&targets().unwrap()).unwrap();
        let names: Vec<&str> = list.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, BUILTIN);
    }
}
