//! What people expect of a program on a command line: help, tips, versions, completions, man pages, colours, errors for programs.

use crate::common::{command, finish, folder, listing, model, relayout, str};
use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn help_is_a_result_and_has_headings_and_examples() {
    let help = relayout(["--help"]);
    assert!(help.fine().starts_with("Layout optimizer for ONNX models\n\nUsage: relayout"), "{help:?}");
    assert!(help.text().contains("Print the version; --version also says"), "{help:?}");
    let help = relayout(["optimize", "--help"]);
    for part in [
        "What is written:",
        "What is decided for:",
        "Layouts of inputs and outputs:",
        "Checks:",
        "Options of all commands:",
        "Examples:\n  relayout optimize model.onnx ",
        "Exit status:",
        "[possible values: onnx, ort-cpu, ",
    ] {
        assert!(help.fine().contains(part), "{part}: {}", help.text());
    }
    // The last heading's options are in the help of every command.
    assert!(relayout(["targets", "--help"]).fine().contains("--format <FORMAT>"));
}

#[test]
fn a_mistyped_word_is_answered_with_the_tip_and_the_usage_of_the_parser() {
    let run = relayout(["optimize", "model.onnx", "--dry-rum"]);
    assert_eq!(run.code, 2);
    let expected = "error: unexpected argument '--dry-rum' found\n\n  tip: a similar argument exists: '--dry-run'\n\n\
                    Usage: relayout optimize --dry-run <MODEL>...\n\nFor more information, try '--help'.\n";
    assert_eq!(run.err, expected);
    let run = relayout(["explane", "model.onnx"]);
    assert!(run.code == 2 && run.err.contains("tip: a similar subcommand exists: 'explain'"), "{run:?}");
    let run = relayout(["explain", "model.onnx", "--target", "ort-cpi"]);
    assert!(run.code == 2 && run.err.contains("tip: a similar value exists: 'ort-cpu'"), "{run:?}");
}

#[test]
fn without_arguments_it_says_what_to_do_next_with_the_model_that_is_there() {
    let dir = folder(&["relu", "conv"]);
    let run = finish(command().current_dir(dir.path()));
    assert!(run.code == 2 && run.out.is_empty() && run.err.contains("Usage: relayout"), "{run:?}");
    for call in ["doctor  ", "doctor conv.onnx ", "optimize conv.onnx ", "explain conv.onnx "] {
        assert!(run.err.contains(&format!("\n  relayout {call}")), "{call}: {}", run.err);
    }
    let empty = folder(&[]);
    let run = finish(command().current_dir(empty.path()));
    assert!(run.code == 2 && run.err.contains("relayout optimize model.onnx "), "{run:?}");
    std::fs::write(empty.path().join("it's \u{1b}[1m.onnx"), "").unwrap();
    let run = finish(command().current_dir(empty.path()));
    assert!(run.err.contains(r"relayout optimize 'it'\''s \u001b[1m.onnx' "), "{run:?}");
}

#[test]
fn versions_are_short_and_long() {
    assert_eq!(relayout(["-V"]).fine(), concat!("relayout ", env!("CARGO_PKG_VERSION"), "\n"));
    let long = relayout(["--version"]);
    let lines: Vec<&str> = long.fine().lines().collect();
    assert_eq!(lines[0], concat!("relayout ", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].starts_with("target: ") && lines[1].contains(std::env::consts::ARCH), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("features: ")).count(), 1, "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("instruction sets: ") && line.ends_with("portable")), "{lines:?}");
    let runtime = lines.last().unwrap().strip_prefix("ONNX Runtime: ").expect("the last line");
    assert!(runtime.starts_with("1.") && runtime.contains("libonnxruntime"), "{runtime}");
    let without = finish(command().arg("--version").env_remove("ORT_DYLIB_PATH").env("PATH", ""));
    assert!(without.fine().ends_with("ONNX Runtime: not found; needed by verify and calibrate\n"), "{without:?}");
    let wrong = finish(command().arg("--version").env("ORT_DYLIB_PATH", "no/such/lib.so"));
    assert!(wrong.fine().contains("\nONNX Runtime: ") && wrong.text().contains("no/such/lib.so"), "{wrong:?}");
}

/// What a call of bash completes a line to, one word each.
fn completed(words: &[&str]) -> Vec<String> {
    let script = relayout(["completions", "bash"]).fine().to_owned();
    let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let last = words.len() - 1;
    let [.., before, word] = words else { panic!("two words") };
    let ask = format!(
        "{script}\nCOMP_WORDS=({list}); COMP_CWORD={last}; _relayout relayout '{word}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).output().expect("there is a bash");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_targets() {
    assert_eq!(completed(&["relayout", "opt"]), ["optimize"]);
    assert_eq!(completed(&["relayout", "optimize", "--dry"]), ["--dry-run"]);
    assert_eq!(completed(&["relayout", "explain", "m.onnx", "--target", "x86"]), ["x86-avx512", "x86-avx2"]);
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = relayout(["completions", shell]);
        assert!(run.fine().contains("dry-run") && run.text().contains("check-certificate"), "{shell}");
    }
    assert!(relayout(["completions", "cmd"]).refused(2).contains("[possible values: bash, "));
}

#[test]
fn man_pages_are_printed_and_written() {
    let page = relayout(["man", "optimize"]);
    assert!(page.fine().contains(".TH relayout-optimize 1") && page.text().contains("model.relayout.onnx"), "{page:?}");
    assert!(relayout(["man"]).fine().contains("relayout\\-explain(1)"));
    assert!(relayout(["man", "lunch"]).refused(2).contains("there is no command `lunch`"));
    let dir = folder(&[]);
    let pages = dir.path().join("man1");
    let run = relayout(["man", "-o", str(&pages)]);
    let written = listing(&pages);
    assert_eq!(run.fine(), format!("{} pages in {}\n", written.len(), pages.display()));
    assert!(written.len() > 12 && written.contains(&"relayout-optimize.1".to_owned()), "{written:?}");
    assert_eq!(std::fs::read_to_string(pages.join("relayout-optimize.1")).unwrap(), page.text());
}

#[test]
fn an_error_for_programs_is_one_object_on_stderr() {
    let relu = model("relu");
    let other = model("nothing").with_file_name("other.onnx");
    let nothing = model("nothing");
    let calls: [(&[&str], u8, &str, &str); 6] = [
        (&["optimize", "nowhere.onnx", "-o", "-", "--format", "json"], 1, "model", "nowhere.onnx"),
        (&["explain", "--json", str(&relu), "--target", "abacus"], 2, "usage", "invalid value 'abacus'"),
        (&["--format=json", "explain", str(&relu), "--block", "8"], 2, "usage", "--block is an option of target"),
        (&["--format", "json", "explane"], 2, "usage", "unrecognized subcommand 'explane'"),
        (&["--json"], 2, "usage", "no command is given"),
        (&["verify", str(&nothing), str(&other), "--json"], 3, "check", "do not compute the same"),
    ];
    for (call, status, kind, says) in calls {
        let run = relayout(call);
        assert_eq!(run.code, i32::from(status), "{run:?}");
        assert_eq!(run.err.lines().count(), 1, "{run:?}");
        let said: Value = serde_json::from_str(&run.err).unwrap();
        let error = &said["error"];
        assert_eq!((&error["kind"], &error["status"]), (&kind.into(), &status.into()), "{said}");
        assert!(error["message"].as_str().unwrap().contains(says), "{said}");
        assert!(!error["message"].as_str().unwrap().contains('\n'), "{said}");
    }
    let tip = relayout(["optimize", "--json", "--dry-rum"]);
    let said: Value = serde_json::from_str(&tip.err).unwrap();
    assert_eq!(said["error"]["tip"], "--dry-run");
}

#[test]
fn quiet_leaves_out_what_was_done_and_verbose_says_more() {
    let dir = folder(&["relu"]);
    let (relu, out) = (dir.path().join("relu.onnx"), dir.path().join("out.onnx"));
    assert_eq!(relayout(["optimize", "-q", str(&relu), "-o", str(&out)]).fine(), "");
    assert!(relayout(["print", "-q", str(&relu)]).fine().starts_with("graph g"), "what was asked for stays");
    assert!(relayout(["optimize", "-q", "nowhere.onnx"]).refused(1).contains("nowhere.onnx"));
    let run = relayout(["optimize", "-v", str(&relu), "-o", str(&out), "--verify"]);
    assert!(run.code == 0 && run.text().starts_with("moves 2 -> 0"), "{run:?}");
    for part in ["target onnx, costs ", "relu.onnx: read, ", "ONNX Runtime in ", "verified in ONNX", "out.onnx, "] {
        assert!(run.err.contains(part), "{part}: {run:?}");
    }
}

/// Whether the first word of an error comes with escapes.
fn is_coloured(command: &mut Command) -> bool {
    let run = finish(command.args(["explain", "nowhere.onnx"]));
    assert_eq!(run.code, 1);
    let plain = run.err.starts_with("error: ");
    assert!(plain || run.err.contains("error:"), "{run:?}");
    assert_eq!(plain, !run.err.contains('\u{1b}'), "{run:?}");
    !plain
}

#[test]
fn colours_are_for_terminals_and_nobody_who_does_not_want_them() {
    let clean = || {
        let mut command = command();
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env_remove("CLICOLOR").env("TERM", "xterm");
        command
    };
    assert!(!is_coloured(&mut clean()), "stderr is a pipe");
    assert!(is_coloured(clean().env("CLICOLOR_FORCE", "1")));
    assert!(!is_coloured(clean().env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")));
    #[cfg(unix)]
    {
        let (code, said) = on_terminal(clean().args(["explain", "nowhere.onnx"]));
        assert!(code == 1 && said.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m "), "{said:?}");
        let (code, said) = on_terminal(clean().args(["explain", "nowhere.onnx"]).env("NO_COLOR", "1"));
        assert!(code == 1 && said.starts_with("error: ") && !said.contains('\u{1b}'), "{said:?}");
    }
}

#[cfg(unix)]
#[test]
fn progress_is_shown_on_terminals_only() {
    let dir = folder(&["relu", "conv", "nothing"]);
    let call = |more: &[&str]| {
        let mut command = command();
        command.env("TERM", "xterm").args(["optimize", str(dir.path()), "--dry-run"]).args(more);
        command
    };
    let (code, said) = on_terminal(&mut call(&[]));
    assert!(code == 0 && said.contains("/3 models"), "{said:?}");
    let (code, said) = on_terminal(&mut call(&["-q"]));
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(!finish(&mut call(&[])).fine().contains("/3 models"));
}

/// Runs it with a terminal as stderr; its status and what the terminal was told.
#[cfg(unix)]
fn on_terminal(command: &mut Command) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Read as _;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let open = || std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    // Kept open until all is read: a terminal that nobody has open forgets what it was told.
    let kept = open();
    let mut child = command.stdout(Stdio::null()).stderr(open()).spawn().unwrap();
    command.stderr(Stdio::null());
    let mut reader = std::fs::File::from(terminal);
    let reading = std::thread::spawn(move || {
        let mut said = Vec::new();
        let mut part = [0; 4096];
        // The end is an error: the last who has the terminal open went away.
        while let Ok(length @ 1..) = reader.read(&mut part) {
            said.extend_from_slice(&part[..length]);
        }
        String::from_utf8_lossy(&said).into_owned()
    });
    let code = child.wait().unwrap().code().unwrap();
    drop(kept);
    (code, reading.join().unwrap())
}
