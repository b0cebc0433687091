"""What all threads of a service share: the run, the images that wait, and the answers for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oltr.console import console
from oltr.data.images import UnreadableImage, read_image
from oltr.errors import UserError
from oltr.files import check_writable
from oltr.openset import SCORES
from oltr.runs.class_changes import fold
from oltr.runs.history import ChangedMeanwhile, as_of
from oltr.runs.predictions.rescore import Change
from oltr.runs.trained_run import TrainedRun
from oltr.serve.answers import Answers, Row, changes_between
from oltr.serve.batcher import Batcher
from oltr.serve.conflict import Missing
from oltr.serve.grouping import Grouper
from oltr.serve.limits import Limits
from oltr.serve.marks import marks_of
from oltr.serve.snapshot import Snapshot
from oltr.serve.uploads import Upload, Uploads

SETTLED = 50_000_000  # nanoseconds after which a file that is written again has another time
TRIES = 20  # of an action, where other processes change the run, too


@dataclass(frozen=True, eq=False)
class Done:
    """What came of an action."""

    action: int
    changes: dict[str, Change]  # answers that are others than before, by image
    facts: dict[str, Any]


class State:
    """One run, many people: readers see `snapshot`, which is replaced whole; who changes something has the
    lock."""

    def __init__(self, run: TrainedRun, limits: Limits):
        self.limits = limits
        self.run = run  # for the thread that has the lock
        check_writable(run.folder.history)
        _check_score(run)
        self._make_exemplars()
        trained = self.run.with_changes(fold(self.run.changes.trained, []))
        self.batcher = Batcher(trained, limits.waiting)
        self.answers = Answers(self.batcher)
        self.weights = run.weights_version
        self.uploads = Uploads(self.run.path, self.run.history)
        self.lock, self.revision = threading.RLock(), 0
        self._changes: dict[int, dict[str, Change]] = {}
        self._stamp: tuple[int, ...] | None = None
        self.uploads.clean()
        self.snapshot = Snapshot(self.run, -1)
        self.renew({upload.id: upload for upload in self._of_these_weights()})
        place = self.uploads.folder / "clusters.json"
        self.grouper = Grouper(place, self.answers.features, lambda: self.snapshot, self._grown)
        self.grouper.look()

    def _make_exemplars(self) -> None:
        """Now rather than when somebody names the first class, for images may have to be read for it."""
        try:
            _ = self.run.exemplars
        except UserError as problem:
            console.warn(f"classes cannot be added: {problem}")

    def close(self) -> None:
        """Stop its threads."""
        self.grouper.close()
        self.batcher.close()

    def catch_up(self) -> None:
        """Take up what another process did to the run, if anything."""
        if self._file_stamp() == self._stamp:
            return
        with self.lock:
            if self._file_stamp() == self._stamp:
                return
            stamp = self._file_stamp()  # before reading: what is written meanwhile is read the next time
            settled = time.time_ns() - max(stamp[::2]) > SETTLED
            changed = self._take_up_rule()
            changed = self._read() or changed
            self._stamp = stamp if settled else None
        if changed:
            self.grouper.look()

    def _take_up_rule(self) -> bool:
        """Whether another process gave the run another rejection rule, by which all is answered then."""
        run, before = self.run, self.run.facts
        try:
            facts = run.folder.run()
            if all(facts.get(key) == before.get(key) for key in ("decision", "temperature")):
                return False
            self._answer_by(facts)
        except UserError as problem:
            console.warn(f"The run's new rejection rule is not taken up. {problem}")
            self._answer_by(before)
        return True

    def _answer_by(self, facts: dict[str, Any]) -> None:
        """Answer all images anew, by what run.yaml says."""
        self.run.facts = facts
        for part in ("rule", "temperature", "as_trained"):
            self.run.__dict__.pop(part, None)
        _check_score(self.run)
        self.renew(self.snapshot.images, anew=True)

    def _read(self) -> bool:
        """Whether the file had anything new, which is in the snapshot then."""
        before, ids = self.snapshot, self.uploads.ids()
        # With the snapshot's, not the run's: an action may be on disk that failed afterwards.
        acted = self.run.history.last() != before.last_action
        if not acted and ids == before.images.keys():
            return False
        images = {number: upload for number, upload in before.images.items() if number in ids}
        images |= {upload.id: upload for upload in self.uploads.all(without=images)}
        if acted:
            self.run.reread_classes()
        self.renew(images)
        return True

    def acted(self, act: Callable[[], tuple[int, dict[str, Any]]]) -> Done:
        """Do something that depends on what others did; again where they did something meanwhile."""
        with self.lock:
            number, facts = self._tried(act)
            before = self.snapshot
            self.renew(before.images)
            changes = changes_between(before.answers, self.snapshot.answers)
            self._changes[number] = changes
        self.grouper.look()
        return Done(number, changes, facts)

    def _tried(self, act: Callable[[], tuple[int, dict[str, Any]]]) -> tuple[int, dict[str, Any]]:
        for left in reversed(range(TRIES)):
            self.catch_up()
            try:
                return act()
            except ChangedMeanwhile:
                self._stamp = None
                if not left:
                    raise
        raise AssertionError

    def renew(self, images: Mapping[str, Upload], anew: bool = False) -> None:
        """Replace the snapshot by one of the run as it is now; `anew`: no answer stays."""
        last, before = self.run.changes.last, self.snapshot
        if last == before.last_action and not anew:  # the same classes: answers that are there stay
            run, marks = before.run, before.marks
            answered = {number: before.answers[number] for number in images if number in before.answers}
        else:
            run = self.run.with_changes(self.run.changes)
            _ = run.rule, run.temperature, run.model_version, run.fitted(run.rule.score)  # for all threads
            actions = as_of(self.run.history.actions(features=False), last)
            marks, answered = marks_of(run.changes, actions), {}
            self._changes.clear()
        new = {number: upload for number, upload in images.items() if number not in answered}
        rows = self.answers(run, _stacked(new))
        answered |= dict(zip(new, rows, strict=True))
        self.snapshot = Snapshot(run, last, images, {number: answered[number] for number in images}, marks)
        self._grown()

    def _grown(self) -> None:
        with self.lock:
            self.revision += 1

    def changes(self, number: int) -> dict[str, Change]:
        """What an action changed in the answers for the images that are kept now."""
        if (found := self._changes.get(number)) is not None:  # in one step: they may be cleared meanwhile
            return found
        now, actions = self.snapshot, self.run.history.actions()
        if number not in {action.id for action in actions}:
            raise Missing(f"There is no action {number}.")
        rows = _stacked(now.images)

        def answers_after(last: int) -> dict[str, Row]:
            run = now.run.with_changes(fold(now.run.changes.trained, as_of(actions, last)))
            return dict(zip(now.images, self.answers(run, rows), strict=True))

        return changes_between(answers_after(number - 1), answers_after(number))

    def _of_these_weights(self) -> list[Upload]:
        """All uploads; those whose outputs are of other weights are judged again, or left out if that
        fails."""
        uploads = self.uploads.all()
        found, again = [each for each in uploads if each.model == self.weights], []
        for each in uploads:
            if each.model == self.weights:
                continue
            try:
                pixels = read_image(self.run.path / each.kept, self.run.config.data.frame)
            except UnreadableImage as problem:
                console.warn(f"{problem.what} Image {each.id} ({each.name}) is left out, and kept on disk.")
                self.uploads.left_out.add(each.id)
                continue
            again.append(replace(each, model=self.weights, outputs=self.answers.outputs(pixels[None])[0]))
        self.uploads.replace(again)
        return sorted([*found, *again], key=lambda each: each.time)

    def _file_stamp(self) -> tuple[int, ...]:
        """Changes when somebody writes the history, or another rejection rule: the time and size of each."""
        stamp: tuple[int, ...] = ()
        for file in (self.run.folder.history, self.run.path / "run.yaml"):
            try:
                found = file.stat()
            except FileNotFoundError:
                stamp += 0, 0
            else:
                stamp += found.st_mtime_ns, found.st_size
        return stamp


def _check_score(run: TrainedRun) -> None:
    if SCORES[run.rule.score]().view:
        raise UserError(
            f"The run's score, {run.rule.score}, needs a gradient for every image.",
            "Images that wait could not be judged again at once when a class is named.",
            f"oltr evaluate {run.path} --score max-logit --keep, then serve",
        )


def _stacked(images: Mapping[str, Upload]) -> np.ndarray:
    return np.stack([upload.outputs for upload in images.values()]) if images else np.empty((0, 0))
