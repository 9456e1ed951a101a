//! Which files of a crate import which. At most four import each other, and folders do not; and no folder of a target knows another
//! target's.
//!
//! An import is a `use` of something of the same crate, or a path that begins with `crate` or `super`; what tests import is left out.
//! A name that a file only hands on (`pub use`) leads to the file that has it. `cargo test -p relayout --test api imports --
//! --nocapture` prints all circles.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::{Item, UseTree, Visibility};

/// A module that has a file.
struct Module {
    /// The file, from the folder of sources on.
    file: String,
    items: Vec<Item>,
    /// Paths in its code that begin with `crate` or `super`.
    paths: Vec<Vec<String>>,
    /// Where names lead that `use` brings, by name.
    named: BTreeMap<String, Vec<String>>,
}

/// The modules of a crate by their paths.
#[derive(Default)]
struct Modules(BTreeMap<Vec<String>, Module>);

/// Which file imports which.
type Edges = BTreeMap<String, BTreeSet<String>>;

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| a.path().is_ident("cfg") && told(a).contains("test"))
}

fn told(attr: &syn::Attribute) -> String {
    attr.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default()
}

/// The paths of a `use`, each with the name that it brings; `*` for all names.
fn used(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            used(&step.tree, path, found);
            path.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            found.push((path.clone(), path.last().cloned().unwrap_or_default()));
        }
        UseTree::Name(name) => {
            found.push(([path.as_slice(), &[name.ident.to_string()]].concat(), name.ident.to_string()));
        }
        UseTree::Rename(name) => {
            found.push(([path.as_slice(), &[name.ident.to_string()]].concat(), name.rename.to_string()));
        }
        UseTree::Glob(_) => found.push(([path.as_slice(), &["*".to_owned()]].concat(), "*".to_owned())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| used(tree, path, found)),
    }
}

impl Modules {
    fn read(src: &Path) -> Modules {
        let mut modules = Modules::default();
        for root in ["lib.rs", "main.rs"] {
            if src.join(root).exists() {
                modules.add(src, &[], root);
                break;
            }
        }
        modules
    }

    fn add(&mut self, src: &Path, path: &[String], file: &str) {
        let text = std::fs::read_to_string(src.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let mut items = syn::parse_file(&text).unwrap_or_else(|e| panic!("{file}: {e}")).items;
        items.retain(|item| !matches!(item, Item::Mod(m) if is_test(&m.attrs)));
        for item in &items {
            let Item::Mod(child) = item else { continue };
            if child.content.is_none() {
                let path = [path, &[child.ident.to_string()]].concat();
                let [plain, folder] = [format!("{}.rs", path.join("/")), format!("{}/mod.rs", path.join("/"))];
                let file = if src.join(&plain).exists() { plain } else { folder };
                self.add(src, &path, &file);
            }
        }
        let mut paths = Vec::new();
        paths_of(text.parse().unwrap_or_else(|e| panic!("{file}: {e}")), &mut paths);
        self.0.insert(path.to_vec(), Module { file: file.to_owned(), items, paths, named: BTreeMap::new() });
    }

    /// A path as one from the root on, if it is one of this crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut at = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|step| step == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            child => {
                if !self.0.contains_key(&[module, &[child.to_owned()]].concat()) {
                    return None;
                }
            }
        }
        Some([at, rest.to_vec()].concat())
    }

    /// The file that has what a path names: names that a module takes from elsewhere are followed.
    fn file_of(&self, path: &[String], depth: usize) -> Option<&str> {
        let module = (0..=path.len()).rev().find(|&at| self.0.contains_key(&path[..at]))?;
        let found = &self.0[&path[..module]];
        let next = path.get(module).and_then(|name| found.named.get(name));
        match next.filter(|_| depth < 8) {
            Some(next) => self.file_of(&[next.as_slice(), &path[module + 1..]].concat(), depth + 1),
            None => Some(&found.file),
        }
    }

    fn uses(&self, path: &[String]) -> Vec<(Vec<String>, String, bool)> {
        let mut all = Vec::new();
        for item in &self.0[path].items {
            let Item::Use(item) = item else { continue };
            let mut found = Vec::new();
            used(&item.tree, &mut Vec::new(), &mut found);
            let on = !matches!(item.vis, Visibility::Inherited) && !is_test(&item.attrs);
            let absolute = found.into_iter().filter_map(|(used, name)| Some((self.absolute(path, &used)?, name, on)));
            all.extend(absolute);
        }
        all
    }

    fn edges(mut self) -> Edges {
        let paths: Vec<Vec<String>> = self.0.keys().cloned().collect();
        for path in &paths {
            let named = self.uses(path).into_iter().filter(|(_, name, _)| name != "*").map(|(to, name, _)| (name, to));
            let named = named.collect();
            self.0.get_mut(path).unwrap().named = named;
        }
        let mut edges = Edges::new();
        for path in &paths {
            let own = &self.0[path];
            let mut to: Vec<Vec<String>> =
                self.uses(path).into_iter().filter(|(_, _, on)| !on).map(|(used, ..)| used).collect();
            to.extend(own.paths.iter().filter_map(|words| self.absolute(path, words)));
            let files = to.iter().filter_map(|to| self.file_of(to, 0)).filter(|file| *file != own.file);
            let files = files.map(str::to_owned).collect();
            edges.insert(own.file.clone(), files);
        }
        edges
    }
}

/// The paths in some tokens that begin with `crate` or `super`, but for those of a `use` and of modules inside of the file.
fn paths_of(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let (mut words, mut used, mut inner): (Vec<String>, bool, bool) = (Vec::new(), false, false);
    let mut colons = 0;
    for token in tokens {
        match &token {
            TokenTree::Ident(word) if words.is_empty() || colons == 2 => {
                let word = word.to_string();
                (used, inner) = (used || word == "use", inner || word == "mod");
                if !words.is_empty() || matches!(word.as_str(), "crate" | "super") {
                    words.push(word);
                }
                colons = 0;
                continue;
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' && !words.is_empty() => {
                colons += 1;
                continue;
            }
            _ => {}
        }
        let path = std::mem::take(&mut words);
        found.extend(Some(path).filter(|path| path.len() > 1 && !used));
        colons = 0;
        match token {
            TokenTree::Group(group) if inner && group.delimiter() == Delimiter::Brace => inner = false,
            TokenTree::Group(group) if !used => paths_of(group.stream(), found),
            TokenTree::Ident(word) => {
                (used, inner) = (used || word == "use", inner || word == "mod");
                words.extend(Some(word.to_string()).filter(|word| matches!(word.as_str(), "crate" | "super")));
            }
            TokenTree::Punct(sign) if sign.as_char() == ';' => (used, inner) = (false, false),
            _ => {}
        }
    }
    found.extend(Some(words).filter(|path| path.len() > 1 && !used));
}

/// Groups of nodes that reach each other, of two at least.
fn circles(edges: &Edges) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(at) = todo.pop() {
            todo.extend(edges.get(at).into_iter().flatten().filter(|to| seen.insert((*to).clone())));
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|file| (file, reached(file))).collect();
    let group = |file: &String| -> Vec<String> {
        all[file].iter().filter(|to| all.get(to).is_some_and(|back| back.contains(file))).cloned().collect()
    };
    let found: BTreeSet<Vec<String>> = edges.keys().map(group).filter(|group| group.len() > 1).collect();
    found.into_iter().collect()
}

/// The folder that a file belongs to: `x.rs` beside `x/` is of that folder.
fn folder(src: &Path, file: &str) -> String {
    let stem = file.trim_end_matches(".rs");
    if src.join(stem).is_dir() {
        stem.to_owned()
    } else {
        stem.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()
    }
}

/// Folders that import each other, beside each other in one folder.
fn folder_circles(edges: &Edges, src: &Path) -> BTreeSet<Vec<String>> {
    let mut levels: BTreeMap<String, Edges> = BTreeMap::new();
    for (from, to) in edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
        let [a, b] = [from, to].map(|file| folder(src, file));
        let [a, b]: [Vec<&str>; 2] = [&a, &b].map(|f| f.split('/').filter(|s| !s.is_empty()).collect());
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        if let (Some(from), Some(to)) = (a.get(common), b.get(common)) {
            let level = levels.entry(a[..common].join("/")).or_default();
            level.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
    }
    let named = |(level, edges): (&String, &Edges)| -> Vec<Vec<String>> {
        let name = |folder: String| if level.is_empty() { folder } else { format!("{level}/{folder}") };
        circles(edges).into_iter().map(|group| group.into_iter().map(name).collect()).collect()
    };
    levels.iter().flat_map(named).collect()
}

fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.push(root.join("passes"));
    folders.sort();
    let name = |folder: &PathBuf| folder.file_name().unwrap().to_string_lossy().into_owned();
    folders.iter().map(|folder| (name(folder), folder.join("src"))).filter(|(_, src)| src.is_dir()).collect()
}

/// Most files that may import each other.
const MOST: usize = 4;

#[test]
fn circles_of_files_are_small_and_folders_have_none() {
    let mut wrong = Vec::new();
    for (name, src) in crates() {
        let edges = Modules::read(&src).edges();
        assert!(!edges.is_empty(), "{name} has no sources");
        for circle in circles(&edges) {
            println!("{name}: {} files: {}", circle.len(), circle.join(" "));
            if circle.len() > MOST {
                wrong.push(format!("{name}: more than {MOST} files import each other: {}", circle.join(" ")));
            }
        }
        for circle in folder_circles(&edges, &src) {
            wrong.push(format!("{name}: folders import each other: {}", circle.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_target_imports_what_is_shared_and_its_own() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../targets/src");
    let edges = Modules::read(&src).edges();
    let top = |file: &str| file.split_once('/').map(|(folder, _)| folder.to_owned());
    let mut seen = BTreeSet::new();
    for (from, to) in edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
        // Files of the crate's root hand the targets on, and have its errors.
        let (Some(own), Some(other)) = (top(from), top(to)) else { continue };
        assert!(other == own || other == "shared", "{from} imports {to}");
        seen.insert(own);
    }
    assert!(["functions", "ort_cpu", "ort_nhwc", "shared"].iter().all(|folder| seen.contains(*folder)), "{seen:?}");
}

#[test]
fn circles_are_found_through_names_that_are_handed_on() {
    let edge = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|to| (*to).to_owned()).collect());
    let edges: Edges = [edge("a", &["b"]), edge("b", &["c"]), edge("c", &["a"]), edge("d", &["a"])].into();
    assert_eq!(circles(&edges), [["a", "b", "c"]]);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\n");
    write("a/mod.rs", "mod inner;\npub(crate) use inner::thing;\n");
    write("a/inner.rs", "use crate::b::other;\npub(crate) fn thing() { other() }\n");
    write("b/mod.rs", "pub(crate) fn other() { crate::a::thing() }\n#[cfg(test)]\nmod tests { use crate::a; }\n");
    let edges = Modules::read(folder.path()).edges();
    assert_eq!(circles(&edges), [["a/inner.rs", "b/mod.rs"]]);
    assert_eq!(folder_circles(&edges, folder.path()), [vec!["a".to_owned(), "b".to_owned()]].into());
}
