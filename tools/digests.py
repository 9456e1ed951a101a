#!/usr/bin/env python3
"""Digest what `optimize` writes of each model of a corpus, for every target, so that a change of the code can be shown to change no byte.

    tools/digests.py [--corpus CORPUS] [--work DIR] [--bin target/release/relayout] -o before.json
    tools/digests.py [--corpus CORPUS] [--work DIR] [--bin target/release/relayout] --against before.json

CORPUS, testdata/corpus by default, holds manifest.json, the graphs and hydrate.py, which fills in their weights; DIR keeps the filled models between runs. Target
ort-cpu is taken at blocks of 8 and of 16 channels. With --against every difference is listed, with the moves and bytes that both
reports say; exit status 1 if there is one.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

TARGETS = {
    "onnx": ["--target", "onnx"],
    "ort-cpu/8": ["--target", "ort-cpu", "--block", "8"],
    "ort-cpu/16": ["--target", "ort-cpu", "--block", "16"],
    **{name: ["--target", name] for name in ("nhwc", "cuda-tensorcore", "x86-avx512", "x86-avx2", "arm-neon", "cuda-dp4a")},
}


def models(corpus, work, only, core):
    """The filled models that were asked for, by name."""
    manifest = json.loads((corpus / "manifest.json").read_text())
    for model in manifest["models"]:
        name = model["name"]
        if (only and name not in only) or (core and not model["core"]):
            continue
        path = work / f"{name}.onnx"
        if not path.exists():
            part = path.with_suffix(".part")
            subprocess.run([sys.executable, corpus / "hydrate.py", corpus / model["file"], part], check=True, stdout=subprocess.DEVNULL)
            part.rename(path)
        yield name, path


def digest(binary, path, arguments):
    """What is written of a model, and what the report says of it."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [binary, "optimize", path, "-o", "-", "--report", report.name, *arguments]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        hashed = hashlib.blake2b(digest_size=16)
        while block := run.stdout.read(1 << 20):
            hashed.update(block)
        error = run.stderr.read().decode()
        if run.wait() != 0:
            return {"digest": None, "error": error.strip().splitlines()[-1:]}
        said = json.loads(pathlib.Path(report.name).read_text() or "{}")
    return {"digest": hashed.hexdigest(), "after": said["after"], "solve": said["solve"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, default=pathlib.Path("testdata/corpus"))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("target/corpus"), help="folder for the filled models")
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--only", action="append", help="a model; may be given several times")
    parser.add_argument("--core", action="store_true", help="the core selection of the corpus")
    parser.add_argument("--target", action="append", choices=TARGETS, help="a target; all if none is given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--against", type=pathlib.Path, help="digests to compare with")
    parser.add_argument("-o", "--out", type=pathlib.Path, help="file to write the digests to")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    names = options.target or list(TARGETS)
    found = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        chosen = models(options.corpus, options.work, options.only, options.core)
        running = {
            f"{model} {target}": pool.submit(digest, options.bin, path, TARGETS[target])
            for model, path in chosen
            for target in names
        }
        for key, result in running.items():
            found[key] = result.result()
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    failed = [key for key, value in found.items() if value["digest"] is None]
    for key in failed:
        print(f"{key}: {found[key]['error']}")
    differ = []
    if options.against:
        before = json.loads(options.against.read_text())
        differ = [key for key, value in found.items() if before.get(key) != value]
        for key in differ:
            print(f"{key}:\n  was {before.get(key)}\n  is  {found[key]}")
    print(f"{len(found)} outputs, {len(failed)} failed, {len(differ)} differ")
    sys.exit(bool(differ) or bool(failed))


if __name__ == "__main__":
    main()
