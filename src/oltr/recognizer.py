"""`Recognizer`: train, evaluate, predict, save and load in a few lines, with scikit-learn's manners."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
import yaml

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.group_split import split_by_group
from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.runs.report import Report
from oltr.runs.rule import choose_rule, other_rule
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.choose import choose
from oltr.training.configure import configure
from oltr.training.options import TrainOptions

if TYPE_CHECKING:
    import pandas as pd


class Recognizer:
    """One image recogniser for common, rare and unknown classes; a thin face of `TrainedRun`.

    `unknown_rate` is the share of known validation images that may be rejected; the threshold follows.
    "recipe" leaves it to the recipe (5 % for photos), None means the score's default threshold; `threshold`
    fixes one instead. `group_by` (a column, "folder" or "near-duplicates") keeps what belongs together in one
    split where `fit` makes the splits. `changes` are single settings such as {"stage1.lr": 0.01}; `run` is
    the folder to train in (unless given, a temporary one that goes with the recogniser: `save` keeps it).
    """

    def __init__(
        self,
        method: str | None = None,
        backbone: str | None = None,
        *,
        recipe: str = "photos",
        weights: str | None = None,
        train_backbone: Literal["none", "last", "all"] | None = None,
        image_size: int | None = None,
        epochs: Sequence[int] = (),
        changes: Mapping[str, Any] | None = None,
        score: str | None = None,
        threshold: float | None = None,
        unknown_rate: float | Literal["recipe"] | None = "recipe",
        seed: int = 0,
        group_by: str | None = None,
        run: str | Path | None = None,
        verbose: bool = True,
    ):
        self.method, self.backbone, self.recipe, self.weights = method, backbone, recipe, weights
        self.train_backbone = train_backbone
        self.image_size, self.epochs, self.changes = image_size, epochs, changes
        self.score, self.threshold, self.unknown_rate = score, threshold, unknown_rate
        self.seed, self.group_by, self.run, self.verbose = seed, group_by, run, verbose

    def fit(self, source: Any) -> Recognizer:
        """Train on a source: a folder of class folders, a manifest, list files, a pack, a DataFrame with the
        columns path, label and split, or a `Dataset` of images and labels."""
        if isinstance(self.epochs, int):
            raise UserError(f"epochs is {self.epochs}.", "It has a number for each stage.", "epochs=(30, 10)")
        with console.silent(not self.verbose):
            manifest = read_source(source)
            if self.group_by is not None:
                manifest = split_by_group(manifest, self.group_by)
            config = self._configure(manifest)
            console.notes(manifest.notes)
            temporary = tempfile.TemporaryDirectory(prefix="oltr-") if self.run is None else None
            path = Path(self.run or ".") if temporary is None else Path(temporary.name) / "run"
            named = str(source) if isinstance(source, str | Path) else ""
            train_run(config, manifest, path, TrainOptions(), named)
            self.run_ = TrainedRun(path)
        self._temporary = temporary  # only now: until training has ended well, the last model stays
        return self

    def evaluate(self, source: Any = None) -> Report:
        """Metrics on the test and open images of a source; without one, on those of training."""
        trained = self._trained()
        with console.silent(not self.verbose):
            return (trained if source is None else trained.on(source)).measure()

    def predict(self, images: Sequence[str | Path] | str | Path) -> pd.DataFrame:
        """One row per image file: its likeliest class, unknown or not; a folder stands for all images below.

        `label` is the best guess for unknown images too. `unknown_score` is higher for more unknown images,
        not in the units of `threshold_` (for softmax it is 1 − probability). A file that cannot be read has
        its reason in `error` and nothing in the other columns.
        """
        return self._trained().predict(images)

    def save(self, path: str | Path) -> Recognizer:
        """Keep the run at `path`, for `Recognizer.load` and the command line."""
        run, path = self._trained(), Path(path)
        if path.resolve() == run.path.resolve():
            return self
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            why = "It is not empty." if path.is_dir() else "It is a file."
            raise UserError(f"path is {path}.", why, "a new or empty folder")
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            shutil.copytree(run.path, part, ignore=shutil.ignore_patterns("checkpoints"))
            if TrainedRun(part).rule != run.rule:
                TrainedRun(part).keep_rule(run.rule)
            part.replace(path)  # an empty folder there gives way
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return self

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        score: str | None = None,
        threshold: float | None = None,
        unknown_rate: float | Literal["run"] | None = "run",
        verbose: bool = True,
    ) -> Recognizer:
        """A trained recogniser from a run folder, under the run's rejection rule.

        `score`, `threshold` or `unknown_rate` give it another, for this object alone; `unknown_rate=None` is
        the score's default threshold.
        """
        run = TrainedRun(path)
        if unknown_rate is None and threshold is None:
            run = run.under(choose_rule(run, score or run.rule.score))
        elif score is not None or threshold is not None or unknown_rate != "run":
            rate = None if unknown_rate == "run" else unknown_rate
            run = run.under(other_rule(run, score, threshold, rate))
        config, rule = run.config, run.rule
        recognizer = cls(
            config.method,
            config.backbone,
            recipe=config.recipe,
            weights=config.weights,
            seed=config.seed,
            image_size=config.data.image_size,
            score=rule.score,
            threshold=None if rule.unknown_rate is not None else rule.threshold,
            unknown_rate=rule.unknown_rate,
            run=path,
            verbose=verbose,
        )
        recognizer.run_ = run
        return recognizer

    @property
    def classes_(self) -> list[str]:
        """The names of the classes it knows."""
        return self._trained().class_names

    @property
    def network_(self) -> Any:
        """The trained network, an `nn.Module`."""
        return self._trained().network

    @property
    def score_(self) -> str:
        """The score that tells unknown images."""
        return self._trained().rule.score

    @property
    def threshold_(self) -> float:
        """Beyond which an image is unknown."""
        return self._trained().rule.threshold

    def _configure(self, manifest: Manifest) -> RunConfig:
        """What suits these images, with what was asked for."""
        choice = choose(
            self.recipe,
            self.method,
            self.backbone,
            self.weights,
            self.train_backbone,
            train_images=manifest.sizes()["train"],
            gpu=torch.cuda.is_available(),
        )
        if choice.reason:
            console.say(f"{choice.method}: {choice.reason}")
        return configure(
            choice.recipe,
            choice.method,
            backbone=choice.backbone,
            weights=choice.weights,
            train_backbone=choice.train_backbone,
            image_size=self.image_size,
            epochs=self.epochs,
            seed=self.seed,
            changes=[f"{name}={_yaml(value)}" for name, value in self._changes().items()],
        )

    def _changes(self) -> dict[str, Any]:
        """The settings changed, those of the rejection rule among them."""
        changes = dict(self.changes or {})
        if self.score is not None:
            changes["decision.score"] = self.score
        if self.threshold is not None and self.unknown_rate not in ("recipe", None):
            raise UserError("Both a threshold and an unknown_rate were given.", try_this="one of the two")
        if self.threshold is not None or self.unknown_rate != "recipe":
            changes["decision.threshold"] = self.threshold
            changes["decision.unknown_rate"] = None if self.threshold is not None else self.unknown_rate
        return changes

    def _trained(self) -> TrainedRun:
        if not hasattr(self, "run_"):
            raise UserError("Not trained yet.", try_this="fit(source), Recognizer.load(run)")
        return self.run_


def _yaml(value: Any) -> str:
    """A Python value as the YAML that --set reads."""
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
