"""`Recognizer`: train, evaluate, predict, save and load in a few lines, with scikit-learn's manners."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from oltr.config import RunConfig
from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.methods import METHODS
from oltr.openset import SCORES
from oltr.runs.decision import UNKNOWN_RATE, decide_by
from oltr.runs.evaluate_run import make_report
from oltr.runs.predict import image_paths, predict
from oltr.runs.prepare_score import prepared_score
from oltr.runs.read_outputs import outputs_on, source_to_measure
from oltr.runs.report import Report
from oltr.runs.run_outputs import best_device, cached_outputs, kept_outputs, load_network
from oltr.runs.train_run import train_run
from oltr.training.configure import configure
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder


class Recognizer:
    """One image recogniser for common, rare and unknown classes.

    `unknown_rate` is the share of known images one is ready to have called unknown: the threshold follows
    from it on the validation images. Where there are none, or with `unknown_rate=None`, it is the score's
    default. `changes` are single settings such as {"stage1.lr": 0.01}; `run` is the folder to train in
    (unless given, a temporary one that goes when the recogniser does: `save` keeps it).
    """

    def __init__(
        self,
        method: str = "oltr",
        backbone: str | None = None,
        *,
        recipe: str = "photos",
        weights: str | None = None,
        image_size: int | None = None,
        epochs: Sequence[int] = (),
        changes: Mapping[str, Any] | None = None,
        score: str | None = None,
        unknown_rate: float | None = UNKNOWN_RATE,
        seed: int = 0,
        run: str | Path | None = None,
        verbose: bool = True,
    ):
        self.method, self.backbone, self.recipe, self.weights = method, backbone, recipe, weights
        self.image_size, self.epochs, self.changes = image_size, epochs, changes
        self.score, self.unknown_rate, self.seed = score, unknown_rate, seed
        self.run, self.verbose = run, verbose

    def fit(self, source: str | Path) -> Recognizer:
        """Train on a source: a folder of class folders, a manifest, list files or a pack."""
        if isinstance(self.epochs, int):
            raise UserError(f"epochs is {self.epochs}.", "It has a number for each stage.", "epochs=(30, 10)")
        config = configure(
            self.recipe,
            self.method,
            backbone=self.backbone,
            weights=self.weights,
            image_size=self.image_size,
            epochs=self.epochs,
            seed=self.seed,
            changes=[f"{name}={_yaml(value)}" for name, value in (self.changes or {}).items()],
        )
        console, manifest = Console(quiet=not self.verbose), read_source(source)
        console.notes(manifest.notes)
        self._check_decision(config, manifest, console)
        temporary = tempfile.TemporaryDirectory(prefix="oltr-") if self.run is None else None
        path = Path(self.run or ".") if temporary is None else Path(temporary.name) / "run"
        train_run(config, manifest, path, console, TrainOptions(), str(source))
        self._open(path)
        self._temporary = temporary  # only now: until training has ended well, the last model stays
        self._note_decision(path)
        return self

    def evaluate(self, source: str | Path | None = None) -> Report:
        """Metrics on the test and open images of a source, read anew; without one, on those of training,
        from the outputs that were kept."""
        folder, console = self._folder(), Console(quiet=not self.verbose)
        manifest = None if source is None else source_to_measure(folder, source)
        if manifest is not None:
            console.notes(manifest.notes)
        outputs = cached_outputs(folder) if manifest is None else outputs_on(folder, manifest, console)
        prepared = prepared_score(folder, self._score, outputs, manifest, console)
        return make_report(folder, outputs, prepared, threshold=self.threshold_)

    def predict(self, images: Sequence[str | Path] | str | Path) -> pd.DataFrame:
        """One row per image file: its likeliest class, unknown or not; a folder stands for all images below.

        `label` is the best guess for unknown images too. A file that cannot be read has its reason in
        `error` and nothing in the other columns.
        """
        config = self._folder().config()
        paths = image_paths(images)
        return predict(self.network_, config, self.classes_, paths, self._score, self.threshold_)

    def save(self, path: str | Path) -> Recognizer:
        """Keep the run at `path`, for `Recognizer.load` and the command line."""
        folder, path = self._folder(), Path(path)
        if path.resolve() == folder.path.resolve():
            return self
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            why = "It is not empty." if path.is_dir() else "It is a file."
            raise UserError(f"path is {path}.", why, "a new or empty folder")
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            shutil.copytree(folder.path, part, ignore=shutil.ignore_patterns("checkpoints"))
            self._note_decision(part)
            part.replace(path)  # an empty folder there gives way
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return self

    @classmethod
    def load(cls, path: str | Path, **decision: Any) -> Recognizer:
        """A trained recogniser from a run folder; `score` and `unknown_rate` are those it was saved with
        unless given anew."""
        folder = RunFolder(path)
        config, kept = folder.config(), folder.run().get("decision", {})
        recognizer = cls(
            config.method,
            config.backbone,
            recipe=config.recipe,
            weights=config.weights,
            seed=config.seed,
            image_size=config.data.image_size,
            run=path,
            **(kept | decision),
        )
        recognizer._open(Path(path))
        return recognizer

    def _check_decision(self, config: RunConfig, manifest: Manifest, console: Console) -> None:
        """Say before training, rather than after it, that unknown images could not be told."""
        score = SCORES[self.score or METHODS[config.method].score]
        rate = self.unknown_rate
        if rate is not None and not 0 < rate < 1:
            raise UserError(f"unknown_rate is {rate}.", try_this="a share between 0 and 1, or None")
        if score.name == "reachability" and not config.settings.get("reachability"):
            raise UserError(f"score is 'reachability', but {config.method} has none.", try_this="softmax")
        if rate is not None and manifest.sizes()["val"]:
            return
        if score.default_threshold is None:
            raise UserError(
                f"score is {score.name!r}, which has no default threshold.",
                "An unknown_rate, met on validation images, would choose one.",
                "unknown_rate=0.05 and a source with a val split, or score='softmax'",
            )
        if rate is not None:
            console.warn(f"no validation images: the {score.name} threshold is {score.default_threshold}")

    def _open(self, path: Path) -> None:
        """Take over a finished run: network, classes and the threshold that the validation images give."""
        folder = RunFolder(path)
        known = kept_outputs(folder, ["val"]) if self.unknown_rate is not None else {}
        rate = self.unknown_rate if known else None
        decision = decide_by(folder, self.score, None, rate, known, Console(quiet=not self.verbose))
        score, threshold = decision.score, decision.threshold
        self.network_ = load_network(folder).to(best_device())
        self.classes_ = [entry["name"] for entry in folder.classes()]
        self.folder_, self._score, self.score_, self.threshold_ = folder, score, score.name, threshold

    def _note_decision(self, path: Path) -> None:
        """In run.yaml, for `load`: by what images are called unknown."""
        rate = self.unknown_rate
        decision = {"score": self.score, "unknown_rate": None if rate is None else float(rate)}
        values = RunFolder(path).run() | {"decision": decision}
        with atomic_write(path / "run.yaml") as part:
            part.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), encoding="utf-8")

    def _folder(self) -> RunFolder:
        if not hasattr(self, "folder_"):
            raise UserError("Not trained yet.", try_this="fit(source), Recognizer.load(run)")
        return self.folder_


def _yaml(value: Any) -> str:
    """A Python value as the YAML that --set reads."""
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
