"""A run's outputs by split: kept in its folder, or computed from the images when first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from oltr.console import console
from oltr.data.image_access import Images
from oltr.data.images import UnreadableImage
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.openset import Score
from oltr.runs.class_changes import changed_outputs
from oltr.runs.collect import collect_outputs
from oltr.runs.outputs import SPLITS, Outputs
from oltr.runs.own_data import images_needed, open_for
from oltr.training.inference import ViewChange

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

RESUME = "the same oltr train command with --resume"
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
    """

    def __init__(self, run: TrainedRun, score: Score | None = None):
        self.run, self.score = run, score
        self.place = run.folder.outputs / (score.view if score is not None else "")
        self.made: dict[str, Outputs] = {}

    def __getitem__(self, split: str) -> Outputs:
        if split not in self.made:
            kept, run = self._load(split), self.run
            self.made[split] = changed_outputs(run.changes, kept, run.added_rows) if run.changes else kept
        return self.made[split]

    def __contains__(self, split: object) -> bool:
        return (self.run.folder.outputs / f"{split}.safetensors").is_file()

    def _load(self, split: str) -> Outputs:
        file = self.place / f"{split}.safetensors"
        trained = split in SPLITS and self.place == self.run.folder.outputs
        if file.is_file():
            return _kept(file, trained)
        if trained:
            raise self._missing(split)
        outputs = self._compute(split)
        outputs.save(file)
        return outputs

    def _compute(self, split: str) -> Outputs:
        try:
            trained = self.run.as_trained  # what is kept does not depend on the classes added or removed
            return outputs_on(trained, trained.manifest, split, self.score)
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
