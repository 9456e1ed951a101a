#!/usr/bin/env python3
"""Does every release of ONNX Runtime run what target `ort-cpu` writes for it, with the results of the original?

    python tools/versions.py [--bin target/release/relayout] [--releases 1.24.4,1.32.0] [--models a,b | --core | --files a.onnx b.onnx]
                             [--corpus FOLDER] [--work FOLDER]

Each release is fetched from PyPI into .relayout/releases. For each the models are optimized with `--runtime` and held against the
originals by `relayout verify`, in that release. A second file is made without `--runtime`, for the newest release. It has to compute the
same, or to say in its metadata that it needs a newer release; then this one has to refuse it. The folder of the corpus is that of
tools/on_load.py. Prints a line for each release; exit status 1 if one failed. Needs onnx, pip and the network.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from on_load import CORPUS, ROOT, WORK, models

HOME = ROOT / ".relayout/releases"
# The last patch of each, as PyPI had them on 2026-11-30. Older ones lack what `relayout verify` asks of the runtime.
RELEASES = "1.24.4,1.25.1,1.26.0,1.27.0,1.28.0,1.29.0,1.30.0,1.31.1,1.32.0"
NEEDS = "relayout.needs"


def library(release):
    """The shared library of a release, fetched once."""
    folder = HOME / release
    if not folder.exists():
        part = HOME / f"{release}.part"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", part, f"onnxruntime=={release}"]
        subprocess.run(command, check=True)
        part.rename(folder)
    return next((folder / "onnxruntime/capi").glob("libonnxruntime.so.*"))


def optimized(bin, source, out, *options):
    subprocess.run([bin, "optimize", source, "-o", out, "--target", "ort-cpu", "--quiet", *options], check=True)
    return {prop.key: prop.value for prop in onnx.load(out, load_external_data=False).metadata_props}.get(NEEDS)


def is_newer(needed, release):
    numbers = lambda version: [int(part) for part in version.split(".")[:2]]
    return numbers(needed.removeprefix("ONNX Runtime ")) > numbers(release)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--releases", default=RELEASES)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--models")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--files", type=Path, nargs="+", default=[])
    args = parser.parse_args()
    HOME.mkdir(parents=True, exist_ok=True)
    libraries = {release: library(release) for release in args.releases.split(",")}
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        sources = [(name, source, Path(folder) / f"{name}.onnx") for name, source in models(args)]
        needs = {name: optimized(args.bin, source, newest) for name, source, newest in sources}
        for release, path in libraries.items():
            same, refused = 0, 0
            for name, source, newest in sources:
                own = Path(folder) / "own.onnx"
                for file, needed in ((own, optimized(args.bin, source, own, "--runtime", release)), (newest, needs[name])):
                    told = subprocess.run([args.bin, "verify", source, file], capture_output=True, text=True,
                                          env=os.environ | {"ORT_DYLIB_PATH": str(path)})
                    too_old = needed is not None and is_newer(needed, release)
                    if told.returncode != (1 if too_old else 0) or (too_old and f"needs {needed} or newer" not in told.stderr):
                        failed.append(f"{release}: {name}: {(told.stderr or told.stdout).strip()}")
                    elif file == own:
                        same += 1
                    else:
                        refused += too_old
            print(f"{release}: {same} of {len(sources)} models made for it compute the same; of those made for the newest it is too old for {refused}", flush=True)
    print("\n".join(failed))
    print(f"{len(failed)} failed")
    return 1 if failed or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
