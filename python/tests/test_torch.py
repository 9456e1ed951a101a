"""What the exporter of PyTorch writes, and tensors of PyTorch. PyTorch is in the environment of tools/runner, whose test runs this file
with unittest; pytest runs it too where PyTorch is there, and reports it as skipped where it is not."""

import io
import unittest
import warnings

import numpy as np

import relayout

try:
    import torch
except ImportError:
    torch = None


def network():
    """Images channels last, as a caller has them; convolutions, whose exporter turns them."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 16, 3, padding=1)
            self.norm = nn.BatchNorm2d(16)
            self.scale = nn.Parameter(torch.rand(16))
            self.second = nn.Conv2d(16, 8, 3, padding=1)

        def forward(self, image):
            x = torch.relu(self.norm(self.first(image.permute(0, 3, 1, 2))))
            x = torch.sigmoid(x.permute(0, 2, 3, 1) * self.scale).permute(0, 3, 1, 2)
            return self.second(x).permute(0, 2, 3, 1)

    torch.manual_seed(0)
    return Net().eval()


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Exported(unittest.TestCase):
    def setUp(self):
        self.net, self.image = network(), torch.rand(1, 24, 24, 3)
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(self.net, (self.image,), file, input_names=["image"], output_names=["y"], dynamo=False)
        self.model = file.getvalue()

    def test_it_moves_less_and_computes_the_same(self):
        import onnxruntime as ort

        result = relayout.optimize(self.model, verify=True)
        before, after = result.report.before, result.report.after
        self.assertLess(after.bytes, before.bytes, str(result.report))
        session = ort.InferenceSession(result.model, providers=["CPUExecutionProvider"])
        with torch.no_grad():
            want = self.net(self.image).numpy()
        np.testing.assert_allclose(session.run(None, {"image": self.image.numpy()})[0], want, rtol=1e-3, atol=1e-4)

    def test_inputs_can_be_turned_so_that_callers_feed_channels_first(self):
        result = relayout.optimize(self.model, inputs={"image": "NHWC->NCHW"})
        self.assertEqual([io.to for io in result.report.io], ["NCHW"])
        self.assertTrue(relayout.verify(self.model, result.model, rms=1e-4))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Tensors(unittest.TestCase):
    def test_tensors_are_permuted(self):
        tensor = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
        for source in (tensor, tensor.to(memory_format=torch.channels_last), tensor[:, 1:, ::2]):
            result = relayout.permute(source, [0, 2, 3, 1])
            self.assertIsInstance(result, torch.Tensor)
            self.assertTrue(result.is_contiguous() and torch.equal(result, source.permute(0, 2, 3, 1)))

    def test_a_tensor_is_written_to(self):
        tensor = torch.arange(24, dtype=torch.int64).reshape(2, 3, 4)
        out = torch.empty(4, 2, 3, dtype=torch.int64)
        self.assertIs(relayout.permute(tensor, [2, 0, 1], out), out)
        self.assertTrue(torch.equal(out, tensor.permute(2, 0, 1)))

    def test_what_numpy_has_no_type_for_says_what_would_help(self):
        tensor = torch.zeros(2, 3, dtype=torch.bfloat16)
        with self.assertRaisesRegex(TypeError, "view its elements as integers"):
            relayout.permute(tensor, [1, 0])
        self.assertEqual(relayout.permute(tensor.view(torch.int16), [1, 0]).view(torch.bfloat16).shape, (3, 2))
