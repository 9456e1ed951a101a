//! `relayout solve`: problems in files, for those who have no model.

use crate::args;
use crate::commands::{ReportFile, is_stdio};
use crate::failure::Failure;
use crate::terminal::{json, remark, say, say_json};
use crate::written::check_written;
use relayout::certificate::Certificate;
use relayout::fsio::read_text;
use relayout::solve::certificate::certify;
use relayout::solve::{Cost, Limits, Method, Problem, Solution, Var, solve as solve_problem, wcsp};
use relayout::units::elapsed;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, stdin};
use std::path::Path;
use std::time::Instant;

/// A problem, and what an assignment may not cost where its file says so.
struct Given {
    problem: Problem,
    top: Option<Cost>,
}

/// `relayout solve`
pub(crate) fn solve(a: &args::Solve) -> Result<(), Failure> {
    let written = [("--out", a.out.as_deref()), ("--certificate", a.certificate.as_deref())];
    check_written(&written, &[&a.file])?;
    let given = read(a)?;
    if let Some(path) = &a.out {
        return ReportFile::new(path, described(&given.problem, path)?)?.commit();
    }
    if let Some(path) = &a.check {
        return check(&given.problem, path);
    }
    let mut limits = Limits::default();
    if let Some(nodes) = a.nodes {
        limits.max_branch_nodes = nodes;
    }
    if let Some(entries) = a.entries {
        limits.max_table_entries = entries;
    }
    let begun = Instant::now();
    let solution = match &a.certificate {
        None => solve_problem(&given.problem, &limits),
        Some(path) => {
            let (solution, certificate) = certify(&given.problem, &limits);
            let text = serde_json::to_string(&certificate).map_err(Failure::model)?;
            ReportFile::new(path, text)?.commit()?;
            solution
        }
    };
    remark(|| format!("solved in {}", elapsed(begun.elapsed())));
    told(a, &given, &solution)
}

/// A problem in the form that the name of its file asks for.
pub(crate) fn described(problem: &Problem, path: &Path) -> Result<String, Failure> {
    if !is_wcsp(path) {
        return Ok(problem.to_string().trim_end().to_owned());
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(wcsp::write(problem, &name).map_err(Failure::model)?.trim_end().to_owned())
}

fn is_wcsp(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("wcsp"))
}

fn read(a: &args::Solve) -> Result<Given, Failure> {
    let name = if is_stdio(&a.file) { "stdin".to_owned() } else { a.file.display().to_string() };
    let text = if is_stdio(&a.file) {
        let mut text = String::new();
        stdin().lock().read_to_string(&mut text).map_err(|e| Failure::model(format!("{name}: {e}")))?;
        text
    } else {
        read_text(&a.file).map_err(Failure::model)?
    };
    let wrong = |e: relayout::solve::text::ReadProblemError| Failure::model(format!("{name}: {e}"));
    if a.wcsp || is_wcsp(&a.file) {
        let file = wcsp::read(&text).map_err(wrong)?;
        return Ok(Given { problem: file.problem, top: Some(file.top) });
    }
    Ok(Given { problem: text.parse().map_err(wrong)?, top: None })
}

/// Says what a certificate proves.
fn check(problem: &Problem, path: &Path) -> Result<(), Failure> {
    let text = read_text(path).map_err(Failure::model)?;
    let certificate: Certificate = serde_json::from_str(&text)
        .map_err(|e| Failure::model(format!("{} is not a certificate: {e}", path.display())))?;
    let checked = certificate.check(problem).map_err(|e| Failure::Check(e.to_string()))?;
    let verdict = verdict(checked.cost, checked.bound, checked.is_optimal());
    if json() {
        let (cost, bound, optimal) = (checked.cost, checked.bound, checked.is_optimal());
        return say_json(&serde_json::json!({"cost": cost, "bound": bound, "optimal": optimal}));
    }
    say(&format!("the certificate holds: {verdict}"))
}

fn verdict(cost: Cost, bound: Cost, optimal: bool) -> String {
    format!("cost {cost}, bound {bound}, {}", if optimal { "optimal" } else { "perhaps not optimal" })
}

/// Says what was found.
fn told(a: &args::Solve, given: &Given, solution: &Solution) -> Result<(), Failure> {
    let Solution { cost, bound, optimal, methods, assignment, stats, .. } = solution;
    let none = |why: &str| Err(Failure::model(format!("{}: {why}", a.file.display())));
    if !cost.is_finite() {
        return none(if *optimal {
            "no assignment can be paid"
        } else {
            "within the limits no assignment that can be paid was found"
        });
    }
    if let Some(top) = given.top.filter(|top| cost >= top) {
        let why = format!(
            "found no assignment below the file's upper bound {top}: the best costs {cost}, and none costs less than {bound}"
        );
        return none(&why);
    }
    if json() {
        return say_json(solution);
    }
    let mut text = verdict(*cost, *bound, *optimal) + "\n";
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{} variables, {} left after merging and pinning{}",
        stats.variables,
        stats.variables_left,
        by(methods)
    );
    for (at, state) in assignment.iter().enumerate() {
        let var = Var(at as u32);
        let _ = writeln!(text, "{var} {:?}: {state}", given.problem.name(var));
    }
    say(text.trim_end())
}

/// How many parts were settled by which method.
fn by(methods: &[Method]) -> String {
    let mut counts: BTreeMap<Method, usize> = BTreeMap::new();
    for &method in methods {
        *counts.entry(method).or_default() += 1;
    }
    let each: Vec<String> = counts.iter().map(|(method, count)| format!("{count} by {method}")).collect();
    if each.is_empty() { String::new() } else { format!("; parts: {}", each.join(", ")) }
}
