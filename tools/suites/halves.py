#!/usr/bin/env python3
"""Networks of the corpus in halves, as ONNX Runtime's converter writes them: what each target makes of them is proved, or unchanged.

    tools/suites/halves.py --bin target/debug/relayout [--most MB] [--targets onnx,ort-cpu,ort-nhwc] [FILE...]

Files are those of target/corpus, or those that are named. What the converter refuses is named. Exit status 1 if a result is not proved, or
if nothing of it is, so that the model comes out as it was.
"""
import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def halves(source: Path, to: Path) -> str | None:
    """Writes the model in halves; why not, if the converter does not."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    try:
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=False, disable_shape_infer=False), to)
    except Exception as error:  # Whatever the converter ends with.
        return " ".join(str(error).split())[:160]
    return None


def problem(binary: Path, model: Path, target: str, out: Path) -> str | None:
    """What is wrong with the result for a target."""
    command = [binary, "optimize", model, "-o", out, "--force", "--target", target]
    run = subprocess.run(command, capture_output=True, text=True)
    said = (run.stdout + run.stderr).strip()
    unproved = "UNPROVED" in said or "nothing of the result is proved" in said
    return said[:400] if run.returncode or unproved else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--most", type=float, default=60, help="megabytes of a model")
    parser.add_argument("--targets", default="onnx,ort-cpu,ort-nhwc")
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    files = given.files or sorted((ROOT / "target/corpus").glob("*.onnx"))
    if not files:
        sys.exit("no model was found: bench/moves.py fills target/corpus")
    wrong = results = 0
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder, "model.onnx"), Path(folder, "out.onnx")
        for source in files:
            if source.stat().st_size > given.most * 1e6:
                print(f"{source.stem}: skipped, larger than {given.most:g} MB")
                continue
            if refused := halves(source, model):
                print(f"{source.stem}: skipped, the converter ends with: {refused}")
                continue
            for target in given.targets.split(","):
                results += 1
                if why := problem(given.bin, model, target, out):
                    wrong += 1
                    print(f"{source.stem} for {target}: {why}", flush=True)
    print(f"{results} results, {wrong} not proved")
    return int(wrong > 0 or not results)


if __name__ == "__main__":
    sys.exit(main())
