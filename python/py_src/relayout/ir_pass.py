"""relayout as a pass of onnx_ir. Needs the package onnx_ir."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir

from ._optimize import optimize

if TYPE_CHECKING:
    from ._reports import Report


class OptimizeLayouts(onnx_ir.passes.InPlacePass):
    """Rewrites a model so that it moves less data, where it is: among other passes, or alone.

    The model stays the same object, and so do its weights that did not change. Its graph is a new one if anything changed, so take
    ``model.graph`` and its nodes and values anew.

    >>> import onnx_ir
    >>> from onnx_ir.passes.common import CheckerPass
    >>> from relayout.ir_pass import OptimizeLayouts
    >>> model = onnx_ir.load("tf_unet.onnx")
    >>> layouts = OptimizeLayouts(numerics="exact")
    >>> layouts(model).modified
    True
    >>> print(layouts.report.before.nodes, "->", layouts.report.after.nodes)
    36 -> 2
    >>> onnx_ir.passes.Sequential(layouts, CheckerPass())(model).modified
    False
    """

    def __init__(self, **options: Any) -> None:
        """Args:

        **options: As of :func:`relayout.optimize`: ``target``, ``inputs``, ``outputs``, ``free_io``, ``dims``, ``numerics``, ``verify``,
            ``base_dir``, ``block``, …
        """
        super().__init__()
        self.options = options
        #: What was done to the last model.
        self.report: Report | None = None

    def call(self, model: onnx_ir.Model) -> onnx_ir.passes.PassResult:
        """Optimizes a model.

        Raises:
            Error: One of its subclasses. The model is as it was then.
        """
        result = optimize(model, **self.options)
        self.report = result.report
        if result.changed:
            _become(model, result.model)
        return onnx_ir.passes.PassResult(model, modified=result.changed)


def _become(model: onnx_ir.Model, other: onnx_ir.Model) -> None:
    """Makes a model what another one is."""
    model.graph = other.graph
    model.ir_version = other.ir_version
    for mine, its in ((model.functions, other.functions), (model.metadata_props, other.metadata_props)):
        mine.clear()
        mine.update(its)  # type: ignore[arg-type]
