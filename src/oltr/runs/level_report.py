"""The report of answers by level, where classes have parents."""

from __future__ import annotations

from dataclasses import dataclass

from oltr.runs.tables import MISSING, Table


@dataclass(frozen=True)
class Given:
    """The answers that images of one split get at a level."""

    images: int
    share: float  # of the images of the split
    right: float | None  # share of them that are right; None without any, or where the truth is not known


@dataclass(frozen=True)
class Level:
    """One level: the class, a parent, or unknown."""

    level: str
    groups: int | None  # classes or parents; None for unknown
    threshold: float | None  # of the summed probability; None where the level answers nothing
    accuracy: float | None  # of test images whose likeliest group of this level is theirs, answered or not
    test: Given
    open: Given | None  # None without open images


@dataclass(frozen=True)
class ByLevel:
    """Answers by level, from the class up, `unknown` last; an open image is right at its own parent."""

    precision: float  # that the thresholds keep on validation images
    levels: list[Level]
    right: float | None  # of all answers to test images but unknown
    open_labelled: int = 0  # open images whose label the table names: the others' truth is not known
    open_within: int = 0  # those of them that have a parent which the run knows

    def table(self) -> Table:
        """One row per level."""
        has_open = self.levels[0].open is not None
        groups = [("", ["answer", "groups", "threshold", "accuracy"]), ("test images", ["%", "right"])]
        rows = [
            [each.level, str(each.groups or MISSING), _threshold(each), _percent(each.accuracy)]
            + [cell for given in (each.test, each.open) if given is not None for cell in _cells(given)]
            for each in self.levels
        ]
        notes = [
            f"Percent of images. Thresholds keep {100 * self.precision:g} % of the answers of each level "
            f"right on validation images; of all answers to test images {_percent(self.right)} % are right."
        ]
        if has_open:
            groups.append(("open images", ["%", "right"]))
            notes.append(
                f"Of {self.open_labelled:,} open images with a label of the table {self.open_within:,} have "
                "a parent that the run knows; an answer by that parent is right."
            )
        return Table("Classes and their parents", groups, rows, notes)


def _cells(given: Given) -> list[str]:
    return [_percent(given.share), _percent(given.right)]


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f}"


def _threshold(level: Level) -> str:
    return MISSING if level.threshold is None else f"{level.threshold:.3f}"
