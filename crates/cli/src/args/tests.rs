use super::Args;
use clap::{Command, CommandFactory as _, Parser as _};

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
