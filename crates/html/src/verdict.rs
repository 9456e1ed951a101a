//! A verdict about two models as a page: what it says, of which files, link by link, and what is left to show. It has no script.

use crate::{STYLE, filled, text};
use std::fmt::Write as _;

const TEMPLATE: &str = include_str!("../assets/verdict.html");

/// A verdict about two models, as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerdictPage {
    /// The verdict in one line.
    pub verdict: String,
    /// The version of the program that says so.
    pub version: String,
    /// Both models: the name of the file, and its SHA-256.
    pub models: [(String, String); 2],
    /// What else is to be said, as name and value: sizes, hosts, readings, what a run found.
    pub facts: Vec<(String, String)>,
    /// Values of the second model that are values of the first: both names, and how they are one.
    pub links: Vec<[String; 3]>,
    /// What is left to show: the value, and the nodes of both models that make it.
    pub cut: Option<(String, [Vec<String>; 2])>,
}

impl VerdictPage {
    /// A page that says nothing but the verdict and which files it is about.
    pub fn new(verdict: impl Into<String>, version: impl Into<String>, models: [(String, String); 2]) -> VerdictPage {
        let (verdict, version) = (verdict.into(), version.into());
        VerdictPage { verdict, version, models, facts: Vec::new(), links: Vec::new(), cut: None }
    }

    /// The page as one HTML file that needs no network.
    pub fn html(&self) -> String {
        let title = text(&format!("{} and {} · relayout", self.models[0].0, self.models[1].0));
        filled(TEMPLATE, &[("title", &title), ("style", STYLE), ("body", &self.body())])
    }

    fn body(&self) -> String {
        let mut body = format!("<h1>{}</h1>\n", text(&self.verdict));
        let models = self.models.iter().zip(["Input", "Result"]);
        let models = models.map(|((name, digest), of)| [of.to_owned(), name.clone(), format!("SHA-256 {digest}")]);
        body += &table(&["", "File", "Digest"], models);
        let version = ("Program".to_owned(), format!("relayout {}", self.version));
        let facts = [&version].into_iter().chain(&self.facts);
        body += &table(&["", ""], facts.map(|(name, value)| [name.clone(), value.clone()]));
        if let Some((value, sides)) = &self.cut {
            let _ = writeln!(body, "<h2>What is left to show: <code>{}</code></h2>", text(value));
            for (of, nodes) in ["The input", "The result"].iter().zip(sides) {
                let _ = writeln!(body, "<h3>{of}</h3>\n<pre>{}</pre>", text(&nodes.join("\n")));
            }
        }
        if !self.links.is_empty() {
            let _ = writeln!(
                body,
                "<h2>Link by link</h2>\n<p>{} values of the result are values of the input.</p>",
                self.links.len()
            );
            body += &table(&["Value of the result", "Value of the input", "How"], self.links.iter().cloned());
        }
        body
    }
}

/// A table with a head, whose cells are text.
fn table<const N: usize>(head: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let row = |cells: &[String; N]| {
        cells.iter().map(|cell| format!("<td class=\"code\">{}</td>", text(cell))).collect::<Vec<_>>().concat()
    };
    let rows = rows.map(|cells| format!("<tr>{}</tr>\n", row(&cells))).collect::<Vec<_>>().concat();
    let head = head.iter().map(|cell| format!("<th>{cell}</th>")).collect::<Vec<_>>().concat();
    format!("<table>\n<tr>{head}</tr>\n{rows}</table>\n")
}

#[cfg(test)]
mod tests {
    use super::VerdictPage;

    #[test]
    fn a_verdict_stands_on_a_page_without_scripts_and_names_are_text() {
        let page = VerdictPage {
            verdict: "UNDECIDED: <b>".to_owned(),
            version: "1.2.3".to_owned(),
            models: [("a.onnx".to_owned(), "0a".to_owned()), ("{{body}}".to_owned(), "0b".to_owned())],
            facts: vec![("Hosts".to_owned(), "blocks of 16".to_owned())],
            links: vec![["y".to_owned(), "x".to_owned(), "the same term".to_owned()]],
            cut: Some(("f".to_owned(), [vec!["f = Sin(<e>)".to_owned()], vec!["f = Cos(e)".to_owned()]])),
        };
        let html = page.html();
        for part in [
            "UNDECIDED: &lt;b&gt;",
            "SHA-256 0a",
            "relayout 1.2.3",
            "blocks of 16",
            "f = Sin(&lt;e&gt;)",
            "the same term",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<script") && html.contains("<td class=\"code\">{{body}}</td>"));
    }
}
