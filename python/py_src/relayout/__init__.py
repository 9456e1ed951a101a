"""relayout: a layout optimizer for ONNX models.

It decides how every tensor of a graph lies in memory, moves data only where that pays, and says why each move that is left is left.

>>> import relayout
>>> result = relayout.optimize("tf_unet.onnx", "out.onnx")
>>> print(result.report)
moves 36 -> 2, bytes moved 71.1 MB -> 1.2 MB, 1 constant re-laid, 6 nodes folded (optimal among the candidates); file 4.4 MB -> 4.3 MB; proved for all sizes, with lemmas

Models are paths, ``bytes``, ``onnx.ModelProto`` or ``onnx_ir.Model``; what came in decides what comes out. onnx, onnx_ir, numpy and
onnxruntime are imported where a call needs them, and not before.
"""

from typing import TYPE_CHECKING

from ._errors import (
    DifferenceError,
    Error,
    ExportError,
    FileError,
    HostError,
    InternalError,
    LayoutError,
    MissingFileError,
    ModelError,
    OnnxRuntimeError,
    OptionError,
    OtherTargetError,
    PermuteError,
    PlanError,
    TargetError,
    UnknownValueError,
    UnprovedError,
    UnprovedWarning,
    VerifyError,
)
from ._look import audit, explain, for_this_machine, plan, targets, why
from ._optimize import Optimized, optimize
from ._options import Tune
from ._page import Page
from ._permute import permute
from ._progress import Progress
from ._prove import Cut, Link, ModelFile, Reading, Verdict, prove
from ._relayout import __version__
from ._session import session
from ._verify import verify

if TYPE_CHECKING:
    from ._reports import (
        Audit,
        AuditedMove,
        Candidate,
        Comparison,
        Device,
        Difference,
        Explanation,
        Fitting,
        GraphReport,
        Io,
        Move,
        OnDevice,
        OtherSession,
        Opaque,
        OutputComparison,
        Plan,
        Proof,
        Report,
        Solve,
        Target,
        Times,
        Traffic,
        Tuned,
        Way,
        Why,
    )

__all__ = [
    "Audit",
    "AuditedMove",
    "Candidate",
    "Comparison",
    "Cut",
    "Device",
    "Difference",
    "DifferenceError",
    "Error",
    "Explanation",
    "ExportError",
    "FileError",
    "FileSize",
    "Fitting",
    "GraphReport",
    "HostError",
    "InternalError",
    "Io",
    "LayoutError",
    "Link",
    "MissingFileError",
    "ModelError",
    "ModelFile",
    "Move",
    "OnDevice",
    "OtherSession",
    "OnnxRuntimeError",
    "Opaque",
    "Optimized",
    "OptionError",
    "OtherTargetError",
    "OutputComparison",
    "Page",
    "PermuteError",
    "Plan",
    "PlanError",
    "PricedSize",
    "Progress",
    "Proof",
    "Reading",
    "Report",
    "Solve",
    "Target",
    "TargetError",
    "Times",
    "Traffic",
    "Tune",
    "Tuned",
    "UnknownValueError",
    "UnprovedError",
    "UnprovedWarning",
    "Verdict",
    "VerifyError",
    "Way",
    "Why",
    "__version__",
    "audit",
    "explain",
    "for_this_machine",
    "optimize",
    "permute",
    "plan",
    "prove",
    "session",
    "targets",
    "verify",
    "why",
]


def __getattr__(name: str) -> object:
    """Classes of reports, which are made when one is wanted first: to make them takes as long as all the rest."""
    if name in __all__:
        from . import _reports

        return getattr(_reports, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
