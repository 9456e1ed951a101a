//! Spellings of what equations give a name to: `spellings.txt` has ways to write each op, and near misses beside them.

mod spelled;

use relayout_equations::{EQUATIONS, Finder, named};
use relayout_target_api::Numerics;
use spelled::Spelled;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// One way to write an op, or a near miss.
struct Spelling {
    op: String,
    name: String,
    hit: bool,
    lines: Vec<String>,
}

/// The spellings, each with the operands of its op in front.
fn spellings() -> Vec<Spelling> {
    let mut all: Vec<Spelling> = Vec::new();
    let (mut op, mut given): (String, Vec<String>) = (String::new(), Vec::new());
    for line in include_str!("spellings.txt").lines() {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("= ") {
            (op, given) = (name.to_owned(), Vec::new());
            continue;
        }
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "hit" | "miss" => {
                let (op, name, lines) = (op.clone(), rest.to_owned(), given.clone());
                all.push(Spelling { op, name, hit: kind == "hit", lines });
            }
            // For tools/spellings.py.
            "run" | "was" | "before" | "after" => {}
            "" => all.last_mut().unwrap().lines.push(text.to_owned()),
            _ => given.push(text.to_owned()),
        }
    }
    all
}

/// Of ops that equations give a name to, and of one that the standard has a name for and that is several nodes as a rule.
fn finder() -> Finder {
    let wanted = [&named(&[])[..], &["InstanceNormalization"]].concat();
    Finder::new(&wanted, &[], Numerics::Reassociate).unwrap()
}

impl Spelling {
    /// Whether it is of this op.
    fn is_of(&self, op: &str) -> bool {
        self.op.split(" or ").any(|own| own == op)
    }
}

#[test]
fn each_op_is_found_however_it_is_spelled_and_near_misses_are_not() {
    let finder = finder();
    let mut problems = String::new();
    for spelling in spellings() {
        let Spelling { op, name, hit, lines } = &spelling;
        let spelled = match Spelled::of(17, lines.iter().map(String::as_str)) {
            Ok(spelled) => spelled,
            Err(e) => {
                let _ = writeln!(problems, "{op}, {name}: {e}");
                continue;
            }
        };
        let result = spelled.graph.outputs()[0];
        let found = finder.find(&spelled.graph, &spelled.ops());
        let is = found.iter().any(|found| spelling.is_of(&found.op) && found.result == result);
        if is != *hit {
            let others: Vec<String> =
                found.iter().map(|f| format!("{} at {}", f.op, spelled.graph.value(f.result).name)).collect();
            let _ = writeln!(problems, "{op}, {name}: found {is}; found {others:?}\n{}", spelled.graph);
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn each_spelling_is_explained_by_equations_from_the_file_to_the_op() {
    let finder = finder();
    let known: BTreeSet<&str> = EQUATIONS.iter().map(|equation| equation.name).collect();
    let mut problems = String::new();
    let mut longest = 0;
    for spelling in spellings().into_iter().filter(|spelling| spelling.hit) {
        let Spelling { op, name, lines, .. } = &spelling;
        let spelled = Spelled::of(17, lines.iter().map(String::as_str)).unwrap();
        let found = finder.find(&spelled.graph, &spelled.ops());
        let Some(found) = found.iter().find(|found| spelling.is_of(&found.op)) else { continue };
        let Some(why) = finder.explain(&spelled.graph, found) else {
            let _ = writeln!(problems, "{op}, {name}: not explained");
            continue;
        };
        longest = longest.max(why.steps.len());
        let last = why.steps.last().map_or(&why.spelled, |step| &step.term);
        let by_names = why.steps.iter().all(|step| known.contains(&step.equation[..]));
        let is_op = |term: &str| term.starts_with(&format!("({} ", found.op));
        if !by_names || !is_op(last) || is_op(&why.spelled) != why.steps.is_empty() {
            let _ = writeln!(problems, "{op}, {name}: {why}");
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!((3..100).contains(&longest), "{longest} steps at most");
}

#[test]
fn an_explanation_names_each_equation_with_what_it_leads_to() {
    let spelled = Spelled::of(17, ["x: [2,3,8]", "(Mul (Sigmoid x) x)"]).unwrap();
    let finder = Finder::new(&["Swish"], &[], Numerics::Reassociate).unwrap();
    let found = finder.find(&spelled.graph, &spelled.ops());
    let why = finder.explain(&spelled.graph, &found[0]).unwrap();
    let expected = "(Mul (Sigmoid x) x)\n= (Mul x (Sigmoid x))   by multiply_commutes\n= (Swish x)   by swish";
    assert_eq!(why.to_string(), expected);
}

#[test]
fn every_named_op_has_eight_spellings_and_a_near_miss() {
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for Spelling { op, hit, .. } in spellings() {
        for own in op.split(" or ") {
            counts.entry(own.to_owned()).or_default()[usize::from(hit)] += 1;
        }
    }
    let few: Vec<String> = named(&[])
        .into_iter()
        .map(|name| (name, counts.get(name).copied().unwrap_or_default()))
        .filter(|(_, [misses, hits])| *misses < 1 || *hits < 8)
        .map(|(name, [misses, hits])| format!("{name}: {hits} spellings, {misses} near misses"))
        .collect();
    assert!(few.is_empty(), "{few:#?}");
}
