#!/usr/bin/env python3
"""Optimize random networks for targets, and hold the results against the networks themselves in ONNX Runtime.

    .relayout/venv/bin/python tools/suites/generated.py [--count 1000] [--seed 0] [--targets "onnx,ort-cpu --block 8"] [--ci]

tools/suites/drawn draws them: the same network for the same seed. A draw counts if the checker of the onnx package takes it and ONNX
Runtime, with its rewrites off, makes finite numbers of it that are not all alike. Each is run on two sets of inputs, the second one
with other sizes where the file leaves them open. A result of a target has to

- be written, without a change that was given back (`--strict`, where the program has it);
- load and run where the network does, with rewrites off and on, and give the same numbers, element by element, within the noise of
  the network itself: what its last bits and the runtime's rewrites change, or how far its own result is from that of doubles (noise.py);
- stay the same, to the byte, if it is optimized again.

A child process draws each network, and another one judges it, so that a runtime that ends is told. A network that ends it itself is
rejected. One whose own noise is as large as a difference is counted as unsteady, and never as passed. A target in blocks that this host's
runtime does not have is named as skipped. Failed networks stay in the work folder with their inputs, and are cut down.

Last line: `N passed, M failed`, counted by target; exit status 1 if any failed or if most draws were rejected.
"""
import collections
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import cut
import judge
from drawn import draw, newest
from judge import LIMIT_S, OFF, ON, ROOT, session
from noise import MARGIN, UNSTEADY, as_exact, noise, worst

TARGETS = ["onnx", "ort-cpu --block 16", "ort-cpu --block 8", "ort-nhwc", "nhwc"]
CHUNK, CI = 40, 150
# The last operator set that the runtime loads.
RUNS = 26
# What nobody runs: ops of the runtime alone, in an operator set that it does not load.
NOT_RUN = "not run"
# Networks that showed a fault once. They come first, with --ci.
FAULTS = [700039, 700078, 700194, 700210, 700251, 700469, 700991, 701483, 701488, 701766, 701919, 702102, 702173, 702401, 702708, 702886,
          702947, 7001214, 8004072, 8006655, 8010889, 9005867, 9011338, 9012269, 9522858, 7700766, 7800044, 7802402, 8100356,
          8115802, 8122838, 8406338, 8415676, 8440099]
CHILD_S = 60
CUTS = 40


def child(work):
    """What a function gives in a process of its own; None if that ended, or took too long."""
    def limited():
        signal.alarm(CHILD_S)
        return work()
    return judge.apart(limited)


def useful(arrays):
    """Why results say nothing; None if they are finite and not all alike."""
    floats = [array for array in arrays if array.dtype.kind == "f" and array.size]
    if not all(np.isfinite(array).all() for array in floats):
        return "numbers that are not finite"
    if not any(array.size > 1 and np.ptp(array) > 1e-3 for array in floats):
        return "numbers that are all alike"
    return None


def network(seed, without, of=draw):
    """(model, feeds) of a seed, or why it counts for nothing."""
    try:
        model, feeds = of.network(seed, without)
    except draw.Rejected as why:
        return str(why)
    data = model.SerializeToString()
    try:
        wanted = loads(data, feeds)
    except Exception as error:  # noqa: BLE001  # whatever the runtime says
        return "the runtime does not run it: " + said(error)
    return next(filter(None, map(useful, wanted)), None) or (data, feeds)


def loads(data, feeds):
    """Results of a network with rewrites off. Ends this process if the runtime ends with them on."""
    wanted = runs(data, feeds, OFF)
    try:
        runs(data, feeds, ON)
    except Exception:  # noqa: BLE001  # whatever the runtime says: results are then asked for with rewrites off alone
        pass
    return wanted


def said(error):
    """A message without names and numbers, so that alike ones are counted together."""
    text = str(error).replace("\n", " ").rsplit("Status Message:")[-1]
    return "".join("#" if letter.isdigit() else letter for letter in text)[:110]


class Program:
    """The program under test, for one target."""

    def __init__(self, binary, work, unproved):
        self.binary, self.work = Path(binary).resolve(), work
        text = subprocess.run([self.binary, "optimize", "--help"], capture_output=True, text=True, check=True).stdout
        self.strict = ["--strict"] if "--strict" in text else []
        self.strict += ["--unproved", unproved] if "--unproved" in text else []

    def call(self, target, rest):
        command = [self.binary, "optimize", "-q", "-j", "1", *self.strict, "--target", *target.split(), *rest]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)

    def one(self, target, source, result):
        """None, or why there is no result."""
        try:
            done = self.call(target, [source, "-o", result])
        except subprocess.TimeoutExpired:
            return f"refused: no result within {LIMIT_S} s"
        return f"refused: exit {done.returncode}: {done.stderr.strip()[:300]}" if done.returncode else None

    def many(self, target, sources, folder):
        """Results of files in a folder by their names: None, or why there is none."""
        folder.mkdir(parents=True)
        if not sources:
            return {}
        try:
            done = self.call(target, [*sources, "-o", folder]).returncode == 0
        except subprocess.TimeoutExpired:
            done = False
        if done:
            return dict.fromkeys((source.name for source in sources))
        return {source.name: self.one(target, source, folder / source.name) for source in sources}


class Original:
    """A network, what it gives with rewrites off and on, and how far its last bits take that."""

    def __init__(self, model, feeds):
        self.model, self.feeds, self.data = model, feeds, model.SerializeToString()
        self.halves = judge.rounding(model) == judge.HALVES
        self.off = runs(self.data, feeds, OFF)
        try:
            self.on = runs(self.data, feeds, ON)
        except Exception:  # noqa: BLE001  # whatever the runtime says
            self.on = None

    def off_by(self, at, got):
        """How far a result is off, and in how many elements, from the nearer one of the network's own."""
        return min(worst(wanted[at], got, self.halves) for wanted in (self.off, self.on) if wanted)

    def explains(self, at, off, count, got):
        """What the network's own noise says of a difference: "unsteady" if it is as large, and large; "" if it is as large."""
        largest, elements = noise(self.model, self.feeds[at], self.off[at], self.halves)
        if off > MARGIN * largest or count > MARGIN * elements + 1:
            small = off <= UNSTEADY and not self.halves and not newer(self.data)
            return "" if small and as_exact(self.model, self.feeds[at], self.off[at], got) else None
        return "unsteady" if largest > UNSTEADY else ""

    def why(self, result):
        """Why a result is not that of the network; None if it is; "unsteady" if nobody can tell."""
        levels = [(OFF, "with rewrites off")] + ([(ON, "at the default level")] if self.on else [])
        for level, name in levels:
            try:
                got = runs(result, self.feeds, level)
            except Exception as error:  # noqa: BLE001  # whatever the runtime says
                if newer(self.data) and " from domain 'com.microsoft" in str(error):
                    return NOT_RUN
                return f"does not run {name}: " + str(error).replace("\n", " ")[:300]
            for at, each in enumerate(got):
                off, count = self.off_by(at, each)
                found = self.explains(at, off, count, each) if off else ""
                if found is None:
                    return f"another result {name}, inputs {at}: off by {off:.2g} of its size in {count} elements"
                if found:
                    return found
        return None


def runs(model, feeds, level):
    """Outputs of a model on several sets of inputs. Operator sets that no runtime loads run in the reference of the onnx package."""
    if newer(model):
        held = ReferenceEvaluator(onnx.load(model) if isinstance(model, str) else onnx.load_from_string(model))
        return [[np.asarray(array) for array in held.run(None, each)] for each in feeds]
    loaded = session(model, level)
    return [loaded.run(None, each) for each in feeds]


def newer(model):
    """Whether the runtime lacks the operator set of a file or of bytes."""
    model = onnx.load(model, load_external_data=False) if isinstance(model, str) else onnx.load_from_string(model)
    return any(each.version > RUNS for each in model.opset_import if not each.domain)


def blocks_run(program, target):
    """Whether the runtime of this host runs files of a target: those in blocks name the block that they are for."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((16, 16, 3, 3)).astype(np.float32), name) for name in "vw"]
    ports = [helper.make_tensor_value_info(name, 1, [1, 16, size, size]) for name, size in (("x", 12), ("y", 8))]
    nodes = [helper.make_node("Conv", ["x", "v"], ["c"]), helper.make_node("Conv", ["c", "w"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "probe", ports[:1], ports[1:], weights), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    source, result = program.work / "probe.onnx", program.work / "probe.out.onnx"
    onnx.save(model, source)
    why = program.one(target, source, result)
    if why:
        raise SystemExit(f"generated.py: the program does not take target {target}: {why}")
    feeds = [{"x": rng.standard_normal((1, 16, 12, 12)).astype(np.float32)}]
    found = child(lambda: Original(model, feeds).why(str(result)) or "")
    return found == ""


class Suite:
    """Networks, what each target makes of them, and the counts."""

    def __init__(self, args):
        self.work, self.args = args.work, args
        self.work.mkdir(parents=True, exist_ok=True)
        self.program = Program(args.bin, self.work, args.unproved)
        self.rejected, self.found, self.failures = collections.Counter(), {}, []
        asked = [target.strip() for target in args.targets.split(",")] if args.targets else TARGETS
        self.targets = [target for target in asked if self.runs(target)]
        self.drawn = self.accepted = 0
        self.spent = collections.Counter()

    def runs(self, target):
        if blocks_run(self.program, target):
            self.found[target] = collections.Counter()
            return True
        print(f"skipped {target}: the runtime of this host does not run its files", flush=True)
        return False

    def timed(self, what, work):
        start = time.monotonic()
        done = work()
        self.spent[what] += time.monotonic() - start
        return done

    def draws(self, seed):
        """A network of a seed as a file and its feeds, or None."""
        self.drawn += 1
        made = self.timed("draw", lambda: child(lambda: network(seed, self.args.without.split(','), newest if self.args.newest else draw)))
        if made is None:
            self.rejected["ends the runtime"] += 1
        elif isinstance(made, str):
            self.rejected[made] += 1
        else:
            path = self.work / "chunk/given" / f"net{seed}.onnx"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made[0])
            self.accepted += 1
            return path, made[1]
        return None

    def chunk(self, networks):
        """Optimizes some networks for each target, twice, and judges the results."""
        why, folder = {}, self.work / "chunk"
        for number, target in enumerate(self.targets):
            once, twice = folder / f"{number}", folder / f"{number}again"
            made = self.timed("optimize", lambda: self.program.many(target, [path for path, _ in networks], once))
            good = [once / name for name, reason in made.items() if not reason]
            again = self.timed("optimize again", lambda: self.program.many(target, good, twice))
            for path in good:
                reason = again[path.name]
                if reason:
                    made[path.name] = "not a fixed point: " + reason
                elif path.read_bytes() != (twice / path.name).read_bytes():
                    made[path.name] = "not a fixed point: another file if optimized again"
            why |= {(name, target): reason for name, reason in made.items()}
        for path, feeds in networks:
            self.judge(path, feeds, {target: why[path.name, target] for target in self.targets})
        shutil.rmtree(folder)

    def judge(self, path, feeds, reasons):
        model = onnx.load(path)
        results = {target: str(path.parent.parent / f"{number}" / path.name) for number, target in enumerate(self.targets)}
        results = {target: result for target, result in results.items() if not (reasons[target] or "").startswith("refused")}

        def all_of_them(targets):
            original = Original(model, feeds)
            return {target: original.why(results[target]) for target in targets}
        found = self.timed("run", lambda: child(lambda: all_of_them(results)))
        if found is None:
            found = {target: (child(lambda t=target: all_of_them([t])) or {target: "ends the runtime"})[target] for target in results}
        for target in self.targets:
            self.note(path, model, feeds, target, reasons[target] or found.get(target))

    def note(self, path, model, feeds, target, why):
        kind = why.split(":")[0].split(",")[0] if why else "passed"
        self.found[target][kind] += 1
        if not why or kind in ("unsteady", NOT_RUN):
            return
        name = f"{path.stem}-{target.replace(' --', '-').replace(' ', '')}"
        print(f"FAIL {path.stem} {target}: {why}", flush=True)
        shutil.copy(path, self.work / f"{path.stem}.onnx")
        at = 1 if "inputs 1" in why else 0
        np.savez(self.work / f"{path.stem}.npz", **feeds[at])
        failure = {"model": path.stem, "target": target, "why": why}
        self.failures.append(failure)
        if len(self.failures) <= self.args.cuts:
            failure["small"] = self.small(name, model, feeds[at], target)

    def why(self, model, feeds, target):
        """Why a target fails on a model; None if it does not. For the smaller parts of a failed one."""
        source, result, again = (self.work / f"part{which}.onnx" for which in ("", ".once", ".twice"))
        onnx.save(model, source)
        reason = self.program.one(target, source, result)
        if not reason:
            reason = self.program.one(target, result, again)
            same = not reason and result.read_bytes() == again.read_bytes()
            reason = None if same else "not a fixed point: " + (reason or "another file if optimized again")
        if not reason:
            data = model.SerializeToString()
            fine = child(lambda: loads(data, [feeds]) and 1)
            found = child(lambda: Original(model, [feeds]).why(str(result)) or "") if fine else ""
            reason = "ends the runtime" if found is None else found
        return None if reason in ("", "unsteady", NOT_RUN) else reason

    def small(self, name, model, feeds, target):
        """The ops of the smallest part that fails alike, which is kept as a file too; None if there is none."""
        try:
            made = cut.fewest(model, feeds, lambda part, given: self.why(part, given, target))
        except Exception as error:  # noqa: BLE001  # a failure that can't be cut is kept whole
            print(f"    not cut: {error}"[:200], flush=True)
            return None
        if made is None:
            print("    not cut: with its extents fixed and these inputs alone, it does not fail", flush=True)
            return None
        onnx.save(made[0], self.work / f"{name}.small.onnx")
        np.savez(self.work / f"{name}.small.npz", **made[1])
        ops = " ".join(node.op_type for node in made[0].graph.node)
        print(f"    {len(made[0].graph.node)} nodes: {ops}", flush=True)
        return ops

    def end(self):
        """Prints the tables, writes the JSON, and returns the exit status."""
        print(f"\n{self.drawn} drawn, {self.accepted} accepted; rejected:")
        for why, count in self.rejected.most_common():
            print(f"    {count:6} {why}")
        kinds = sorted({kind for counts in self.found.values() for kind in counts})
        passed = sum(counts["passed"] for counts in self.found.values())
        for target, counts in self.found.items():
            print(f"{target}: " + ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind]))
        alike = collections.Counter((failure["target"], said(failure["why"])) for failure in self.failures)
        for (target, why), count in alike.most_common():
            print(f"    {count:6} {target}: {why}")
        print("seconds: " + ", ".join(f"{what} {spent:.0f}" for what, spent in self.spent.items()))
        if self.args.json:
            held = {"rejected": self.rejected, "count": self.found, "failures": self.failures}
            self.args.json.write_text(json.dumps(held, indent=1) + "\n")
        print(f"{passed} passed, {len(self.failures)} failed")
        return int(bool(self.failures) or not passed or 2 * self.accepted < self.drawn)


def main():
    options = judge.parser(__doc__, "generated")
    options.set_defaults(seed=0)
    options.add_argument("--count", type=int, help=f"networks that count; 1000 by default, {CI} with --ci")
    options.add_argument("--ci", action="store_true", help="the selection of continuous integration, with the debug program")
    options.add_argument("--unproved", default="allow", help="what becomes of results that are not proved: with `fail` they are refused")
    options.add_argument("--cuts", type=int, default=CUTS, help="failures that are cut down")
    options.add_argument("--newest", action="store_true", help="networks of the ops of operator sets 23 to 28 (drawn/newest.py)")
    options.add_argument("--without", default="", help="what networks are drawn without: sparse, overridable")
    args = options.parse_args()
    count = args.count or (CI if args.ci else 1000)
    if args.ci and args.bin == ROOT / "target/release/relayout":
        args.bin = ROOT / "target/debug/relayout"
    suite, seed, faults = Suite(args), args.seed, list(FAULTS) if args.ci else []
    shutil.rmtree(args.work / "chunk", ignore_errors=True)
    while suite.targets and suite.accepted < count:
        networks = []
        while len(networks) < min(CHUNK, count - suite.accepted + len(networks)):
            if faults:
                networks += filter(None, [suite.draws(faults.pop(0))])
                continue
            networks += filter(None, [suite.draws(seed)])
            seed += 1
        suite.chunk(networks)
        if suite.accepted % (5 * CHUNK) == 0:
            print(f"{suite.accepted} networks", flush=True)
    sys.exit(suite.end())


if __name__ == "__main__":
    main()
