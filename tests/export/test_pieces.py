"""Every head and every score as ONNX operators, against torch."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from oltr.export.graph import to_onnx
from oltr.nn.classifier import CosineClassifier
from oltr.nn.cosine_head import CosineHead
from oltr.nn.expert_head import ExpertHead
from oltr.nn.extended_head import AddedRows, ExtendedHead
from oltr.nn.generated_head import GeneratedHead
from oltr.nn.heads import LinearHead, MetaEmbeddingHead
from oltr.nn.memory import Memory
from oltr.nn.memory_head import MemoryHead
from oltr.nn.meta_embedding import MetaEmbedding
from oltr.nn.regressed_head import RegressedHead
from oltr.nn.regressors import RecursiveRegressor
from oltr.nn.scaled_head import ScaledHead
from oltr.openset import SCORES
from tests.helpers.separable import separable, strangers

D, K = 12, 5
COUNTS = torch.tensor([90, 80, 3, 70, 9])
COMMON = torch.tensor([True, True, False, True, False])
BATCH = {0: torch.export.Dim("N", max=D)}  # as `onnx_model` has it; more are as good when the model runs


def heads() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    means = torch.randn(K, D)
    made = {
        "linear": LinearHead(D, K),
        "cosine": CosineHead(D, K),
        "class means": MemoryHead(D, K),
        "experts": ExpertHead(2, D // 2, K),
        "generated": GeneratedHead(torch.randn(K, D), COMMON, 10.0),
        "regressed": RegressedHead(nn.Linear(D, K), COMMON, COUNTS, RecursiveRegressor(D + 1, 3)),
        "scaled": ScaledHead(nn.Linear(D, K)),
        "memory": MetaEmbeddingHead(MetaEmbedding(K, D), CosineClassifier(D, K)),
        "raw": MetaEmbeddingHead(
            MetaEmbedding(K, D, coefficients="raw"), CosineClassifier(D, K, form="paper")
        ),
    }
    made["class means"].class_means.start_from(torch.randn(D, D), torch.randn(D), means)
    for name in ("generated", "regressed"):
        made[name].start_from(means)
    for name in ("memory", "raw"):
        made[name].meta.memory.start_from(means)
    weight, bias, memory = torch.randn(2, D), torch.randn(2), Memory(4, D)
    memory.start_from(torch.randn(4, D))
    rows = AddedRows(torch.tensor([3, 0]), weight, bias, torch.randn(D), memory)
    for name in ("linear", "memory"):
        made[f"{name} extended"] = ExtendedHead(made[name], rows)
    added = made["class means"].class_means.of_others([torch.randn(D), torch.randn(D)])
    rows = AddedRows(torch.tensor([3, 0]), weight, bias, torch.randn(D), class_means=added)
    made["class means extended"] = ExtendedHead(made["class means"], rows)
    return {name: head.eval() for name, head in made.items()}


class EachHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict(heads())

    def forward(self, features):
        outputs = {name: head(features) for name, head in self.heads.items()}
        gammas = {
            f"{name} γ": each.reachability for name, each in outputs.items() if each.reachability is not None
        }
        return {name: output.logits for name, output in outputs.items()} | gammas


class EachScore(nn.Module):
    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, features, logits, reachability):
        found = {}
        for name, score in self.scores.items():
            found[f"{name} value"] = score.value(features, logits, reachability)
            found[f"{name} unknown"] = score(features, logits, reachability)
        return found


def compared(
    module: nn.Module, inputs: dict[str, torch.Tensor], numbers: tuple[int, ...], close: float
) -> None:
    """A module in torch and in onnxruntime on the first n rows of its inputs, for each n."""
    axes = dict.fromkeys(inputs, BATCH)
    model = to_onnx(module, {name: value[:3] for name, value in inputs.items()}, axes)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for number in numbers:
        few = {name: value[:number] for name, value in inputs.items()}
        with torch.no_grad():
            wanted = module(**few)
        found = session.run(list(wanted), {name: value.numpy() for name, value in few.items()})
        for (name, value), other in zip(wanted.items(), found, strict=True):
            assert value.numpy().dtype == other.dtype, name
            np.testing.assert_allclose(other, value.numpy(), rtol=close, atol=close, err_msg=name)


def test_heads():
    compared(EachHead().eval(), {"features": torch.randn(40, D)}, (1, 2, 40), 1e-5)


@pytest.fixture(scope="module")
def scores():
    training = separable([40, 30, 12, 6, 5], seed=0)
    made = {name: SCORES[name]() for name in SCORES if not SCORES[name]().view}
    return {
        name: score.fit(training.features, training.logits, training.labels) for name, score in made.items()
    }


def test_scores(scores):
    assert {"softmax", "max-logit", "energy", "reachability", "knn", "mahalanobis", "vim", "openmax"} <= set(
        scores
    )
    known, others = separable([9, 9, 9, 9, 9], seed=1), strangers(30, 5, seed=2)
    inputs = {
        "features": torch.cat([known.features, others.features]),
        "logits": torch.cat([known.logits, others.logits]),
    }
    inputs["reachability"] = inputs["features"].norm(dim=1)
    compared(EachScore(scores), inputs, (1, 2, 75), 1e-6)
