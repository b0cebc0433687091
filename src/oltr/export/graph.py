"""A run as one function from pixels to answers, and that function as an ONNX model."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import warnings
from typing import TYPE_CHECKING, Any

import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from oltr.data.augment import Augment
from oltr.errors import UserError
from oltr.export.resize import resize_in_onnx
from oltr.nn.blocks import LARGEST
from oltr.nn.multilevel import MultilevelBackbone
from oltr.training.at_test import forward_at_test

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

LARGEST_FILE = 2**31 - 1  # bytes of a protobuf file
# Images in a batch for which torch's exporter has to prove that they go the same way: a network and a score
# work in parts on very many, and memories in another order on more than they have dimensions.
MOST_AT_ONCE = 1024


class Answering(nn.Module):
    """Upright RGB pictures of one size → what `oltr predict` tells of them: N×H×W×3 uint8 → N each."""

    def __init__(self, run: TrainedRun):
        super().__init__()
        self.network, self.rule, self.temperature = run.network, run.rule, run.temperature
        self.data, self.augment = run.config.data, Augment(run.config.data)
        self.score = copy.deepcopy(run.fitted(run.rule.score))  # a score remembers what it has seen last

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        frame = self.data.frame
        square = torch.ops.oltr.resize(pixels, frame.size, frame.resize, frame.interpolation)
        output = forward_at_test(self.network, self.augment.evaluate(square), self.data)
        logits, features, reachability = output.logits.float(), output.direct_feature, output.reachability
        probabilities = logits.softmax(dim=1)
        probability, label = probabilities.max(dim=1)
        value = self.score.value(features, logits, reachability)
        # No comparison with NaN holds: such an image would pass for known.
        known = logits.isfinite().all(dim=1) & ~value.isnan()
        found = {
            "label_index": label,
            "probability": probability,
            "probabilities": probabilities,
            "unknown": self.rule.rejects(value) | ~known,
            "unknown_score": self.score(features, logits, reachability),
        }
        if self.temperature is not None:
            calibrated = (logits.double() / self.temperature).softmax(dim=1)
            found["calibrated_probability"] = calibrated.gather(1, label[:, None])[:, 0]
        if reachability is not None:
            found["reachability"] = reachability
        return found


def in_float32(run: TrainedRun) -> TrainedRun:
    """The same run computed in float32 on the CPU, as its exported model is."""
    other = copy.copy(run)
    other.device, other._outputs, other._scored = torch.device("cpu"), {}, {}
    other.config = dataclasses.replace(run.config, precision="float32")
    other.network = copy.deepcopy(run.network).cpu().float().eval()
    if isinstance(other.network.backbone, MultilevelBackbone):
        other.network.backbone.bfloat16_on_cpu = False
    return other


def check_score(run: TrainedRun) -> None:
    """Refuse a rejection rule that no graph of forward operators can follow."""
    if run.fitted(run.rule.score).view:
        raise UserError(
            f"The run's score {run.rule.score!r} cannot be exported.",
            "It changes each image along a gradient of the network, and an ONNX model computes none.",
            f"oltr evaluate {run.path} --score softmax --keep, then export",
        )


def onnx_model(run: TrainedRun) -> onnx.ModelProto:
    """The ONNX model of a run that is in float32 on the CPU."""
    check_score(run)
    answering = Answering(run).eval()
    side = run.config.data.stored_size
    example = torch.zeros(2, side + 3, side + 5, 3, dtype=torch.uint8)
    most = max(min(MOST_AT_ONCE, LARGEST // len(run.class_names), run.network.direct_feature.dims), 2)
    axes = {0: torch.export.Dim("N", max=most), 1: torch.export.Dim("H"), 2: torch.export.Dim("W")}
    try:
        model = to_onnx(answering, {"pixels": example}, {"pixels": axes})
    except Exception as problem:  # networks and scores hold almost anything
        raise _not_exportable(run, problem) from problem
    if model.ByteSize() > LARGEST_FILE:
        raise UserError(
            f"The model would take {model.ByteSize() / 1e9:.1f} GB.", "An ONNX file holds at most 2 GB."
        )
    _name_labels(model, run.class_names)
    return model


def to_onnx(module: nn.Module, inputs: dict[str, Tensor], axes: dict[str, Any]) -> onnx.ModelProto:
    """The ONNX model of a module that returns its outputs by name; `axes` are those of any length."""
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(),
            kwargs=inputs,
            dynamo=True,
            verbose=False,
            dynamic_shapes=axes,
            input_names=list(inputs),
            output_names=list(module(**inputs)),
            custom_translation_table={torch.ops.oltr.resize.default: resize_in_onnx},
        )
    assert program is not None
    model = program.model_proto
    for entry in model.graph.input:  # the exporter fixes what it cannot prove, and says nothing
        fixed = [axis for axis in axes[entry.name] if not entry.type.tensor_type.shape.dim[axis].dim_param]
        if fixed:
            raise ValueError(f"Axis {fixed[0]} of {entry.name} would take one length alone.")
    return model


def _not_exportable(run: TrainedRun, problem: Exception) -> UserError:
    root: BaseException = problem
    while root.__cause__ is not None:
        root = root.__cause__
    return UserError(
        f"{run.config.backbone} with {run.method} and the score {run.rule.score!r} cannot be exported.",
        " ".join(str(root).split())[:300],
        f"another score (oltr evaluate {run.path} --score softmax --keep), or another backbone",
    )


def _name_labels(model: onnx.ModelProto, names: list[str]) -> None:
    """Give the model an output of the class's name, before all others."""
    graph = model.graph
    table = TensorProto(name="class_names", data_type=TensorProto.STRING, dims=[len(names)])
    table.string_data.extend(name.encode() for name in names)
    graph.initializer.append(table)
    graph.node.append(helper.make_node("Gather", ["class_names", "label_index"], ["label"], axis=0))
    graph.output.insert(0, helper.make_tensor_value_info("label", TensorProto.STRING, ["N"]))
