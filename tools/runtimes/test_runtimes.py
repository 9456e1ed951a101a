"""The comparison of runtimes: tensors in folders, workers that end or hang, verdicts, tables. No runtime is needed but ONNX Runtime.

    python tools/runtimes/test_runtimes.py
"""
import argparse
import importlib.util
import math
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import tensors  # noqa: E402

spec = importlib.util.spec_from_file_location("compare", HERE / "__main__.py")
compare = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compare)

# A worker that does what its model, a text, says.
FAKE = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import tensors
said = open(sys.argv[2]).read().split()
if said[0] == "dies":
    sys.exit(3)
if said[0] == "hangs":
    subprocess.run([sys.executable, "-c", "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)",
                    sys.argv[2] + ".child"])
if said[0] == "refuses":
    print("@note no such operator")
    sys.exit(0)
print("noise of a library")
tensors.write(sys.argv[4], {"y": tensors.read(sys.argv[3])["x"] * float(said[1])})
print("@ready", flush=True)
for line in sys.stdin:
    if said[0] == "breaks":
        sys.exit(4)
    print("@" + repr(float(said[2])), flush=True)
"""


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = Path(self.folder.name)

    def told(self, name, text):
        path = self.at / name
        path.write_text(text)
        return path


class Tensors(Folder):
    def test_what_is_written_is_read(self):
        arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "none": np.zeros((0, 4), np.int64), "one": np.array(True),
                  "big endian": np.array([1, 2, 300], ">i4"), "half": np.array([0.5, np.inf], np.float16)}
        tensors.write(self.at, arrays)
        read = tensors.read(self.at)
        self.assertEqual(list(read), list(arrays))
        for name, array in arrays.items():
            np.testing.assert_array_equal(read[name], array)
            self.assertEqual(read[name].shape, array.shape)


class Distances(unittest.TestCase):
    def test_it_is_relative_to_the_largest_number(self):
        self.assertEqual(compare.far({"y": np.array([4.0, 1.0])}, {"y": np.array([4.0, 2.0])}), 0.25)

    def test_names_matter_only_where_both_have_them(self):
        a, b = np.array([1.0]), np.array([2.0])
        self.assertEqual(compare.far({"b": b, "a": a}, {"a": a, "b": b}), 0)
        self.assertEqual(compare.far({"0": a, "1": b}, {"a": a, "b": b}), 0)
        self.assertGreater(compare.far({"0": b, "1": a}, {"a": a, "b": b}), 0)

    def test_what_cannot_be_compared_is_infinitely_far(self):
        one = {"y": np.ones(2)}
        for other in ({}, {"y": np.ones(3)}, {"y": np.array([1.0, np.nan])}, {"y": np.array([1.0, np.inf])}):
            self.assertEqual(compare.far(other, one), math.inf, other)
        strange = {"y": np.array([np.nan, np.inf, -np.inf, 1.0])}
        self.assertEqual(compare.far(strange, strange), 0)


class Workers(Folder):
    def row(self, original, ours, times=True):
        tensors.write(self.at / "inputs", {"x": np.array([1.0, 2.0])})
        args = argparse.Namespace(work=self.at, timeout=3, seconds=1, longest=5, times=times)
        command = [sys.executable, "-c", FAKE, HERE]
        right = {"y": np.array([1.0, 2.0])}
        return compare.looked_at(command, self.told("a", original), self.told("b", ours), self.at / "inputs", right, args)

    def test_times_are_those_that_the_workers_say(self):
        row = self.row("runs 1 0.3", "runs 1 0.2")
        self.assertEqual(compare.verdict(row), "right")
        self.assertEqual(row["rounds"], 6)
        for found, wanted in ((row["ratio"][1], 1.5), (row["control"][1], 1), (row["original_ms"], 300), (row["ours_ms"], 200)):
            self.assertAlmostEqual(found, wanted)
        self.assertNotIn("ratio", self.row("runs 1 1", "runs 1 1", times=False))

    def test_longer_is_slower(self):
        self.assertEqual(compare.verdict(self.row("runs 1 0.2", "runs 1 0.3")), "slower")

    def test_what_is_slower_only_once_is_not(self):
        fast, slow = self.row("runs 1 0.3", "runs 1 0.2"), self.row("runs 1 0.2", "runs 1 0.3")
        for rows, said in (([slow, fast], "right"), ([slow, slow], "slower"), ([fast, slow], "right")):
            left = iter(rows)
            self.assertEqual(compare.verdict(compare.again_if_slower(lambda left=left: next(left))), said)

    def test_other_results_are_a_failure(self):
        self.assertEqual(compare.verdict(self.row("runs 1 1", "runs 1.01 1")), "failed")
        self.assertEqual(compare.verdict(self.row("runs 1 1", "runs 1.0001 1")), "right")

    def test_results_that_are_nearer_to_the_right_ones_are_none(self):
        row = self.row("runs 1.005 1", "runs 1 1")
        self.assertEqual(compare.verdict(row), "right")
        self.assertAlmostEqual(row["original_error"], 0.005)
        self.assertEqual(compare.verdict(self.row("runs 1.05 1", "runs 1 1")), "right")

    def test_an_original_with_another_result_is_nothing_to_compare_with(self):
        for ours, said in (("runs 1.1 1", "wrong"), ("runs 1.05 1", "right"), ("dies", "failed")):
            self.assertEqual(compare.verdict(self.row("runs 1.05 1", ours)), said, ours)

    def test_what_takes_too_long_is_not_timed(self):
        row = self.row("runs 1 5.1", "runs 1 1")
        self.assertEqual((compare.verdict(row), "ratio" in row), ("right", False))

    def test_ours_that_does_not_load_or_run_is_a_failure(self):
        for ours, why in (("dies", "ends with 3"), ("refuses", "no such operator"), ("hangs", "no end after 3 s"), ("breaks 1 1", "ends with 4")):
            row = self.row("runs 1 0.01", ours)
            self.assertEqual(compare.verdict(row), "failed", ours)
            self.assertIn(why, row["ours"])

    def test_what_a_worker_started_ends_with_it(self):
        self.assertIn("no end after 3 s", self.row("runs 1 0.01", "hangs")["ours"])
        child = int((self.at / "b.child").read_text())
        # It may be there for a moment, until somebody asks how it ended.
        for _ in range(50):
            state = Path(f"/proc/{child}/stat")
            if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
            time.sleep(0.1)
        self.fail("the child still runs")

    def test_an_original_that_does_not_load_is_none(self):
        row = self.row("refuses", "runs 1 1")
        self.assertEqual((compare.verdict(row), row["ours_error"]), ("not loaded", 0))
        self.assertEqual(self.row("refuses", "dies"), {"original": "no such operator"})

    def test_tables_count_what_was_found(self):
        rows = {"a": {"web": self.row("runs 1 0.2", "runs 1 0.1")}, "b": {"web": self.row("refuses", "runs 1 1")}, "c": {"web": None},
                "d": {"web": self.row("runs 1 1", "dies")}, "e": {"web": self.row("runs 1 0.1", "runs 1 0.2")}}
        first, second, *cells, slower, failed = compare.tables(rows, dict.fromkeys(rows, "TensorFlow"), ["web"])
        self.assertEqual(first.count("|"), second.count("|"))
        self.assertEqual(cells, [f"| onnxruntime-web, wasm | {group} | 4 of 5 | 1 (1 load as ours) | 0 | 2 of 3 | 2 | 1.00 (0.50 to 2.00) "
                                 "| 1.00 (1.00 to 1.00) | 1 |" for group in ("TensorFlow", "all")])
        self.assertIn("d ", slower + failed)


class OnnxRuntime(Folder):
    def model(self, op, name):
        tensor = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2])
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [tensor("x")], [tensor("y")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.at / name)
        return self.at / name

    def test_a_model_runs_in_a_worker(self):
        x = np.array([[-1.0, 2.0]], np.float32)
        tensors.write(self.at / "inputs", {"x": x})
        relu, neg = self.model("Relu", "relu.onnx"), self.model("Neg", "neg.onnx")
        right = compare.reference(relu, {"x": x})
        args = argparse.Namespace(work=self.at, timeout=60, seconds=0.1, longest=60, times=True)
        command = compare.RUNTIMES["onnxruntime"]
        row = compare.looked_at(command, relu, relu, self.at / "inputs", right, args)
        self.assertEqual((row["original_error"], row["difference"]), (0, 0))
        self.assertGreater(row["original_ms"], 0)
        self.assertEqual(compare.verdict(compare.looked_at(command, relu, neg, self.at / "inputs", right, args)), "failed")
        broken = self.told("broken.onnx", "no model")
        self.assertIn("original", compare.looked_at(command, broken, relu, self.at / "inputs", right, args))


if __name__ == "__main__":
    unittest.main()
