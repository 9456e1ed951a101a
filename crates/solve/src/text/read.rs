//! From text to a problem.

use super::words::{Word, words};
use super::{HEADER, ReadProblemError};
use crate::Cost;
use crate::problem::{Problem, SharedValue, Use, Var};

/// What is wrong with a line.
type Wrong = String;

pub(super) fn read(text: &str) -> Result<Problem, ReadProblemError> {
    let mut reader = Reader::default();
    let mut seen_header = false;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let of_line = |why: Wrong| ReadProblemError::new(number, why);
        let words = words(line).map_err(of_line)?;
        if words.is_empty() {
            continue;
        }
        if !seen_header {
            header(&words).map_err(of_line)?;
            seen_header = true;
            continue;
        }
        if !matches!(words[0], Word::Plain("from" | "to" | "moves")) {
            reader.close()?;
        }
        reader.line(number, &words).map_err(of_line)?;
    }
    if !seen_header {
        return Err(ReadProblemError::new(1, format!("there is nothing; the first line is `{HEADER}`")));
    }
    reader.close()?;
    Ok(reader.problem)
}

fn header(words: &[Word<'_>]) -> Result<(), Wrong> {
    match words {
        [Word::Plain("relayout-problem"), Word::Plain("1")] => Ok(()),
        [Word::Plain("relayout-problem"), ..] => Err(format!("this version reads form 1 only: `{HEADER}`")),
        _ => Err(format!("the first line of a problem is `{HEADER}`")),
    }
}

#[derive(Default)]
struct Reader {
    problem: Problem,
    /// A shared value whose lines are still coming.
    open: Option<Open>,
}

/// A shared value so far.
struct Open {
    line: usize,
    name: String,
    layouts: usize,
    from: Option<(Var, Vec<u32>)>,
    uses: Vec<Use>,
    moves: Option<Vec<Cost>>,
}

impl Reader {
    fn line(&mut self, number: usize, words: &[Word<'_>]) -> Result<(), Wrong> {
        let (head, list) = match words.iter().position(|word| *word == Word::Colon) {
            Some(at) => (&words[..at], Some(&words[at + 1..])),
            None => (words, None),
        };
        match (head, list) {
            ([Word::Plain("var"), Word::Plain(var)], Some(list)) => self.var(var, "", list),
            ([Word::Plain("var"), Word::Plain(var), Word::Name(name)], Some(list)) => self.var(var, name, list),
            ([Word::Plain("pair"), Word::Plain(a), Word::Plain(b)], Some(list)) => self.pair(a, b, list),
            ([Word::Plain("value"), Word::Name(name), Word::Plain("layouts"), Word::Plain(layouts)], None) => {
                let layouts = layouts.parse().map_err(|_| format!("`{layouts}` is not a number of layouts"))?;
                let name = name.clone();
                self.open = Some(Open { line: number, name, layouts, from: None, uses: Vec::new(), moves: None });
                Ok(())
            }
            ([Word::Plain("from"), Word::Plain(var)], Some(list)) => self.from(var, list),
            ([Word::Plain("to"), Word::Plain(var)], Some(list)) => {
                let (var, wants) = (self.known(var)?, entries(list, want)?);
                self.open()?.uses.push(Use { var, wants });
                Ok(())
            }
            ([Word::Plain("moves")], Some(list)) => self.moves(list),
            ([Word::Plain(keyword), ..], _) => Err(expected(keyword)),
            _ => Err(format!("a line starts with {KEYWORDS}")),
        }
    }

    fn var(&mut self, var: &str, name: &str, list: &[Word<'_>]) -> Result<(), Wrong> {
        let next = Var(u32::try_from(self.problem.variables()).unwrap_or(u32::MAX));
        if number_of(var)? != next {
            return Err(format!("variables are numbered in order from v0: `{var}` is to be {next}"));
        }
        self.problem.add_variable(name, entries(list, cost)?).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn pair(&mut self, a: &str, b: &str, list: &[Word<'_>]) -> Result<(), Wrong> {
        let (a, b) = (self.known(a)?, self.known(b)?);
        let (rows, columns) = (self.problem.states(a), self.problem.states(b));
        let table = table(list, rows, columns, &format!("of {a} and {b}"))?;
        self.problem.add_pair(a, b, table).map_err(|e| e.to_string())
    }

    fn from(&mut self, var: &str, list: &[Word<'_>]) -> Result<(), Wrong> {
        let from = (self.known(var)?, entries(list, layout)?);
        let open = self.open()?;
        if open.from.replace(from).is_some() {
            return Err(format!("value {:?} has a `from` line already: a value has one producer", open.name));
        }
        Ok(())
    }

    fn moves(&mut self, list: &[Word<'_>]) -> Result<(), Wrong> {
        let open = self.open()?;
        let table = table(list, open.layouts, open.layouts, &format!("of the layouts of value {:?}", open.name))?;
        if open.moves.replace(table).is_some() {
            return Err(format!("value {:?} has a `moves` line already", open.name));
        }
        Ok(())
    }

    fn open(&mut self) -> Result<&mut Open, Wrong> {
        let lost = "this line belongs to a value: put `value \"NAME\" layouts L` before it";
        self.open.as_mut().ok_or_else(|| lost.to_owned())
    }

    /// A variable that is there.
    fn known(&self, word: &str) -> Result<Var, Wrong> {
        let var = number_of(word)?;
        if var.index() < self.problem.variables() {
            return Ok(var);
        }
        Err(format!("there is no variable {var} before this line; add `var {var} \"NAME\": COST...`"))
    }

    /// Adds the value whose lines have ended.
    fn close(&mut self) -> Result<(), ReadProblemError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let wrong = |why: String| ReadProblemError::new(open.line, why);
        let lacks = |line: &str| wrong(format!("value {:?} lacks a line `{line}`", open.name));
        let (producer, produces) = open.from.ok_or_else(|| lacks("from vN: LAYOUT..."))?;
        let moves = open.moves.ok_or_else(|| lacks("moves: COST... | COST..."))?;
        let Open { name, uses, layouts, .. } = open;
        let value = SharedValue { name, producer, produces, uses, layouts, moves };
        self.problem.add_value(value).map_err(|e| ReadProblemError::new(open.line, e.to_string()))
    }
}

const KEYWORDS: &str = "`var`, `pair` or `value`, or below a value with `from`, `to` or `moves`";

/// What a line with this first word looks like.
fn expected(keyword: &str) -> Wrong {
    let form = match keyword {
        "var" => "var vN \"NAME\": COST...",
        "pair" => "pair vA vB: COST... | COST...",
        "value" => "value \"NAME\" layouts L",
        "from" => "from vN: LAYOUT...",
        "to" => "to vN: LAYOUT...",
        "moves" => "moves: COST... | COST...",
        _ => return format!("`{keyword}` starts no line; a line starts with {KEYWORDS}"),
    };
    format!("a line with `{keyword}` has the form `{form}`")
}

/// The number of a variable: `v7`.
fn number_of(word: &str) -> Result<Var, Wrong> {
    let number = word.strip_prefix('v').and_then(|number| number.parse().ok());
    number.map(Var).ok_or_else(|| format!("`{word}` is not a variable; variables are v0, v1 and so on"))
}

fn cost(word: &str) -> Result<Cost, Wrong> {
    let finite = || word.parse().ok().map(Cost::new).filter(|cost| cost.is_finite());
    let cost = if word == "inf" { Some(Cost::INFINITE) } else { finite() };
    cost.ok_or_else(|| format!("`{word}` is not a cost; a cost is a whole number below 2^64 - 1, or inf"))
}

fn layout(word: &str) -> Result<u32, Wrong> {
    word.parse().map_err(|_| format!("`{word}` is not a layout; layouts are numbered from 0"))
}

fn want(word: &str) -> Result<Option<u32>, Wrong> {
    if word == "-" { Ok(None) } else { layout(word).map(Some) }
}

fn entries<T>(list: &[Word<'_>], entry: impl Fn(&str) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
    let each = list.iter().map(|word| match word {
        Word::Plain(word) => entry(word),
        Word::Bar => Err("`|` parts the rows of a table, and this line has none".to_owned()),
        _ => Err("a list has numbers only".to_owned()),
    });
    each.collect()
}

/// A table of so many rows and columns.
fn table(list: &[Word<'_>], rows: usize, columns: usize, of: &str) -> Result<Vec<Cost>, Wrong> {
    let found: Vec<Vec<Cost>> =
        list.split(|word| *word == Word::Bar).map(|row| entries(row, cost)).collect::<Result<_, _>>()?;
    if found.len() != rows {
        return Err(format!("the table {of} has {} rows where {rows} belong; `|` parts rows", found.len()));
    }
    if let Some((at, row)) = found.iter().enumerate().find(|(_, row)| row.len() != columns) {
        return Err(format!("row {at} of the table {of} has {} costs where {columns} belong", row.len()));
    }
    Ok(found.concat())
}
