"""The whole run of figures on a CPU, and what figures of a GPU would have to show, on made-up ones."""

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runner.bench import Settings
from runner.capi import find_library
from runner.criteria import BREAKING, CONTROL, criteria
from runner.errors import RunnerError
from runner.figures import MODELS, Plan, figures
from runner.variant import Variant

RANDOM = np.random.Generator(np.random.PCG64(9))


def measured(name: str, last: float = 1.2, nchw: float = 1.5, **more: Any) -> dict[str, Any]:
    """Figures of a model that is `last` times as fast as channels_last and `nchw` times as the original."""
    move = {"node": "t", "bytes": 64, "us": 1.0, "copy_us": 0.97}
    ours = {"mode": "ours", "median_ms": 1.0, "error": 5e-3, "layout_kernels": 1, "planned_moves": 1, "moves_share": 0.005}
    ours |= {"moves": [move], "off_tensor_cores": {}, "copied": {}} | more
    others = [{"mode": "nchw", "median_ms": nchw}, {"mode": "channels_last", "median_ms": last}]
    return {"model": name, "dtype": "fp16", "batch": 32, "modes": [*others, ours], "notes": []}


def holding(models: list[dict[str, Any]]) -> list[bool | None]:
    return [criterion.holds for criterion in criteria(models)]


class Criteria(unittest.TestCase):
    def all_but(self, **of_resnet50: Any) -> list[bool | None]:
        return holding([*[measured(name) for name in BREAKING], measured("resnet50", **of_resnet50)])

    def test_good_figures_hold_everywhere(self) -> None:
        self.assertEqual(self.all_but(), [True] * 8)

    def test_each_figure_that_is_off_fails_the_line_that_asks_for_it(self) -> None:
        slow = {"node": "t", "bytes": 64, "us": 1.0, "copy_us": 0.9}
        for at, more in [
            (0, {"layout_kernels": 2}),
            (1, {"nchw": 1e-3}),
            (2, {"last": 0.98}),
            (4, {"moves_share": 0.02}),
            (5, {"moves": [slow]}),
            (6, {"off_tensor_cores": {"conv1": ["ampere_sgemm_128x64_nn"]}}),
            (7, {"error": 2e-2}),
            (7, {"error": float("nan")}),
        ]:
            want: list[bool | None] = [True] * 8
            want[at] = False
            self.assertEqual(self.all_but(**more), want, str(more))

    def test_copies_beyond_the_planned_moves_are_named(self) -> None:
        (line, *_) = criteria([measured("resnet50", layout_kernels=2, copied={"split1": ["direct_copy_kernel_cuda"]})])
        self.assertEqual(line.found, "resnet50 fp16 x32: 2, planned 1 (copies in split1)")

    def test_a_control_that_gains_does_not_count_among_those_where_channels_last_breaks(self) -> None:
        models = [measured(name, 1.2) for name in BREAKING[:4]] + [measured(name, 1.0) for name in BREAKING[4:]]
        self.assertIs(holding([*models, measured(CONTROL[0], 1.3)])[3], False)
        models[5] = measured(BREAKING[5], 1.1)
        self.assertIs(holding([*models, measured(CONTROL[0], 1.0)])[3], True)

    def test_what_was_not_measured_is_unknown_and_not_good(self) -> None:
        self.assertEqual(holding([]), [None] * 8)
        some = holding([measured("resnet50", off_tensor_cores=None, error=None)])
        self.assertEqual(some, [True, None, None, None, True, True, None, None])

    def test_other_variants_say_nothing_of_speed(self) -> None:
        models = [measured(name) | {"batch": 1} for name in MODELS]
        self.assertEqual(holding(models), [True, None, None, None, True, True, True, True])


def network(folder: Path, name: str, op: str = "Relu") -> None:
    """A convolution and an activation, on channels that come last."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["a", "w"], ["b"], pads=[1, 1, 1, 1]),
        helper.make_node(op, ["b"], ["y"]),
    ]
    w = numpy_helper.from_array(RANDOM.standard_normal((8, 8, 3, 3), dtype=np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 16, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 16, 16])
    graph = helper.make_graph(nodes, name, [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / f"{name}.onnx")


class OnACpu(unittest.TestCase):
    def run_figures(
        self, folder: Path, names: tuple[str, ...], variants: tuple[Variant, ...], relayout: Path | None = None
    ) -> dict[str, Any]:
        """With a program that is named, what was prepared before is taken."""
        program = relayout or find_library().parent / "relayout"
        plan = Plan(folder, names, variants, folder / "out", program, prepared=relayout is not None)
        return figures(plan, Settings("cpu", 1, 600.0, False, None))

    def test_every_model_is_prepared_and_measured_in_every_variant(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            network(folder, "m")
            network(folder, "lacking", "Acosh")
            found = self.run_figures(folder, ("m", "lacking"), (Variant("fp32", 2), Variant("fp16", 1)))
            self.assertEqual(json.loads((folder / "out" / "figures.json").read_text()), found)
        good = [model for model in found["models"] if model["model"] == "m"]
        self.assertEqual([(m["dtype"], m["batch"], m["notes"]) for m in good], [("fp32", 2, []), ("fp16", 1, [])])
        for model, most in zip(good, (1e-5, 1e-2)):
            self.assertEqual([mode["mode"] for mode in model["modes"]], ["nchw", "channels_last", "ours"])
            self.assertTrue(all(mode["error"] < most for mode in model["modes"]), str(model))
        lacking = [model["notes"] for model in found["models"] if model["model"] == "lacking"]
        self.assertEqual(len(lacking), 2)
        self.assertTrue(all("FAILED" in notes[0] and "Acosh" in notes[0] for notes in lacking), str(lacking))

    def test_what_was_prepared_before_is_taken_as_it_is(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            network(folder, "m")
            variants = (Variant("fp32", 1),)
            self.run_figures(folder, ("m",), variants)
            # This program prepares nothing.
            (model,) = self.run_figures(folder, ("m",), variants, Path("/bin/false"))["models"]
        self.assertEqual((len(model["modes"]), model["notes"]), (3, []))

    def test_a_model_that_can_not_be_prepared_is_said(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            network(folder, "m")
            (folder / "damaged.onnx").write_bytes(b"\x08\x08\x12")
            found = self.run_figures(folder, ("damaged", "m"), (Variant("fp32", 1),))
        notes = {model["model"]: model["notes"] for model in found["models"]}
        self.assertEqual(notes["m"], [])
        self.assertRegex(notes["damaged"][0], "^FAILED: ")

    def test_a_model_that_is_not_there_is_named_before_anything_is_done(self) -> None:
        with tempfile.TemporaryDirectory() as name, self.assertRaisesRegex(RunnerError, "no nowhere.onnx"):
            self.run_figures(Path(name), ("nowhere",), (Variant("fp32", 1),))


if __name__ == "__main__":
    unittest.main()
