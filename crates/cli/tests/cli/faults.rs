//! Faults while the program runs: killed at any time, a full disk, no permission, read errors, inputs that change. What is written is
//! whole, old or new; what is left behind is what docs/files.md names; there is always a message, and the exit status fits.
//!
//! `tools/faults` runs the same with more kills.
#![cfg(target_os = "linux")]

mod disk;

use disk::{Fault, Scene, ends_in, with_fault};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;
use std::time::{Duration, Instant};

/// How often the program is killed at a random moment, over all scenes.
fn kills() -> usize {
    let asked = std::env::var("RELAYOUT_FAULT_KILLS");
    asked.map_or(40, |text| text.parse().expect("RELAYOUT_FAULT_KILLS is a number"))
}

/// What may be left by a run that was killed: unfinished files and folders, and a data file that no model names yet.
fn is_named_by_docs(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with(".relayout-")) || ends_in(path, "data")
}

fn only_what_docs_name(scene: &Scene, left: &[String]) {
    assert!(left.iter().all(|path| is_named_by_docs(path)), "{}: {left:?} is left behind", scene.name);
}

/// A run that ended by itself and did not succeed: status 1 and messages.
fn says_why(scene: &Scene, fault: &Fault, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    let what = format!("{}, {} at {} of {}: {said}", scene.name, fault.what, fault.at, fault.calls);
    assert_eq!(output.status.code(), Some(1), "{what}");
    assert!(!said.is_empty() && said.lines().all(|line| line.starts_with("error: ")), "{what}");
}

/// Of a run with a fault: where it says that all is well, the new files are there, and else the old ones, with the reason. A batch
/// may fail after some of its files.
fn new_or_why(scene: &Scene, (is_old, is_new): (bool, bool), left: &[String], fault: &Fault, output: &Output) {
    let Fault { calls, at, .. } = fault;
    assert!(left.is_empty(), "{} at {at}: {left:?} is left behind", scene.name);
    if output.status.success() {
        assert!(is_new, "{} at {at} of {calls}: it says that all is well", scene.name);
        return;
    }
    says_why(scene, fault, output);
    assert!(is_old || scene.name == "batch", "{} at {at} of {calls}: it failed and wrote", scene.name);
}

/// Lets something happen at the first call, at the second, and so on until a run makes fewer; how often it happened.
fn at_every_call(
    scene: &Scene,
    calls: &'static str,
    what: &'static str,
    check: impl Fn(&std::path::Path, &Fault, &Output),
) -> usize {
    for at in 1.. {
        let dir = scene.folder();
        let fault = Fault { calls, what, at };
        let Some(output) = with_fault(scene, dir.path(), &fault) else { return at - 1 };
        check(dir.path(), &fault, &output);
        assert!(at < 10_000, "{}: it does not end", scene.name);
    }
    unreachable!("the loop ends by itself")
}

#[test]
fn killed_at_a_random_moment_it_leaves_old_or_new() {
    let scenes = Scene::all();
    let mut random = 0x9e37_79b9_u64;
    let (mut old, mut new) = (0, 0);
    for turn in 0..kills() {
        let scene = &scenes[turn % scenes.len()];
        let begun = Instant::now();
        scene.call(scene.folder().path()).output().expect("the program runs");
        let whole = begun.elapsed();
        // A linear congruential generator: its upper bits say when.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (random >> 40) as f64 / (1_u64 << 24) as f64;
        let dir = scene.folder();
        let mut child = scene.call(dir.path()).spawn().expect("the program runs");
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * part));
        child.kill().expect("it is ours");
        child.wait_with_output().expect("it ends");
        let mut left = Vec::new();
        let (is_old, is_new) = scene.check(dir.path(), &mut left);
        only_what_docs_name(scene, &left);
        (old, new) = (old + usize::from(is_old), new + usize::from(is_new));
        // Files that were left do not disturb the next run.
        assert!(scene.call(dir.path()).output().expect("the program runs").status.success());
        assert!(
            scene.check(dir.path(), &mut Vec::new()).1,
            "{}: a run after a kill writes what any other does",
            scene.name
        );
    }
    println!("{} kills: {old} left all as it was, {new} came too late", kills());
}

#[test]
fn killed_at_any_call_that_writes_it_leaves_old_or_new() {
    for scene in Scene::all() {
        let kills = at_every_call(&scene, "cwnu", "kill", |dir, _, output| {
            assert_eq!(output.status.signal(), Some(9), "{}", scene.name);
            let mut left = Vec::new();
            scene.check(dir, &mut left);
            only_what_docs_name(&scene, &left);
        });
        assert!(kills >= 3, "{}: killed only at {kills} calls", scene.name);
    }
}

#[test]
fn ended_by_the_user_it_leaves_nothing_unfinished() {
    for scene in Scene::all().into_iter().filter(|scene| scene.name != "bundle") {
        let ends = at_every_call(&scene, "cwn", "term", |dir, fault, output| {
            let mut left = Vec::new();
            let (_, is_new) = scene.check(dir, &mut left);
            // The program goes on until the signal is dealt with, which may be too late.
            let too_late = output.status.success() && is_new;
            assert!(output.status.signal() == Some(15) || too_late, "{} at {}: {output:?}", scene.name, fault.at);
            left.retain(|path| !ends_in(path, "data"));
            assert!(left.is_empty(), "{} at {}: {left:?} is left behind", scene.name, fault.at);
        });
        assert!(ends >= 3, "{}: ended only at {ends} calls", scene.name);
    }
}

/// ENOSPC and EACCES, at each call that writes and at all later ones.
#[test]
fn a_disk_that_is_full_or_closed_to_us_keeps_what_was_there() {
    for scene in Scene::all() {
        for (calls, what) in [("cwn", "28"), ("cn", "13")] {
            let faults = at_every_call(&scene, calls, what, |dir, fault, output| {
                let mut left = Vec::new();
                let (is_old, is_new) = scene.check(dir, &mut left);
                new_or_why(&scene, (is_old, is_new), &left, fault, output);
            });
            assert!(faults >= 2, "{}: only {faults} faults", scene.name);
        }
    }
}

/// EIO and EACCES, at each call that opens, maps or reads an input.
#[test]
fn an_input_that_cannot_be_read_is_named() {
    for scene in Scene::all() {
        for (calls, what) in [("o", "13"), ("o", "5"), ("m", "5"), ("r", "5")] {
            at_every_call(&scene, calls, what, |dir, fault, output| {
                let mut left = Vec::new();
                let (is_old, is_new) = scene.check(dir, &mut left);
                if output.status.success() {
                    // If the model that is replaced can't be read, its data stays.
                    left.retain(|path| !ends_in(path, "data"));
                }
                new_or_why(&scene, (is_old, is_new), &left, fault, output);
            });
        }
    }
}

#[test]
fn an_input_that_is_cut_off_while_it_is_read_is_named() {
    for scene in Scene::all().into_iter().filter(|scene| scene.name != "batch") {
        let cuts = at_every_call(&scene, "m", "cut", |dir, fault, output| {
            says_why(&scene, fault, output);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("m.onnx"), "{}: {said}", scene.name);
            let left = disk::files(dir);
            let unfinished: Vec<_> = left.keys().filter(|path| path.contains(".relayout-")).collect();
            assert!(unfinished.is_empty(), "{}: {unfinished:?}", scene.name);
        });
        assert!(cuts >= 2, "{}: only {cuts} files are mapped", scene.name);
    }
}

#[test]
fn an_input_that_is_rewritten_while_it_is_read_is_named() {
    for scene in Scene::all().into_iter().filter(|scene| scene.name != "batch") {
        let changes = std::cell::Cell::new(0);
        at_every_call(&scene, "m", "touch", |dir, fault, output| {
            let mut left = Vec::new();
            let (is_old, is_new) = scene.check(dir, &mut left);
            assert!(left.is_empty(), "{} at {}: {left:?} is left behind", scene.name, fault.at);
            if output.status.success() {
                // It was read before, or again after it was written: the bytes are the same.
                assert!(is_new, "{} at {}", scene.name, fault.at);
                return;
            }
            says_why(&scene, fault, output);
            changes.set(changes.get() + 1);
            assert!(is_old, "{} at {}: it failed and wrote", scene.name, fault.at);
            assert!(String::from_utf8_lossy(&output.stderr).contains("was changed while it was read"), "{output:?}");
        });
        assert!(changes.get() > 0, "{}: nobody noticed", scene.name);
    }
}

#[test]
fn a_file_that_may_not_become_so_large_is_an_error_and_no_signal() {
    let scene = Scene::all().swap_remove(0);
    let dir = scene.folder();
    let call = scene.call(dir.path());
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg("ulimit -f 8; exec \"$0\" \"$@\"").arg(call.get_program()).args(call.get_args());
    let output = shell.current_dir(dir.path()).output().expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: cannot write ") && said.contains("too large"), "{said}");
    let mut left = Vec::new();
    assert!(scene.check(dir.path(), &mut left).0 && left.is_empty(), "{left:?}");
}
