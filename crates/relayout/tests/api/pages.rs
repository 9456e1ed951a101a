//! The pages of the repository and the code on them, for tests that hold pages to what is there.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of what is built or installed. Cargo marks its own; a crate has the name `target` too.
fn is_made(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name == "node_modules" || folder.join("CACHEDIR.TAG").exists()
}

/// Pages below a folder.
fn collect_pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.is_symlink() && !is_made(&path) {
            collect_pages(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            found.push(path);
        }
    }
}

/// All pages of the repository.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    collect_pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut pages);
    pages.sort();
    assert!(pages.len() >= 65, "{pages:?}");
    pages
}

/// Lines of a page with whether they stand between fences.
pub(crate) fn lines(page: &str) -> impl Iterator<Item = (bool, &str)> {
    page.lines().scan(false, |fenced, line| {
        let fence = line.starts_with("```");
        *fenced ^= fence;
        Some((*fenced || fence, line))
    })
}

/// What may be called on a page: lines of code (indented, or behind `$` between fences), and code in backticks.
pub(crate) fn code(page: &str) -> impl Iterator<Item = &str> {
    lines(page).flat_map(|(fenced, line)| {
        let code = if fenced { line.strip_prefix("$ ") } else { line.strip_prefix("    ") };
        let spans = line.split('`').skip(1).step_by(2).filter(move |_| !fenced && code.is_none());
        code.map(|code| code.strip_prefix("$ ").unwrap_or(code)).into_iter().chain(spans)
    })
}
