"""`python tools/runner COMMAND ..`, or `python -m runner COMMAND ..` with tools on the path."""

import sys
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from runner.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
