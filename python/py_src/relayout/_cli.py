"""The command ``relayout``: the command line of the library, in this process."""

from __future__ import annotations

import os
import signal
import sys

from . import _relayout, _runtime


def main() -> int:
    """Runs the command line with the arguments of the process, and gives its exit status."""
    # No Python runs from here on that could see a signal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if (library := _runtime.find()) is not None:
        # What verifies takes the ONNX Runtime of this environment.
        os.environ.setdefault("ORT_DYLIB_PATH", library)
    return _relayout.run_command(["relayout", *sys.argv[1:]])
