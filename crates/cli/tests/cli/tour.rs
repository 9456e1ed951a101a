//! Ten things that a new user does, in a folder with models. The transcript is docs/tour.md: what it shows is what happens.
//! `WRITE_TOUR=1 cargo test -p relayout-cli --test cli -- tour::` writes it anew.
#![cfg(unix)]

use crate::common::{command, model};
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// What is done, in its order: a heading, a word about it, and the lines that are typed.
const STEPS: &[(&str, &str, &[&str])] = &[
    (
        "Optimize a file",
        "The result stands beside the model. What is there is never replaced, unless `--force` says so or `-o` names the file.",
        &["relayout optimize unet.onnx", "relayout optimize unet.onnx", "ls"],
    ),
    (
        "Optimize a folder",
        "Folders and patterns such as `'models/**/*.onnx'` are searched for models. Without `-o` each result stands beside its model.",
        &["relayout optimize models/ -o out/", "find out -type f | sort"],
    ),
    (
        "A broken file among good ones",
        "One model that fails does not stop the rest. The exit status is that of the failure: 1 the model, 2 usage, 3 a check.",
        &[
            "head -c 300 models/conv.onnx > models/cut.onnx",
            "relayout optimize models/ -o more/ || echo \"status $?\"",
            "relayout optimize models/cut.onnx --format json",
        ],
    ),
    (
        "See why moves stay",
        "Of each move that is left: between whom it stands, why, what it costs, what it would take for it to go.",
        &["relayout explain unet.onnx | cut -c 1-130", "relayout explain models/conv.onnx --why a | cut -c 1-130"],
    ),
    (
        "Compare two models",
        "`diff` compares what stands in the files, `verify` what they compute, in ONNX Runtime.",
        &["relayout diff models/conv.onnx out/conv.onnx", "relayout verify models/conv.onnx out/conv.onnx"],
    ),
    (
        "Feed channels last",
        "A camera gives NHWC, and the model wants NCHW. The result takes what the camera gives.",
        &[
            "relayout optimize models/photo.onnx -o nhwc.onnx --input 'x:NCHW->NHWC' --verify",
            "relayout print models/photo.onnx | grep input",
            "relayout print nhwc.onnx | grep input",
        ],
    ),
    (
        "Undo it",
        "The original is as it was. Where there is a result alone, the option the other way round gives back the order of the original.",
        &[
            "relayout optimize nhwc.onnx -o back.onnx --input 'x:NHWC->NCHW' --verify",
            "relayout print back.onnx | grep input",
            "rm unet.relayout.onnx",
            "ls",
        ],
    ),
    (
        "Complete a command by tab",
        "There are completions for bash, zsh, fish, elvish and PowerShell: commands, options, targets, files.",
        &[
            "source <(relayout completions bash)",
            "relayout expl<TAB>",
            "relayout optimize unet.onnx --dry<TAB>",
            "relayout explain unet.onnx --target x86-avx5<TAB>",
        ],
    ),
    (
        "Read the man page",
        "`relayout man -o ~/.local/share/man/man1` installs the pages of all commands.",
        &["relayout man diff | man --nj --nh -l - | head -n 24", "relayout man -o pages/"],
    ),
    (
        "Embed it in a new crate",
        "The program is a thin layer over the library.",
        &["tail -n 2 new-crate/Cargo.toml", "cat new-crate/src/main.rs", "cd new-crate && cargo run --offline --quiet"],
    ),
];

/// The program of the new crate, which our workspace builds as an example.
const MAIN: &str = include_str!("../../examples/tour.rs");

/// With it the new crate is built, which takes as long as all of our library; without it its program is the example.
const BUILT: &str = "RELAYOUT_NEW_CRATE";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// A fresh folder with models. Its place is the same each time, so that the crate is not built anew where nothing changed.
fn place() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tour");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("models/deep")).unwrap();
    fs::copy(root().join("testdata/demo/tf_unet.onnx"), dir.join("unet.onnx")).unwrap();
    for (name, at) in [("conv", "conv"), ("relu", "deep/relu"), ("nothing", "nothing")] {
        fs::copy(model(name), dir.join("models").join(at).with_extension("onnx")).unwrap();
    }
    fs::copy(root().join("testdata/verify/conv_around.onnx"), dir.join("models/photo.onnx")).unwrap();
    dir
}

/// A crate that depends on the library. It is a workspace of its own, though it lies below ours, and has the versions of ours.
fn new_crate(dir: &Path) {
    let dir = dir.join("new-crate");
    fs::create_dir_all(dir.join("src")).unwrap();
    let library = root().join("crates/relayout");
    let manifest = format!(
        "[package]\nname = \"new-crate\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\nrelayout = {{ path = \"{}\" }}\n",
        library.display()
    );
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    fs::write(dir.join("src/main.rs"), MAIN).unwrap();
    fs::copy(root().join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
}

/// What is run where the transcript has a line.
fn instead(line: &str) -> String {
    if std::env::var_os(BUILT).is_some() {
        return line.to_owned();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_relayout")).with_file_name("examples").join("tour");
    assert!(program.is_file(), "`cargo build -p relayout-cli --example tour` builds it");
    line.replace("cargo run --offline --quiet", &program.display().to_string())
}

/// bash, with the program on the search path, wide enough a page, and nothing of the user's own.
fn bash(dir: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_relayout")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&path))).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile"]).current_dir(dir).env("PATH", path).env("LC_ALL", "C.UTF-8");
    bash.env("MANWIDTH", "100").env("MANPAGER", "cat").env("NO_COLOR", "1").env_remove("MANROFFOPT");
    for (name, value) in command().get_envs() {
        if let Some(value) = value {
            bash.env(name, value);
        }
    }
    bash
}

/// What a line prints, stdout and stderr as a terminal mixes them.
fn ran(dir: &Path, line: &str) -> String {
    let output = bash(dir)
        .args(["-c", &format!("exec 2>&1; {}", instead(line))])
        .stdin(Stdio::null())
        .output()
        .expect("bash is there");
    String::from_utf8(output.stdout).expect("text")
}

/// What stands on the line after Tab was pressed at its end, in a bash on a terminal.
fn completed(dir: &Path, line: &str) -> String {
    let (mut keys, screen) =
        terminal(bash(dir).arg("-i").env("TERM", "dumb").env("PS1", "> ").env("INPUTRC", "/dev/null"));
    let mut seen = String::new();
    let mut until = |wanted: &dyn Fn(&str) -> bool| {
        while !wanted(&seen) {
            seen += &screen.recv_timeout(Duration::from_secs(50)).unwrap_or_else(|_| panic!("`{line}`: {seen:?}"));
        }
        std::mem::take(&mut seen)
    };
    until(&|seen| seen.ends_with("> "));
    keys.write_all(b"source <(relayout completions bash); bind 'set enable-bracketed-paste off'\n").unwrap();
    until(&|seen| seen.ends_with("\n> "));
    keys.write_all(format!("{line}\t").as_bytes()).unwrap();
    // A word that is completed ends with a blank.
    let whole = until(&|seen| seen.starts_with(line) && seen.ends_with(' ') && seen.len() > line.len());
    // An empty line, and the end of the input.
    keys.write_all(b"\x15\x04").unwrap();
    whole.trim_end().to_owned()
}

/// Runs it on a terminal of its own: what is typed, and what is shown, part by part.
fn terminal(command: &mut Command) -> (fs::File, mpsc::Receiver<String>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let open = || fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let keys = fs::File::from(terminal);
    let mut screen = keys.try_clone().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut part) {
            if tell.send(String::from_utf8_lossy(&part[..length]).into_owned()).is_err() {
                break;
            }
        }
        let _ = child.wait();
    });
    (keys, told)
}

/// The transcript of one step.
fn step(dir: &Path, number: usize, (title, about, lines): &(&str, &str, &[&str])) -> String {
    let mut text = format!("## {number}. {title}\n\n{about}\n\n```text\n");
    for line in *lines {
        let _ = writeln!(text, "$ {line}");
        match line.strip_suffix("<TAB>") {
            Some(typed) => {
                let _ = writeln!(text, "$ {}", completed(dir, typed));
            }
            None => text += &ran(dir, line),
        }
    }
    text + "```\n"
}

#[test]
fn the_tour_is_what_happens() {
    let dir = place();
    let mut text =
        "# A tour\n\nTen things to do with `relayout`, and what it answers. A test runs these lines and compares.\n"
            .to_owned();
    for (at, one) in STEPS.iter().enumerate() {
        if at + 1 == STEPS.len() {
            new_crate(&dir);
        }
        text = text + "\n" + &step(&dir, at + 1, one);
    }
    // Where the repository lies is nobody's business.
    let text = text.replace(&root().display().to_string(), "../../relayout");
    let file = root().join("docs/tour.md");
    if std::env::var_os("WRITE_TOUR").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    let differs = text.lines().zip(written.lines()).find(|(is, was)| is != was);
    assert!(text == written, "docs/tour.md has other lines, first {differs:?}; WRITE_TOUR=1 writes it anew");
    assert!(!text.contains(env!("CARGO_TARGET_TMPDIR")), "no path of a machine");
}
