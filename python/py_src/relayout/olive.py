"""relayout as a pass of Olive: the type ``RelayoutOptimizer`` of a workflow. Needs the package ``olive-ai``.

Olive knows the passes that its package configuration lists. ``package_config()`` is Olive's own with this pass added:

    olive.workflows.run(config, package_config=relayout.olive.package_config())

For the command ``olive``, write it to a file first: ``python -m relayout.olive olive_config.json``, then
``olive run --config workflow.json --package-config olive_config.json``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.package_config import OlivePackageConfig
from olive.passes import Pass
from olive.passes.pass_config import PassConfigParam
from olive.resource_path import LocalFile, LocalFolder

from . import _errors, _optimize

#: The pass in a package configuration of Olive.
ENTRY: dict[str, Any] = {
    "module_path": "relayout.olive.RelayoutOptimizer",
    "supported_providers": ["*"],
    "supported_accelerators": ["*"],
    "supported_precisions": ["*"],
    "supported_algorithms": [],
    "supported_quantization_encodings": [],
    "module_dependencies": ["relayout"],
}

#: Parameters of the pass: type, value if nothing is said, description.
_PARAMETERS: dict[str, tuple[Any, Any, str]] = {
    "target": (str, "onnx", "What the model is optimized for: a name that relayout.targets() lists, or the path of a target file."),
    "inputs": (dict[str, str], None, "How inputs are fed: {'x': 'NCHW->NHWC'}."),
    "outputs": (dict[str, str], None, "The same for outputs."),
    "free_io": (bool, False, "Whether the order of all other inputs and outputs is left to the optimizer."),
    "dims": (dict[str, int | str], None, "Sizes at which symbolic dims are priced: {'N': 4, 'H': '32..512'}."),
    "numerics": (str, "reassociate", "'exact' leaves arithmetic alone; 'reassociate' folds scales and shifts into weights."),
    "verify": (bool, False, "Whether both models run in ONNX Runtime first. If they differ, the pass fails."),
    "provider": (str, None, "For target 'ort-nhwc', which it implies: the execution provider of ONNX Runtime."),
    "for_this_machine": (bool, False, "Whether target, block, machine, threads and provider are chosen by what is on this machine."),
    "block": (int, None, "For target 'ort-cpu': channels of a block, 8 or 16; by default that of this machine."),
    "machine": (str, None, "For target 'ort-cpu': the kind of machine that the model will run on, such as 'avx2-laptop'."),
    "costs": (str, None, "For targets 'ort-cpu', 'ort-nhwc' and 'cuda-tensorcore': a table of costs that relayout calibrate wrote."),
    "threads": (int, None, "For target 'ort-cpu': threads that the model will run on; 0 for as many as the machine has cores."),
    "fix_sizes": (bool, False, "Whether the sizes of dims are written into the file."),
    "strict": (bool, False, "Whether a rewrite that fails is an error."),
    "unproved": (str, "give-back", "What becomes of a result that is not proved: 'give-back', 'loud', 'allow', 'fail' or 'keep-input'."),
}


def package_config() -> dict[str, Any]:
    """Olive's own package configuration, with this pass."""
    with open(OlivePackageConfig.get_default_config_path(), encoding="utf-8") as file:
        config: dict[str, Any] = json.load(file)
    config["passes"]["RelayoutOptimizer"] = ENTRY
    return config


class RelayoutOptimizer(Pass):
    """Rewrites an ONNX model so that it moves less data. The result has the same inputs, outputs and results.

    The report is in the attribute ``relayout`` of the resulting model.
    """

    @classmethod
    def _default_config(cls, accelerator_spec: Any) -> dict[str, Any]:
        return {
            name: PassConfigParam(type_=kind, default_value=value, description=text)
            for name, (kind, value, text) in _PARAMETERS.items()
        }

    def _run_for_config(self, model: Any, config: Any, output_model_path: str) -> Any:
        if not isinstance(model, ONNXModelHandler):
            raise _errors.OptionError(f"relayout optimizes ONNX models, not a {type(model).__name__}; convert the model first")
        if model.external_initializers_file_name or model.constant_inputs_file_name:
            raise _errors.OptionError(f"{model.model_path} takes initializers from a file beside it; optimize it before they are split off")
        options = {name: getattr(config, name) for name in _PARAMETERS}
        if options["target"].endswith(".toml"):
            options["target"] = Path(options["target"])
        path = resolve_onnx_path(output_model_path, Path(model.model_path).name)
        result = _optimize.optimize(str(model.model_path), path, **options)
        return _handler(path, model, json.loads(result.report.json))


def _handler(path: str, model: Any, report: dict[str, Any]) -> Any:
    """The result as Olive has models: a folder if its data is in a file of its own."""
    attributes = {**(model.model_attributes or {}), "relayout": report}
    settings = {"inference_settings": model.inference_settings, "use_ort_extensions": model.use_ort_extensions}
    if os.path.exists(f"{path}.data"):
        folder, name = os.path.split(path)
        return ONNXModelHandler(
            model_path=LocalFolder({"path": folder}), onnx_file_name=name, model_attributes=attributes, **settings
        )
    return ONNXModelHandler(model_path=LocalFile({"path": path}), model_attributes=attributes, **settings)


def main() -> None:
    """``python -m relayout.olive FILE`` writes the package configuration."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m relayout.olive FILE")
    Path(sys.argv[1]).write_text(json.dumps(package_config(), indent=4) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
