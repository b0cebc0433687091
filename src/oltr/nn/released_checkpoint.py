"""Checkpoints of the released code, read without running code from them, under the names of our network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.nn.weight_files import read_file

# (whether its blocks are bottlenecks, blocks per stage) → the network
RESNETS = {
    (False, (1, 1, 1, 1)): "resnet10",
    (False, (2, 2, 2, 2)): "resnet18",
    (False, (3, 4, 6, 3)): "resnet34",
    (True, (3, 4, 6, 3)): "resnet50",
    (True, (3, 4, 23, 3)): "resnet101",
    (True, (3, 8, 36, 3)): "resnet152",
}
# How names begin there, and here; what begins otherwise in `feat_model` is the backbone.
FEATURE_NAMES = {
    "modulatedatt.theta.": "attention.self_attention.theta.",
    "modulatedatt.phi.": "attention.self_attention.phi.",
    "modulatedatt.g.": "attention.self_attention.g.",
    "modulatedatt.conv_mask.": "attention.self_attention.out.",
    "modulatedatt.fc_spatial.": "attention.spatial.score.",
    "fc_add.": "direct_feature.fc.0.",
    "": "backbone.net.",
}
CLASSIFIER_NAMES = {
    "fc_hallucinator.": "head.meta.hallucinator.",
    "fc_selector.": "head.meta.concept_selector.",
    "cosnorm_classifier.": "head.classifier.",
    "fc.": "head.classifier.",
    "": "head.",
}
CENTROIDS, KNOWN = "head.meta.memory.centroids", "head.meta.memory.known"
FACTS = ("epoch", "best_epoch", "best_acc")
LAYOUT = "a file of the released code: state_dict_best with feat_model and classifier"


@dataclass(frozen=True)
class ReleasedCheckpoint:
    """What a file holds, and what its shapes tell of the network."""

    path: Path
    stage: Literal[1, 2]  # 1: the plain model; 2: with memory, meta-embedding and cosine classifier
    backbone: str
    num_classes: int
    fc: int | None  # width of the layer after the pooled map
    attention: bool
    state: dict[str, Tensor]  # under the names of `Network`; without centroids where the file has none
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it has all that its stage needs: stage 2 of early versions lacks the centroids."""
        return self.stage == 1 or CENTROIDS in self.state

    def fill(self, network: Network) -> None:
        """Put all of it into a network; what is missing, too much or of another shape is one UserError."""
        own = network.state_dict()
        may_lack = {name for name in own if name.endswith("num_batches_tracked")}  # in files of old versions
        if not self.is_whole:
            may_lack |= {CENTROIDS, KNOWN}
        missing = [name for name in own if name not in self.state and name not in may_lack]
        strange = [name for name in self.state if name not in own]
        shared = [name for name in self.state if name in own]
        shapes = [name for name in shared if self.state[name].shape != own[name].shape]
        problems = (missing, "is missing"), (strange, "has no place in it"), (shapes, "has another shape")
        if wrong := [(names, what) for names, what in problems if names]:
            why = "; ".join(f"{names[0]} {what}{_others(names)}" for names, what in wrong)
            raise UserError(f"{self.path} does not fit the network of the released code.", f"{why}.", LAYOUT)
        network.load_state_dict(self.state, strict=False)


def read_released(path: Path) -> ReleasedCheckpoint:
    """A checkpoint of the released code; anything else is one UserError."""
    content = read_file(path)
    best = content.get("state_dict_best") if isinstance(content, Mapping) else None
    parts = best if isinstance(best, Mapping) else {}
    features, head = parts.get("feat_model"), parts.get("classifier")
    if not isinstance(features, Mapping) or not isinstance(head, Mapping):
        raise UserError(f"{path} is no checkpoint of the released code.", _held(parts or content), LAYOUT)
    state = _renamed(features, FEATURE_NAMES) | _renamed(head, CLASSIFIER_NAMES)
    classifier = state.get("head.classifier.weight")
    if classifier is None or classifier.ndim != 2:
        raise UserError(f"{path} holds no classifier.", _held(head), LAYOUT)
    stage: Literal[1, 2] = 2 if any(name.startswith("head.meta.") for name in state) else 1
    if stage == 2 and isinstance(centroids := content.get("centroids"), Tensor):
        state |= {CENTROIDS: centroids, KNOWN: torch.ones(centroids.shape[:1], dtype=torch.bool)}
    layer = state.get("direct_feature.fc.0.weight")
    return ReleasedCheckpoint(
        path,
        stage,
        _backbone(path, state),
        len(classifier),
        None if layer is None else len(layer),
        any(name.startswith("attention.") for name in state),
        state,
        {name: content[name] for name in FACTS if isinstance(content.get(name), (int, float))},
    )


def _renamed(weights: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Tensor]:
    """The tensors under our names; 1×1 convolutions of the attention become matrices."""
    found = {}
    for name, value in weights.items():
        bare = str(name).removeprefix("module.")
        theirs = next(begin for begin in names if bare.startswith(begin))
        if not isinstance(value, Tensor):
            continue
        ours = names[theirs] + bare.removeprefix(theirs)
        convolution = ours.startswith("attention.self_attention.") and value.ndim == 4
        found[ours] = value.flatten(1) if convolution else value
    return found


def _backbone(path: Path, state: Mapping[str, Tensor]) -> str:
    """The ResNet whose stages have as many blocks, and blocks of that kind."""
    blocks: list[set[str]] = [set(), set(), set(), set()]
    for name in state:
        if block := re.match(r"backbone\.net\.layer([1-4])\.(\d+)\.", name):
            blocks[int(block[1]) - 1].add(block[2])
    sizes = len(blocks[0]), len(blocks[1]), len(blocks[2]), len(blocks[3])
    found = RESNETS.get(("backbone.net.layer1.0.conv3.weight" in state, sizes))
    if found is None:
        stages = "-".join(map(str, sizes))
        known = ", ".join(RESNETS.values())
        raise UserError(f"{path} holds an unknown ResNet, with {stages} blocks.", try_this=f"one of: {known}")
    return found


def _held(content: Any) -> str:
    """What stands in the place of the layout, for a message."""
    if not isinstance(content, Mapping):
        return f"It holds {type(content).__name__}."
    names = [str(name) for name in content]
    return f"It holds {', '.join(names[:4]) or 'nothing'}{' ...' if len(names) > 4 else ''}."


def _others(names: list[str]) -> str:
    return f" (and {len(names) - 1} others)" if len(names) > 1 else ""
