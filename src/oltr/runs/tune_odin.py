"""ODIN's temperature and noise chosen by looking at some open images, which are then measured no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.metrics.detection import detection_error
from oltr.openset.odin import Odin
from oltr.runs.own_data import open_for
from oltr.runs.pictures import subset
from oltr.runs.split_outputs import compute_outputs
from oltr.runs.trained_run import TrainedRun

TEMPERATURES = (1.0, 10.0, 100.0, 1000.0)
NOISES = (0.0, 0.0005, 0.001, 0.0014, 0.002, 0.003, 0.004)  # the paper's range


@dataclass(frozen=True)
class TunedOdin:
    """The setting with the least detection error, and the open images (row numbers) it was chosen by."""

    score: Odin
    error: float
    held_out: np.ndarray


def tune_odin(
    run: TrainedRun,
    manifest: Manifest | None = None,
    *,
    images: int = 1000,
    temperatures: Sequence[float] = TEMPERATURES,
    noises: Sequence[float] = NOISES,
    seed: int = 0,
) -> TunedOdin:
    """The T and ε of least detection error between validation images and held-out open images.

    Up to `images` of either kind are drawn, of the open ones at most half; from `manifest`, or from the
    run's own data. The other scores never see an open image, so this is no fair rival of theirs.
    """
    manifest = manifest or run.manifest
    sizes, random = manifest.sizes(), np.random.default_rng(seed)
    if sizes["val"] < 1 or sizes["open"] < 2:
        raise UserError(
            "ODIN cannot be tuned on these data.",
            f"There are {sizes['val']} validation and {sizes['open']} open images.",
            "the fixed temperature and noise",
        )
    opened = open_for(run, manifest, ("val", "open"))
    known = random.permutation(sizes["val"])[:images]
    held_out = random.permutation(sizes["open"])[: min(images, sizes["open"] // 2)]
    some = {"val": subset(opened["val"], known), "open": subset(opened["open"], held_out)}
    errors = {}
    for score in (Odin(temperature, noise) for temperature, noise in product(temperatures, noises)):
        sides = [
            score(*compute_outputs(run, some[split], score, f"evaluating {split}").inputs)
            for split in ("val", "open")
        ]
        errors[score] = detection_error(*sides)
    best = min(errors, key=lambda score: errors[score])
    return TunedOdin(best, errors[best], np.sort(held_out))
