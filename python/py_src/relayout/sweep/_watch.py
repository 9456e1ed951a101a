"""The program that starts a process for each model and watches it: ``python -m relayout.sweep._watch``.

It reads tasks from stdin and writes answers to stdout, a JSON object in a line each. It imports what the work needs and does nothing
else, so that it has one thread and few pages; each task runs in a fork of it. The fork dies when this program does. When its stdin is
closed, this program kills the fork and ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import IO, Any, NoReturn

from ._work import failed, work

#: How often memory and time are looked at, in seconds.
_EVERY = 0.05
#: Bytes of what a process printed that go into the message if it ends by a signal.
_TAIL = 400


def main() -> None:
    import tempfile

    # What every fork needs, so that none imports it again.
    import relayout._reports  # noqa: F401

    from ._work import data_of

    data_of(os.devnull)
    with tempfile.TemporaryFile() as printed:
        while line := _line():
            task = json.loads(line)
            answer = _limited(task, printed)
            os.write(1, json.dumps(answer).encode() + b"\n")


def _line() -> bytes:
    """The next line of stdin; nothing at its end. It is not read ahead, so that stdin is only readable again when it is closed."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1 << 16)
        if not piece:
            return b""
        line += piece
    return line


def _limited(task: dict[str, Any], printed: IO[bytes]) -> dict[str, Any]:
    start = time.monotonic()
    printed.seek(0)
    printed.truncate()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(task, write, printed.fileno())
    os.close(write)
    try:
        answer, peak = _watched(child, read, task["limits"], printed)
    finally:
        os.close(read)
    return {**answer, "seconds": time.monotonic() - start, "peak_rss_bytes": peak}


def _be_child(task: dict[str, Any], write: int, printed: int) -> NoReturn:
    """Does the work, answers, and ends without the exit handlers of the program it is a fork of."""
    try:
        _die_with_parent()
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        answer = json.dumps(work(task)).encode()
        while answer:
            answer = answer[os.write(write, answer) :]
    finally:
        os._exit(0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes

        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def _watched(child: int, read: int, limits: dict[str, Any], printed: IO[bytes]) -> tuple[dict[str, Any], int]:
    """What a process answers, or why it does not; and the most resident memory that it had, in bytes."""
    import psutil

    process = psutil.Process(child)
    end = time.monotonic() + limits["seconds"]
    most = limits["rss_bytes"] or _share(limits["share"])
    answer, exceeded = b"", None
    while True:
        ready, _, _ = select.select([read, 0], [], [], _EVERY)
        if 0 in ready:
            os.kill(child, signal.SIGKILL)
            os._exit(0)
        if read in ready:
            piece = os.read(read, 1 << 16)
            answer += piece
            if not piece:
                break
        elif exceeded is None and (exceeded := _exceeded(process, end, most, limits)):
            os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    peak = used.ru_maxrss * 1024
    if exceeded is not None:
        return exceeded, peak
    return (json.loads(answer) if answer and status == 0 else _killed(status, printed)), peak


def _share(share: int | None) -> int:
    import psutil

    return int(psutil.virtual_memory().total * 0.8 / (share or os.cpu_count() or 1))


def _exceeded(process: Any, end: float, most: int, limits: dict[str, Any]) -> dict[str, Any] | None:
    import psutil

    try:
        rss = process.memory_info().rss
    except psutil.Error:
        return None
    if rss > most:
        return failed("MemoryLimit", f"it took {rss / 1e6:.0f} MB of memory, and may take {most / 1e6:.0f} MB")
    if time.monotonic() > end:
        return failed("TimeLimit", f"it took longer than {limits['seconds']:g} s")
    return None


def _killed(status: int, printed: IO[bytes]) -> dict[str, Any]:
    number = os.waitstatus_to_exitcode(status)
    printed.seek(0, os.SEEK_END)
    printed.seek(max(printed.tell() - _TAIL, 0))
    said = printed.read().decode(errors="replace").strip()
    name = signal.Signals(-number).name if number < 0 else f"status {number}"
    return {**failed("Killed", f"its process ended by {name}" + (f": {said}" if said else "")), "again": True}


if __name__ == "__main__":
    main()
