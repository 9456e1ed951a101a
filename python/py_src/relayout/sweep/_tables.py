"""The results as tables: Parquet for programs, one HTML page for people."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from html import escape
from typing import IO, Any

from .._errors import FileError

Row = dict[str, Any]

#: Columns of the Parquet file. Times are in nanoseconds unless the name says otherwise.
COLUMNS = {
    "model": "string",
    "source": "string",
    "status": "string",
    "error": "string",
    "message": "string",
    "target": "string",
    "changed": "bool_",
    "summary": "string",
    "moves_before": "int64",
    "moves_after": "int64",
    "bytes_before": "int64",
    "bytes_after": "int64",
    "constants": "int64",
    "cost_ns": "int64",
    "bound_ns": "int64",
    "optimal": "bool_",
    "verified": "bool_",
    "before_ns": "int64",
    "after_ns": "int64",
    "seconds": "float64",
    "peak_rss_bytes": "int64",
    "attempts": "int64",
    "output": "string",
    "sha256": "string",
    "relayout": "string",
}
_ROWS = 1000


def write_parquet(path: str, rows: Iterable[Row]) -> None:
    """Writes a row for each model, a thousand at a time. A file of that name is replaced at the end."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("results are written with pyarrow: pip install pyarrow") from error
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])

    def fill(file: IO[bytes]) -> None:
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            piece: list[Row] = []
            for row in rows:
                piece.append({name: row.get(name) for name in COLUMNS})
                if len(piece) == _ROWS:
                    writer.write_table(pyarrow.Table.from_pylist(piece, schema))
                    piece.clear()
            writer.write_table(pyarrow.Table.from_pylist(piece, schema))

    _replace(path, fill)


def write_html(path: str, title: str, rows: Iterable[Row]) -> None:
    """Writes one page that needs no network. Its table sorts by the column whose head is pressed."""

    def fill(file: IO[bytes]) -> None:
        file.write(_HEAD.replace("TITLE", escape(title)).encode())
        for row in rows:
            file.write(_line(row).encode())
        file.write(_FOOT.encode())

    _replace(path, fill)


def _replace(path: str, fill: Callable[[IO[bytes]], None]) -> None:
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            fill(file)
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error}") from error


def _line(row: Row) -> str:
    ok = row["status"] == "ok"
    texts = [(row["model"], None), (_outcome(row), None), *_pair(row, "moves", 1), *_pair(row, "bytes", 1e6)]
    if ok and row.get("before_ns"):
        texts += [(f"{row[key] / 1e6:.3g}", row[key]) for key in ("before_ns", "after_ns")]
        texts.append((f"{row['before_ns'] / row['after_ns']:.3g}", row["before_ns"] / row["after_ns"]))
    else:
        texts += [("", 0), ("", 0), ("", 0)]
    texts += [(f"{row.get('seconds', 0):.2f}", row.get("seconds", 0))]
    texts += [(f"{row.get('peak_rss_bytes', 0) / 1e6:.0f}", row.get("peak_rss_bytes", 0))]
    head, *cells = [_cell(text, number) for text, number in texts]
    kind = "" if ok else ' class="failed"'
    return f'<tr{kind}><th scope="row">{head[4:-5]}</th>{"".join(cells)}</tr>\n'


def _outcome(row: Row) -> str:
    if row["status"] != "ok":
        return f"{row['error']}: {row['message']}"
    return ("improved" if row["changed"] else "unchanged") + (", verified" if row.get("verified") else "")


def _pair(row: Row, what: str, unit: float) -> list[tuple[str, Any]]:
    numbers = [row.get(f"{what}_{when}") for when in ("before", "after")]
    return [("", 0) if n is None else (f"{n / unit:.4g}", n) for n in numbers]


def _cell(text: str, number: float | None) -> str:
    return f"<td>{escape(text)}</td>" if number is None else f'<td data-n="{number}">{text}</td>'


_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sweep of relayout</title>
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1rem; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #8886; padding: .2rem .6rem; text-align: left; vertical-align: top; }
td[data-n] { text-align: right; font-variant-numeric: tabular-nums; }
thead th { position: sticky; top: 0; background: Canvas; }
thead button { all: unset; cursor: pointer; }
thead button:focus-visible { outline: 2px solid; }
[aria-sort=ascending] button::after { content: " \\25b2"; }
[aria-sort=descending] button::after { content: " \\25bc"; }
.failed td:nth-child(2) { color: light-dark(#a00, #f88); }
</style>
</head>
<body>
<h1>Sweep of relayout</h1>
<p>TITLE</p>
<table>
<thead><tr>
<th scope="col"><button>model</button></th>
<th scope="col"><button>outcome</button></th>
<th scope="col"><button>moves before</button></th>
<th scope="col"><button>after</button></th>
<th scope="col"><button>MB moved before</button></th>
<th scope="col"><button>after</button></th>
<th scope="col"><button>ms before</button></th>
<th scope="col"><button>after</button></th>
<th scope="col"><button>times as fast</button></th>
<th scope="col"><button>s taken</button></th>
<th scope="col"><button>MB of memory</button></th>
</tr></thead>
<tbody>
"""

_FOOT = """</tbody>
</table>
<script>
const heads = [...document.querySelectorAll("thead th")];
const key = (row, i) => { const c = row.children[i]; return "n" in c.dataset ? +c.dataset.n : c.textContent; };
heads.forEach((head, i) => head.firstChild.addEventListener("click", () => {
  const up = head.getAttribute("aria-sort") !== "ascending";
  heads.forEach(h => h.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const body = document.querySelector("tbody");
  const compare = (a, b) => { const x = key(a, i), y = key(b, i); return x < y ? -1 : x > y ? 1 : 0; };
  body.append(...[...body.rows].sort((a, b) => up ? compare(a, b) : compare(b, a)));
}));
</script>
</body>
</html>
"""
