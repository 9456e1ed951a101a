#!/usr/bin/env python3
"""Compile CUDA C++ to PTX and CUBIN by NVRTC, without a GPU or a driver, and say what came out.

    tools/cuda_compile.py FOLDER [ARCH ...]

Compiles every .cu file of FOLDER for each ARCH (sm_80 and sm_90 if none is named) and writes .ptx and .cubin files beside it. Prints
one JSON object a line:

    {"file", "arch", "registers", "spill_bytes", "stack_bytes", "shared_bytes", "ptx": {...}, "sass": {...} or null}

"ptx" and "sass" count accesses by kind and width in bits: ld.global.128, st.shared.64, bar; in SASS also ld.local and st.local, which
are spills. SASS is read with nvdisasm, which takes half a second to start: so all files are compiled once more together, each in a
namespace, for one file to disassemble, joined.ARCH.cubin. Both come from the PyPI wheels that tools/requirements.txt pins; NVRTC is also found on the
library path, nvdisasm on PATH. Exit status: 0 all compiled, 1 some did not, 77 no NVRTC here.
"""

import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

NO_NVRTC = 77
# All kernels of the folder.
JOINED = "joined"


def in_wheels(pattern):
    """Files of the nvidia wheels that match, newest name last."""
    site = sysconfig.get_paths()["purelib"]
    return sorted(glob.glob(os.path.join(site, "nvidia", "*", pattern)))


def load_nvrtc():
    """The library, or None."""
    names = [n for n in in_wheels("lib/libnvrtc.so.*") if "alt" not in n and "builtins" not in n]
    for name in names[::-1] + ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def find_nvdisasm():
    """The program, or None."""
    found = in_wheels("bin/nvdisasm")
    return found[-1] if found else shutil.which("nvdisasm")


class Nvrtc:
    """The few calls of NVRTC that compile one source."""

    def __init__(self, library):
        self.library = library

    def text(self, program, what):
        """A result of the compilation: Log, PTX or CUBIN."""
        size = ctypes.c_size_t()
        suffix = "ProgramLog" if what == "Log" else what
        if getattr(self.library, f"nvrtcGet{suffix}Size")(program, ctypes.byref(size)) != 0 or size.value == 0:
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        if getattr(self.library, f"nvrtcGet{suffix}")(program, buffer) != 0:
            return b""
        return buffer.raw

    def compile(self, source, name, arch):
        """(ok, log, ptx, cubin)"""
        program = ctypes.c_void_p()
        self.library.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None)
        options = [f"--gpu-architecture={arch}", "--std=c++17", "--ptxas-options=-v"]
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        code = self.library.nvrtcCompileProgram(program, len(options), array)
        log = self.text(program, "Log").rstrip(b"\0").decode(errors="replace")
        ptx, cubin = self.text(program, "PTX").rstrip(b"\0"), self.text(program, "CUBIN")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return code == 0, log, ptx, cubin


def tally(counts, key):
    counts[key] = counts.get(key, 0) + 1


def ptx_counts(ptx):
    """Accesses of the PTX, e.g. {"ld.global.128": 4}."""
    counts = {}
    pattern = r"\b(ld|st)\.(global|shared|local)\S*?(?:\.v([24]))?\.[bus](8|16|32|64)\b"
    for verb, space, lanes, bits in re.findall(pattern, ptx.decode()):
        tally(counts, f"{verb}.{space}.{int(lanes or 1) * int(bits)}")
    for _ in re.findall(r"\bbar(?:rier)?\.(?:cta\.)?sync", ptx.decode()):
        tally(counts, "bar")
    return counts


def disassembled(nvdisasm, cubin):
    """The machine code of each kernel of a file, by its name."""
    text = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^\s*\.section\s+\.text\.(\w+).*$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def sass_counts(text):
    """Accesses of the machine code."""
    spaces = {"LDG": "ld.global", "STG": "st.global", "LDS": "ld.shared", "STS": "st.shared", "LDL": "ld.local", "STL": "st.local"}
    counts = {}
    for opcode, modifiers in re.findall(r"\b(LDG|STG|LDS|STS|LDL|STL)((?:\.\w+)*)\b", text):
        parts = modifiers.split(".")
        bits = next((b for b in ("128", "64") if b in parts), None)
        if bits is None:
            bits = "8" if {"U8", "S8"} & set(parts) else "16" if {"U16", "S16"} & set(parts) else "32"
        tally(counts, f"{spaces[opcode]}.{bits}")
    for _ in re.findall(r"\bBAR\.SYNC", text):
        tally(counts, "bar")
    return counts


def figure(pattern, log):
    """A number of ptxas's report; 0 where it says nothing of it."""
    return sum(int(n) for n in re.findall(pattern, log))


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder, archs = arguments[0], arguments[1:] or ["sm_80", "sm_90"]
    library = load_nvrtc()
    if library is None:
        print("cuda_compile: no NVRTC: pip install the wheels of tools/requirements.txt", file=sys.stderr)
        return NO_NVRTC
    nvrtc, nvdisasm, failed, found = Nvrtc(library), find_nvdisasm(), False, []
    sources = {path: Path(path).read_bytes() for path in sorted(glob.glob(os.path.join(folder, "*.cu")))}
    for path, source in sources.items():
        for arch in archs:
            ok, log, ptx, cubin = nvrtc.compile(source, os.path.basename(path), arch)
            if not ok or not cubin:
                print(f"cuda_compile: {path} for {arch}:\n{log}", file=sys.stderr)
                failed = True
                continue
            stem = f"{path[:-3]}.{arch}"
            Path(stem + ".ptx").write_bytes(ptx)
            Path(stem + ".cubin").write_bytes(cubin)
            found.append({
                "file": os.path.basename(path),
                "arch": arch,
                "registers": figure(r"Used (\d+) registers", log),
                "spill_bytes": figure(r"(\d+) bytes spill", log),
                "stack_bytes": figure(r"(\d+) bytes stack frame", log),
                "shared_bytes": figure(r"(\d+) bytes smem", log),
                "ptx": ptx_counts(ptx),
                "sass": None,
            })
    if nvdisasm and found and not failed:
        together = b"".join(b"namespace k%d {\n%s}\n" % (at, source) for at, source in enumerate(sources.values()))
        for arch in archs:
            ok, log, _, cubin = nvrtc.compile(together, JOINED, arch)
            if not ok or not cubin:
                print(f"cuda_compile: all files together for {arch}:\n{log}", file=sys.stderr)
                return 1
            place = os.path.join(folder, f"{JOINED}.{arch}.cubin")
            Path(place).write_bytes(cubin)
            code = disassembled(nvdisasm, place)
            for row in found:
                if row["arch"] == arch:
                    kernels = re.findall(r"__global__[^{;]*?(\w+)\(const", sources[os.path.join(folder, row["file"])].decode())
                    row["sass"] = sass_counts("".join(code[kernel] for kernel in kernels))
    for row in found:
        print(json.dumps(row))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
