"""Costs of a device: the cases that are asked for, and the whole way from `relayout calibrate` to a decision, on the CPU."""

import json
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import torch

from runner.calibrate import calibrate
from runner.capi import find_library
from runner.errors import RunnerError
from runner.tests.test_figures import network

CASES = [
    {"pass": {"bytes": 8}},
    {"move": {"shape": [4, 8, 32], "perm": [1, 0, 2], "elem_bytes": 4, "kernel": "k"}},
    *[
        {"conv": {"dtype": dtype, "channels_last": last, "groups": 2, "kernel": 3, "channels": 8, "images": 2, "side": 8}}
        for dtype in ("f32", "f16")
        for last in (False, True)
    ],
]


def asked(folder: Path, cases: list[dict], schema: int = 1) -> None:
    (folder / "cases.json").write_text(json.dumps({"schema": schema, "rounds": 2, "cases": cases}))


class Measuring(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_each_case_gets_a_time(self) -> None:
        asked(self.folder, CASES)
        calibrate(self.folder, "cpu", None)
        answer = json.loads((self.folder / "times.json").read_text())
        self.assertEqual((answer["schema"], answer["device"], len(answer["ns"])), (1, "cpu", len(CASES)))
        self.assertTrue(all(ns > 0 for ns in answer["ns"]))
        self.assertIn(torch.__version__, answer["runtime"])

    def test_convolutions_run_in_the_order_that_is_asked_for(self) -> None:
        seen = []
        conv2d = torch.nn.functional.conv2d

        def look(x: torch.Tensor, **more: object) -> torch.Tensor:
            y = conv2d(x, **more)
            seen.append([t.is_contiguous(memory_format=torch.channels_last) for t in (x, more["weight"], y)])
            return y

        asked(self.folder, [case for case in CASES if case.get("conv", {}).get("dtype") == "f32"])
        with unittest.mock.patch("torch.nn.functional.conv2d", look):
            calibrate(self.folder, "cpu", None)
        self.assertEqual({tuple(orders) for orders in seen}, {(False,) * 3, (True,) * 3})

    def test_what_this_runner_does_not_know_is_refused(self) -> None:
        for cases, schema, why in [([{"sort": {}}], 1, "'sort'"), ([], 9, "schema 9")]:
            asked(self.folder, cases, schema)
            with self.assertRaisesRegex(RunnerError, why):
                calibrate(self.folder, "cpu", None)
        self.assertFalse((self.folder / "times.json").exists())

    @unittest.skipIf(torch.cuda.is_available(), "says what is missing where there is no GPU")
    def test_without_a_gpu_it_says_so(self) -> None:
        asked(self.folder, CASES)
        with self.assertRaisesRegex(RunnerError, "no GPU"):
            calibrate(self.folder, "cuda", None)


class FromEndToEnd(unittest.TestCase):
    def test_a_table_of_this_machine_decides_in_place_of_the_built_in_one(self) -> None:
        relayout = find_library().parent / "relayout"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            table, made = folder / "costs.toml", folder / "made.bundle"
            call = [relayout, "calibrate", "--target", "cuda-tensorcore", "--device", "cpu", "--quick", "-o", table]
            runner = Path(__file__).resolve().parents[1]
            done = subprocess.run([*call, "--python", sys.executable, "--runner", runner], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('device = "cpu"', table.read_text())
            network(folder, "m")
            call = [relayout, "optimize", folder / "m.onnx", "--target", "cuda-tensorcore", "--costs", table, "-o", made]
            done = subprocess.run([*call, "--emit", "bundle"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((made / "graph.json").is_file())


if __name__ == "__main__":
    unittest.main()
