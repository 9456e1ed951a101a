#!/usr/bin/env python3
"""The problems of models, or files in the format WCSP, in our solver, in toulbar2 and in HiGHS: optimum and time.

    python bench/solvers.py [--models a,b | --core] [--targets onnx,ort-cpu,nhwc] [--seconds 60]
    python bench/solvers.py --files FOLDER      every .wcsp in it

`relayout explain --problem` writes the problem of each model and target, with nothing merged or pinned. Our solver takes the text, and
once more the WCSP that the others take, where shared values are variables. HiGHS gets it as an integer program: a binary column for each
state, a column for each joint state of two variables that a function allows. Each solver runs alone in a process with one thread; the
time is that of solving, without reading: processor time of the others, and the least of three runs of ours. What a solver calls its optimum is priced here again, from the file and the assignment. A
solver that ends without a proof has its cost with `?`, one that finds nothing or breaks has a `-`. Exit status 1 if two that
claim to have proved an optimum differ.

Needs pytoulbar2, highspy and numpy; models with their weights in --corpus: testdata/corpus/hydrate.py --all DIR.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOLVERS = ("ours", "ours on WCSP", "toulbar2", "HiGHS")


class Network:
    """A file in the format WCSP: states of each variable, functions as (scope, usual cost, {states: cost})."""

    def __init__(self, path):
        words = iter(path.read_text().split())
        number = lambda: int(next(words))  # noqa: E731
        next(words)
        count, _, functions, self.top = number(), number(), number(), number()
        self.domains = [number() for _ in range(count)]
        self.functions = []
        for _ in range(functions):
            scope = tuple(number() for _ in range(number()))
            usual, others = number(), number()
            given = {}
            for _ in range(others):
                states = tuple(number() for _ in scope)
                given[states] = number()
            self.functions.append((scope, usual, given))

    def cost(self, states):
        """What an assignment costs; `None` if it is not allowed."""
        total = 0
        for scope, usual, given in self.functions:
            total += given.get(tuple(states[var] for var in scope), usual)
        return total if total < self.top else None


def table(network, function):
    """Every joint state of a function with its cost."""
    scope, usual, given = function
    if len(scope) == 2:
        joint = [(a, b) for a in range(network.domains[scope[0]]) for b in range(network.domains[scope[1]])]
    else:
        joint = [(a,) for a in range(network.domains[scope[0]])] if scope else [()]
    return {states: given.get(states, usual) for states in joint}


class Program:
    """The integer program of a network, by columns."""

    def __init__(self, network):
        self.cost, self.upper, self.rows, self.constant = [], [], [], 0
        self.states = [[self.column(0) for _ in range(states)] for states in network.domains]
        for states in self.states:
            self.rows.append((1, dict.fromkeys(states, 1)))
        pairs = {}
        for function in network.functions:
            scope, prices = function[0], table(network, function)
            if len(scope) > 2:
                raise SystemExit("functions of more than two variables are not read")
            if not scope:
                self.constant += prices[()]
            for states, cost in prices.items():
                if len(scope) == 1:
                    column = self.states[scope[0]][states[0]]
                    if cost < network.top:
                        self.cost[column] += cost
                    else:
                        self.upper[column] = 0
                elif scope:
                    sums = pairs.setdefault(scope, {})
                    sums[states] = sums.get(states, 0) + cost
        for (a, b), prices in pairs.items():
            self.pair(self.states[a], self.states[b], {s: c for s, c in prices.items() if c < network.top})

    def column(self, cost):
        self.cost.append(cost)
        self.upper.append(1)
        return len(self.cost) - 1

    def pair(self, first, second, prices):
        joint = {states: self.column(cost) for states, cost in prices.items()}
        for side, columns in enumerate((first, second)):
            for state, column in enumerate(columns):
                row = {at: 1 for states, at in joint.items() if states[side] == state}
                self.rows.append((0, {**row, column: -1}))


def highs(path, seconds):
    import highspy
    import numpy as np

    network = Network(path)
    program = Program(network)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.rows)
    lp.col_cost_, lp.offset_ = np.array(program.cost, float), float(program.constant)
    lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.array(program.upper, float)
    sides = np.array([side for side, _ in program.rows], float)
    lp.row_lower_, lp.row_upper_ = sides, sides
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0] + [len(row) for _, row in program.rows])
    lp.a_matrix_.index_ = np.array([at for _, row in program.rows for at in row], np.int32)
    lp.a_matrix_.value_ = np.array([x for _, row in program.rows for x in row.values()], float)
    integer = {column for states in program.states for column in states}
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[column in integer] for column in range(lp.num_col_)]
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("time_limit", float(seconds)), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.5)):
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    begun = time.process_time()
    solver.run()
    took = time.process_time() - begun
    values = solver.getSolution().col_value
    found = [max(range(len(states)), key=lambda s: values[states[s]]) for states in program.states] if len(values) else None
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return network, found, proved, took


def toulbar2(path, seconds):
    import pytoulbar2

    model = pytoulbar2.CFN()
    model.Read(str(path))
    begun = time.process_time()
    answer = model.Solve(timeLimit=seconds)
    took = time.process_time() - begun
    # At its limit of time it ends as if it had finished; its bound tells.
    proved = answer is not None and model.GetDDualBound() >= answer[1]
    return Network(path), list(answer[0]) if answer else None, proved, took


def alone(name, path, seconds):
    """In this process: what a solver of others finds, as JSON."""
    network, found, proved, took = {"toulbar2": toulbar2, "HiGHS": highs}[name](path, seconds)
    cost = network.cost(found) if found is not None else None
    print(json.dumps({"cost": cost, "proved": proved and cost is not None, "seconds": took}))


def beside(name, path, seconds):
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--alone", name, "--seconds", str(seconds), "--files", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * seconds + 60, check=False)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return {"cost": None, "proved": False, "seconds": None}


def ours(binary, path):
    seconds = []
    for _ in range(3):
        done = subprocess.run([binary, "solve", "-v", "--json", path], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{path}: {done.stderr.strip()[-200:]}", file=sys.stderr)
            return {"cost": None, "proved": False, "seconds": None}
        seconds += [float(line.split()[2]) / 1e3 for line in done.stderr.splitlines() if line.startswith("solved in ")]
    said = json.loads(done.stdout)
    return {"cost": said["cost"], "proved": said["optimal"], "seconds": min(seconds), "variables": said["stats"]["variables"]}


def compared(args, name, text, wcsp):
    """A problem in every solver."""
    found = {"name": name}
    found["ours"] = ours(args.bin, text or wcsp)
    if text is not None:
        found["ours on WCSP"] = ours(args.bin, wcsp)
    for solver in ("toulbar2", "HiGHS"):
        found[solver] = beside(solver, wcsp, args.seconds)
    words = wcsp.read_text().split(maxsplit=5)[:5]
    found["variables"], found["functions"] = int(words[1]), int(words[3])
    proved = {answer["cost"] for solver in SOLVERS if (answer := found.get(solver)) and answer["proved"]}
    found["equal"] = len(proved) <= 1
    return found


def problems(args):
    """Name, text and WCSP of each problem that is asked for."""
    if args.files:
        for path in sorted(args.files.rglob("*.wcsp")):
            yield path.stem, None, path
        return
    args.work.mkdir(parents=True, exist_ok=True)
    wanted = args.models.split(",") if args.models else None
    for entry in json.loads((ROOT / "testdata/corpus/manifest.json").read_text())["models"]:
        if (wanted is not None and entry["name"] not in wanted) or (args.core and not entry.get("core")):
            continue
        for target in args.targets.split(","):
            files = [args.work / f"{entry['name']}.{target}{kind}" for kind in (".txt", ".wcsp")]
            for file in files:
                model = args.corpus / f"{entry['name']}.onnx"
                subprocess.run([args.bin, "explain", "-q", model, "--target", target, "--problem", file], check=True)
            yield f"{entry['name']}, {target}", *files


def cell(answer):
    if not answer or answer["cost"] is None:
        return "-"
    took = "" if answer["seconds"] is None else f"{answer['seconds'] * 1e3:.3g} ms"
    return took if answer["proved"] else f"{took}, {answer['cost']}?"


def summary(rows):
    """How many optima each solver proved, and its time: middle, longest, sum."""
    for solver in SOLVERS:
        answers = [row[solver] for row in rows if solver in row]
        times = sorted(answer["seconds"] for answer in answers if answer["seconds"] is not None)
        proved = sum(answer["proved"] for answer in answers)
        if times:
            middle, longest = times[len(times) // 2] * 1e3, times[-1] * 1e3
            geometric = math.exp(sum(math.log(max(t, 1e-6)) for t in times) / len(times)) * 1e3
            yield f"| {solver} | {proved} of {len(answers)} | {geometric:.3g} ms | {middle:.3g} ms | {longest:.3g} ms | {sum(times):.3g} s |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "target/release/relayout")
    parser.add_argument("--corpus", type=Path, default=ROOT / "target/corpus", help="models with their weights")
    parser.add_argument("--work", type=Path, default=ROOT / "target/problems", help="folder for the problems; kept")
    parser.add_argument("--models", help="only these, with commas between them")
    parser.add_argument("--core", action="store_true", help="only the smaller selection that the manifest marks")
    parser.add_argument("--targets", default="onnx,ort-cpu,nhwc")
    parser.add_argument("--files", type=Path, help="a folder of WCSP files in place of models")
    parser.add_argument("--seconds", type=int, default=60, help="limit of each solver of others for a problem")
    parser.add_argument("--json", type=Path, help="file for all that was found")
    parser.add_argument("--alone", choices=("toulbar2", "HiGHS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        alone(args.alone, args.files, args.seconds)
        return 0
    from importlib.metadata import version

    processor = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "unknown")
    print(f"{time.strftime('%Y-%m-%d')}, {processor}, {os.cpu_count()} cores, pytoulbar2 {version('pytoulbar2')}, highspy {version('highspy')}\n")
    print("| problem | variables | functions | " + " | ".join(SOLVERS) + " | cost |\n" + "|---" * (len(SOLVERS) + 4) + "|")
    rows, empty = [], 0
    for name, text, wcsp in problems(args):
        if wcsp.read_text().split(maxsplit=2)[1] == "0":
            empty += 1
            continue
        row = compared(args, name, text, wcsp)
        rows.append(row)
        cells = " | ".join(cell(row.get(solver)) for solver in SOLVERS)
        best = min((row[s]["cost"] for s in SOLVERS if s in row and row[s]["cost"] is not None), default="none")
        print(f"| {name} | {row['variables']} | {row['functions']} | {cells} | {best}{'' if row['equal'] else ' DIFFERENT'} |", flush=True)
    print("\n| solver | optima proved | time (geometric mean) | middle | longest | sum |\n|---|---|---|---|---|---|")
    print("\n".join(summary(rows)))
    print(f"\n{empty} problems have no variables and are left out" if empty else "")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(not all(row["equal"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
