use super::*;
use crate::Error;
use std::path::Path;

/// A request of these options.
fn request(options: &[(&str, &str)]) -> Result<Request, RequestError> {
    let mut request = Request::default();
    options.iter().try_for_each(|(option, value)| request.set(option, value))?;
    Ok(request)
}

/// A value that each option can have.
fn a_value_of(option: &RequestOption) -> &'static str {
    match (option.key, option.takes) {
        (_, Takes::Flag) => "true",
        ("provider", _) => "webgpu@1.27",
        ("allow", _) => "com.microsoft",
        ("block", _) => "8",
        ("machine", _) => "avx2-laptop",
        ("threads" | "price_moves" | "tune_seconds", _) => "2",
        ("numerics", _) => "exact",
        ("runtime", _) => "1.28",
        ("inputs" | "outputs", _) => "x:NCHW->NHWC",
        ("unproved", _) => "fail",
        ("dims", _) => "H=32..512",
        (_, Takes::Table) => "key=value",
        _ => "text",
    }
}

#[test]
fn every_option_can_be_set_and_changes_the_request() {
    let nothing = format!("{:?}", Request { set: BTreeSet::new(), ..Request::default() });
    for option in OPTIONS {
        // A guard is there unless it is left out.
        let value = if option.key == "guard" { "false" } else { a_value_of(option) };
        let mut set = request(&[(option.key, value)]).unwrap_or_else(|e| panic!("{}: {e}", option.key));
        set.set.clear();
        assert_ne!(format!("{set:?}"), nothing, "{}", option.key);
        let again = request(&[(option.key, value), (option.key, value)]);
        assert_eq!(again.is_ok(), option.repeats(), "{}", option.key);
    }
}

#[test]
fn values_are_what_was_said() {
    let set = request(&[
        ("target", "ort-cpu"),
        ("block", "8"),
        ("guard", "false"),
        ("threads", "2"),
        ("dims", "N=4"),
        ("dims", "a=b=32..512"),
        ("numerics", "exact"),
        ("inputs", "x:NCHW->NHWC"),
        ("outputs", "y:NCHW->NHWC"),
        ("free_io", "true"),
        ("price_moves", "3"),
        ("strict", "true"),
        ("unproved", "keep-input"),
    ]);
    let set = set.unwrap();
    let options = set.checked_options();
    assert_eq!(options.dims["N"], Size::of(4));
    assert_eq!(options.dims["a=b"], "32..512".parse().unwrap());
    assert_eq!((options.numerics, options.price_moves, options.free_io), (Numerics::Exact, 3, true));
    assert_eq!((options.strict, options.unproved), (true, Unproved::KeepInput));
    assert_eq!((options.inputs[0].name(), options.outputs[0].name()), ("x", "y"));
    let target = set.target().unwrap();
    assert_eq!(target.name(), "ort-cpu");
    assert!(target.layouts().contains("NCHW8c") && target.cost_source().contains("2 threads"), "{}", target.layouts());
    assert_eq!(set.ort_cpu().unwrap().unwrap().block(), Block::B8);
    assert_eq!(request(&[("provider", "webgpu")]).unwrap().target().unwrap().name(), "ort-nhwc");
    let described = include_str!("../../../targets/src/functions/nhwc.toml");
    assert_eq!(request(&[("target_text", described)]).unwrap().target().unwrap().name(), "nhwc");
}

#[test]
fn a_request_of_nothing_is_the_defaults() {
    let nothing = Request::default();
    assert_eq!(nothing.target().unwrap().name(), "onnx");
    assert_eq!(nothing.checked_options().unproved, Unproved::USUAL);
    assert!(nothing.ort_cpu().unwrap().is_none());
    assert!(matches!(nothing.run(), Err(Error::Request(RequestError::NoModel))));
}

#[test]
fn a_request_is_done_as_a_whole() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli/relu.onnx");
    let folder = tempfile::tempdir().unwrap();
    let [proof, certificate] = ["proof.json", "certificate.json"].map(|name| folder.path().join(name));
    let mut from_file = Request::for_file(&testdata);
    from_file.for_this_machine = true;
    (from_file.proof, from_file.certificate) = (Some(proof.clone()), Some(certificate.clone()));
    let made = from_file.run().unwrap();
    assert!(made.report().changed && made.report().for_this_machine.as_ref().unwrap().target == "onnx");
    assert!(std::fs::read_to_string(proof).unwrap().starts_with("{\"version\":"));
    assert!(std::fs::read_to_string(certificate).unwrap().contains("\"target\": \"onnx\""));
    let from_bytes = Request::for_bytes(std::fs::read(&testdata).unwrap()).run().unwrap();
    assert_eq!(from_bytes.to_bytes().unwrap(), made.to_bytes().unwrap());
    let mut tuned = Request::for_file(&testdata);
    tuned.tune = true;
    assert!(matches!(tuned.run(), Err(Error::Request(RequestError::Untuned))));
}

#[test]
fn what_cannot_be_had_is_named() {
    for (options, words) in [
        (&[("targt", "onnx")][..], "there is no option `targt`; the options are --target, --target-file"),
        (&[("target", "onnx"), ("target", "nhwc")], "--target is set twice"),
        (&[("target", "tpu")], "there is no target `tpu`"),
        (&[("target", "onnx"), ("target_file", "t.toml")], "--target and --target-file exclude each other"),
        (&[("target_text", "nonsense")], "target_text"),
        (&[("target_file", "none.toml")], "target file `none.toml`: cannot read none.toml"),
        (&[("provider", "tpu")], "--provider: `tpu`: there is no provider of this name; the known ones are qnn"),
        (&[("provider", "qnn"), ("target", "nhwc")], "--provider is an option of target `ort-nhwc`, not of `nhwc`"),
        (
            &[("allow", "com.example")],
            "--allow: `com.example` is not com.microsoft, the only domain that can be allowed",
        ),
        (&[("allow", "com.microsoft")], "--allow is an option of target `ort-nhwc`, not of `onnx`"),
        (
            &[("allow", "com.microsoft"), ("provider", "webgpu")],
            "--allow: there is no op of com.microsoft that files for",
        ),
        (&[("allow", "com.microsoft"), ("target", "ort-nhwc")], "for provider `qnn` can have"),
        (&[("runtime", "1.28")], "--runtime: `1.28` names no runtime, as target `onnx` needs it; say onnxruntime-1.28"),
        (&[("runtime", "onnx")], "--runtime: expected onnxruntime, onnxruntime-1.30 or a version such as 1.30"),
        (&[("runtime", "onnxruntime_1.28")], "--runtime: expected onnxruntime or onnxruntime-1.30, found"),
        (&[("runtime", "onnxruntime-1.9")], "--runtime: files are written for ONNX Runtime 1.19 and newer"),
        (&[("target", "nhwc"), ("runtime", "onnxruntime")], "--runtime is an option of targets `onnx` and `ort-cpu`"),
        (&[("provider", "qnn"), ("runtime", "onnxruntime")], "--runtime is an option of targets `onnx` and `ort-cpu`"),
        (
            &[("runtime", "onnxruntime"), ("guard", "false")],
            "--no-guard is an option of target `ort-cpu`, not of `onnx`",
        ),
        (&[("target", "ort-cpu"), ("runtime", "1.9")], "--runtime: files are written for ONNX Runtime 1.19 and newer"),
        (&[("target", "ort-cpu"), ("block", "12")], "--block: `12` is neither 8 nor 16"),
        (&[("block", "8")], "--block is an option of target `ort-cpu`, and of `onnx` with --runtime"),
        (&[("provider", "qnn"), ("guard", "false")], "--no-guard is an option of target `ort-cpu`, not of `ort-nhwc`"),
        (&[("threads", "2")], "target `ort-cpu` and of `--tune`, and of `onnx` with --runtime onnxruntime"),
        (&[("threads", "-1")], "--threads: `-1` is not a whole number between 0 and 1024"),
        (
            &[("costs", "c.toml")],
            "--costs is an option of targets `ort-cpu`, `ort-nhwc` and `cuda-tensorcore`, and of `onnx` with --runtime onnxruntime",
        ),
        (&[("target", "ort-cpu"), ("costs", "none.toml")], "cannot read table of costs `none.toml`: "),
        (&[("dims", "N=0")], "--dim: N: `0` is not a size"),
        (&[("dims", "N")], "--dim: N: is not NAME=SIZE"),
        (&[("dims", "N=2..4"), ("fix_sizes", "true")], "--fix-sizes writes numbers, and --dim N is a range"),
        (&[("fix_sizes", "true"), ("proof", "p.json")], "--fix-sizes and --proof exclude each other"),
        (&[("numerics", "loose")], "--numerics: `loose` is neither `exact` nor `reassociate`"),
        (&[("inputs", "x:NCHW")], "x:NCHW"),
        (&[("strict", "yes")], "--strict: `yes` is neither true nor false"),
        (&[("unproved", "quiet")], "--unproved: `quiet` is none of"),
        (&[("tune_seconds", "NaN")], "--tune-seconds: `NaN` is not between 0 and 86400"),
        (&[("provider_options", "backend")], "--provider-option: it has no KEY=VALUE"),
    ] {
        let wrong = request(options).and_then(|request| request.target().map(drop)).expect_err(words);
        let text = wrong.spelled(Spelling::Words);
        assert!(text.contains(words), "{options:?}: {text}");
        assert!(!wrong.to_string().contains("--"), "{wrong}");
    }
}

#[test]
fn a_named_runtime_prices_standard_files_and_its_release_is_that_of_blocks() {
    let source = |options: &[(&str, &str)]| {
        let target = request(options).unwrap().target().unwrap_or_else(|e| panic!("{options:?}: {e}"));
        (target.name().to_owned(), target.cost_source().to_owned())
    };
    let (name, costs) = source(&[("runtime", "onnxruntime"), ("block", "8"), ("threads", "2")]);
    assert!(name == "onnx" && costs.starts_with("for ONNX Runtime on hosts with blocks of 8: measured"), "{costs}");
    let (name, costs) = source(&[("target", "onnx"), ("runtime", "onnxruntime-1.28.1"), ("block", "16")]);
    assert!(name == "onnx" && costs.starts_with("for ONNX Runtime 1.28 on hosts with blocks of 16: "), "{costs}");
    let (_, neutral) = source(&[]);
    assert!(neutral.contains("a model, not a measurement"), "{neutral}");
    // What a caller found of the machine names no runtime.
    let (_, found) = source(&[("for_this_machine", "true"), ("runtime", "1.31.1")]);
    assert_eq!(found, neutral);
    for runtime in ["onnxruntime", "onnxruntime-1.28", "1.28"] {
        assert_eq!(source(&[("target", "ort-cpu"), ("runtime", runtime)]).0, "ort-cpu");
    }
}

#[test]
fn what_cannot_be_tuned_is_named() {
    for (options, words) in [
        (&[("provider_library", "q.so")][..], "--provider-library says what --tune runs models on; add --tune"),
        (
            &[("provider_options", "a=b")],
            "--provider-option says what a provider is told; name its plugin with --provider-library, or a Python",
        ),
        (&[("python", "python3")], "--python says what --tune runs models on; add --tune"),
        (&[("tune", "true"), ("python", "p"), ("provider_library", "q.so")], "exclude each other"),
        (&[("tune", "true"), ("python", "p")], "--python is an option of target `ort-nhwc`, not of `onnx`"),
        (&[("tune", "true"), ("certificate", "c.json")], "leave out one of --certificate and --tune"),
        (&[("tune", "true"), ("target", "nhwc")], "not `nhwc`: add --target and one of them"),
        (&[("tune", "true"), ("provider", "qnn")], "add --provider-library with the plugin library"),
        (&[("tune", "true"), ("target", "ort-cpu"), ("provider_library", "q.so")], "leave out --provider-library"),
    ] {
        let wrong = request(options).unwrap().check_tuning().expect_err(words);
        let text = wrong.spelled(Spelling::Words);
        assert!(text.contains(words), "{options:?}: {text}");
    }
    let device = [("tune", "true"), ("provider", "cuda"), ("python", "p"), ("provider_options", "use_tf32=0")];
    assert!(request(&device).unwrap().check_tuning().is_ok());
    let tuned = request(&[("tune", "true"), ("target", "ort-cpu"), ("tune_seconds", "0.5")]).unwrap();
    assert!(tuned.check_tuning().is_ok() && tuned.tune_seconds == Duration::from_millis(500));
}

#[test]
fn what_was_asked_for_stays_and_the_machine_decides_the_rest() {
    let chosen = |options: &[(&str, &str)]| {
        let mut set = request(options).unwrap();
        set.fit(&set.equipment());
        set
    };
    let standard = chosen(&[("for_this_machine", "true")]);
    assert_eq!(standard.target.as_deref(), Some("onnx"));
    assert!(standard.options().for_this_machine.unwrap().why[0].contains("not found"));
    let device = [("for_this_machine", "true"), ("runtime", "1.31.1"), ("session_providers", "CUDAExecutionProvider")];
    assert_eq!(chosen(&device).provider.as_deref(), Some("cuda"));
    let asked = chosen(&[("for_this_machine", "true"), ("target", "ort-cpu"), ("threads", "3"), ("block", "8")]);
    assert_eq!((asked.target_name().as_str(), asked.threads, asked.block), ("ort-cpu", Some(3), Some(Block::B8)));
    // A machine stays as well, also where it has no meaning, which is told.
    let own = chosen(&[("for_this_machine", "true"), ("machine", "avx2-laptop")]);
    assert_eq!((own.machine.as_deref(), own.target_name().as_str()), (Some("avx2-laptop"), "onnx"));
    assert!(matches!(own.target(), Err(RequestError::NotOfTarget { option: "machine", .. })));
    let own = chosen(&[("for_this_machine", "true"), ("target", "ort-cpu"), ("machine", "avx2-laptop")]);
    assert_eq!((own.machine.as_deref(), own.block), (Some("avx2-laptop"), Some(Block::B8)));
    let older = chosen(&[("for_this_machine", "true"), ("target", "ort-cpu"), ("runtime", "1.28.1")]);
    let fits = older.chosen.as_ref().unwrap();
    assert!(fits.words().join(" ").ends_with(" --runtime 1.28"), "{fits:?}");
    assert_eq!(older.runtime.as_deref(), Some("1.28.1"));
    assert!(
        fits.why.iter().any(|why| why.contains("runtime 1.28: newer releases have kernels that it lacks")),
        "{fits:?}"
    );
    let newer = chosen(&[("for_this_machine", "true"), ("target", "ort-cpu"), ("runtime", "1.32.0")]).chosen.unwrap();
    assert!(
        !newer.words().contains(&"--runtime".to_owned()) && newer.runtime.as_deref() == Some("1.32.0"),
        "{newer:?}"
    );
    let unknown = chosen(&[("for_this_machine", "true"), ("target", "ort-cpu"), ("runtime", "of an unknown version")]);
    assert!(unknown.runtime.is_none() && unknown.target().is_ok());
    let own = chosen(&[("for_this_machine", "true"), ("target_file", "own.toml")]);
    assert!(own.chosen.is_none() && own.target_file.as_deref() == Some(Path::new("own.toml")));
    assert!(chosen(&[]).chosen.is_none());
    // Chosen once: a second look takes nothing for asked that was chosen.
    let mut again = asked.clone();
    again.fit(&Equipment::default());
    assert_eq!(format!("{again:?}"), format!("{asked:?}"));
}
