#!/usr/bin/env python3
"""Other tools before and after the optimizer: what is left of what it takes away, and what breaks.

    python bench/orders.py [--tools onnxsim,onnxslim,onnxscript,onnxoptimizer,ort,quantize] [--target onnx] [--models a,b | --core]

For each model and tool: the Transposes and what they write in a run (ONNX Runtime, rewrites off) of the model, of what the optimizer makes
of it, of what the tool makes of it, of the optimizer behind the tool, and of the tool behind the optimizer; and whether each computes
what the model computes, or, behind a tool that quantizes, what that tool alone leaves. A tool that is not installed is named and left
out. Exit status 1 if a result is wrong or does not load.
"""
import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

import runs

# How far apart results may be, as a part of the largest number.
NEAR = 1e-3


def onnxsim(source, made):
    import onnxsim as tool

    model, _ = tool.simplify(onnx.load(source))
    onnx.save(model, made)


def onnxslim(source, made):
    import onnxslim as tool

    onnx.save(tool.slim(onnx.load(source)), made)


def onnxscript(source, made):
    import onnxscript.optimizer as tool

    onnx.save(tool.optimize(onnx.load(source)), made)


def onnxoptimizer(source, made):
    import onnxoptimizer as tool

    onnx.save(tool.optimize(onnx.load(source)), made)


def ort_offline(source, made):
    options = ort.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, 4
    options.optimized_model_filepath = str(made)
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


class Fed:
    """Inputs for a tool that calibrates."""

    def __init__(self, feeds):
        self.left = [feeds]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantize(source, made, feeds):
    from onnxruntime.quantization import QuantFormat, quantize_static

    quantize_static(str(source), str(made), Fed(feeds), quant_format=QuantFormat.QDQ)


TOOLS = {"onnxsim": onnxsim, "onnxslim": onnxslim, "onnxscript": onnxscript, "onnxoptimizer": onnxoptimizer,
         "ort": ort_offline, "quantize": quantize}


def moved(path, feeds):
    """Transposes that run, the bytes that they write, and the results."""
    model = onnx.load(path)
    outputs = [value.name for value in model.graph.output]
    turned = [node.output[0] for node in model.graph.node if node.op_type == "Transpose"]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in turned if name not in outputs)
    options = ort.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = dict(zip((value.name for value in session.get_outputs()), session.run(None, feeds), strict=True))
    plain = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(outputs, feeds)
    return len(turned), sum(found[name].nbytes for name in turned), plain


def apart(wanted, got):
    """How far results are apart, as a part of the largest number."""
    if len(wanted) != len(got) or any(a.shape != b.shape for a, b in zip(wanted, got, strict=False)):
        return np.inf
    far = [np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0) / max(1e-6, np.abs(a).max(initial=0)) for a, b in zip(wanted, got)]
    return float(max(far, default=0))


class Orders:
    """A model, and what each order of the tools makes of it."""

    def __init__(self, args, name, path, feeds):
        self.args, self.name, self.path, self.feeds, self.wrong = args, name, path, feeds, 0
        self.count, self.bytes, self.wanted = moved(path, feeds)

    def ours(self, source, made):
        command = [self.args.bin, "optimize", "-q", source, "-o", made, "--target", self.args.target]
        status, said, _ = runs.process(command, 600)
        if status:
            raise RuntimeError(said[:200])

    def tool(self, tool, source, made):
        more = (self.feeds,) if tool == "quantize" else ()
        TOOLS[tool](source, made, *more)

    def said(self, steps, wanted, near):
        """A cell: what steps make of the model."""
        source = self.path
        try:
            for at, step in enumerate(steps):
                made = self.args.work / f"order{at}.onnx"
                made.unlink(missing_ok=True)
                self.ours(source, made) if step == "ours" else self.tool(step, source, made)
                source = made
            count, size, got = moved(source, self.feeds)
        except Exception as error:  # noqa: BLE001  # whatever a tool says
            self.wrong += 1
            return "breaks: " + " ".join(str(error).split())[:70], None
        far = apart(wanted, got) if wanted is not None else 0.0
        self.wrong += far > near
        return f"{count}, {size / 1e6:.2f}" + (f", off by {far:.1g}" if far > near else ""), got

    def row(self, tool):
        # Quantized numbers are held against what the tool alone makes of them: a step of them may fall the other way.
        near = 0.1 if tool == "quantize" else NEAR
        alone, got = self.said([tool], None if tool == "quantize" else self.wanted, near)
        wanted = got if tool == "quantize" else self.wanted
        ours, _ = self.said(["ours"], self.wanted, NEAR)
        behind, _ = self.said([tool, "ours"], wanted, near)
        before, _ = self.said(["ours", tool], wanted, near)
        return f"| {self.name} | {tool} | {self.count}, {self.bytes / 1e6:.2f} | {ours} | {alone} | {behind} | {before} |"


def main():
    parser = runs.options(argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter))
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--target", default="onnx")
    args = parser.parse_args()
    args.work = Path(args.work)
    asked = args.tools.split(",")
    lacking = [tool for tool in asked if tool.startswith("onnx") and importlib.util.find_spec(tool) is None]
    print(f"not installed: {', '.join(lacking)}" if lacking else "", end="\n" if lacking else "")
    program = subprocess.run([args.bin, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    print(f"{program}, onnxruntime {ort.__version__}, onnx {onnx.__version__}; Transposes and MB that they write, target {args.target}\n")
    print("| model | tool | as exported | ours | the tool | the tool, then ours | ours, then the tool |\n|---|---|---|---|---|---|---|")
    wrong, rows = 0, []
    for name, path, feeds in runs.models(args):
        held = Orders(args, name, path, feeds())
        for tool in (tool for tool in asked if tool not in lacking):
            rows.append(held.row(tool))
            print(rows[-1], flush=True)
        wrong += held.wrong
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "wrong": wrong}, indent=1) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
