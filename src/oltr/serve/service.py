"""All parts of a service of one run."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from oltr.runs.trained_run import TrainedRun
from oltr.serve.actions import Actions
from oltr.serve.examples import Examples
from oltr.serve.intake import Intake
from oltr.serve.limits import Limits
from oltr.serve.state import State


@dataclass(eq=False)
class Service:
    """What the API is made of; it may be used without it, too."""

    state: State
    intake: Intake
    actions: Actions
    _examples: Examples | None = None
    _making: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, run: TrainedRun | str | Path, limits: Limits | None = None) -> Self:
        """The service of a run, its network loaded and ready."""
        state = State(run if isinstance(run, TrainedRun) else TrainedRun(run), limits or Limits())
        return cls(state, Intake(state), Actions(state))

    @property
    def examples(self) -> Examples:
        """Pictures of the classes known now."""
        run = self.state.snapshot.run
        with self._making:
            if self._examples is None or self._examples.run is not run:
                self._examples = Examples(run)
            return self._examples

    def close(self) -> None:
        """Stop its threads; what was acknowledged is on disk."""
        self.intake.close()
        self.state.close()
