#[path = "../../../relayout/tests/api/pages.rs"]
mod pages;

use super::Args;
use clap::error::ErrorKind::{DisplayHelp, DisplayVersion, MissingRequiredArgument, MissingSubcommand};
use clap::{Command, CommandFactory as _, Parser as _};
use pages::{code, pages};
use relayout::request::OPTIONS;
use std::collections::BTreeSet;
use std::fs;

/// Words as a shell has them: apart at blanks, but for those between single quotes.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// Every command with an own command line below this one, and itself.
fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|c| c.get_name() != "help");
    std::iter::once(command).chain(below.flat_map(all)).collect()
}

#[test]
fn every_command_has_examples_and_each_can_be_called() {
    let mut top = Args::command();
    top.build();
    let mut parsed = 0;
    for command in all(&top) {
        let name = command.get_name();
        let help = command.get_after_help().unwrap_or_else(|| panic!("{name} has no examples")).to_string();
        let lines = help.lines().filter_map(|line| line.strip_prefix("  ")).collect::<Vec<_>>();
        assert!(help.starts_with("Examples:\n") && !lines.is_empty(), "{name}: {help}");
        let widest = help.lines().map(str::len).max();
        assert!(widest <= Some(100), "{name}: a line is {widest:?} wide");
        for line in lines {
            let call = line.split(" #").next().unwrap().split(['>', '|'].as_slice()).next().unwrap();
            // An arrow stands between quotes only.
            let call = if line.contains("->") { line.split(" #").next().unwrap() } else { call };
            let call = words(call);
            if call.get(1).is_some_and(|word| word == "help") {
                continue;
            }
            Args::try_parse_from(&call).unwrap_or_else(|e| panic!("{name}: `{line}`: {e}"));
            parsed += 1;
        }
    }
    assert!(parsed > 30, "{parsed}");
}

#[test]
fn the_arguments_hold_together() {
    Args::command().debug_assert();
}

/// What an option of several commands has in all of them: its short form and what it takes.
#[test]
fn an_option_takes_the_same_in_every_command_that_has_it() {
    let mut top = Args::command();
    top.build();
    let mut seen: Vec<(String, String, String)> = Vec::new();
    for command in all(&top) {
        for option in command.get_opts().filter(|option| !option.is_positional()) {
            let long = option.get_long().unwrap_or_default().to_owned();
            let takes = format!("{:?} {:?}", option.get_short(), option.get_value_names().unwrap_or_default());
            // Paths are files in one command and folders in another.
            let takes = takes.replace("DIR", "PATH").replace("FILE", "PATH");
            match seen.iter().find(|(name, ..)| *name == long) {
                Some((_, other, whose)) => {
                    assert_eq!(&takes, other, "--{long} of `{}` and `{whose}`", command.get_name());
                }
                None => seen.push((long, takes, command.get_name().to_owned())),
            }
        }
    }
    assert!(seen.len() > 20);
}

/// A line of code as a call of this program, if it is one: by its name, by the path that cargo builds it at (pinned to a core, perhaps),
/// or through `cargo run`. A path that is an option's value is none.
fn as_call(code: &str) -> Option<String> {
    let code = code.strip_prefix("taskset -c 1 ").unwrap_or(code);
    if code.starts_with("cargo run ") {
        let (cargo, words) = code.split_once(" -- ")?;
        let is_ours = cargo.contains(" --bin relayout") || cargo.ends_with(" relayout-cli");
        return is_ours.then(|| format!("relayout {words}"));
    }
    let built = ["target/release/", "target/debug/"].iter().find_map(|folder| code.strip_prefix(folder));
    let code = built.unwrap_or(code);
    code.starts_with("relayout ").then(|| code.to_owned())
}

/// The calls of this program on a page.
fn calls(page: &str) -> Vec<String> {
    code(&page.replace("\\\n", " ")).filter_map(as_call).collect()
}

/// The words of the first program of a line: what a comment, a pipe or another program begins with ends it.
fn first_program(line: &str) -> Vec<String> {
    let line = line.replace('"', "'");
    let ends = |word: &String| ["|", "||", "&&", ";", ">", "#"].contains(&word.as_str());
    let mut words = words(&line);
    let end = words.iter().position(ends).unwrap_or(words.len());
    words.truncate(end);
    words
}

#[test]
fn every_call_in_the_pages_parses_with_the_options_of_today() {
    let (mut parsed, mut wrong) = (0, Vec::new());
    for page in pages() {
        for call in calls(&fs::read_to_string(&page).unwrap()) {
            let words = first_program(&call);
            parsed += 1;
            if words.get(1).is_some_and(|word| word == "help") || call.contains("<TAB>") {
                continue;
            }
            let failed = match Args::try_parse_from(words) {
                // A page may name a command without all that it needs; help is answered and not parsed.
                Err(e)
                    if !matches!(
                        e.kind(),
                        MissingRequiredArgument | DisplayHelp | DisplayVersion | MissingSubcommand
                    ) =>
                {
                    e
                }
                _ => continue,
            };
            wrong.push(format!("{}: `{call}`: {failed}", page.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parsed > 150, "{parsed}");
}

#[test]
fn calls_are_found_in_code_and_end_where_another_program_begins() {
    let page = "Say `relayout explain` of it, `tools/x --bin target/debug/relayout MODEL` is none:\n\n    relayout optimize m.onnx \\\n        --input 'x:NCHW->NHWC' | cat # all\n\
                ```text\n$ relayout --sideways > file\nrelayout says `relayout no`\n```\n\n    \
                cargo run --release --bin relayout -- optimize a -o b\n    taskset -c 1 target/release/relayout bench\n";
    let found: Vec<Vec<String>> = calls(page).iter().map(|call| first_program(call)).collect();
    let expected = [
        &["relayout", "explain"][..],
        &["relayout", "optimize", "m.onnx", "--input", "x:NCHW->NHWC"],
        &["relayout", "--sideways"],
        &["relayout", "optimize", "a", "-o", "b"],
        &["relayout", "bench"],
    ];
    assert_eq!(found, expected);
    assert!(Args::try_parse_from(&found[2]).is_err());
}

/// Python and C have the options of a request by the same names. What the command line has beside them is about files that it reads and
/// writes, and about what it shows.
#[test]
fn what_optimize_asks_of_the_library_is_what_every_caller_can_ask() {
    let own = [
        "arch",
        "dry-run",
        "emit",
        "force",
        "format",
        "help",
        "html",
        "inputs",
        "jobs",
        "json",
        "no-tune",
        "out",
        "print-after",
        "prove",
        "quiet",
        "report",
        "verbose",
        "verify",
        "version",
    ];
    let mut top = Args::command();
    top.build();
    let optimize = top.find_subcommand("optimize").unwrap();
    let here: BTreeSet<&str> = optimize.get_arguments().filter_map(|arg| arg.get_long()).collect();
    let here: BTreeSet<&str> = here.into_iter().filter(|word| !own.contains(word)).collect();
    let everywhere: BTreeSet<&str> = OPTIONS.iter().filter_map(|option| option.word).collect();
    assert_eq!(here, everywhere);
}
