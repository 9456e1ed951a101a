//! C programs use the installed library, shared and static, by what its pkg-config file says.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn testdata(name: &str) -> PathBuf {
    crate_dir().join("../../testdata").join(name)
}

/// The folder with the libraries of this build: that of the test, or one above it.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let has_library = |folder: &&Path| folder.join("librelayout_capi.a").exists();
    test.ancestors().find(has_library).expect("Cargo builds the libraries before the tests").to_owned()
}

fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}:\n{}{}", said(&output.stdout), said(&output.stderr));
    output
}

/// The C compiler, which is there wherever Rust links; a warning is an error.
fn compiler() -> Command {
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    compiler.args(["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror"]);
    compiler
}

/// The library, installed in a folder of its own.
struct Installed {
    folder: TempDir,
    library: &'static str,
}

impl Installed {
    fn new(library: &'static str) -> Installed {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let mut install = Command::new(crate_dir().join("install.sh"));
        install.arg("--prefix").arg(folder.path()).arg("--from").arg(built()).args(["--library", library]);
        ran(&mut install);
        Installed { folder, library }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A field of the pkg-config file, with the variables written out.
    fn field(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("lib/pkgconfig/relayout.pc")).expect("the pkg-config file");
        let after =
            |mark: char| -> Vec<(&str, &str)> { text.lines().filter_map(|line| line.split_once(mark)).collect() };
        let (_, value) = after(':').into_iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("no {name}"));
        let mut value = value.to_owned();
        for (variable, is) in after('=').into_iter().filter(|(variable, _)| !variable.contains(':')) {
            value = value.replace(&format!("${{{variable}}}"), is);
        }
        assert!(!value.contains('$'), "{name} has a variable that is none: {value}");
        value.split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles a C program of this crate against the library.
    fn compile(&self, source: &str) -> PathBuf {
        let stem = Path::new(source).file_stem().and_then(OsStr::to_str).expect("a name");
        let program = self.path(&format!("{stem}-{}", source.len()));
        let mut compile = compiler();
        compile.arg("-o").arg(&program);
        compile.args(self.field("Cflags")).arg(crate_dir().join(source)).args(self.field("Libs"));
        if self.library == "static" {
            compile.args(self.field("Libs.private"));
        } else {
            compile.arg(format!("-Wl,-rpath,{}", self.path("lib").display()));
        }
        ran(&mut compile);
        program
    }
}

/// The examples, and what they say.
fn run_examples(installed: &Installed) {
    let permuted = ran(&mut Command::new(installed.compile("examples/permute.c")));
    let said = String::from_utf8(permuted.stdout).expect("text");
    assert_eq!(
        said,
        "NHWC: 0 10 1 11 2 12 3 13 4 14 5 15\n\
         NCHW4c: 0 10 0 0 1 11 0 0 2 12 0 0 3 13 0 0 4 14 0 0 5 15 0 0\n"
    );

    let program = installed.compile("examples/optimize.c");
    let out = installed.path("relu.relayout.onnx");
    let optimized = ran(Command::new(&program).arg(testdata("cli/relu.onnx")).arg(&out).arg(r#"{"target": "onnx"}"#));
    let report: serde_json::Value = serde_json::from_slice(&optimized.stdout).expect("a report");
    assert!(report["changed"] == true && report["after"]["nodes"].as_u64() < report["before"]["nodes"].as_u64());
    assert!(String::from_utf8_lossy(&optimized.stderr).starts_with("moves "));

    // The same bytes as by the Rust library.
    let model = relayout::Model::open(testdata("cli/relu.onnx")).expect("a model");
    let target = relayout::target("onnx").expect("a target");
    let by_rust = relayout::optimize(&model, target.as_ref(), &relayout::Options::default()).expect("a result");
    assert!(std::fs::read(&out).expect("the result") == by_rust.to_bytes().expect("bytes"));

    let refused = Command::new(&program).arg(testdata("cli/bad_perm.onnx")).arg(&out).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.starts_with("error: ") && said.contains("perm"), "{said}");
}

#[test]
fn c_programs_use_the_shared_library() {
    let installed = Installed::new("shared");
    assert!(!installed.path("lib/librelayout.a").exists());
    run_examples(&installed);
    let permute = installed.compile("tests/permute.c");
    ran(&mut Command::new(&permute));
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let optimize = installed.compile("tests/optimize.c");
    let files = ["cli/relu.onnx", "cli/external.onnx", "cli/external.bin"].map(testdata);
    ran(Command::new(optimize).args(files).arg(scratch.path()));

    // A program asks for the name with the version. The one without is for the linker alone.
    let extension = if cfg!(target_vendor = "apple") { "dylib" } else { "so" };
    std::fs::remove_file(installed.path(&format!("lib/librelayout.{extension}"))).expect("the name for the linker");
    ran(&mut Command::new(permute));
}

#[test]
fn c_programs_use_the_static_library() {
    let installed = Installed::new("static");
    let names =
        std::fs::read_dir(installed.path("lib")).expect("a folder").map(|entry| entry.expect("one").file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["librelayout.a", "pkgconfig"]);
    run_examples(&installed);
}

#[test]
fn files_go_where_they_are_told_to() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let install = |arguments: &[&str]| -> Output {
        let mut install = Command::new(crate_dir().join("install.sh"));
        install.env("DESTDIR", folder.path()).args(["--library", "shared"]).args(arguments).arg("--from").arg(built());
        install.output().expect("it runs")
    };
    let installed =
        install(&["--prefix", "/opt/x", "--libdir", "/opt/x/lib64", "--includedir", "/opt/x/include/relayout"]);
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let at = |name: &str| folder.path().join(name);
    assert!(at("opt/x/include/relayout/relayout.h").exists());
    let text = std::fs::read_to_string(at("opt/x/lib64/pkgconfig/relayout.pc")).expect("the pkg-config file");
    for line in ["prefix=/opt/x", "libdir=/opt/x/lib64", "includedir=/opt/x/include/relayout"] {
        assert!(text.lines().any(|l| l == line), "{line} is not in:\n{text}");
    }
    assert!(text.contains(concat!("\nVersion: ", env!("CARGO_PKG_VERSION"), "\n")), "{text}");
    assert!(!text.contains('@') && text.contains("\nLibs.private: -l"), "{text}");
    for (arguments, named) in [
        (&["--prefix", "opt"][..], "opt is not an absolute path"),
        (&["--prefx", "/x"], "--prefx"),
        (&["--library", "all"], "all"),
    ] {
        let refused = install(arguments);
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(named), "{arguments:?}");
    }
}

/// What a program of C gets by pkg-config itself is what the other tests read from its file.
#[test]
fn pkg_config_reads_the_file() {
    let installed = Installed::new("shared");
    let asked = Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", installed.path("lib/pkgconfig"))
        .args(["--static", "--cflags", "--libs", "relayout"])
        .output();
    let Ok(asked) = asked else {
        eprintln!("skipped: pkg_config_reads_the_file: pkg-config is not installed");
        return;
    };
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let said = String::from_utf8(asked.stdout).expect("text");
    let said: Vec<&str> = said.split_whitespace().collect();
    let own = ["Cflags", "Libs", "Libs.private"].into_iter().flat_map(|name| installed.field(name));
    for flag in own {
        assert!(said.contains(&flag.as_str()), "{flag} is not in {said:?}");
    }
}

/// The page of the documentation shows the examples as they are.
#[test]
fn the_documentation_shows_the_examples() {
    let page = std::fs::read_to_string(crate_dir().join("../../docs/c.md")).expect("docs/c.md");
    let shown = page.split("```c\n").skip(1).map(|part| part.split_once("```").expect("a fence that ends").0);
    let examples = ["optimize", "permute"]
        .map(|name| std::fs::read_to_string(crate_dir().join(format!("examples/{name}.c"))).expect("an example"));
    let shown: Vec<&str> = shown.collect();
    assert_eq!(shown.len(), 2);
    for (shown, example) in shown.iter().zip(examples) {
        assert!(example.contains(shown), "docs/c.md shows what is in no example:\n{shown}");
    }
}

/// The lines of the crate's page compile.
#[test]
fn the_page_of_the_crate_compiles() {
    let page = std::fs::read_to_string(crate_dir().join("README.md")).expect("README.md");
    let (_, rest) = page.split_once("```c\n").expect("lines of C");
    let (lines, _) = rest.split_once("```").expect("a fence that ends");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let source = folder.path().join("page.c");
    let head = "#include <relayout.h>\n#include <stdio.h>\nvoid page(const void *bytes, size_t len);\n";
    let text = format!("{head}void page(const void *bytes, size_t len) {{\n{lines}}}\n");
    std::fs::write(&source, text).expect("a place to write to");
    let mut compile = compiler();
    compile.args(["-Wno-unused-variable", "-fsyntax-only", "-I"]).arg(crate_dir().join("include")).arg(source);
    ran(&mut compile);
}
