//! `relayout completions` and `relayout man`.

use crate::args::{self, Args};
use crate::failure::Failure;
use crate::terminal::{quiet, say};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// `relayout completions`
pub(crate) fn completions(a: &args::Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut Args::command(), "relayout", &mut script);
    say(String::from_utf8_lossy(&script).trim_end())
}

/// `relayout man`
pub(crate) fn man(a: &args::Man) -> Result<(), Failure> {
    let top = built();
    if let Some(folder) = &a.out {
        return write(&top, folder);
    }
    let Some(name) = &a.command else { return say(&page(&top)?) };
    let Some(command) = commands(&top).find(|command| command.get_name() == name) else {
        let names: Vec<&str> = commands(&top).map(Command::get_name).collect();
        return Err(Failure::usage(format!("there is no command `{name}`; it is one of {}", names.join(", "))));
    };
    say(&page(command)?)
}

/// The commands with what they have in common.
fn built() -> Command {
    let mut top = Args::command().disable_help_subcommand(true);
    top.build();
    top
}

fn commands(top: &Command) -> impl Iterator<Item = &Command> {
    top.get_subcommands()
}

/// Name of a page: `relayout-optimize`, for the command `relayout optimize`.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

/// A page in roff.
fn page(command: &Command) -> Result<String, Failure> {
    let mut roff = Vec::new();
    // The page calls a command as its file is called, as git's pages do.
    let named = command.clone().name(page_name(command));
    Man::new(named).render(&mut roff).map_err(Failure::model)?;
    Ok(String::from_utf8_lossy(&roff).trim_end().to_owned())
}

/// All pages into a folder.
fn write(top: &Command, folder: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, e: std::io::Error| Failure::model(format!("cannot write {}: {e}", path.display()));
    fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    let mut count = 0;
    for command in std::iter::once(top).chain(commands(top)) {
        let path = folder.join(page_name(command) + ".1");
        fs::write(&path, page(command)? + "\n").map_err(|e| failed(&path, e))?;
        count += 1;
    }
    if quiet() { Ok(()) } else { say(&format!("{count} pages in {}", folder.display())) }
}
