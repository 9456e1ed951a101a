//! Reports as one HTML page that needs no network: what was gained, the graph before and after, and why each move that is left is left.
//!
//! ```no_run
//! use relayout::{Model, Options, optimize, target};
//! use relayout_html::{PageKind, optimized_page};
//!
//! let (model, target) = (Model::open("model.onnx")?, target("onnx")?);
//! let options = Options::default().price_moves(32).keep_decided();
//! let optimized = optimize(&model, target.as_ref(), &options)?;
//! let page = optimized_page(PageKind::Optimize, "model.onnx", &model, target.as_ref(), &options, &optimized, None)?;
//! std::fs::write("report.html", page.html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Data and page are apart. A [`Page`] is plain data with everything that is shown; [`Page::html`] puts it as JSON into a template,
//! beside a script that draws it. The script is built ahead from `crates/html/web` and is in `assets`, with the licences of what is in
//! it. So building this crate needs neither Node.js nor a network. `docs/report.md` says how the script is built and tested.
//!
//! Absent: any computation in the page but folding, sorting and searching. What it shows was decided before.

mod graph;
mod make;
mod moves;
mod page;
mod strings;
mod verdict;

pub use make::{audit_page, difference_page, optimized_page};
pub use page::{
    Change, Figure, GraphPart, Measured, Move, NodePart, NodeState, PAGE_SCHEMA, Page, PageKind, Unit, ValuePart,
    WayOut,
};
pub use verdict::VerdictPage;

const TEMPLATE: &str = include_str!("../assets/template.html");
const SCRIPT: &str = include_str!("../assets/report.js");
const STYLE: &str = include_str!("../assets/report.css");
const LICENCES: &str = include_str!("../assets/licences.txt");

impl Page {
    /// The page as one HTML file.
    ///
    /// # Errors
    /// What serialization reports, which for this type is nothing.
    pub fn html(&self) -> serde_json::Result<String> {
        let data = in_script(&serde_json::to_string(self)?);
        let title = text(&format!("{} · relayout", self.name));
        let parts =
            [("title", title.as_str()), ("style", STYLE), ("licences", LICENCES), ("data", &data), ("script", SCRIPT)];
        Ok(filled(TEMPLATE, &parts))
    }
}

/// The template with each `{{name}}` replaced, in one walk: what is put in is not looked at again.
fn filled(template: &str, parts: &[(&str, &str)]) -> String {
    let mut html = String::with_capacity(template.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        html += before;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        html += parts.iter().find(|(known, _)| *known == name).map_or("", |(_, part)| part);
        rest = after;
    }
    html + rest
}

/// JSON that may stand in a script element. `<` occurs only inside of strings there.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Text that may stand in an element.
fn text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, STYLE, TEMPLATE, filled, in_script, text};

    #[test]
    fn no_name_ends_the_script_that_holds_it() {
        for name in ["</script>", "<!--", "<SCRIPT>", "a\u{2028}b", "\"';{{script}}"] {
            let json = serde_json::to_string(name).unwrap();
            let put = in_script(&json);
            assert!(!put.contains('<') && !put.contains('\u{2028}'), "{put}");
            assert_eq!(serde_json::from_str::<String>(&put).unwrap(), name);
        }
        assert_eq!(text("<b>&\""), "&lt;b&gt;&amp;&quot;");
    }

    #[test]
    fn what_is_put_into_the_template_is_not_looked_at_again() {
        assert_eq!(filled("a{{x}}b{{y}}c", &[("x", "{{y}}"), ("y", "2")]), "a{{y}}b2c");
    }

    #[test]
    fn the_assets_can_stand_in_one_page() {
        assert!(!SCRIPT.to_lowercase().contains("</script"));
        assert!(!STYLE.to_lowercase().contains("</style"));
        for part in ["title", "style", "licences", "data", "script"] {
            assert_eq!(TEMPLATE.matches(&format!("{{{{{part}}}}}")).count(), 1, "{part}");
        }
    }
}
