"""A plug-in package for oltr with a method, an open-set score and a backbone.

    pip install ./examples/04_own_method
    oltr methods
    oltr train photos/ --method smoothed-adjustment --backbone own_tiny --set settings.smoothing=0.05
    oltr evaluate runs/photos-smoothed-adjustment --score logit-margin --unknown-rate 0.05

or in Python: `Recognizer(method="smoothed-adjustment", backbone="own_tiny").fit("photos/")`. The entry points
in pyproject.toml define the names. For experiments, nothing needs to be installed: in this folder
`oltr train photos/ --method own_method:SmoothedAdjustment --backbone own_method:own_tiny` does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.config import within
from oltr.methods import Method, MethodInfo
from oltr.nn.network import Network, Output
from oltr.openset import Score, ScoreInfo


@dataclass(frozen=True)
class SmoothedAdjustmentSettings:
    """Hyperparameters of the method, `--set settings.NAME=VALUE`; each run records all of them."""

    tau: float = 1.0  # weight of the log class frequencies; 0: none
    smoothing: float = 0.1  # label smoothing: share of the target spread over all classes

    def __post_init__(self) -> None:
        within("settings.tau", self.tau, 0)
        within("settings.smoothing", self.smoothing, 0, 1)


class SmoothedAdjustment(Method):
    """Cross-entropy of logits + τ log n_c with smoothed labels, n_c the training images of class c."""

    Settings = SmoothedAdjustmentSettings
    info = MethodInfo(
        title="Smoothed logit adjustment",
        summary="Logit adjustment with smoothed labels",
        paper="Menon et al., Long-Tail Learning via Logit Adjustment, ICLR 2021",
        year=2021,
        changes="labels are smoothed",
    )

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        """Runs with the same name here can share the weights of stage 1."""
        return f"smoothed adjustment, {self.settings}"

    def on_stage_start(self, stage: int, network: Network, class_means: Callable[[], Tensor]) -> None:
        device = next(network.parameters()).device
        self.offset = self.settings.tau * self.train_counts.float().log().to(device)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        logits = output.logits.float() + self.offset
        return {"cross_entropy": F.cross_entropy(logits, labels, label_smoothing=self.settings.smoothing)}


class LogitMargin(Score):
    """z_(1) − z_(2), the difference between the two largest logits."""

    name = "logit-margin"
    info = ScoreInfo(
        title="Logit margin",
        summary="How far the likeliest class is ahead of the next",
        paper="of this example",
        year=2026,
    )
    higher_is_known = True

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        first, second = logits.double().topk(2, dim=1).values.unbind(dim=1)
        return first - second


class TinyNet(nn.Module):
    """Three convolutions with stride 2: B×3×S×S → B×64×S/8×S/8, with the interface of timm's networks."""

    def __init__(self, num_classes: int = 0, global_pool: str = "", **kwargs: Any):
        super().__init__()
        self.num_features, self.num_classes = 64, num_classes
        layers: list[nn.Module] = []
        for before, after in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward_features(self, images: Tensor) -> Tensor:
        return self.layers(images)

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_features(images)


default_cfgs = generate_default_cfgs({"own_tiny.scratch": {"input_size": (3, 32, 32)}})


@register_model
def own_tiny(pretrained: bool = False, **kwargs: Any) -> TinyNet:
    """A network small enough for a test."""
    return build_model_with_cfg(TinyNet, "own_tiny", pretrained, **kwargs)
