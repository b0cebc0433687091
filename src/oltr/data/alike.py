"""What `check` says of images that look alike without being the same file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from oltr.console import console
from oltr.data.finding import Finding
from oltr.data.near_duplicates import MOST_PAIRS, find_near_duplicates
from oltr.data.opened import Row
from oltr.wording import count

RESPLIT = "`oltr train SOURCE --group-by near-duplicates` keeps them on one side."
POOL = "Remove one of each, or pool the splits: `oltr train SOURCE --folds 5 --group-by near-duplicates`."


@dataclass(frozen=True)
class Alike:
    """Two files that show nearly the same picture."""

    first: Row
    second: Row
    distance: int  # bits of the 64-bit hash that differ
    similarity: float  # correlation of the thumbnails

    def to_json(self) -> dict[str, Any]:
        """Both images with split and label, and how near they are."""
        both = [
            {"path": row.path, "split": row.split, "label": row.label} for row in (self.first, self.second)
        ]
        return {"images": both, "distance": self.distance, "similarity": self.similarity}


def find_alike(readable: Sequence[Row]) -> tuple[tuple[Alike, ...], bool]:
    """All pairs that look alike and are not the same bytes; False if there were too many to list."""
    with console.progress("comparing images", "steps") as progress:
        found = find_near_duplicates([row.look for row in readable], progress)
    near = found.pairs()
    pairs = (Alike(readable[p.first], readable[p.second], p.distance, p.similarity) for p in near)
    complete = found.complete and len(near) < MOST_PAIRS
    return tuple(pair for pair in pairs if pair.first.content != pair.second.content), complete


def alike_findings(alike: Sequence[Alike], complete: bool, split_made: bool) -> Iterator[Finding]:
    """Pairs across splits, those of train and test first; pairs within a split; pairs under two labels."""
    more = "" if complete else "more than "
    across = [pair for pair in alike if pair.first.split != pair.second.split]
    if across:
        leaks = [pair for pair in across if {pair.first.split, pair.second.split} == {"train", "test"}]
        others = [pair for pair in across if {pair.first.split, pair.second.split} != {"train", "test"}]
        message = f"{more}{_pairs(across)} across splits, {len(leaks):,} of them between train and test"
        yield Finding(
            "near_duplicates_across_splits",
            message,
            _items([*leaks, *others], "split"),
            RESPLIT if split_made else POOL,
        )
    if within := [pair for pair in alike if pair.first.split == pair.second.split]:
        message = f"{more}{_pairs(within)} within a split"
        yield Finding("near_duplicates_within_split", message, _items(within, ""))
    if torn := [pair for pair in alike if pair.first.label != pair.second.label]:
        message = f"{more}{_pairs(torn)} under two labels"
        yield Finding("near_duplicates_conflicting_labels", message, _items(torn, "label"))


def _pairs(pairs: Sequence[Alike]) -> str:
    return f"{count(len(pairs), 'pair')} of near-duplicates"


def _items(pairs: Sequence[Alike], told: str) -> tuple[str, ...]:
    def name(row: Row) -> str:
        return f"{row.path} ({getattr(row, told)})" if told else row.path

    return tuple(f"{name(pair.first)} ≈ {name(pair.second)}" for pair in pairs)
