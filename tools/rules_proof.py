"""Proves the rules and equations of `relayout rules` for all ranks and extents, with an SMT solver.

    python tools/rules_proof.py                                        # all; compares with the tables of the pages
    python tools/rules_proof.py --write                                # writes the tables anew
    python tools/rules_proof.py --bin target/debug/relayout softmax    # asks the program which rules there are; only this one

What is shown is stated in `tools/rules/rules.txt` and `equations.txt`; both sides of an equation are those that the product has. A digit
of an axis stands for any number of axes of any extent. `exact` is shown without any law of arithmetic, or else in floats of IEEE 754;
`reassociate` over the reals, where both sides are defined. Each condition is dropped by itself, and then both sides have to differ.

The tool fails if a rule has no statement, if a statement does not hold, if a condition is not said anything of, and if one of the wrong
rules in `wrong.txt` is taken for right. The solver is installed into `.relayout/rules`. It is part of neither the product nor its tests.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "tools/rules"
SOLVER = ROOT / ".relayout/rules"
PAGES = {"rule": ROOT / "crates/cli/src/proved.md", "equation": ROOT / "docs/equations.md"}
WAYS = {
    "free": "every bit: both sides do the same operations on the same elements, whatever these are",
    "float": "every bit, in floats of IEEE 754 with 32 bits; NaN counts as one value",
    "byte": "in floats of IEEE 754 with 8 bits, and over the reals; with 32 bits the solver takes too many steps",
    "real": "over the reals, where both sides are defined",
    "smt": "as numbers: integers, reals with a bound of each rounding, or floats",
    "not": "not shown",
}
# How the product prints a condition of an equation.
CONDITIONS = {
    "Number": "{0} is a number", "Near": "{0} is {1}", "Positive": "{0} is a number above 0", "Float": "{0} is float32, float16 or bfloat16",
    "Zeros": "{0} is zeros", "Rank": "{0} has {1} axes", "RankOfShape": "{0} has {1} axes", "Within": "{0} broadcasts into {1}",
    "IsShapeOf": "{0} is the shape of {1}", "SameBatch": "{0} and {1} have one batch",
    "RowsAndColumns": "{0} has the rows of {1} and the columns of {2}",
    "OneOverExtent": "{0} is one over the extent of {1} along {2}", "Groups": "{1} has groups of the channels of {0}",
    "TurnsMatrices": "{0} exchanges the last two axes", "MergesHeads": "{1} has the first two axes of {0} as one",
    "KeepsLast": "{0} has the last axis of {1}", "PerLast": "{0} is a constant with an entry per entry of the last axis of {1}",
}


def install():
    """The pinned solver, in a folder of its own."""
    wanted = (HERE / "requirements.txt").read_text().split("==")[1].strip()
    if not (SOLVER / f"z3_solver-{wanted}.dist-info").is_dir():
        call = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", SOLVER]
        subprocess.run([*call, "-r", HERE / "requirements.txt"], check=True)
    sys.path.insert(0, str(SOLVER))


def printed(program):
    """What the product has: entries of its JSON, or of its page, which a test holds to be the same."""
    if program:
        return json.loads(subprocess.run([program, "rules", "--json"], check=True, capture_output=True, text=True).stdout)
    entries = []
    for line in (ROOT / "docs/rules.md").read_text().splitlines():
        cells = [c.strip().replace("\\*", "*").replace("\0", "|") for c in line.replace("\\|", "\0").split("|")[1:-1]]
        if len(cells) != 6 or not cells[0].startswith("`"):
            continue
        equation = cells[1].startswith("`")
        told = f"{cells[1][1:-1]} = {cells[2][1:-1]}" if equation else cells[1]
        entries.append({
            "kind": "equation" if equation else "rule", "name": cells[0].strip("`"), "equation": told,
            "condition": cells[3] if equation else cells[2], "numerics": cells[4],
        })
    return entries


def declared():
    """All equations of the crate: also those that no target of ours asks for, which are not printed."""
    source = (ROOT / "crates/equations/src/equations.rs").read_text()
    constants = {"FRAC_1_SQRT_2": "0.7071067811865476", "ROOT_TWO_OVER_PI": "0.7978845608028654", "1.0 / 6.0": "0.16666666666666666"}
    row = r'(exact|rounds)\(\s*"(\w+)",\s*"([^"]*)",\s*"([^"]*)",\s*(&\[.*?\]|MERGED),?\s*\),'
    merged = re.search(r"MERGED: &\[When\] = (&\[.*?\]);", source, re.DOTALL)[1]
    entries = []
    for numerics, name, left, right, when in re.findall(row, source[source.index("pub const EQUATIONS"):], re.DOTALL):
        conditions = []
        for kind, args in re.findall(r"(\w+)\(([^)]*)\)", merged if when == "MERGED" else when):
            args = [constants.get(a.strip(), a.strip().replace("_", "").strip('"')) for a in args.split(",")]
            conditions.append(CONDITIONS[kind].format(*args))
        entries.append({
            "kind": "equation", "name": name, "equation": f"{left} = {right}", "condition": ", ".join(conditions),
            "numerics": "exact" if numerics == "exact" else "reassociate",
        })
    return entries


class Result:
    """What was shown of one rule or equation."""

    def __init__(self, entry):
        self.entry, self.way, self.wrong, self.forms = entry, "", [], 0
        self.needs, self.free, self.other, self.excepts, self.unproved = [], [], [], "", ""


def ways_of(entry, statement):
    if entry["numerics"] == "exact" or statement.exact:
        return ["free", "float", "byte"]
    return ["real"]


def texts(statement, entry):
    """What a statement shows: its own lines, or the product's equation."""
    return statement.proves or ([] if statement.smt else [entry["equation"].replace("?", "")])


def shown(result, statement, entry):
    """Each form of a statement in the first arithmetic in which it holds."""
    from rules import statements as st
    for text in texts(statement, entry):
        equation, result.forms = st.sides(text), result.forms + 1
        for way in ways_of(entry, statement):
            try:
                holds, _ = st.prove(statement, equation, way, zeros_alike=bool(statement.excepts))
                if holds and way == "byte":
                    holds, _ = st.prove(statement, equation, "real")
            except st.Unsaid as why:
                result.wrong.append(f"{text}: {why}")
                break
            if holds:
                result.way = max(result.way, way, key=["", "free", "float", "byte", "real"].index)
                break
        else:
            result.wrong.append(f"does not hold: {text}")
    for script in statement.smt:
        result.forms += 1
        result.way = result.way or "smt"
        if (said := scripted(script)) != "unsat":
            result.wrong.append(f"the solver says {said} of: {script}")


def scripted(script):
    import z3
    solver = z3.Solver()
    solver.set("rlimit", 200_000_000)
    solver.from_string(script)
    return str(solver.check())


def conditioned(result, statement, entry):
    """Each condition is needed, or holds without, or is about something else."""
    from rules import statements as st
    equation = next((st.sides(text) for text in reversed(texts(statement, entry))), None)
    for change in statement.needs:
        against = scripted(change.smt) == "sat" and "numbers" if change.smt else st.refuted(statement, equation, change)
        if against:
            result.needs.append((change.condition, against))
        else:
            result.wrong.append(f"no difference without `{change.condition}`")
    for change in statement.free:
        if st.prove(statement, equation, "real", change)[0]:
            result.free.append(change.condition)
        else:
            result.wrong.append(f"does not hold without `{change.condition}`")
    result.other += statement.other


def covered(result):
    """Every condition that is printed is said something of."""
    said = [c for c, *_ in [*result.needs, *result.other]] + result.free
    text = result.entry["condition"]
    for part in filter(None, text.split("; " if result.entry["kind"] == "rule" else ", ")):
        if not any(s in text and (s in part or part in s) for s in said):
            result.wrong.append(f"nothing is said of the condition `{part}`")
    result.wrong += [f"the product has no condition `{s}`" for s in said if s not in text]


def examine(entry, statements):
    result = Result(entry)
    for statement in statements:
        if statement.says and statement.says != entry["equation"]:
            result.wrong.append(f"the product says `{entry['equation']}`; look at the statement, and at its line `says`")
        result.excepts = result.excepts or statement.excepts
        if statement.unproved:
            result.way, result.unproved = "not", statement.unproved
            continue
        shown(result, statement, entry)
        conditioned(result, statement, entry)
    if not statements:
        result.wrong.append("it has no statement in tools/rules")
    elif result.way != "not":
        covered(result)
    return result


def refuses_wrong_ones():
    """Whether every wrong rule is refused with operands on which it is wrong: how many, and what is amiss."""
    from rules import statements as st
    amiss, all_of = [], st.read((HERE / "wrong.txt").read_text())
    for statement in all_of:
        equation = st.sides(statement.proves[0])
        try:
            holds = st.prove(statement, equation, "byte" if statement.exact else "real")[0]
        except st.Unsaid:
            holds = False
        if holds or holds is None:
            amiss.append(f"{statement.name}: it is wrong, and not refused")
        elif not statement.exact and not st.refuted(statement, equation, statement.counter):
            amiss.append(f"{statement.name}: no operands on which it is wrong were found")
    return len(all_of), amiss


def table(results):
    """What is shown of rules of one kind, in words."""
    proved = [r for r in results if r.way != "not"]
    needs, free = sum(len(r.needs) for r in results), sum(len(r.free) for r in results)
    lines = [f"{len(proved)} of {len(results)} are shown for all ranks and extents.", "", "| what is shown | of |", "|---|---|"]
    for way, words in WAYS.items():
        of = [r for r in results if r.way == way]
        names = ", ".join(f"`{r.entry['name']}`" + (f" (but for {r.excepts})" if r.excepts else "") for r in of)
        if of and way != "not":
            lines.append(f"| {words} | {names} |")
    lines += [f"| not shown: {r.unproved} | `{r.entry['name']}` |" for r in results if r.way == "not"]
    lines += ["", f"{needs} conditions are needed: where only one of them does not hold, the tool has operands on which both sides differ, or the",
              "right side has no meaning."]
    if free:
        names = ", ".join(f"`{r.entry['name']}`" for r in results if r.free)
        lines += [f"{free} are not needed for that, and keep the search small or name what the op takes: those of {names}."]
    about = sorted({reason for r in results for _, reason in r.other})
    if about:
        lines += [f"Of others nothing is shown. They are about: {'; '.join(about)}."]
    return "\n".join(lines) + "\n"


def written(kind, text, write):
    """Puts the table into its page, or says whether it is there."""
    page = PAGES[kind]
    old = page.read_text() if page.exists() else ""
    begins, ends = "<!-- rules_proof.py writes from here -->\n", "<!-- to here -->\n"
    if begins in old:
        head, rest = old.split(begins)
        new = head + begins + text + ends + rest.split(ends)[1]
    else:
        new = text
    if write:
        page.write_text(new)
    return write or new == old


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these rules and equations")
    parser.add_argument("--bin", help="the program; without it docs/rules.md says which rules there are")
    parser.add_argument("--write", action="store_true", help="write the tables of the pages anew")
    args = parser.parse_args()
    install()
    from rules import solver, statements as st
    begun = time.monotonic()
    failed = [f"lemma: {name}" for name, holds in solver.lemmas() if not holds]
    known = {}
    for statement in [*st.read((HERE / "rules.txt").read_text()), *st.read((HERE / "equations.txt").read_text())]:
        known.setdefault(statement.name, []).append(statement)
    entries, source = printed(args.bin), {e["name"]: e for e in declared()}
    for entry in entries:
        if entry["kind"] == "equation" and source.get(entry["name"]) != {k: entry[k] for k in source.get(entry["name"], entry)}:
            failed.append(f"{entry['name']}: the tool reads it otherwise in equations.rs than the product prints it")
    names = {e["name"] for e in entries}
    entries += [e for name, e in source.items() if name not in names]
    failed += [f"{name}: the product has no such rule" for name in known if name not in {e["name"] for e in entries}]
    results = []
    for entry in entries:
        if not args.names or entry["name"] in args.names:
            result = examine(entry, known.get(entry["name"], []))
            results.append(result)
            failed += [f"{entry['name']}: {wrong}" for wrong in result.wrong]
            print(f"{entry['name']}: {'; '.join(result.wrong) or WAYS[result.way]}", flush=True)
            if args.names:
                print("".join(f"  without `{condition}`: {against}\n" for condition, against in result.needs), end="")
    count, amiss = refuses_wrong_ones()
    failed += amiss
    if not args.names and not failed:
        for kind in PAGES:
            if not written(kind, table([r for r in results if r.entry["kind"] == kind]), args.write):
                failed.append(f"{PAGES[kind].name} says otherwise; write it anew with --write")
    print(f"{len(results)} rules and equations, {count - len(amiss)} of {count} wrong ones refused, {time.monotonic() - begun:.0f} s")
    for line in failed:
        print(f"FAILED {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
