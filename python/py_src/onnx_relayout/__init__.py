"""The package ``relayout`` of the distribution ``onnx-relayout``, under a name that no other distribution has.

Another distribution is called ``relayout``: it mends texts that were typed with the wrong keyboard layout, and its module has our
module's name. Where both are installed, ``import relayout`` gives the one that was installed last. This module is the same as ours, or an
error that says what to do:

>>> import onnx_relayout
>>> onnx_relayout.optimize is relayout.optimize
True
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relayout import *

WHY = (
    "the module relayout here is not that of onnx-relayout: another distribution of this name was installed over it or took it away;"
    " run `pip uninstall relayout` and install the wheel of onnx-relayout again, with --force-reinstall"
)

try:
    import relayout
except Exception as error:
    # The other module may need a newer Python, and fail in whatever way.
    raise ImportError(WHY) from error

if not hasattr(relayout, "optimize"):
    raise ImportError(WHY)

# Whoever imports this name has the package itself, with all that it offers.
sys.modules[__name__] = relayout
