"""The model of a run folder: configuration, network, and the classes it knows now."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from oltr.config import RunConfig, build
from oltr.device import best_device
from oltr.methods import METHODS
from oltr.metrics.shots import shot_groups
from oltr.nn.extended_head import AddedRows
from oltr.nn.memory_head import ClassMeans
from oltr.nn.network import Network
from oltr.runs.class_changes import ClassChanges, extended, fold
from oltr.runs.history import History
from oltr.runs.model_version import model_version, weights_version
from oltr.training.load_network import load_network
from oltr.training.run_folder import RunFolder


class RunModel:
    """What a finished run has learned, and was taught since; each part is made when first asked for."""

    def __init__(self, path: str | Path, name: str | None = None):
        self.path, self.folder = Path(path), RunFolder(path)
        self.facts = self.folder.finished_run()  # run.yaml
        config = build(RunConfig, self.facts["config"])
        self.config = config.seen_at(size) if (size := self.facts.get("eval_size")) else config
        self.name = name or self.path.name
        self.device = best_device()

    @cached_property
    def history(self) -> History:
        """What was done to its classes since training."""
        return History(self.folder.history)

    @cached_property
    def changes(self) -> ClassChanges:
        """The classes known now, beside those of training."""
        return fold([entry["name"] for entry in self.folder.classes()], self.history.actions())

    @cached_property
    def as_trained(self) -> Self:
        """The run without what was done to its classes since; itself where nothing was."""
        return self.with_changes(fold(self.changes.trained, [])) if self.changes else self

    @cached_property
    def classes(self) -> list[dict[str, Any]]:
        """Name, training count and shot group of each class."""
        if not self.changes:
            return self.folder.classes()
        counts = self.changes.counts(self.trained_counts)
        groups, first = shot_groups(counts, self.shots), len(self.changes.kept)
        return [
            {"name": name, "train_count": int(images), "shots": str(group), "added": place >= first}
            for place, (name, images, group) in enumerate(
                zip(self.changes.names, counts, groups, strict=True)
            )
        ]

    @cached_property
    def class_names(self) -> list[str]:
        """K names."""
        return [entry["name"] for entry in self.classes]

    @cached_property
    def counts(self) -> np.ndarray:
        """Training images per class, K int64."""
        return np.array([entry["train_count"] for entry in self.classes], dtype=np.int64)

    @property
    def method(self) -> str:
        """The name of its method."""
        return self.config.method

    @property
    def shots(self) -> str:
        """The rule of its shot groups."""
        return self.config.shots

    @cached_property
    def groups(self) -> np.ndarray:
        """The shot group of each class, K strings."""
        return shot_groups(self.counts, self.shots)

    @cached_property
    def trained_network(self) -> Network:
        """The network as it was trained, on the best device."""
        counts = torch.from_numpy(self.trained_counts)
        network = load_network(self.folder, self.config, counts).to(self.device)
        return network.to(memory_format=torch.channels_last)  # as in training, and faster

    @cached_property
    def network(self) -> Network:
        """The network with the classes known now, in evaluation mode on the best device."""
        return extended(self.trained_network, self.added_rows) if self.changes else self.trained_network

    @cached_property
    def added_rows(self) -> AddedRows:
        """What makes the trained network's outputs those of the classes known now."""
        needed = self.changes.added and METHODS[self.config.method].frozen_class_means
        if not self.folder.model.is_file() and not (needed and self.config.head_fitted):
            return self.changes.rows(self.centre())
        memory = self.changes.memory(self.trained_network.head, self.trained_counts)
        return self.changes.rows(self.centre(), memory, self.class_means(self.changes))

    def class_means(self, changes: ClassChanges) -> ClassMeans | None:
        """Those of the added classes, where the trained head has such a memory."""
        return changes.class_means(self.trained_network.head, self.trained_counts)

    @cached_property
    def trained_counts(self) -> np.ndarray:
        """Training images of each trained class, K."""
        return np.array([entry["train_count"] for entry in self.folder.classes()], dtype=np.int64)

    @cached_property
    def weights_version(self) -> str:
        """Its weights as they were trained, in a few letters."""
        return weights_version(self)

    @cached_property
    def model_version(self) -> str:
        """Its weights and its last class change, in a few letters."""
        return model_version(self)

    def centre(self) -> torch.Tensor:
        """From where the features of added classes are seen."""
        raise NotImplementedError

    def reread_classes(self) -> None:
        """Take up what was done to its classes in the meantime; the trained network stays loaded."""
        for part in _OF_CLASSES:
            self.__dict__.pop(part, None)

    def with_changes(self, changes: ClassChanges) -> Self:
        """The same run with other classes; its folder stays as it is."""
        if "trained_network" not in self.__dict__ and self.folder.model.is_file():
            _ = self.trained_network  # loaded once for both
        other = copy(self)
        other.reread_classes()
        other.__dict__["changes"] = changes
        return other


# What depends on the classes, and is made anew when they change.
_OF_CLASSES = (
    *("changes", "as_trained", "classes", "class_names", "counts", "groups"),
    *("network", "added_rows", "model_version"),
)
