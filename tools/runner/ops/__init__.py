"""The ops: a table from names to functions on torch tensors, filled by one file per family.

To add an op, write a function in the file of its family (or a new file, imported here):

    @op("Elu")
    def elu(node, x):
        return F.elu(x, node.attr("alpha", 1.0))

It gets the node, for its attributes and its opset, and the operands as tensors, None for those left out. `host=(1,)` names operands that
say how to compute rather than what: they come as lists of numbers. An op of the dialect needs nothing more: `dialect.py` brings stored
operands to ONNX's order, as views, and calls the function of the standard op.
"""

from runner.ops import elementwise, indexing, linear, normalization, quantization, reductions, shapes, spatial, windows
from runner.ops.dialect import find_op
from runner.ops.table import Op, known_ops

__all__ = [
    "Op",
    "elementwise",
    "find_op",
    "indexing",
    "known_ops",
    "linear",
    "normalization",
    "quantization",
    "reductions",
    "shapes",
    "spatial",
    "windows",
]
