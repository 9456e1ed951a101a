#!/usr/bin/env python3
"""Makes libraries with the names of CUDA's whose calls do nothing, so that ONNX Runtime's CUDA provider loads a model without a GPU.

    python tools/providers/empty_driver.py libonnxruntime_providers_cuda.so FOLDER

What a session makes of a file is decided while it is loaded: which nodes the provider takes, which layouts they get, which Transposes are left,
and what is fused. That asks the device for no more than its properties and memory. Here the memory is the host's, kernels are not
started, and so no result is worth anything: a graph is loaded and saved, and never run.
The names of the calls are those that the library asks for. Needs gcc and nm.
"""
import collections
import re
import subprocess
import sys
from pathlib import Path

# What is asked before a graph is there: a device of compute capability 9.0, memory, versions. All other calls return 0, which is success.
ANSWERS = {
    "cudaGetDeviceCount": "(int *n) { *n = 1; return 0; }",
    "cudaGetDevice": "(int *n) { *n = 0; return 0; }",
    "cudaMalloc": "(void **p, size_t n) { return posix_memalign(p, 256, n ? n : 256); }",
    "cudaMallocHost": "(void **p, size_t n) { return posix_memalign(p, 256, n ? n : 256); }",
    "cudaHostAlloc": "(void **p, size_t n) { return posix_memalign(p, 256, n ? n : 256); }",
    "cudaMallocFromPoolAsync": "(void **p, size_t n) { return posix_memalign(p, 256, n ? n : 256); }",
    "cudaFree": "(void *p) { free(p); return 0; }",
    "cudaFreeAsync": "(void *p) { free(p); return 0; }",
    "cudaFreeHost": "(void *p) { free(p); return 0; }",
    "cudaMemcpy": "(void *to, void *from, size_t n) { memcpy(to, from, n); return 0; }",
    "cudaMemcpyAsync": "(void *to, void *from, size_t n) { memcpy(to, from, n); return 0; }",
    "cudaMemset": "(void *to, int byte, size_t n) { memset(to, byte, n); return 0; }",
    "cudaMemsetAsync": "(void *to, int byte, size_t n) { memset(to, byte, n); return 0; }",
    "cudaMemGetInfo": "(size_t *free, size_t *all) { *free = *all = 80ul << 30; return 0; }",
    "cudaDriverGetVersion": "(int *n) { *n = 13000; return 0; }",
    "cudaRuntimeGetVersion": "(int *n) { *n = 13000; return 0; }",
    "cudaDeviceGetAttribute": "(int *n, int what) { *n = what == 75 ? 9 : what == 76 ? 0 : what == 10 ? 32 : 1024; return 0; }",
    # Fields of cudaDeviceProp by their offsets in version 13: memory, warp size, threads, compute capability, processors.
    "cudaGetDeviceProperties": "(char *p) { memset(p, 0, 700); *(size_t *)(p + 288) = 80ul << 30; *(int *)(p + 308) = 32;"
                               " *(int *)(p + 320) = 1024; *(int *)(p + 360) = 9; *(int *)(p + 384) = 132; return 0; }",
    "cudaPointerGetAttributes": "(char *p) { memset(p, 0, 32); return 0; }",
    "__cudaRegisterFatBinary": "(void) { return (long)handle; }",
    "cudnnGetVersion": "(void) { return 91500; }",
}
# Calls that leave text.
TEXTS = r"cu\w+Get(Error|Status)(String|Name)"


def asked(library):
    """The calls that a library asks for, by the library that has them, with their version."""
    found = collections.defaultdict(dict)
    listed = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    for name in (line.split()[-1] for line in listed.splitlines()):
        call, _, version = name.partition("@")
        if version.startswith("libcu"):
            found[version][call] = version
        elif re.fullmatch(r"cu[A-Z]\w+", call):
            found["libcuda.so.1"][call] = None
    # Those of cuDNN are looked up by name at run time.
    names = set(re.findall(rb"\0(cudnn[A-Z][A-Za-z0-9_]+)\0", Path(library).read_bytes()))
    found["libcudnn.so.9"] = {name.decode(): None for name in names}
    found.setdefault("libcurand.so.10", {})
    return found


def source(calls):
    lines = ["#include <stdlib.h>", "#include <string.h>", "static long handle[4096];"]
    for call in sorted(calls):
        if call in ANSWERS:
            lines.append(f"long {call}{ANSWERS[call]}")
        elif re.fullmatch(TEXTS, call):
            lines.append(f'long {call}(void) {{ return (long)"nothing is run"; }}')
        elif "Create" in call:
            lines.append(f"long {call}(void **p) {{ *p = handle; return 0; }}")
        else:
            lines.append(f"long {call}(void) {{ return 0; }}")
    return "\n".join(lines) + "\n"


def main(library, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, calls in asked(library).items():
        (folder / f"{name}.c").write_text(source(calls))
        command = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-w", f"{name}.c", "-o", name, f"-Wl,-soname,{name}"]
        if name not in ("libcuda.so.1", "libcudnn.so.9"):
            (folder / f"{name}.map").write_text(f"{name} {{ global: *; }};\n")
            command.append(f"-Wl,--version-script={name}.map")
        subprocess.run(command, check=True, cwd=folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
