"""Products of matrices, on the library that torch has for the device (cuBLAS on a GPU)."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from runner.bundle import Node
from runner.layouts import Layout
from runner.ops.table import op


def matmul_stored(node: Node, order: Layout, a: Tensor, b: Tensor) -> Tensor:
    """The product as its bytes are to be stored; written there by the library where `product_in_place` can, else copied there.

    Not on a CPU, where torch would multiply one matrix at a time, and not where torch.compile is to choose.
    """
    written = None if a.device.type == "cpu" or torch.compiler.is_compiling() else product_in_place(order, a, b)
    return order.from_onnx(torch.matmul(a, b)) if written is None else written


def product_in_place(order: Layout, a: Tensor, b: Tensor) -> Tensor | None:
    """The product in `order` without a copy; None where rows and columns are no runs, or where matrices do not follow at one distance."""
    if min(a.dim(), b.dim()) < 2 or not order.is_plain:
        return None
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    stored = a.new_empty(order.storage_shape([*lead, a.shape[-2], b.shape[-1]]))
    y = order.to_onnx(stored)
    if not _is_written_in_place(y):
        return None
    if lead:
        torch.bmm(_matrices(a, lead), _matrices(b, lead), out=_matrices(y, lead))
    else:
        torch.mm(a, b, out=y)
    return stored


def _is_written_in_place(y: Tensor) -> bool:
    """Whether rows or columns are runs, and one stride leads from each matrix to the next."""
    lead = [(extent, stride) for extent, stride in zip(y.shape[:-2], y.stride()) if extent != 1]
    return 1 in y.stride()[-2:] and all(outer == inner * extent for (_, outer), (extent, inner) in pairwise(lead))


def _matrices(x: Tensor, lead: torch.Size) -> Tensor:
    """The matrices of `x`, broadcast to the leading extents, one after the other."""
    return x.expand(*lead, *x.shape[-2:]).reshape(math.prod(lead), *x.shape[-2:])


@op("MatMul", stored=matmul_stored)
def matmul(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """`a` [.., M, K] times `b` [.., K, N], leading axes broadcast."""
    return torch.matmul(a, b)


@op("Gemm")
def gemm(node: Node, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    """alpha a b + beta c, with `a` and `b` transposed on demand (as views) and `c` broadcast."""
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    a = a.t() if node.attr("transA", 0) else a
    b = b.t() if node.attr("transB", 0) else b
    if c is None:
        product = torch.mm(a, b)
        return product if alpha == 1.0 else product * alpha
    return torch.addmm(c, a, b, beta=beta, alpha=alpha)
