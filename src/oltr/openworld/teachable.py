"""What a recogniser can be taught after training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from tempfile import TemporaryDirectory
from typing import Self

from oltr.console import console
from oltr.openworld.add_class import add_class
from oltr.openworld.change_classes import remove_class, rename_class, undo
from oltr.runs.given_images import Given
from oltr.runs.trained_run import TrainedRun
from oltr.wording import first_few


class Teachable(ABC):
    """Classes added, removed and renamed in the run of a recogniser; each change is in the run's history."""

    verbose: bool
    run_: TrainedRun
    _temporary: TemporaryDirectory[str] | None = None  # holds its run, and goes with it

    @abstractmethod
    def _trained(self) -> TrainedRun:
        """Its run; a UserError before training."""

    def add_class(self, name: str, images: Iterable[Given] | Given, *, more: bool = False) -> Self:
        """Know a new class at once from a few images, without training; images as in `predict`.

        With `more` they are further images of a class that is known already. The change is on disk, in the
        run's history, when this returns; `undo` takes it back.
        """
        with console.silent(not self.verbose):
            add_class(self._trained(), name, images, more=more)
        return self

    def remove_class(self, name: str) -> Self:
        """Forget a class."""
        remove_class(self._trained(), name)
        return self

    def rename_class(self, name: str, to: str) -> Self:
        """Give a class another name."""
        rename_class(self._trained(), name, to)
        return self

    def undo(self) -> Self:
        """Take back the last change of classes."""
        undo(self._trained())
        return self

    def _warn_of_forgetting(self, classes: Sequence[str]) -> None:
        """Before it is trained anew: classes that were added are in its run's history, not in other data."""
        added = [each.name for each in self.run_.changes.added] if hasattr(self, "run_") else []
        if lost := [name for name in added if name not in classes]:
            kept = self.run_.path if self._temporary is None else "RUN, after save(RUN),"
            console.warn(
                f"trained anew on these data, it forgets what was added: {first_few(lost)}; "
                f"oltr train --from {kept} trains on the images collected too"
            )
