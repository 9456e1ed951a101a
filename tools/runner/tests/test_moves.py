"""Moves: the kernels of the C ABI against torch, and the kernels of a bundle as far as no GPU is needed."""

import json
import tempfile
import unittest
from pathlib import Path

import torch

from runner.bundle import Node
from runner.capi import CApi, find_library
from runner.cuda import compile_source, read_launch
from runner.errors import RunnerError
from runner.moves import Move, by_torch, relayout_of


def call(op: str, **attributes: object) -> Node:
    return Node("m", "" if op == "Transpose" else "relayout", op, 20, ("x",), ("y",), attributes, "k")


def relayout(source: str, destination: str, **attributes: object) -> Node:
    return call("Relayout_2", **{"from": source, "to": destination}, **attributes)


CASES = [
    (call("Transpose", perm=(0, 2, 3, 1)), (2, 6, 5, 7)),
    (call("Transpose"), (3, 4, 5)),
    (call("Relayout", perm=(1, 3, 0, 2, 4)), (2, 2, 4, 4, 60)),
    (relayout("NCHW", "N H W C[3:4]", slots=(4,)), (2, 3, 5, 7)),
    (relayout("NCDHW", "N D H W C[3:4]", slots=(4,)), (1, 3, 4, 5, 6)),
    (relayout("N H W C[19:24]", "NCHW", shape=(-1, 19, -1, -1)), (2, 4, 5, 24)),
    (relayout("N H W C[9:12]", "NHWC", shape=(-1, 9, -1, -1)), (2, 4, 5, 12)),
    (relayout("NHWC", "N H W C[3:8]", slots=(8,)), (2, 4, 5, 3)),
    (relayout("NCHW", "NCHW16c"), (2, 20, 3, 5)),
    (relayout("NCHW", "N C[20:48]/16 H W C%16", slots=(48,)), (2, 20, 3, 5)),
    (relayout("NCHW16c", "NHWC", shape=(-1, 20, -1, -1)), (2, 2, 3, 5, 16)),
    (relayout("NCHW16c", "NHWC"), (2, 2, 3, 5, 16)),
    (relayout("NCHW32c", "NCHW8c"), (1, 2, 3, 5, 32)),
    (relayout("W%1024 N C W/1024", "NWC"), (1024, 2, 3, 2)),
    (relayout("H/16 W/2 H%16 W%2 N C", "NWHC"), (4, 3, 16, 2, 2, 5)),
    (relayout("H W N C%2 C/2", "NHWC"), (4, 3, 2, 2, 6)),
    (relayout("N C%12 H W C/12", "NHWC"), (2, 12, 3, 4, 5)),
    (relayout("N H W C[6:8]", "HWNC", shape=(-1, 6, -1, -1)), (2, 3, 5, 8)),
    (relayout("N H W C[6:8]", "N[2:4] C H W", shape=(-1, 6, -1, -1), slots=(4,)), (2, 3, 5, 8)),
    (relayout("C/8 N[3:4] H W C%8", "NCHW16c", shape=(3, -1, -1, -1)), (3, 4, 2, 5, 8)),
    (relayout("NCW", "NCW4c"), (2, 6, 5)),
    (relayout("ab", "b/4 a b%4"), (3, 10)),
    # As bundles of older versions have it.
    (Node("m", "relayout", "Relayout", 20, ("x",), ("y",), {"from": "NCHW", "to": "NCHW16c"}, "k", None, "NCHW_NCHW16c_roundC"), (2, 20, 3, 5)),
]


class OnACpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.capi = CApi(find_library())

    def test_kernels_and_torch_move_the_same_bytes(self) -> None:
        for node, shape in CASES:
            for dtype in (torch.float32, torch.float16, torch.int8, torch.int64):
                x = torch.randint(1, 100, shape).to(dtype)
                moved = Move(node, self.capi, None)(x)
                self.assertTrue(moved.is_contiguous())
                self.assertTrue(torch.equal(moved, by_torch(node, x)), f"{node} {dtype}")

    def test_a_fill_has_zeros_in_the_further_slots_only(self) -> None:
        x = torch.ones(1, 3, 2, 2)
        moved = Move(relayout("NCHW", "N H W C[3:4]", slots=(4,)), self.capi, None)(x)
        self.assertEqual(moved[0, 1, 1].tolist(), [1.0, 1.0, 1.0, 0.0])

    def test_a_view_is_moved_as_what_it_shows(self) -> None:
        x = torch.randn(2, 5, 7, 12)[..., 3:9]
        moved = Move(call("Relayout", perm=(0, 3, 1, 2)), self.capi, None)(x)
        self.assertTrue(torch.equal(moved, x.permute(0, 3, 1, 2)))

    def test_a_tensor_of_no_elements_is_moved(self) -> None:
        moved = Move(relayout("NCHW", "N H W C[3:4]", slots=(4,)), self.capi, None)(torch.empty(0, 3, 2, 2))
        self.assertEqual(tuple(moved.shape), (0, 2, 2, 4))

    def test_shapes_may_change_from_call_to_call(self) -> None:
        move = Move(relayout("NCHW", "NCHW16c"), self.capi, None)
        for channels in (3, 16, 20):
            x = torch.randn(1, channels, 2, 2)
            self.assertTrue(torch.equal(move(x), by_torch(move.node, x)))

    def test_torch_sees_through_a_move_when_it_compiles(self) -> None:
        move = Move(relayout("N H W C[3:4]", "NCHW", shape=(-1, 3, -1, -1)), self.capi, None)
        compiled = torch.compile(lambda x: move(x + 1) * 2, backend="aot_eager", fullgraph=True)
        x = torch.randn(1, 4, 5, 8)
        self.assertTrue(torch.equal(compiled(x), by_torch(move.node, x + 1) * 2))

    def test_a_library_that_is_not_there_is_named(self) -> None:
        with self.assertRaisesRegex(RunnerError, "nowhere.so.*cargo build"):
            CApi(Path("/nowhere.so"))


class Calls(unittest.TestCase):
    def test_calls_that_are_no_moves_are_refused_with_the_node(self) -> None:
        for node, why in (
            (call("Relayout_2", **{"from": "NCHW"}), "neither perm nor both"),
            (call("Relayout"), "neither perm nor both"),
            (relayout("N C H? W", "NHWC"), "spells no layout"),
            (relayout("NC?W", "NHWC"), "spells no layout"),
            (relayout("N C H Q", "NHWC"), "does not spell the axes NCHW"),
            (relayout("NCHW", "NWC"), "other axes"),
            (relayout("NCHW", "N H W C[3:4]"), "0 entries of slots for 1"),
            (relayout("NCHW", "NHWC", slots=(4,)), "1 entries of slots for 0"),
            (relayout("N H W C[3:4]", "NCHW", shape=(-1, 3)), "shape"),
            (call("Relayout_NCHW_NHWC_fillC", slots=(4,)), "this version"),
        ):
            with self.assertRaisesRegex(RunnerError, f"node m .*{why}"):
                Move(node, None, None)

    def test_a_fill_and_a_crop_of_one_call_take_their_slots_from_their_own_attributes(self) -> None:
        move = relayout_of(relayout("N H W C[6:8]", "N[2:4] C H W", shape=(-1, 6, -1, -1), slots=(4,)))
        self.assertEqual(move.slots((2, 3, 5, 8)), ([2, 8, 3, 5], [4, 6, 3, 5]))

    def test_an_error_names_the_op(self) -> None:
        self.assertIn("relayout.Relayout_2", str(relayout("NCHW16c", "NHWC")))


SOURCE = 'extern "C" __global__ void twice(const unsigned char* s, unsigned char* d) { d[threadIdx.x] = s[threadIdx.x]; }'


class OfAGpu(unittest.TestCase):
    def test_sources_compile_without_a_gpu(self) -> None:
        self.assertTrue(compile_source(SOURCE, "twice", "sm_80").startswith(b"\x7fELF"))

    def test_what_does_not_compile_is_said_in_the_words_of_the_compiler(self) -> None:
        with self.assertRaisesRegex(RunnerError, "(?s)twice does not compile for sm_80.*nonsense"):
            compile_source("nonsense", "twice", "sm_80")

    def test_a_launch_is_read_with_its_source_and_arguments(self) -> None:
        launch = {
            "kernel": "twice",
            "source": "t.cu",
            "arch": "sm_80",
            "grid": [3, 1, 1],
            "block": [256, 1, 1],
            "shared_bytes": 0,
        }
        launch |= {"alignment": 16, "index_bits": 32, "source_bytes": 64, "destination_bytes": 64, "moved_bytes": 128}
        launch["arguments"] = [{"name": "n", "bytes": 4, "value": 7}]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "t.json")
            path.write_text(json.dumps(launch))
            with self.assertRaisesRegex(RunnerError, "t.cu of the bundle is not there"):
                read_launch(path)
            Path(folder, "t.cu").write_text(SOURCE)
            read = read_launch(path)
            path.write_text(json.dumps({"kernel": "twice"}))
            with self.assertRaisesRegex(RunnerError, "t.json is no launch.*grid"):
                read_launch(path)
        self.assertEqual((read.source, read.grid, read.arguments), (SOURCE, (3, 1, 1), ((4, 7),)))


if __name__ == "__main__":
    unittest.main()
