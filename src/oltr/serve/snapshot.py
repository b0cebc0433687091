"""The state of a service at one moment; it is never changed, so that every thread may read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from oltr.runs.trained_run import TrainedRun
from oltr.serve.conflict import Missing
from oltr.serve.marks import Mark, Status
from oltr.serve.uploads import Upload


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run with its classes of now, and its answers for the images that wait."""

    run: TrainedRun
    last_action: int
    images: Mapping[str, Upload] = field(default_factory=dict)  # by id, oldest first
    answers: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    marks: Mapping[str, Mark] = field(default_factory=dict)  # of images that may be deleted since, too

    def status(self, number: str) -> Status:
        mark = self.marks.get(number)
        if mark is not None:
            return mark.status
        return "unknown" if self.answers[number].get("unknown", True) else "known"  # no answer: not known

    @cached_property
    def statuses(self) -> dict[str, Status]:
        """Of every image."""
        return {number: self.status(number) for number in self.images}

    @cached_property
    def counts(self) -> Counter[str]:
        """Images of each status."""
        return Counter(self.statuses.values())

    @cached_property
    def bytes(self) -> int:
        """Of all images together."""
        return sum(image.bytes for image in self.images.values())

    def upload(self, number: str) -> Upload:
        if number not in self.images:
            raise Missing(f"There is no image {number}.", "It was deleted, or never sent.")
        return self.images[number]

    def record(self, number: str) -> dict[str, Any]:
        """An image as the API tells it."""
        image, mark = self.upload(number), self.marks.get(number)
        return {
            "id": number,
            "name": image.name,
            "time": image.time,
            "bytes": image.bytes,
            "status": self.status(number),
            "named": mark.name if mark else None,
            "action": mark.action if mark else None,
            **self.answers[number],
        }

    def unknown(self) -> Iterator[str]:
        """Images that wait for a name."""
        return (number for number, status in self.statuses.items() if status == "unknown")
