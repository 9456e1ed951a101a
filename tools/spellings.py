#!/usr/bin/env python3
"""Count in how many spellings each form is found, by this program and by an older one, and write the table in docs/equations.md.

    tools/spellings.py --now target/release/relayout                    # compares the table with what is found
    tools/spellings.py --now target/release/relayout --write            # writes it; what was found before is kept
    tools/spellings.py --now NEW --before OLD --write                   # counts that anew too

Spellings are read from crates/equations/tests/spellings.txt and tools/spellings.txt, and the bodies that the standard gives its ops
from the onnx package (its `_expanded` node tests). Each is made a model. It is *recognized* if `explain --pieces` says so of its
result, and *written* if `optimize` leaves as many ops as a line `run` of its form says, such as `1ReorderInput 0Mul`.
A line `was OP` says that the older program looked for this op alone. Each spelling that is not found is listed. Exit status 1 if
a near miss is found, or the table differs.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ["crates/equations/tests/spellings.txt", "tools/spellings.txt"]
PAGE = ROOT / "docs/equations.md"
HEAD = ["| form | spellings | near misses | recognized | written before | written now |", "|---|---|---|---|---|---|"]
OPSET = 17
# Bodies of ops in the onnx package's node tests: those that are this form, and those that are near misses of it.
BODIES = {
    "Gelu": (r"gelu_default_\d_expanded", r"gelu_tanh_\d_expanded"),
    "GeluTanh": (r"gelu_tanh_\d_expanded", r"gelu_default_\d_expanded"),
    "Swish": (r"swish_expanded", None),
    "HardSwish": (r"hardswish_expanded", None),
    "Attention": (
        r"attention_4d(_diff_heads_sizes)?(_scaled)?_expanded",
        r"attention_4d(_diff_heads_sizes)?_(causal|attn_mask|softcap)_expanded",
    ),
    "LayerNormalization": (
        r"layer_normalization_(4d_axis3|4d_axis_negative_1|2d_axis1|3d_axis2_epsilon|default_axis)_expanded.*",
        r"layer_normalization_(4d_axis1|3d_axis_negative_2_epsilon)_expanded.*",
    ),
    "RMSNormalization": (
        r"rms_normalization_(4d_axis3|4d_axis_negative_1|2d_axis1|3d_axis2_epsilon|default_axis)_expanded",
        r"rms_normalization_(4d_axis1|3d_axis_negative_2_epsilon)_expanded",
    ),
    "GroupNormalization": (r"group_normalization_(example|epsilon)_expanded", None),
}


class Form:
    """A form with its spellings: each a name, whether it is one, and a model."""

    def __init__(self, name):
        self.name, self.given, self.run, self.was, self.before, self.after, self.spellings = name, [], None, None, [], [], []


def forms():
    """The forms of all files."""
    found = []
    for file in FILES:
        for line in (ROOT / file).read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            if word == "=":
                found.append(Form(rest))
            elif word in ("hit", "miss"):
                found[-1].spellings.append((rest, word == "hit", []))
            elif word == "was":
                found[-1].was = rest
            elif word == "run":
                found[-1].run = rest.split(": ")
            elif word in ("before", "after"):
                getattr(found[-1], word).append(rest)
            elif word == "":
                found[-1].spellings[-1][2].append(line.strip())
            else:
                found[-1].given.append(line)
    return found


class Net:
    """A model that is written as expressions."""

    def __init__(self):
        self.nodes, self.inputs, self.constants, self.names = [], [], [], set()

    def line(self, line):
        """Declares, names or computes; the name of what is computed."""
        name, colon, rest = line.partition(": ")
        if colon:
            return self.declared(name, rest.split())
        name, equals, rest = line.partition(" = ")
        return self.expression(rest, name) if equals else self.expression(line, "result")

    def declared(self, name, what):
        dims = json.loads(what[-1])
        self.names.add(name)
        if what[0] in ("zeros", "const"):
            count = int(np.prod(dims))
            values = np.zeros(count) if what[0] == "zeros" else 0.25 + 0.125 * (np.arange(count) % 7)
            self.constant(name, values.astype(np.float32).reshape(dims))
        else:
            self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        return name

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def expression(self, text, name):
        tokens = text.replace("(", " ( ").replace(")", " ) ").split()
        at = iter(tokens)
        result = self.term(next(at), at, name)
        self.names.add(result)
        return result

    def term(self, token, rest, name=None):
        if token != "(":
            return self.atom(token)
        op, operands, attributes = next(rest), [], {}
        for token in rest:
            if token == ")":
                break
            key, equals, value = token.partition("=")
            if equals:
                attributes[key] = literal(value)
            else:
                operands.append(self.term(token, rest))
        name = name if name and name not in self.names else f"t{len(self.nodes) + 1}"
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def atom(self, token):
        if token == "_":
            return ""
        if token in self.names:
            return token
        value = literal(token)
        values = np.array(value, np.int64) if isinstance(value, list) else np.array(value, np.float32)
        return self.constant(f"c{len(self.constants)}", values)

    def model(self, result):
        out = [helper.make_empty_tensor_value_info(result)]
        graph = helper.make_graph(self.nodes, "spelling", self.inputs, out, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made, data_prop=True)


def literal(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def spelled(form, lines, around):
    """The model of a spelling; `around` puts it between what its form is read from and what reads it."""
    net = Net()
    before, after = (form.before, form.after) if around else ([], [])
    made = {line.partition(" = ")[0] for line in before if " = " in line}
    for line in [line for line in form.given if line.partition(":")[0] not in made] + before + lines[:-1]:
        net.line(line)
    result = net.line(f"y = {lines[-1]}" if after else lines[-1])
    for line in after:
        result = net.line(line)
    return net.model(result)


def bodies(pattern):
    """The node tests of this name, operands but the first as constants where they are scales."""
    if not bodies.all:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from onnx.backend.test.case.node import collect_testcases

            all_cases = collect_testcases(None)
        bodies.all = {case.name.removeprefix("test_"): case for case in all_cases if "_expanded" in case.name}
    for name, case in sorted(bodies.all.items()):
        if pattern and re.fullmatch(pattern, name):
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            graph, (values, _) = model.graph, case.data_sets[0]
            # Of several results the first, and what it is computed of.
            del graph.output[1:]
            needed = {graph.output[0].name}
            for node in reversed(list(graph.node)):
                if needed.isdisjoint(node.output):
                    graph.node.remove(node)
                else:
                    needed.update(node.input)
            scales = [i for i in graph.input if i.name in ("W", "B", "scale", "bias")]
            for scale in scales:
                value = values[[i.name for i in case.model.graph.input].index(scale.name)]
                graph.initializer.append(numpy_helper.from_array(np.asarray(value), scale.name))
                graph.input.remove(scale)
            yield name, onnx.shape_inference.infer_shapes(model, data_prop=True)


bodies.all = {}


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(map(str, arguments))}: {done.stderr.decode().strip()}")
    return done.stdout


def is_written(program, form, model, folder, _):
    """Whether a program leaves the ops of the form."""
    target, ops = form.run
    path = folder / "model.onnx"
    onnx.save(model, path)
    made = onnx.load_from_string(run(program, "optimize", path, "-o", "-", "--target", *target.split()))
    there = [node.op_type for node in made.graph.node]
    return all(there.count(op[1:]) == int(op[0]) for op in ops.split())


def is_recognized(program, form, model, folder, is_body):
    """Whether a program says so, or the result is the op itself. The bodies of the standard scale what they have normalized."""
    names, results = form.name.split(" or "), {out.name for out in model.graph.output}
    if any(node.op_type in names and results & set(node.output) for node in model.graph.node):
        return True
    path = folder / "model.onnx"
    onnx.save(model, path)
    pieces = json.loads(run(program, "explain", path, "--target", "ort-cpu", "--pieces", "--json"))
    return any(piece["op"] in names and (is_body or piece["result"] in results) for piece in pieces)


def cases_of(form):
    """The spellings of a form, then the bodies of the standard: each its name, whether it is one, and its model, which is asked
    whether it is to stand between what the form is read from and what reads it."""
    for name, hit, lines in form.spellings:
        yield name, hit, lambda around, lines=lines: spelled(form, lines, around)
    for pattern, hit in zip(BODIES.get(form.name, ()), (True, False)):
        for name, model in bodies(pattern):
            yield name, hit, lambda around, model=model: None if around and form.before else model


def counted(form, before, now, folder, problems):
    """The cells of a form: how many spellings, near misses, and those found in each way."""
    ways = {"recognized": (is_recognized, now, False)} if form.name[0].isupper() else {}
    if form.run:
        ways |= {"written before": (is_written, before, True), "written now": (is_written, now, True)}
    count, found, of = [0, 0], dict.fromkeys(ways, 0), dict.fromkeys(ways, 0)
    was = 0
    for name, hit, model in cases_of(form):
        count[hit] += 1
        was += hit and any(node.op_type == form.was for node in model(False).graph.node)
        for way, (is_found, program, around) in ways.items():
            made = model(around)
            if program is None or made is None:
                continue
            is_one = is_found(program, form, made, folder, hit and name.endswith("_expanded"))
            of[way] += hit
            found[way] += hit and is_one
            if is_one != hit and way != "written before":
                problems.append((not hit, f"{form.name}, {name}: {'a near miss is' if is_one else 'not'} {way}"))
    cells = {way: f"{found[way]} of {of[way]}" for way in ways}
    if form.was:
        cells["written before"] = f"{was}, the op itself"
    if form.run and before is None:
        del cells["written before"]
    return [form.name, str(count[True]), str(count[False])], cells


def page(rows):
    """The page with these rows, cells that were not counted as they are, and its text before."""
    text = PAGE.read_text()
    start = text.index(HEAD[0])
    end = text.index("\n\n", start)
    old = {line.split(" | ")[0][2:]: line.strip("| ").split(" | ") for line in text[start:end].splitlines()[2:]}
    lines = list(HEAD)
    for (name, *counts), cells in rows:
        name = " or ".join(f"`{one}`" for one in name.split(" or ")) if name[0].isupper() else name
        kept = old.get(name, ["-"] * 6)[3:]
        ways = ("recognized", "written before", "written now")
        filled = [cells.get(way, kept[at] if way == "written before" else "-") for at, way in enumerate(ways)]
        lines.append(f"| {' | '.join([name, *counts, *filled])} |")
    return text[:start] + "\n".join(lines) + text[end:], text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--now", required=True, type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        rows = [counted(form, options.before, options.now, pathlib.Path(folder), problems) for form in forms()]
    for _, problem in problems:
        print(problem)
    new, old = page(rows)
    if options.write:
        PAGE.write_text(new)
    elif new != old:
        print(f"{PAGE} has another table; --write writes this one:")
        print("\n".join(sorted(set(new.splitlines()) - set(old.splitlines()))))
    sys.exit(any(wrong for wrong, _ in problems) or (new != old and not options.write))


if __name__ == "__main__":
    main()
