"""A run's outputs by split: kept in its folder, or computed from the images when first asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from oltr.console import console
from oltr.data.image_access import Images
from oltr.data.images import UnreadableImage
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.openset import Score
from oltr.runs.class_changes import by_class, changed_outputs
from oltr.runs.collect import collect_outputs
from oltr.runs.outputs import OPEN, SPLITS, Outputs
from oltr.runs.own_data import images_needed, open_for
from oltr.training.inference import ViewChange
from oltr.training.run_folder import RESUME

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

MEASURED = ("test", "open")  # between which images move when classes change
CLASSES = "-classes-"  # and the last change
MADE_ANEW = f"{RESUME}, which makes them anew"


class SplitOutputs(Mapping[str, Outputs]):
    """Outputs of val, test and open, as far as there are any; asking for others says why there are none."""

    def __iter__(self) -> Iterator[str]:
        return (split for split in SPLITS if split in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def get(self, split: str, default: Any = None) -> Any:
        return self[split] if split in self else default  # noqa: SIM401


class OwnOutputs(SplitOutputs):
    """On the run's own images, kept in RUN/outputs, those of a score's view of them in a folder of its own.

    Training keeps val, test and open; whatever else is asked for (train, another view) is computed once.
    What is kept is of the trained network, and becomes that of the classes known now when it is read; but a
    view follows the gradient of the network as it is now, and is kept for these classes alone.
    """

    def __init__(self, run: TrainedRun, score: Score | None = None):
        self.run, self.score = run, score
        self.view = score.view if score is not None else ""
        of_classes = f"{CLASSES}{run.changes.version}" if self.view and run.changes else ""
        self.place = run.folder.outputs / f"{self.view}{of_classes}"
        self.made: dict[str, Outputs] = {}

    def __getitem__(self, split: str) -> Outputs:
        if split not in self.made:
            as_kept = self.view or not self.run.changes
            self.made[split] = self._load(split) if as_kept else self._changed(split)
        return self.made[split]

    def __contains__(self, split: object) -> bool:
        if self.run.changes and split in MEASURED:
            with suppress(UserError):
                return bool(len(self.run.own_outputs()[str(split)]))
        return self._is_kept(str(split))

    def _is_kept(self, split: str) -> bool:
        return (self.run.folder.outputs / f"{split}.safetensors").is_file()

    def _changed(self, split: str) -> Outputs:
        """Those of a split as it is with the classes known now."""
        run = self.run
        if split not in MEASURED:
            kept = self._load(split)
            numbers = by_class(run.changes.numbers(), kept.labels)
            rows = np.flatnonzero((numbers != OPEN) | (kept.labels == OPEN).numpy())
            return changed_outputs(kept.subset(rows), run.added_rows, numbers[rows])
        parts, places = [], []
        for each in filter(self._is_kept, MEASURED):
            kept, (numbers, positions) = self._load(each), self._classes[each]
            rows = np.flatnonzero(numbers >= 0 if split == "test" else numbers == OPEN)
            parts.append(changed_outputs(kept.subset(rows), run.added_rows, numbers[rows]))
            places.append(positions[rows])
        if not any(map(len, parts)) and not self._is_kept(split):
            raise self._missing(split)
        return Outputs.joined(parts).subset(np.argsort(np.concatenate(places)))  # in the manifest's order

    @cached_property
    def _classes(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Of each measured split the images' classes now, and their places in the manifest."""
        run = self.run
        try:
            return {each: (run.current_classes[each], run.own_data.positions(each)) for each in MEASURED}
        except UserError as problem:
            if run.changes.added and self._is_kept("open"):
                console.warn(f"open images of classes that have a name now count as unknown: {problem.what}")
        found, place = {}, 0
        for each in filter(self._is_kept, MEASURED):
            numbers = by_class(run.changes.numbers_by_label(), self._load(each).labels)
            found[each] = numbers, np.arange(place, place := place + len(numbers))
        return found

    def _load(self, split: str) -> Outputs:
        file = self.place / f"{split}.safetensors"
        trained = split in SPLITS and self.place == self.run.folder.outputs
        if file.is_file():
            return _kept(file, trained)
        if trained:
            raise self._missing(split)
        outputs = self._compute(split)
        outputs.save(file)
        if self.view:
            self._drop_outdated()
        return outputs

    def _drop_outdated(self) -> None:
        """Views of other classes go, that a run which learns every week does not grow by them."""
        for folder in self.run.folder.outputs.glob(f"{self.view}{CLASSES}*"):
            if folder != self.place:
                shutil.rmtree(folder, ignore_errors=True)

    def _compute(self, split: str) -> Outputs:
        try:
            run = self.run if self.view else self.run.as_trained
            return outputs_on(run, run.manifest, split, self.score)
        except UnreadableImage as problem:
            raise images_needed(self.run, problem) from None

    def _missing(self, split: str) -> UserError:
        what = f"{self.run.path} has no outputs of {split} images."
        if self.run.facts["data"].get("images", {}).get(split) == 0:
            hint = f"oltr evaluate {self.run.path} --source SOURCE"
            return UserError(what, f"Its data had no {split} images.", hint)
        return UserError(what, try_this=MADE_ANEW)


class OtherOutputs(SplitOutputs):
    """On another source; without validation images of its own, those of the run serve for thresholds."""

    def __init__(self, run: TrainedRun, manifest: Manifest, score: Score | None = None):
        self.run, self.manifest, self.score = run, manifest, score
        self.made: dict[str, Outputs] = {}

    def __getitem__(self, split: str) -> Outputs:
        if split not in self.made:
            if not self.manifest.sizes()[split]:
                if split == "val":
                    return self.run.own_outputs(self.score)["val"]
                raise UserError(
                    f"The source has no {split} images.", try_this=f"a source with a {split} split"
                )
            self.made[split] = outputs_on(self.run, self.manifest, split, self.score)
        return self.made[split]

    def __contains__(self, split: object) -> bool:
        if split == "val" and not self.manifest.sizes()["val"]:
            return "val" in self.run.own_outputs()
        return bool(self.manifest.sizes().get(str(split)))


def outputs_on(run: TrainedRun, manifest: Manifest, split: str, score: Score | None = None) -> Outputs:
    """Outputs on a split of a manifest, or on a score's view of it, labels in the run's class numbers."""
    outputs = compute_outputs(run, open_for(run, manifest, [split])[split], score, f"evaluating {split}")
    if split == "open":
        return outputs
    numbers = {name: number for number, name in enumerate(run.class_names)}
    return outputs.relabelled(torch.tensor([numbers.get(name, -1) for name in manifest.classes] or [-1]))


def compute_outputs(run: TrainedRun, images: Images, score: Score | None = None, what: str = "") -> Outputs:
    """Outputs of the run's network on open images, or on a score's view of them."""
    change = view_change(run, score) if score is not None and score.view else None
    with console.progress(what) as progress:
        return collect_outputs(
            run.network,
            images,
            run.config.data,
            run.device,
            precision=run.config.precision,
            workers=run.workers,
            progress=progress if what else None,
            change=change,
        )


def view_change(run: TrainedRun, score: Score) -> ViewChange:
    """How a batch of views becomes the one that a score reads."""
    return partial(_changed, score=score, std=run.config.data.std)


def _changed(network: Network, views: Tensor, score: Score, std: Sequence[float]) -> Tensor:
    """The view of the images that a score reads."""
    return score.change(lambda x: network(x).logits, views, std)


def _kept(file: Path, trained: bool) -> Outputs:
    try:
        return Outputs.load(file)
    except UserError as problem:
        # Training makes none but these; the others are made when a score needs them.
        hint = MADE_ANEW if trained else f"delete {file}, and it is made anew when it is needed"
        raise UserError(problem.what, problem.why, hint) from None
