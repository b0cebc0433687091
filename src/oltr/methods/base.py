"""The contract of a method: the networks of its two stages, their loss, and who thought of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from oltr.config import build
from oltr.nn.backbone import Backbone
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead, Output
from oltr.nn.network import Network
from oltr.registry import Registry
from oltr.runs.outputs import Outputs


@dataclass(frozen=True)
class MethodInfo:
    """Where a method comes from and what it does, for `oltr methods`, the docs and the tests."""

    title: str
    summary: str
    paper: str
    year: int
    changes: str = ""  # what we do differently from the paper, and why


@dataclass(frozen=True)
class NoSettings:
    """For methods without numbers of their own."""


class Method:
    """A system that learns in one or two stages; subclass it, register it, give it a recipe and a test.

    `settings` are its own numbers (recipes/methods/NAME.yaml), `train_counts` the training images per class.
    Stage 1 is the plain model unless `first` is overridden; methods whose `first_stage` is equal can share
    its weights.
    """

    info: ClassVar[MethodInfo]
    Settings: ClassVar[type] = NoSettings
    first_stage: str = "plain"
    needs_stage2: ClassVar[bool] = False  # whether it is nothing but its first stage without a second
    score: ClassVar[str] = "softmax"  # what calls an image unknown, unless the user chooses another

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        self.settings: Any = self.check(settings)
        self.train_counts, self.image_size = train_counts, image_size
        self.num_classes = len(train_counts)

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> Any:
        """The settings as the method's own dataclass; a wrong name or value is a UserError."""
        return build(cls.Settings, settings, "settings")

    def build_stage1(self, backbone: Backbone) -> Network:
        """The network of stage 1: a linear classifier on the pooled map."""
        head = LinearHead(backbone.channels, self.num_classes)
        return Network(backbone, DirectFeature(backbone.channels), head)

    def build_stage2(self, first: Network) -> Network:
        """The network of stage 2, made from the trained first one; by default it simply goes on."""
        return first

    def on_stage_start(self, stage: int, network: Network, class_means: Callable[[], Tensor]) -> None:
        """Called before a stage; `class_means` passes over the training set for the mean v_direct, K×D."""

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        """The loss as named terms, already weighted; their sum is minimised."""
        return {"cross_entropy": network.head.cross_entropy(output, labels)}

    def after_step(self, stage: int, network: Network, output: Output, labels: Tensor) -> None:
        """Called after each optimiser step, for what is learned without a gradient."""

    def after_training(self, network: Network, validation: Callable[[], Outputs | None]) -> str | None:
        """Called after the last stage, for weights set by looking at validation images; says what was set."""
        return None


METHODS: Registry[type[Method]] = Registry("method", "oltr.methods", Method, {"info": MethodInfo})
