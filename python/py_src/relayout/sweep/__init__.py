"""Optimizing many models: a folder, or a whole hub.

``python -m relayout.sweep MODELS -o OUT`` is the command, :func:`sweep` the function. Each model has a process of its own, with limits of
time and of memory. Results go to a folder: ``models/`` has the optimized models, ``results.parquet`` and ``results.html`` have a row for
each model, and ``results.sqlite`` is what the next run resumes from. Needs the packages of the
extra ``onnx-relayout[sweep]``.
"""

from ._limits import Limits
from ._sweep import Summary, sweep

__all__ = ["Limits", "Summary", "sweep"]
