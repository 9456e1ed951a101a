"""``python -m relayout.sweep MODELS -o OUT``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .._errors import Error, OptionError
from ._limits import Limits
from ._sweep import Summary, sweep

#: Status of the process: a model failed, or a result differs; wrong usage.
_FAILED, _USAGE = 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Runs the command, and gives its exit status."""
    parser = _parser()
    a = parser.parse_args(arguments)
    try:
        summary = sweep(
            a.models,
            a.output,
            target=Path(a.target) if Path(a.target).is_file() else a.target,
            dims=dict(a.dim),
            numerics=a.numerics,
            verify=a.verify,
            time=a.time,
            write_models=not a.tables_only,
            jobs=a.jobs,
            ray=a.ray,
            limits=Limits(a.seconds, a.memory and a.memory * 1_000_000, a.retries),
            again_failed=a.again_failed,
            progress=not a.quiet,
        )
    except (Error, ImportError) as error:
        print(f"relayout.sweep: {error}", file=sys.stderr)
        return _USAGE if isinstance(error, (OptionError, ImportError)) else _FAILED
    except KeyboardInterrupt:
        print("relayout.sweep: interrupted; the same command goes on with what is left", file=sys.stderr)
        return 130
    return _tell(summary, a.quiet)


def _tell(summary: Summary, quiet: bool) -> int:
    for model, message in summary.failures:
        print(f"relayout.sweep: {model}: {message}", file=sys.stderr)
    if not quiet:
        print(f"{summary}\nresults: {summary.output}/results.html, {summary.output}/results.parquet")
    return _FAILED if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m relayout.sweep",
        description="Optimizes many models, each in a process of its own, and writes tables of what was gained.",
        epilog="What has a result in OUT is not done again, so a sweep that ended early is gone on with by the same command.",
    )
    add = parser.add_argument
    add("models", nargs="+", metavar="MODELS", help="files, folders, globs in quotes, or URLs of fsspec such as s3://hub/models")
    add("-o", "--output", required=True, metavar="OUT", help="folder of results: models/, results.parquet, results.html")
    add("--target", default="onnx", help="name of a target, or a target file (default: onnx)")
    add("--dim", action="append", default=[], type=_dim, metavar="NAME=SIZE", help="size of a symbolic dim, or a range such as N=1..32")
    add("--numerics", choices=["reassociate", "exact"], default="reassociate", help="exact leaves arithmetic alone")
    add("--verify", action="store_true", help="run each model and its result in ONNX Runtime; a difference is a failure")
    add("--time", action="store_true", help="time both in ONNX Runtime, on one thread, side by side")
    add("--tables-only", action="store_true", help="write no models")
    add("--jobs", type=int, metavar="N", help="models at the same time (default: one for each CPU)")
    add("--ray", metavar="ADDRESS", help="a Ray cluster, or 'local' for one on this machine")
    add("--seconds", type=float, default=Limits.seconds, help="wall time of a model (default: %(default)s)")
    add("--memory", type=int, metavar="MB", help="resident memory of a model (default: four fifths of the machine's, shared)")
    add("--retries", type=int, default=Limits.retries, help="tries after something killed a model's process (default: %(default)s)")
    add("--again-failed", action="store_true", help="try models again that failed before")
    add("-q", "--quiet", action="store_true", help="no progress bar and no summary; failures are told")
    return parser


def _dim(text: str) -> tuple[str, str]:
    name, equals, size = text.partition("=")
    if not (name and equals and size):
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE, not {text!r}")
    return name, size


if __name__ == "__main__":
    sys.exit(main())
