//! How long the solvers take on large synthetic graphs; `cargo run --release --example solve_scaling [variables]`.
//!
//! Not a test: times depend on the machine. The shapes are those of operator graphs: chains with skips, and several labels.

use std::time::Instant;

use relayout_solve::{Cost, Limits, Problem, ProblemError, SharedValue, Use, Var, solve};

/// A small generator, so that every run times the same problem.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A chain in which every third value is used again `skip` variables later; unary costs are below `spread`.
fn chain(n: usize, labels: usize, skip: usize, spread: u64) -> Result<Problem, ProblemError> {
    let mut random = Random(n as u64);
    let mut problem = Problem::new();
    let mut vars = Vec::with_capacity(n);
    for i in 0..n {
        let costs = (0..labels).map(|_| Cost::new(random.below(spread))).collect();
        vars.push(problem.add_variable(format!("x{i}"), costs)?);
    }
    for i in 0..n.saturating_sub(1) {
        let every = |&at: &usize| at < n;
        let uses = if i % 3 == 0 { vec![i + 1, i + skip] } else { vec![i + 1] };
        let wants: Vec<Option<u32>> = (0..labels as u32).map(Some).collect();
        let uses = uses.into_iter().filter(every).map(|at| Use { var: vars[at], wants: wants.clone() }).collect();
        let moves = (0..labels * labels).map(|_| Cost::new(50 + random.below(100))).collect();
        let produces = (0..labels as u32).collect();
        problem.add_value(SharedValue {
            name: format!("t{i}"),
            producer: vars[i],
            produces,
            uses,
            layouts: labels,
            moves,
        })?;
    }
    Ok(problem)
}

/// A chain whose ends are pinned to different labels, with nothing to choose in between but where to convert.
fn pinned_ends(n: usize) -> Result<Problem, ProblemError> {
    let mut problem = chain(n, 2, 4, 1)?;
    let first = problem.add_variable("first", vec![Cost::ZERO, Cost::INFINITE])?;
    let last = problem.add_variable("last", vec![Cost::INFINITE, Cost::ZERO])?;
    let differ = vec![Cost::ZERO, Cost::new(1000), Cost::new(1000), Cost::ZERO];
    problem.add_pair(first, Var(0), differ.clone())?;
    problem.add_pair(Var(n as u32 - 1), last, differ)?;
    Ok(problem)
}

/// A square grid of `side`², whose treewidth is its side.
fn grid(side: usize, labels: usize) -> Result<Problem, ProblemError> {
    let mut random = Random(side as u64);
    let mut problem = Problem::new();
    for i in 0..side * side {
        let costs = (0..labels).map(|_| Cost::new(random.below(100))).collect();
        problem.add_variable(format!("x{i}"), costs)?;
    }
    for i in 0..side * side {
        let mut link = |to: usize| {
            let table = (0..labels * labels).map(|at| if at % (labels + 1) == 0 { 0 } else { 20 + random.below(60) });
            let table = table.map(Cost::new).collect();
            problem.add_pair(Var(i as u32), Var(to as u32), table)
        };
        if i % side + 1 < side {
            link(i + 1)?;
        }
        if i / side + 1 < side {
            link(i + side)?;
        }
    }
    Ok(problem)
}

/// One value that all `n` variables read, pinned by turns to one of `labels` layouts or free.
fn star(n: usize, labels: usize) -> Result<Problem, ProblemError> {
    let mut random = Random(n as u64);
    let mut problem = Problem::new();
    let layouts: Vec<Option<u32>> = (0..labels as u32).map(Some).collect();
    let mut uses = Vec::new();
    for i in 0..n {
        let costs = (0..labels).map(|_| Cost::new(random.below(100))).collect();
        uses.push(Use { var: problem.add_variable(format!("x{i}"), costs)?, wants: layouts.clone() });
    }
    let moves = (0..labels * labels).map(|_| Cost::new(n as u64 * (5 + random.below(30)))).collect();
    let produces = (0..labels as u32).collect();
    problem.add_value(SharedValue { name: "t".into(), producer: Var(0), produces, uses, layouts: labels, moves })?;
    Ok(problem)
}

/// Links between random pairs, three for each variable: no good order, and labels that cannot be oriented.
fn tangle(n: usize, labels: usize) -> Result<Problem, ProblemError> {
    let mut random = Random(n as u64);
    let mut problem = Problem::new();
    for i in 0..n {
        problem.add_variable(format!("x{i}"), (0..labels).map(|_| Cost::new(random.below(100))).collect())?;
    }
    for _ in 0..3 * n {
        let mut var = || Var(random.below(n as u64) as u32);
        let (a, b) = (var(), var());
        problem.add_pair(a, b, (0..labels * labels).map(|_| Cost::new(random.below(60))).collect())?;
    }
    Ok(problem)
}

/// A chain in which all but every tenth pair of neighbours must agree.
fn agreeing(n: usize) -> Result<Problem, ProblemError> {
    let mut random = Random(n as u64);
    let mut problem = Problem::new();
    for i in 0..n {
        problem.add_variable(format!("x{i}"), vec![Cost::new(random.below(50)), Cost::new(random.below(50))])?;
    }
    for i in (0..(n as u32).saturating_sub(1)).rev() {
        let price = if i % 10 == 0 { Cost::new(30 + random.below(90)) } else { Cost::INFINITE };
        problem.add_pair(Var(i), Var(i + 1), vec![Cost::ZERO, price, price, Cost::ZERO])?;
    }
    Ok(problem)
}

fn main() -> Result<(), ProblemError> {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let problems = [
        ("2 labels, chain with skips, weak costs", chain(n, 2, 4, 100)?),
        ("2 labels, chain with skips, even costs", chain(n, 2, 4, 400)?),
        ("2 labels, chain with long skips", chain(n, 2, 50, 300)?),
        ("2 labels, pinned ends", pinned_ends(n)?),
        ("4 labels, chain with skips", chain(n / 5, 4, 4, 300)?),
        ("2 labels, grid", grid(300, 2)?),
        ("2 labels, neighbours that must agree", agreeing(n)?),
        ("2 labels, star", star(n, 2)?),
        ("4 labels, star", star(n / 5, 4)?),
        ("2 labels, tangle", tangle(n / 100, 2)?),
        ("4 labels, tangle", tangle(n / 10, 4)?),
        ("4 labels, chain with long skips", chain(n / 5, 4, 50, 300)?),
        ("4 labels, grid 8", grid(8, 4)?),
        ("4 labels, grid 30", grid(30, 4)?),
    ];
    for (name, problem) in problems {
        let start = Instant::now();
        let solution = solve(&problem, &Limits::default());
        let took = start.elapsed();
        let gap = (solution.cost.get() - solution.bound.get()) as f64 / solution.cost.get().max(1) as f64;
        println!("{name}: {took:.2?}, cost {}, gap {:.2} %, {:?}", solution.cost, gap * 100.0, solution.stats);
    }
    Ok(())
}
