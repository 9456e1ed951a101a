//! Every built-in equation is executed: ONNX Runtime computes both sides of it on random operands. Those that move data or pick it have
//! the same bits, the others are equal but for rounding.
//!
//! `equations.txt` has operands for each of them, on which its conditions hold, and others on which a condition does not hold; there
//! the sides must differ, so a condition that nobody needs is found, and so is one that is missing.

use crate::common;
#[path = "../../../equations/tests/spelled/mod.rs"]
mod spelled;

use relayout_equations::{EQUATIONS, Rewrite};
use relayout_onnx::export::fresh;
use relayout_target_api::{Equation, Numerics, When};
use relayout_verify::{Inputs, Level, ModelSource, Options, Tolerance, verify};
use spelled::Spelled;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The operator set of both sides.
const OPSET: i64 = 23;

/// The root of the mean square of all differences beside that of the results, and the largest difference beside it.
const ROUNDING: [f64; 2] = [2e-6, 5e-5];

/// Operands of an equation.
struct Sample {
    equation: String,
    /// The condition that does not hold.
    fails: Option<String>,
    /// What variables are: a tensor's dims, or a literal.
    variables: BTreeMap<String, String>,
}

fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = Vec::new();
    for line in include_str!("equations.txt").lines() {
        let text = line.trim();
        match (line.starts_with(' '), text.split_once(' ')) {
            _ if text.is_empty() || text.starts_with('#') => {}
            (true, Some((name, value))) => {
                all.last_mut().unwrap().variables.insert(name.to_owned(), value.to_owned());
            }
            (false, rest) => {
                let (equation, fails) = rest.map_or((text, None), |(name, fails)| (name, Some(fails.to_owned())));
                all.push(Sample { equation: equation.to_owned(), fails, variables: BTreeMap::new() });
            }
            (true, None) => panic!("`{line}`: a variable without a value"),
        }
    }
    all
}

/// A side of an equation.
enum Side {
    Atom(String),
    List(Vec<Side>),
}

impl Side {
    fn read(text: &str) -> Side {
        let tokens = text.replace('(', " ( ").replace(')', " ) ");
        let mut stack = vec![Vec::new()];
        for token in tokens.split_whitespace() {
            match token {
                "(" => stack.push(Vec::new()),
                ")" => {
                    let list = stack.pop().unwrap();
                    stack.last_mut().unwrap().push(Side::List(list));
                }
                atom => stack.last_mut().unwrap().push(Side::Atom(atom.to_owned())),
            }
        }
        stack.pop().unwrap().pop().unwrap()
    }

    /// As an expression of ONNX.
    fn told(&self, sample: &Sample) -> String {
        match self {
            Side::Atom(atom) => match atom.strip_prefix('?') {
                Some(name) => match sample.variables.get(name).map(String::as_str) {
                    Some(value) if is_literal(value) => value.to_owned(),
                    _ => name.to_owned(),
                },
                None => atom.clone(),
            },
            Side::List(list) => {
                let Side::Atom(op) = &list[0] else { panic!("an op comes first") };
                let args: Vec<String> = list[1..].iter().map(|side| side.told(sample)).collect();
                function(op, &args).unwrap_or_else(|| expression(op, &args, sample))
            }
        }
    }
}

/// Whether a variable is no tensor: a number, or `=[1,2]`.
fn is_literal(value: &str) -> bool {
    value.parse::<f64>().is_ok() || value.starts_with('=')
}

/// What a function of literals comes to.
fn function(name: &str, args: &[String]) -> Option<String> {
    let number = |at: usize| args[at].parse::<f64>().unwrap();
    let list = |at: usize| spelled::list(args[at].trim_start_matches('=')).unwrap();
    Some(match name {
        "inverse" => (1.0 / number(0)).to_string(),
        "minus" => (-number(0)).to_string(),
        "square" => (number(0) * number(0)).to_string(),
        "times" => (number(0) * number(1)).to_string(),
        "plus" => (number(0) + number(1)).to_string(),
        "then" => format!("={:?}", list(1).iter().map(|&at| list(0)[at as usize]).collect::<Vec<_>>()).replace(' ', ""),
        "second" => format!("=[{}]", list(0)[1]),
        _ => return None,
    })
}

/// An op as ONNX has it. What equations give a name to is an op of ONNX where there is one, and else what it stands for.
fn expression(op: &str, args: &[String], sample: &Sample) -> String {
    let a = |at: usize| args[at].trim_start_matches('=');
    match op {
        "Softmax" => format!("(Softmax {} axis={})", a(0), a(1).trim_matches(['[', ']'])),
        "Transpose" => format!("(Transpose {} perm={})", a(0), a(1)),
        "HardSigmoid" => format!("(HardSigmoid {} alpha={} beta={})", a(0), a(1), a(2)),
        "InstanceNormalization" => {
            let per_channel = |arg: &str| match arg.parse::<f64>() {
                Ok(_) => format!("(Expand {arg} [{}])", spelled::list(&sample.variables["x"]).unwrap()[1]),
                Err(_) => arg.to_owned(),
            };
            let [scale, bias] = [1, 2].map(|at| per_channel(a(at)));
            format!("(InstanceNormalization {} {scale} {bias} epsilon={})", a(0), a(3))
        }
        "LayerNormalization" => format!("(LayerNormalization {} {} {} axis=-1 epsilon={})", a(0), a(1), a(2), a(4)),
        "RMSNormalization" => format!("(RMSNormalization {} {} axis=-1 epsilon={})", a(0), a(1), a(3)),
        "GeluTanh" => format!("(Gelu {} approximate=tanh)", a(0)),
        "QuickGelu" => format!("(Mul {0} (Sigmoid (Mul {0} 1.702)))", a(0)),
        "Swish" => format!("(Mul {0} (Sigmoid {0}))", a(0)),
        "Attention" => format!("(MatMul (Softmax (Mul (MatMul {} {}) {}) axis=-1) {})", a(0), a(1), a(3), a(2)),
        "AttentionOfRows" => {
            let rank = spelled::list(&sample.variables["k"]).unwrap().len();
            // Merged heads leave three axes.
            let perm = if rank == 3 || a(1).starts_with('(') { "[0,2,1]" } else { "[0,1,3,2]" };
            let keys = format!("(Transpose {} perm={perm})", a(1));
            format!("(MatMul (Softmax (Mul (MatMul {} {keys}) {}) axis=-1) {})", a(0), a(3), a(2))
        }
        "Normalized" => {
            let d = format!("(Sub {0} (ReduceMean {0} {1}))", a(0), a(1));
            format!("(Div {d} (Sqrt (Add (ReduceMean (Mul {d} {d}) {}) {})))", a(1), a(2))
        }
        "RootNormalized" => format!("(Div {0} (Sqrt (Add (ReduceMean (Mul {0} {0}) {1}) {2})))", a(0), a(1), a(2)),
        "GroupNormalization" => {
            // Per channel, as the standard has it.
            let groups: usize = a(3).trim_matches(['[', ']']).parse().unwrap();
            let channels = spelled::list(&sample.variables["x"]).unwrap()[1] as usize;
            let each = |arg: &str| match arg.parse::<f64>() {
                Ok(_) => format!("(Expand {arg} [{channels}])"),
                Err(_) => {
                    format!("(Reshape (Expand (Unsqueeze {arg} [1]) [{groups},{}]) [{channels}])", channels / groups)
                }
            };
            format!("(GroupNormalization {} {} {} num_groups={groups} epsilon={})", a(0), each(a(1)), each(a(2)), a(4))
        }
        _ => format!("({op} {})", args.iter().map(|arg| arg.trim_start_matches('=')).collect::<Vec<_>>().join(" ")),
    }
}

/// Both sides as models.
fn sides(equation: &Equation, sample: &Sample) -> Result<[Vec<u8>; 2], String> {
    let model = |text: &str| {
        let mut spelled = Spelled::new(OPSET);
        for (name, value) in sample.variables.iter().filter(|(_, value)| !is_literal(value)) {
            spelled.line(&format!("{name}: {value}"))?;
        }
        spelled.line(&format!("side = {}", Side::read(text).told(sample)))?;
        // The results of both sides have the same name.
        spelled.count = 1000;
        spelled.line("(Identity side)")?;
        fresh(&spelled.graph).map_err(|e| e.to_string())
    };
    Ok([model(equation.left)?, model(equation.right)?])
}

/// Whether both sides compute the same.
fn holds(equation: &Equation, sample: &Sample) -> Result<(), String> {
    let [left, right] = sides(equation, sample)?;
    let inputs = Inputs::Random { seed: 7, dims: BTreeMap::new() };
    let mut options = Options::default();
    options.level_b = Level::Disabled;
    let sources = [&left, &right].map(|bytes| ModelSource::Bytes(bytes));
    let [a, b] = sources;
    let comparison = verify(common::runtime(), a, b, &inputs, &options).map_err(|e| e.to_string())?;
    let [rms, largest] = ROUNDING;
    let rounds = equation.numerics > Numerics::Exact;
    common::judged(&comparison, rounds.then(|| Tolerance::new(rms, largest)))
}

#[test]
fn both_sides_of_every_equation_compute_the_same_where_it_holds() {
    let (samples, mut problems) = (samples(), String::new());
    for equation in EQUATIONS {
        let own = samples.iter().filter(|sample| sample.equation == equation.name && sample.fails.is_none());
        let mut ranks = BTreeSet::new();
        for sample in own {
            ranks.insert(format!("{:?}", sample.variables));
            if let Err(why) = holds(equation, sample) {
                let _ = writeln!(problems, "{} on {:?}: {why}", equation.name, sample.variables);
            }
        }
        if ranks.len() < 2 {
            let _ = writeln!(problems, "{} has {} samples; two are needed", equation.name, ranks.len());
        }
    }
    let known = |sample: &&Sample| EQUATIONS.iter().all(|equation| equation.name != sample.equation);
    for sample in samples.iter().filter(known) {
        let _ = writeln!(problems, "{} is no equation", sample.equation);
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn where_a_condition_does_not_hold_the_sides_differ() {
    let (samples, mut problems) = (samples(), String::new());
    for equation in EQUATIONS {
        for when in equation.when.iter().filter(|when| is_about_results(when)) {
            let own = |sample: &&Sample| {
                sample.equation == equation.name && sample.fails.as_deref() == Some(word(when).as_str())
            };
            match samples.iter().find(own) {
                Some(sample) if holds(equation, sample).is_ok() => {
                    let _ = writeln!(problems, "{} holds although not `{when}`", equation.name);
                }
                Some(_) => {}
                None => {
                    let _ = writeln!(problems, "{} has no sample on which `{}` fails", equation.name, word(when));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// The first word of a condition and its variable: `Near c`.
fn word(when: &When) -> String {
    let name = format!("{when:?}");
    let name = name.split(['(', ' ']).next().unwrap_or_default();
    format!("{name} {}", when.variables().next().unwrap_or_default().trim_start_matches('?'))
}

/// Whether a condition is about what sides compute: the others say what may be written at all, or what ops are for.
fn is_about_results(when: &When) -> bool {
    // The standard has scales of the last axis alone; ONNX Runtime takes others.
    let of_the_standard = matches!(when, When::PerLast(..));
    let of_kinds = matches!(when, When::Number(_) | When::Float(_) | When::Rank(..) | When::RankOfShape(..));
    !of_the_standard && !of_kinds && !matches!(when, When::Positive(_))
}

/// Equations that are wrong: a side, a number, or a condition.
const WRONG: &[(&str, &str, &str, &[When], Numerics)] = &[
    ("subtraction commutes", "(Sub ?a ?b)", "(Sub ?b ?a)", &[], Numerics::Exact),
    ("a sum of squares", "(Pow ?a 2)", "(Add ?a ?a)", &[], Numerics::Reassociate),
    ("a quotient is no product", "(Div ?a ?b)", "(Mul ?a ?b)", &[], Numerics::Reassociate),
    ("the largest is no mean", "(ReduceMax ?a [-1])", "(ReduceMean ?a [-1])", &[], Numerics::Reassociate),
    ("another axis", "(ReduceMean ?a [-1])", "(ReduceMean ?a [-2])", &[], Numerics::Reassociate),
    ("GELU by a Tanh is another", "(Gelu ?a)", "(GeluTanh ?a)", &[], Numerics::Reassociate),
    ("a Relu of a sum", "(Relu (Add ?a ?b))", "(Add (Relu ?a) (Relu ?b))", &[], Numerics::Reassociate),
    ("rounds but says it does not", "(Mul (Mul ?a 0.1) 0.3)", "(Mul ?a 0.03)", &[], Numerics::Exact),
    ("a Transpose is no Reshape", "(Transpose ?a [1,0])", "(Reshape ?a [4,3])", &[], Numerics::Exact),
    ("scores without their scale", "(Softmax (Mul ?a 0.5) [-1])", "(Softmax ?a [-1])", &[], Numerics::Reassociate),
    ("a variable from nowhere", "(Relu ?a)", "(Add ?a ?c)", &[], Numerics::Reassociate),
    ("a condition on nothing", "(Relu ?a)", "(Relu ?a)", &[When::Number("?c")], Numerics::Reassociate),
    ("no term", "(Relu ?a", "?a", &[], Numerics::Reassociate),
];

#[test]
fn wrong_equations_are_found() {
    let variables = [("a", "[3,4]"), ("b", "[3,4]")].map(|(name, dims)| (name.to_owned(), dims.to_owned()));
    let sample = Sample { equation: String::new(), fails: None, variables: variables.into() };
    for &(name, left, right, when, numerics) in WRONG {
        let equation = Equation { name, left, right, when, numerics };
        let unsound = Rewrite::of(&equation).is_err();
        assert!(unsound || holds(&equation, &sample).is_err(), "`{name}` is not found to be wrong");
    }
}
