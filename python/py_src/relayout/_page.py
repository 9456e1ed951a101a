"""``Page``: a report that notebooks show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ._options import StrPath


class Page:
    """A report as one HTML page, which needs no network. A notebook shows it; :meth:`save` writes it to a file.

    Attributes:
        html: The page.
        height: How high it is in a notebook, in pixels.
    """

    def __init__(self, html: str, height: int) -> None:
        self.html = html
        self.height = height

    def save(self, path: StrPath) -> Path:
        """Writes the page to a file, which is replaced if it is there, and gives its path.

        Raises:
            OSError: The file can't be written.
        """
        from pathlib import Path

        place = Path(path)
        place.write_text(self.html, encoding="utf-8")
        return place

    def _repr_html_(self) -> str:
        # In a frame of its own the page's style and the notebook's stay apart.
        from html import escape

        page = escape(self.html)
        return f'<iframe title="Report of relayout" srcdoc="{page}" style="width:100%;height:{self.height}px;border:0"></iframe>'

    def __repr__(self) -> str:
        return f"<relayout.Page: {len(self.html)} characters>"
