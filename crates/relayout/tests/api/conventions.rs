//! Conventions that a test can hold: which crate may know which, how much an embedder builds, which Rust each crate needs, and where
//! `unsafe` may stand.

use crate::pages::{code, lines, pages};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Package name to the packages of this workspace that it depends on.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path()).collect();
    folders.extend(["passes", "examples/own-target", "python"].map(|folder| root().join(folder)));
    let manifest = |folder: &PathBuf| -> toml::Table {
        std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap()
    };
    let manifests: Vec<toml::Table> = folders.iter().map(manifest).collect();
    let name = |m: &toml::Table| m["package"]["name"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = manifests.iter().map(name).collect();
    let own = |m: &toml::Table| {
        let dependencies = m.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        dependencies.keys().filter(|d| names.contains(*d)).cloned().collect()
    };
    manifests.iter().map(|m| (name(m), own(m))).collect()
}

/// Package name to the packages of this workspace that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("relayout-layout", &[]),
    ("relayout-solve", &[]),
    ("relayout-ir", &["relayout-layout"]),
    ("relayout-codegen", &["relayout-layout"]),
    ("relayout-eval", &["relayout-ir"]),
    ("relayout-target-api", &["relayout-ir", "relayout-solve"]),
    ("relayout-targets", &["relayout-ir", "relayout-eval", "relayout-target-api"]),
    ("relayout-fsio", &[]),
    ("relayout-onnx", &["relayout-ir", "relayout-codegen", "relayout-fsio"]),
    ("relayout-equations", &["relayout-ir", "relayout-target-api"]),
    (
        "relayout-passes",
        &["relayout-ir", "relayout-eval", "relayout-solve", "relayout-target-api", "relayout-equations"],
    ),
    (
        "relayout",
        &[
            "relayout-ir",
            "relayout-target-api",
            "relayout-targets",
            "relayout-codegen",
            "relayout-fsio",
            "relayout-onnx",
            "relayout-passes",
            "relayout-proof",
            "relayout-solve",
        ],
    ),
    ("relayout-cache", &["relayout"]),
    ("relayout-ort", &["relayout", "relayout-cache"]),
    ("relayout-verify", &["relayout", "relayout-fsio", "relayout-ir"]),
    // The checker shares no code with what it checks.
    ("relayout-proof", &["relayout-fsio"]),
    (
        "relayout-calibrate",
        &[
            "relayout",
            "relayout-cache",
            "relayout-codegen",
            "relayout-ir",
            "relayout-onnx",
            "relayout-targets",
            "relayout-verify",
        ],
    ),
    ("relayout-bundle", &["relayout", "relayout-fsio", "relayout-ir", "relayout-onnx", "relayout-target-api"]),
    ("relayout-html", &["relayout"]),
    (
        "relayout-cli",
        &["relayout", "relayout-bundle", "relayout-calibrate", "relayout-html", "relayout-proof", "relayout-verify"],
    ),
    // An embedder's crate knows the library alone.
    ("own-target", &["relayout"]),
    ("relayout-capi", &["relayout"]),
    ("relayout-ortop", &["relayout-codegen", "relayout-layout"]),
    (
        "relayout-python",
        &["relayout", "relayout-cache", "relayout-calibrate", "relayout-cli", "relayout-html", "relayout-verify"],
    ),
];

#[test]
fn no_crate_imports_upward() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let edges = edges();
    assert!(edges.len() >= 7, "the manifests were not found");
    for (name, uses) in edges {
        let may = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not in the table of this test"));
        for used in uses {
            assert!(may.contains(&used.as_str()), "{name} must not depend on {used}");
        }
    }
}

#[test]
fn the_page_about_proofs_says_how_long_the_trusted_code_is() {
    let (page, src) = (read(&root().join("docs/proof.md")), root().join("crates/proof/src"));
    let rows = page.lines().filter(|line| (line.contains(".rs`") || line.contains("/`")) && line.ends_with("00 |"));
    let mut seen = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let said: usize = cells[3].replace(',', "").parse().unwrap_or_else(|e| panic!("{row}: {e}"));
        let files = cells[2].split(", ").map(|file| src.join(file.trim_matches('`')));
        let mut all = Vec::new();
        files.for_each(|path| if path.is_dir() { sources(&path, &mut all) } else { all.push(path) });
        let lines: usize = all.iter().map(|path| read(path).lines().count()).sum();
        assert!(lines.abs_diff(said) * 10 <= said, "docs/proof.md: `{}` has {lines} lines", cells[1]);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What cargo prints.
fn cargo(arguments: &[&str]) -> String {
    let ran = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(ran.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Crates of others that are built for a package of this workspace with these options of cargo, tests not counted.
fn built_for(package: &str, options: &[&str]) -> BTreeSet<String> {
    let tree = ["tree", "--locked", "--package", package, "--edges", "normal", "--prefix", "none"];
    let tree = cargo(&[&tree, options].concat());
    let crates = tree.lines().filter(|line| !line.starts_with("relayout"));
    crates.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn an_embedder_builds_few_crates_and_no_runtime() {
    let crates = built_for("relayout", &[]);
    assert!((20..=66).contains(&crates.len()), "{} crates: {crates:?}", crates.len());
    let least = built_for("relayout", &["--no-default-features"]);
    assert!((20..=53).contains(&least.len()), "{} crates: {least:?}", least.len());
    let has = |crates: &BTreeSet<String>, name: &str| crates.iter().any(|c| c.split(' ').next() == Some(name));
    for name in ["ort", "ort-sys", "ndarray", "zip", "safetensors", "sha2"] {
        assert!(!has(&crates, name), "relayout is built with {name}; what needs it belongs into a crate of its own");
    }
    // The names are those that cargo prints.
    let verify = built_for("relayout-verify", &[]);
    assert!(has(&crates, "egg") && !has(&least, "egg"));
    assert!(has(&verify, "ort") && has(&verify, "zip"), "{verify:?}");
}

/// `1.88` or `1.88.0`, as numbers.
fn version(text: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = text.split('.').map(|n| n.parse().unwrap()).collect();
    numbers.resize(3, 0);
    numbers
}

#[test]
fn every_crate_states_a_rust_that_its_dependencies_allow() {
    let host = cargo(&["--version", "--verbose"]);
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo says where it runs");
    let text = cargo(&["metadata", "--locked", "--format-version", "1", "--filter-platform", host]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let oldest: BTreeMap<String, Option<Vec<u32>>> = list(&metadata["packages"])
        .iter()
        .map(|package| (word(&package["id"]), package["rust_version"].as_str().map(version)))
        .collect();
    let own: BTreeSet<String> = list(&metadata["workspace_members"]).iter().map(word).collect();
    let mut edges = 0;
    for node in list(&metadata["resolve"]["nodes"]).iter().filter(|node| own.contains(&word(&node["id"]))) {
        let name = word(&node["id"]);
        let stated = oldest[&name].as_ref().unwrap_or_else(|| panic!("{name} states no rust-version"));
        for used in list(&node["deps"]) {
            if list(&used["dep_kinds"]).iter().all(|kind| kind["kind"] == "dev") {
                continue;
            }
            edges += 1;
            let needed = oldest[&word(&used["pkg"])].clone().unwrap_or_default();
            assert!(*stated >= needed, "{name} states Rust {stated:?}, and {} needs {needed:?}", used["name"]);
        }
    }
    assert!(edges > 50, "the dependencies were not found");
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_none_or(|n| n != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// `relayout::units` has the one form that bytes and times have for people, so that 1179.6 kB never stands beside 71.1 MB.
#[test]
fn bytes_and_times_are_written_in_one_place() {
    let mut all = Vec::new();
    for folder in ["crates", "passes", "python/src"] {
        sources(&root().join(folder), &mut all);
    }
    let formats = ["} kB", "} MB", "} GB", "} us", "\u{b5}s"];
    for path in
        all.iter().filter(|path| !path.ends_with("relayout/src/units.rs") && !path.ends_with("api/conventions.rs"))
    {
        for (n, line) in read(path).lines().enumerate() {
            let found = formats.iter().find(|format| line.contains(**format));
            assert!(found.is_none(), "{}:{}: take relayout::units: {}", path.display(), n + 1, line.trim());
        }
    }
}

/// Each program links all that it tests and costs seconds of every build, so new tests are modules of the programs that are there.
#[test]
fn test_programs_are_few_and_none_is_left_out() {
    let text = cargo(&["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let targets: Vec<&serde_json::Value> = packages.flat_map(|p| p["targets"].as_array().unwrap()).collect();
    let path = |target: &serde_json::Value| PathBuf::from(target["src_path"].as_str().unwrap());
    let (built, not): (Vec<_>, Vec<_>) = targets.into_iter().partition(|target| target["test"] == true);
    let programs: Vec<PathBuf> = built.into_iter().map(path).collect();
    assert!((20..=40).contains(&programs.len()), "{} test programs: {programs:#?}", programs.len());
    // What is built without a test program has no tests of its own.
    for target in not {
        let (file, mut files) = (path(target), Vec::new());
        match target["kind"][0].as_str() {
            Some("example" | "custom-build") => {}
            Some("bin") => files.push(file),
            _ => sources(file.parent().unwrap(), &mut files),
        }
        let tested = |file: &PathBuf| std::fs::read_to_string(file).unwrap().contains(concat!("#[te", "st]"));
        files.retain(tested);
        assert!(files.is_empty(), "{files:?} has tests, and the manifest says `test = false`");
    }
}

/// What is not in git, such as a folder of tools that a developer has elsewhere, may be a link to any place.
#[test]
fn every_link_in_the_tree_leads_to_a_file_of_the_tree() {
    if !root().join(".git").exists() {
        println!("skipped: this is no clone, and only git says which links belong to it");
        return;
    }
    let listed = Command::new("git").args(["ls-files", "-s"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let links: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("120000 ")?.split('\t').nth(1)).collect();
    assert!(links.contains(&"crates/cli/LICENSE"), "git lists no links: {links:?}");
    let top = root().canonicalize().unwrap();
    for link in links {
        let target = std::fs::read_link(root().join(link)).unwrap();
        let inside = root().join(link).canonicalize().is_ok_and(|file| file.starts_with(&top));
        assert!(target.is_relative() && inside, "{link} leads to {}", target.display());
    }
}

#[test]
fn unsafe_stands_only_where_the_design_allows_it() {
    const ALLOWED: &[&str] = &[
        "crates/fsio/src/map.rs",
        "crates/fsio/src/signals.rs",
        "crates/codegen/src/kernels/",
        "crates/capi/src/border.rs",
        "crates/capi/src/external.rs",
        "crates/capi/src/optimize.rs",
        "crates/capi/src/permute.rs",
        "crates/ortop/src/api.rs",
        "crates/ortop/src/op.rs",
        "crates/codegen/tests/codegen/cuda_device.rs",
        "python/src/memory.rs",
    ];
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    sources(&root().join("passes"), &mut files);
    sources(&root().join("python"), &mut files);
    assert!(files.len() > 50, "the sources were not found");
    // In two pieces, so that this file does not find itself.
    let word = concat!("uns", "afe {");
    for file in files {
        let name = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let found = text.lines().any(|l| l.contains(word) || l.contains(concat!("uns", "afe fn")));
        assert!(!found || ALLOWED.iter().any(|a| name.starts_with(a)), "{name} must not contain it");
    }
}

/// The crates that compute with sizes of files, all that the program and the C library are made of but the kernels.
#[test]
fn released_programs_check_for_overflow_where_sizes_of_files_are_computed_with() {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let packages = &manifest["profile"]["release"]["package"];
    let edges = edges();
    let library = edges.keys().filter(|name| *name == "relayout-capi");
    let program: BTreeSet<&String> = edges["relayout-cli"].iter().chain(&edges["relayout"]).chain(library).collect();
    assert!(program.len() > 10, "{program:?}");
    for name in program.into_iter().filter(|name| *name != "relayout-codegen") {
        let checks = packages.get(name).and_then(|package| package.get("overflow-checks"));
        assert_eq!(checks.and_then(toml::Value::as_bool), Some(true), "{name}");
    }
}

/// The lines of the first example of a crate's documentation, hidden ones left out.
fn example(lib: &str) -> Option<String> {
    let docs: Vec<&str> =
        lib.lines().map_while(|line| line.strip_prefix("//!")).map(|l| l.strip_prefix(' ').unwrap_or(l)).collect();
    let start = docs.iter().position(|line| line.starts_with("```") && !line.contains("text"))?;
    let lines = docs[start + 1..].iter().take_while(|line| !line.starts_with("```"));
    let lines: Vec<&str> = lines.copied().filter(|line| !line.starts_with("# ")).collect();
    Some(lines.join("\n"))
}

/// What a registry shows of a crate, and what a reader of its package finds.
#[test]
fn every_crate_can_be_published() {
    let licence = std::fs::read_to_string(root().join("LICENSE")).unwrap();
    let folders = std::fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path());
    let folders: Vec<PathBuf> = folders.chain([root().join("passes")]).collect();
    assert!(folders.len() >= 15, "the crates were not found");
    for folder in folders {
        let text = |file: &str| {
            let path = folder.join(file);
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
        let package = manifest["package"].as_table().unwrap();
        let name = package["name"].as_str().unwrap();
        for key in ["description", "license", "keywords", "categories", "rust-version"] {
            assert!(package.contains_key(key), "{name} has no {key}");
        }
        assert!(!package.contains_key("publish"), "{name} is a library or program of users");
        assert_eq!(text("LICENSE"), licence, "{name}");
        let readme = text("README.md");
        assert!(readme.len() > 100, "{name}: {readme}");
        // Programs have no crate documentation; the examples of those that others load are in their languages.
        if folder.join("src/lib.rs").exists() && !["relayout-capi", "relayout-ortop"].contains(&name) {
            let example = example(&text("src/lib.rs")).unwrap_or_else(|| panic!("{name} has no example"));
            assert!(
                example.lines().count() > 2 && readme.contains(&example),
                "the README of {name} has not: {example}"
            );
        }
    }
}

/// Where a page can be entered: its headings, as GitHub and the site name them, and places that it names itself.
fn anchors(page: &str) -> BTreeSet<String> {
    let named = page.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    let headings = lines(page).filter(|(fenced, line)| !fenced && line.starts_with('#')).map(|(_, line)| line);
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|heading| heading.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>())
        .map(|heading| heading.replace(' ', "-"))
        .chain(named)
        .collect()
}

/// What links of a page lead to, but for those to other hosts.
fn links(page: &str) -> Vec<&str> {
    let prose = lines(page).filter(|(fenced, line)| !fenced && !line.starts_with("    "));
    let links = prose.flat_map(|(_, line)| line.split("](").skip(1).filter_map(|rest| rest.split_once(')')));
    links.map(|(to, _)| to).filter(|to| !to.contains("://") && !to.starts_with("mailto:")).collect()
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let (mut seen, mut dead) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
            let to = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            // Pages that are made on the way to a site are not here.
            let is_made = path.starts_with("api/");
            let target = std::fs::read_to_string(&to).unwrap_or_default();
            let enters = anchor.is_none_or(|anchor| anchors(&target).contains(anchor));
            if !(is_made || to.exists() && enters) {
                dead.push(format!("{}: {link}", page.display()));
            }
            seen += 1;
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(seen > 300, "{seen}");
}

/// A line of code or a span in backticks that begins with a script of this repository.
struct Call<'a> {
    script: &'a str,
    /// What follows it, up to a comment, a pipe, or a lone `--`, behind which stand words for another program.
    words: Vec<&'a str>,
}

/// The script that a line calls: the first word with a path below one of our folders, if only variables and an interpreter stand in
/// front of it. A placeholder is no path.
fn call(line: &str) -> Option<Call<'_>> {
    let folders = ["tools/", "bench/", "examples/", "testdata/", "findings/", ".ci/"];
    let ends = |word: &&str| !["#", "|", "||", "&&", ";", ">", "--"].contains(word);
    let mut words =
        line.split_whitespace().take_while(ends).skip_while(|word| word.contains('=') && !word.contains('/'));
    let first = words.next()?;
    let is_ours = |word: &str| folders.iter().any(|folder| word.starts_with(folder));
    let is_python = first == "python" || first.ends_with("/python");
    let script = if is_python { words.next()? } else { first };
    let is_placeholder = script.contains(['*', '<', '{', '…']) || script.split('/').any(|part| part == "NAME.sh");
    (is_ours(script) && !is_placeholder).then(|| Call { script, words: words.collect() })
}

/// The calls on a page.
fn calls(page: &str) -> Vec<Call<'_>> {
    code(page).filter_map(call).collect()
}

/// The text of a script and of the modules beside it that it imports; of a folder, that of all its scripts.
fn text_of(script: &Path) -> String {
    if script.is_dir() {
        let files = std::fs::read_dir(script).unwrap().map(|entry| entry.unwrap().path());
        return files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    }
    let own = std::fs::read_to_string(script).unwrap_or_default();
    let imports = own.lines().filter_map(|line| line.strip_prefix("from ").or(line.strip_prefix("import ")));
    let modules = imports.filter_map(|rest| rest.split([' ', ',']).next());
    let beside = modules.filter_map(|name| std::fs::read_to_string(script.with_file_name(format!("{name}.py"))).ok());
    let beside: String = beside.collect();
    own + &beside
}

/// Whether a script has an option: its text spells it, whole.
fn has_option(text: &str, option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    text.match_indices(name).any(|(at, _)| {
        let next = text[at + name.len()..].chars().next();
        next.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_')
    })
}

#[test]
fn every_script_that_a_page_calls_is_there_with_the_options_and_every_measurement_has_its_name() {
    let bench = read(&root().join("tools/bench"));
    let (mut seen, mut options, mut wrong) = (0, 0, Vec::new());
    for page in pages() {
        let text = read(&page);
        for Call { script, words } in calls(&text) {
            seen += 1;
            let path = root().join(script);
            let text = text_of(&path);
            let asked = words.iter().filter(|word| word.starts_with("--"));
            options += asked.clone().count();
            let unknown: Vec<_> = asked.filter(|option| !has_option(&text, option)).collect();
            let measured = words.get(1).filter(|name| script == "tools/bench" && words[0] == "run" && **name != "NAME");
            let is_known = measured.is_none_or(|name| bench.contains(&format!("\n    \"{name}\": Measurement(")));
            if !path.exists() || !is_known || !unknown.is_empty() {
                wrong.push(format!("{}: {script} {words:?} {unknown:?}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 150 && options > 40, "{seen} calls, {options} options");
}

#[test]
fn calls_of_scripts_are_found_and_options_are_whole_words() {
    let page = "Run `ROUNDS=6 tools/x`, not `a tools/y`:\n\n    python tools/z.py --check a | b --other\n    tools/bench run n -- --far\n";
    let found: Vec<(&str, Vec<&str>)> = calls(page).into_iter().map(|call| (call.script, call.words)).collect();
    let expected = [("tools/x", vec![]), ("tools/z.py", vec!["--check", "a"]), ("tools/bench", vec!["run", "n"])];
    assert_eq!(found, expected);
    assert!(
        has_option("add_argument(\"--check\")", "--check") && !has_option("add_argument(\"--check-all\")", "--check")
    );
}
