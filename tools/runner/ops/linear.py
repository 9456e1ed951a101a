"""Products of matrices, on the library that torch has for the device (cuBLAS on a GPU)."""

from __future__ import annotations

import torch
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import op


@op("MatMul")
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
