"""What is kept of the images that a run's classes were learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oltr.runs.outputs import OPEN
from oltr.runs.trained_run import TrainedRun


@dataclass(frozen=True, eq=False)
class KnownImages:
    """Direct features N×D, class numbers N, and for how many images each stands (N)."""

    features: Tensor
    labels: Tensor
    weights: Tensor

    def of(self, number: int) -> KnownImages:
        """Those of one class."""
        return self._where(self.labels == number)

    def without(self, number: int) -> KnownImages:
        """Those of the other classes, whose numbers close the gap."""
        rest = self._where(self.labels != number)
        if number == OPEN:
            return rest
        return KnownImages(rest.features, rest.labels - (rest.labels > number).long(), rest.weights)

    def _where(self, mask: Tensor) -> KnownImages:
        return KnownImages(self.features[mask], self.labels[mask], self.weights[mask])


def known_images(run: TrainedRun) -> KnownImages:
    """The exemplars of trained classes, and all images of added ones, under the class numbers of now."""
    changes, kept = run.changes, run.exemplars
    numbers = torch.from_numpy(changes.numbers())
    features, labels = [kept.features], [numbers[kept.labels]]
    for place, each in enumerate(changes.added, start=len(changes.kept)):
        features.append(torch.from_numpy(each.features.copy()))
        labels.append(torch.full((len(each.features),), place))
    joined, owners = torch.cat(features), torch.cat(labels)
    joined, owners = joined[owners != OPEN], owners[owners != OPEN]
    seen = torch.bincount(owners, minlength=len(run.class_names)).clamp(min=1)
    counts = torch.from_numpy(np.maximum(run.counts, 1)).float()
    return KnownImages(joined, owners, (counts / seen)[owners])
