"""A few training images of each class as features, kept with the run: classes are added beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.features import Features, as_features
from oltr.data.image_access import Images
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.nn.network import Network
from oltr.runs.outputs import OPEN
from oltr.runs.pictures import chosen_images, subset
from oltr.samplers import generator
from oltr.training.inference import embed_images

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

PER_CLASS, AT_MOST = 10, 20_000  # images; 10 of a class served as well as all in measurements


@dataclass(frozen=True, eq=False)
class Exemplars:
    """Direct features of known images (N×D float32) and their trained class numbers (N)."""

    features: Tensor
    labels: Tensor
    centre: Tensor  # D, their mean: added rows see features relative to it

    def save(self, path: Path) -> None:
        """Write as safetensors, atomically."""
        with atomic_write(path) as part:
            tensors = {"features": self.features, "labels": self.labels, "centre": self.centre}
            part.write_bytes(save({name: tensor.contiguous() for name, tensor in tensors.items()}))


def keep_exemplars(
    network: Network, train: Images, config: RunConfig, device: torch.device, workers: int, path: Path | None
) -> None:
    """Write those of a run that has just been trained; every process takes part, one writes (path)."""
    rows = exemplar_rows(train.labels, config.seed)
    if isinstance(train, Features):
        chosen: Images = as_features(train.labels[rows], train.values[torch.from_numpy(rows)])
    else:
        chosen = subset(train, rows)
    found = _embedded(network, chosen, config, device, workers)
    if path is not None:
        found.save(path)


def exemplars(run: TrainedRun) -> Exemplars:
    """The run's own; made from its training images, or else from its validation images, where it has none."""
    path = run.folder.exemplars
    if path.is_file():
        try:
            return Exemplars(**load_file(path))
        except (OSError, SafetensorError, TypeError) as problem:
            raise UserError(f"{path} cannot be read.", str(problem), "delete it: it is made anew") from None
    made = _made(run.as_trained)
    made.save(path)
    return made


def exemplar_rows(labels: np.ndarray, seed: int) -> np.ndarray:
    """Up to ten random images of each class, fewer where there are very many classes."""
    order = generator(seed, len(labels)).permutation(len(labels))
    most = max(1, min(PER_CLASS, AT_MOST // max(len(np.unique(labels)), 1)))
    by_class = order[np.argsort(labels[order], kind="stable")]
    ordered = labels[by_class]
    place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    return np.sort(by_class[place < most])


def _made(run: TrainedRun) -> Exemplars:
    """Of a run from before they were kept."""
    try:
        rows = exemplar_rows(run.manifest.labels("train"), run.config.seed)
        chosen = chosen_images(run, "train", rows)
        console.say(f"reading {len(rows):,} training images once, for {run.folder.exemplars}")
        return _embedded(run.network, chosen, run.config, run.device, run.workers)
    except UserError as problem:
        if "val" not in run.own_outputs():
            raise
        console.warn(f"validation images stand in for training images: {problem.what}")
    val = run.own_outputs()["val"]
    known = val.labels != OPEN
    features = val.features[known]
    return Exemplars(features, val.labels[known], features.mean(dim=0))


def _embedded(
    network: Network, images: Images, config: RunConfig, device: torch.device, workers: int
) -> Exemplars:
    features, labels = embed_images(
        network.to(device), images, config.data, device, precision=config.precision, workers=workers
    )
    return Exemplars(features, labels, features.mean(dim=0))
