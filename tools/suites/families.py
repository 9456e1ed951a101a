#!/usr/bin/env python3
"""Networks of families that the corpus lacks, with random weights: exported by PyTorch, optimized, executed, and timed.

    tools/suites/setup
    .relayout/nnsmith/bin/python tools/suites/families.py [--bin target/release/relayout] [--targets onnx,ort-cpu] [--models dm_nfnet_f0]
    .relayout/nnsmith/bin/python tools/suites/families.py --time
    .relayout/nnsmith/bin/python tools/suites/families.py --timm tools/suites/architectures.txt      other architectures of timm

Weights that are standardized on the way (NFNet, BiT), attention by a convolution over channels (ECA), DepthToSpace, slopes
of channels, halves by themselves and behind an image of floats, and others.
Nothing is downloaded: `timm` has the architectures, and weights are drawn anew. A result is right if it is the one of the network
itself in ONNX Runtime, with rewrites off or on. With --time each is then timed for target ort-cpu, or that of --timed, beside
ORT_ENABLE_ALL, in turns. An architecture of a file that PyTorch can't export is counted apart.

Models stay in the work folder and are made once; --again makes them anew. Last line: `N passed, M failed`; exit status 1 if any failed.
"""
import os
import random
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# No model hub is asked for weights.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import timm  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

from judge import OFF, judge, parser, run, timed  # noqa: E402

OPSET = 17
# Name, architecture, rows and columns of the image, and what it computes in: halves, or halves behind an image of floats.
FAMILIES = (
    ("dm_nfnet_f0", "dm_nfnet_f0", 192, "floats"),
    ("nf_resnet50", "nf_resnet50", 224, "floats"),
    ("eca_resnet33ts", "eca_resnet33ts", 224, "floats"),
    ("super_resolution", "super_resolution", 128, "floats"),
    ("regnetz_b16", "regnetz_b16", 224, "floats"),
    ("resnetv2_50x1_bit", "resnetv2_50x1_bit", 224, "floats"),
    ("resnet26_half", "resnet26", 224, "halves"),
    ("mobilenetv3_large_100_half", "mobilenetv3_large_100", 224, "halves"),
    ("nf_resnet26_half", "nf_resnet26", 224, "halves"),
    ("efficientformer_l1_half", "efficientformer_l1", 224, "halves"),
    ("ghostnetv2_100_mixed", "ghostnetv2_100", 224, "mixed"),
    ("super_resolution_mixed", "super_resolution", 64, "mixed"),
    ("slopes", "slopes", 112, "floats"),
    ("hgnet_tiny", "hgnet_tiny", 224, "floats"),
    ("repvit_m0_9", "repvit_m0_9", 224, "floats"),
)


class Standardized(nn.Conv2d):
    """A convolution whose weights are standardized by means, as papers write it."""

    def forward(self, x):
        centred = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        deviation = (centred.square().mean(dim=(1, 2, 3), keepdim=True) + 1e-5).sqrt()
        return nn.functional.conv2d(x, centred / deviation * 0.05, self.bias, self.stride, self.padding)


class SuperResolution(nn.Module):
    """Residual blocks, then an image of three times as many rows and columns by DepthToSpace."""

    def __init__(self, wide=64, blocks=8, by=3):
        super().__init__()
        conv = lambda c, m: Standardized(c, m, 3, padding=1)  # noqa: E731
        self.head = conv(3, wide)
        self.body = nn.ModuleList(nn.Sequential(conv(wide, wide), nn.ReLU(), conv(wide, wide)) for _ in range(blocks))
        self.tail = nn.Sequential(conv(wide, wide * by * by), nn.PixelShuffle(by), conv(wide, 3))

    def forward(self, x):
        x = self.head(x)
        for block in self.body:
            x = x + block(x)
        return self.tail(x)


class Slopes(nn.Sequential):
    """A small network for faces: units of three convolutions with a PRelu each, whose slopes are those of its channels."""

    def __init__(self, wide=64, units=6):
        conv = lambda c, m, k=1, by=1, groups=1: (  # noqa: E731
            nn.Conv2d(c, m, k, by, k // 2, groups=groups, bias=False), nn.BatchNorm2d(m), nn.PReLU(m, 0.25))
        layers = [*conv(3, wide, 3, 2)]
        for at in range(units):
            by, inner = 1 + at % 2, 2 * wide
            layers += [*conv(wide, inner), *conv(inner, inner, 3, by, inner), *conv(inner, wide)]
        super().__init__(*layers, nn.Flatten(), nn.Linear(49 * wide, 128))
        for module in self.modules():
            if isinstance(module, nn.PReLU):
                module.weight.data.uniform_(0.05, 0.5)


class Mixed(nn.Module):
    """A network of halves between floats: its first and last nodes are Casts."""

    def __init__(self, network):
        super().__init__()
        self.network = network.half()

    def forward(self, x):
        return self.network(x.half()).float()


def drawn(architecture, seed):
    """A network whose parameters are none of them zero, so that each takes part in the result."""
    torch.manual_seed(seed)
    own = {"super_resolution": SuperResolution, "slopes": Slopes}.get(architecture)
    network = own() if own else timm.create_model(architecture, pretrained=False)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for parameter in network.parameters():
        if not parameter.any():
            parameter.data.normal_(0, 0.1)
    return network.eval()


def exported(name, architecture, side, kind, path, seed):
    """Writes a network as the exporter does. ONNX Runtime has to run it, with a result that is a number."""
    network, image = drawn(architecture, seed), torch.zeros(1, 3, side, side)
    if kind == "halves":
        network, image = network.half(), image.half()
    elif kind == "mixed":
        network = Mixed(network).eval()
    part = path.with_suffix(".part")
    with torch.no_grad():
        torch.onnx.export(network, (image,), str(part), opset_version=OPSET, dynamo=False, input_names=["image"], output_names=["result"])
    if not all(np.isfinite(result).all() for result in run(str(part), feeds(side, kind, seed), OFF)):
        raise SystemExit(f"families.py: {name} gives no numbers; draw with another --seed")
    part.rename(path)


def feeds(side, kind, seed):
    """An image."""
    image = np.random.default_rng(seed).standard_normal((1, 3, side, side))
    return {"image": image.astype(np.float16 if kind == "halves" else np.float32)}


def kept(held, name, kind, path, inputs):
    """Holds a file against itself for each target; it stays where it is."""
    wanted = held.wanted(str(path), inputs)
    if wanted is None:
        held.count["not run"] += 1
        return
    for target in held.targets:
        # Sums of a thousand numbers, in another order.
        why = held.found(path, inputs, wanted, target, 1e-4 if kind == "floats" else 2e-3)
        held.note(name, target, why, inputs)
        print(f"{name} {target}: {why or 'right'}", flush=True)


def architectures(path):
    """Families of a file: a name in each line, and the side of the image where it is not 224."""
    for line in path.read_text().splitlines():
        name, *side = line.partition("#")[0].split() or [None]
        if name:
            yield name, name, int(side[0]) if side else 224, "floats"


def listed(chosen):
    """Entries of a manifest for these."""
    for name, _, side, kind in chosen:
        like = {"name": "image", "dtype": "float16" if kind == "halves" else "float32", "shape": [1, 3, side, side], "fill": {"kind": "normal"}}
        yield {"name": name, "file": f"{name}.onnx", "core": True, "inputs": [like], "family": "image"}


def main():
    options = parser(__doc__, "families")
    options.add_argument("--models", help="with commas; all by default")
    options.add_argument("--timm", type=Path, metavar="FILE", help="architectures of timm in place of the families here")
    options.add_argument("--timed", default="ort-cpu", metavar="TARGET", help="what --time times")
    options.add_argument("--time", action="store_true", help="also time them")
    options.add_argument("--rounds", type=int, default=31)
    options.add_argument("--times", type=Path, help="where the times are written, as JSON")
    options.add_argument("--again", action="store_true", help="make the models anew")
    args = options.parse_args()
    families = list(architectures(args.timm)) if args.timm else FAMILIES
    names = args.models.split(",") if args.models else [family[0] for family in families]
    unknown = set(names) - {family[0] for family in families}
    if unknown:
        options.error(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(family[0] for family in families)}")
    args.targets = args.targets or "onnx,ort-cpu"
    random.seed(args.seed)
    torch.set_num_threads(1)
    held, chosen = judge(args), []
    for family in (family for family in families if family[0] in names):
        name, architecture, side, kind = family
        path = held.work / f"{name}.onnx"
        if args.again or not path.exists():
            try:
                exported(name, architecture, side, kind, path, args.seed)
            except Exception as error:  # noqa: BLE001  # whatever PyTorch says
                if not args.timm:
                    raise
                held.count["not exported"] += 1
                print(f"{name} is not exported: {str(error).splitlines()[:1]}", flush=True)
                continue
        chosen.append(family)
        kept(held, name, kind, path, feeds(side, kind, args.seed))
    if args.timm:
        print(f"not exported: {held.count['not exported']}")
    more = ["--json", args.times] if args.times else []
    more += ["--target", args.timed]
    status = timed(held.work, list(listed(chosen)), args, more) if args.time else 0
    return held.end(args.json) or status


if __name__ == "__main__":
    sys.exit(main())
