"""One request by three doors: the command line, Python and C make the same bytes of it, and refuse the same."""

import ctypes
import json
import os
import pathlib
import subprocess
import sys

import nets
import onnx
import pytest

import relayout
from relayout import _runtime

COSTS = str(pathlib.Path(__file__).parents[2] / "crates/targets/src/ort_cpu/costs/avx512-desktop.toml")
OWN = str(pathlib.Path(__file__).parents[2] / "crates/targets/src/functions/nhwc.toml")
PROOF = "proof.json"

#: Requests as Python and C spell them.
REQUESTS = [
    {},
    {"target": "ort-cpu", "block": 8, "guard": False, "threads": 2},
    {"target": "ort-cpu", "costs": COSTS},
    {"target": "ort-cpu", "runtime": "onnxruntime-1.28"},
    {"runtime": "onnxruntime"},
    {"target": "onnx", "runtime": "onnxruntime-1.30", "block": 8, "threads": 2},
    {"target": "ort-cpu", "machine": "avx2-laptop", "threads": 4},
    {"target": "ort-cpu", "machine": "avx512-desktop", "block": 16},
    {"target": "nhwc", "numerics": "exact", "strict": True},
    {"target_file": OWN},
    {"provider": "qnn"},
    {"target": "ort-nhwc", "provider": "webgpu"},
    {"provider": "cuda", "allow": "com.microsoft"},
    {"inputs": ["x:NHWC->NCHW"], "free_io": True},
    {"outputs": ["y:NHWC->NCHW"], "unproved": "allow"},
    {"dims": {"N": 4, "H": "8..16"}, "unproved": "keep-input"},
    {"dims": {"N": 4, "H": 12}, "fix_sizes": True, "unproved": "fail"},
    {"unproved": "give-back", "proof": PROOF},
    {"target": "ort-cpu", "certificate": PROOF},
    {"for_this_machine": True},
    {"for_this_machine": True, "threads": 1},
]

#: What is refused, and what is named then.
REFUSED = [
    ({"target": "tpu"}, "tpu"),
    ({"provider": "tpu"}, "tpu"),
    ({"target": "nhwc", "provider": "qnn"}, "is an option of target `ort-nhwc`, not of `nhwc`"),
    ({"allow": "com.microsoft"}, "is an option of target `ort-nhwc`, not of `onnx`"),
    ({"provider": "webgpu", "allow": "com.microsoft"}, "there is no op of com.microsoft that files for provider `webgpu` can have"),
    ({"threads": 2}, "is an option of target `ort-cpu`"),
    ({"runtime": "1.28"}, "`1.28` names no runtime, as target `onnx` needs it; say onnxruntime-1.28"),
    ({"target": "nhwc", "runtime": "onnxruntime"}, "is an option of targets `onnx` and `ort-cpu`, not of `nhwc`"),
    ({"provider": "qnn", "block": 8}, "is an option of target `ort-cpu`, not of `ort-nhwc`"),
    ({"costs": COSTS}, "is an option of targets `ort-cpu`, `ort-nhwc` and `cuda-tensorcore`, and of `onnx` with"),
    ({"target": "ort-cpu", "costs": "none.toml"}, "cannot read table of costs `none.toml`"),
    ({"target": "ort-cpu", "costs": OWN}, "nhwc.toml"),
    ({"target": "ort-cpu", "machine": "phone"}, "avx512-server, avx512-desktop, avx2-desktop, avx2-laptop"),
    ({"target": "ort-cpu", "machine": "avx2-laptop", "costs": COSTS}, "exclude each other"),
    ({"target": "ort-cpu", "machine": "avx2-laptop", "block": 16}, "`avx2-laptop` has blocks of 8"),
    ({"machine": "avx2-laptop"}, "is an option of target `ort-cpu`, and of `onnx` with"),
    ({"target_file": "none.toml"}, "target file `none.toml`"),
    ({"dims": {"N": "2..4"}, "fix_sizes": True}, "N is a range"),
    ({"dims": {"C": 4}}, "no input has an open dim `C`"),
    ({"unproved": "quiet"}, "quiet"),
]

#: Words of the command line that are not the keys of Python and C with another dash.
WORDS = {"dims": "dim", "inputs": "input", "outputs": "output", "guard": "no-guard"}


@pytest.fixture
def model():
    net = nets.channels_last()
    for axis, name in enumerate("NH"):
        for end in (net.graph.input[0], net.graph.output[0]):
            end.type.tensor_type.shape.dim[axis].dim_param = name
    pathlib.Path("m.onnx").write_bytes(net.SerializeToString())
    return "m.onnx"


def words(request):
    """The request on the command line."""
    said = []
    for key, value in request.items():
        word = "--" + WORDS.get(key, key.replace("_", "-"))
        entries = [f"{name}={size}" for name, size in value.items()] if isinstance(value, dict) else value
        if isinstance(value, bool):
            said.append(word)
            # The command line times kernels too, unless it is told not to.
            said += ["--no-tune"] if key == "for_this_machine" else []
        elif isinstance(entries, list):
            said += [part for entry in entries for part in (word, entry)]
        else:
            said += [word, str(value)]
    return said


def by_words(model, request):
    command = [sys.executable, "-m", "relayout", "optimize", model, "-o", "words.onnx", "--json", *words(request)]
    environment = {**os.environ, **({"ORT_DYLIB_PATH": path} if (path := _runtime.find()) else {})}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    return pathlib.Path("words.onnx").read_bytes(), json.loads(done.stdout)["models"][0]["report"]


def by_python(model, request):
    try:
        made = relayout.optimize(pathlib.Path(model).read_bytes(), **request)
    except relayout.Error as error:
        return str(error)
    return made.model, json.loads(made.report.json)


class Library:
    """The C library."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.relayout_result_model.restype = ctypes.c_void_p
        self.lib.relayout_result_report.restype = ctypes.c_char_p

    def failure(self, error):
        text = ctypes.string_at(error).decode()
        self.lib.relayout_text_free(error)
        return text

    def optimize(self, model, request):
        options, result, error, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        seen = _runtime.equipment() if "for_this_machine" in request else []
        there = {"runtime": dict(seen).get("runtime"), "session_providers": [value for key, value in seen if key == "session_providers"]}
        said = json.dumps({**there, **request}).encode()
        if self.lib.relayout_options_new(said, ctypes.byref(options), ctypes.byref(error)):
            return self.failure(error)
        data = pathlib.Path(model).read_bytes()
        status = self.lib.relayout_optimize(data, ctypes.c_size_t(len(data)), options, ctypes.byref(result), ctypes.byref(error))
        self.lib.relayout_options_free(options)
        if status:
            return self.failure(error)
        start = self.lib.relayout_result_model(result, ctypes.byref(size))
        made = ctypes.string_at(start, size.value), json.loads(self.lib.relayout_result_report(result))
        self.lib.relayout_result_free(result)
        return made


@pytest.fixture(scope="module")
def c():
    path = os.environ.get("RELAYOUT_C_LIBRARY")
    if not path:
        pytest.skip("RELAYOUT_C_LIBRARY names no C library; tools/python builds one")
    return Library(path)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: " ".join(words(request)).replace(os.sep, "_") or "nothing")
def test_the_same_bytes_come_out_of_every_door(model, c, request_):
    made = {}
    if request_.get("provider"):
        pathlib.Path(model).write_bytes(nets.grouped().SerializeToString())
    for name, door in (("words", by_words), ("Python", by_python), ("C", c.optimize)):
        out = door(model, request_)
        assert not isinstance(out, str), f"{name}: {out}"
        beside = pathlib.Path(PROOF).read_bytes() if PROOF in request_.values() else b""
        pathlib.Path(PROOF).unlink(missing_ok=True)
        made[name] = (*out, beside)
    assert made["words"] == made["Python"] == made["C"]
    data, report, beside = made["C"]
    assert onnx.load_from_string(data).graph.node
    # WebGPU has nothing to gain of this net; that its data is taken shows where its costs come from.
    provider = request_.get("provider", "")
    source = {"cuda": "nvidia"}.get(provider, provider)
    assert report["changed"] is (provider != "webgpu") and source in report["cost_source"].lower(), report
    assert bool(beside) is (PROOF in request_.values())
    chosen = report.get("for_this_machine")
    assert (chosen is not None) is ("for_this_machine" in request_)
    if chosen and "threads" in request_ and chosen["target"] == "ort-cpu":
        assert chosen["threads"] == 1 and "threads 1: asked for" in chosen["why"]


@pytest.mark.parametrize(("request_", "named"), REFUSED)
def test_every_door_refuses_the_same(model, c, request_, named):
    for door in (by_words, by_python, c.optimize):
        said = door(model, request_)
        assert isinstance(said, str) and named in said, said


def test_an_option_is_called_the_same_everywhere():
    helped = subprocess.run([sys.executable, "-m", "relayout", "optimize", "--help"], capture_output=True, text=True, check=True).stdout
    from relayout._options import RequestOptions

    for key in [*RequestOptions.__annotations__, "target", "numerics", "dims", "inputs", "outputs", "free_io", "tune"]:
        assert f"--{WORDS.get(key, key.replace('_', '-'))}" in helped, key
