"""A run folder opened once: configuration, classes, network, outputs, rejection rule, report, prediction."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from oltr.console import console
from oltr.data.broken import drop_broken
from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.data.validate import learned_since
from oltr.errors import UserError
from oltr.metrics.accuracy import mean, per_class_accuracy
from oltr.metrics.group_numbers import GroupAccuracy
from oltr.openset import SCORES, RejectionRule, Score
from oltr.recipes import load_recipe
from oltr.runs.by_group import measure_groups
from oltr.runs.class_changes import with_collected
from oltr.runs.current_splits import current_classes, current_manifest
from oltr.runs.decisions import Decisions, decide
from oltr.runs.evaluate import evaluate
from oltr.runs.exemplars import Exemplars, exemplars
from oltr.runs.outputs import OPEN, Outputs, Scored, scored_by
from oltr.runs.own_data import as_many_images, as_own, check_classes, check_tests, own_manifest
from oltr.runs.predict import predict
from oltr.runs.report import Report
from oltr.runs.rule import as_values, other_rule, saved_rule, settled_again, wished_rule
from oltr.runs.run_model import RunModel
from oltr.runs.split_outputs import OtherOutputs, OwnOutputs, outputs_on
from oltr.runs.stale_report import unmeasured
from oltr.runs.temperature import saved_temperature

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


class TrainedRun(RunModel):
    """A finished run; each part is made when first asked for, and kept.

    `source` (with `root`) is where the images it was trained on are now, if they have moved.
    """

    grouped_by: tuple[str, ...] = ()  # columns of its data that `by_group` tells of

    def __init__(
        self, path: str | Path, source: Any = None, root: str | Path | None = None, name: str | None = None
    ):
        super().__init__(path, name)
        self.workers = min(8, os.cpu_count() or 1)
        self.other_data: Manifest | None = None
        self.other_is_own = False
        self.given_rule: RejectionRule | None = None  # in the place of the run's own
        self._fitted: dict[str, Score] = {}
        self._outputs: dict[str, Mapping[str, Outputs]] = {}
        self._scored: dict[tuple[Score, str], Scored] = {}
        if source is not None:
            own = as_own(self, read_source(source, root))
            if own is None:
                raise UserError(
                    "The source holds other images than the run was trained on.",
                    try_this="the source of its training, where it is now",
                )
            self.own_data = own

    # Its data

    @cached_property
    def own_data(self) -> Manifest:
        """The data that the run was trained on, from where they were then or are now."""
        return own_manifest(self)

    @cached_property
    def manifest(self) -> Manifest:
        """The same under the splits and class names of now."""
        return current_manifest(self, self.own_data, self.current_classes) if self.changes else self.own_data

    @cached_property
    def current_classes(self) -> dict[str, np.ndarray]:
        """By split the class that each of its own images shows now."""
        return current_classes(self, self.own_data, own=True)

    @cached_property
    def exemplars(self) -> Exemplars:
        """A few known images of each trained class, as features."""
        return exemplars(self)

    def centre(self) -> torch.Tensor:
        return self.exemplars.centre

    def reread_classes(self) -> None:
        super().reread_classes()
        for part in ("manifest", "current_classes", "rule", "decisions", "accuracy", "by_group"):
            self.__dict__.pop(part, None)
        self._fitted, self._outputs, self._scored = {}, {}, {}

    def on(self, source: Any, root: str | Path | None = None, skip_broken: bool = False) -> TrainedRun:
        """The same run measured on another source, whose images are read anew.

        Of a folder without splits all images are for testing, unless it is the run's own. With `skip_broken`
        images that cannot be read are left out.
        """
        if self.changes:
            _ = self.rule  # chosen on the run's own images, not on these
        other = copy(self)
        with learned_since(each.name for each in self.changes.added):
            manifest = read_source(source, root)
            own = as_own(self, manifest)
            if own is not None:
                manifest = other.own_data = own
            elif manifest.split_made:
                manifest = read_source(source, root, flat="test")
            if skip_broken:
                with console.progress("trying images") as progress:
                    manifest = drop_broken(manifest, progress)
        other.other_is_own = own is not None and not (skip_broken and manifest.skipped)
        for part in ("as_trained", *(("manifest", "current_classes") if own is not None else ())):
            other.__dict__.pop(part, None)
        console.notes(manifest.notes)
        check_classes(self, manifest)
        if self.changes:
            classes = current_classes(other, manifest, own is not None)
            manifest = current_manifest(other, manifest, classes)
        check_tests(manifest)
        other.other_data, other._outputs, other._scored = manifest, {}, {}
        for part in ("decisions", "accuracy", "by_group"):
            other.__dict__.pop(part, None)
        return other

    # Its outputs and scores

    @property
    def outputs(self) -> Mapping[str, Outputs]:
        """Outputs by split (val, test, open) on the data that the run is measured on."""
        return self._read_by(None)

    @property
    def unseen(self) -> Outputs | None:
        """Its outputs on open images; None if there are none."""
        return (self.outputs["open"] or None) if "open" in self.outputs else None

    def own_outputs(self, score: Score | None = None) -> OwnOutputs:
        """The same on the run's own data, train included; or on a score's view of the images."""
        key = f"own {score.view if score is not None else ''}"
        if key not in self._outputs:
            self._outputs[key] = OwnOutputs(self, score)
        found = self._outputs[key]
        assert isinstance(found, OwnOutputs)
        return found

    def fitted(self, score: str | Score) -> Score:
        """A score ready for use, fitted on the run's training and validation images if it needs them."""
        if isinstance(score, Score):
            return score
        if score not in self._fitted:
            made = SCORES[score]()
            if made.needs_fit:
                made.fit(*with_collected(self, self._training_outputs()))
            if made.uses_validation and "val" in self.own_outputs():
                val = self.own_outputs()["val"]
                known = val.labels != OPEN
                made.calibrate(val.features[known], val.logits[known])
            self._fitted[score] = made
        return self._fitted[score]

    def scored(self, split: str, score: str | Score | None = None) -> Scored:
        """The score of every image of a split; that of the run's rejection rule unless one is named."""
        chosen = self.fitted(score or self.rule.score)
        key = chosen, split
        if key not in self._scored:
            self._scored[key] = scored_by(chosen, self._read_by(chosen)[split])
        return self._scored[key]

    def _read_by(self, score: Score | None) -> Mapping[str, Outputs]:
        """Outputs of the view that a score reads."""
        if self.other_data is None or (self.other_is_own and score is not None and score.view):
            return self.own_outputs(score)
        key = f"other {score.view if score is not None else ''}"
        if key not in self._outputs:
            self._outputs[key] = OtherOutputs(self, self.other_data, score)
        return self._outputs[key]

    def _training_outputs(self) -> Outputs:
        """Of the images the run learned from; where they are gone, as many of each class stand in."""
        if not (self.folder.outputs / "train.safetensors").is_file():
            console.say(f"reading the training images once, for {self.folder.outputs / 'train.safetensors'}")
        try:
            return self.own_outputs()["train"]
        except UserError:
            if self.other_data is None or not as_many_images(self, self.other_data):
                raise
        console.warn("the run's training images are gone; those of the source are taken instead")
        return outputs_on(self, self.other_data, "train")

    # What it answers

    @cached_property
    def rule(self) -> RejectionRule:
        """By what images are called unknown, wherever this run is asked."""
        return saved_rule(self) if self.given_rule is None else settled_again(self, self.given_rule)

    @cached_property
    def temperature(self) -> float | None:
        """Divides logits before softmax for calibrated probabilities; None without validation images."""
        return saved_temperature(self)

    def other_rule(
        self, score: str | None = None, threshold: float | None = None, unknown_rate: float | None = None
    ) -> RejectionRule:
        """The run's rule with what was given in its place; the run itself keeps its own."""
        return other_rule(self, score, threshold, unknown_rate)

    def keep_rule(self, rule: RejectionRule | None = None) -> None:
        """Make a rule the run's own, in run.yaml and report.json; without one, that of its configuration."""
        rule = rule if rule is not None else wished_rule(self)
        if "test" in self.outputs:  # first: a score that cannot be computed leaves the run as it was
            self.under(rule).measure().save(self.folder.report)
        self.rule = rule
        decision = as_values(rule) | ({"classes": self.changes.version} if self.changes else {})
        self.facts = self.facts | {"decision": decision, "temperature": self.temperature}
        for part in ("decisions", "by_group", "report"):
            self.__dict__.pop(part, None)
        self.folder.write(self.facts)

    def under(self, rule: RejectionRule) -> TrainedRun:
        """The same run under another rejection rule; its folder keeps its own."""
        other = copy(self)
        for part in ("decisions", "by_group", "as_trained"):
            other.__dict__.pop(part, None)
        other.rule = other.given_rule = rule
        return other

    def measure(self, shots: str | None = None, expect: Mapping[str, Any] | None = None) -> Report:
        """The report on the data it is measured on, under its rejection rule.

        `expect` is the published row beside it, its recipe's unless given.
        """
        if "test" not in self.outputs:
            _ = self.outputs["test"]  # says why there are none
        has_open = "open" in self.outputs and len(self.outputs["open"])
        scored = {split: self.scored(split) for split in ("test", "open")} if has_open else None
        return evaluate(
            self.outputs,
            self.class_names,
            self.counts,
            self.rule,
            scored,
            method=self.config.method,
            backbone=self.config.backbone,
            shots=shots or self.shots,
            temperature=self.temperature,
            train_seconds=self.facts["train_seconds"],
            expect=expect or self._published(),
            note=unmeasured(self),
            adjustment=self.facts.get("adjustment"),
        )

    @cached_property
    def report(self) -> Report:
        """What its report.json holds."""
        return Report.load(self.folder.report)

    @cached_property
    def accuracy(self) -> float | None:
        """Closed-set accuracy, mean over classes; None if no class has test images."""
        if "test" not in self.outputs:
            return None
        test = self.outputs["test"]
        return mean(per_class_accuracy(test.logits.argmax(dim=1), test.labels, test.logits.shape[1]))

    @cached_property
    def decisions(self) -> Decisions:
        """What it makes of each test and open image under its rule."""
        return decide(self)

    @cached_property
    def by_group(self) -> dict[str, GroupAccuracy]:
        """By each column of `grouped_by`, how well it does on each group of these images."""
        return {column: measure_groups(self, column) for column in self.grouped_by}

    def predict(self, images: Any, **asked: Any) -> pd.DataFrame:
        """One row per image file, the columns of predictions.csv; a folder stands for all images below."""
        return predict(self, images, **asked)

    def _published(self) -> dict[str, Any] | None:
        try:
            return load_recipe(self.config.recipe).expect.get(self.config.method)
        except UserError:  # a recipe file of the user's own that is no longer there
            return None
