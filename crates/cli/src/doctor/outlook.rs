//! What each target would gain of a model, as a table and in sentences.

use super::here::Here;
use super::trial::{Findings, Outcome, Row, Unit, ask, questions};
use super::weigh::Weighed;
use crate::args;
use crate::failure::Failure;
use relayout::units::{bytes, elements, time};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use unicode_width::UnicodeWidthStr as _;

/// What the times of the table are of.
const COST: &str = "cost: of moves and of nodes that could run otherwise, as the file has them. It is not the time of a run, of which it may be \
                    little, and ONNX Runtime takes some of it away by itself; `relayout optimize --tune` measures";

/// What is said of a model.
#[derive(Debug, Serialize)]
pub(super) struct Outlook {
    model: String,
    seconds: u64,
    /// Whether the time was over before everything was looked at.
    limit_hit: bool,
    weights: Option<Weighed>,
    targets: Vec<Row>,
    notes: Vec<String>,
    next: Vec<String>,
}

/// Looks at a model for at most as long as the arguments say.
pub(super) fn look(path: &Path, here: &Here, a: &args::Doctor) -> Result<Outlook, Failure> {
    let Findings { weighed, rows } = ask(path, &questions(here), a)?;
    let limit_hit = rows.iter().any(|row| matches!(row.outcome, Outcome::NotLookedAt));
    let model = path.display().to_string();
    let mut notes = Vec::new();
    if let Some(weighed) = &weighed {
        notes.push(format!("{} nodes, {} convolutions", weighed.nodes, weighed.convolutions));
        notes.extend(
            rows.iter()
                .find_map(|row| row.outcome.bytes_as_it_is())
                .map(|moved| weighed.beside(moved))
                .unwrap_or_default(),
        );
    }
    if rows.iter().any(|row| matches!(row.outcome, Outcome::Gains { predicted_ns: Some(_), .. })) {
        notes.push(COST.to_owned());
    }
    let next = next(&model, &rows, a.seconds, limit_hit);
    Ok(Outlook { model, seconds: a.seconds, limit_hit, weights: weighed, targets: rows, notes, next })
}

/// What to do next, one line each.
fn next(model: &str, rows: &[Row], seconds: u64, limit_hit: bool) -> Vec<String> {
    let command = |row: &Row| match row.options.as_str() {
        "--target onnx" => format!("relayout optimize {model}"),
        options => format!("relayout optimize {model} {options}"),
    };
    let gains = |row: &&Row| row.outcome.gains();
    let standard = |row: &&Row| row.options == "--target onnx";
    let mut next: Vec<String> =
        rows.iter().filter(|row| row.here || standard(row)).filter(gains).map(command).collect();
    if next.is_empty() {
        next.extend(rows.iter().filter(gains).take(1).map(|row| command(row) + "   # if it runs there"));
    }
    if next.is_empty() && !limit_hit {
        let moves = rows.iter().any(|row| row.outcome.bytes_as_it_is() > Some(0));
        next.push(if moves {
            format!("relayout explain {model}   # why its moves stay")
        } else {
            "leave it as it is".to_owned()
        });
    }
    if limit_hit {
        next.push(format!("relayout doctor {model} --seconds {}", seconds.saturating_mul(10)));
    }
    next
}

impl Outcome {
    /// What moves write in each run of the file as it is.
    fn bytes_as_it_is(&self) -> Option<u64> {
        match self {
            Outcome::Gains { size: [size, _], unit: Unit::Bytes, .. }
            | Outcome::Unchanged { size, unit: Unit::Bytes, .. } => Some(*size),
            _ => None,
        }
    }

    fn gains(&self) -> bool {
        matches!(self, Outcome::Gains { .. })
    }

    /// Columns: moves, what they write, and what else there is to say.
    fn cells(&self) -> [String; 3] {
        match self {
            Outcome::Gains { moves: [was, is], size: [from, to], unit, predicted_ns } => {
                let times = predicted_ns.map(|[was, is]| format!("{} -> {} of its cost", time(was), time(is)));
                let sizes = format!("{} -> {}", unit.written(*from), unit.written(*to));
                [format!("{was} -> {is}"), sizes, times.unwrap_or_default()]
            }
            Outcome::Unchanged { moves, size, unit, why } => {
                [moves.to_string(), unit.written(*size), format!("nothing to gain: {why}")]
            }
            Outcome::Refused { why } => ["-".to_owned(), "-".to_owned(), format!("refused: {why}")],
            Outcome::NotLookedAt => ["-".to_owned(), "-".to_owned(), "not looked at: the time was over".to_owned()],
        }
    }
}

impl Unit {
    fn written(self, n: u64) -> String {
        match self {
            Unit::Bytes => bytes(n),
            Unit::Elements => elements(n),
        }
    }
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        if self.limit_hit {
            writeln!(f, "the time limit of {} s was hit before all targets were tried", self.seconds)?;
        }
        let head = ["options", "who runs it", "moves", "they write", ""].map(str::to_owned);
        let line = |row: &Row| {
            let [moves, size, more] = row.outcome.cells();
            [row.options.clone(), row.place.clone(), moves, size, more]
        };
        let lines: Vec<[String; 5]> = std::iter::once(head).chain(self.targets.iter().map(line)).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].width()).max().unwrap_or(0);
        let widths: [usize; 4] = std::array::from_fn(width);
        writeln!(f)?;
        for line in &lines {
            let mut text = String::new();
            for (cell, width) in line.iter().zip(widths) {
                text += cell;
                text += &" ".repeat(width - cell.width() + 2);
            }
            text += &line[4];
            writeln!(f, "{}", text.trim_end())?;
        }
        writeln!(f, "\nnothing was written. next:")?;
        self.next.iter().try_for_each(|command| writeln!(f, "  {command}"))
    }
}
