"""An extension of griffe: docstrings of the Python package, as Markdown.

Examples become blocks of code, and ``:func:`relayout.optimize``` becomes the name alone.
"""

import re
from typing import Any

import griffe

#: A paragraph that begins with a prompt.
EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)
ROLE = re.compile(r":(?:func|class|attr|meth):(?=`)")


class Docstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            text = ROLE.sub("", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(lambda match: f"```python\n{match[0]}\n```", text)
