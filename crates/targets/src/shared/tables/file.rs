//! What tables of all targets have in common: a head that says what they are, and grids of times.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use super::grid::Grid;
use super::{CostsError, Measurement, points_of};

/// Grids as they stand in a file: lists of numbers, one of them `ns`.
pub(crate) type Lists = BTreeMap<String, BTreeMap<String, Vec<u64>>>;

/// What says whether the rest of a table can be read.
#[derive(Deserialize)]
struct Head {
    format: u64,
    #[serde(default)]
    target: Option<String>,
}

/// Fails unless the text is a table about this target, in this format.
pub(crate) fn head(name: &str, text: &str, target: &str, format: u64) -> Result<(), CostsError> {
    let found: Head = parse(name, text)?;
    // A table without a target is an old one of the only target there was.
    if let Some(other) = found.target.filter(|other| other != target) {
        return Err(CostsError::OtherTarget { name: name.to_owned(), target: other, wanted: target.to_owned() });
    }
    if found.format != format {
        return Err(CostsError::OtherFormat { name: name.to_owned(), format: found.format, reads: format });
    }
    Ok(())
}

/// Reads TOML; the error is one line.
pub(crate) fn parse<T: for<'a> Deserialize<'a>>(name: &str, text: &str) -> Result<T, CostsError> {
    toml::from_str(text).map_err(|e| {
        let why = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        CostsError::Malformed { name: name.to_owned(), why }
    })
}

/// The grids of a file. The error says which lacks its times.
pub(crate) fn measurements(lists: Lists) -> Result<Vec<Measurement>, String> {
    let grid = |(name, mut lists): (String, BTreeMap<String, Vec<u64>>)| {
        let ns = lists.remove("ns").ok_or_else(|| format!("grid `{name}` has no list `ns`"))?;
        Ok(Measurement { name, axes: lists.into_iter().collect(), ns })
    };
    lists.into_iter().map(grid).collect()
}

/// A grid that a table has to hold.
pub(crate) struct Wanted<W> {
    /// Its name.
    pub(crate) name: String,
    /// The names of its axes.
    pub(crate) axes: Vec<&'static str>,
    /// The work at a point.
    pub(crate) work: W,
}

/// Exactly the grids that are wanted, at any points of their axes, as nanoseconds per unit of work beyond what a node takes anyhow.
/// The error names a grid that is missing, there twice, not wanted, or can't be.
pub(crate) fn grids<W: Fn(&[u64]) -> f64>(
    measured: Vec<Measurement>,
    wanted: impl IntoIterator<Item = Wanted<W>>,
    node_ns: u64,
) -> Result<BTreeMap<String, Grid>, String> {
    let mut given = by_name(measured)?;
    let mut grids = BTreeMap::new();
    for want in wanted {
        let Some(measurement) = given.remove(&want.name) else {
            return Err(format!("there is no grid `{}`", want.name));
        };
        let grid = rates(&want, &measurement, node_ns).map_err(|why| format!("grid `{}`: {why}", want.name))?;
        grids.insert(want.name, grid);
    }
    match given.into_keys().next() {
        Some(name) => Err(format!("no grid is called `{name}`")),
        None => Ok(grids),
    }
}

/// A grid's rates, once its axes are those that it should have and no time is 0.
fn rates<W: Fn(&[u64]) -> f64>(want: &Wanted<W>, measurement: &Measurement, node_ns: u64) -> Result<Grid, String> {
    let axes = axes(&want.axes, measurement)?;
    let mut rates = Vec::with_capacity(measurement.ns.len());
    for (point, &ns) in points_of(&axes).iter().zip(&measurement.ns) {
        if ns == 0 {
            return Err(format!("the time at {point:?} is 0"));
        }
        rates.push(own_ns(ns, node_ns) / (want.work)(point));
    }
    Ok(Grid::new(&axes, &rates))
}

/// Measurements by the names of their grids.
fn by_name(measured: Vec<Measurement>) -> Result<BTreeMap<String, Measurement>, String> {
    let mut given = BTreeMap::new();
    for measurement in measured {
        let name = measurement.name.clone();
        if given.insert(name.clone(), measurement).is_some() {
            return Err(format!("there are two grids `{name}`"));
        }
    }
    Ok(given)
}

/// The points of the axes of these names, in their order, after a check that there is a time for each place.
fn axes(names: &[&str], measurement: &Measurement) -> Result<Vec<Vec<u64>>, String> {
    let mut axes = Vec::new();
    for name in names {
        let found = measurement.axes.iter().find(|(axis, _)| axis == name);
        let Some((_, points)) = found else { return Err(format!("there is no axis `{name}`")) };
        let ascending = points.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
        if !ascending || points.first().is_none_or(|&first| first == 0) || points.last().is_some_and(|&p| p > 1 << 32) {
            return Err(format!("the points of axis `{name}` should be numbers from 1 to 2^32, ascending"));
        }
        axes.push(points.clone());
    }
    if let Some((name, _)) = measurement.axes.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        return Err(format!("it has no axis `{name}`"));
    }
    let count = axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.len())).filter(|&n| n <= 1 << 20);
    if count != Some(measurement.ns.len()) {
        let points: Vec<String> = axes.iter().map(|axis| axis.len().to_string()).collect();
        return Err(format!(
            "its list `ns` has {} numbers, and its axes {} points",
            measurement.ns.len(),
            points.join(" x ")
        ));
    }
    Ok(axes)
}

/// Nanoseconds of a node's own work. What a node takes anyhow is added by the query; a tenth is left where the clock saw less than that.
fn own_ns(ns: u64, node_ns: u64) -> f64 {
    (ns.saturating_sub(node_ns) as f64).max(ns as f64 / 10.0)
}

/// Grids as text, in tables of this key.
pub(crate) fn grids_text(key: &str, measured: &[Measurement]) -> String {
    let mut out = String::new();
    for Measurement { name, axes, ns } in measured {
        // Writing to a string can't fail.
        let _ = writeln!(out, "\n[{key}.{name}]");
        for (axis, points) in axes {
            let _ = writeln!(out, "{axis} = {}", list(points));
        }
        let row = axes.last().map_or(1, |(_, points)| points.len().max(1));
        let rows: Vec<String> = ns.chunks(row).map(|row| format!("    {},\n", joined(row))).collect();
        let _ = writeln!(out, "ns = [\n{}]", rows.concat());
    }
    out
}

/// A text as TOML has it: quoted, with quotes, backslashes and control characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Numbers as a list.
pub(crate) fn list(numbers: &[u64]) -> String {
    format!("[{}]", joined(numbers))
}

fn joined(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_text_is_read_back_as_it_was() {
        for text in ["", "plain", "a \"quoted\" 'word' \\ end\\", "line\nand\ttab\r\u{0}\u{7f}\u{85}", "Ünicode 漢字"]
        {
            let table: toml::Table = toml::from_str(&format!("text = {}", quoted(text))).unwrap();
            assert_eq!(table["text"].as_str(), Some(text));
        }
    }
}
