//! `relayout rules`: by which rules nodes are rewritten, and by which equations pieces are recognized, as text and as Markdown.

use crate::args;
use crate::commands::of_library;
use crate::failure::Failure;
use crate::terminal::{json, say, say_json};
use relayout::Numerics;
use relayout::passes::{equations, rules as rules_of};
use relayout::targets::BUILTIN;
use serde::Serialize;
use std::fmt::Write as _;

/// What `docs/rules.md` says before the tables.
const HEAD: &str = "# Rules and equations

By which rules nodes are rewritten, and by which equations a piece of several nodes is recognized. Generated from what the passes and
the targets list; a test compares. To write it anew:

    cargo run -p relayout-cli -- rules --markdown > docs/rules.md

`exact` keeps every bit. `reassociate` may round at other places or add in another order; `--numerics exact` leaves it out.
";

/// What `tools/rules_proof.py` shows of the rules. It writes this file.
const PROVED: &str = include_str!("proved.md");

/// A rule or an equation, with the targets for which it is applied.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Entry {
    kind: Kind,
    name: &'static str,
    /// What is replaced, and by what.
    equation: String,
    /// Where that holds; empty if everywhere.
    condition: String,
    /// What falls wherever it is applied. An equation names what is there and changes nothing by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    buys: Option<&'static str>,
    numerics: &'static str,
    targets: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Rule,
    Equation,
}

/// `relayout rules`
pub(crate) fn rules(a: &args::Rules) -> Result<(), Failure> {
    if a.markdown && json() {
        return Err(Failure::usage("--markdown and JSON are two forms of the same table; take one"));
    }
    let only: Vec<&'static str> = BUILTIN.iter().copied().filter(|name| a.target.as_deref() == Some(name)).collect();
    if let (Some(name), true) = (&a.target, only.is_empty()) {
        // It says which there are.
        return relayout::target(name).map(|_| ()).map_err(Failure::usage);
    }
    let mut all = entries(if a.target.is_some() { &only } else { BUILTIN })?;
    if a.markdown {
        return say(markdown(&all).trim_end());
    }
    if let Some(unknown) = a.names.iter().find(|name| !all.iter().any(|entry| entry.name == **name)) {
        let why = format!("there is no rule or equation `{unknown}`; `relayout rules` lists all");
        return Err(Failure::usage(why));
    }
    all.retain(|entry| a.names.is_empty() || a.names.iter().any(|name| name == entry.name));
    if json() {
        return say_json(&all);
    }
    say(text(&all).trim_end())
}

/// Rules, then equations, in the order in which targets list them.
fn entries(targets: &[&'static str]) -> Result<Vec<Entry>, Failure> {
    let mut all: Vec<Entry> = Vec::new();
    let mut add = |of: &'static str, entry: Entry| match all.iter_mut().find(|known| known.name == entry.name) {
        Some(known) if known.targets.contains(&of) => {}
        Some(known) => known.targets.push(of),
        None => all.push(Entry { targets: vec![of], ..entry }),
    };
    for &name in targets {
        let target = relayout::target(name).map_err(Failure::model)?;
        for rule in rules_of(target.as_ref()) {
            let entry = Entry {
                kind: Kind::Rule,
                name: rule.name,
                equation: rule.equation.to_owned(),
                condition: rule.condition.to_owned(),
                buys: Some(rule.buys),
                numerics: numerics(rule.numerics),
                targets: Vec::new(),
            };
            add(name, entry);
        }
        for equation in equations(target.as_ref()).map_err(of_library)? {
            let conditions: Vec<String> = equation.when.iter().map(ToString::to_string).collect();
            let entry = Entry {
                kind: Kind::Equation,
                name: equation.name,
                equation: format!("{} = {}", equation.left, equation.right),
                condition: conditions.join(", "),
                buys: None,
                numerics: numerics(equation.numerics),
                targets: Vec::new(),
            };
            add(name, entry);
        }
    }
    all.sort_by_key(|entry| entry.kind != Kind::Rule);
    Ok(all)
}

fn numerics(of: Numerics) -> &'static str {
    match of {
        Numerics::Exact => "exact",
        Numerics::Reassociate => "reassociate",
    }
}

/// The targets, in a word where it is all of them.
fn told(targets: &[&str]) -> String {
    if targets.len() == BUILTIN.len() { "all".to_owned() } else { targets.join(", ") }
}

/// One paragraph per entry.
fn text(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let _ = writeln!(text, "{} ({}; targets: {})", entry.name, entry.numerics, told(&entry.targets));
        let _ = writeln!(text, "  {}", entry.equation);
        if !entry.condition.is_empty() {
            let _ = writeln!(text, "  where {}", entry.condition);
        }
        if let Some(buys) = entry.buys {
            let _ = writeln!(text, "  buys {buys}");
        }
    }
    text
}

/// The contents of `docs/rules.md`.
fn markdown(entries: &[Entry]) -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\n## Rules\n\nA rule is applied where what it buys is more than it costs.\n");
    text.push_str("\n| rule | rewrites | where | buys | numerics | targets |\n|---|---|---|---|---|---|\n");
    for e in entries.iter().filter(|entry| entry.kind == Kind::Rule) {
        let (equation, buys, targets) = (cell(&e.equation), cell(e.buys.unwrap_or_default()), told(&e.targets));
        let _ = writeln!(
            text,
            "| `{}` | {equation} | {} | {buys} | {} | {targets} |",
            e.name,
            cell(&e.condition),
            e.numerics
        );
    }
    text.push_str("\n### Proved at every size\n\n");
    text.push_str(PROVED);
    text.push_str("\n## Equations\n\nAn equation names what a piece computes ([equations.md](equations.md)). It changes no file by itself.\n");
    text.push_str("\n| equation | left | right | where | numerics | targets |\n|---|---|---|---|---|---|\n");
    for e in entries.iter().filter(|entry| entry.kind == Kind::Equation) {
        let (left, right) = e.equation.split_once(" = ").unwrap_or((&e.equation, ""));
        let (condition, targets) = (cell(&e.condition), told(&e.targets));
        let _ = writeln!(text, "| `{}` | `{left}` | `{right}` | {condition} | {} | {targets} |", e.name, e.numerics);
    }
    text
}

/// Text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*")
}
