"""The classes that a run knows now: those of its training, less what was removed, with what was added."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from oltr.data.manifest import Manifest
from oltr.nn.extended_head import AddedRows, ExtendedHead
from oltr.nn.network import Network
from oltr.runs.history import Action, holding
from oltr.runs.outputs import OPEN, Outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


@dataclass(frozen=True, eq=False)
class AddedClass:
    """A class with a row of its own."""

    name: str
    weight: np.ndarray  # D float32
    bias: float
    features: np.ndarray  # n×D float32, direct features of its images
    files: tuple[str, ...] = ()  # copies of its images, below the run folder
    trained: int | None = None  # the trained class that it goes on from, with more images


@dataclass(frozen=True, eq=False)
class ClassChanges:
    """The state after some actions; without any, the run as it was trained."""

    trained: tuple[str, ...]  # K names as in training
    kept: tuple[int, ...]  # trained classes that still have their own logit
    kept_names: tuple[str, ...]
    added: tuple[AddedClass, ...] = ()
    version: int = 0  # the last action that holds
    last: int = 0  # the last action of all when this was read

    def __bool__(self) -> bool:
        return bool(self.added) or self.kept_names != self.trained

    @property
    def names(self) -> list[str]:
        """The classes known now: kept ones in their order, then added ones in theirs."""
        return [*self.kept_names, *(each.name for each in self.added)]

    def counts(self, trained: np.ndarray) -> np.ndarray:
        """Training images of each class known now, from those of the trained ones."""
        added = [len(e.features) + (0 if e.trained is None else int(trained[e.trained])) for e in self.added]
        return np.array([*trained[list(self.kept)], *added], dtype=np.int64)

    def numbers(self) -> np.ndarray:
        """The number that each trained class has now, K; −1: removed."""
        numbers = np.full(len(self.trained), -1, dtype=np.int64)
        numbers[list(self.kept)] = np.arange(len(self.kept))
        for place, each in enumerate(self.added, start=len(self.kept)):
            if each.trained is not None:
                numbers[each.trained] = place
        return numbers

    def rows(self, centre: Tensor) -> AddedRows:
        """What turns the trained head's logits into those of the classes known now."""
        dims = len(centre)
        weight = np.stack([each.weight for each in self.added]) if self.added else np.empty((0, dims))
        means = [each.features.mean(axis=0) for each in self.added]
        return AddedRows(
            torch.tensor(self.kept, dtype=torch.int64),
            torch.tensor(weight, dtype=torch.float32),
            torch.tensor([each.bias for each in self.added], dtype=torch.float32),
            centre,
            torch.tensor(np.stack(means) if means else np.empty((0, dims)), dtype=torch.float32),
        )

    def of_manifest(self, manifest: Manifest) -> Manifest:
        """The run's own data under the names of now, without images of removed classes."""
        if not self:
            return manifest
        numbers, names = self.numbers(), self.names
        now = {old: names[number] for old, number in zip(self.trained, numbers, strict=True) if number >= 0}
        table = manifest.table
        known = table["split"] != "open"
        table = table[~known | table["label"].isin(now)]
        labels = table["label"].where(table["split"] == "open", table["label"].map(now))
        return dataclasses.replace(
            manifest, table=table.assign(label=labels).reset_index(drop=True), classes=tuple(names)
        )


def fold(trained: Sequence[str], history: Sequence[Action]) -> ClassChanges:
    """The state that the actions that hold lead to, one after another."""
    actions = [each for each in holding(history) if each.kind != "reject"]
    names: dict[int, str] = dict(enumerate(trained))
    added: list[AddedClass] = []
    for action in actions:
        number = next((k for k, name in names.items() if name == action.name), None)
        place = next((p for p, each in enumerate(added) if each.name == action.name), None)
        if action.kind == "add":
            assert action.weight is not None and action.bias is not None
            features = np.stack([image.feature for image in action.images])
            files = tuple(image.kept for image in action.images)
            new = AddedClass(action.name, action.weight, action.bias, features, files, number)
            if place is not None:  # more images of it
                before = added[place]
                added[place] = dataclasses.replace(
                    new,
                    features=np.concatenate([before.features, features]),
                    files=(*before.files, *files),
                    trained=before.trained,
                )
            else:
                if number is not None:
                    del names[number]
                added.append(new)
        elif action.kind == "remove":
            if place is not None:
                del added[place]
            elif number is not None:
                del names[number]
        elif action.kind == "rename":
            if place is not None:
                added[place] = dataclasses.replace(added[place], name=action.details["to"])
            elif number is not None:
                names[number] = action.details["to"]
    version, last = (each[-1].id if each else 0 for each in (actions, history))
    return ClassChanges(tuple(trained), tuple(names), tuple(names.values()), tuple(added), version, last)


def extended(network: Network, rows: AddedRows) -> Network:
    """The trained network with the classes known now; its weights are shared."""
    device = next(network.parameters()).device
    head = ExtendedHead(network.head, copy.deepcopy(rows).to(device))
    return Network(network.backbone, network.direct_feature, head, network.attention).eval()


def changed_outputs(changes: ClassChanges, outputs: Outputs, rows: AddedRows) -> Outputs:
    """Outputs of the trained network as those of the classes known now, without images of removed ones."""
    labels = outputs.labels
    numbers = torch.from_numpy(np.append(changes.numbers(), OPEN))  # −1 finds the last: open stays open
    now = numbers[labels]
    still = (now != OPEN) | (labels == OPEN)
    logits, reachability = rows(outputs.features, outputs.logits, outputs.reachability)
    changed = dataclasses.replace(
        outputs, logits=logits, reachability=reachability, labels=torch.where(still, now, OPEN)
    )
    return changed if bool(still.all()) else changed.subset(np.flatnonzero(still.numpy()))


def with_collected(run: TrainedRun, training: Outputs) -> tuple[Tensor, Tensor, Tensor]:
    """Features, logits and labels of training images, and of those that classes were added from."""
    parts = training.features, training.logits, training.labels
    added = run.changes.added
    if not added:
        return parts
    features = torch.from_numpy(np.concatenate([each.features for each in added]))
    with torch.inference_mode():
        logits = run.network.head(features.to(run.device)).logits.cpu()
    places = np.arange(len(run.changes.kept), len(run.class_names))
    labels = torch.from_numpy(np.repeat(places, [len(each.features) for each in added]))
    one, two, three = (torch.cat(pair) for pair in zip(parts, (features, logits, labels), strict=True))
    return one, two, three
