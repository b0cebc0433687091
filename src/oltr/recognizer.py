"""`Recognizer`: train, evaluate, predict, save and load in a few lines, with scikit-learn's manners."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from oltr.data.augment import Augment
from oltr.data.feed import Images
from oltr.data.images import UnreadableImage, read_image
from oltr.data.sources import read_source
from oltr.engine.configure import configure
from oltr.engine.console import Console
from oltr.engine.evaluate_run import best_device, cached_outputs, load_network, make_report, outputs_on
from oltr.engine.fit import FitOptions
from oltr.engine.infer import collect_outputs
from oltr.engine.run_folder import RunFolder
from oltr.engine.train_run import train_run
from oltr.errors import UserError
from oltr.evaluation.report import Report
from oltr.nn.network import Network
from oltr.openset.scores import SCORES
from oltr.openset.threshold import settle_threshold

COLUMNS = (
    "path", "label", "probability", "unknown", "unknown_score", "reachability", "second_label",
    "second_probability", "error",
)


class Recognizer:
    """One image recogniser for common, rare and unknown classes.

    `unknown_rate` is the share of known images one is ready to have called unknown: the threshold follows
    from it on the validation images. Where there are none, or with `unknown_rate=None`, it is the score's
    default. `changes` are single settings such as {"stage1.lr": 0.01}; `run` is the folder to train in (a
    temporary one unless given).
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
        unknown_rate: float | None = 0.05,
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
        config = configure(
            self.recipe, self.method, backbone=self.backbone, weights=self.weights,
            image_size=self.image_size, epochs=self.epochs, seed=self.seed,
            changes=[f"{name}={_yaml(value)}" for name, value in (self.changes or {}).items()],
        )
        console, manifest = Console(quiet=not self.verbose), read_source(source)
        for note in manifest.notes:
            console.say(note)
        if self.run is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="oltr-")
        path = Path(self.run) if self.run is not None else Path(self._temporary.name) / "run"
        train_run(config, manifest, path, console, FitOptions(), str(source))
        self._open(path)
        return self

    def evaluate(self, source: str | Path | None = None) -> Report:
        """Metrics on a source's test and open images; without a source, on those of the training source."""
        folder = self._folder()
        if source is None or str(source) == folder.run()["source"]:
            outputs = cached_outputs(folder)
        else:
            outputs = outputs_on(folder, read_source(source), Console(quiet=not self.verbose))
        return make_report(folder, outputs, self.score_, threshold=self.threshold_)

    def predict(self, images: Sequence[str | Path] | str | Path) -> pd.DataFrame:
        """One row per image file: label, probability, unknown or not, reachability, the second choice.

        A file that cannot be read gets a row with `error` filled and nothing else.
        """
        config = self._folder().config()
        paths = [Path(images)] if isinstance(images, (str, Path)) else [Path(image) for image in images]
        pixels, errors = [], []
        for path in paths:
            try:
                pixels.append(read_image(path, config.data.stored_size))
                errors.append("")
            except UnreadableImage as problem:
                errors.append(problem.reason)
        table = pd.DataFrame({"path": [str(path) for path in paths], "error": errors}, columns=list(COLUMNS))
        if pixels:
            good = [row for row, error in enumerate(errors) if not error]
            for name, values in self._judge(np.stack(pixels)).items():
                table[name] = pd.Series(values, index=good).reindex(table.index)
        return table

    def save(self, path: str | Path) -> Recognizer:
        """Keep the run at `path`, for `Recognizer.load` and the command line."""
        folder, path = self._folder(), Path(path)
        if path.resolve() == folder.path.resolve():
            return self
        if path.exists() and any(path.iterdir()):
            raise UserError(f"{path} is not empty.", try_this="another folder")
        part = path.with_name(f".{path.name}.part")
        try:
            shutil.copytree(folder.path, part, ignore=shutil.ignore_patterns("checkpoints"))
            if path.exists():
                path.rmdir()
            part.rename(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return self

    @classmethod
    def load(cls, path: str | Path, *, score: str | None = None, unknown_rate: float | None = 0.05) -> Recognizer:
        """A trained recogniser from a run folder."""
        config = RunFolder(path).config()
        recognizer = cls(
            config.method, config.backbone, recipe=config.recipe, score=score,
            unknown_rate=unknown_rate, seed=config.seed, run=path,
        )
        recognizer._open(Path(path))
        return recognizer

    def _open(self, path: Path) -> None:
        """Take over a finished run: network, classes and the threshold that the validation images give."""
        folder = RunFolder(path)
        self.network_: Network = load_network(folder).to(best_device())
        self.folder_ = folder
        self.classes_ = [entry["name"] for entry in folder.classes()]
        self.score_ = self.score or "softmax"
        validation = folder.outputs / "val.safetensors"
        rate = self.unknown_rate if validation.is_file() else None
        known = cached_outputs(folder).get("val") if rate is not None else None
        self.threshold_ = settle_threshold(SCORES[self.score_], known, None, rate)

    def _folder(self) -> RunFolder:
        if not hasattr(self, "folder_"):
            raise UserError("This recogniser is not trained yet.", try_this="fit(source), or Recognizer.load(run)")
        return self.folder_

    def _judge(self, pixels: np.ndarray) -> dict[str, Any]:
        """Columns of predictions for decoded images n×S×S×3."""
        config, device = self.folder_.config(), best_device()
        count = len(pixels)
        images = Images(pixels.shape[1], np.full(count, -1), np.arange(count), torch.from_numpy(pixels))
        outputs = collect_outputs(
            self.network_, images, Augment(config.data), device, precision=config.precision
        )
        score = SCORES[self.score_]
        best, labels = outputs.probabilities().topk(min(2, len(self.classes_)), dim=1)
        names = np.array(self.classes_, dtype=object)
        reachability = outputs.reachability
        return {
            "label": names[labels[:, 0]],
            "probability": best[:, 0].numpy(),
            "unknown": score.is_unknown(score.value(outputs), self.threshold_).numpy(),
            "unknown_score": score.unknown_score(outputs).numpy(),
            "reachability": np.full(count, np.nan) if reachability is None else reachability.numpy(),
            "second_label": names[labels[:, -1]],
            "second_probability": best[:, -1].numpy(),
        }


def _yaml(value: Any) -> str:
    """A Python value as the YAML that --set reads."""
    import yaml

    return yaml.safe_dump(value, default_flow_style=True).replace("...", "").strip()
