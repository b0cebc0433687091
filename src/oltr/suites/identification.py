"""Rows measured by identification: asked before training, answered once for each run and kept there."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oltr.console import console
from oltr.data.broken import check_readable
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.identify.feature_files import is_feature_source
from oltr.identify.files import NUMBERS, write_result
from oltr.identify.identify import answer
from oltr.identify.images import manifest_samples
from oltr.identify.left_out import warn_of_trained
from oltr.identify.question import Question, ask
from oltr.identify.result import SHOWN
from oltr.identify.samples import Samples
from oltr.runs.own_data import check_pack
from oltr.runs.train_run import as_packed
from oltr.runs.trained_run import TrainedRun
from oltr.suites.plan import IdentifySources, Plan
from oltr.suites.run import Part
from oltr.suites.suite_file import Suite, SuiteRow
from oltr.wording import count


@dataclass(frozen=True)
class IdentifiedRow:
    """The numbers of a row: `identify` with rates, groups as "COLUMN.GROUP", and what they are of."""

    data: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Identification:
    """Measures rows of finished runs; each run answers once, and its folder keeps the answer."""

    question: Question
    asked: dict[str, Any]  # what an answer must have been given to, to be taken again
    folder: str  # in that of the run

    def __call__(self, row: SuiteRow, run: TrainedRun, published: Mapping[str, Any]) -> IdentifiedRow:
        found = self._answer(run)
        name = row.embedding or found["embedding"]
        if name not in found["embeddings"]:
            raise UserError("The run has no meta-embedding.", "Its method has no memory.")
        numbers = {"embedding": name, **rates(found["embeddings"][name]), "counts": found["counts"]}
        return IdentifiedRow({"identify": numbers, "train_seconds": run.facts["train_seconds"]})

    def _answer(self, run: TrainedRun) -> dict[str, Any]:
        out, weights = run.path / self.folder, run.folder.weights_sha256()
        of = {**self.asked, "weights_sha256": weights}
        try:
            kept = json.loads((out / NUMBERS).read_text(encoding="utf-8"))
            if kept["of"] == of:
                return kept
        except (OSError, ValueError, KeyError, TypeError):
            pass
        result = answer(self.question, run)
        write_result(out, result, {"of": of})
        return {**result.to_dict(), "of": of}

    @property
    def notes(self) -> list[str]:
        """What to know when reading the table."""
        probes, mates, shots = self.question.probes, self.question.mates, self.question.shots
        distractors = sum(int((numbers < 0).sum()) for numbers in self.question.people[1:])
        notes = [
            f"{count(len(probes), 'probe')}, {count(len(self.question.gallery[0]), 'image')} in the gallery, "
            f"{count(distractors, 'distractor')}; mates: {mates}."
        ]
        if shots is not None:
            whose = "each run's own direct feature, so that they differ from row to row"
            if shots[0] is not probes:
                whose = f"the features in {Path(shots[0].name).name}"
            similar = self.question.shot_similarity
            notes.append(f"Pseudo-shots: training images more similar than {similar:g}, by {whose}.")
        return notes


def rates(found: Mapping[str, Any]) -> dict[str, Any]:
    """The rates of one embedding side by side, and which of them are groups to show."""
    numbers = {**(found["by_shot"] or {}), **{key: rate for key, rate in found.items() if key[:4] == "rank"}}
    numbers |= {f"dir_{rate}": share for rate, share in found["detection_identification"].items()}
    shown: list[str] = []
    for column, groups in found["by_group"].items():
        each = {f"{column}.{name}": rate for name, rate in groups.items()}
        numbers |= {**each, f"{column} gap": found["gaps"][column]["gap"]}
        shown += each if len(each) <= SHOWN else [f"{column} gap"]
    return {**numbers, "groups": shown}


def ask_suite(plan: Plan, part: Part, source: str, manifest: Manifest) -> Identification:
    """The question of a suite; what could not be answered is refused before anything is trained."""
    given, settings, suite = plan.options.faces, plan.suite.identify, plan.suite
    assert settings is not None
    if given.probes is None or given.gallery is None:
        raise UserError(f"The suite {suite.name} needs --probes and --gallery.", suite.source or "")
    _check_images(given, suite)
    train: str | Samples | None = given.train
    if train is None and given.shots_from is None:
        train = manifest_samples(source, manifest, training=True)
    question = ask(
        given.probes,
        given.gallery,
        by_run=True,
        distractors=given.distractors,
        train=train,
        shots_from=given.shots_from,
        groups=given.groups,
        **dataclasses.asdict(settings),
    )
    if train is None:
        warn_of_trained(question.probes, set(manifest.classes))
    if not all(map(part.finished, part.runs)):
        _try_images(question, part, manifest)
    return Identification(question, _asked(question, given, suite), f"identify-{suite.name}")


def _check_images(given: IdentifySources, suite: Suite) -> None:
    """Refuse features in the place of images: every run has its own."""
    for name in ("probes", "gallery", "distractors", "train"):
        value = getattr(given, name)
        if value is not None and is_feature_source(value):
            raise UserError(
                f"--{name} {value} holds features.",
                f"The suite {suite.name} measures what its runs make of images.",
                "oltr identify, for features" if name != "train" else "--shots-from PROBES TRAIN",
            )


def _try_images(question: Question, part: Part, manifest: Manifest) -> None:
    """Refuse images that cannot be read now, where the runs would come to them hours later.

    Those of the suite's own source are tried by training.
    """
    shots = () if question.shots is None else question.shots
    for samples in {id(each): each for each in (question.probes, *question.gallery, *shots)}.values():
        if samples.images is None or samples.images[0] is manifest:  # features from a file
            continue
        assert samples.paths is not None
        there = samples.images[0]
        if there.pack is not None:
            check_pack(open_pack(there.pack), as_packed(part.runs[0].config, manifest).data)
            continue
        with console.progress(f"trying images of {samples.name}") as progress:
            check_readable(there, samples.paths.tolist(), progress)


def _asked(question: Question, given: IdentifySources, suite: Suite) -> dict[str, Any]:
    """Everything that an answer depends on, the weights apart; the same wherever the images are."""
    assert suite.identify is not None

    def prints(samples: Samples) -> str:
        assert samples.images is not None
        return samples.images[0].fingerprint()

    def digest(path: str | Path) -> str:
        with Path(path).expanduser().open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    parts: dict[str, Any] = {"probes": prints(question.probes), "gallery": prints(question.gallery[0])}
    parts["distractors"] = prints(question.gallery[1]) if len(question.gallery) > 1 else None
    parts["groups"] = None if given.groups is None else digest(given.groups)
    parts["train"] = parts["shots_from"] = None
    if given.shots_from is not None:
        parts["shots_from"] = [digest(each) for each in given.shots_from]
    elif question.shots is not None:
        parts["train"] = prints(question.shots[1])
    settings = dataclasses.asdict(suite.identify)
    return json.loads(json.dumps({**settings, **parts}))  # as it will be read again
