"""Bundles from folder to results: reading, folding, running, and what is said when something is wrong."""

import contextlib
import gc
import io
import json
import tempfile
import unittest
import weakref
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from runner.bundle import read_bundle
from runner.cli import main
from runner.errors import RunnerError
from runner.execute import CudaGraph, Runner, execute
from runner.tests.bundles import node, value, write

RANDOM = np.random.Generator(np.random.PCG64(3))


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, dtype=np.float32)


def small_network(folder: Path, **more: int) -> Path:
    """Three channels to four slots of NHWC, a convolution, and back to NCHW."""
    w = np.zeros((8, 3, 3, 4), np.float32)
    w[..., :3] = normal(8, 3, 3, 3)
    nodes = [
        node("Relayout_2", ["x"], ["a"], "relayout", 1, **{"from": "NCHW", "to": "N H W C[3:4]"}, slots=[4], no_kernel="padding"),
        node("Conv2d_NHWC_B", ["a", "w", "b"], ["c"], "relayout", 1, pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["d"]),
        node("Transpose", ["d"], ["y"], perm=[0, 3, 1, 2], move="k"),
    ]
    return write(folder, nodes, [value("x", [1, 3, 6, 5])], ["y"], {"w": w, "b": normal(8)}, **more)


class InAFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def command(self, *arguments: str | Path) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
        return status, out.getvalue(), err.getvalue()


class Executing(InAFolder):
    def test_a_network_computes_what_its_bytes_say(self) -> None:
        bundle = read_bundle(small_network(self.folder))
        x = torch.randn(1, 3, 6, 5)
        w = bundle.constants["w"][..., :3].permute(0, 3, 1, 2)
        want = torch.relu(torch.conv2d(x, w, bundle.constants["b"], padding=1))
        for moves in ("kernels", "torch"):
            (have,) = execute(Runner(bundle, moves=moves), [x])
            torch.testing.assert_close(have, want, rtol=1e-5, atol=1e-5)

    def test_moves_are_counted_with_a_kernel_and_without(self) -> None:
        runner = Runner(read_bundle(small_network(self.folder)))
        execute(runner, [torch.randn(1, 3, 6, 5)])
        self.assertEqual(runner.moves_run, 2)

    def test_another_count_in_the_manifest_is_an_error(self) -> None:
        runner = Runner(read_bundle(small_network(self.folder, moves=3)))
        with self.assertRaisesRegex(RunnerError, "2 moves were executed, but the manifest .* counts 4"):
            execute(runner, [torch.randn(1, 3, 6, 5)])

    def test_extents_that_are_known_are_folded(self) -> None:
        nodes = [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "first"], ["n"], axis=0),
            node("Concat", ["n", "rest"], ["t"], axis=0),
            node("Reshape", ["x", "t"], ["y"]),
        ]
        constants = {"first": np.array([0]), "rest": np.array([-1])}
        runner = Runner(read_bundle(write(self.folder, nodes, [value("x", [2, 3, 4])], ["y"], constants)))
        self.assertEqual([step.node.op for step in runner._steps], ["Reshape"])
        self.assertTrue(runner.static)
        self.assertEqual(runner(torch.zeros(2, 3, 4))[0].shape, (2, 12))

    def test_extents_that_are_not_known_are_computed(self) -> None:
        nodes = [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "first"], ["n"], axis=0),
            node("Concat", ["n", "rest"], ["t"], axis=0),
            node("Reshape", ["x", "t"], ["y"]),
            node("Cast", ["n"], ["f"], to=1),
            node("Mul", ["y", "f"], ["z"]),
        ]
        constants = {"first": np.array([0]), "rest": np.array([-1])}
        runner = Runner(read_bundle(write(self.folder, nodes, [value("x", ["N", 3, 4])], ["z"], constants)))
        self.assertFalse(runner.static)
        for count in (2, 5):
            self.assertTrue(torch.equal(runner(torch.ones(count, 3, 4))[0], torch.full((count, 12), float(count))))

    def test_outputs_may_be_inputs_and_constants(self) -> None:
        runner = Runner(
            read_bundle(write(self.folder, [node("Relu", ["x"], ["y"])], [value("x", [2])], ["x", "c", "y"], {"c": normal(3)}))
        )
        have = runner(torch.tensor([-1.0, 1.0]))
        self.assertEqual([x.tolist() for x in (have[0], have[2])], [[-1.0, 1.0], [0.0, 1.0]])
        self.assertTrue(torch.equal(have[1], runner.bundle.constants["c"]))

    def test_an_input_with_a_default_need_not_be_given(self) -> None:
        inputs = [value("x", [2]), value("c", [2])]
        runner = Runner(
            read_bundle(write(self.folder, [node("Add", ["x", "c"], ["y"])], inputs, ["y"], {"c": np.ones(2, np.float32)}))
        )
        self.assertEqual(runner(torch.zeros(2))[0].tolist(), [1.0, 1.0])

    def test_infinite_attributes_are_numbers(self) -> None:
        clip = node("Clip", ["x"], ["y"], opset=9)
        clip["attributes"] = {"min": {"type": "float", "value": 0.0}, "max": {"type": "float", "value": "inf"}}
        runner = Runner(read_bundle(write(self.folder, [clip], [value("x", [2])], ["y"])))
        self.assertEqual(runner(torch.tensor([-1.0, 1e30]))[0].tolist(), [0.0, 1.0000000150474662e30])

    def test_channels_last_gives_weights_and_inputs_that_format(self) -> None:
        nodes = [node("Conv", ["x", "w"], ["y"])]
        bundle = read_bundle(write(self.folder, nodes, [value("x", [1, 8, 6, 6])], ["y"], {"w": normal(4, 8, 3, 3)}))
        runner = Runner(bundle, moves="torch", channels_last=True)
        (x,) = runner.prepare([torch.randn(1, 8, 6, 6)])
        for tensor in (x, runner._placed["w"], runner(x)[0]):
            self.assertTrue(tensor.is_contiguous(memory_format=torch.channels_last))
        torch.testing.assert_close(runner(x)[0], Runner(bundle, moves="torch")(x.contiguous())[0], rtol=1e-5, atol=1e-5)

    def test_a_graph_keeps_the_weights_that_it_reads(self) -> None:
        def nothing(_: object) -> contextlib.AbstractContextManager[None]:
            return contextlib.nullcontext()

        runner = Runner(read_bundle(small_network(self.folder)))
        alive = weakref.ref(runner)
        there = {"Stream": mock.Mock, "current_stream": mock.Mock, "stream": nothing, "CUDAGraph": mock.Mock, "graph": nothing}
        with mock.patch.multiple(torch.cuda, **there):
            replay = CudaGraph(runner, [torch.randn(1, 3, 6, 5)]).replay
        del runner
        gc.collect()
        self.assertEqual(len(replay()), 1)
        self.assertIsNotNone(alive())

    def test_an_op_that_fails_is_named(self) -> None:
        runner = Runner(
            read_bundle(write(self.folder, [node("MatMul", ["x", "w"], ["y"])], [value("x", [2, 3])], ["y"], {"w": normal(4, 5)}))
        )
        with self.assertRaisesRegex(RunnerError, "node the MatMul"):
            runner(torch.zeros(2, 3))


class Reading(InAFolder):
    def test_a_file_that_was_changed_is_named(self) -> None:
        small_network(self.folder)
        with (self.folder / "weights.safetensors").open("r+b") as file:
            file.seek(-1, 2)
            file.write(b"\xff")
        with self.assertRaisesRegex(RunnerError, "weights.safetensors is not what the manifest says"):
            read_bundle(self.folder)

    def test_another_schema_is_refused(self) -> None:
        path = small_network(self.folder) / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 2}))
        with self.assertRaisesRegex(RunnerError, "schema 2"):
            read_bundle(self.folder)

    def test_a_folder_without_a_bundle_says_how_to_write_one(self) -> None:
        with self.assertRaisesRegex(RunnerError, "--emit bundle"):
            read_bundle(self.folder)


class Commands(InAFolder):
    def test_run_writes_the_outputs_and_says_how_many_moves_there_were(self) -> None:
        bundle = small_network(self.folder / "b")
        x = normal(1, 3, 6, 5)
        np.savez(self.folder / "x.npz", x=x)
        status, out, _ = self.command(
            "run", bundle, "--inputs", self.folder / "x.npz", "--outputs", self.folder / "y.npz", "--device", "cpu"
        )
        self.assertEqual((status, out), (0, "moves: 2 executed, as the manifest counts\n"))
        (want,) = Runner(read_bundle(bundle))(torch.from_numpy(x))
        np.testing.assert_array_equal(np.load(self.folder / "y.npz")["y"], want.numpy())

    def test_arrays_have_to_be_those_of_the_inputs(self) -> None:
        bundle = small_network(self.folder / "b")
        for arrays, words in [
            ({}, "no array for the inputs x"),
            ({"x": normal(1, 3, 6, 5), "z": normal(1)}, "no input to give is called z"),
            ({"x": normal(1, 3, 5, 6)}, r"input 'x' has to be f32 \[1, 3, 6, 5\]"),
        ]:
            np.savez(self.folder / "x.npz", **arrays)
            status, _, err = self.command(
                "run", bundle, "--inputs", self.folder / "x.npz", "--outputs", self.folder / "y.npz", "--device", "cpu"
            )
            self.assertEqual(status, 1)
            self.assertRegex(err, words)

    def test_compare_fails_beyond_the_tolerance(self) -> None:
        import onnx
        from onnx import TensorProto, helper

        types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
        graph = helper.make_graph([helper.make_node("Sigmoid", ["x"], ["y"])], "g", types[:1], types[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), self.folder / "m.onnx")
        for op, want in (("Sigmoid", 0), ("Tanh", 1)):
            bundle = write(self.folder / op, [node(op, ["x"], ["y"])], [value("x", [4])], ["y"])
            status, out, _ = self.command("compare", bundle, "--model", self.folder / "m.onnx", "--device", "cpu")
            self.assertEqual(status, want, out)
            self.assertIn("same" if want == 0 else "DIFFERENT", out)


if __name__ == "__main__":
    unittest.main()
