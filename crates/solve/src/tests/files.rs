//! Problems as text and as WCSP.

use super::parts::{brute_force, costs, many_layouts, operators, parts};
use proptest::prelude::*;
use relayout_solve::text::ReadProblemError;
use relayout_solve::wcsp::{self, WcspError};
use relayout_solve::{Cost, Limits, Problem, SharedValue, Use, Var, solve};

/// Two variables and a value under these names.
fn named(names: [String; 3]) -> Problem {
    let [a, b, t] = names;
    let mut problem = Problem::new();
    let a = problem.add_variable(a, costs(&[0, u64::MAX])).expect("has states");
    let b = problem.add_variable(b, costs(&[u64::MAX - 1])).expect("has states");
    let uses = vec![Use { var: b, wants: vec![None] }, Use { var: a, wants: vec![Some(1), Some(0)] }];
    let value =
        SharedValue { name: t, producer: a, produces: vec![1, 0], uses, layouts: 2, moves: costs(&[7, 8, 9, 1]) };
    problem.add_value(value).expect("fits");
    problem
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_written_as_text_is_read_as_the_same_problem(parts in parts(6, 1..=4, 4)) {
        let problem = parts.build();
        prop_assert_eq!(problem.to_string().parse(), Ok(problem));
    }

    #[test]
    fn names_may_hold_anything(names in any::<[String; 3]>()) {
        let problem = named(names);
        let text = problem.to_string();
        prop_assert_eq!(text.lines().count(), 8, "{}", text);
        prop_assert_eq!(text.parse(), Ok(problem));
    }

    #[test]
    fn no_text_is_a_panic(words in prop::collection::vec("(var|pair|value|from|to|moves|v[0-9]|:|\\||#|\"|[0-9]|\n|\\\\u\\{|\\PC)", 0..60)) {
        let text = words.join(" ");
        let _ = text.parse::<Problem>();
        let _ = format!("relayout-problem 1\nvar v0: 0 1\n{text}").parse::<Problem>();
        let _ = wcsp::read(&text);
        let _ = wcsp::read(&format!("p 2 2 9 9 2 2 {text}"));
    }

    #[test]
    fn wcsp_has_the_optimum_of_the_problem_and_its_assignment(parts in parts(5, 1..=4, 4)) {
        check_wcsp(&parts.build())?;
    }

    #[test]
    fn wcsp_has_the_optimum_of_operators(problem in operators()) {
        check_wcsp(&problem)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn wcsp_has_the_optimum_of_many_layouts(problem in many_layouts()) {
        check_wcsp(&problem)?;
    }
}

/// The first states of the best assignment of the file are a best assignment of the problem.
fn check_wcsp(problem: &Problem) -> Result<(), TestCaseError> {
    let text = wcsp::write(problem, "a problem").map_err(|e| TestCaseError::fail(e.to_string()))?;
    let file = wcsp::read(&text).map_err(|e| TestCaseError::fail(format!("{e} of {text}")))?;
    prop_assert_eq!(&file.name, "a_problem");
    let solution = solve(&file.problem, &Limits::default());
    let best = brute_force(problem).0;
    prop_assert!(solution.optimal);
    prop_assert_eq!(solution.cost, best, "{}", text);
    if best.is_finite() {
        prop_assert!(best < file.top);
        prop_assert_eq!(problem.cost(&solution.assignment[..problem.variables()]), best);
    }
    Ok(())
}

#[test]
fn a_problem_has_a_line_for_each_thing() {
    insta::assert_snapshot!(named(["x".into(), "a \"b\"\n\\".into(), String::new()]), @r#"
    relayout-problem 1
    var v0 "x": 0 inf
    var v1 "a \"b\"\u{a}\\": 18446744073709551614
    value "" layouts 2
      from v0: 1 0
      to v1: -
      to v0: 1 0
      moves: 7 8 | 9 1
    "#);
}

#[test]
fn comments_spaces_and_names_can_be_left_out() {
    let text = "# a comment\n\nrelayout-problem 1 # here too\r\nvar v0:0 3\n  var   v1 \"#\" : 1\npair v1 v0: 0 inf";
    let problem: Problem = text.parse().expect("is one");
    assert_eq!((problem.name(Var(0)), problem.name(Var(1))), ("", "#"));
    assert_eq!(solve(&problem, &Limits::default()).cost, Cost::new(1));
}

#[test]
fn what_does_not_fit_is_said_with_its_line_and_what_would_be_right() {
    let start = "relayout-problem 1\nvar v0 \"x\": 0 1\nvar v1 \"y\": 0\n";
    let value = format!("{start}value \"t\" layouts 2\n  from v0: 0 1\n");
    let cases = [
        (String::new(), 1, "the first line is `relayout-problem 1`"),
        ("v0: 1".into(), 1, "the first line of a problem is `relayout-problem 1`"),
        ("relayout-problem 2".into(), 1, "this version reads form 1 only"),
        (format!("{start}var v3: 0"), 4, "`v3` is to be v2"),
        (format!("{start}var x: 0"), 4, "`x` is not a variable"),
        (format!("{start}var v2: 0 -1"), 4, "`-1` is not a cost"),
        (format!("{start}var v2: 18446744073709551615"), 4, "below 2^64 - 1, or inf"),
        (format!("{start}var v2:"), 4, "give it at least one"),
        (format!("{start}var v2: 0 | 1"), 4, "this line has none"),
        (format!("{start}var v2 0 1"), 4, "`var vN \"NAME\": COST...`"),
        (format!("{start}var v2 \"z: 0 1"), 4, "no closing quote"),
        (format!("{start}var v2 \"\\n\": 0 1"), 4, "behind a backslash"),
        (format!("{start}pair v0 v7: 0"), 4, "there is no variable v7 before this line"),
        (format!("{start}pair v0 v1: 0 1"), 4, "has 1 rows where 2 belong; `|` parts rows"),
        (format!("{start}pair v0 v1: 0 | 1 2"), 4, "row 1 of the table of v0 and v1 has 2 costs where 1 belong"),
        (format!("{start}states v0"), 4, "`states` starts no line"),
        (format!("{start}: 0"), 4, "a line starts with"),
        (format!("{start}moves: 0"), 4, "belongs to a value"),
        (format!("{start}value \"t\" layouts 2\n  moves: 0 0 | 0 0"), 4, "lacks a line `from vN: LAYOUT...`"),
        (value.clone(), 4, "lacks a line `moves:"),
        (format!("{value}  from v1: 0"), 6, "has a `from` line already"),
        (format!("{value}  to v1: 0 1\n  moves: 0 0 | 0 0"), 4, "has 2 entries where 1 belong"),
        (format!("{value}  to v1: 2\n  moves: 0 0 | 0 0"), 4, "names layout 2, but the value has 2"),
        (format!("{value}  to v1: x"), 6, "`x` is not a layout"),
        (format!("{value}  moves: 0 0 | 0 0\n  moves: 0 0 | 0 0"), 7, "has a `moves` line already"),
        (format!("{value}  moves: 0 0"), 6, "has 1 rows where 2 belong"),
        (
            format!("{start}value \"t\" layouts 99999999999\n  from v1: 0\n  moves: 0"),
            6,
            "rows where 99999999999 belong",
        ),
    ];
    for (text, line, says) in cases {
        let error: ReadProblemError = text.parse::<Problem>().expect_err(&text);
        assert!(error.line == line && error.why.contains(says), "{error}: not {line}, {says}\n{text}");
    }
}

#[test]
fn a_file_of_others_is_read_with_constants_and_sums() {
    let text = "tiny 3 2 5 10\n2 2 2\n1 0 0 1\n1 4\n1 0 1 0\n2 0 1 10 2\n0 0 0\n1 1 2\n0 3 0\n1 2 12 1\n1 0\n";
    let file = wcsp::read(text).expect("is one");
    assert_eq!((file.name.as_str(), file.top, file.problem.variables()), ("tiny", Cost::new(10), 3));
    let solution = solve(&file.problem, &Limits::default());
    assert_eq!((solution.cost, solution.assignment), (Cost::new(4), vec![0, 0, 1]));
    assert_eq!(file.problem.cost(&[1, 1, 1]), Cost::new(10));
    assert_eq!(file.problem.cost(&[0, 1, 1]), Cost::INFINITE);
    assert_eq!(file.problem.cost(&[0, 0, 0]), Cost::INFINITE, "12 is not below the upper bound");
    let constant = wcsp::read("c 0 0 1 9\n0 5 0\n").expect("is one").problem;
    assert_eq!(solve(&constant, &Limits::default()).cost, Cost::new(5));
}

#[test]
fn what_is_no_wcsp_or_more_than_is_read_is_said_with_its_line() {
    let cases = [
        ("", 1, "the file ends where the name of the problem belongs"),
        ("p 1", 1, "ends where the largest number of states belongs"),
        ("p x 2 0 9", 1, "`x` stands where the number of variables belongs"),
        ("p 1 2 0 9\n0", 2, "no states"),
        ("p 1 2 0 9\n-2", 2, "`-2` stands where"),
        ("p 1 2 1 9\n2\n3 0 0 0 0 0", 3, "at most two are read"),
        ("p 1 2 1 9\n2\n-1 0 0 0", 3, "a function of -1 variables: at most two are read"),
        ("p 1 2 1 9\n2\n1 1 0 0", 3, "variable 1, and there are 1"),
        ("p 1 2 1 9\n2\n2 0 0 0 0", 3, "names variable 0 twice"),
        ("p 1 2 1 9\n2\n1 0 -1 salldiff", 3, "a constraint that is not read"),
        ("p 1 2 1 9\n2\n1 0 0 1\n2 7", 4, "state 2 of a variable with 2 states"),
        ("p 1 2 1 9\n2\n1 0 0 1\n1", 4, "ends where a cost belongs"),
        ("p 1 2 0 9\n2\n1", 3, "more than the 0 functions"),
        ("p 2 2 1 9\n60000 60000\n2 0 1 0 0", 3, "states and costs are too many for a file of this size"),
    ];
    for (text, line, says) in cases {
        let error = wcsp::read(text).expect_err(text);
        assert!(error.line == line && error.why.contains(says), "{error}: not {line}, {says}\n{text}");
    }
    let mut large = Problem::new();
    large.add_variable("x", costs(&[1 << 60, 1 << 61])).expect("has states");
    assert_eq!(wcsp::write(&large, ""), Err(WcspError::TooLarge));
}
