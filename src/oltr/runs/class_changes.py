"""The classes that a run knows now: those of its training, less what was removed, with what was added."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from oltr.nn.extended_head import AddedRows, ExtendedHead
from oltr.nn.heads import MetaEmbeddingHead
from oltr.nn.memory import Memory
from oltr.nn.memory_head import ClassMeans, MemoryHead
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

    def numbers_by_label(self) -> np.ndarray:
        """The same for images labelled so, K: those of a removed class whose name another has now are its."""
        numbers, names = self.numbers(), self.names
        for number in np.flatnonzero(numbers < 0):
            if self.trained[number] in names:
                numbers[number] = names.index(self.trained[number])
        return numbers

    def rows(
        self, centre: Tensor, memory: Memory | None = None, class_means: ClassMeans | None = None
    ) -> AddedRows:
        """What turns the trained head's logits into those of the classes known now."""
        dims = len(centre)
        weight = np.stack([each.weight for each in self.added]) if self.added else np.empty((0, dims))
        return AddedRows(
            torch.tensor(self.kept, dtype=torch.int64),
            torch.tensor(weight, dtype=torch.float32),
            torch.tensor([each.bias for each in self.added], dtype=torch.float32),
            centre,
            memory,
            class_means,
        )

    def with_images(self, name: str, features: np.ndarray) -> AddedClass:
        """The class of that name with these images (n×D) more, as an added one; its row is not set yet."""
        for each in self.added:
            if each.name == name:
                return dataclasses.replace(each, features=np.concatenate([each.features, features]))
        number = self.kept[self.kept_names.index(name)] if name in self.kept_names else None
        return AddedClass(name, np.zeros(features.shape[1], np.float32), 0.0, features, trained=number)

    def class_means(self, head: nn.Module, trained: np.ndarray) -> ClassMeans | None:
        """Where the trained head has class means, those of the added classes, from their training counts; on
        the CPU, where kept outputs are."""
        if not isinstance(head, MemoryHead) or not head.class_means.scale:
            return None
        before, means = head.class_means, []
        for each in self.added:
            own = None if each.trained is None else (before.means[each.trained], int(trained[each.trained]))
            means.append(mean_with(before, torch.tensor(each.features), own))
        return before.of_others(means).cpu()

    def memory(self, head: nn.Module, trained: np.ndarray) -> Memory | None:
        """The trained head's memory with the centroids of the classes known now, from their training counts;
        None where it has none, or the same."""
        before = head.meta.memory if isinstance(head, MetaEmbeddingHead) else None
        if before is None or (not self.added and len(self.kept) == len(self.trained)):
            return None
        old, known = before.centroids.detach().float().cpu(), before.known.cpu()
        centroids, there = [*old[list(self.kept)]], [*known[list(self.kept)].tolist()]
        for each in self.added:
            total, images = torch.from_numpy(each.features).sum(dim=0), len(each.features)
            if each.trained is not None and known[each.trained]:
                total = total + int(trained[each.trained]) * old[each.trained]
                images += int(trained[each.trained])
            centroids.append(total / images)
            there.append(True)
        now = Memory(len(centroids), old.shape[1])
        now.start_from(torch.stack(centroids))
        now.known.copy_(torch.tensor(there))
        return now


def mean_with(memory: ClassMeans, features: Tensor, before: tuple[Tensor, int] | None = None) -> Tensor:
    """A(μ − m) of images (n×D), with that of others and their number where the class had some: D."""
    seen = memory.seen(features.to(memory.means.device))
    mean, images = (torch.zeros_like(seen[0]), 0) if before is None else before
    return (images * mean + seen.sum(dim=0)) / (images + len(features))


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
    device, shared = next(network.parameters()).device, {}
    if rows.class_means is not None:
        assert isinstance(network.head, MemoryHead)
        means = network.head.class_means.of_others([*rows.class_means.means.to(device)])
        shared[id(rows.class_means)] = means  # a copy would hold the whitening once more
    head = ExtendedHead(network.head, copy.deepcopy(rows, shared).to(device))
    return Network(network.backbone, network.direct_feature, head, network.attention).eval()


def by_class(numbers: np.ndarray, labels: Tensor) -> np.ndarray:
    """The number that each label has now, from those of the trained classes; open stays open."""
    return np.append(numbers, OPEN)[labels.numpy()]  # −1 finds the last


def changed_outputs(outputs: Outputs, rows: AddedRows, labels: np.ndarray) -> Outputs:
    """Outputs of the trained network as those of the classes known now, whose numbers are the labels."""
    logits, reachability = rows(outputs.features, outputs.logits, outputs.reachability)
    return dataclasses.replace(
        outputs, logits=logits, reachability=reachability, labels=torch.from_numpy(labels)
    )


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
