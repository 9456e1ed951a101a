//! From WCSP to a problem.

use super::Wcsp;
use crate::Cost;
use crate::problem::{Problem, Var};
use crate::text::ReadProblemError;
use std::iter::Peekable;

/// The most states and costs that any file may ask for: a few words of it can name tables that no memory holds.
const ENTRIES: usize = 1 << 22;
/// As many more for each of its bytes.
const ENTRIES_PER_BYTE: usize = 256;

/// What a file is read by: words, each with its line.
struct Words<'a> {
    rest: Peekable<Box<dyn Iterator<Item = (usize, &'a str)> + 'a>>,
    line: usize,
    /// States and costs that may still be asked for.
    left: usize,
}

/// Reads a file in the format WCSP.
///
/// # Errors
/// [`ReadProblemError`] with the first line that does not fit, or that has what this reader does not take.
pub fn read(text: &str) -> Result<Wcsp, ReadProblemError> {
    let mut words = Words::of(text);
    let name = words.next("the name of the problem")?.to_owned();
    let count = words.number("the number of variables")?;
    let _: u64 = words.number("the largest number of states")?;
    let functions = words.number("the number of functions")?;
    let top = Cost::new(words.number::<u64>("the upper bound")?);
    let mut network = Network { top, unary: Vec::new(), pairs: Vec::new(), constant: Cost::ZERO };
    for _ in 0..count {
        let states = words.number("the number of states of a variable")?;
        words.pay(states)?;
        if states == 0 {
            return Err(words.wrong("a variable has no states; give it at least one"));
        }
        network.unary.push(vec![Cost::ZERO; states]);
    }
    for _ in 0..functions {
        network.function(&mut words)?;
    }
    if words.rest.peek().is_some() {
        let _ = words.next("")?;
        return Err(words.wrong(format!("there is more than the {functions} functions that the first line names")));
    }
    let line = words.line;
    let problem = network.problem().map_err(|e| ReadProblemError::new(line, e.to_string()))?;
    Ok(Wcsp { name, problem, top })
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Words<'a> {
        let lines = text.lines().enumerate();
        let words: Box<dyn Iterator<Item = _>> =
            Box::new(lines.flat_map(|(at, line)| line.split_whitespace().map(move |word| (at + 1, word))));
        Words {
            rest: words.peekable(),
            line: 1,
            left: ENTRIES.saturating_add(text.len().saturating_mul(ENTRIES_PER_BYTE)),
        }
    }

    fn wrong(&self, why: impl Into<String>) -> ReadProblemError {
        ReadProblemError::new(self.line, why)
    }

    fn next(&mut self, what: &str) -> Result<&'a str, ReadProblemError> {
        let Some((line, word)) = self.rest.next() else {
            return Err(self.wrong(format!("the file ends where {what} belongs")));
        };
        self.line = line;
        Ok(word)
    }

    fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, ReadProblemError> {
        let word = self.next(what)?;
        word.parse()
            .map_err(|_| self.wrong(format!("`{word}` stands where {what} belongs, a whole number of at least 0")))
    }

    fn pay(&mut self, entries: usize) -> Result<(), ReadProblemError> {
        let left = self.left.checked_sub(entries);
        self.left = left.ok_or_else(|| self.wrong("states and costs are too many for a file of this size"))?;
        Ok(())
    }
}

/// What has been read.
struct Network {
    top: Cost,
    unary: Vec<Vec<Cost>>,
    pairs: Vec<(usize, usize, Vec<Cost>)>,
    constant: Cost,
}

impl Network {
    fn function(&mut self, words: &mut Words<'_>) -> Result<(), ReadProblemError> {
        let word = words.next("the number of variables of a function")?;
        let arity = match word.parse() {
            Ok(arity @ 0..=2) => arity,
            Ok(_) => return Err(words.wrong(format!("a function of {word} variables: at most two are read"))),
            Err(_) => {
                return Err(words.wrong(format!("`{word}` stands where a function's number of variables belongs")));
            }
        };
        let scope: Vec<usize> = (0..arity).map(|_| self.variable(words)).collect::<Result<_, _>>()?;
        if let [a, b] = scope[..]
            && a == b
        {
            return Err(words.wrong(format!("a function names variable {a} twice")));
        }
        let usual = self.cost(words, "the cost of all other states, or a constraint that is not read")?;
        let others: usize = words.number("a number of costs, or a constraint that is not read")?;
        let domains: Vec<usize> = scope.iter().map(|&var| self.unary[var].len()).collect();
        let size: usize = domains.iter().fold(1, |size: usize, &states| size.saturating_mul(states));
        words.pay(size)?;
        let mut table = vec![usual; size];
        for _ in 0..others {
            let mut at = 0;
            for &states in &domains {
                let state: usize = words.number("a state")?;
                if state >= states {
                    return Err(words.wrong(format!("state {state} of a variable with {states} states")));
                }
                at = at * states + state;
            }
            table[at] = self.cost(words, "a cost")?;
        }
        self.add(&scope, table);
        Ok(())
    }

    fn variable(&self, words: &mut Words<'_>) -> Result<usize, ReadProblemError> {
        let var = words.number("a variable")?;
        let count = self.unary.len();
        if var < count { Ok(var) } else { Err(words.wrong(format!("variable {var}, and there are {count}"))) }
    }

    fn cost(&self, words: &mut Words<'_>, what: &str) -> Result<Cost, ReadProblemError> {
        let cost = Cost::new(words.number(what)?);
        Ok(if cost < self.top { cost } else { Cost::INFINITE })
    }

    fn add(&mut self, scope: &[usize], table: Vec<Cost>) {
        match *scope {
            [a, b] => self.pairs.push((a, b, table)),
            [var] => self.unary[var].iter_mut().zip(table).for_each(|(cost, more)| *cost += more),
            _ => self.constant += table.first().copied().unwrap_or_default(),
        }
    }

    /// A problem has no constant: each state of the first variable pays it.
    fn problem(mut self) -> Result<Problem, crate::ProblemError> {
        if self.constant != Cost::ZERO && self.unary.is_empty() {
            self.unary.push(vec![Cost::ZERO]);
        }
        if let Some(first) = self.unary.first_mut() {
            for cost in first {
                *cost += self.constant;
            }
        }
        let mut problem = Problem::new();
        for (at, costs) in self.unary.into_iter().enumerate() {
            problem.add_variable(format!("x{at}"), costs)?;
        }
        for (a, b, table) in self.pairs {
            problem.add_pair(Var(a as u32), Var(b as u32), table)?;
        }
        Ok(problem)
    }
}
