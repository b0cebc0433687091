"""A score made ready for a run: fitted on its training images, or with outputs of changed images."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import torch

from oltr.config import DataConfig
from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.openset import SCORES, FittedScore, Score
from oltr.openset.odin import Odin
from oltr.runs.outputs import Outputs
from oltr.runs.read_outputs import own_outputs, read_outputs
from oltr.runs.run_outputs import kept_outputs, save_outputs
from oltr.training.infer import ViewChange
from oltr.training.run_folder import RunFolder


class Prepared(NamedTuple):
    """A score and the outputs it reads, by split; for most scores those that predictions come from."""

    score: Score
    outputs: Mapping[str, Outputs]


def prepared_score(
    folder: RunFolder,
    score: str | Score | None,
    outputs: Mapping[str, Outputs],
    manifest: Manifest | None = None,
    console: Console | None = None,
) -> Prepared:
    """The score of that name, or the method's own, ready to be asked about `outputs` of the run.

    `manifest` is where these came from; without it, the source that the run was trained on. What has to be
    read from images of the run's own data is kept in its folder.
    """
    console = console or Console()
    chosen = score if isinstance(score, Score) else named_score(folder, score)
    if isinstance(chosen, FittedScore) and chosen.learned is None:
        return Prepared(chosen.fit(training_outputs(folder, manifest, console)), outputs)
    if isinstance(chosen, Odin) and chosen.noise:
        return Prepared(chosen, _changed_outputs(folder, chosen, outputs, manifest, console))
    return Prepared(chosen, outputs)


def named_score(folder: RunFolder, name: str | None) -> Score:
    """The score of that name, not fitted; the method's own unless one is named."""
    return SCORES[name or METHODS[folder.config().method].score]


def view_change(score: Score, data: DataConfig) -> ViewChange | None:
    """What the score does to images before the network sees them; None for most."""
    return partial(score.change, std=data.std) if isinstance(score, Odin) and score.noise else None


def training_outputs(folder: RunFolder, manifest: Manifest | None, console: Console) -> Outputs:
    """Outputs of the images the run learned from: kept, or read once; from `manifest` if it has them.

    Where they are gone, as many training images of each class in `manifest` stand in; those are not kept.
    """
    if kept := kept_outputs(folder, ["train"]):
        return kept["train"]
    console.say(f"reading the training images once, for {folder.outputs / 'train.safetensors'}")
    try:
        read = _own_outputs(folder, ["train"], manifest, console)
    except UserError:
        if manifest is None or not _as_many_images(folder, manifest):
            raise
        console.warn("the run's training images are gone; those of the source are taken instead")
        return read_outputs(folder, manifest, ["train"], console)["train"]
    save_outputs(folder, read)
    return read["train"]


def _own_outputs(
    folder: RunFolder,
    splits: list[str],
    manifest: Manifest | None,
    console: Console,
    change: ViewChange | None = None,
) -> dict[str, Outputs]:
    """Outputs on the run's own images, which may lie where `manifest` has them now."""
    if manifest is not None and _same_data(folder, manifest):
        return read_outputs(folder, manifest, splits, console, change)
    return own_outputs(folder, splits, console, change)


def _same_data(folder: RunFolder, manifest: Manifest) -> bool:
    return manifest.fingerprint() == folder.run()["data"]["fingerprint"]


def _as_many_images(folder: RunFolder, manifest: Manifest) -> bool:
    """Whether every class has as many training images there as the run had."""
    there = dict(zip(manifest.classes, manifest.train_counts().tolist(), strict=True))
    return {name: count for name, count in there.items() if count} == {
        entry["name"]: entry["train_count"] for entry in folder.classes() if entry["train_count"]
    }


def _changed_outputs(
    folder: RunFolder,
    score: Odin,
    outputs: Mapping[str, Outputs],
    manifest: Manifest | None,
    console: Console,
) -> dict[str, Outputs]:
    """Outputs of the same images after the score has changed them."""
    change = view_change(score, folder.config().data)
    if manifest is not None and not _same_data(folder, manifest):
        there = [split for split in outputs if manifest.sizes()[split]]
        own = {split: part for split, part in outputs.items() if split not in there}
        return read_outputs(folder, manifest, there, console, change) | _changed_outputs(
            folder, score, own, None, console
        )
    place = f"odin-T{score.temperature:g}-e{score.noise:g}"
    changed = kept_outputs(folder, list(outputs), place)
    if missing := [split for split in outputs if split not in changed]:
        read = _own_outputs(folder, missing, manifest, console, change)
        save_outputs(folder, read, place)
        changed |= read
    for split, part in outputs.items():
        if split not in changed or not torch.equal(changed[split].labels, part.labels):
            raise UserError(
                f"The score {score.name!r} has no outputs of these {split} images.",
                "They are not the run's own, and it must change the images themselves.",
                "their source",
            )
    return changed
