"""Times models on an execution provider of ONNX Runtime, for the program `relayout`, which starts this once and writes to it.

    python measure.py PROVIDER FOLDER [--on PROVIDER]

The first line of stdout says what is here. Each line of stdin names models that run in turns, and is answered with a line for each. What
goes wrong is a line with `error`. Profiles, and what models leave, are written to FOLDER. `--on` takes another provider in place of the
first, without its options: how tests try all of this on a CPU.
"""
import argparse
import ctypes
import json
import os
import sys
import time

CPU = "CPUExecutionProvider"
# What a turn of a model takes at least, so that reading the clock counts nothing, and the most runs for that.
TURN_NS, MOST_RUNS = 1_000_000, 100
WARM_RUNS = 3
NUMPY = {"bool": "bool", "f16": "float16", "f32": "float32", "f64": "float64"} | {
    f"{short}{bits}": f"{name}{bits}" for short, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}


class Refused(Exception):
    """What is said of something that can't be measured."""


def one_line(error):
    return " ".join(str(error).split())


def card():
    """The name of the first GPU of NVIDIA, which no call of ONNX Runtime tells; none without a driver."""
    for library in ("libcuda.so.1", "nvcuda.dll"):
        try:
            driver = ctypes.CDLL(library)
        except OSError:
            continue
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            if driver.cuDeviceGetName(name, len(name), device) == 0:
                return name.value.decode(errors="replace")
    return None


class Bench:
    """A provider, and the models that run on it."""

    def __init__(self, provider, folder, stand_in):
        try:
            import numpy
            import onnxruntime
        except ImportError as error:
            raise Refused(f"{sys.executable} has no ONNX Runtime: {one_line(error)}") from error
        self.numpy, self.ort, self.folder = numpy, onnxruntime, folder
        self.stand_in, self.provider = stand_in is not None, stand_in or provider
        known = onnxruntime.get_available_providers()
        if self.provider not in known:
            raise Refused(f"the ONNX Runtime {onnxruntime.__version__} of {sys.executable} has no {self.provider}; it has {', '.join(known)}")
        self.on_cuda = self.provider == "CUDAExecutionProvider"
        if self.on_cuda and hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()
        self.place = "cuda" if self.on_cuda else "cpu"

    def hello(self):
        return {"runtime": f"ONNX Runtime {self.ort.__version__}", "provider": self.provider, "stand_in": self.stand_in,
                "machine": card() if self.on_cuda else None}

    def session(self, model):
        options = self.ort.SessionOptions()
        levels = self.ort.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if model["optimized"] else levels.ORT_DISABLE_ALL
        options.log_severity_level, options.intra_op_num_threads = 4, model["threads"]
        options.enable_profiling, options.profile_file_prefix = True, os.path.join(self.folder, "profile")
        providers = [(self.provider, {} if self.stand_in else model["options"])]
        providers += [CPU] if self.provider != CPU else []
        session = self.ort.InferenceSession(model["path"], options, providers=providers)
        if self.provider not in session.get_providers():
            raise Refused(f"ONNX Runtime runs everything on {', '.join(session.get_providers())} in place of {self.provider}, which found no "
                          "device, or lacks one of its libraries (CUDA, cuDNN)")
        return session

    def bound(self, session, feeds):
        io = session.io_binding()
        for name, value in feeds.items():
            io.bind_ortvalue_input(name, self.ort.OrtValue.ortvalue_from_numpy(value, self.place, 0))
        for output in session.get_outputs():
            io.bind_output(output.name, self.place, 0)
        return io

    def feeds(self, session, model):
        """What a model is fed: what files have, or else numbers of one seed."""
        if model["feeds"] is not None:
            read = lambda feed: self.numpy.fromfile(feed["file"], NUMPY[feed["type"]]).reshape(feed["shape"])
            return {feed["name"]: read(feed) for feed in model["feeds"]}
        random = self.numpy.random.default_rng(0)
        types = {"tensor(float)": self.numpy.float32, "tensor(float16)": self.numpy.float16}
        return {x.name: random.standard_normal(x.shape).astype(types[x.type]) for x in session.get_inputs()}

    def check(self, session, model):
        """That what ran is what is to be timed, by the profile of the first run."""
        path = session.end_profiling()
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        os.remove(path)
        nodes = [e["args"] for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
        own = [node["op_name"] for node in nodes if node.get("provider") == self.provider]
        if not own:
            raise Refused(f"no node of the model ran on {self.provider}")
        wanted = model["op"]
        if wanted is not None:
            elsewhere = {node["provider"] for node in nodes if node["op_name"] == wanted} - {self.provider}
            if elsewhere or wanted not in own:
                raise Refused(f"{wanted} ran on {', '.join(elsewhere) or 'no provider'} in place of {self.provider}")
            if wanted != "Transpose" and "Transpose" in own and not self.stand_in:
                raise Refused(f"{self.provider} ran Transposes around {wanted}, which would be timed with it")

    def load(self, model):
        session = self.session(model)
        io = self.bound(session, self.feeds(session, model))
        session.run_with_iobinding(io)
        io.synchronize_outputs()
        self.check(session, model)
        for _ in range(WARM_RUNS - 1):
            session.run_with_iobinding(io)
        left = self.left(session, io) if model["results"] else []
        once = turn(session, io, 1)
        return session, io, min(MOST_RUNS, max(1, TURN_NS // max(1, once))), left

    def left(self, session, io):
        """What a model left, as files."""
        short, all_left = {name: type for type, name in NUMPY.items()}, []
        for at, (output, value) in enumerate(zip(session.get_outputs(), io.copy_outputs_to_cpu())):
            path = os.path.join(self.folder, f"result-{at}-{time.monotonic_ns()}")
            self.numpy.ascontiguousarray(value).tofile(path)
            all_left.append({"name": output.name, "type": short[str(value.dtype)], "shape": list(value.shape), "file": path})
        return all_left

    def answer(self, asked):
        loaded = [self.load(model) for model in asked["models"]]
        times, (least, most), begun = [[] for _ in loaded], asked["rounds"], time.monotonic()
        while (done := len(times[0]) // asked["turns"]) < least or (done < most and time.monotonic() - begun < asked["seconds"]):
            for _ in range(asked["turns"]):
                for taken, (session, io, runs, _) in zip(times, loaded):
                    taken.append(turn(session, io, runs))
        return [{"ns": taken, "results": left} for taken, (*_, left) in zip(times, loaded)]


def turn(session, io, runs):
    """Nanoseconds of a run, of so many one after the other."""
    begun = time.perf_counter_ns()
    for _ in range(runs):
        session.run_with_iobinding(io)
    io.synchronize_outputs()
    return (time.perf_counter_ns() - begun) // runs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("provider")
    parser.add_argument("folder")
    parser.add_argument("--on", metavar="PROVIDER")
    given = parser.parse_args()
    # What libraries print is no answer.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    say = lambda line: print(json.dumps(line), file=out, flush=True)
    try:
        bench = Bench(given.provider, given.folder, given.on)
        say(bench.hello())
    except Refused as refused:
        return say({"error": str(refused)})
    for line in sys.stdin:
        try:
            for answer in bench.answer(json.loads(line)):
                say(answer)
        except Exception as error:
            say({"error": one_line(error)})


if __name__ == "__main__":
    main()
