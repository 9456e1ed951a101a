"""The project's kernels on a GPU: CUDA source of the bundle, compiled by NVRTC and started by the driver.

Both libraries are called by ctypes, so nothing is needed beside what PyTorch brings and the driver. Compiling needs no GPU.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from runner.errors import RunnerError
from runner.paths import inside

_NVRTC_NAMES = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12")


def _nvrtc() -> ctypes.CDLL:
    """NVRTC of the wheels that PyTorch depends on, or of the system."""
    site = Path(torch.__file__).resolve().parents[1]
    found = sorted(glob.glob(str(site / "nvidia" / "*" / "lib" / "libnvrtc.so.*")))
    in_wheels = [name for name in found if "alt" not in os.path.basename(name)]
    for name in [*reversed(in_wheels), *_NVRTC_NAMES]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RunnerError("no NVRTC to compile kernels with; install the wheel nvidia-cuda-nvrtc that goes with this PyTorch")


def compile_source(source: str, name: str, arch: str) -> bytes:
    """Machine code for `arch` (`sm_90`). Fails with `RunnerError` and the compiler's words."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None) != 0:
        raise RunnerError(f"NVRTC refused the source {name}")
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17"]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    try:
        if status != 0:
            log = _result(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            raise RunnerError(f"{name} does not compile for {arch}:\n{log}")
        return _result(nvrtc, program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _result(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    if getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) != 0:
        raise RunnerError(f"NVRTC has no {what} to give")
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


@dataclass(frozen=True)
class Launch:
    """How a kernel is started, as `kernels/ID.json` says it: the fields of the same names in docs/kernels.md."""

    kernel: str
    source: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    alignment: int
    source_bytes: int
    destination_bytes: int
    arguments: tuple[tuple[int, int], ...]
    """What follows the two pointers: bytes (4 or 8) and value."""


def read_launch(path: Path) -> Launch:
    """Reads a launch; `source` is the text of the kernel beside it. Fails with `RunnerError`."""
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        source = inside(path.parent, data.get("source", f"{path.stem}.cu")).read_text()
        return Launch(
            kernel=data["kernel"],
            source=source,
            grid=tuple(data["grid"]),
            block=tuple(data["block"]),
            alignment=data["alignment"],
            source_bytes=data["source_bytes"],
            destination_bytes=data["destination_bytes"],
            arguments=tuple((argument["bytes"], argument["value"]) for argument in data["arguments"]),
        )
    except (OSError, ValueError, KeyError) as error:
        raise RunnerError(f"{path} is no launch of a kernel: {error!r}; write the bundle anew") from error


class Kernel:
    """A compiled kernel with its launch."""

    def __init__(self, launch: Launch, function: ctypes.c_void_p, driver: ctypes.CDLL) -> None:
        self._launch, self._function, self._driver = launch, function, driver
        self.alignment = launch.alignment

    def run(self, source: Tensor, destination: Tensor) -> None:
        """Starts the kernel on the current stream, so that a CUDA graph captures it."""
        launch = self._launch
        have = source.numel() * source.element_size(), destination.numel() * destination.element_size()
        if have != (launch.source_bytes, launch.destination_bytes):
            raise RunnerError(
                f"kernel {launch.kernel} moves {launch.source_bytes} B to {launch.destination_bytes} B, the tensors have {have}; "
                "write the bundle with the sizes that are run (--dim NAME=SIZE)"
            )
        values = [ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(destination.data_ptr())]
        values += [(ctypes.c_uint32 if size == 4 else ctypes.c_uint64)(value) for size, value in launch.arguments]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _check(
            self._driver,
            self._driver.cuLaunchKernel(self._function, *launch.grid, *launch.block, 0, stream, pointers, None),
            launch.kernel,
        )


class Kernels:
    """The kernels of a folder, each compiled once, for the current GPU."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[str, Kernel] = {}
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RunnerError(f"no CUDA driver: {error}; run with --device cpu") from error
        torch.empty(1, device="cuda")  # Makes the context that modules are loaded into.
        major, minor = torch.cuda.get_device_capability()
        self._arch = f"sm_{major}{minor}"

    def get(self, name: str) -> Kernel:
        """A kernel by the identifier that the node has."""
        if name not in self._loaded:
            launch = read_launch(inside(self._folder, f"{name}.json"))
            code = compile_source(launch.source, launch.kernel, self._arch)
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            _check(self._driver, self._driver.cuModuleLoadData(ctypes.byref(module), code), name)
            _check(self._driver, self._driver.cuModuleGetFunction(ctypes.byref(function), module, launch.kernel.encode()), name)
            self._loaded[name] = Kernel(launch, function, self._driver)
        return self._loaded[name]


def _check(driver: ctypes.CDLL, status: int, what: str) -> None:
    if status != 0:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        raise RunnerError(f"CUDA driver, kernel {what}: {(text.value or b'unknown error').decode()}")
