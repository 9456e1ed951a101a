"""Ops that give pictures other extents, or take pixels for channels and back. Operands are in ONNX's order."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import one_of, op, unsupported

_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@op("Resize", host=(1, 2, 3))
def resize(node: Node, x: Tensor, *operands: list | None) -> Tensor:
    """By `scales` or to `sizes`, which have an entry per axis; those of N and C must leave them as they are."""
    if node.opset < 11:
        roi, scales, sizes = None, operands[0], None
    else:
        roi, scales, sizes = (*operands, None, None, None)[:3]
    if node.attr("axes") or node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise unsupported(node, "no axes and no aspect ratios")
    target = list(sizes) if sizes else [int(extent * scale) for extent, scale in zip(x.shape, scales)]
    if target[:2] != list(x.shape[:2]):
        raise unsupported(node, "no other extents of batch and channels")
    ratios = [want / have for want, have in zip(target, x.shape)]
    if not sizes and any(abs(ratio - scale) > 1e-6 for ratio, scale in zip(ratios, scales)):
        raise unsupported(node, f"no scales {scales} that leave a fraction of a pixel")
    return _interpolate(node, x, target[2:])


def _interpolate(node: Node, x: Tensor, target: list[int]) -> Tensor:
    """Torch's call for the mode and the rule by which coordinates are turned."""
    mode = one_of(node, "mode", "nearest", ("nearest", "linear", "cubic"))
    rule = node.attr("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    if mode == "nearest":
        return F.interpolate(x, target, mode=_nearest(node, x, target, rule))
    if rule not in ("half_pixel", "pytorch_half_pixel", "align_corners") or (rule == "pytorch_half_pixel" and 1 in target):
        raise unsupported(node, f"no {mode} interpolation by {rule}")
    if node.attr("exclude_outside", 0):
        raise unsupported(node, "no exclude_outside")
    antialias = bool(node.attr("antialias", 0))
    name = _LINEAR[len(target)] if mode == "linear" else "bicubic"
    if mode == "cubic" and (len(target) != 2 or abs(node.attr("cubic_coeff_a", -0.75) + 0.75) > 1e-6):
        raise unsupported(node, "cubic interpolation only of pictures, with a coefficient of -0.75")
    return F.interpolate(x, target, mode=name, align_corners=rule == "align_corners", antialias=antialias)


def _nearest(node: Node, x: Tensor, target: list[int], rule: str) -> str:
    """The name of the rule by which the nearest pixel is chosen."""
    rounding = node.attr("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
    grows = all(want % have == 0 for want, have in zip(target, x.shape[2:]))
    if rule == "asymmetric" and rounding == "floor":
        return "nearest"
    # Where each pixel is repeated a whole number of times, no coordinate lies half-way and rounding gives the same.
    if rule in ("half_pixel", "pytorch_half_pixel") and grows and rounding.startswith("round"):
        return "nearest"
    raise unsupported(node, f"no nearest pixels by {rule} and {rounding} from {list(x.shape[2:])} to {target}")


@op("GridSample")
def grid_sample(node: Node, x: Tensor, grid: Tensor) -> Tensor:
    """Pixels at the places of `grid` [N, H, W, 2]."""
    names = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}
    mode = names[one_of(node, "mode", "linear" if node.opset >= 20 else "bilinear", tuple(names))]
    padding = one_of(node, "padding_mode", "zeros", ("zeros", "border", "reflection"))
    return F.grid_sample(x, grid, mode, padding, bool(node.attr("align_corners", 0)))


@op("DepthToSpace")
def depth_to_space(node: Node, x: Tensor) -> Tensor:
    """Blocks of channels become pixels; `DCR` has the pixels of a block outermost among the channels, `CRD` innermost."""
    block = node.attr("blocksize")
    n, c, h, w = x.shape
    c //= block**2
    if one_of(node, "mode", "DCR", ("DCR", "CRD")) == "DCR":
        pieces = x.reshape(n, block, block, c, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        pieces = x.reshape(n, c, block, block, h, w).permute(0, 1, 4, 2, 5, 3)
    if x.is_contiguous():
        return pieces.reshape(n, c, h * block, w * block)
    return pieces.permute(0, 2, 3, 4, 5, 1).reshape(n, h * block, w * block, c).permute(0, 3, 1, 2)


@op("SpaceToDepth")
def space_to_depth(node: Node, x: Tensor) -> Tensor:
    """Blocks of pixels become channels, the pixels of a block outermost."""
    block = node.attr("blocksize")
    n, c, h, w = x.shape
    pieces = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    c, h, w = c * block**2, h // block, w // block
    if x.is_contiguous():
        return pieces.reshape(n, c, h, w)
    return pieces.permute(0, 4, 5, 1, 2, 3).reshape(n, h, w, c).permute(0, 3, 1, 2)
