"""`Recognizer`: train, evaluate, predict, save and load in a few lines, with scikit-learn's manners."""

from __future__ import annotations

import dataclasses
import inspect
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.group_split import split_by_group
from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.openworld.teachable import Teachable
from oltr.registry import unknown_name
from oltr.runs.by_group import measure_groups
from oltr.runs.copy_run import copied_run
from oltr.runs.given_images import Given
from oltr.runs.measure_levels import measure_levels
from oltr.runs.parents import PRECISION, fit_rollup
from oltr.runs.predict import predict_proba
from oltr.runs.report import Report
from oltr.runs.rule import choose_rule, other_rule
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.changed_settings import as_yaml, settings_beside_recipe
from oltr.training.choose import Choice, choose
from oltr.training.configure import SCRATCH, configure
from oltr.training.options import TrainOptions
from oltr.wording import count, first_few

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from oltr.export.write import Exported


class Recognizer(Teachable):
    """One image recogniser for common, rare and unknown classes; a thin face of `TrainedRun`.

    `unknown_rate` is the share of known validation images that may be rejected; the threshold follows.
    "recipe" leaves it to the recipe (5 % for photos), None means the score's default threshold; `threshold`
    fixes one instead. `group_by` (a column, "folder" or "near-duplicates") keeps what belongs together in one
    split where `fit` makes the splits. `changes` are single settings such as {"stage1.lr": 0.01}; `run` is
    the folder to train in (unless given, a temporary one that goes with the recogniser: `save` keeps it).
    """

    _loaded = False  # `fit` then trains with the run's settings, whatever would be chosen today

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
            self._warn_of_forgetting(manifest.classes)
            temporary = tempfile.TemporaryDirectory(prefix="oltr-") if self.run is None else None
            path = Path(self.run or ".") if temporary is None else Path(temporary.name) / "run"
            named = str(source) if isinstance(source, str | Path) else ""
            train_run(config, manifest, path, TrainOptions(), named)
            self.run_ = TrainedRun(path)
        self._temporary = temporary  # only now: until training has ended well, the last model stays
        return self

    def evaluate(
        self,
        source: Any = None,
        *,
        parents: str | Path | None = None,
        precision: float = PRECISION,
        by: str | Sequence[str] = (),
    ) -> Report:
        """Metrics on the test and open images of a source; without one, on those of training.

        With a table `label,parent` the report's `parents` tells of answers by a parent where the class is
        unsure; `precision` is the share of the answers of each level that are to be right. `by_group` has
        the accuracy by each column `by` of the data (site, camera ...).
        """
        trained = self._trained()
        with console.silent(not self.verbose):
            run = trained if source is None else trained.on(source)
            groups = {column: measure_groups(run, column) for column in ([by] if isinstance(by, str) else by)}
            levels = None if parents is None else measure_levels(run, fit_rollup(run, parents, precision))
            return dataclasses.replace(run.measure(), parents=levels, by_group=groups or None)

    def predict(self, images: Iterable[Given] | Given, **asked: Any) -> pd.DataFrame:
        """One row per image: its likeliest class, unknown or not.

        An image is a path (a folder stands for all images below), a PIL image or a uint8 array H×W×3 or H×W;
        a list may mix them. `label` is the best guess for unknown images too. `unknown_score` is higher for
        more unknown images, not in the units of `threshold_` (for softmax it is 1 − probability).
        `calibrated_probability` is the probability at the temperature that suits the validation images, empty
        without any. An image that cannot be read, or whose output is not finite, has its reason in `error`
        and nothing in the other columns.

        `only=[...]` names the classes that can occur at a place: the answer is one of them. `nearest=3` adds
        a column with so many training images that look most alike. `parents="parents.csv"` (a table of label
        and parent) answers by the parent where the class is unsure, at `precision=0.95`.
        """
        return self._trained().predict(images, **asked)

    def predict_proba(self, images: Iterable[Given] | Given) -> np.ndarray:
        """N×K probabilities of `classes_`, given that the image shows one of them; images as in `predict`.

        They are calibrated, softmax(z/T), where the run had validation images to choose T on
        (`run_.temperature`), and plain softmax otherwise. Rows of images without an answer are NaN.
        """
        return predict_proba(self._trained(), images)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments it was made with, as scikit-learn's estimators give them."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Recognizer:
        """Change arguments by name, for the next `fit`."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise unknown_name("parameter", name, known)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        if hasattr(self, "run_"):
            run = self.run_
            names = f"{count(len(run.class_names), 'class')} ({first_few(run.class_names)})"
            return f"Recognizer: {run.method} on {run.config.backbone}, {names}. {run.rule}"
        defaults = inspect.signature(type(self)).parameters
        given = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k].default]
        return f"Recognizer({', '.join(given)})"

    def save(self, path: str | Path) -> Recognizer:
        """Keep the run at `path`, for `Recognizer.load` and the command line."""
        run, path = self._trained(), Path(path)
        if path.resolve() == run.path.resolve():
            return self
        with copied_run(run.path, path) as part:
            if TrainedRun(part).rule != run.rule:
                TrainedRun(part).keep_rule(run.rule)
        return self

    def export(self, path: str | Path, check: Path | int = 100) -> Exported:
        """Write the model as one ONNX file, with its card beside it, as `oltr export` does.

        `check` are images to compare the file's answers on, or how many of the run's own.
        """
        from oltr.export.check_images import check_images
        from oltr.export.write import check_export, export_onnx

        run, path = self._trained(), Path(path).expanduser()
        check_export(path)
        with console.silent(not self.verbose):
            return export_onnx(run, path, check_images(run, check))

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

        `fit` trains it anew with the run's settings, in a temporary folder; the run stays as it is. `score`,
        `threshold` or `unknown_rate` give it another rule, for this object alone; `unknown_rate=None` is the
        score's default threshold.
        """
        run = TrainedRun(path)
        if unknown_rate is None and threshold is None:
            run = run.under(choose_rule(run, score or run.rule.score))
        elif score is not None or threshold is not None or unknown_rate != "run":
            rate = None if unknown_rate == "run" else unknown_rate
            run = run.under(other_rule(run, score, threshold, rate))
        config, rule = run.folder.config(), run.rule
        recognizer = cls(
            config.method,
            config.backbone,
            recipe=config.recipe,
            weights=config.weights or SCRATCH,
            train_backbone=config.train_backbone,
            seed=config.seed,
            image_size=config.data.image_size,
            changes=settings_beside_recipe(config),
            score=rule.score,
            threshold=None if rule.unknown_rate is not None else rule.threshold,
            unknown_rate=rule.unknown_rate,
            verbose=verbose,
        )
        recognizer.run_, recognizer._loaded = run, True
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
        """What suits these images, with what was asked for; a loaded run's own settings as they were."""
        choice = self._choice(manifest)
        if choice.reason:
            console.say(f"picked: {choice.method}, {choice.reason}")
        return configure(
            choice.recipe,
            choice.method,
            backbone=choice.backbone,
            weights=choice.weights,
            train_backbone=choice.train_backbone,
            image_size=self.image_size,
            epochs=self.epochs,
            seed=self.seed,
            changes=[f"{name}={as_yaml(value)}" for name, value in self._changes().items()],
        )

    def _choice(self, manifest: Manifest) -> Choice:
        if self._loaded and self.method is not None:
            return Choice(self.recipe, self.method, self.backbone, self.weights, self.train_backbone)
        return choose(
            self.recipe,
            self.method,
            self.backbone,
            self.weights,
            self.train_backbone,
            train_images=manifest.sizes()["train"],
            gpu=torch.cuda.is_available(),
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
