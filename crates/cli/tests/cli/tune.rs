//! `relayout optimize --tune`: times of kernels that are kept, refused or set aside, and results that are never slower.
#![cfg(target_arch = "x86_64")]

use crate::common::{Run, command, finish, folder, listing, relayout, str, with_stdin};
use std::fs;
use std::path::{Path, PathBuf};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Small, so that it does not run for long.
fn demo() -> PathBuf {
    testdata("verify/conv_around.onnx")
}

fn tuned(out: &Path, cache: &Path, more: &[&str]) -> Run {
    let model = demo();
    let all = ["optimize", str(&model), "--target", "ort-cpu", "--tune", "-o", str(out), "--tune-cache", str(cache)];
    relayout(all.iter().chain(more))
}

/// The object about tuning that is for programs.
fn tuning(run: &Run) -> serde_json::Value {
    let told: serde_json::Value = serde_json::from_str(run.fine()).unwrap();
    told["models"][0]["tuning"].clone()
}

#[test]
fn times_are_kept_and_the_same_times_give_the_same_bytes() {
    let dir = folder(&[]);
    let (cache, a, b) = (dir.path().join("times.json"), dir.path().join("a.onnx"), dir.path().join("b.onnx"));
    let first = tuning(&tuned(&a, &cache, &["--tune-seconds", "1", "--json"]));
    assert!(first["timed"].as_u64() > Some(0) && first["known"] == 0, "{first}");
    let second = tuning(&tuned(&a, &cache, &["--tune-seconds", "0", "--json"]));
    assert_eq!((&second["timed"], &second["known"]), (&0.into(), &first["timed"]), "{second}");
    let third = tuning(&tuned(&b, &cache, &["--tune-seconds", "0", "--json"]));
    assert_eq!(second, third, "what was compared is not compared again");
    assert!(fs::read(&a).unwrap() == fs::read(&b).unwrap(), "the same times give the same bytes");
    for of in [&first, &second, &third] {
        let ratio = &of["times"]["ratio_between"][1];
        assert!(of["times"].is_null() || ratio.as_f64() >= Some(1.0), "the result is not slower: {of}");
    }
    relayout(["verify", str(&demo()), str(&b)]).fine();
    assert_eq!(listing(dir.path()), ["a.onnx", "b.onnx", "times.json"]);
}

#[test]
fn what_is_as_fast_as_it_gets_comes_out_unchanged() {
    let dir = folder(&["relu"]);
    let (model, out) = (dir.path().join("relu.onnx"), dir.path().join("out.onnx"));
    fs::copy(testdata("verify/conv.onnx"), &model).unwrap();
    let cache = dir.path().join("times.json");
    let args = ["optimize", str(&model), "--target", "ort-cpu", "--tune", "-o", str(&out), "--tune-cache", str(&cache)];
    let run = relayout(args);
    // A convolution of an image of 8 x 8 takes less than a call of the runtime, so chance may decide.
    if run.fine().contains("no result ran as fast") {
        assert!(fs::read(&model).unwrap() == fs::read(&out).unwrap());
    }
    relayout(["verify", str(&model), str(&out)]).fine();
}

#[test]
fn a_model_that_nothing_can_be_gained_of_is_not_run() {
    let dir = folder(&["nothing"]);
    let [model, out, cache] = ["nothing.onnx", "out.onnx", "times.json"].map(|name| dir.path().join(name));
    let args = ["optimize", str(&model), "--target", "ort-cpu", "--tune", "-o", str(&out), "--tune-cache", str(&cache)];
    let text = relayout(args).fine().to_owned();
    assert!(text.contains("tuned: nothing gains at these times, so the model stays as it was"), "{text}");
    assert!(fs::read(&model).unwrap() == fs::read(&out).unwrap());
}

#[test]
fn results_in_standard_onnx_are_held_against_the_model_too() {
    let dir = folder(&[]);
    let [out, cache] = ["out.onnx", "times.json"].map(|name| dir.path().join(name));
    let model = testdata("demo/tf_unet.onnx");
    let run = || {
        let args = ["optimize", str(&model), "--tune", "-o", str(&out), "--tune-cache", str(&cache), "--json"];
        tuning(&relayout(args))
    };
    let first = run();
    let of = |name: &str| first[name].as_u64();
    assert_eq!([of("timed"), of("known"), of("left")], [Some(0); 3], "its costs stay what they are: {first}");
    let ratio = &first["times"]["ratio_between"][1];
    assert!(if ratio.is_null() { first["slower"] == true } else { ratio.as_f64() >= Some(1.0) }, "{first}");
    assert_eq!(first, run(), "what was compared is not compared again");
    relayout(["verify", str(&model), str(&out)]).fine();
    assert_eq!(listing(dir.path()), ["out.onnx", "times.json"]);
}

#[test]
fn a_model_may_come_from_stdin() {
    let dir = folder(&[]);
    let (out, cache) = (dir.path().join("out.onnx"), dir.path().join("times.json"));
    let args = ["optimize", "-", "--target", "ort-cpu", "--tune", "--tune-seconds", "1", "-o", str(&out)];
    let bytes = fs::read(demo()).unwrap();
    let text = with_stdin(&[&args[..], &["--tune-cache", str(&cache)]].concat(), &bytes).fine().to_owned();
    assert!(text.contains("tuned: "), "{text}");
    relayout(["verify", str(&demo()), str(&out)]).fine();
}

#[test]
fn a_cache_never_takes_the_place_of_another_file() {
    let dir = folder(&["conv"]);
    let [model, out, notes] = ["conv.onnx", "out.onnx", "notes.txt"].map(|name| dir.path().join(name));
    let bytes = fs::read(&model).unwrap();
    let run = |cache: &Path| {
        let args = ["optimize", str(&model), "--target", "ort-cpu", "--tune", "-o", str(&out)];
        relayout(args.iter().chain(&["--tune-cache", str(cache)]))
    };
    let line = run(&model).refused(2).to_owned();
    assert!(line.contains("--tune-cache") && line.contains("would replace the model"), "{line}");
    let line = run(&out).refused(2).to_owned();
    assert!(line.contains("the result and --tune-cache would both be written to"), "{line}");
    fs::write(&notes, "times of trains").unwrap();
    let line = run(&notes).refused(1).to_owned();
    assert!(line.contains("notes.txt is not a file with times of kernels; name another one"), "{line}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "times of trains");
    assert!(fs::read(&model).unwrap() == bytes);
    assert_eq!(listing(dir.path()), ["conv.onnx", "notes.txt"]);
}

#[test]
fn times_of_another_host_are_refused_and_damaged_ones_set_aside() {
    let dir = folder(&[]);
    let (cache, out) = (dir.path().join("times.json"), dir.path().join("out.onnx"));
    tuned(&out, &cache, &["--tune-seconds", "1"]).fine();
    let text = fs::read_to_string(&cache).unwrap();
    for (from, to) in
        [("\"ONNX Runtime ", "\"ONNX Runtime 9"), ("\"threads\": 1", "\"threads\": 7"), ("x86_64", "sparc")]
    {
        assert!(text.contains(from), "{text}");
        fs::write(&cache, text.replacen(from, to, 1)).unwrap();
        let run = tuned(&out, &cache, &[]);
        let line = run.refused(1);
        assert!(
            line.contains("times.json") && line.contains("another host") && line.contains("name another file"),
            "{line}"
        );
    }
    for damaged in [&text[..text.len() / 2], "", "{}", &text.replacen("\"format\": 2", "\"format\": 0", 1)] {
        fs::write(&cache, damaged).unwrap();
        let run = tuned(&out, &cache, &["--tune-seconds", "0"]);
        assert!(run.code == 0 && run.err.contains("was damaged, or of another version, and is now"), "{run:?}");
        assert_eq!(fs::read_to_string(dir.path().join("times.json.damaged")).unwrap(), damaged);
        assert!(fs::read_to_string(&cache).unwrap().contains("\"ns\": {}"), "no time was taken over");
    }
}

#[test]
fn what_fits_this_machine_is_timed_on_it_unless_something_else_asked_for_goes_with_no_times() {
    let dir = folder(&[]);
    let (model, out, cache) = (demo(), dir.path().join("out.onnx"), dir.path().join("times.json"));
    let call = |more: &[&str]| {
        let args = ["optimize", str(&model), "-o", str(&out), "--for-this-machine", "--json"];
        let run = relayout(args.iter().chain(more));
        assert_eq!(run.code, 0, "{}", run.err);
        let told: serde_json::Value = serde_json::from_str(run.text()).unwrap();
        (told["models"][0]["tuning"].clone(), run.err)
    };
    let (timed, said) = call(&["--tune-cache", str(&cache), "--tune-seconds", "1"]);
    assert!(timed["timed"].as_u64() > Some(0), "{timed}");
    assert!(said.contains("timed here, for at most 1 s (--no-tune leaves that out)"), "{said}");
    relayout(["verify", str(&model), str(&out)]).fine();
    let certificate = dir.path().join("c.json");
    for more in [&["--no-tune"][..], &["--certificate", str(&certificate)], &["--target", "onnx"]] {
        let (timed, said) = call(more);
        assert!(timed.is_null() && !said.contains("timed"), "{said}");
    }
    // What can't be timed here is decided by the table.
    let unread = dir.path().join("no-folder/times.json");
    let (timed, said) = call(&["--tune-cache", str(&unread)]);
    assert!(timed.is_null() && said.contains("not timed: ") && said.contains("no-folder"), "{said}");
    let args = ["optimize", str(&model), "-o", str(&out), "--target", "ort-cpu", "--no-tune"];
    assert!(relayout(args).refused(2).contains("--for-this-machine"));
}

#[test]
fn what_cannot_be_tuned_is_said_before_anything_is_timed() {
    let dir = folder(&["relu", "conv"]);
    let (model, out) = (dir.path().join("relu.onnx"), dir.path().join("out.onnx"));
    let refused = |args: &[&str], why: &str| {
        let run = relayout(["optimize", str(&model), "-o", str(&out)].iter().chain(args));
        let line = run.refused(2).to_owned();
        assert!(line.contains(why), "{line}");
    };
    for target in ["nhwc", "cuda-tensorcore"] {
        refused(&["--tune", "--target", target], &format!("not `{target}`: add --target and one of them"));
    }
    refused(&["--tune", "--provider", "qnn"], "add --provider-library");
    refused(&["--tune", "--target", "ort-nhwc"], "add --provider-library");
    refused(&["--tune", "--target", "ort-cpu", "--provider-library", "p.so"], "leave out --provider-library");
    refused(&["--provider-library", "p.so"], "add --tune");
    refused(&["--tune", "--provider-option", "a=b"], "--provider-library");
    refused(&["--tune", "--provider-library", "p.so", "--provider-option", "ab"], "KEY=VALUE");
    refused(&["--tune-seconds", "3"], "--tune");
    refused(
        &["--threads", "2"],
        "--threads is an option of target `ort-cpu` and of `--tune`, and of `onnx` with --runtime onnxruntime",
    );
    refused(&["--threads", "2", "--provider", "qnn"], "not of `ort-nhwc`");
    refused(&["--target", "ort-cpu", "--tune", "--certificate", "c.json"], "--certificate");
    let two =
        relayout(["optimize", str(dir.path()), "-o", str(&dir.path().join("o")), "--target", "ort-cpu", "--tune"]);
    assert!(two.refused(2).contains("one after the other"), "{two:?}");
    let mut command = command();
    let args = ["optimize", str(&model), "-o", str(&out), "--target", "ort-cpu", "--tune"];
    let none = finish(command.args(args).env("ORT_DYLIB_PATH", "no/such/library.so"));
    assert!(none.refused(1).contains("no ONNX Runtime library"), "{none:?}");
    assert!(!out.exists());
}

#[test]
fn a_provider_that_can_not_run_here_is_named_and_nothing_is_written() {
    let dir = folder(&["relu"]);
    let [model, out, cache] = ["relu.onnx", "out.onnx", "times.json"].map(|name| dir.path().join(name));
    for library in ["no/such/plugin.so", str(&model)] {
        let args =
            ["optimize", str(&model), "-o", str(&out), "--provider", "qnn", "--tune", "--tune-cache", str(&cache)];
        let run = relayout(args.iter().chain(&["--provider-library", library]));
        let line = run.refused(1);
        assert!(line.contains(&format!("execution provider of `{library}`")), "{line}");
        assert!(!out.exists());
    }
}

#[test]
fn a_table_is_held_against_models() {
    let dir = folder(&[]);
    let (model, cache) = (demo(), dir.path().join("times.json"));
    let check = |more: &[&str]| {
        let args = ["calibrate", "--check", str(&model), "--tune-cache", str(&cache)];
        relayout(args.iter().chain(more)).fine().to_owned()
    };
    let told: serde_json::Value = serde_json::from_str(&check(&["--tune-seconds", "9", "--json"])).unwrap();
    let found = &told["models"][0]["check"];
    assert!(found["timed"].as_u64() > Some(0) && found["left"] == 0, "{told}");
    let pairs = found["kernels"]["comparisons"].as_array().unwrap();
    assert!(!pairs.is_empty(), "{told}");
    for pair in pairs {
        let times = ["measured_ns", "predicted_ns"].iter().flat_map(|of| pair[of].as_array().unwrap());
        assert!(times.clone().count() == 4 && times.clone().all(|ns| ns.as_u64() > Some(0)), "{pair}");
    }
    assert!(found["regret"].is_null() || found["regret"]["ratio"].as_f64() > Some(0.0), "{told}");
    let text = check(&["--tune-seconds", "0"]);
    assert!(text.contains(&format!("kernels: {} pairs, ", pairs.len())) && text.contains("regret in time "), "{text}");
    assert!(text.contains("; 0 kernels and moves timed, "), "{text}");
    let run = relayout(["calibrate", "--check", "no.onnx", "--tune-cache", str(&cache)]);
    assert!(run.refused(1).contains("no.onnx"), "{run:?}");
}

#[cfg(unix)]
#[test]
fn stopped_while_it_times_it_keeps_what_it_has_and_writes_no_model() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::time::{Duration, Instant};
    let dir = folder(&[]);
    let (cache, out) = (dir.path().join("times.json"), dir.path().join("out.onnx"));
    let args = ["--target", "ort-cpu", "--tune", "-o", str(&out), "--tune-cache", str(&cache)];
    let mut child = command().args(["optimize", str(&testdata("demo/tf_unet.onnx"))]).args(args).spawn().unwrap();
    let begun = Instant::now();
    while !cache.exists() {
        assert!(begun.elapsed() < Duration::from_mins(2) && child.try_wait().unwrap().is_none(), "nothing was timed");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::TERM).unwrap();
    assert!(!child.wait().unwrap().success());
    assert_eq!(listing(dir.path()), ["times.json"]);
    let kept: serde_json::Value = serde_json::from_str(&fs::read_to_string(&cache).unwrap()).unwrap();
    assert!(kept["ns"].as_object().is_some_and(|ns| !ns.is_empty()), "{kept}");
    tuned(&out, &cache, &["--tune-seconds", "0"]).fine();
}
