"""What the comparisons of this folder share: sessions of ONNX Runtime, what a run moves, how far results are apart, a process measured."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from on_load import CORPUS, WORK, hydrated, hydrater  # noqa: E402

NONE, BASIC, EXTENDED, ALL = "ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"
# Nodes that move and do nothing else.
MOVES = {"Transpose", "ReorderInput", "ReorderOutput", "Permute", "Relayout"}
# Nodes that can hide a move: what they write beyond what they wrote in the original counts as moved.
COPIES = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "DepthToSpace", "SpaceToDepth", "Einsum", "Slice",
          "Split", "Concat", "Pad", "Tile", "Expand", "Col2Im"}
# Bytes that are no difference.
SLACK = 1024


def options(parser):
    """The options that all comparisons have."""
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, default=WORK, help="folder for models with their weights; kept")
    parser.add_argument("--bin", type=Path, default=ROOT / "target/release/relayout")
    parser.add_argument("--models", help="only these, with commas between them")
    parser.add_argument("--core", action="store_true", help="only the smaller selection that the manifest marks")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for all that was found")
    return parser


def models(args):
    """Name, file with weights and inputs (a function of a seed) of each model that is asked for."""
    args.work.mkdir(parents=True, exist_ok=True)
    module = hydrater(args.corpus)
    wanted = set(args.models.split(",")) if args.models else None
    for entry in json.loads((args.corpus / "manifest.json").read_text())["models"]:
        if (wanted is None or entry["name"] in wanted) and (entry.get("core") or not args.core):
            path = hydrated(module, args.corpus, entry, args.work)
            yield entry["name"], path, lambda seed=0, entry=entry: module.feeds(entry, seed)


def session(path, level, threads=1, profile=None):
    made = ort.SessionOptions()
    made.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    made.intra_op_num_threads, made.inter_op_num_threads, made.log_severity_level = threads, 1, 3
    if threads > 1:
        # The waiting pool of one session would take the cores of another. Within a run threads wait at work, as they do by default.
        made.add_session_config_entry("session.force_spinning_stop", "1")
    if profile:
        made.enable_profiling, made.profile_file_prefix = True, str(profile)
    return ort.InferenceSession(str(path), made, providers=["CPUExecutionProvider"])


@dataclass
class Moved:
    """What a run moves: nodes and the bytes that they write, and what nodes that copy write; and the results of the run."""

    nodes: int
    written: int
    copied: int
    reorders: int
    results: list

    def beside(self, original):
        """Bytes that are moved, copies included that the original does not have."""
        return self.written + max(0, self.copied - original.copied)


def moved(path, level, threads, feeds):
    """Of one run, by the profile of the runtime."""
    with tempfile.TemporaryDirectory() as folder:
        run = session(path, level, threads, Path(folder, "profile"))
        results = run.run(None, feeds)
        profile = run.end_profiling()
        events = json.loads(Path(profile).read_text())
        os.unlink(profile)
    count, written = Counter(), Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            told = event["args"]
            # The kinds of Relayout have numbers.
            op = re.sub(r"^Relayout_\d+$", "Relayout", told["op_name"])
            count[op] += 1
            written[op] += int(told.get("output_size", 0))
    total = lambda kinds, of: sum(of[kind] for kind in kinds)  # noqa: E731
    reorders = total(["ReorderInput", "ReorderOutput"], count)
    return Moved(total(MOVES, count), total(MOVES, written), total(COPIES, written), reorders, results)


def apart(expected, got):
    """Of the worst output: the error over its size, as root mean square, and the largest error over the largest number."""
    rms = largest = 0.0
    if len(expected) != len(got):
        return np.inf, np.inf
    for a, b in zip(expected, got, strict=True):
        if isinstance(a, list) or np.asarray(a).dtype.kind in "OUS":
            if np.asarray(a, object).tolist() != np.asarray(b, object).tolist():
                return np.inf, np.inf
            continue
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any():
            return np.inf, np.inf
        finite = np.isfinite(a)
        if finite.any():
            error, size = np.abs(a[finite] - b[finite]), np.abs(a[finite])
            rms = max(rms, np.sqrt(np.mean(error**2)) / (np.sqrt(np.mean(size**2)) or 1))
            largest = max(largest, error.max() / (size.max() or 1))
    return float(rms), float(largest)


def is_near(ours, noise):
    """Whether a result is as near to the original's as that of the runtime's own optimizer, within rounding."""
    return ours[0] <= max(2e-5, 4 * noise[0]) and ours[1] <= max(2e-4, 8 * noise[1])


def ports(path):
    """Inputs with their shapes, and outputs."""
    graph = onnx.load(str(path), load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    shape = lambda port: [dim.dim_value or dim.dim_param for dim in port.type.tensor_type.shape.dim]  # noqa: E731
    inputs = [(port.name, port.type.tensor_type.elem_type, shape(port)) for port in graph.input if port.name not in constants]
    return inputs, [(port.name, port.type.tensor_type.elem_type) for port in graph.output]


def process(command, limit=600):
    """Runs a program; its exit status, what it said, and its seconds."""
    begin = time.perf_counter()
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return 124, f"no end after {limit} s", limit
    return done.returncode, (done.stdout + done.stderr).strip(), time.perf_counter() - begin


def heading(binary):
    """What figures belong to: date, machine, versions."""
    version = process([binary, "-V"])[1]
    processor = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "unknown")
    return f"{time.strftime('%Y-%m-%d')}, {processor}, {os.cpu_count()} cores, {version}, ONNX Runtime {ort.__version__}, onnx {onnx.__version__}"
