"""Tensors in a folder, as workers in any language read and write them.

`tensors.json` lists name, dtype (as numpy calls it) and shape; the elements of the n-th, little-endian and row by row, are in `n.bin`.
"""
import json
from pathlib import Path

import numpy as np


def write(folder, tensors):
    """Writes a dict of arrays."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for at, (name, array) in enumerate(tensors.items()):
        array = np.asarray(array)
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        (folder / f"{at}.bin").write_bytes(little.tobytes())
        listed.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape)})
    (folder / "tensors.json").write_text(json.dumps(listed))


def read(folder):
    """The arrays of a folder by name, in their order."""
    folder, found = Path(folder), {}
    for at, entry in enumerate(json.loads((folder / "tensors.json").read_text())):
        kind = np.dtype(entry["dtype"]).newbyteorder("<")
        found[entry["name"]] = np.frombuffer((folder / f"{at}.bin").read_bytes(), kind).reshape(entry["shape"])
    return found
