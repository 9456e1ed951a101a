#!/usr/bin/env python3
"""Counts what an NHWC execution provider of ONNX Runtime runs for a model: nodes on the device, moves among them.

    python count.py --provider qnn MODEL.onnx...       device graphs as handed to the compiler of QNN's HTP simulator
    python count.py --provider webgpu MODEL.onnx...    nodes that ran, and the distance to the unoptimized CPU provider
    python count.py --provider webgpu --loaded MODEL.onnx...   nodes of the graph that is made when the file is loaded; nothing runs
    python count.py --provider cuda MODEL.onnx...      nodes of the graph that is made when the file is loaded with the option that its
                                                       metadata names (`relayout.session`), prefer_nhwc=1 if it names none
    python count.py --provider cuda --session prefer_nhwc=0 MODEL.onnx...   with this option
    python count.py --provider webgpu --rounds 5 MODEL.onnx OTHER.onnx      how many times as long the first one takes, in turns

One JSON object per model: parts (device graphs), nodes, transposes, moved (elements that Transposes write), refused (Transposes of more
than 5 axes), reshapes, ops (the other nodes by name), cpu (nodes that fell back, by name), and with webgpu: error, and inside (Transposes
that kernels of other ops run within themselves, by op: how many, and milliseconds of the device). A model that does not load has `note`.
With --rounds there is one object: ratio, the median and its interval, and control, those of the other model beside itself.

QNN's compiler may run out of memory on one of a model's graphs, and the graphs behind it would then not be seen. So graphs are handed to
the recorder that the package brings along (libQnnSaver), which takes all of them; the provider's support checks are those of HTP.
CUDA's graph is loaded without a GPU (empty_driver.py), and not run.
Each model runs in a process of its own, since a provider may abort.
"""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import timing  # noqa: E402

LEVELS = ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"]
# Set by the provider on all versions that were counted.
AXES = 5


def fallen_back(session):
    """Nodes that the CPU provider took, by op."""
    taken = collections.Counter()
    for part in session.get_provider_graph_assignment_info():
        if part.ep_name == "CPUExecutionProvider":
            taken.update(node.op_type for node in part.get_nodes())
    return dict(sorted(taken.items()))


def device_graph(path, row, ops):
    """Adds the nodes of a dumped device graph to a row."""
    graph = json.loads(path.read_text())
    graph = graph.get("graph", graph)
    row["parts"] += 1
    for node in graph.get("nodes", {}).values():
        row["nodes"] += 1
        kind = node["type"]
        if kind == "Transpose":
            row["transposes"] += 1
            dims = graph["tensors"][node["output_names"][0]]["dims"]
            row["refused"] += len(dims) > AXES
            size = 1
            for extent in dims:
                size *= extent
            row["moved"] += size
        elif kind == "Reshape":
            row["reshapes"] += 1
        else:
            ops[kind] += 1


def qnn(model, level):
    import onnxruntime as ort
    import onnxruntime_qnn as plugin

    ort.set_default_logger_severity(4)
    ort.register_execution_provider_library("QNNExecutionProvider", plugin.get_library_path())
    devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"]
    htp = Path(plugin.get_qnn_htp_path())
    row = {"parts": 0, "nodes": 0, "transposes": 0, "moved": 0, "refused": 0, "reshapes": 0}
    ops = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        # The recorder writes what it is given to the current folder.
        os.chdir(folder)
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        dumps = Path(folder, "graphs")
        dumps.mkdir()
        settings = {"backend_path": str(htp), "qnn_saver_path": str(htp.with_name(htp.name.replace("QnnHtp", "QnnSaver"))),
                    "dump_json_qnn_graph": "1", "json_qnn_graph_dir": str(dumps)}
        options.add_provider_for_devices(devices, settings)
        try:
            row["cpu"] = fallen_back(ort.InferenceSession(str(model), options))
        except Exception as e:  # the graphs that there are by then still count
            row["note"] = " ".join(str(e).split())[:300]
        for path in sorted(dumps.glob("*.json")):
            if not path.name.endswith("tensor_log.json"):
                device_graph(path, row, ops)
        os.chdir("/")
    return row | {"ops": dict(sorted(ops.items()))}


def feeds(session, seed=0):
    """Random inputs; a dim of unknown size is 1."""
    import numpy as np

    rng = np.random.default_rng(seed)
    kinds = {"tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8,
             "tensor(bool)": np.bool_}
    out = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        kind = np.dtype(kinds.get(i.type, np.float32))
        x = rng.standard_normal(shape) if kind.kind == "f" else rng.integers(0, 2, shape)
        out[i.name] = x.astype(kind)
    return out


def inside(events):
    """Transposes within kernels of other ops. What runs on the device is named by node, op and kernel."""
    found = {}
    for event in events:
        _, op, kernel = event["name"].rsplit("&", 2) if event["name"].count("&") >= 2 else ("", "", "")
        if kernel == "Transpose" and op != "Transpose":
            count, taken = found.get(op, (0, 0))
            found[op] = (count + 1, taken + event["dur"] / 1e3)
    return {op: (count, round(taken, 1)) for op, (count, taken) in sorted(found.items())}


ABSENT = "no WebGPU adapter; is VK_ICD_FILENAMES set?"


def webgpu(model, level, only_loaded=False):
    import numpy as np
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    providers = ["WebGpuExecutionProvider", "CPUExecutionProvider"]
    if only_loaded:
        return loaded(model, level, (providers[0], {}), ABSENT)
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.enable_profiling, options.profile_file_prefix = True, str(Path(folder, "p"))
        session = ort.InferenceSession(str(model), options, providers=providers)
        if providers[0] not in session.get_providers():
            return {"note": ABSENT}
        x = feeds(session)
        got = session.run(None, x)
        events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [e["args"] for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    moved = sum(int(np.prod(dims, dtype=np.int64)) for n in nodes if n["op_name"] == "Transpose"
                for shape in n.get("output_type_shape", []) for dims in shape.values())
    count = collections.Counter(n["op_name"] for n in nodes)
    cpu = collections.Counter(n["op_name"] for n in nodes if n.get("provider", "").startswith("CPU"))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    want = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, x)
    far = lambda a, b: float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max() / max(1e-6, np.abs(b).max()))
    error = max((far(a, b) for a, b in zip(got, want, strict=True) if b.size), default=0.0)
    others = {op: n for op, n in sorted(count.items()) if op not in ("Transpose", "Reshape")}
    return {"parts": 1, "nodes": len(nodes), "transposes": count["Transpose"], "moved": moved, "reshapes": count["Reshape"],
            "ops": others, "cpu": dict(sorted(cpu.items())), "error": error, "inside": inside(events)}


def raced(model, other, level, rounds):
    """How many times as long a model takes on WebGPU as another one of the same inputs."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    runs = {}
    for name, path in (("other", other), ("model", model)):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        session = ort.InferenceSession(str(path), options, providers=["WebGpuExecutionProvider", "CPUExecutionProvider"])
        if "WebGpuExecutionProvider" not in session.get_providers():
            return {"note": ABSENT}
        x = feeds(session)
        runs[name] = lambda session=session, x=x: session.run(None, x)
    found = timing.beside(runs, rounds)
    spread = lambda r: [r.low, r.median, r.high]
    return {"ratio": spread(found.over("model")), "control": spread(found.control()), "seconds": found.median("other")}


def session_of(model):
    """The option that a file is for."""
    import onnx

    said = {p.key: p.value for p in onnx.load(model, load_external_data=False).metadata_props}
    return said.get("relayout.session", "prefer_nhwc=1")


def cuda(model, level, session=None):
    """What the CUDA provider makes of a file when it is loaded."""
    option, value = (session or session_of(model)).split("=")
    return loaded(model, level, ("CUDAExecutionProvider", {option: value}), "no CUDA provider; is LD_LIBRARY_PATH set?")


def loaded(model, level, provider, absent):
    """What a provider makes of a file when it is loaded: the nodes of its graph. Those of bodies are not counted."""
    import onnx
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        saved = str(Path(folder, "saved.onnx"))
        options = ort.SessionOptions()
        options.log_severity_level, options.optimized_model_filepath = 4, saved
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "saved.data")
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        session = ort.InferenceSession(str(model), options, providers=[provider, "CPUExecutionProvider"])
        if provider[0] not in session.get_providers():
            return {"note": absent}
        graph = onnx.load(saved, load_external_data=False).graph
        given = onnx.shape_inference.infer_shapes(onnx.load(model), data_prop=True).graph
        cpu = fallen_back(session)
    count = collections.Counter(node.op_type for node in graph.node)
    size = sizes([graph, given])
    moved = sum(size(node.output[0]) or size(node.input[0]) or 0 for node in graph.node if node.op_type == "Transpose")
    others = {op: n for op, n in sorted(count.items()) if op not in ("Transpose", "Reshape")}
    return {"parts": 1, "nodes": len(graph.node), "transposes": count["Transpose"], "moved": moved, "reshapes": count["Reshape"], "ops": others,
            "cpu": cpu}


# Results have as many elements as the first operand.
KEEPS = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Relu", "Clip", "QuickGelu", "Gelu", "Sigmoid", "Tanh", "Softmax", "Cast", "HardSigmoid"}


def sizes(graphs):
    """Says how many elements a value has: of those that a graph declares, and through ops that keep them."""
    known, makers = {}, {}
    for graph in graphs:
        for value in [*graph.input, *graph.output, *graph.value_info]:
            dims = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            if value.type.tensor_type.HasField("shape"):
                known.setdefault(value.name, math.prod(dims))
        makers |= {name: node for node in graph.node for name in node.output if name not in makers}

    def size(name):
        for _ in range(64):
            if name in known or name not in makers or makers[name].op_type not in KEEPS:
                break
            name = makers[name].input[0]
        return known.get(name)

    return size


def one(args, models):
    """What a process of its own does."""
    try:
        if args.rounds:
            return raced(*models, args.level, args.rounds)
        more = {"qnn": [], "webgpu": [args.loaded], "cuda": [args.session]}[args.provider]
        return {"qnn": qnn, "webgpu": webgpu, "cuda": cuda}[args.provider](models[0], args.level, *more)
    except Exception as e:  # whatever a provider says to a model that it can't run
        return {"note": " ".join(str(e).split())[:300]}


def asked(python, provider, models, level, timeout, rounds=0, session=None, only_loaded=False):
    """What a process says that runs the interpreter which has the provider."""
    command = [str(python), __file__, "--provider", provider, "--level", level, "--rounds", str(rounds), "--one", *map(str, models)]
    command += ["--session", session] if session else []
    command += ["--loaded"] if only_loaded else []
    driver = Path(python).parents[1] / "empty_driver"
    env = os.environ | ({"LD_LIBRARY_PATH": str(driver)} if provider == "cuda" and driver.exists() else {})
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        return {"note": f"no end after {timeout:.0f} s"}
    rows = [line[4:] for line in done.stdout.splitlines() if line.startswith("ROW ")]
    return json.loads(rows[-1]) if rows else {"note": f"ended with {done.returncode}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--provider", choices=["qnn", "webgpu", "cuda"], required=True)
    parser.add_argument("--level", choices=LEVELS, default="ORT_ENABLE_ALL")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--loaded", action="store_true", help="with webgpu: count what is loaded, and run nothing")
    parser.add_argument("--session", help="with cuda: the option of the session, in place of the one that files name")
    parser.add_argument("--rounds", type=int, default=0, help="with webgpu and two models: time them in so many rounds")
    parser.add_argument("models", nargs="+", type=Path)
    args = parser.parse_args()
    if args.rounds and (args.provider != "webgpu" or len(args.models) != 2):
        parser.error("--rounds compares two models on webgpu")
    models = [model.resolve() for model in args.models]
    if args.one:
        print("ROW " + json.dumps(one(args, models)), flush=True)
        # Some providers crash when the process ends.
        os._exit(0)
    for group in [models] if args.rounds else [[model] for model in models]:
        row = asked(sys.executable, args.provider, group, args.level, args.timeout, args.rounds, args.session, args.loaded)
        print(json.dumps({"model": group[0].stem} | row), flush=True)


if __name__ == "__main__":
    main()
