"""What a model is brought to before it is timed."""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = ("fp32", "tf32", "fp16")
"""`tf32` is float32 in memory; what differs is how `bench` has products computed."""
SETTINGS = "settings.json"
"""What says so of a folder of `prepare`, written last."""


@dataclass(frozen=True)
class Variant:
    """An element type and a batch."""

    dtype: str
    batch: int

    def __str__(self) -> str:
        return f"{self.dtype}-{self.batch}"
