"""The contract of a method: the networks of its two stages, their losses, and its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from oltr.config import build
from oltr.losses.mixed_labels import MixedLabels
from oltr.losses.uniform import uniform_cross_entropy
from oltr.nn.backbone import Backbone
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead, Output
from oltr.nn.network import Network
from oltr.registry import Registry

LAYER = 512  # width of the layer that losses on features act on where the backbone is frozen, as OLTR's


@dataclass(frozen=True)
class MethodInfo:
    """Where a method comes from and what it does, for `oltr methods`, the docs and the tests."""

    title: str
    summary: str
    paper: str
    year: int
    changes: str = ""  # what differs here from the paper, and why


@dataclass(frozen=True)
class NoSettings:
    """For methods without numbers of their own."""


class Method(nn.Module):
    """A system that learns in one or two stages; subclass it, register it, test it.

    `Settings` is a frozen dataclass of its own numbers, each with a default; a file recipes/methods/NAME.yaml
    may change the stages (sampler, frozen roles). Losses are sub-modules built in `__init__`, so that
    `method.to(device)` moves what they hold. Stage 1 is the plain model unless `build_stage1` is overridden;
    methods whose `first_stage` is equal can share its weights.
    """

    info: ClassVar[MethodInfo]
    Settings: ClassVar[type] = NoSettings
    first_stage: str = "plain"
    needs_stage2: ClassVar[bool] = False  # whether without a second stage it is the plain model
    score: ClassVar[str] = "softmax"  # the open-set score, unless the user chooses another
    frozen_score: ClassVar[str | None] = None  # of a head fitted on a frozen backbone; None: the same
    works_frozen: ClassVar[bool] = True  # whether it can do without learning anything in the backbone
    frozen_class_means: ClassVar[bool] = False  # whether its fitted head is a `MemoryHead`
    # Whether a loss pulls at v_direct itself: where the backbone is frozen, it is given a layer to act on.
    acts_on_features: ClassVar[bool] = False
    backbone_frozen = False  # in the last stage; whoever builds the method from a configuration says so

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__()
        self.settings: Any = self.check(settings)
        self.train_counts, self.image_size = train_counts, image_size  # images per class (K), on the CPU
        self.num_classes = len(train_counts)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "loss" in vars(cls) and "mixed_loss" not in vars(cls):
            cls.mixed_loss = Method.drawn_loss  # type: ignore[method-assign]

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> Any:
        """The settings as the method's own dataclass; a wrong name or value is a UserError."""
        return build(cls.Settings, settings, "settings")

    @classmethod
    def all_settings(cls, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All settings with their defaults filled in, as plain values for run.yaml."""
        values = asdict(cls.check(settings or {}))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def own_score(cls, head_fitted: bool) -> str:
        """The open-set score of a run whose head is, or is not, fitted to features of a frozen backbone."""
        return cls.frozen_score if head_fitted and cls.frozen_score else cls.score

    def build_stage1(self, backbone: Backbone) -> Network:
        """The network of stage 1: a linear classifier on the pooled map, or on a layer after it."""
        direct_feature = DirectFeature(backbone.channels, self.first_fc)
        return Network(backbone, direct_feature, LinearHead(direct_feature.dims, self.num_classes))

    @property
    def first_fc(self) -> int | None:
        """Width of that layer; None: there is none."""
        return LAYER if self.has_layer else None

    @property
    def has_layer(self) -> bool:
        """Whether there is a layer between a frozen backbone and the classifier, for losses on features."""
        return self.acts_on_features and self.backbone_frozen

    def build_stage2(self, first: Network) -> Network:
        """The network of stage 2, built from the trained first one; by default the same network."""
        return first

    def on_stage_start(self, stage: int, network: Network, class_means: Callable[[], Tensor]) -> None:
        """Called before a stage; `class_means` computes the mean v_direct over the training set, K×D."""

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        """The loss as named terms, already weighted; their sum is minimised."""
        return {"cross_entropy": network.head.cross_entropy(output, labels)}

    def mixed_loss(
        self, stage: int, network: Network, output: Output, labels: MixedLabels
    ) -> dict[str, Tensor]:
        """The loss of images that were mixed of two: the mean of λ·ℓ(z, first) + (1 − λ)·ℓ(z, second).

        Exact for the loss above. A class that writes its own `loss` has `drawn_loss` in its place, unless it
        writes its own `mixed_loss`, too.
        """
        return {"cross_entropy": labels.mean(lambda hard: network.head.cross_entropy(output, hard, "none"))}

    def drawn_loss(
        self, stage: int, network: Network, output: Output, labels: MixedLabels
    ) -> dict[str, Tensor]:
        """The same in expectation, for any loss: each image has one of both labels, the first by chance λ."""
        return self.loss(stage, network, output, labels.drawn)

    def across_views(
        self, stage: int, network: Network, views: list[Output], labels: Tensor
    ) -> dict[str, Tensor]:
        """Further terms of the loss that compare views of the same images (labels B); with two views or more.

        With mixing these are the clean views; of two views, one of them mixed, both, the mixed one first.
        `labels` are the images' own. Features may be in bfloat16, here as in `loss`: an auxiliary
        part takes them as float().
        """
        return {}

    def open_loss(self, stage: int, network: Network, output: Output) -> Tensor:
        """The loss of images that are of no class, such as mosaics, before its weight in the stage.

        All classes are to be equally likely in the logits that the network answers with, which unknown scores
        read. A loss that adds the class frequencies to them adds nothing here: a picture that says nothing of
        its class leaves the frequencies as they are.
        """
        return uniform_cross_entropy(output.logits.float())

    def fit(self, network: Network, features: Tensor, labels: Tensor) -> float | None:
        """Set the head from all direct features of the training images (N×D) at once, where that is possible.

        Called where the backbone is frozen; returns the loss, or None for a method that learns by steps.
        """
        return None

    def after_step(self, stage: int, network: Network, output: Output, labels: Tensor) -> None:
        """Called after each optimiser step, for updates without a gradient.

        Of images that were mixed it gets the other views, which show the class alone; where there are none,
        the mixed ones under the label that has the larger share of them.
        """

    def after_training(
        self, network: Network, features: Callable[..., tuple[Tensor, Tensor] | None]
    ) -> str | None:
        """Called after the last stage, for weights set by validation images; returns what was set, in words.

        `features()` gives their direct features (N×D) and labels (N) on the CPU, `features("train")` those of
        the training images, not augmented; None where there are none.
        """
        return None


METHODS: Registry[type[Method]] = Registry("method", "oltr.methods", Method, {"info": MethodInfo})
