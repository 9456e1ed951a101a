//! The solvers against brute force on small random problems, and on problems whose answer is known.

use super::parts::{
    brute_force, changes, costs, dense, dense_block, forbidden, many_layouts, operators, parts, two_layouts,
};
use proptest::prelude::*;
use relayout_solve::certificate::{Certificate, CertificateError, Checked, Proof, certify};
use relayout_solve::{Cost, Limits, Method, Problem, ProblemError, SharedValue, Solution, Use, Var, solve};

fn limits(table: usize, nodes: u64) -> Limits {
    Limits { max_table_entries: table, max_branch_nodes: nodes, ..Limits::default() }
}

fn check_exact(problem: &Problem, solution: &Solution) -> Result<(), TestCaseError> {
    let (best, fewest) = brute_force(problem);
    prop_assert_eq!(solution.cost, best);
    prop_assert_eq!(problem.cost(&solution.assignment), best);
    prop_assert_eq!(solution.bound, best);
    prop_assert!(solution.optimal);
    if best.is_finite() {
        prop_assert_eq!(changes(&solution.assignment), fewest, "among equals the fewest changes win");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn two_layouts_are_always_a_cut_and_the_optimum(parts in two_layouts(9)) {
        let problem = parts.build();
        let solution = solve(&problem, &Limits::default());
        prop_assert!(solution.methods.iter().all(|&method| method == Method::Cut));
        check_exact(&problem, &solution)?;
    }

    #[test]
    fn two_states_and_any_factors_give_the_optimum(parts in parts(8, 1..=2, 3)) {
        let problem = parts.build();
        check_exact(&problem, &solve(&problem, &Limits::default()))?;
    }

    #[test]
    fn up_to_four_states_and_any_factors_give_the_optimum(parts in parts(5, 1..=4, 4)) {
        let problem = parts.build();
        check_exact(&problem, &solve(&problem, &Limits::default()))?;
    }

    #[test]
    fn states_that_die_by_a_table_of_their_own_give_the_optimum(parts in forbidden()) {
        let problem = parts.build();
        check_exact(&problem, &solve(&problem, &Limits::default()))?;
    }

    #[test]
    fn operators_that_mix_layouts_give_the_optimum(problem in operators(), cap in 1_usize..30) {
        check_exact(&problem, &solve(&problem, &Limits::default()))?;
        check_exact(&problem, &solve(&problem, &limits(cap, u64::MAX)))?;
        let (_, certificate) = check_certificate(&problem, &Limits::default())?;
        prop_assert_eq!(certificate.bound, brute_force(&problem).0);
    }

    #[test]
    fn split_tables_with_nodes_to_spare_still_give_the_optimum(parts in parts(5, 2..=4, 4), cap in 1_usize..30) {
        let problem = parts.build();
        check_exact(&problem, &solve(&problem, &limits(cap, u64::MAX)))?;
    }

    #[test]
    fn dense_problems_give_the_optimum_with_large_and_with_split_tables(parts in dense(), cap in 1_usize..100) {
        let problem = parts.build();
        check_exact(&problem, &solve(&problem, &Limits::default()))?;
        check_exact(&problem, &solve(&problem, &limits(cap, u64::MAX)))?;
    }

    #[test]
    fn dense_problems_under_tiny_limits_have_a_bound_below_the_optimum(parts in dense(), nodes in 0_u64..20) {
        let problem = parts.build();
        let solution = solve(&problem, &limits(1, nodes));
        let (best, _) = brute_force(&problem);
        prop_assert!(solution.bound <= best && best <= solution.cost);
        prop_assert!(!solution.optimal || solution.cost == best);
    }

    #[test]
    fn tiny_limits_give_a_bound_below_and_a_cost_above_the_optimum(
        parts in parts(6, 2..=4, 4), cap in 1_usize..8, nodes in 0_u64..6
    ) {
        let problem = parts.build();
        let solution = solve(&problem, &limits(cap, nodes));
        let (best, _) = brute_force(&problem);
        prop_assert!(solution.bound <= best, "bound {} above the optimum {best}", solution.bound);
        prop_assert!(best <= solution.cost);
        prop_assert_eq!(problem.cost(&solution.assignment), solution.cost);
        if solution.optimal {
            prop_assert_eq!(solution.cost, best);
        }
    }

    #[test]
    fn the_same_problem_has_the_same_solution(parts in parts(6, 1..=4, 4), cap in 1_usize..30) {
        let problem = parts.build();
        let limits = limits(cap, 10);
        prop_assert_eq!(solve(&problem, &limits), solve(&problem.clone(), &limits));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn values_with_many_layouts_give_the_optimum(problem in many_layouts()) {
        check_exact(&problem, &solve(&problem, &Limits::default()))?;
    }

    #[test]
    fn long_chains_agree_with_dynamic_programming(
        unary in prop::collection::vec(prop::collection::vec(0..40_u64, 3), 200),
        tables in prop::collection::vec(prop::collection::vec(0..40_u64, 9), 199),
        two in any::<bool>(),
    ) {
        let states = if two { 2 } else { 3 };
        let table = |i: usize, a: usize, b: usize| tables[i][3 * a + b];
        let mut problem = Problem::new();
        for units in &unary {
            problem.add_variable("x", costs(&units[..states])).expect("has states");
        }
        let mut best: Vec<u64> = unary[0][..states].to_vec();
        for (i, units) in unary[1..].iter().enumerate() {
            let cells = (0..states * states).map(|at| Cost::new(table(i, at / states, at % states))).collect();
            problem.add_pair(Var(i as u32), Var(i as u32 + 1), cells).expect("fits");
            let into = |b: usize| (0..states).map(|a| best[a] + table(i, a, b)).min().unwrap_or(0);
            best = (0..states).map(|b| into(b) + units[b]).collect();
        }
        let best = best.into_iter().min().map(Cost::new);
        let solution = solve(&problem, &Limits::default());
        prop_assert_eq!(Some(solution.cost), best);
        prop_assert_eq!(Some(solution.bound), best);
    }
}

/// A free producer with two readers pinned to each of two layouts; each conversion costs 10.
fn counterexample() -> Problem {
    let mut problem = Problem::new();
    let producer = problem.add_variable("producer", costs(&[0, 0])).expect("has states");
    let mut uses = Vec::new();
    for pinned in [[0, u64::MAX], [0, u64::MAX], [u64::MAX, 0], [u64::MAX, 0]] {
        let var = problem.add_variable("reader", costs(&pinned)).expect("has states");
        uses.push(Use { var, wants: vec![Some(0), Some(1)] });
    }
    let name = "t".to_owned();
    let value = SharedValue { name, producer, produces: vec![0, 1], uses, layouts: 2, moves: costs(&[0, 10, 10, 0]) };
    problem.add_value(value).expect("fits");
    problem
}

#[test]
fn a_conversion_shared_by_two_readers_is_paid_once() {
    let solution = solve(&counterexample(), &Limits::default());
    assert_eq!((solution.cost, solution.bound), (Cost::new(10), Cost::new(10)));
    assert_eq!(solution.assignment, [0, 0, 0, 1, 1]);
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    let mut problem = Problem::new();
    let x = problem.add_variable("x", costs(&[0, 1])).expect("has states");
    assert_eq!(problem.add_variable("y", vec![]), Err(ProblemError::NoStates { name: "y".into() }));
    let error = problem.add_pair(x, x, costs(&[0; 3])).expect_err("too short");
    assert_eq!(error.to_string(), "the pair table of v0 and v0 has 3 entries where 4 belong");
    let error = problem.add_pair(x, Var(7), costs(&[0; 4])).expect_err("unknown");
    assert_eq!(error.to_string(), "v7, named by the pair table of v0 and v7, is not a variable of this problem");
    let value = SharedValue {
        name: "t".into(),
        producer: x,
        produces: vec![0, 1],
        uses: vec![Use { var: x, wants: vec![None, Some(2)] }],
        layouts: 2,
        moves: costs(&[0; 4]),
    };
    let error = problem.add_value(value.clone()).expect_err("no layout 2");
    assert_eq!(error.to_string(), "`wants` of use 0 of value `t` names layout 2, but the value has 2");
    let error = problem.add_value(SharedValue { layouts: 65, ..value }).expect_err("too many");
    assert!(matches!(error, ProblemError::TooManyLayouts { layouts: 65, .. }));
    assert_eq!(problem.cost(&[0]), Cost::ZERO, "nothing of what was refused is there");
}

#[test]
fn what_is_no_assignment_cannot_be_paid() {
    let problem = counterexample();
    assert_eq!(problem.cost(&[0, 0, 0, 1]), Cost::INFINITE);
    assert_eq!(problem.cost(&[0, 0, 0, 1, 2]), Cost::INFINITE);
    assert_eq!(problem.cost(&[0, 0, 0, 1, 1]), Cost::new(10));
}

#[test]
fn an_empty_problem_costs_nothing_and_an_impossible_one_is_infinite() {
    let solution = solve(&Problem::new(), &Limits::default());
    assert_eq!((solution.cost, solution.bound, solution.optimal), (Cost::ZERO, Cost::ZERO, true));
    let mut problem = Problem::new();
    let a = problem.add_variable("a", costs(&[0, 0])).expect("has states");
    let b = problem.add_variable("b", costs(&[0, 0])).expect("has states");
    problem.add_pair(a, b, vec![Cost::INFINITE; 4]).expect("fits");
    let solution = solve(&problem, &Limits::default());
    assert_eq!((solution.cost, solution.bound), (Cost::INFINITE, Cost::INFINITE));
}

/// Variables of two states with weak preferences and a table for each of `links`.
fn linked(variables: usize, links: &[(u32, u32)], table: &[u64]) -> Problem {
    let mut problem = Problem::new();
    for i in 0..variables as u64 {
        problem.add_variable(format!("x{i}"), costs(&[i % 2, (i + 1) % 2])).expect("has states");
    }
    for &(a, b) in links {
        problem.add_pair(Var(a), Var(b), costs(table)).expect("fits");
    }
    problem
}

#[test]
fn each_kind_of_component_goes_to_the_solver_that_is_exact_for_it() {
    let square = [(0, 1), (1, 2), (2, 3), (3, 0)];
    let triangle = [(0, 1), (1, 2), (2, 0)];
    let (same, differ) = ([0, 9, 9, 0], [9, 0, 0, 9]);
    let cases = [
        ("equal labels are a cut", linked(4, &square, &same), Method::Cut),
        ("different labels are a cut if a flip makes them equal", linked(4, &square, &differ), Method::Cut),
        ("equal labels around a triangle are a cut", linked(3, &triangle, &same), Method::Cut),
        ("different labels around a triangle are not", linked(3, &triangle, &differ), Method::Elimination),
    ];
    for (what, problem, method) in cases {
        let solution = solve(&problem, &Limits::default());
        assert_eq!(solution.methods, [method], "{what}");
        assert_eq!((solution.cost, solution.bound), (brute_force(&problem).0, solution.cost), "{what}");
    }
    let solution = solve(&linked(3, &triangle, &differ), &limits(1, u64::MAX));
    assert_eq!(solution.methods, [Method::Search], "tables without room are split");
    assert!(solution.stats.branch_nodes > 0 && solution.optimal);
}

#[test]
fn out_of_nodes_the_gap_is_flagged() {
    let all: Vec<(u32, u32)> = (0..9).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let problem = linked(9, &all, &[9, 0, 0, 9]);
    let solution = solve(&problem, &limits(1, 0));
    assert!(!solution.optimal && solution.bound < solution.cost, "{solution:?}");
    assert!(solution.bound <= brute_force(&problem).0);
}

/// Three times the largest of DenseNet's blocks.
#[test]
fn a_concat_that_grows_with_every_layer_stays_within_the_limits() {
    let solution = solve(&dense_block(72, 2), &Limits::default());
    assert_eq!((solution.methods.as_slice(), solution.optimal), ([Method::Cut].as_slice(), true));
    let solution = solve(&dense_block(72, 3), &limits(1 << 10, 1 << 8));
    assert_eq!(solution.methods, [Method::Search]);
    assert!(solution.stats.branch_nodes <= 1 << 8 && solution.bound <= solution.cost && solution.cost.is_finite());
}

#[test]
fn variables_that_must_agree_become_one_and_dominated_states_go() {
    let must_agree = [0, u64::MAX, u64::MAX, 0];
    let solution = solve(&linked(4, &[(0, 1), (1, 2), (2, 3)], &must_agree), &Limits::default());
    assert_eq!((solution.stats.merged, solution.stats.pinned, solution.stats.components), (3, 1, 0));
    assert_eq!((solution.cost, solution.assignment), (Cost::new(2), vec![0; 4]));
    // A weak link cannot pay for leaving the cheap state.
    let mut problem = linked(2, &[(0, 1)], &[0, 1, 1, 0]);
    problem.add_pair(Var(0), Var(0), costs(&[5, 0, 0, 0])).expect("fits");
    let solution = solve(&problem, &Limits::default());
    assert_eq!((solution.stats.pinned, solution.cost), (2, Cost::new(1)));
}

#[test]
fn ties_keep_the_input() {
    let solution = solve(&linked(6, &[(0, 1), (2, 3), (4, 5)], &[0, 1, 1, 0]), &Limits::default());
    assert_eq!((solution.cost, solution.assignment), (Cost::new(3), vec![0; 6]));
}

/// The certificate of `problem` holds, and says what its solution says.
fn check_certificate(problem: &Problem, limits: &Limits) -> Result<(Solution, Certificate), TestCaseError> {
    let (solution, certificate) = certify(problem, limits);
    let checked = certificate.check(problem);
    prop_assert!(checked.is_ok(), "{checked:?} of {certificate:?}");
    prop_assert_eq!(checked.map(|c| (c.cost, c.bound)), Ok((certificate.cost, certificate.bound)));
    prop_assert_eq!(certificate.cost, solution.cost);
    Ok((solution, certificate))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn certificates_prove_the_optimum(parts in parts(5, 1..=4, 4)) {
        let problem = parts.build();
        let (_, certificate) = check_certificate(&problem, &Limits::default())?;
        prop_assert_eq!(certificate.bound, brute_force(&problem).0);
    }

    #[test]
    fn certificates_with_tables_in_pieces_prove_a_bound(parts in dense(), cap in 1_usize..30, cases in 0_u64..20) {
        let problem = parts.build();
        let (_, certificate) = check_certificate(&problem, &limits(cap, cases))?;
        prop_assert!(certificate.bound <= brute_force(&problem).0);
    }

    #[test]
    fn certificates_under_tiny_limits_prove_a_bound(parts in parts(6, 1..=4, 4), cap in 1_usize..8) {
        let problem = parts.build();
        let (_, certificate) = check_certificate(&problem, &limits(cap, 4))?;
        prop_assert!(certificate.bound <= brute_force(&problem).0);
    }

    #[test]
    fn nothing_above_the_optimum_can_be_proven(parts in parts(5, 1..=4, 4), more in 1_u64..5) {
        let problem = parts.build();
        let (_, mut certificate) = check_certificate(&problem, &Limits::default())?;
        let best = brute_force(&problem).0;
        prop_assume!(best.is_finite());
        certificate.bound = Cost::new(best.get() + more);
        let (claimed, found) = (certificate.bound, best);
        prop_assert_eq!(certificate.check(&problem), Err(CertificateError::Bound { claimed, found }));
    }

    #[test]
    fn whatever_amounts_are_shifted_nothing_above_the_optimum_is_proven(
        parts in parts(5, 1..=4, 4), amounts in prop::collection::vec(-20_000_i64..20_000, 40)
    ) {
        let problem = parts.build();
        let (_, mut certificate) = check_certificate(&problem, &limits(2, 0))?;
        let mut amounts = amounts.into_iter().cycle();
        for shift in &mut certificate.shifts {
            shift.amounts.iter_mut().for_each(|amount| *amount += amounts.next().unwrap_or(0));
        }
        let best = brute_force(&problem).0;
        prop_assume!(best.is_finite());
        certificate.bound = Cost::new(best.get() + 1);
        let error = certificate.check(&problem);
        let below = matches!(error, Err(CertificateError::Bound { found, .. }) if found <= best);
        prop_assert!(below, "{error:?}");
    }
}

/// Two states, a grid of variables that would rather agree: a minimum cut, and wide.
fn grid(side: u32) -> Problem {
    let at = |x: u32, y: u32| y * side + x;
    let right = (0..side).flat_map(|y| (0..side - 1).map(move |x| (at(x, y), at(x + 1, y))));
    let down = (0..side - 1).flat_map(|y| (0..side).map(move |x| (at(x, y), at(x, y + 1))));
    let mut problem = linked((side * side) as usize, &right.chain(down).collect::<Vec<_>>(), &[0, 7, 4, 0]);
    for i in 0..side * side {
        let own = u64::from(i.wrapping_mul(2_654_435_761) >> 28);
        problem.add_pair(Var(i), Var(i), costs(&[own, 0, 0, 15 - own])).expect("fits");
    }
    problem
}

#[test]
fn a_wide_cut_is_proven_by_shifts_alone() {
    let problem = grid(8);
    let (solution, certificate) = certify(&problem, &limits(4, 0));
    assert_eq!(solution.methods, [Method::Cut]);
    assert!(!certificate.shifts.is_empty(), "elimination does not fit");
    let checked = certificate.check(&problem).expect("it holds");
    assert_eq!((checked.cost, checked.bound), (solution.cost, solution.bound));
}

#[test]
fn what_shifts_leave_open_is_branched_on() {
    let all: Vec<(u32, u32)> = (0..6).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let problem = linked(6, &all, &[9, 0, 0, 9]);
    let (_, without) = certify(&problem, &limits(4, 0));
    let (solution, certificate) = certify(&problem, &limits(4, 64));
    assert!(certificate.parts.iter().any(|part| matches!(part, Proof::Branch { .. })), "{certificate:?}");
    assert!(certificate.bound > without.bound);
    assert_eq!(certificate.check(&problem).map(|c| c.bound), Ok(certificate.bound));
    assert!(certificate.bound <= solution.cost);
}

#[test]
fn tampered_certificates_are_refused() {
    let problem = grid(4);
    let (_, good) = certify(&problem, &limits(4, 0));
    assert!(good.check(&problem).is_ok());
    let refused = |what: &str, change: &dyn Fn(&mut Certificate), says: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = bad.check(&problem).expect_err(what).to_string();
        assert!(error.contains(says), "{what}: {error}");
    };
    refused("another form", &|c| c.schema = 9, "form 9");
    refused("another problem", &|c| c.problem = "0".into(), "another problem");
    refused("a lower cost", &|c| c.cost = Cost::new(c.cost.get() - 1), "claims a cost");
    refused("another assignment", &|c| c.assignment[3] ^= 1, "claims a cost");
    refused("a state too many", &|c| c.assignment[3] = 7, "more than can be paid");
    refused("an assignment cut short", &|c| c.assignment.truncate(3), "more than can be paid");
    refused("a higher bound", &|c| c.bound = Cost::new(c.bound.get() + 1), "claims a bound");
    refused("no shifts", &|c| c.shifts.clear(), "claims a bound");
    refused("a shift of a function that is not there", &|c| c.shifts[0].function = u32::MAX, "shift 0");
    refused("a shift from a variable's own function", &|c| c.shifts[0].function = c.shifts[0].variable, "shift 0");
    refused("a shift of a variable that is not there", &|c| c.shifts[1].variable = 99, "shift 1");
    refused("a shift that is too short", &|c| c.shifts[0].amounts.truncate(1), "shift 0");
    refused("no proof", &|c| c.parts.clear(), "0 proofs for 1");
    refused(
        "a variable left out",
        &|c| with_order(c, &|order| order.truncate(order.len() - 1)),
        "name each free variable once",
    );
    refused("a variable twice", &|c| with_order(c, &|order| order.push(0)), "name each free variable once");
    refused(
        "a variable that is not there",
        &|c| with_order(c, &|order| order[0] = 999),
        "name each free variable once",
    );
    let huge = |c: &mut Certificate| c.parts = vec![Proof::Eliminate { order: Vec::new(), entries: usize::MAX }];
    refused("tables beyond the limit", &huge, "larger tables");
    let twice = |c: &mut Certificate| {
        let leaf = c.parts[0].clone();
        let inner = Proof::Branch { variable: 0, cases: vec![leaf.clone(), leaf] };
        c.parts[0] = Proof::Branch { variable: 0, cases: vec![inner.clone(), inner] };
    };
    refused("a branch on what is settled", &twice, "not free there");
    refused(
        "a case left out",
        &|c| c.parts = vec![Proof::Branch { variable: 0, cases: Vec::new() }],
        "one case for each",
    );
}

fn with_order(certificate: &mut Certificate, change: &dyn Fn(&mut Vec<u32>)) {
    for part in &mut certificate.parts {
        if let Proof::Eliminate { order, .. } = part {
            change(order);
        }
    }
}

/// The example of `docs/assignment.md`: NCHW is 0, NHWC is 1.
#[test]
fn the_worked_example_of_the_docs_costs_what_they_say() {
    let mut problem = Problem::new();
    let mut node = |name: &str, states: &[u64]| problem.add_variable(name, costs(states)).expect("has states");
    let (x, p, r, q) = (node("x", &[40]), node("p", &[0]), node("r", &[0, 0]), node("q", &[0]));
    let (y, z) = (node("y", &[0]), node("z", &[0]));
    let use_of = |var, wants: &[u32]| Use { var, wants: wants.iter().copied().map(Some).collect() };
    let mut value = |name: &str, producer, produces: &[u32], uses| {
        let (name, produces) = (name.to_owned(), produces.to_vec());
        let value = SharedValue { name, producer, produces, uses, layouts: 2, moves: costs(&[0, 100, 100, 0]) };
        problem.add_value(value).expect("fits");
    };
    value("t", p, &[0], vec![use_of(r, &[0, 1])]);
    value("u", r, &[0, 1], vec![use_of(q, &[0]), use_of(y, &[1]), use_of(z, &[1])]);
    assert_eq!(x, Var(0));
    assert_eq!(problem.cost(&[0, 0, 1, 0, 0, 0]), Cost::new(240));
    let (solution, certificate) = certify(&problem, &Limits::default());
    assert_eq!((solution.cost, certificate.bound, solution.assignment), (Cost::new(140), Cost::new(140), vec![0; 6]));
    assert!(certificate.check(&problem).is_ok_and(Checked::is_optimal));
}
