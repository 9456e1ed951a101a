"""Permutations by themselves: each is timed beside a copy, a wrong one is no figure."""

import tempfile
import unittest
import unittest.mock
from pathlib import Path

from runner import permute
from runner.capi import find_library
from runner.errors import RunnerError
from runner.moves import Move

CASES = (permute.Case("matrices", (2, 24, 40), (0, 2, 1)), permute.Case("outer axes", (6, 5, 16), (1, 0, 2)))


class Permuting(unittest.TestCase):
    def setUp(self) -> None:
        for patched in (
            unittest.mock.patch.object(permute, "CASES", CASES),
            unittest.mock.patch.object(permute, "_RING", {"cpu": 4 << 10}),
            unittest.mock.patch.object(permute, "_ROUND_MS", 0.1),
        ):
            self.enterContext(patched)
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.relayout = find_library().parent / "relayout"

    def test_every_case_of_every_type_stands_beside_a_copy(self) -> None:
        found = permute.permute(self.folder, self.relayout, ("u8", "f32"), "cpu", 2, None)
        rows = [(row["case"], row["dtype"], row["bytes"]) for row in found["rows"]]
        self.assertEqual(
            rows, [("matrices", "u8", 1920), ("matrices", "f32", 7680), ("outer axes", "u8", 480), ("outer axes", "f32", 1920)]
        )
        for row in found["rows"]:
            self.assertTrue(all(row[f"{name}_s"] > 0 for name in ("ours", "copy", "torch")))
            low, median, high = row["of_a_copy"]
            self.assertTrue(0 < low <= median <= high)
            self.assertIn(row["case"], permute.line(row))

    def test_a_wrong_move_is_no_figure(self) -> None:
        with unittest.mock.patch.object(Move, "into", lambda move, x, y: y.zero_()):
            with self.assertRaisesRegex(RunnerError, "matrices, u8: the kernel moves .* wrongly"):
                permute.permute(self.folder, self.relayout, ("u8",), "cpu", 1, None)

    def test_what_the_program_says_is_handed_on(self) -> None:
        with self.assertRaisesRegex(RunnerError, "optimize .* cuda-tensorcore"):
            permute.permute(self.folder, Path("/bin/false"), ("u8",), "cpu", 1, None)


if __name__ == "__main__":
    unittest.main()
