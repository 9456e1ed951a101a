#!/usr/bin/env python3
"""Runs a model in one runtime, as tools/runtimes asks: python worker.py RUNTIME MODEL.onnx INPUTS RESULTS

Loads the model, runs it once with the tensors of the folder INPUTS and writes what comes out to the folder RESULTS. Then `@ready` is
printed, or `@note` and why not. Each line that follows on stdin is a number of runs; the answer is `@` and the seconds of one. Workers in
other languages (web.mjs, tract) do the same. One thread, float32 as it is.

A runtime is a function that takes the path and the inputs by name and gives a function that runs and returns the results, by name where
the runtime keeps names. Runtimes import what only their environments have.
"""
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

# Libraries read these when they are loaded.
os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS",
                                             "TVM_NUM_THREADS")})

import numpy as np  # noqa: E402

import tensors  # noqa: E402


def onnxruntime(model, inputs):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, inputs), strict=True))


def openvino(model, inputs):
    import openvino as ov

    core = ov.Core()
    read = core.read_model(str(model))
    # A port may have names of several values.
    given = lambda port: next(inputs[name] for name in port.names if name in inputs)
    if any(port.partial_shape.is_dynamic for port in read.inputs):
        read.reshape({port: list(given(port).shape) for port in read.inputs})
    settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": "1", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(read, "CPU", settings).create_infer_request()
    for port in request.model_inputs:
        request.set_tensor(port, ov.Tensor(np.ascontiguousarray(given(port))))

    def run():
        request.infer()
        return {port.any_name: request.get_output_tensor(at).data for at, port in enumerate(request.model_outputs)}

    return run


def ncnn(model, inputs):
    """ncnn has images and vectors, of float32 and without an axis for the batch."""
    import importlib.util
    import subprocess

    import ncnn as runtime

    if any(array.dtype != np.float32 or array.ndim < 2 or array.shape[0] != 1 for array in inputs.values()):
        raise ValueError("ncnn takes batches of one, of float32")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "model.onnx")
        copy.symlink_to(Path(model).resolve())
        shapes = ",".join("[" + ",".join(map(str, array.shape)) + "]f32" for array in inputs.values())
        # The package around the program imports PyTorch.
        program = Path(importlib.util.find_spec("pnnx").origin).with_name("pnnx")
        done = subprocess.run([program, "model.onnx", f"inputshape={shapes}", "fp16=0"], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        param = Path(folder, "model.ncnn.param")
        if not param.exists():
            said = done.stdout.strip().splitlines()
            raise ValueError(f"pnnx ends with {done.returncode}: {said[-1] if said else ''}")
        # What the converter could not write as layers of ncnn keeps the name that PyTorch has for it.
        kinds = {line.split()[0] for line in param.read_text().splitlines() if line.split()}
        unknown = sorted(kind for kind in kinds if "." in kind or ":" in kind)
        if unknown:
            raise ValueError(f"ncnn has no layer for {', '.join(unknown)}")
        net = runtime.Net()
        net.opt.num_threads, net.opt.use_vulkan_compute = 1, False
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = net.opt.use_bf16_storage = False
        if net.load_param(str(param)) or net.load_model(str(param.with_suffix(".bin"))):
            raise ValueError("ncnn cannot load what pnnx wrote")
    mats = [runtime.Mat(np.ascontiguousarray(array[0])).clone() for array in inputs.values()]
    names = net.output_names()

    def run():
        extractor = net.create_extractor()
        for name, mat in zip(net.input_names(), mats, strict=True):
            extractor.input(name, mat)
        found = {}
        for name in names:
            status, mat = extractor.extract(name)
            if status:
                raise ValueError(f"ncnn cannot compute {name}")
            found[name] = np.array(mat)[None]
        return found

    return run


def mnn(model, inputs):
    import subprocess

    import MNN
    from MNN import expr, nn

    kinds = {"float32": expr.float, "int32": expr.int, "int64": expr.int, "uint8": expr.uint8, "int8": expr.int8}
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "model.mnn")
        command = [sys.executable, "-m", "MNN.tools.mnnconvert", "-f", "ONNX", "--modelFile", Path(model).resolve(), "--MNNModel", made, "--bizCode", "x"]
        # It leaves files where it is started.
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if not made.exists():
            said = done.stdout.strip().splitlines()
            raise ValueError(f"the converter ends with {done.returncode}: {said[-1] if said else ''}")
        runtime = nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": 1},))
        listed = tensors_of(MNN, made)
        net = nn.load_module_from_file(str(made), *listed, runtime_manager=runtime)
    given = []
    for name in listed[0]:
        array = inputs[name]
        variable = expr.placeholder(list(array.shape), expr.NCHW, kinds[array.dtype.name])
        variable.write(array.astype(np.int32) if array.dtype == np.int64 else np.ascontiguousarray(array))
        given.append(variable)

    def run():
        found = net.forward(given)
        plain = [expr.convert(variable, expr.NCHW) if variable.data_format == expr.NC4HW4 else variable for variable in found]
        return {name: np.array(variable.read()) for name, variable in zip(listed[1], plain, strict=True)}

    return run


def tensors_of(package, path):
    """Names of inputs and outputs of a converted model."""
    interpreter = package.Interpreter(str(path))
    session = interpreter.createSession({"numThread": 1})
    return [list(interpreter.getSessionInputAll(session)), list(interpreter.getSessionOutputAll(session))]


def tvm(model, inputs):
    import onnx
    import tvm as runtime
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    loaded = onnx.load(str(model))
    names = [output.name for output in loaded.graph.output]
    module = from_onnx(loaded, {name: list(array.shape) for name, array in inputs.items()})
    machine = relax.VirtualMachine(relax.build(relax.get_pipeline("zero")(module), target=runtime.target.Target("llvm")), runtime.cpu())
    order = [parameter.name for parameter in module["main"].params]
    given = [runtime.runtime.tensor(inputs[name]) for name in order if name in inputs]

    def run():
        found = machine["main"](*given)
        several = [found] if hasattr(found, "numpy") else list(found)
        return dict(zip(names, (one.numpy() for one in several), strict=True))

    return run


def iree(model, inputs):
    import subprocess

    from iree import runtime
    from iree.compiler import tools

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "model.mlir")
        command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(model), "-o", str(text), "--opset-version", "17"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if not text.exists():
            said = done.stdout.strip().splitlines()
            raise ValueError(f"the importer ends with {done.returncode}: {said[-1] if said else ''}")
        compiled = tools.compile_file(str(text), target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=host"])
    config = runtime.Config("local-sync")
    module = runtime.VmModule.copy_buffer(config.vm_instance, compiled)
    bound = runtime.load_vm_module(module, config)
    function = next(getattr(bound, name) for name in module.function_names if not name.startswith("__") and "$" not in name)
    given = [runtime.asdevicearray(config.device, array) for array in inputs.values()]

    def run():
        found = function(*given)
        several = found if isinstance(found, (list, tuple)) else [found]
        return {f"result{at}": np.asarray(one.to_host()) for at, one in enumerate(several)}

    return run


def opencv(model, inputs):
    import cv2

    cv2.setNumThreads(1)
    # The engine of version 5. The older one would be taken without a word for a model that this one does not read.
    net = cv2.dnn.readNetFromONNX(str(model), engine=cv2.dnn.ENGINE_NEW)
    for name, array in inputs.items():
        net.setInput(array, name)
    names = net.getUnconnectedOutLayersNames()
    return lambda: dict(zip(names, net.forward(names), strict=True))


def nxrt(model, inputs):
    import nxrt as runtime

    session = runtime.InferenceSession(str(model))
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, inputs), strict=True))


def ggml(model, inputs):
    """A provider that ONNX Runtime loads as a plugin. By default it rounds weights to halves; what it leaves, the CPU provider runs."""
    import onnxruntime_ggml as plugin

    session = plugin.InferenceSession(str(model), {"device": "cpu", "threads": 1, "weights": "f32"})
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, inputs), strict=True))


def litert(model, inputs):
    """What onnx2tf makes of a model. It takes and leaves images channels last, so these are turned where they come and go, outside of what is
    timed."""
    import subprocess

    import onnx
    from ai_edge_litert.interpreter import Interpreter

    graph = onnx.load(str(model), load_external_data=False).graph
    with tempfile.TemporaryDirectory() as folder:
        shapes = [f"{name}:{','.join(map(str, array.shape))}" for name, array in inputs.items() if ":" not in name]
        # The converter writes what it simplifies over the file that it is given.
        given = shutil.copy(model, Path(folder) / "given.onnx")
        command = [Path(sys.executable).with_name("onnx2tf"), "-i", given, "-o", folder, "-n", "-coion"]
        command += ["-ois", *shapes] if shapes else []
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        made = sorted(Path(folder).glob("*_float32.tflite"))
        if not made:
            said = done.stdout.strip().splitlines()
            raise ValueError(f"the converter ends with {done.returncode}: {said[-1] if said else ''}")
        interpreter = Interpreter(str(made[0]), num_threads=1)
        interpreter.allocate_tensors()
    ports, results = interpreter.get_input_details(), interpreter.get_output_details()
    by_order = dict(zip((port["name"] for port in ports), inputs.values(), strict=True))
    for port in ports:
        array = inputs.get(port["name"], by_order[port["name"]])
        turned = array if array.shape == tuple(port["shape"]) else np.moveaxis(array, 1, -1)
        interpreter.set_tensor(port["index"], np.ascontiguousarray(turned).astype(port["dtype"]))
    extents = lambda port: tuple(dim.dim_value for dim in port.type.tensor_type.shape.dim)
    wanted = [extents(port) for port in graph.output]
    interpreter.invoke()
    found = [tuple(interpreter.get_tensor(port["index"]).shape) for port in results]
    back = [1 < len(want) == len(have) and have != want and have == (want[0], *want[2:], want[1])
            for have, want in zip(found, wanted, strict=True)]

    def run():
        interpreter.invoke()
        arrays = [interpreter.get_tensor(port["index"]) for port in results]
        return {port.name: np.moveaxis(array, -1, 1) if turn else array for port, array, turn in zip(graph.output, arrays, back, strict=True)}

    return run


RUNTIMES = {"onnxruntime": onnxruntime, "openvino": openvino, "opencv": opencv, "ncnn": ncnn, "mnn": mnn, "tvm": tvm, "iree": iree,
            "nxrt": nxrt, "ggml": ggml, "litert": litert}


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in RUNTIMES:
        sys.exit(__doc__)
    # Runtimes write to stdout as they like; answers go to where it went when the worker began.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    name, model, inputs, results = sys.argv[1:]
    try:
        run = RUNTIMES[name](Path(model), tensors.read(inputs))
        tensors.write(results, {key: np.array(array) for key, array in run().items()})
    except Exception as problem:  # whatever a runtime says to a model that it cannot run
        answers.write("@note " + " ".join(f"{type(problem).__name__}: {problem}".split())[:300] + "\n")
        return
    answers.write("@ready\n")
    for line in sys.stdin:
        times, begin = int(line), time.perf_counter()
        for _ in range(times):
            run()
        answers.write(f"@{(time.perf_counter() - begin) / times!r}\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Some runtimes crash when the process ends.
    os._exit(0)
