"""ODIN's temperature and noise chosen by looking at some open images, which are then measured no more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.metrics.detection import detection_error
from oltr.openset.odin import Odin
from oltr.runs.outputs import Outputs
from oltr.runs.prepare_score import view_change
from oltr.runs.read_outputs import images_for, own_manifest
from oltr.runs.run_outputs import best_device, collect, load_network
from oltr.runs.views import subset
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder

TEMPERATURES = (1.0, 10.0, 100.0, 1000.0)
NOISES = (0.0, 0.0005, 0.001, 0.0014, 0.002, 0.003, 0.004)  # the paper's range


@dataclasses.dataclass(frozen=True)
class TunedOdin:
    """The setting with the least detection error, and the open images (row numbers) it was chosen by."""

    score: Odin
    error: float
    held_out: np.ndarray

    def rest(self, outputs: Mapping[str, Outputs]) -> dict[str, Outputs]:
        """The outputs without those open images: what may be measured."""
        unseen = outputs["open"]
        kept = np.setdiff1d(np.arange(len(unseen)), self.held_out)
        values = {field.name: getattr(unseen, field.name) for field in dataclasses.fields(unseen)}
        rest = {name: value[kept] for name, value in values.items() if value is not None}
        return {**outputs, "open": Outputs(**rest)}


def tune_odin(
    folder: RunFolder,
    manifest: Manifest | None = None,
    console: Console | None = None,
    *,
    images: int = 1000,
    temperatures: Sequence[float] = TEMPERATURES,
    noises: Sequence[float] = NOISES,
    seed: int = 0,
) -> TunedOdin:
    """The T and ε of least detection error between validation images and held-out open images.

    Up to `images` of either kind are drawn, of the open ones at most half; `manifest` has them, unless it is
    the run's own data. The other scores never see an open image, so this is no fair rival of theirs.
    """
    console, config = console or Console(), folder.config()
    manifest = manifest or own_manifest(folder)
    sizes, random = manifest.sizes(), np.random.default_rng(seed)
    if sizes["val"] < 1 or sizes["open"] < 2:
        raise UserError(
            "ODIN cannot be tuned on these data.",
            f"There are {sizes['val']} validation and {sizes['open']} open images.",
            "the fixed temperature and noise",
        )
    opened = images_for(config, manifest, ("val", "open"), console)
    known = random.permutation(sizes["val"])[:images]
    held_out = random.permutation(sizes["open"])[: min(images, sizes["open"] // 2)]
    some = {"val": subset(opened["val"], known), "open": subset(opened["open"], held_out)}
    network, errors = load_network(folder), {}
    for score in (Odin(temperature, noise) for temperature, noise in product(temperatures, noises)):
        change = view_change(score, config.data)
        said = collect(
            network, some, config, best_device(), console, TrainOptions().workers, tuple(some), change
        )
        errors[score] = detection_error(score.unknown_score(said["val"]), score.unknown_score(said["open"]))
    best = min(errors, key=lambda score: errors[score])
    return TunedOdin(best, errors[best], np.sort(held_out))
