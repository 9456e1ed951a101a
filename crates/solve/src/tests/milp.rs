//! The solvers against integer linear programs, and those against brute force.

use super::oracle::optimum;
use super::parts::{brute_force, dense, dense_block, many_layouts, operators, parts, two_layouts};
use proptest::prelude::*;
use relayout_solve::{Limits, Problem, solve};

/// The program finds the least cost, which brute force knows.
fn check_program(problem: &Problem) -> Result<(), TestCaseError> {
    let found = optimum(problem).map_err(TestCaseError::fail)?;
    prop_assert_eq!(found.cost, brute_force(problem).0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_program_of_any_factors_has_the_optimum(parts in parts(5, 1..=4, 4)) {
        check_program(&parts.build())?;
    }

    #[test]
    fn the_program_of_two_layouts_has_the_optimum(parts in two_layouts(9)) {
        check_program(&parts.build())?;
    }

    #[test]
    fn the_program_of_operators_has_the_optimum(problem in operators()) {
        check_program(&problem)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_program_of_dense_problems_has_the_optimum(parts in dense()) {
        check_program(&parts.build())?;
    }

    #[test]
    fn the_program_of_many_layouts_has_the_optimum(problem in many_layouts()) {
        check_program(&problem)?;
    }
}

/// A Concat that grows with every layer, as DenseNet's do: far beyond brute force.
#[test]
fn a_concat_of_all_that_came_before_is_decided_as_the_program_does() {
    for layouts in [2, 3] {
        let problem = dense_block(24, layouts);
        let (ours, theirs) = (solve(&problem, &Limits::default()), optimum(&problem).expect("solves"));
        assert_eq!((ours.cost, ours.bound, ours.optimal), (theirs.cost, theirs.cost, true), "{layouts} layouts");
    }
}

#[test]
fn out_of_room_the_program_lies_between_bound_and_cost() {
    let problem = dense_block(32, 3);
    let mut limits = Limits::default();
    (limits.max_table_entries, limits.max_branch_nodes) = (1 << 10, 1 << 8);
    let (ours, theirs) = (solve(&problem, &limits), optimum(&problem).expect("solves"));
    assert!(ours.bound < theirs.cost && theirs.cost <= ours.cost, "{ours:?} {theirs:?}");
    assert!(!ours.optimal);
}
