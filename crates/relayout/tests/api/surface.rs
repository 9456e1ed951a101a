//! What a crate offers: its public items, found in its sources by the rules of visibility, a line for each.
//!
//! Sources are read and not compiled, so that no particular compiler is needed. What a macro makes is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::{Fields, ImplItem, Item, ItemUse, TraitItem, Type, UseTree, Visibility};

/// A crate's modules, the root first.
pub(crate) struct Sources {
    name: String,
    modules: Vec<Module>,
}

struct Module {
    path: Vec<String>,
    items: Vec<Item>,
    children: BTreeMap<String, usize>,
}

/// What is public: lines, and the names of types and traits with the module that defines each.
#[derive(Default)]
pub(crate) struct Surface {
    pub(crate) lines: BTreeSet<String>,
    /// Name to the places of its definition.
    pub(crate) types: BTreeMap<String, BTreeSet<String>>,
    /// What stands at the root beside modules.
    pub(crate) root: BTreeSet<String>,
}

/// Something that a name stands for.
#[derive(Clone, Copy)]
enum Named<'s> {
    Module(usize),
    Item(usize, &'s Item),
}

impl Sources {
    /// The crate in a folder.
    pub(crate) fn read(folder: &Path, name: &str) -> Sources {
        let mut sources = Sources { name: name.to_owned(), modules: Vec::new() };
        let file = folder.join("src/lib.rs");
        sources.module(&[], parse(&file), &folder.join("src"));
        sources
    }

    /// Adds a module; files of its children are in `folder`.
    fn module(&mut self, path: &[String], items: Vec<Item>, folder: &Path) -> usize {
        let at = self.modules.len();
        self.modules.push(Module { path: path.to_vec(), items: Vec::new(), children: BTreeMap::new() });
        for item in &items {
            let Item::Mod(child) = item else { continue };
            if child.attrs.iter().any(|a| a.path().is_ident("cfg") && text(a).contains("test")) {
                continue;
            }
            let name = child.ident.to_string();
            let inner = folder.join(&name);
            let content = match &child.content {
                Some((_, items)) => items.clone(),
                None => parse(
                    &[folder.join(format!("{name}.rs")), inner.join("mod.rs")]
                        .into_iter()
                        .find(|f| f.exists())
                        .unwrap(),
                ),
            };
            let path: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
            let child = self.module(&path, content, &inner);
            self.modules[at].children.insert(name, child);
        }
        self.modules[at].items = items;
        at
    }

    /// All that is public.
    pub(crate) fn surface(&self) -> Surface {
        let mut surface = Surface::default();
        self.visit(0, &self.name, &mut surface);
        surface
    }

    fn visit(&self, m: usize, path: &str, surface: &mut Surface) {
        for item in &self.modules[m].items {
            match item {
                Item::Use(u) if is_public(&u.vis) => self.visit_use(m, u, path, surface),
                Item::Mod(child) if is_public(&child.vis) => {
                    let name = child.ident.to_string();
                    self.visit_found(
                        Named::Module(self.modules[m].children[&name]),
                        &format!("{path}::{name}"),
                        surface,
                    );
                }
                _ => {
                    if let Some((name, _)) = named(item).filter(|(_, vis)| is_public(vis)) {
                        self.visit_found(Named::Item(m, item), &format!("{path}::{name}"), surface);
                    }
                }
            }
        }
    }

    fn visit_use(&self, m: usize, u: &ItemUse, path: &str, surface: &mut Surface) {
        for (from, name) in leaves(&u.tree) {
            let found = self.resolve(m, &from);
            match (&name, found.as_slice()) {
                (None, [Named::Module(all)]) => self.visit(*all, path, surface),
                (Some(name), found) if !found.is_empty() => {
                    for found in found {
                        self.visit_found(*found, &format!("{path}::{name}"), surface);
                    }
                }
                (name, _) => {
                    let name = name.clone().unwrap_or_else(|| "*".to_owned());
                    if path == self.name && from.len() > 1 {
                        surface.root.insert(name.clone());
                    }
                    surface.lines.insert(format!("use {path}::{name} = {}", from.join("::")));
                }
            }
        }
    }

    fn visit_found(&self, found: Named<'_>, path: &str, surface: &mut Surface) {
        match found {
            Named::Module(m) => {
                surface.lines.insert(format!("mod {path}"));
                self.visit(m, path, surface);
            }
            Named::Item(m, item) => {
                if path.matches("::").count() == 1 {
                    surface.root.insert(path.rsplit("::").next().unwrap().to_owned());
                }
                if let Some((name, _)) = named(item).filter(|_| is_type(item)) {
                    let place = [&self.name, &self.modules[m].path.join("::")].map(String::as_str).join("::");
                    surface.types.entry(name).or_default().insert(place);
                }
                self.item(m, item, path, &mut surface.lines);
            }
        }
    }

    /// What a path means in a module: nothing if it is of another crate. A name can be a module and a function at once.
    fn resolve(&self, m: usize, path: &[String]) -> Vec<Named<'_>> {
        let Some((first, rest)) = path.split_first() else { return vec![Named::Module(m)] };
        match first.as_str() {
            "crate" => return self.resolve(0, rest),
            "self" => return self.resolve(m, rest),
            "super" => {
                let parent = &self.modules[m].path[..self.modules[m].path.len() - 1];
                return self.resolve(self.modules.iter().position(|m| m.path == parent).unwrap(), rest);
            }
            _ => {}
        }
        let module = &self.modules[m];
        if let (Some(&child), false) = (module.children.get(first), rest.is_empty()) {
            return self.resolve(child, rest);
        }
        if !rest.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Named<'_>> = module.children.get(first).map(|&c| Named::Module(c)).into_iter().collect();
        let is_it = |item: &&Item| named(item).is_some_and(|(name, _)| name == *first);
        found.extend(module.items.iter().filter(is_it).map(|item| Named::Item(m, item)));
        for item in &module.items {
            let Item::Use(u) = item else { continue };
            for (from, name) in leaves(&u.tree) {
                match name {
                    Some(name) if name == *first && from != path => found.extend(self.resolve(m, &from)),
                    _ => {}
                }
            }
        }
        found
    }

    fn item(&self, m: usize, item: &Item, path: &str, lines: &mut BTreeSet<String>) {
        let attrs = shown_attrs(item);
        match item {
            Item::Fn(f) => _ = lines.insert(format!("fn {path}{}", signature(&f.sig))),
            Item::Const(c) => _ = lines.insert(format!("const {path}: {}", text(&c.ty))),
            Item::Static(s) => _ = lines.insert(format!("static {path}: {}", text(&s.ty))),
            Item::Type(t) => _ = lines.insert(format!("type {path}{} = {}", text(&t.generics), text(&t.ty))),
            Item::Struct(s) => {
                lines.insert(format!("struct {path}{}{attrs}", text(&s.generics)));
                for (at, field) in s.fields.iter().enumerate().filter(|(_, f)| is_public(&f.vis)) {
                    let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
                    lines.insert(format!("field {path}.{name}: {}", text(&field.ty)));
                }
            }
            Item::Enum(e) => {
                lines.insert(format!("enum {path}{}{attrs}", text(&e.generics)));
                lines.extend(e.variants.iter().map(|v| format!("variant {path}::{}{}", v.ident, fields(&v.fields))));
            }
            Item::Trait(t) => {
                lines.insert(format!("trait {path}{}: {}", text(&t.generics), text(&t.supertraits)));
                for item in &t.items {
                    if let TraitItem::Fn(f) = item {
                        let given = if f.default.is_some() { " { .. }" } else { "" };
                        lines.insert(format!("fn {path}::{}{}{given}", f.sig.ident, signature(&f.sig)));
                    }
                }
            }
            _ => {}
        }
        if let Some((name, _)) = named(item).filter(|_| is_type(item)) {
            self.impls(m, &name, path, lines);
        }
    }

    /// Methods and traits of a type that module `m` defines.
    fn impls(&self, m: usize, name: &str, path: &str, lines: &mut BTreeSet<String>) {
        let defines =
            |module: &Module| module.items.iter().any(|i| is_type(i) && named(i).is_some_and(|(n, _)| n == name));
        let only = self.modules.iter().filter(|module| defines(module)).count() == 1;
        let near = |module: &&Module| only || module.path.starts_with(&self.modules[m].path);
        for item in self.modules.iter().filter(near).flat_map(|module| &module.items) {
            let Item::Impl(i) = item else { continue };
            let Type::Path(of) = &*i.self_ty else { continue };
            if of.path.segments.last().is_none_or(|s| s.ident != name) {
                continue;
            }
            if let Some((_, of, _)) = &i.trait_ {
                lines.insert(format!("impl {path}: {}", text(of)));
                continue;
            }
            for item in &i.items {
                match item {
                    ImplItem::Fn(f) if is_public(&f.vis) => {
                        lines.insert(format!("fn {path}::{}{}", f.sig.ident, signature(&f.sig)));
                    }
                    ImplItem::Const(c) if is_public(&c.vis) => {
                        lines.insert(format!("const {path}::{}: {}", c.ident, text(&c.ty)));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn parse(file: &PathBuf) -> Vec<Item> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display())).items
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn is_type(item: &Item) -> bool {
    matches!(item, Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Type(_))
}

fn named(item: &Item) -> Option<(String, &Visibility)> {
    let (ident, vis) = match item {
        Item::Fn(i) => (&i.sig.ident, &i.vis),
        Item::Const(i) => (&i.ident, &i.vis),
        Item::Static(i) => (&i.ident, &i.vis),
        Item::Type(i) => (&i.ident, &i.vis),
        Item::Struct(i) => (&i.ident, &i.vis),
        Item::Enum(i) => (&i.ident, &i.vis),
        Item::Trait(i) => (&i.ident, &i.vis),
        _ => return None,
    };
    Some((ident.to_string(), vis))
}

/// What a `use` brings: paths with the names that they get; `None` for all of a module.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, Option<String>)> {
    match tree {
        UseTree::Name(n) => {
            let name = n.ident.to_string();
            vec![if name == "self" { (Vec::new(), None) } else { (vec![name.clone()], Some(name)) }]
        }
        UseTree::Rename(r) => vec![(vec![r.ident.to_string()], Some(r.rename.to_string()))],
        UseTree::Glob(_) => vec![(Vec::new(), None)],
        UseTree::Group(g) => g.items.iter().flat_map(leaves).collect(),
        UseTree::Path(p) => {
            let first = p.ident.to_string();
            let inner = leaves(&p.tree).into_iter();
            inner.map(|(path, name)| ([first.clone()].into_iter().chain(path).collect(), name)).collect()
        }
    }
}

/// A piece of a source on one line.
fn text(of: &impl Spanned) -> String {
    let source = of.span().source_text().unwrap_or_default();
    let line = source.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace("( ", "(").replace(", )", ")").replace("< ", "<").replace(", >", ">")
}

/// Generics, operands and result.
fn signature(sig: &syn::Signature) -> String {
    let all = text(sig);
    let name = sig.ident.to_string();
    let (before, after) = all.split_once(&format!("fn {name}")).unwrap();
    let kind = before.trim();
    if kind.is_empty() { after.to_owned() } else { format!("{after} [{kind}]") }
}

fn fields(fields: &Fields) -> String {
    let types = |f: &Fields| f.iter().map(|f| text(&f.ty)).collect::<Vec<_>>().join(", ");
    match fields {
        Fields::Unit => String::new(),
        Fields::Unnamed(_) => format!("({})", types(fields)),
        Fields::Named(list) => {
            let one = |f: &syn::Field| format!("{}: {}", f.ident.as_ref().unwrap(), text(&f.ty));
            format!(" {{ {} }}", list.named.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

/// What a type derives and whether it may grow.
fn shown_attrs(item: &Item) -> String {
    let attrs = match item {
        Item::Struct(s) => &s.attrs,
        Item::Enum(e) => &e.attrs,
        _ => return String::new(),
    };
    let shown = attrs.iter().filter(|a| a.path().is_ident("derive") || a.path().is_ident("non_exhaustive"));
    shown.flat_map(|a| [" ".to_owned(), text(a)]).collect()
}
