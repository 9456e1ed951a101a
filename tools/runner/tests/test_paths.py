"""Paths of a bundle: none leads out of the folder, and no link is followed."""

import os
import tempfile
import unittest
from pathlib import Path

from runner.errors import RunnerError
from runner.paths import inside


class Inside(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.folder = self.root / "bundle"
        (self.folder / "kernels").mkdir(parents=True)
        for path in (self.folder / "graph.json", self.folder / "kernels" / "move.cu", self.root / "secret"):
            path.write_text("text")

    def test_files_of_the_folder_are_found(self) -> None:
        for name in ("graph.json", "kernels/move.cu"):
            self.assertEqual(inside(self.folder, name), self.folder / name)
        alias = self.root / "alias"
        alias.symlink_to(self.folder)
        self.assertEqual(inside(alias, "graph.json"), alias / "graph.json")

    def test_names_that_leave_the_folder_are_refused(self) -> None:
        absolute = str(self.root / "secret")
        names = ["../secret", "kernels/../../secret", "kernels/../graph.json", "./graph.json", "a//b", "", "/", absolute, "..", "a\\b"]
        for name in [*names, None, 7, ["graph.json"]]:
            with self.assertRaisesRegex(RunnerError, "no path in the folder"):
                inside(self.folder, name)

    def test_links_are_not_followed(self) -> None:
        (self.folder / "link").symlink_to(self.root / "secret")
        (self.folder / "own").symlink_to("graph.json")
        (self.folder / "away").symlink_to(self.root)
        for name in ("link", "own", "away/secret"):
            with self.assertRaisesRegex(RunnerError, "is a link"):
                inside(self.folder, name)

    def test_what_is_no_file_is_refused_before_it_is_opened(self) -> None:
        os.mkfifo(self.folder / "pipe")
        for name, why in (("kernels", "is not a file"), ("pipe", "is not a file"), ("nothing", "is not there")):
            with self.assertRaisesRegex(RunnerError, why):
                inside(self.folder, name)


if __name__ == "__main__":
    unittest.main()
