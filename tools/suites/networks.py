#!/usr/bin/env python3
"""Random networks that NNSmith makes, through every target.

    tools/suites/setup
    .relayout/nnsmith/bin/python tools/suites/networks.py [--bin target/release/relayout] [--count 1000] [--others 200] [--nodes 10]

NNSmith draws graphs of operators whose shapes fit and looks for weights and inputs that give numbers; PyTorch exports them. Each
runs for targets `onnx` and `ort-cpu`, and the first of them (`--others`) for all other targets: as it is, and between random
Transposes. A result is right if it is the one of the network itself in ONNX Runtime, with rewrites off or on. Where a Floor or an
ArgMin turns a difference of rounding into another number, inputs and weights that differ in the last bits change the network's own
result as well: such a case is counted as unsteady, and never as passed.

Failed networks stay in the work folder with their inputs; tools/suites/cut.py makes them small. Last line: `N passed, M failed`,
counted by target; exit status 1 if any failed.
"""
import functools
import os
import random
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# What NNSmith found out about the exporter is kept for the next run.
os.environ.setdefault("XDG_CACHE_HOME", str(ROOT / ".relayout/nnsmith/cache"))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
import torch.onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from nnsmith.graph_gen import model_gen  # noqa: E402
from nnsmith.materialize import Model  # noqa: E402
from nnsmith.narrow_spec import auto_opset  # noqa: E402

from judge import OFF, apart, judge, parser, rounding, run, same, wrapped  # noqa: E402

FIRST = ("onnx", "ort-cpu")
# Last bits of floats that are drawn anew, as a part of the number, and how often.
SHAKEN, TIMES = 4e-7, 12
ELEMENTS = 4096


def exporter():
    """NNSmith's model of ONNX, with the exporter that it was written for."""
    torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
    torch.set_num_threads(1)
    kind = Model.init("onnx", backend_target="cpu")
    kind.add_seed_setter()
    return kind, auto_opset(kind, None)


def network(kind, ops, seed, nodes):
    """A network and its inputs; None where NNSmith finds none."""
    try:
        drawn = model_gen(opset=ops, method="symbolic-cinit", seed=seed, max_nodes=nodes, timeout_ms=10_000, max_elem_per_tensor=ELEMENTS)
        made = kind.from_gir(drawn.make_concrete())
        made.refine_weights()
        return made.native_model, {name: np.asarray(value) for name, value in made.make_oracle().input.items()}
    except Exception as error:  # noqa: BLE001  # of NNSmith, its solver or the exporter
        print(f"seed {seed}: no network: {str(error).splitlines()[0] if str(error) else type(error).__name__}"[:160], flush=True)
        return None


def shake(array, rng):
    """Floats with other last bits, also halves, which have fewer bits. Everything else stays as it is."""
    if array.dtype.kind != "f":
        return array
    step = max(SHAKEN, float(np.finfo(array.dtype).eps))
    # Of a scalar numpy makes a number, which ONNX Runtime does not take.
    return np.asarray(array * (1 + step * rng.uniform(-1, 1, array.shape)), array.dtype)


def is_unsteady(source, feeds):
    """Whether the network's own result changes if its inputs and weights change in their last bits."""
    model = onnx.load(source)
    wanted, least = run(str(source), feeds, OFF), rounding(model)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    rng = np.random.default_rng(0)
    for _ in range(TIMES):
        for tensor in model.graph.initializer:
            tensor.CopyFrom(numpy_helper.from_array(shake(weights[tensor.name], rng), tensor.name))
        shaken = {name: shake(value, rng) for name, value in feeds.items()}
        if not same(wanted, run(model.SerializeToString(), shaken, OFF), least):
            return True
    return False


def runs(held, seed, model, feeds):
    """Whether ONNX Runtime runs a network as it is."""
    found = apart(lambda: held.wanted(model.SerializeToString(), feeds) is not None)
    if found is None:
        print(f"seed {seed}: the network crashes ONNX Runtime as it is", flush=True)
    return found


def hold(held, name, model, feeds, targets):
    """Judges a network, and takes failures that are unsteady for what they are."""
    before, held.failures = held.failures, []
    held.judge(name, model, feeds, targets)
    found = held.failures
    source = held.work / f"{name}.onnx"
    if found and all(one["why"] == "another result" for one in found) and is_unsteady(source, feeds):
        held.count["failed"] -= len(found)
        held.count["unsteady"] += len(found)
        print(f"{name} is unsteady", flush=True)
        found = []
        source.rename(source.with_suffix(".unsteady"))
    held.failures = before + found


def main():
    options = parser(__doc__, "nnsmith")
    options.add_argument("--count", type=int, default=1000, help="networks for onnx and ort-cpu")
    options.add_argument("--others", type=int, default=200, help="networks for each other target")
    options.add_argument("--nodes", type=int, default=10, help="operators of a network")
    args = options.parse_args()
    held = judge(args)
    few = [target for target in held.targets if target in FIRST]
    kind, ops = exporter()
    seed, done = args.seed * 1_000_000, 0
    while done < args.count:
        made = network(kind, ops, seed, args.nodes)
        seed += 1
        targets = held.targets if done < args.others else few
        if made is None or not runs(held, seed - 1, *made):
            continue
        name = f"net{seed - 1}"
        hold(held, name, *made, targets)
        around, turned = wrapped(*made, random.Random(name))
        if around:
            hold(held, f"{name}_wrapped", around, turned, targets)
        done += 1
        if done % 50 == 0:
            print(f"{done} networks: {dict(held.count)}", flush=True)
    sys.exit(held.end(args.json))


if __name__ == "__main__":
    main()
