//! The commands, when all goes well. `verify` needs ONNX Runtime: `tools/setup` fetches it, or `ORT_DYLIB_PATH` names it.

use crate::common::{self, finish, folder, listing, model, moves, ops, relayout, str, with_stdin};
use relayout::Model;
use serde_json::Value;
use std::fs;

#[test]
fn optimize_writes_a_file_and_says_in_one_line_what_it_gained() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let run = relayout(["optimize", str(&model("relu")), "-o", str(&out)]);
    assert_eq!(run.fine().lines().count(), 1);
    assert!(run.fine().starts_with("moves 2 -> 0, "), "{run:?}");
    assert_eq!(ops(&out), ["Relu"]);
    assert_eq!(listing(dir.path()), ["out.onnx"]);
}

#[test]
fn a_file_and_a_stream_get_the_same_bytes() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    for name in ["relu", "nothing", "conv"] {
        relayout(["optimize", str(&model(name)), "-o", str(&out)]).fine();
        let expected = fs::read(&out).unwrap();
        let to_stdout = relayout(["optimize", str(&model(name)), "-o", "-"]);
        assert_eq!((to_stdout.code, to_stdout.out == expected, to_stdout.err.lines().count()), (0, true, 1), "{name}");
        let from_stdin = with_stdin(&["optimize", "-", "-o", "-"], &fs::read(model(name)).unwrap());
        assert_eq!((from_stdin.code, from_stdin.out == expected), (0, true), "{name}");
    }
}

#[test]
fn a_second_run_changes_nothing() {
    let dir = folder(&[]);
    let (once, twice) = (dir.path().join("once.onnx"), dir.path().join("twice.onnx"));
    for name in ["relu", "conv", "custom", "branches", "symbolic"] {
        relayout(["optimize", str(&model(name)), "-o", str(&once)]).fine();
        let run = relayout(["optimize", str(&once), "-o", str(&twice)]);
        assert!(run.fine().starts_with("unchanged"), "{name}: {run:?}");
        assert_eq!(fs::read(&once).unwrap(), fs::read(&twice).unwrap(), "{name}");
    }
}

#[test]
fn a_model_with_nothing_to_gain_is_copied_byte_for_byte() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    for name in ["nothing", "custom_between", "opset99"] {
        let run = relayout(["optimize", str(&model(name)), "-o", str(&out)]);
        assert!(run.fine().starts_with("unchanged: "), "{run:?}");
        assert_eq!(fs::read(&out).unwrap(), fs::read(model(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_model_can_be_optimized_in_its_place() {
    let dir = folder(&["conv", "nothing"]);
    for (name, before, after) in [("conv", 3, 2), ("nothing", 0, 0)] {
        let path = dir.path().join(format!("{name}.onnx"));
        assert_eq!(moves(&path), before);
        relayout(["optimize", str(&path), "-o", str(&path)]).fine();
        assert_eq!(moves(&path), after);
        finish(common::command().args(["verify", str(&model(name)), str(&path)])).fine();
    }
    assert_eq!(listing(dir.path()), ["conv.onnx", "nothing.onnx"]);
}

#[test]
fn the_report_has_its_fields_and_goes_where_it_is_told() {
    let dir = folder(&[]);
    let (out, report) = (dir.path().join("out.onnx"), dir.path().join("report.json"));
    relayout(["optimize", str(&model("symbolic")), "-o", str(&out), "--dim", "H=10", "--report", str(&report)]).fine();
    let written: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(written["schema"], 1);
    assert_eq!((&written["target"], &written["changed"]), (&"onnx".into(), &true.into()));
    assert_eq!((&written["before"]["nodes"], &written["after"]["nodes"]), (&2.into(), &0.into()));
    assert_eq!(
        (&written["hints"]["H"], &written["hints"]["N"], &written["hints"]["W"]),
        (&10.into(), &1.into(), &64.into())
    );
    for field in ["cost_source", "folded", "graphs", "notes"] {
        assert!(!written[field].is_null(), "{field}");
    }
    // On stdout it is alone.
    let run = relayout(["optimize", str(&model("symbolic")), "-o", str(&out), "--dim", "H=10", "--report", "-"]);
    assert_eq!((run.code, run.err.lines().count()), (0, 1));
    assert_eq!(serde_json::from_str::<Value>(run.text()).unwrap(), written);
    assert_eq!(listing(dir.path()), ["out.onnx", "report.json"]);
}

#[test]
fn print_after_shows_the_graph_on_stderr() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let run = relayout(["optimize", str(&model("relu")), "-o", str(&out), "--print-after", "canonicalize"]);
    assert_eq!((run.code, run.text().lines().count()), (0, 1));
    assert!(run.err.starts_with("graph g") && run.err.contains("%x: f32[1,4,6,6]"), "{}", run.err);
}

#[test]
fn optimize_can_verify_before_it_writes() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    for name in ["relu", "conv", "ir3", "functions", "branches", "symbolic"] {
        relayout(["optimize", str(&model(name)), "-o", str(&out), "--verify"]).fine();
    }
    let run = with_stdin(&["optimize", "-", "-o", str(&out), "--verify"], &fs::read(model("conv")).unwrap());
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn print_gives_text_and_json() {
    let text = relayout(["print", str(&model("relu"))]);
    assert!(text.fine().starts_with("graph g") && text.fine().contains("Relu(%a)"), "{text:?}");
    let json: Value = serde_json::from_str(relayout(["print", "--json", str(&model("relu"))]).fine()).unwrap();
    assert!(json.is_object());
    let piped = with_stdin(&["print", "-"], &fs::read(model("relu")).unwrap());
    assert_eq!(piped.fine(), text.fine());
}

#[test]
fn print_draws_the_graph_as_it_is_read_and_as_a_pass_leaves_it() {
    let read = relayout(["print", "--dot", str(&model("conv"))]);
    let coloured = |text: &str| text.lines().filter(|line| line.contains("fillcolor")).count();
    assert!(read.fine().starts_with("digraph \"") && read.fine().contains("Conv"), "{read:?}");
    assert_eq!(coloured(read.fine()), 3);
    let decided = ["--target", "nhwc", "--after", "materialize"];
    let drawn = finish(common::command().args(["print", "--dot", str(&model("conv"))]).args(decided));
    assert!(drawn.fine().contains("@NHWC") && coloured(drawn.fine()) < 3, "{drawn:?}");
    let text = finish(common::command().args(["print", str(&model("conv"))]).args(decided));
    assert!(text.fine().contains("@NHWC") && !text.fine().contains("digraph"), "{text:?}");
    let bodies = relayout(["print", "--dot", str(&model("branches"))]);
    assert_eq!(bodies.fine().matches("digraph").count(), 3, "a body is a graph of its own: {bodies:?}");
    assert!(relayout(["print", str(&model("conv")), "--target", "nhwc"]).refused(2).contains("--after PASS"));
    assert!(relayout(["print", str(&model("conv")), "--after", "nothing"]).refused(2).contains("materialize"));
}

#[test]
fn explain_draws_the_network_of_the_decision() {
    let drawn = relayout(["explain", str(&model("conv")), "--network-dot", "-"]);
    assert!(drawn.fine().starts_with("digraph {") && drawn.fine().contains("layouts\", shape = box"), "{drawn:?}");
    let dir = folder(&[]);
    let file = dir.path().join("network.dot");
    relayout(["explain", str(&model("conv")), "--network-dot", str(&file)]).fine();
    assert_eq!(fs::read_to_string(&file).unwrap(), drawn.fine());
}

#[test]
fn explain_says_why_moves_stay() {
    let text = relayout(["explain", str(&model("custom_between"))]);
    assert!(text.fine().contains("Mystery"), "{text:?}");
    let json: Value = serde_json::from_str(relayout(["explain", "--json", str(&model("relu"))]).fine()).unwrap();
    assert_eq!(json["schema"], 1);
}

#[test]
fn explain_lists_the_dearest_moves_and_counts_the_others() {
    let told = |most: &str| relayout(["explain", str(&model("moves")), "--most", most]).fine().to_owned();
    let listed = |text: &str| text.lines().filter(|line| line.starts_with("  `")).count();
    assert_eq!(
        [told("0"), told("10"), told("1")].map(|text| listed(&text)),
        [3, 3, 2],
        "one of two, and one in a body"
    );
    assert!(told("1").contains("  and 1 more, 100.4 kB, each"), "{}", told("1"));
}

#[test]
fn an_opset_that_is_too_new_has_a_word() {
    for command in ["explain", "audit"] {
        let run = relayout([command, str(&model("opset99"))]);
        assert!(run.fine().contains("opset 99, newer than"), "{command}: {run:?}");
    }
    // What it prints is the graph and nothing else.
    let run = relayout(["print", str(&model("opset99"))]);
    assert!(run.code == 0 && run.err.contains("opset 99, newer than"), "{run:?}");
    assert!(!run.text().contains("newer than"), "{run:?}");
}

#[test]
fn targets_are_listed_as_text_and_json() {
    let text = relayout(["targets"]);
    assert!(text.fine().starts_with("onnx\n"), "{text:?}");
    let json: Value = serde_json::from_str(relayout(["targets", "--json"]).fine()).unwrap();
    let names: Vec<&str> = json.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"onnx") && names.iter().all(|name| text.text().contains(name)), "{names:?}");
}

#[test]
fn verify_tells_models_that_do_the_same_from_those_that_do_not() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    relayout(["optimize", str(&model("relu")), "-o", str(&out)]).fine();
    relayout(["verify", str(&model("relu")), str(&out)]).fine();
    relayout(["verify", "--exact", "--rounds", "3", str(&model("relu")), str(&out)]).fine();
    let json: Value =
        serde_json::from_str(relayout(["verify", "--json", str(&model("relu")), str(&out)]).fine()).unwrap();
    assert_eq!(json["exact"], true);

    // A size of a dim means what it does where a model is optimized: of a range it is the middle.
    let symbolic = model("symbolic");
    let at = |size: &str| relayout(["verify", str(&symbolic), str(&symbolic), "--dim", size, "--dim", "W=6"]);
    assert_eq!(at("H=4..12").fine(), at("H=8").fine());
    assert!(at("H=0").refused(2).contains("expected a positive integer"));

    // One without a symbol is called by its place, and a name that there is not is said with those that there are.
    assert_eq!(at("x.2=8").fine(), at("H=8").fine());
    let unknown = at("depth=8");
    assert!(unknown.code == 1 && unknown.err.contains("its open dimensions are: H, N, W"), "{unknown:?}");
    let unknown = relayout(["optimize", str(&symbolic), "-o", str(&out), "--dim", "depth=8"]);
    assert!(unknown.refused(2).contains("no input has an open dim `depth`; the open dims are"), "{unknown:?}");

    // What was found is on stdout all the same.
    let differ = relayout(["verify", str(&model("nothing")), str(&model("other"))]);
    assert_eq!((differ.code, differ.err.lines().count(), differ.out.is_empty()), (3, 1, false), "{differ:?}");
    assert!(differ.err.starts_with("error: ") && differ.err.contains("do not compute the same"), "{differ:?}");
}

#[test]
fn what_cannot_be_compared_is_said_and_is_no_success() {
    let pair = |name: &str| {
        ["a", "b"].map(|side| model("../verify/differing").with_file_name(format!("differing/{name}.{side}.onnx")))
    };
    for (name, why) in [("nothing_but_nan", "NaN or infinite everywhere"), ("nothing_at_all", "no elements")] {
        let [a, b] = pair(name);
        let run = relayout(["verify", str(&a), str(&b)]);
        assert_eq!(run.code, 3, "{run:?}");
        assert!(run.text().contains("`y`: not compared, it") && run.text().contains(why), "{run:?}");
        assert!(run.err.contains("not everything could be compared; give other inputs with --inputs"), "{run:?}");
    }
    let [a, b] = pair("weights_reversed_beside_a_mask");
    let json: Value = serde_json::from_slice(&relayout(["verify", "--json", str(&a), str(&b)]).out).unwrap();
    assert_eq!((&json["answer"], &json["outputs"][0]["answer"]), (&"differs".into(), &"differs".into()));
    assert!(json["inputs"].as_array().unwrap().len() == 3 && json["outputs"][0]["rms"].is_number(), "{json}");
    // A bound of one's own is for each element, so a mask hides nothing.
    assert_eq!(relayout(["verify", str(&a), str(&b), "--rms", "0.01"]).code, 3);
    let [a, b] = pair("one_bias");
    relayout(["verify", str(&a), str(&b), "--rms", "0.01"]).fine();
}

#[test]
fn arrays_of_ones_own_are_fed_before_a_result_is_written() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let optimize = |more: &[&str]| {
        let mut command = common::command();
        finish(command.args(["optimize", str(&model("relu")), "-o", str(&out), "--inputs", "nowhere.npz"]).args(more))
    };
    assert!(optimize(&[]).refused(2).contains("--verify"));
    assert!(optimize(&["--verify"]).refused(1).contains("cannot read `nowhere.npz`"));
    assert!(!out.exists());
}

#[test]
fn sizes_are_written_and_the_result_is_held_against_the_model_with_these_sizes() {
    let dir = folder(&[]);
    let (symbolic, out) = (model("symbolic"), dir.path().join("out.onnx"));
    let fixed = |sizes: &[&str]| {
        let dims = sizes.iter().flat_map(|size| ["--dim", size]);
        let mut command = common::command();
        command.args(["optimize", str(&symbolic), "-o", str(&out), "--fix-sizes", "--verify"]);
        finish(command.args(dims))
    };
    let run = fixed(&["N=2", "H=8", "x.3=6"]);
    assert!(run.fine().ends_with("; sizes written: N=2, H=8, x.3=6; verified in ONNX Runtime\n"), "{run:?}");
    assert!(relayout(["print", str(&out)]).fine().contains("%x: f32[2,4,8,6]"));
    assert!(fixed(&["N=1..32"]).refused(2).contains("--dim N is a range"));
    assert!(fixed(&[]).refused(2).contains("--dim"));
}

#[test]
fn an_unchanged_model_needs_no_verification() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let mut command = common::command();
    // No runtime is there, and none is needed.
    command.env("ORT_DYLIB_PATH", "nowhere.so").args(["optimize", str(&model("nothing")), "-o", str(&out), "--verify"]);
    finish(&mut command).fine();
}

#[test]
fn inputs_and_outputs_come_in_the_layouts_that_were_asked_for() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let asked = ["--input", "x:NHWC->NCHW", "--output", "y:NHWC->NCHW"];
    let run =
        finish(common::command().args(["optimize", str(&model("conv")), "-o", str(&out), "--verify"]).args(asked));
    assert!(run.fine().starts_with("moves 3 -> 0, "), "{run:?}");
    assert_eq!(ops(&out), ["Conv", "Relu"]);
    let text = relayout(["print", str(&out)]);
    assert!(text.fine().contains("%x: f32[1,4,6,6]"), "{text:?}");
    for pair in [[model("conv"), out.clone()], [out.clone(), model("conv")]] {
        relayout(["verify", "--exact", str(&pair[0]), str(&pair[1])]).fine();
    }
    let explained = finish(common::command().args(["explain", str(&model("conv"))]).args(asked));
    for line in ["input `x` is NCHW for the caller, NHWC in the original", "output `y` is NCHW for the caller"] {
        assert!(explained.fine().contains(line), "{explained:?}");
    }
    let again = finish(common::command().args(["optimize", str(&out), "-o", "-"]).args(asked));
    assert_eq!((again.code, again.out == fs::read(&out).unwrap()), (0, true));
    let free = relayout(["explain", "--json", "--free-io", str(&model("conv"))]);
    let report: Value = serde_json::from_str(free.fine()).unwrap();
    assert_eq!((&report["after"]["nodes"], &report["io"][0]["chosen"]), (&0.into(), &true.into()));
}

#[test]
fn a_file_in_blocks_is_for_its_target_block_and_guard_only() {
    let dir = folder(&[]);
    let (out, again) = (dir.path().join("out.onnx"), dir.path().join("again.onnx"));
    let demo = model("x").with_file_name("../demo/tf_unet.onnx");
    let ort = |input, out, more: &[&str]| {
        finish(common::command().args(["optimize", str(input), "-o", str(out), "--target", "ort-cpu"]).args(more))
    };
    for (block, other) in [("8", "16"), ("16", "8")] {
        let run = ort(&demo, &out, &["--block", block]);
        assert!(run.fine().starts_with("moves "), "{run:?}");
        let run = ort(&out, &again, &["--block", block]);
        assert_eq!(run.fine(), "unchanged: the model was made for target ort-cpu already\n");
        assert_eq!(fs::read(&out).unwrap(), fs::read(&again).unwrap());
        fs::remove_file(&again).unwrap();
        let run = ort(&out, &again, &["--block", other]);
        assert!(run.refused(1).contains(&format!("relayout.block={block}, so it can't be optimized for")), "{run:?}");
        let run = ort(&out, &again, &["--block", block, "--no-guard"]);
        assert!(run.refused(1).contains("relayout.guard=none"), "{run:?}");
        let run = relayout(["optimize", str(&out), "-o", str(&again), "--target", "onnx"]);
        let line = run.refused(1);
        assert!(line.contains("`ort-cpu`") && line.contains("`onnx`") && line.contains("out.onnx"), "{line}");
        assert_eq!(listing(dir.path()), ["out.onnx"]);
    }
    let guarded = fs::read(&out).unwrap();
    ort(&demo, &out, &["--block", "16", "--no-guard"]).fine();
    assert!(fs::read(&out).unwrap() != guarded, "the guard is left out");
    let run = ort(&out, &again, &["--block", "16", "--no-guard"]);
    assert_eq!(run.fine(), "unchanged: the model was made for target ort-cpu already\n");
}

#[test]
fn costs_that_were_measured_elsewhere_decide_and_are_told() {
    let dir = folder(&[]);
    let (out, report, table) = (dir.path().join("out.onnx"), dir.path().join("r.json"), dir.path().join("mine.toml"));
    let demo = model("x").with_file_name("../demo/tf_unet.onnx");
    let builtin = relayout::targets::measured::ORT_CPU[0].text;
    let machine = builtin.lines().find(|line| line.starts_with("machine = ")).unwrap();
    fs::write(&table, builtin.replacen(machine, "machine = \"a machine of my own\"", 1)).unwrap();
    let ort = |command: &[&str], more: &[&str]| {
        let [verb, rest @ ..] = command else { panic!("a verb") };
        finish(
            common::command()
                .args([verb, str(&demo)])
                .args(rest)
                .args(["--target", "ort-cpu", "--block", "16"])
                .args(more),
        )
    };
    let optimize = ["optimize", "-o", str(&out), "--report", str(&report)];

    // A built-in table needs no word in the file; the same numbers from elsewhere decide the same and are told.
    ort(&optimize, &[]).fine();
    let plain = fs::read(&out).unwrap();
    let tells = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!tells(&plain, "relayout.costs"));
    ort(&optimize, &["--costs", str(&table)]).fine();
    let said: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    let source = said["cost_source"].as_str().unwrap();
    assert!(source.starts_with("measured on a machine of my own with ONNX Runtime"), "{source}");
    let own = fs::read(&out).unwrap();
    assert!(tells(&own, "relayout.costs") && tells(&own, source));
    let nodes = |bytes: &[u8]| Model::from_bytes(bytes.to_vec().into(), None).unwrap().print();
    assert_eq!(nodes(&own), nodes(&plain));
    for command in [&["explain"][..], &["audit"], &["check-certificate"]] {
        let run = ort(command, &["--costs", str(&table)]);
        assert!(run.fine().contains("a machine of my own"), "{command:?}: {run:?}");
    }

    // So with the table for another number of threads.
    ort(&optimize, &["--threads", "2"]).fine();
    let said: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    let source = said["cost_source"].as_str().unwrap();
    assert!(source.contains("2 threads") && tells(&fs::read(&out).unwrap(), source), "{source}");
    ort(&optimize, &["--threads", "1"]).fine();
    assert!(fs::read(&out).unwrap() == plain);

    // Where blocked convolutions take forever, fewer are chosen.
    fs::write(&table, dear(builtin, "[grid.conv-blocked")).unwrap();
    ort(&optimize, &["--costs", str(&table)]).fine();
    let blocked = |bytes: &[u8]| nodes(bytes).matches("com.microsoft.nchwc::Conv(").count();
    let (dear, cheap) = (blocked(&fs::read(&out).unwrap()), blocked(&plain));
    assert!(dear < cheap, "{dear} of {cheap}");
}

/// A table in which everything in grids of this kind takes ten thousand times as long.
fn dear(table: &str, grids: &str) -> String {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in table.lines() {
        if line.starts_with('[') {
            inside = line.starts_with(grids);
        }
        let number = |text: &str| text.trim().parse::<u64>().map(|ns| (ns * 10_000).to_string());
        let row = line.trim_end_matches(',').split(',').map(number).collect::<Result<Vec<_>, _>>();
        lines.push(if inside { row.map_or(line.to_owned(), |row| row.join(", ") + ",") } else { line.to_owned() });
    }
    lines.join("\n") + "\n"
}

#[test]
fn costs_that_are_no_table_or_for_no_such_target_are_refused() {
    let dir = folder(&[]);
    let (out, table) = (dir.path().join("out.onnx"), dir.path().join("mine.toml"));
    let refused = |target: &str, text: &str, code: i32| {
        fs::write(&table, text).unwrap();
        let model = model("relu");
        let given = ["optimize", str(&model), "-o", str(&out), "--target", target, "--costs", str(&table)];
        let line = relayout(given).refused(code).to_owned();
        assert!(!out.exists());
        line
    };
    let good = relayout::targets::measured::ORT_CPU[0].text;
    let line = refused("onnx", good, 2);
    assert!(
        line.contains("--costs is an option of targets `ort-cpu`, `ort-nhwc` and `cuda-tensorcore`, and of `onnx` with --runtime onnxruntime"),
        "{line}"
    );
    for (text, says) in [
        ("name = \"mine\"\n".to_owned(), "format"),
        (good.replacen("format = 6", "format = 3", 1), "has format 3, and this version reads format 6"),
        (good.replacen("target = \"ort-cpu\"", "target = \"x86-avx2\"", 1), "is about target `x86-avx2`"),
        (good.replacen("node_ns", "node_ms", 1), "node_ms"),
    ] {
        let line = refused("ort-cpu", &text, 1);
        assert!(line.contains("mine.toml") && line.contains(says), "{line}");
    }
    fs::remove_file(&table).unwrap();
    let run = relayout(["explain", str(&model("relu")), "--target", "ort-cpu", "--costs", str(&table)]);
    assert!(run.refused(2).contains("cannot read table of costs"), "{run:?}");
}
