"""``python -m relayout`` is the command ``relayout``."""

import sys

from ._cli import main

sys.exit(main())
