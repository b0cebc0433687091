"""What a recogniser can be taught after training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

from oltr.console import console
from oltr.openworld.add_class import add_class
from oltr.openworld.change_classes import remove_class, rename_class, undo
from oltr.runs.given_images import Given
from oltr.runs.trained_run import TrainedRun


class Teachable(ABC):
    """Classes added, removed and renamed in the run of a recogniser; each change is in the run's history."""

    verbose: bool

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
