"""What a long job says while it works: notes, progress bars and one line per epoch."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console as Screen
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from oltr.wording import Caution

EPOCH_LINE = (
    "{stage:>5} {epoch:>9} {loss:>8} {many:>7} {medium:>7} {few:>7} {overall:>8} {open_f:>7} "
    "{rate:>9} {left:>9}"
)

Progress = Callable[[int, int], None]  # done, total

BETWEEN_UPDATES = 0.1  # seconds: a bar is for people, and drawing it takes time from short steps


def process_rank() -> int:
    """0 on the one process that speaks and writes, also before the processes have met."""
    if "RANK" in os.environ:  # torchrun
        return int(os.environ["RANK"])
    # A helper that Lightning started may inherit a SLURM_PROCID of 0, and its starter has no LOCAL_RANK yet.
    ranks = (os.environ.get(name, "0") for name in ("LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"))
    return next((int(rank) for rank in ranks if int(rank)), 0)


class Console:
    """Writes to the error stream, so that standard output holds results alone; one process speaks for all."""

    def __init__(self, quiet: bool = False):
        if process_rank() > 0:
            warnings.simplefilter("ignore")  # the first process has the same to say
        self.screen = Screen(stderr=True, quiet=quiet or process_rank() > 0, highlight=False)
        self.bar_shown = False

    def say(self, text: str) -> None:
        """A line of information."""
        self.screen.print(text, markup=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """A line that should be seen."""
        self.screen.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)

    def notes(self, notes: Iterable[str]) -> None:
        """What a source has to say of itself."""
        for note in notes:
            (self.warn if isinstance(note, Caution) else self.say)(note)

    @contextmanager
    def silent(self, silent: bool = True) -> Iterator[None]:
        """Say nothing while the block runs."""
        before, self.screen.quiet = self.screen.quiet, self.screen.quiet or silent
        try:
            yield
        finally:
            self.screen.quiet = before

    @contextmanager
    def progress(self, what: str, unit: str = "images") -> Iterator[Progress]:
        """A bar driven by calls of update(done, total), removed at the end; none within another."""
        rate = TextColumn("{task.fields[rate]}")
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            rate,
            TimeRemainingColumn(),
        )
        off = self.bar_shown or not self.screen.is_terminal
        before, self.bar_shown = self.bar_shown, True
        try:
            with Bar(*columns, console=self.screen, transient=True, disable=off) as bar:
                task, began = bar.add_task(what, total=None, rate=""), time.monotonic()
                shown = 0.0

                def update(done: int, total: int) -> None:
                    nonlocal shown
                    if off or (time.monotonic() - shown < BETWEEN_UPDATES and done < total):
                        return
                    shown = time.monotonic()
                    speed = done / max(time.monotonic() - began, 1e-6)
                    bar.update(task, completed=done, total=total, rate=f"{speed:,.0f} {unit}/s")

                yield update
        finally:
            self.bar_shown = before

    def epoch_header(self) -> None:
        """The head of the table that `epoch` fills."""
        self.say(
            EPOCH_LINE.format(
                stage="stage",
                epoch="epoch",
                loss="loss",
                many="many",
                medium="medium",
                few="few",
                overall="overall",
                open_f="open F",
                rate="images/s",
                left="time left",
            )
        )

    def epoch(self, row: Mapping[str, float | int | None], epochs: int, left: float) -> None:
        """One line of validation accuracies (percent) and open F after an epoch."""
        share = {n: _percent(row[n]) for n in ("many", "medium", "few", "overall")}
        f = row["open_f"]
        self.say(
            EPOCH_LINE.format(
                stage=row["stage"],
                epoch=f"{row['epoch']}/{epochs}",
                loss=f"{row['loss']:.3f}",
                **share,
                open_f="–" if _missing(f) else f"{f:.3f}",
                rate=f"{row['images_per_second']:,.0f}",
                left=_clock(left),
            )
        )


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _percent(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


console = Console()  # the process's own: long work anywhere speaks through it
