"""Images that come in: decoded, answered, and kept if that was asked for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oltr.data.images import UnreadableImage, decode_image, read_bytes, small_copy
from oltr.runs.history import holding
from oltr.runs.learned_images import content_digest
from oltr.runs.predict import NOT_FINITE, asked_of
from oltr.runs.read_ahead import CORES
from oltr.serve.answers import Row
from oltr.serve.conflict import Conflict, Missing, TooLarge
from oltr.serve.marks import Status
from oltr.serve.state import State
from oltr.serve.uploads import Upload, now

THUMBNAIL = 256  # longer side


@dataclass(frozen=True, eq=False)
class Sent:
    """An image of a request: what its sender called it, and its bytes, or why they were not read."""

    name: str
    content: bytes
    problem: str = ""


class Intake:
    """What a service does with images."""

    def __init__(self, state: State):
        self.state, self.limits = state, state.limits
        self.decoders = ThreadPoolExecutor(CORES, thread_name_prefix="decode")

    def close(self) -> None:
        """Stop its threads."""
        self.decoders.shutdown()

    def predict(self, sent: Sequence[Sent], only: Sequence[str] | None = None) -> tuple[str, list[Row]]:
        """The model's version and a row of predictions.csv for each image, of which nothing is kept."""
        run, answers = self.state.snapshot.run, self.state.answers
        asked = asked_of(run, None if only is None else _names(only, run.class_names))
        pixels, problems = self._pixels(sent)
        found = iter(answers(run, answers.outputs(pixels), asked) if len(pixels) else ())
        return run.model_version, [
            {"path": each.name, **({"error": problem} if problem else next(found))}
            for each, problem in zip(sent, problems, strict=True)
        ]

    def keep(self, sent: Sequence[Sent]) -> tuple[list[str | Row], int]:
        """Keep images until they are deleted: the id of each, or its name and error; how many were there."""
        ids = [content_digest(each.content) if each.content else f"empty {i}" for i, each in enumerate(sent)]
        there = self.state.snapshot.images
        new = {number: each for number, each in zip(ids, sent, strict=True) if number not in there}
        pixels, problems = self._pixels(list(new.values()))
        outputs = iter(self.state.answers.outputs(pixels) if len(pixels) else ())
        failed: dict[str, str] = {}
        good: list[Upload] = []
        for (number, each), problem in zip(new.items(), problems, strict=True):
            if not problem and not np.isfinite(row := next(outputs)).all():
                problem = NOT_FINITE
            if problem:
                failed[number] = problem
                continue
            kept = f"uploads/{number}{_suffix(each.content)}"
            good.append(Upload(number, now(), each.name, kept, len(each.content), self.state.weights, row))
        stored = self._store(good, [new[upload.id].content for upload in good])
        found: list[str | Row] = [
            {"name": each.name, "error": failed[number]} if number in failed else number
            for number, each in zip(ids, sent, strict=True)
        ]
        return found, len(ids) - stored - sum(not isinstance(each, str) for each in found)

    def delete(self, numbers: Sequence[str]) -> int:
        """Forget images; classes that were learned from them stay."""
        with self.state.lock:
            gone = [self.state.snapshot.upload(number) for number in dict.fromkeys(numbers)]
            self.state.uploads.delete(gone)
            self._delete_copies([upload.id for upload in gone])
            left = dict(self.state.snapshot.images)
            for upload in gone:
                del left[upload.id]
            self.state.renew(left)
        return len(gone)

    def _delete_copies(self, numbers: Sequence[str]) -> None:
        """Those that were made for an action which was undone: nothing needs them any more."""
        run = self.state.run
        actions = [each for each in holding(run.history.actions(features=False)) if each.kind == "add"]
        needed = {Path(image.kept).stem for action in actions for image in action.images}
        for number in set(numbers) - needed:
            for copy in run.folder.collected.glob(f"{number}.*"):
                copy.unlink(missing_ok=True)

    def delete_all(self, status: Status, at_most: int | None = None) -> int:
        """Forget all images of a status; none where more have it than somebody was asked about."""
        with self.state.lock:
            gone = [number for number, each in self.state.snapshot.statuses.items() if each == status]
            if at_most is not None and len(gone) > at_most:
                raise Conflict(
                    f"Nothing was deleted: {len(gone):,} images are {status} now, not {at_most:,}.",
                    "Others came meanwhile.",
                    "again, if these are to go, too",
                )
            return self.delete(gone)

    def thumbnail(self, number: str) -> bytes:
        """A small JPEG of a kept image."""
        try:
            return self.state.uploads.thumbnail(self.state.snapshot.upload(number).id).read_bytes()
        except OSError:
            return self.picture(number, THUMBNAIL)

    def picture(self, number: str, side: int) -> bytes:
        """A JPEG of a kept image; what was sent is never sent on as it is."""
        path = self.path(number)
        try:
            content = read_bytes(path)
        except OSError:
            raise Missing(f"The file of image {number} is gone.") from None
        return small_copy(content, side, path, self.limits.image_pixels)

    def path(self, number: str) -> Path:
        """The file of a kept image."""
        return self.state.run.path / self.state.snapshot.upload(number).kept

    def _store(self, uploads: list[Upload], contents: list[bytes]) -> int:
        """On disk first, then in the snapshot; how many were not there meanwhile, from somebody else."""
        if not uploads:
            return 0
        pairs = list(zip(uploads, contents, strict=True))
        list(self.decoders.map(lambda pair: self._make_thumbnail(*pair), pairs))
        with self.state.lock:
            self.state.catch_up()
            there = self.state.snapshot.images
            new = {upload: content for upload, content in pairs if upload.id not in there}
            room = self.limits.kept_bytes - self.state.snapshot.bytes
            if sum(upload.bytes for upload in new) > room:
                raise TooLarge(
                    "There is no room for these images.",
                    f"All that wait may take {self.limits.kept_bytes:,} bytes; {max(room, 0):,} are left.",
                    "delete some, or serve with a larger --keep",
                )
            if new:
                self.state.uploads.keep(list(new), list(new.values()))
                self.state.renew(dict(there) | {upload.id: upload for upload in new})
        self.state.grouper.look()
        return len(new)

    def _make_thumbnail(self, upload: Upload, content: bytes) -> None:
        place = self.state.uploads.thumbnail(upload.id)
        if place.is_file():
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{threading.get_ident()}.part")
        part.write_bytes(small_copy(content, THUMBNAIL, upload.name, self.limits.image_pixels))
        part.replace(place)

    def _pixels(self, sent: Sequence[Sent]) -> tuple[np.ndarray, list[str]]:
        """Those that can be decoded, n×S×S×3 uint8, and what is wrong with each image; empty if nothing."""
        found = list(self.decoders.map(self._decoded, sent))
        pixels = [each for each in found if isinstance(each, np.ndarray)]
        return np.stack(pixels) if pixels else np.empty(0), [
            each if isinstance(each, str) else "" for each in found
        ]

    def _decoded(self, sent: Sent) -> np.ndarray | str:
        if sent.problem:
            return sent.problem
        try:
            frame = self.state.run.config.data.frame
            return decode_image(sent.content, frame, sent.name, self.limits.image_pixels)[0]
        except UnreadableImage as problem:
            return problem.reason


def _names(given: Sequence[str], known: Sequence[str]) -> list[str]:
    """Classes one by one or with commas between; a name with a comma is known as a whole."""
    parts = ([each] if each in known else each.split(",") for each in given)
    return [name.strip() for some in parts for name in some]


def _suffix(content: bytes) -> str:
    """The ending of a file with this content, by its first bytes."""
    for start, suffix in _STARTS.items():
        if content.startswith(start):
            return suffix
    return ".img"


_STARTS = {b"\xff\xd8": ".jpg", b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif", b"BM": ".bmp"}
_STARTS |= {b"II*\0": ".tif", b"MM\0*": ".tif"}
