//! `relayout diff`: what changed between two models.
//!
//! Compared are operator sets, inputs, outputs, functions by their signatures, nodes and constants, those of bodies too. Not compared
//! are metadata, documentation, what is in functions, and the order of nodes. Nothing is inferred: a type is what the file declares.

mod collect;
mod pair;

use crate::args;
use crate::commands::{is_stdio, open};
use crate::failure::Failure;
use crate::page::{self, PageFile};
use crate::progress::Progress;
use crate::terminal::{json, quiet, say, say_json};
use crate::written::check_written;
use collect::Items;
use pair::Section;
use relayout::Model;
use relayout_html::Page;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::path::Path;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// `relayout diff`
pub(crate) fn diff(a: &args::Diff) -> Result<(), Failure> {
    if is_stdio(&a.a) && is_stdio(&a.b) {
        return Err(Failure::usage("only one of the models can come from stdin"));
    }
    check_written(&[("--html", a.html.as_deref())], &[&a.a, &a.b])?;
    let progress = Progress::start("comparing");
    let models = [open(&a.a)?, open(&a.b)?];
    let names = [&a.a, &a.b].map(|path| path.display().to_string());
    let difference = Difference::between(names, [&models[0], &models[1]]);
    let made = match &a.html {
        None => None,
        Some(path) => Some(PageFile::new(path, &difference.page([&models[0], &models[1]]))?),
    };
    drop(progress);
    if made.map_or(Ok(false), PageFile::commit)? {
        // The page has it.
    } else if json() {
        say_json(&difference)?;
    } else if !(quiet() && difference.same) {
        say(difference.to_string().trim_end())?;
    }
    if a.exit_code && !difference.same {
        return Err(Failure::Check(format!("{} and {} differ", difference.a, difference.b)));
    }
    Ok(())
}

/// What changed between two models.
#[derive(Debug, Serialize)]
struct Difference {
    schema: u32,
    a: String,
    b: String,
    /// Nothing that is compared differs.
    same: bool,
    /// The files are equal byte for byte.
    same_bytes: bool,
    opsets: Section,
    inputs: Section,
    outputs: Section,
    functions: Section,
    nodes: Section,
    constants: Section,
}

impl Difference {
    fn between(names: [String; 2], models: [&Model; 2]) -> Difference {
        let [a, b] = models.map(|model| Items::of(model.ir()));
        let [name_a, name_b] = names;
        let mut all = Difference {
            schema: SCHEMA,
            a: name_a,
            b: name_b,
            same: false,
            same_bytes: models[0].bytes() == models[1].bytes(),
            opsets: pair::compare(&a.opsets, &b.opsets),
            inputs: pair::compare_in_order(&a.inputs, &b.inputs),
            outputs: pair::compare_in_order(&a.outputs, &b.outputs),
            functions: pair::compare(&a.functions, &b.functions),
            nodes: pair::compare(&a.nodes, &b.nodes),
            constants: pair::compare(&a.constants, &b.constants),
        };
        all.same = all.sections().iter().all(|(_, section)| section.is_empty());
        all
    }

    /// The differences as a page.
    fn page(&self, models: [&Model; 2]) -> Page {
        let listed = self.sections().into_iter().flat_map(|(name, section)| section.changes(name));
        let text = self.to_string();
        let summary = text.lines().next().unwrap_or_default();
        let names = page::names(&[Path::new(&self.a), Path::new(&self.b)]);
        relayout_html::difference_page([&names[0], &names[1]], models, summary, listed.collect())
    }

    fn sections(&self) -> [(&'static str, &Section); 6] {
        [
            ("operator sets", &self.opsets),
            ("inputs", &self.inputs),
            ("outputs", &self.outputs),
            ("functions", &self.functions),
            ("nodes", &self.nodes),
            ("constants", &self.constants),
        ]
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.same_bytes {
            return f.write_str("the files are the same, byte for byte\n");
        }
        if self.same {
            return f.write_str(
                "the same graph; the files differ in metadata, documentation, order or functions' bodies\n",
            );
        }
        let differ: Vec<_> = self.sections().into_iter().filter(|(_, section)| !section.is_empty()).collect();
        let mut counts = String::new();
        for (at, (name, section)) in differ.iter().enumerate() {
            write!(counts, "{}{name} {}", if at > 0 { "; " } else { "" }, section.counts())?;
        }
        writeln!(f, "{counts}")?;
        for (name, section) in differ {
            write!(f, "\n{name}\n{section}")?;
        }
        Ok(())
    }
}
