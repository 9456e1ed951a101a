#!/usr/bin/env python3
"""Write crates/onnx/src/import/operators.txt: what operators may have, one line per operator and version.

    .relayout/venv/bin/python tools/make_operators.py [--check]

From the schemas of the installed onnx package, and those that the installed onnxruntime adds to the standard's domain, since
a model that it loads is not to be refused; and those of its own domains. With --check, fails if the file is not what would be written. The format is told
in the file's head.
"""
import argparse
import sys
from pathlib import Path

import onnx
from onnx import defs
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

PLACE = Path(__file__).resolve().parent.parent / "crates/onnx/src/import/operators.txt"
OWN = ("com.microsoft", "com.microsoft.nchwc")
KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "x", "TYPE_PROTO": "p",
         "FLOATS": "F", "INTS": "I", "STRINGS": "S", "TENSORS": "T", "GRAPHS": "G", "SPARSE_TENSORS": "X", "TYPE_PROTOS": "P"}
HEAD = """\
# Made by tools/make_operators.py; do not edit. Operators of the standard's domain, and in which opset each of their forms begins.
# Those of ONNX Runtime's own domains have their domain before their name.
# operator  since  inputs  outputs  attributes
# Counts are least-most, `*` for no limit; `?` where one of the least many may be left out by an empty name.
# An attribute is name:kind, `!` if it has to be there. Kinds: f float, i int, s string, t tensor, g graph, x sparse tensor,
# p type; capitals for lists of them. `deprecated` stands for an operator that an opset took away.
"""


def count(least, most, ports):
    omissible = any(port.option.name != "Single" for port in ports[:least])
    return f"{least}-{'*' if most >= 2**31 - 1 else most}{'?' if omissible else ''}"


def form(schema, known):
    # One that was deprecated as it stands, and not taken away by a later version, is still loaded everywhere.
    if schema.deprecated and any(name == schema.name for name, _ in known):
        return "deprecated"
    attributes = (f"{name}:{KINDS[a.type.name]}{'!' if a.required else ''}" for name, a in sorted(schema.attributes.items()))
    return " ".join([count(schema.min_input, schema.max_input, schema.inputs),
                     count(schema.min_output, schema.max_output, schema.outputs), *attributes])


def table():
    forms = {}
    standard = sorted(defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version)
    for schema in [*standard, *get_all_operator_schema()]:
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        if schema.domain in ("", *OWN) and (name, schema.since_version) not in forms:
            forms[name, schema.since_version] = form(schema, forms)
    lines, last = [HEAD + f"newest ir_version {onnx.IR_VERSION} opset {defs.onnx_opset_version()}"], None
    for (name, since), text in sorted(forms.items()):
        # A version that changes types only is no line.
        if (name, text) != last:
            lines.append(f"{name} {since} {text}")
        last = name, text
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    text = table()
    if not parser.parse_args().check:
        PLACE.write_text(text)
    elif not PLACE.is_file() or PLACE.read_text() != text:
        sys.exit(f"make_operators.py: {PLACE.name} is not what the installed packages say; run tools/make_operators.py")


if __name__ == "__main__":
    main()
