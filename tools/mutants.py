#!/usr/bin/env python3
"""Change drawn places of the Rust code, one at a time, and name those whose change no test notices.

    python -m pip install tree-sitter==0.26.1 tree-sitter-rust==0.24.2
    eval "$(tools/setup --env)"
    python tools/mutants.py --copy FOLDER     # clones what is committed into FOLDER, unless it was cloned before
    (cd FOLDER && MUTANT=17 cargo test ...)   # then: tests with place 17 changed

Places are comparisons, `&&`, `||`, `!`, `+`, `-`, `*`, the integers 0, 1 and 2, `true`, `false`, conditions, calls such as `min` and `any`, and
checks that end in `?`, outside of tests, patterns, macros and constants. A seed draws them. In the copy each has both codes, and an
environment variable says which place is changed: all is compiled once. Changes that do not compile are drawn again.

Each test then runs in a process of its own, which notes the places that it and its child processes reach. A changed place is given only to
the tests that reach it, program by program, the quickest tests first, until one fails. One that hangs has failed. A failure counts if the
test holds without the change. What is found is kept in the copy (mutants.json, mutants-tests.json, mutants-results.json): a run that was
ended goes on where it was. Documentation tests are left out.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

import tree_sitter
import tree_sitter_rust

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATES = {"relayout-passes": "passes/src", "relayout-targets": "crates/targets/src", "relayout-onnx": "crates/onnx/src"}
# As tools/test builds them, but no lints and no benchmarks. A test starts the example.
BUILD = ["--locked", "--workspace", "--lib", "--bins", "--tests", "--example=tour",
         "--features=relayout-codegen/cuda,relayout/onnx-protobuf,relayout/prost"]  # fmt: skip
OPERATORS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["+"], "+=": ["-="], "-=": ["+="],
}  # fmt: skip
INTEGERS = {"0": ["1"], "1": ["0", "2"], "2": ["1", "3"]}
METHODS = {"min": "max", "any": "all", "is_some": "is_none", "is_ok": "is_err", "first": "last"}
METHODS |= {b: a for a, b in METHODS.items()}
# Closures of these decide what stays.
KEEPING = {"filter", "retain", "take_while", "skip_while"}
SKIPPED = {"attribute_item", "inner_attribute_item", "const_item", "static_item", "macro_invocation", "macro_definition", "array_type",
           "type_arguments", "enum_variant", "const_block", "parameters"}  # fmt: skip
ON = "crate::mutant::on(#)"
# What the copy has in each of the crates. Which place is changed is read once; what a process reaches is noted once.
SWITCH = """
mod mutant {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static CHANGED: LazyLock<usize> = LazyLock::new(|| std::env::var("MUTANT").map_or(usize::MAX, |n| n.parse().unwrap()));
    static NOTES: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("MUTANTS_REACHED"));
    static REACHED: [AtomicBool; 10_000] = [const { AtomicBool::new(false) }; 10_000];

    pub(crate) fn on(place: usize) -> bool {
        if let Some(notes) = &*NOTES
            && !REACHED[place].swap(true, Ordering::Relaxed)
        {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(notes).unwrap();
            file.write_all(format!("{place}\\n").as_bytes()).unwrap();
        }
        *CHANGED == place
    }
}
"""


def text(node):
    return node.text.decode()


def instead(node, other):
    """Both codes of an expression."""
    return (node.start_byte, node.end_byte, f"(if {ON} {{ {other} }} else {{ {text(node)} }})")


def without(node, part, new):
    """The text of a node with another one for a part of it."""
    at = node.start_byte
    return (node.text[: part.start_byte - at] + new.encode() + node.text[part.end_byte - at :]).decode()


def condition(node, rng):
    """A condition that always holds, or never; one with `let` can only be made never to hold."""
    if node.type in ("let_condition", "let_chain"):
        return (node.start_byte, node.end_byte, f"!{ON} && {text(node)}"), "never"
    if rng.random() < 0.5:
        return (node.start_byte, node.end_byte, f"(!{ON} && ({text(node)}))"), "never"
    return (node.start_byte, node.end_byte, f"({ON} || ({text(node)}))"), "always"


def called(node, rng):
    """Changes of a call of a method."""
    function = node.child_by_field_name("function")
    if function.type != "field_expression":
        return
    field = function.child_by_field_name("field")
    name = text(field)
    if name in METHODS:
        yield instead(node, without(node, field, METHODS[name])), f"{name} → {METHODS[name]}"
    if name == "is_empty":
        yield instead(node, f"!{text(node)}"), "is_empty → !is_empty"
    if name in KEEPING:
        for closure in node.child_by_field_name("arguments").named_children:
            body = closure.child_by_field_name("body") if closure.type == "closure_expression" else None
            if body:
                edit, what = condition(body, rng)
                yield edit, f"{name}: {what}"


def changes(node, rng):
    """Changes of this node itself, each an edit and what it is."""
    if node.type in ("binary_expression", "compound_assignment_expr"):
        operator = node.child_by_field_name("operator")
        if text(operator) in OPERATORS:
            new = rng.choice(OPERATORS[text(operator)])
            yield instead(node, without(node, operator, new)), f"{text(operator)} → {new}"
    elif node.type == "unary_expression" and text(node.children[0]) == "!":
        yield instead(node, text(node.children[1])), "! gone"
    elif node.type == "integer_literal" and text(node) in INTEGERS and node.parent.type != "field_expression":
        new = rng.choice(INTEGERS[text(node)])
        yield instead(node, new), f"{text(node)} → {new}"
    elif node.type == "boolean_literal":
        new = "false" if text(node) == "true" else "true"
        yield instead(node, new), f"{text(node)} → {new}"
    elif node.type == "call_expression":
        yield from called(node, rng)
    elif node.type in ("if_expression", "match_pattern") and (held := node.child_by_field_name("condition")):
        edit, what = condition(held, rng)
        yield edit, f"if: {what}"
    elif node.type == "expression_statement" and node.children[0].type == "try_expression":
        checked = node.children[0]
        both = f"if {ON} {{ let _ = {text(checked.children[0])}; }} else {{ {text(node)} }}"
        yield (node.start_byte, node.end_byte, both), "? ignored"


def walk(node, rng):
    """Changes of a node and of all that is in it."""
    if node.type in SKIPPED or (node.type.endswith("_pattern") and node.type != "match_pattern"):
        return
    if node.type == "function_item" and any(c.type == "function_modifiers" and b"const" in c.text for c in node.children):
        return
    yield from changes(node, rng)
    test = False
    for at, child in enumerate(node.children):
        # Attributes stand before what they are about.
        if child.type in ("attribute_item", "line_comment", "block_comment"):
            test = test or (child.type == "attribute_item" and b"test" in child.text)
            continue
        field = node.field_name_for_child(at)
        pattern = field == "pattern" or (node.type == "match_pattern" and field != "condition")
        if not (test or pattern or (node.type == "array_expression" and field == "length")):
            yield from walk(child, rng)
        test = False


def candidates(copy, seed):
    """Each change of each file, in an order that the seed decides."""
    rng = random.Random(seed)
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
    found = []
    for path in sorted(path for folder in CRATES.values() for path in (copy / folder).rglob("*.rs")):
        code = path.read_bytes()
        if path.stem == "tests" or code.startswith(b"// @generated"):
            continue
        for (start, end, new), what in walk(parser.parse(code).root_node, rng):
            line = code[:start].count(b"\n") + 1
            found.append({"file": str(path.relative_to(copy)), "line": line, "start": start, "end": end, "new": new, "what": what})
    rng.shuffle(found)
    return found


def write(copy, originals, places):
    """Puts the places into the files of the copy, and notes where each is now."""
    for file, code in originals.items():
        shift = 0
        for n, p in sorted(((n, p) for n, p in enumerate(places) if p["file"] == file), key=lambda pair: pair[1]["start"]):
            new = p["new"].replace("#", str(n)).encode()
            start, end = p["start"] + shift, p["end"] + shift
            code = code[:start] + new + code[end:]
            shift += len(new) - (end - start)
            p["now"] = [start, start + len(new)]
        if pathlib.Path(file).name == "lib.rs":
            code += SWITCH.encode()
        (copy / file).write_bytes(code)


def refused(copy, places):
    """The places that do not compile, by number."""
    packages = [word for crate in CRATES for word in ("-p", crate)]
    ran = subprocess.run(["cargo", "check", "--locked", *packages, "--message-format=json"], cwd=copy, stdout=subprocess.PIPE)
    bad = set()
    for line in ran.stdout.splitlines():
        message = json.loads(line).get("message") or {}
        for span in message.get("spans", []) if message.get("level") == "error" else []:
            for n, p in enumerate(places):
                if span["file_name"] == p["file"] and span["byte_start"] < p["now"][1] and p["now"][0] < span["byte_end"]:
                    bad.add(n)
    if ran.returncode and not bad:
        raise SystemExit("tools/mutants.py: the copy does not compile, and not because of a place")
    return bad


def draw(copy, seed, count):
    """Draws places that compile, and leaves the copy with all of them."""
    pool = iter(candidates(copy, seed))
    files = [str(path.relative_to(copy)) for folder in CRATES.values() for path in (copy / folder).rglob("*.rs")]
    originals = {file: (copy / file).read_bytes() for file in files}
    places, again = [], 0
    while True:
        while len(places) < count:
            new = next(pool)
            if not any(p["file"] == new["file"] and p["start"] < new["end"] and new["start"] < p["end"] for p in places):
                places.append(new)
        write(copy, originals, places)
        bad = refused(copy, places)
        if not bad:
            break
        again += len(bad)
        print("drawn again:", *(f"{places[n]['file']}:{places[n]['line']} {places[n]['what']};" for n in sorted(bad)), flush=True)
        places = [p for n, p in enumerate(places) if n not in bad]
    return {"seed": seed, "again": again, "places": places}


def others(copy):
    """The packages of the workspace that use none of the crates: no test of theirs reaches a place."""
    ran = subprocess.run(["cargo", "metadata", "--locked", "--no-deps", "--format-version=1"], cwd=copy, stdout=subprocess.PIPE, check=True)
    uses = {p["name"]: {d["name"] for d in p["dependencies"]} for p in json.loads(ran.stdout)["packages"]}
    reaching, before = set(CRATES), None
    while reaching != before:
        before, reaching = reaching, reaching | {name for name, used in uses.items() if used & reaching}
    return sorted(set(uses) - reaching)


def build(copy):
    """Builds all tests; gives their programs, each with the folder it runs in, those first that reach most places for their time."""
    excluded = [f"--exclude={name}" for name in others(copy)]
    ran = subprocess.run(["cargo", "build", *BUILD, *excluded, "--message-format=json"], cwd=copy, stdout=subprocess.PIPE, check=True)
    programs = []
    for line in ran.stdout.splitlines():
        m = json.loads(line)
        if m.get("executable") and m["profile"]["test"]:
            programs.append((m["executable"], str(pathlib.Path(m["manifest_path"]).parent)))
    first = [str(copy / folder) for folder in ("passes", "crates/targets", "crates/onnx", "crates/relayout")]
    return sorted(programs, key=lambda program: (first.index(program[1]) if program[1] in first else len(first), program[0]))


def tests_of(program, folder):
    ran = [subprocess.run([program, "--list", "--format=terse", *more], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
           for more in ([], ["--ignored"])]  # fmt: skip
    every, ignored = ({line.removesuffix(": test") for line in one.stdout.splitlines() if line.endswith(": test")} for one in ran)
    return [{"program": program, "folder": folder, "name": name} for name in sorted(every - ignored)]


def run(copy, test, limit, **variables):
    """Whether a test holds, and how long it took. All that it started ends with it."""
    env = os.environ | {"INSTA_UPDATE": "no", "INSTA_WORKSPACE_ROOT": str(copy), "CARGO_MANIFEST_DIR": test["folder"]} | variables
    began = time.monotonic()
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen([test["program"], "--exact", test["name"], "--test-threads=1"], cwd=test["folder"], env=env, **quiet) as started:
        try:
            held = started.wait(limit) == 0
        except subprocess.TimeoutExpired:
            held = False
            os.killpg(started.pid, signal.SIGKILL)
    return held, round(time.monotonic() - began, 2)


def record(copy, program, jobs):
    """Runs each test of a program once, and notes what it reaches."""

    def one(test):
        with tempfile.TemporaryDirectory() as folder:
            notes = pathlib.Path(folder) / "reached"
            test["holds"], test["seconds"] = run(copy, test, 900, MUTANTS_REACHED=str(notes))
            test["reached"] = sorted({int(n) for n in notes.read_text().split()}) if notes.exists() else []
        return test

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return sorted(pool.map(one, tests_of(*program)), key=lambda test: test["seconds"])


def decide(copy, n, tests, result, budget):
    """The result of a place with what the tests of a program say of its change."""
    result = dict(result)
    for test in (t for t in tests if t["holds"] and n in t["reached"]):
        result["reach"] += 1
        if result["by"] or result["seconds"] > budget:
            continue
        limit = max(30, 10 * test["seconds"])
        held, seconds = run(copy, test, limit, MUTANT=str(n))
        result["run"] += 1
        result["seconds"] = round(result["seconds"] + seconds, 2)
        if not held and run(copy, test, limit)[0]:
            name = f"{pathlib.Path(test['program']).name.rsplit('-', 1)[0]} {test['name']}"
            result["by"] = name + (" (hangs)" if seconds >= limit else "")
    return result


class Kept:
    """What is known by name, in a file that is written at each change."""

    def __init__(self, path):
        self.path = path
        self.all = json.loads(path.read_text()) if path.exists() else {}

    def of(self, name, make):
        if name not in self.all:
            self.put(name, make())
        return self.all[name]

    def put(self, name, value):
        self.all[name] = value
        self.path.write_text(json.dumps(self.all))


def table(drawn, results):
    counts = collections.Counter()
    print("| place | change | tests that reach it | run | verdict |\n|---|---|---|---|---|")
    for n, p in enumerate(drawn["places"]):
        r = results[str(n)]
        verdict = "caught" if r["by"] else "not reached" if not r["reach"] else "survived" if r["run"] == r["reach"] else "survived what ran"
        counts[verdict] += 1
        said = f"caught by `{r['by']}`" if r["by"] else f"**{verdict}**"
        print(f"| {n}: {p['file']}:{p['line']} | `{p['what']}` | {r['reach']} | {r['run']} | {said} |")
    print(f"\nseed {drawn['seed']}, drawn again {drawn['again']}:", ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copy", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=64)
    parser.add_argument("--places", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--budget", type=float, default=600, help="seconds of tests that a place may take")
    parser.add_argument("--skip", type=int, nargs="+", default=[], help="places that need no more tests, such as those of equal meaning")
    a = parser.parse_args()
    copy = a.copy.resolve()
    if not (copy / "Cargo.toml").exists():
        subprocess.run(["git", "clone", "--quiet", "--local", ROOT, copy], check=True)
    drawn = Kept(copy / "mutants.json").of("drawn", lambda: draw(copy, a.seed, a.places))
    tests, results = Kept(copy / "mutants-tests.json"), Kept(copy / "mutants-results.json")
    for n in range(len(drawn["places"])):
        results.of(str(n), lambda: {"programs": [], "reach": 0, "run": 0, "seconds": 0, "by": None})
    for program in build(copy):
        # One that was built anew has other tests.
        name = f"{pathlib.Path(program[0]).name} {int(os.stat(program[0]).st_mtime)}"
        found = tests.of(name, lambda program=program: record(copy, program, a.jobs))
        left = [n for n in results.all if name not in results.all[n]["programs"] and int(n) not in a.skip]
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            decided = {pool.submit(decide, copy, int(n), found, results.all[n], a.budget): n for n in left}
            for one in concurrent.futures.as_completed(decided):
                result = one.result()
                results.put(decided[one], result | {"programs": [*result["programs"], name]})
        open_ = [n for n, r in results.all.items() if not r["by"]]
        print(f"{name}: {len(found)} tests; not caught yet:", *open_, flush=True)
    table(drawn, results.all)


if __name__ == "__main__":
    main()
