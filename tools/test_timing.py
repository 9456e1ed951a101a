"""Comparison of times: turns, intervals, the control, and what is left out.

    python tools/test_timing.py
"""
import random
import tempfile
import unittest
from pathlib import Path

import timing


class Turns(unittest.TestCase):
    def test_each_has_two_turns_in_a_round_and_none_follows_itself(self):
        order = []
        runs = {name: lambda name=name: order.append(name) for name in "abc"}
        found = timing.beside(runs, rounds=2)
        # One round that does not count, and two that do.
        self.assertEqual("".join(order), "abcabc" * 3)
        self.assertEqual([len(found.seconds(name)) for name in "abc"], [2, 2, 2])

    def test_a_run_that_measures_itself_is_taken_at_its_word(self):
        times = iter([9.0] * 4 + [1.0, 3.0, 1.0, 5.0] + [2.0, 2.0, 4.0, 4.0])
        draw = lambda: next(times)
        found = timing.beside({"base": draw, "other": draw}, rounds=2)
        self.assertEqual(found.turns, {"base": [(1.0, 1.0), (2.0, 4.0)], "other": [(3.0, 5.0), (2.0, 4.0)]})
        self.assertEqual([found.median(name) for name in found.turns], [2.0, 3.5])
        self.assertEqual(found.over("other"), timing.Ratio(1.0, 2.5, 4.0))
        self.assertEqual(found.over("base", "other").median, (1 / 4 + 1) / 2)
        self.assertEqual(found.control(), timing.Ratio(1.0, 1.5, 2.0))

    def test_what_is_faster_behind_itself_is_no_faster_for_it(self):
        last = [None]

        def run(name):
            warm, last[0] = last[0] == name, name
            return 0.9 if warm else 1.0

        found = timing.beside({name: lambda name=name: run(name) for name in ("base", "other")}, rounds=9)
        self.assertEqual((found.over("other"), found.control()), (timing.Ratio(1.0, 1.0, 1.0), timing.Ratio(1.0, 1.0, 1.0)))

    def test_load_that_comes_and_goes_is_in_no_ratio(self):
        draw, load = random.Random(1), [1.0]

        def run(cost):
            load[0] = max(0.5, load[0] * draw.uniform(0.9, 1.1))
            return cost * load[0]

        found = timing.beside({"base": lambda: run(1.0), "other": lambda: run(1.5)}, rounds=101)
        self.assertTrue(found.control().low <= 1 <= found.control().high, found.control())
        self.assertTrue(found.over("other").low <= 1.5 <= found.over("other").high, found.over("other"))


class Intervals(unittest.TestCase):
    def test_an_interval_holds_the_true_median_as_often_as_it_says(self):
        draw, held, times = random.Random(2), 0, 2000
        for _ in range(times):
            found = timing.ratio(draw.lognormvariate(0, 1) for _ in range(15))
            held += found.low <= 1 <= found.high
        # 96.5 % for fifteen numbers: the next rank would hold it in 88 %.
        self.assertTrue(0.95 <= held / times <= 0.98, held)

    def test_of_few_numbers_it_is_all_of_them(self):
        self.assertEqual(timing.ratio([3.0]), timing.Ratio(3.0, 3.0, 3.0))
        self.assertEqual(timing.ratio([3.0, 1.0, 2.0, 5.0, 4.0]), timing.Ratio(1.0, 3.0, 5.0))
        self.assertEqual(timing.ratio(range(1, 10)), timing.Ratio(2, 5, 8))

    def test_the_inverse_of_a_ratio_turns_its_interval_round(self):
        self.assertEqual(timing.Ratio(0.5, 1.0, 4.0).inverse(), timing.Ratio(0.25, 1.0, 2.0))
        self.assertEqual(str(timing.Ratio(0.5, 1.0, 4.0)), "1.00 (0.50 to 4.00)")


class Files(unittest.TestCase):
    def test_files_are_identical_by_their_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in "abc"]
            for path, content in zip(paths, (b"same", b"same", b"sane"), strict=True):
                path.write_bytes(content)
            self.assertTrue(timing.identical(*paths[:2]))
            self.assertFalse(timing.identical(*paths[1:]))


if __name__ == "__main__":
    unittest.main()
