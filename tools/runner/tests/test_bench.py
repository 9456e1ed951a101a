"""What is measured with: models of another batch, names of kernels, and a whole run of `bench` on a CPU."""

import json
import math
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

from runner.bench import Figures, Settings, _compare, bench, copied, is_dense_convolution, off_tensor_cores, table
from runner.bundle import Node
from runner.compare import REFERENCE, differences
from runner.errors import RunnerError
from runner.prepare import in_halves, with_batch
from runner.profile import is_layout_kernel, kernels_by_range, uses_tensor_cores, without_tensor_cores
from runner.tests.bundles import node, value, write

RANDOM = np.random.Generator(np.random.PCG64(5))


def model(reshape: list[int], out: list[int], batch: int | str = 1) -> onnx.ModelProto:
    """Features that are added to a constant, turned and merged."""
    constants = [
        numpy_helper.from_array(np.array(reshape), "target"),
        numpy_helper.from_array(np.linspace(-2, 2, 60, dtype=np.float32).reshape(4, 3, 5), "shift"),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "target"], ["a"], "r"),
        helper.make_node("Add", ["a", "shift"], ["b"], "s"),
        helper.make_node("Relu", ["b"], ["y"], "t"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4, 15])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


ON_TENSOR_CORES = [
    "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_stage3_warpsize2x2x1_g1_tensor16x8x16_kernel",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x32_stage4_warpsize2x2x1_g1_tensor16x8x8_kernel",
    "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_kernel",
    "void cutlass::Kernel<cutlass_tensorop_f16_s16816fprop_optimized_f16_128x128_32x4_nhwc_align8>(Params)",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>(Params)",
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn",
    "ampere_h16816gemm_128x128_ldg8_stages_64x3_nn",
    "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
    "volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
    "nvjet_hsh_128x128_64x6_2x1_v_bz_coopA_TNT",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
]
OFF_TENSOR_CORES = [
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int)",
    "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x64x8_stage3_warpsize2x2x1_g1_ffma_kernel",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",
    "ampere_sgemm_128x64_nn",
    "ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(Params)",
    "void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, false, true, 0, 0, int, __half>(Params)",
    "void at::native::conv_depthwise2d_forward_kernel<3, float, int>(Params)",
    "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>(Params)",
    "void fft2d_r2c_32x32<float, false, 0u, false>(Params)",
    "relayout_rows_b128_2x2x16x16x36_1_3_0_2_4_w16",
]


class Variants(unittest.TestCase):
    def test_a_batch_is_as_many_single_samples(self) -> None:
        proto = model([4, 3, 5], [4, 3, 5])
        x = RANDOM.standard_normal((2, 4, 15), dtype=np.float32)
        single = np.concatenate([run(proto, x[at : at + 1]) for at in range(2)])
        proto.graph.node.append(helper.make_node("Reshape", ["y", "whole"], ["z"], "u"))
        proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 4, 15]), "whole"))
        proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 4, 15]))
        np.testing.assert_array_equal(run(with_batch(proto, 2, "m"), x), single.reshape(2, 4, 15))

    def test_a_model_whose_outputs_have_the_batch_elsewhere_is_refused(self) -> None:
        with self.assertRaisesRegex(RunnerError, "the batch is not the outermost axis of its outputs"):
            with_batch(model([4, 3, 5], [4, 3, 5]), 2, "m")

    def test_a_model_of_another_batch_is_refused(self) -> None:
        with self.assertRaisesRegex(RunnerError, r"batches \['3'\]"):
            with_batch(model([12, 3, 5], [12, 3, 5], 3), 2, "m")

    def test_halves_are_halves_from_end_to_end(self) -> None:
        proto = in_halves(model([4, 3, 5], [4, 3, 5]))
        self.assertEqual(proto.graph.input[0].type.tensor_type.elem_type, TensorProto.FLOAT16)
        self.assertEqual([node.op_type for node in proto.graph.node], ["Reshape", "Add", "Relu"])


class Names(unittest.TestCase):
    def test_kernels_that_only_move_data_are_known_by_their_names(self) -> None:
        for name in [
            "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(...)",
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda>>",
            "Memcpy DtoD (Device -> Device)",
            "relayout_rows_b128_2x2x16x16x36_1_3_0_2_4_w16",
            "triton_poi_fused_clone_3",
            "aten::copy_",
            "relayout::move",
        ]:
            self.assertTrue(is_layout_kernel(name), name)
        for name in [
            "sm90_xmma_fprop_implicit_gemm_f16f16_nhwc_transposed",
            "cutlass_80_tensorop_s1688gemm_transpose",
            "void at::native::vectorized_elementwise_kernel<4, at::native::relu>",
            "triton_poi_fused_add_relu_1",
            "aten::permute",
        ]:
            self.assertFalse(is_layout_kernel(name), name)

    def test_kernels_on_tensor_cores_are_known_by_their_names(self) -> None:
        for name in ON_TENSOR_CORES:
            self.assertTrue(uses_tensor_cores(name), name)
        for name in OFF_TENSOR_CORES:
            self.assertFalse(uses_tensor_cores(name), name)

    def test_a_node_is_on_tensor_cores_if_one_of_its_kernels_is(self) -> None:
        ranges = {"a": [OFF_TENSOR_CORES[0], ON_TENSOR_CORES[0]], "b": OFF_TENSOR_CORES[:2], "c": []}
        self.assertEqual(without_tensor_cores(ranges), {"b": OFF_TENSOR_CORES[:2], "c": []})

    def test_copies_are_those_of_nodes_that_are_no_moves(self) -> None:
        copy = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda>>"
        by_node = {"dense conv1": [copy, ON_TENSOR_CORES[0]], "dense conv2": OFF_TENSOR_CORES[:1], "split": [copy], "relu": ["relu"]}
        self.assertEqual(copied(by_node), {"conv1": [copy], "split": [copy]})
        self.assertEqual(off_tensor_cores(by_node), {"conv2": OFF_TENSOR_CORES[:1]})

    def test_kernels_belong_to_the_range_that_started_them_however_deep(self) -> None:
        cpu, gpu = torch.autograd.DeviceType.CPU, torch.autograd.DeviceType.CUDA

        def event(name: str, kernels: list[str], children: list, device: object = cpu) -> SimpleNamespace:
            kernels = [SimpleNamespace(name=kernel) for kernel in kernels]
            return SimpleNamespace(name=name, kernels=kernels, cpu_children=children, device_type=device)

        launch = event("cudaLaunchKernel", ["k3"], [])
        conv = event("aten::cudnn_convolution", ["k1", "k2"], [launch])
        events = [event("mark conv1", [], [event("aten::conv2d", [], [conv])]), event("mark conv2", [], []), launch]
        # The profiler shows a range on the GPU too, under the same name.
        events += [event("mark conv1", [], [], gpu), event("aten::relu", ["k4"], [])]
        self.assertEqual(kernels_by_range(events, "mark "), {"conv1": ["k1", "k2", "k3"], "conv2": []})

    def test_dense_convolutions_have_one_group(self) -> None:
        for op, group, dense in [
            ("Conv", 1, True),
            ("Conv", 2, False),
            ("Conv2d_NHWC_B", 1, True),
            ("ConvTranspose2d_NHWC", 1, True),
            ("Conv2d_NHWC_B", 32, False),
            ("ConvInteger", 1, False),
            ("MaxPool", 1, False),
        ]:
            found = is_dense_convolution(Node("n", "", op, 20, (), (), {"group": group}))
            self.assertEqual(found, dense, f"{op} {group}")


class Differences(unittest.TestCase):
    def test_what_is_no_number_on_one_side_only_is_off(self) -> None:
        nan, one = np.array([np.nan, 1.0]), np.array([1.0, 1.0])
        self.assertEqual(differences({"y": nan}, {"y": nan})[0].largest, 0.0)
        self.assertEqual(differences({"y": nan}, {"y": one})[0].largest, float("inf"))
        self.assertEqual(differences({"y": one + 1}, {"y": one * 4})[0].largest, 0.5)

    def test_an_output_that_is_missing_or_has_another_shape_is_named(self) -> None:
        with self.assertRaisesRegex(RunnerError, "'y'"):
            differences({}, {"y": np.zeros(2)})
        with self.assertRaisesRegex(RunnerError, "'y' has shape"):
            differences({"y": np.zeros(3)}, {"y": np.zeros(2)})


class OnACpu(unittest.TestCase):
    def pair(self, folder: Path, wrong: bool) -> Path:
        w = RANDOM.standard_normal((8, 4, 3, 3), dtype=np.float32)
        inputs = [value("x", [1, 4, 16, 16])]
        write(folder / "original", [node("Conv", ["x", "w"], ["y"])], inputs, ["y"], {"w": w})
        nodes = [
            node("Relayout", ["x"], ["a"], "relayout", 1, perm=[0, 2, 3, 1], move="k"),
            node("Conv2d_NHWC", ["a", "w"], ["b"], "relayout", 1),
            node("Transpose", ["b"], ["y"], perm=[0, 3, 1, 2], move="k"),
        ]
        stored = np.ascontiguousarray(w.transpose(0, 2, 3, 1)) * np.float32(2 if wrong else 1)
        made = folder / "ours"
        write(made, nodes, inputs, ["y"], {"w": stored}, [value("a", [1, 16, 16, 4]), value("b", [1, 14, 14, 8])])
        graph = json.loads((made / "graph.json").read_text())
        graph["outputs"] = [value("y", [1, 8, 14, 14])]
        write(made, graph["nodes"], inputs, ["y"], {"w": stored}, [*graph["values"], value("y", [1, 8, 14, 14])])
        (folder / "settings.json").write_text(json.dumps({"model": "m", "batch": None, "dtype": "fp32"}))
        return folder

    def test_all_modes_are_measured_and_moves_stand_beside_copies(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = bench([self.pair(Path(folder), False)], Settings("cpu", 2, 600.0, False, None))["models"][0]
        by_mode = {figures["mode"]: figures for figures in found["modes"]}
        self.assertEqual(list(by_mode), ["nchw", "channels_last", "ours"])
        self.assertTrue(all(len(figures["rounds_ms"]) == 2 and figures["median_ms"] > 0 for figures in found["modes"]))
        self.assertEqual(by_mode["channels_last"]["against"], [1.0, 1.0, 1.0])
        low, median, high = by_mode["ours"]["against"]
        ratios = [a / b for a, b in zip(by_mode["channels_last"]["rounds_ms"], by_mode["ours"]["rounds_ms"], strict=True)]
        np.testing.assert_allclose([low, median, high], [min(ratios), sum(ratios) / 2, max(ratios)])
        self.assertIn("nchw beside itself", table([found]))
        self.assertEqual([move["bytes"] for move in by_mode["ours"]["moves"]], [16 * 16 * 4 * 4, 14 * 14 * 8 * 4])
        self.assertTrue(all(move["us"] > 0 and move["copy_us"] > 0 for move in by_mode["ours"]["moves"]))
        self.assertGreater(by_mode["ours"]["moves_share"], 0.0)
        kernels = by_mode["ours"]["by_kernel"]
        self.assertIn("relayout::move", [kernel["name"] for kernel in kernels])
        self.assertEqual(kernels, sorted(kernels, key=lambda kernel: -kernel["us"]))
        self.assertEqual(found["notes"], [])

    def test_wrong_results_are_said(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = bench([self.pair(Path(folder), True)], Settings("cpu", 1, 600.0, False, None))["models"][0]
        self.assertRegex(found["notes"][0], "^WRONG: ours is off")

    def test_results_that_are_not_finite_are_wrong_and_no_reference(self) -> None:
        nothing = torch.tensor([math.nan])
        calls = {"nchw": lambda: (nothing,), "channels_last": lambda: (torch.ones(1),), "ours": lambda: (torch.ones(1),)}
        figures = {name: Figures(name) for name in calls}
        notes: list[str] = []
        _compare(calls, figures, 1e-3, notes)
        self.assertEqual(notes, ["WRONG: nchw has results that are not finite, channels_last has not"])
        self.assertEqual(figures["ours"].difference, 0.0)

    def test_after_a_cuda_error_the_other_models_are_not_tried(self) -> None:
        broken = RuntimeError("CUDA error: an illegal memory access was encountered")
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("runner.bench._measure", side_effect=broken) as tried:
            pair = self.pair(Path(folder), False)
            first, second = bench([pair, pair], Settings("cpu", 1, 600.0, False, None))["models"]
        self.assertEqual(tried.call_count, 1)
        self.assertRegex(first["notes"][0], "FAILED: CUDA error")
        self.assertRegex(second["notes"][0], "FAILED: m ended with a CUDA error")

    def test_compiled_modes_that_do_not_fit_are_left_out_and_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = bench([self.pair(Path(folder), False)], Settings("cpu", 1, 0.3, True, None))["models"][0]
        self.assertEqual(len(found["modes"]), 3)
        self.assertIn("compiled modes were left out", found["notes"][0])

    def test_a_mode_that_does_not_compile_is_said_and_the_others_are_measured(self) -> None:
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("torch.compile", side_effect=KeyError("no such op")):
            with unittest.mock.patch("runner.bench._start_compiler"):
                found = bench([self.pair(Path(folder), False)], Settings("cpu", 1, 600.0, True, None))["models"][0]
        self.assertEqual([figures["mode"] for figures in found["modes"]], ["nchw", "channels_last", "ours"])
        self.assertEqual(found["notes"][0], "FAILED: nchw compiled: KeyError: 'no such op'")
        self.assertEqual(len(found["notes"]), 3)

    def test_a_model_without_any_time_left_is_left_out(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = bench([self.pair(Path(folder), False)], Settings("cpu", 1, 0.0, True, None))["models"][0]
        self.assertEqual((found["modes"], found["notes"]), ([], ["left out: no time was left"]))

    def test_what_fails_is_said_and_the_others_are_measured(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            good, bad = self.pair(Path(folder, "good"), False), self.pair(Path(folder, "bad"), False)
            (bad / "ours" / "graph.json").write_text("{}")
            found = bench([bad, good], Settings("cpu", 1, 600.0, False, None))["models"]
        self.assertRegex(found[0]["notes"][0], "^FAILED: .*graph.json is not what the manifest says")
        self.assertEqual(len(found[1]["modes"]), 3)
        self.assertIn("FAILED", table(found))

    def test_outputs_are_held_against_those_that_prepare_kept(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = self.pair(Path(name), False)
            (plain,) = bench([folder], Settings("cpu", 1, 600.0, False, None))["models"]
            np.savez(folder / REFERENCE, y=np.zeros((1, 8, 14, 14), np.float32))
            (zeros,) = bench([folder], Settings("cpu", 1, 600.0, False, None))["models"]
        self.assertTrue(all(figures["error"] is None for figures in plain["modes"]))
        self.assertTrue(all(figures["error"] > 1 for figures in zeros["modes"]))

    def test_dense_convolutions_are_counted_and_where_they_run_is_not_known_on_a_cpu(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = bench([self.pair(Path(folder), False)], Settings("cpu", 1, 600.0, False, None))["models"][0]
        self.assertEqual({(f["dense_convolutions"], f["off_tensor_cores"], f["copied"]) for f in found["modes"]}, {(1, None, None)})


if __name__ == "__main__":
    unittest.main()
