"""``optimize``: a model in, a model of the same kind and a report out."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from . import _models, _relayout, _runtime
from ._errors import UnprovedWarning
from ._models import ModelT
from ._options import Dims, Ends, Numerics, RequestOptions, Settings, StrPath, Tune, settings, tuning
from ._progress import ProgressLike, teller

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Unpack

    from ._page import Page
    from ._reports import Explanation, Report, Tuned


class Optimized(Generic[ModelT]):
    """What :func:`optimize` made of a model.

    It keeps what it was made from: a file that it mapped, or the memory that was given. Neither may be changed while it lives.
    """

    def __init__(self, model: Any, made: _relayout.Optimized, given: Settings) -> None:
        self._adapted = model
        self._made = made
        self._given = given

    @cached_property
    def report(self) -> Report:
        """What was done. ``print(result.report)`` prints what ``relayout optimize`` does."""
        from ._reports import Report, read

        made = self._made
        return read(Report, made.report(), summary=made.summary(), explanation=made.explanation())

    @property
    def explanation(self) -> Explanation:
        """The same report, which prints as ``relayout explain`` does."""
        from ._reports import Explanation, read

        made = self._made
        return read(Explanation, made.report(), summary=made.summary(), explanation=made.explanation())

    @property
    def changed(self) -> bool:
        """Whether the model changed. If it did not, the result is what came in: the same bytes in a file, the same object in memory."""
        return self._made.changed()

    @cached_property
    def tuning(self) -> Tuned | None:
        """What was measured on this machine; ``None`` without ``tune``. ``print(result.tuning)`` prints what ``relayout optimize --tune``
        does."""
        from ._reports import Tuned, read

        made = self._made.tuning()
        return None if made is None else read(Tuned, made[0], explanation=made[1])

    @cached_property
    def _result(self) -> Any:
        return self._adapted.result(self._made)

    @property
    def model(self) -> ModelT:
        """The result in the kind that came in: bytes, an ``onnx.ModelProto``, an ``onnx_ir.Model``; for a path, the path of the file
        that was written.

        It is made when it is asked for first. If nothing changed, it is the object that came in. Weights of an ``onnx_ir.Model`` that did not change are the same objects as before.

        Raises:
            FileError: A model came from a file, and nothing was written yet.
        """
        if isinstance(self._adapted, _models.PathModel):
            return self._adapted.result(self._made)
        return self._result

    def save(self, path: StrPath | None = None, *, overwrite: bool = False) -> Path:
        """Writes the result to a file, whole or not at all, and gives its path.

        Args:
            path: The file, which is replaced if it is there. Without a path the result of ``model.onnx`` goes to
                ``model.relayout.onnx`` beside it. What exceeds 2 GiB, or was external data before, goes to ``<path>.data``.
            overwrite: Whether the file beside the model may be replaced.

        Raises:
            FileError: The file can't be written, or the one beside the model is there already.
            OptionError: A model came from memory, and no path is given.
        """
        from pathlib import Path

        target = self._adapted.output(path)
        _models.check_free(target, overwrite or path is not None)
        self._made.save(target)
        self._adapted.written = target
        return Path(target)

    def show(self, *, height: int = 760) -> Page:
        """The report as a page that notebooks show: what was gained, the graph before and after, and why each move that is left is left.
        The model is decided about once more, with prices.

        >>> relayout.optimize("tf_unet.onnx").show().save("report.html").name
        'report.html'

        Args:
            height: How high the page is in a notebook, in pixels.

        Raises:
            Error: One of its subclasses.
        """
        from ._page import Page

        return Page(self._made.page(self._given), height)

    def __repr__(self) -> str:
        return f"<relayout.Optimized: {self._made.summary()}>"


def optimize(
    model: ModelT,
    output: StrPath | None = None,
    *,
    target: StrPath = "onnx",
    inputs: Ends | None = None,
    outputs: Ends | None = None,
    free_io: bool = False,
    dims: Dims | None = None,
    numerics: Numerics = "reassociate",
    verify: bool = False,
    tune: bool | Tune = False,
    progress: ProgressLike = None,
    base_dir: StrPath | None = None,
    **machine: Unpack[RequestOptions],
) -> Optimized[ModelT]:
    """Rewrites a model so that it moves less data. The result has the same inputs, outputs and results.

    >>> result = relayout.optimize("tf_unet.onnx")
    >>> print(result.report)
    moves 36 -> 2, bytes moved 71.1 MB -> 1.2 MB, 1 constant re-laid, 6 nodes folded (optimal among the candidates); file 4.4 MB -> 4.3 MB; proved for all sizes, with lemmas
    >>> result.save("out.onnx").name
    'out.onnx'

    Args:
        model: A path, the bytes of a file, an ``onnx.ModelProto`` or an ``onnx_ir.Model``. It is not changed.
        output: A file for the result; one that is there is replaced. Without it nothing is written: call :meth:`Optimized.save`, or
            take :attr:`Optimized.model`.
        target: The name of a target (:func:`targets` lists them), or the path of a target file as a ``pathlib.Path``.
        inputs: How you feed inputs: ``{"x": "NCHW->NHWC"}``, the axes that the model has, and the order in which you feed them.
        outputs: The same for outputs.
        free_io: Whether the order of all other inputs and outputs is left to the optimizer; ``report.io`` says which it took.
        dims: Sizes of dims that the inputs leave open: ``{"N": 4, "H": (32, 512), "x.2": 224}``, by symbol, or by input and axis where
            there is none. If nothing is said, what the nodes ask for, else 1 for a batch and 64 for others.
        numerics: ``"exact"`` leaves arithmetic alone; ``"reassociate"`` folds scales and shifts into weights.
        verify: Whether to run both models in ONNX Runtime first; nothing is written if they differ. Needs the package onnxruntime.
        tune: For targets ``onnx``, ``ort-cpu`` and ``ort-nhwc``. ``True``, or a :class:`Tune`, times on this machine what the decision of ``ort-cpu``
            can choose from, runs the model and the result in turns, and gives changes back until the result is not slower.
            :attr:`Optimized.tuning` says what was measured. Needs the package onnxruntime.
        progress: ``True`` for a bar of tqdm, a bar of your own, or a function of a :class:`Progress`.
        base_dir: The folder of external data, for a model in memory that has some.
        **machine: What the command line has too: ``provider`` for target ``ort-nhwc``; ``block``, ``guard`` and ``threads`` for target
            ``ort-cpu``; ``costs`` for targets with measured costs; ``for_this_machine=True`` chooses these and the target;
            ``strict=True`` makes a rewrite that fails an error; ``fix_sizes=True`` writes the sizes of ``dims`` into the file;
            ``unproved`` says what becomes of a result that is not proved to compute what the model computes: ``"give-back"``,
            ``"loud"``, ``"allow"``, ``"fail"`` or ``"keep-input"``; ``proof`` and ``certificate`` name files for proofs of the
            result and of the decision.

    Raises:
        Error: One of its subclasses, with a message that names the file, node or tensor. Nothing is written then.
        KeyboardInterrupt: Ctrl-C was pressed. Nothing is written, unless writing had begun.
    """
    adapted = _models.adapted(model, base_dir)
    given = settings(target, inputs, outputs, free_io, dims, numerics, machine)
    tuned = tuning(tune, machine)
    given += tuned
    wanted = {
        "output": None if output is None else os.fspath(output),
        "verify": _runtime.place() if verify else None,
        "tune": _runtime.library("tuning") if tuned else None,
    }
    with teller(progress) as told:
        made = _relayout.optimize(adapted.source, given, wanted, told)
    adapted.written = wanted["output"]
    if why := made.unproved():
        warnings.warn(f"UNPROVED: {why}", UnprovedWarning, stacklevel=2)
    return Optimized(adapted, made, given)
