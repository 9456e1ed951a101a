"""Progress: what a call tells whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias, Union


class Progress(NamedTuple):
    """Where a call is.

    >>> Progress("assign", 11, 33)
    Progress(step='assign', done=11, total=33)
    """

    step: str
    """What is done next: ``reading``, the name of a pass, ``looking again``, ``tuning``, ``verifying``, ``writing``, ``done``."""
    done: int
    """How many steps are done."""
    total: int
    """How many there are."""


#: ``True`` for a bar of tqdm, a bar of one's own (``tqdm`` or what has its ``total``, ``n``, ``set_postfix_str`` and ``refresh``), or a
#: function that is called with each :class:`Progress`. If the function raises, the call ends with its exception.
ProgressLike: TypeAlias = "Union[bool, Callable[[Progress], object], Any, None]"


@contextmanager
def teller(progress: ProgressLike) -> Iterator[Callable[[str, int, int], object] | None]:
    """The function that the Rust half calls."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("progress=True shows a bar of tqdm: pip install tqdm") from error
        with tqdm(desc="relayout", leave=False) as bar:
            yield _onto(bar)
    elif hasattr(progress, "set_postfix_str"):
        yield _onto(progress)
    elif callable(progress):
        yield lambda step, done, total: progress(Progress(step, done, total))
    else:
        raise TypeError(f"progress: expected True, a bar of tqdm or a function, not {type(progress).__name__}")


def _onto(bar: Any) -> Callable[[str, int, int], object]:
    def tell(step: str, done: int, total: int) -> None:
        bar.total, bar.n = total, done
        bar.set_postfix_str(step, refresh=False)
        bar.refresh()

    return tell
