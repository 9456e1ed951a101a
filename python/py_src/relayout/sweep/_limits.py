"""What a model may take, and how often its process may be killed by others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one model may take.

    >>> Limits(seconds=60, rss_bytes=2 << 30)
    Limits(seconds=60, rss_bytes=2147483648, retries=2)
    """

    seconds: float = 600
    """Wall time."""
    rss_bytes: int | None = None
    """Resident memory. It is looked at 20 times a second. ``None``: four fifths of the machine's memory, shared by the models that run side
    by side on it. Address space is not limited, since files are mapped."""
    retries: int = 2
    """How often a model is tried again after something else killed its process or its worker."""
