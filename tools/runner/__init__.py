"""Executes bundles: models whose every value is stored as the optimizer decided, with one library call per node.

The files, in the order in which to read them:

- `bundle.py`   reads the folder that `relayout optimize --emit bundle` writes, within `paths.py`, which no name leaves;
- `layouts.py`  reads names of layouts and brings stored tensors to the order of ONNX, as views wherever that is possible;
- `ops/`        a table from ops to functions on torch tensors, a file per family;
- `moves.py`    the moves between layouts, on the project's kernels: `capi.py` on a CPU, `cuda.py` on a GPU;
- `execute.py`  runs the nodes one after the other, or captures them as a CUDA graph;
- `compare.py`, `prepare.py`, `bench.py`, `figures.py`, `calibrate.py` and `cli.py`: the commands;
- `profile.py` and `criteria.py`: what names of kernels say, and what figures have to show.
"""
