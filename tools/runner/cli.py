"""The commands."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from runner.bundle import read_bundle
from runner.compare import differences, run_original, seeded_inputs
from runner.criteria import Criterion
from runner.errors import RunnerError
from runner.execute import Runner, execute
from runner.variant import DTYPES, Variant


def main(arguments: list[str]) -> int:
    """Runs a command. Exit status: 0 done, 1 wrong results or an error, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except RunnerError as error:
        print(f"runner: {error}", file=sys.stderr)
        return 1


def _say(text: str) -> None:
    """A line of progress."""
    print(f"runner: {text}", file=sys.stderr, flush=True)


def _load(options: argparse.Namespace) -> Runner:
    start = time.monotonic()
    bundle = read_bundle(options.bundle)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise RunnerError("no GPU that PyTorch can use is here; run with --device cpu")
    runner = Runner(bundle, options.device, options.moves, capi=options.capi)
    _say(
        f"{bundle.name or options.bundle}: {len(bundle.nodes)} nodes, {bundle.moves} moves, ready after {time.monotonic() - start:.1f} s"
    )
    without = [node for node in bundle.nodes if node.no_kernel is not None]
    if without and options.device == "cuda" and options.moves == "kernels":
        _say(f"{len(without)} moves have no CUDA kernel and are left to torch, the first: {without[0]}: {without[0].no_kernel}")
    return runner


def _execute(runner: Runner, arrays: dict[str, np.ndarray], graph: bool) -> dict[str, np.ndarray]:
    unknown = sorted(set(arrays) - {value.name for value in runner.bundle.inputs})
    if unknown:
        raise RunnerError(f"no input to give is called {', '.join(unknown)}; inputs with a default can't be given")
    missing = [value.name for value in runner.bundle.inputs if value.name not in arrays]
    if missing:
        raise RunnerError(f"no array for the inputs {', '.join(missing)}; name the arrays of the file so")
    inputs = runner.prepare([torch.from_numpy(np.array(arrays[value.name], order="C")) for value in runner.bundle.inputs])
    start = time.monotonic()
    outputs = execute(runner, inputs, graph)
    found = {value.name: x.cpu().numpy() for value, x in zip(runner.bundle.outputs, outputs)}
    _say(f"executed after {time.monotonic() - start:.2f} s")
    print(f"moves: {runner.moves_run} executed, as the manifest counts")
    return found


def _run(options: argparse.Namespace) -> int:
    runner = _load(options)
    with np.load(options.inputs) as file:
        arrays = dict(file)
    np.savez(options.outputs, **_execute(runner, arrays, not options.no_graph))
    return 0


def _compare(options: argparse.Namespace) -> int:
    runner = _load(options)
    if options.inputs:
        with np.load(options.inputs) as file:
            arrays = dict(file)
    else:
        arrays = seeded_inputs(runner.bundle.inputs, options.seed, dict(options.dim))
    found = _execute(runner, arrays, not options.no_graph)
    _say("the original in ONNX Runtime")
    worst = 0.0
    for off in differences(found, run_original(options.model, arrays)):
        print(f"{off.name}: largest difference {off.largest:.2e} of the largest magnitude, rms {off.rms:.2e}")
        worst = max(worst, off.largest)
    good = worst <= options.tolerance
    print(f"{'same' if good else 'DIFFERENT'}: {worst:.2e}, tolerance {options.tolerance:.0e}")
    return 0 if good else 1


def _prepare(options: argparse.Namespace) -> int:
    from runner.prepare import prepare

    failed = 0
    for model in options.models:
        _say(f"{model}")
        try:
            prepare(model, options.output / model.stem, options.batch, options.dtype, options.relayout)
        except RunnerError as error:
            print(f"runner: {error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def _bench(options: argparse.Namespace) -> int:
    from runner.bench import Settings, bench, table

    settings = Settings(options.device, _rounds(options), options.seconds, not options.no_compile, options.capi)
    result = bench(options.folders, settings)
    print(table(result["models"]))
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    return _verdict(result)


def _calibrate(options: argparse.Namespace) -> int:
    from runner.calibrate import calibrate

    calibrate(options.folder, options.device, options.capi)
    return 0


def _figures(options: argparse.Namespace) -> int:
    from runner.bench import Settings, table
    from runner.figures import MODELS, VARIANTS, Plan, figures

    names = tuple(options.only or MODELS)
    settings = Settings(options.device, _rounds(options), options.seconds, not options.no_compile, options.capi)
    plan = Plan(options.models, names, tuple(options.variant or VARIANTS), options.output, options.relayout, options.prepared)
    result = figures(plan, settings)
    print(table(result["models"]))
    for criterion in result.get("criteria", []):
        print(Criterion(**criterion))
    return _verdict(result)


def _permute(options: argparse.Namespace) -> int:
    from runner.permute import DTYPES as TYPES, HEAD, line, permute

    result = permute(
        options.output, options.relayout, tuple(options.dtype or TYPES), options.device, _rounds(options), options.capi
    )
    print("\n".join([HEAD, *map(line, result["rows"])]))
    (options.output / "permute.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


def _rounds(options: argparse.Namespace) -> int:
    return options.rounds or (20 if options.device == "cuda" else 3)


def _verdict(result: dict[str, Any]) -> int:
    """1 if a model gave wrong results or none."""
    bad = ("WRONG", "FAILED")
    return 1 if any(note.startswith(bad) for model in result["models"] for note in model["notes"]) else 0


def _dim(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE")
    return name, int(size)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="runner", description="Executes bundles of relayout with PyTorch.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="execute a bundle on arrays of a file")
    run.set_defaults(command=_run)
    run.add_argument("--inputs", type=Path, required=True, metavar="FILE", help="arrays by the names of inputs (.npz)")
    run.add_argument(
        "--outputs", type=Path, required=True, metavar="FILE", help="file to write, arrays by the names of outputs (.npz)"
    )
    compare = commands.add_parser(
        "compare", help="hold a bundle against ONNX Runtime on the original; exit status 1 if they differ"
    )
    compare.set_defaults(command=_compare)
    compare.add_argument("--model", type=Path, required=True, metavar="FILE", help="the original model (.onnx)")
    compare.add_argument(
        "--tolerance", type=float, default=1e-4, help="largest difference over the largest magnitude of an output (%(default)s)"
    )
    compare.add_argument("--inputs", type=Path, metavar="FILE", help="arrays in place of seeded ones (.npz)")
    compare.add_argument("--seed", type=int, default=0)
    compare.add_argument("--dim", type=_dim, action="append", default=[], metavar="NAME=SIZE", help="size of a symbolic extent")
    calibrate = commands.add_parser("calibrate", help="measure what `relayout calibrate --target cuda-tensorcore` asks for")
    calibrate.set_defaults(command=_calibrate)
    calibrate.add_argument("folder", type=Path, metavar="DIR", help="folder with cases.json; times.json is written to it")
    for command in (run, compare, calibrate, *_bench_parsers(commands)):
        command.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
        command.add_argument(
            "--capi", type=Path, metavar="FILE", help="library of relayout-capi, by default that of target/release"
        )
    for command in (run, compare):
        command.add_argument("bundle", type=Path, metavar="DIR", help="folder that relayout optimize --emit bundle wrote")
        command.add_argument("--moves", choices=("kernels", "torch"), default="kernels", help="who executes moves (%(default)s)")
        command.add_argument("--no-graph", action="store_true", help="on a GPU, do not capture a CUDA graph")
    return parser


def _bench_parsers(commands: argparse._SubParsersAction) -> tuple[argparse.ArgumentParser, ...]:
    """Those of `prepare`, `bench`, `figures` and `permute`; gives those that run something on the device."""
    prepare = commands.add_parser(
        "prepare", help="make what bench runs: a folder a model, with bundles of the original and of the optimized"
    )
    prepare.set_defaults(command=_prepare)
    prepare.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="original models (.onnx), of float32 and batch 1")
    prepare.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    prepare.add_argument("--batch", type=int, metavar="N", help="samples at a time; by default as the model has it")
    prepare.add_argument("--dtype", choices=DTYPES, default="fp32")
    bench = commands.add_parser("bench", help="time originals against what became of them")
    bench.set_defaults(command=_bench)
    bench.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="folders that prepare made, one a model")
    bench.add_argument("--json", type=Path, required=True, metavar="FILE", help="where all figures are written")
    figures = commands.add_parser("figures", help="prepare and bench all models of docs/gpu.md, and hold them against what is asked")
    figures.set_defaults(command=_figures)
    figures.add_argument("--models", type=Path, required=True, metavar="DIR", help="folder of the originals, NAME.onnx each")
    figures.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for figures.json and what it needs")
    figures.add_argument("--only", action="append", metavar="NAME", help="this model; may be repeated")
    figures.add_argument(
        "--variant", type=_variant, action="append", metavar="DTYPE-BATCH", help="this variant, such as fp16-32; may be repeated"
    )
    figures.add_argument("--prepared", action="store_true", help="take what an earlier run prepared in DIR as it is")
    permute = commands.add_parser("permute", help="time permutations beside copies of the same bytes and beside PyTorch")
    permute.set_defaults(command=_permute)
    permute.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for permute.json and what it needs")
    permute.add_argument("--dtype", choices=("u8", "f16", "f32"), action="append", help="elements of this type; may be repeated")
    for command in (bench, figures, permute):
        command.add_argument("--rounds", type=int, metavar="N", help="turns of each mode; by default 20 on a GPU and 3 on a CPU")
    for command in (bench, figures):
        command.add_argument(
            "--seconds", type=float, default=540, help="for all models; compiled modes that do not fit are left out (%(default)s)"
        )
        command.add_argument("--no-compile", action="store_true", help="leave out the modes with torch.compile")
    for command in (prepare, figures, permute):
        program = Path(__file__).resolve().parents[2] / "target" / "release" / "relayout"
        command.add_argument("--relayout", type=Path, default=program, metavar="FILE", help="the command line of relayout")
    return bench, figures, permute


def _variant(text: str) -> Variant:
    dtype, _, batch = text.partition("-")
    if dtype not in DTYPES or not batch.isdigit() or int(batch) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not DTYPE-BATCH with one of {', '.join(DTYPES)}")
    return Variant(dtype, int(batch))
