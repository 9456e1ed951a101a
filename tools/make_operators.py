#!/usr/bin/env python3
"""Write crates/onnx/src/import/operators.txt: what operators may have, one line per operator and version; and, beside the checker of
proofs, types.txt: which types of elements their operands may have.

    .relayout/venv/bin/python tools/make_operators.py [--check]

From the schemas of the installed onnx package, and those that the installed onnxruntime adds to the standard's domain, since
a model that it loads is not to be refused; and those of its own domains. With --check, fails if a file is not what would be written.
The formats are told in the files' heads.
"""
import argparse
import sys
from pathlib import Path

import onnx
from onnx import defs
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

PLACE = Path(__file__).resolve().parent.parent / "crates/onnx/src/import/operators.txt"
TYPES = PLACE.parents[4] / "crates/proof/src/standard/types.txt"
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

HEAD_OF_TYPES = """\
# Made by tools/make_operators.py; do not edit. Types of elements that operands may have, and in which opset each form begins.
# operator  since  operands
# An operand is the types that it may have: the letter number N of the alphabet for the type that ONNX numbers N. `=N` for one that has
# the type of operand N, `-` for one of which nothing is said, `*` behind the last one if there may be more like it.
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


def letters(port):
    """The types of elements that an operand may have, if it is a tensor."""
    names = (kind[len("tensor("):-1].upper() for kind in port.types if kind.startswith("tensor("))
    numbers = (onnx.TensorProto.DataType.Value(name) for name in names)
    return "".join(sorted(chr(ord("a") + number - 1) for number in numbers))


def operands(schema):
    words, first = [], {}
    for at, port in enumerate(schema.inputs):
        # The runtime's schemas spell these otherwise.
        variable = port.type_str if hasattr(port, "type_str") else port.typeStr
        alike = port.is_homogeneous if hasattr(port, "is_homogeneous") else port.isHomogeneous
        many = port.option.name == "Variadic"
        if many and not alike:
            words.append("-*")
            continue
        tied = first.setdefault(variable, at)
        words.append(("-" if not letters(port) else letters(port) if tied == at else f"={tied}") + "*" * many)
    return ",".join(words) or "-"


def schemas():
    """Each form of an operator once, with its domain before its name: those of the standard first."""
    known = set()
    for schema in [*sorted(defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version), *get_all_operator_schema()]:
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        if schema.domain in ("", *OWN) and (name, schema.since_version) not in known:
            known.add((name, schema.since_version))
            yield name, schema


def written(head, forms):
    """A line for each form that says something else than the one before it."""
    lines, last = [head], None
    for (name, since), text in sorted(forms.items()):
        if (name, text) != last:
            lines.append(f"{name} {since} {text}")
        last = name, text
    return "\n".join(lines) + "\n"


def types_table():
    forms = {(name, schema.since_version): operands(schema) for name, schema in schemas()}
    return written(HEAD_OF_TYPES.rstrip("\n"), forms)


def table():
    forms = {}
    for name, schema in schemas():
        forms[name, schema.since_version] = form(schema, forms)
    return written(HEAD + f"newest ir_version {onnx.IR_VERSION} opset {defs.onnx_opset_version()}", forms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    made = {PLACE: table(), TYPES: types_table()}
    if not parser.parse_args().check:
        for place, text in made.items():
            place.write_text(text)
        return
    for place, text in made.items():
        if not place.is_file() or place.read_text() != text:
            sys.exit(f"make_operators.py: {place.name} is not what the installed packages say; run tools/make_operators.py")


if __name__ == "__main__":
    main()
