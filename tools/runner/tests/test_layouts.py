"""Names of layouts, and stored tensors in ONNX's order."""

import unittest

import torch

from runner.errors import RunnerError
from runner.layouts import feature_letters, parse_layout, weight_letters


class Layouts(unittest.TestCase):
    def test_the_view_of_nhwc_bytes_has_the_strides_of_channels_last(self) -> None:
        for word, shape, memory_format in [
            ("NHWC", (2, 5, 6, 8), torch.channels_last),
            ("NDHWC", (2, 3, 5, 6, 8), torch.channels_last_3d),
        ]:
            x = torch.randn(shape)
            view = parse_layout(word).to_onnx(x)
            plain = torch.empty(view.shape).to(memory_format=memory_format)
            self.assertEqual(view.stride(), plain.stride())
            self.assertEqual(view.data_ptr(), x.data_ptr())

    def test_the_view_of_ohwi_weights_has_the_strides_of_channels_last(self) -> None:
        w = torch.randn(16, 3, 3, 8)
        view = parse_layout("OHWI", weight_letters(4)).to_onnx(w)
        self.assertEqual(tuple(view.shape), (16, 8, 3, 3))
        self.assertEqual(view.stride(), torch.empty(16, 8, 3, 3).to(memory_format=torch.channels_last).stride())
        self.assertEqual(view.data_ptr(), w.data_ptr())

    def test_what_lies_channels_last_is_stored_as_nhwc_without_a_copy(self) -> None:
        y = torch.randn(2, 8, 5, 6).to(memory_format=torch.channels_last)
        stored = parse_layout("NHWC").from_onnx(y)
        self.assertEqual(tuple(stored.shape), (2, 5, 6, 8))
        self.assertTrue(stored.is_contiguous())
        self.assertEqual(stored.data_ptr(), y.data_ptr())

    def test_blocks_are_where_the_name_says(self) -> None:
        x = torch.arange(2 * 8 * 3 * 5).reshape(2, 8, 3, 5)
        stored = parse_layout("NCHW4c").from_onnx(x)
        self.assertEqual(tuple(stored.shape), (2, 2, 3, 5, 4))
        self.assertEqual(stored[1, 1, 2, 3, 2], x[1, 6, 2, 3])
        stored = parse_layout("CHWN4").from_onnx(x)
        self.assertEqual(tuple(stored.shape), (2, 3, 5, 2, 4))
        self.assertEqual(stored[1, 2, 3, 1, 2], x[1, 6, 2, 3])
        stored = parse_layout("OIHW4i2o", weight_letters(4)).from_onnx(x)
        self.assertEqual(tuple(stored.shape), (1, 2, 3, 5, 4, 2))
        self.assertEqual(stored[0, 1, 2, 3, 2, 1], x[1, 6, 2, 3])

    def test_a_block_inside_of_which_no_finer_one_lies_says_its_span(self) -> None:
        layout = parse_layout("HW8h2wNC")
        self.assertEqual(
            [(d.axis, d.div, d.modulo) for d in layout.digits],
            [(2, 8, None), (3, 2, None), (2, 1, 8), (3, 1, 2), (0, 1, None), (1, 1, None)],
        )
        spans = parse_layout("NCHW4cx16x16c")
        self.assertEqual([(d.div, d.modulo) for d in spans.digits if d.axis == 1], [(64, None), (16, 4), (1, 16)])

    def test_every_layout_undoes_itself(self) -> None:
        x = torch.randn(4, 32, 16, 8)
        for word in ["NCHW", "NHWC", "HWNC", "NCHW16c", "NCHW4cx8x8c", "CHWN4", "8hNCHW", "HW8h2wNC", "NHCWc4"]:
            layout = parse_layout(word)
            stored = layout.from_onnx(x)
            self.assertEqual(layout.slots(stored.shape), list(x.shape), word)
            self.assertTrue(torch.equal(layout.to_onnx(stored), x), word)

    def test_letters_follow_the_rank(self) -> None:
        self.assertEqual([feature_letters(rank) for rank in range(1, 7)], ["A", "AB", "NCW", "NCHW", "NCDHW", "ABCDEF"])

    def test_what_spells_no_layout_is_refused(self) -> None:
        for word in ["", "nchw", "NCH?", "NCCW", "NCHX", "NHW16c"]:
            with self.assertRaises(RunnerError, msg=word):
                parse_layout(word)


if __name__ == "__main__":
    unittest.main()
