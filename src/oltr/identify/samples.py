"""`Samples`: features of images with the identity of each, from a file or from a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.wording import count, first_few

GIVEN = "given"  # the name of features that come from a file
NOBODY = ("", "-1")  # labels that name no identity


@dataclass(frozen=True, eq=False)
class Samples:
    """N images: features N×D by the name of their embedding, an identity each, and where they come from.

    Images whose features a run is still to compute have none.
    """

    name: str  # for messages
    features: Mapping[str, Tensor]
    labels: np.ndarray  # N, text or integers; "", −1 and "-1" are nobody
    paths: np.ndarray | None = None  # N, text
    root: str | None = None  # where paths start, if they are of image files
    images: tuple[Manifest, tuple[str, ...]] | None = None  # and which of its splits, in order

    def __post_init__(self) -> None:
        for embedding, features in self.features.items():
            check_features(features, f"{self.name} ({embedding})" if embedding != GIVEN else self.name)
            if len(features) != len(self.labels):
                raise UserError(
                    f"{self.name} has {count(len(features), 'feature')} but "
                    f"{count(len(self.labels), 'label')}."
                )

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, embedding: str) -> Tensor:
        """The features of an embedding; those of a file serve for every one."""
        return self.features[GIVEN if GIVEN in self.features else embedding]

    @property
    def named(self) -> np.ndarray:
        """Which of them are somebody (N,)."""
        if self.labels.dtype.kind in "iu":
            return self.labels != -1
        return ~np.isin(self.labels.astype(str), NOBODY)

    @property
    def people(self) -> set[str]:
        """Their names."""
        return set(map(str, pd.unique(pd.Series(self.labels[self.named]))))


def split_rows(manifest: Manifest, splits: Sequence[str]) -> np.ndarray:
    """The rows of a manifest that are of these splits, one split after the other."""
    return np.concatenate([manifest.positions(split) for split in splits])


def own_rows(probes: Samples, gallery: Samples) -> np.ndarray:
    """The gallery's row that is the probe's own image (P,), −1 where there is none or files are not known."""
    if probes is gallery:
        return np.arange(len(probes))
    there, asked = _files(gallery), _files(probes)
    return np.full(len(probes), -1) if there is None or asked is None else there.get_indexer(asked)


def _files(samples: Samples) -> pd.Index | None:
    """The file of each image."""
    root, paths = samples.root, samples.paths
    if root is None or paths is None:
        return None
    return pd.Index([os.path.normpath(Path(root, path)) for path in paths])


def identities(parts: Sequence[Samples]) -> list[np.ndarray]:
    """An identity number for each sample of each part, −1 for those that are nobody of the first part."""
    alike = all(part.labels.dtype.kind in "iu" for part in parts)
    labels = [part.labels if alike else part.labels.astype(str).astype(object) for part in parts]
    people = pd.Index(pd.unique(pd.Series(labels[0][parts[0].named])))
    return [
        np.where(part.named, people.get_indexer(pd.Index(names)), -1)
        for part, names in zip(parts, labels, strict=True)
    ]


def check_features(features: Any, name: str) -> None:
    """Refuse features that are no finite matrix."""
    if features.ndim != 2 or not features.shape[1] or not features.is_floating_point():
        raise UserError(
            f"The features of {name} are {'×'.join(map(str, features.shape))} of {features.dtype}.",
            "Features are a matrix of floats, a row for each image.",
        )
    # aminmax hands NaN on and needs no memory of its own
    if len(features) and not all(torch.isfinite(bound) for bound in torch.aminmax(features)):
        bad = (~torch.isfinite(features).all(dim=1)).nonzero()[:, 0].tolist()
        raise UserError(
            f"The features of {name} have NaN or infinite values in {count(len(bad), 'row')}: "
            f"row {first_few(bad)} (from 0).",
            try_this="compute them again, or leave these images out",
        )


def check_widths(parts: Sequence[Samples], embedding: str) -> None:
    """Refuse features of unequal width, which no similarity can be measured between."""
    widths = [part.of(embedding).shape[1] for part in parts]
    if len(set(widths)) > 1:
        each = (f"{part.name} has {width} numbers" for part, width in zip(parts, widths, strict=True))
        raise UserError(
            f"The features are of unequal width: {', '.join(each)}.", "They must come from the same network."
        )
