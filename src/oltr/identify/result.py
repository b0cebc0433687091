"""What `oltr identify` found: as JSON, and as a table like the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from oltr.identify.group_rates import group_rates
from oltr.identify.groups import Grouping
from oltr.identify.pseudo_shots import NAMES
from oltr.identify.rates import Identified, mean_of
from oltr.metrics.group_numbers import GroupAccuracy
from oltr.runs.tables import MISSING, Table
from oltr.wording import count

SHOWN = 6  # groups of one column that have room in a table; of more, the gap and the worst are told


@dataclass(frozen=True, eq=False)
class Measured:
    """The rates under one embedding."""

    found: Identified
    shots: np.ndarray | None  # P, text
    groups: Sequence[Grouping]
    people: np.ndarray  # P, identity numbers

    @cached_property
    def by_group(self) -> dict[str, GroupAccuracy]:
        """Rank 1 by each grouping, the gap and how much of it chance may be."""
        first, trials = self.found.hits[1], self.found.trials
        return {each.column: group_rates(each, first, trials, self.people) for each in self.groups}

    def to_dict(self) -> dict[str, Any]:
        """Fractions; null where there is nothing to measure."""
        first, trials, shots = self.found.hits[1], self.found.trials, self.shots
        by_shot = None
        if shots is not None:
            by_shot = {name: mean_of(first[shots == name], trials[shots == name]) for name in NAMES}
        by_group = {
            column: {each.name: each.accuracy for each in sorted(found.groups, key=lambda each: each.name)}
            for column, found in self.by_group.items()
        }
        return {
            **{f"rank{rank}": mean_of(hits, trials) for rank, hits in self.found.hits.items()},
            "by_shot": by_shot,
            "by_group": by_group,
            "gaps": {
                column: {"gap": found.gap, "worst": found.worst, "by_chance": found.gap_by_chance}
                for column, found in self.by_group.items()
            },
            "detection_identification": {
                f"{r:g}": mean_of(h, trials) for r, h in self.found.detected.items()
            },
            "thresholds": {
                f"{rate:g}": limit if np.isfinite(limit) else None
                for rate, limit in self.found.thresholds.items()
            },
        }


@dataclass(frozen=True, eq=False)
class Result:
    """Rates by embedding, the one for the headline first, and how they were measured."""

    measured: Mapping[str, Measured]
    run: str | None
    mates: str
    shot_similarity: float
    gallery: int
    distractors: int  # rows of the gallery that are nobody of the probes
    people: int  # among the probes
    people_found: int  # of these, with a mate in the gallery

    @property
    def first(self) -> Measured:
        return next(iter(self.measured.values()))

    def to_dict(self) -> dict[str, Any]:
        """The result of `--json`: the headline's rates, then those of every embedding."""
        each = {name: one.to_dict() for name, one in self.measured.items()}
        name = next(iter(each))
        return {
            "schema": 1,
            "run": self.run,
            "embedding": name,
            "mates": self.mates,
            **each[name],
            "counts": self.counts(),
            "shot_similarity": None if self.first.shots is None else self.shot_similarity,
            "embeddings": each,
        }

    def counts(self) -> dict[str, Any]:
        """Of what the rates are."""
        found, shots = self.first.found, self.first.shots
        measured = found.trials > 0
        return {
            "probes": int(measured.sum()),
            "trials": int(found.trials.sum()),
            "probes_without_mate": int((~measured).sum()),
            "people": self.people,
            "people_absent": self.people - self.people_found,
            "gallery": self.gallery,
            "distractors": self.distractors,
            "strangers": found.strangers,
            "strangers_are": "probes with their mates left out" if found.as_if else "probes without a mate",
            "by_shot": None if shots is None else {n: int((measured & (shots == n)).sum()) for n in NAMES},
            "by_group": {each.column: each.sizes(measured) for each in self.first.groups},
        }

    def table(self) -> Table:
        """Rank-1 by pseudo-shots, the full test and sub-groups as in the paper; then the other rates."""
        each = {name: one.to_dict() for name, one in self.measured.items()}
        first, shots = next(iter(each.values())), self.first.shots is not None
        ranks = [key for key in first if key.startswith("rank") and key != "rank1"]
        groups: list[tuple[str, list[str]]] = [("", ["embedding"])]
        groups += [
            ("rank 1 by pseudo-shots" if shots else "rank 1", [*(NAMES if shots else ()), "full test"])
        ]
        columns = {name: rates for name, rates in first["by_group"].items() if 0 < len(rates) <= SHOWN}
        groups += [(name, [*rates]) for name, rates in columns.items()]
        groups += [("", [f"rank {key[4:]}" for key in ranks])] if ranks else []
        rates = [f"{100 * float(rate):g} %" for rate in first["detection_identification"]]
        groups += [("open set: false alarms", rates)]
        rows = []
        for name, values in each.items():
            numbers = [values["by_shot"][shot] for shot in NAMES] if shots else []
            numbers += [values["rank1"]]
            numbers += [rate for column in columns for rate in values["by_group"][column].values()]
            numbers += [*(values[key] for key in ranks), *values["detection_identification"].values()]
            rows.append([name, *(MISSING if n is None else f"{100 * n:.2f}" for n in numbers)])
        return Table("Identification rate, percent", groups, rows, self._notes(first))

    def _notes(self, first: Mapping[str, Any]) -> list[str]:
        counts = self.counts()
        notes = [
            f"{count(counts['probes'], 'probe')} with a mate, {count(counts['gallery'], 'image')} in the "
            f"gallery, {count(counts['distractors'], 'distractor')}; mates: {self.mates}."
        ]
        if counts["by_shot"] is not None:
            sizes = ", ".join(f"{name} {number:,}" for name, number in counts["by_shot"].items())
            notes.append(f"Probes by training images more similar than {self.shot_similarity:g}: {sizes}.")
        for column, found in first["gaps"].items():
            if found["gap"] is not None:
                gap, chance = (f"{100 * found[key]:.2f}" for key in ("gap", "by_chance"))
                notes.append(f"{column}: gap {gap}, worst {found['worst']}; by chance up to {chance}.")
        strangers = f"{count(counts['strangers'], 'stranger')}: {counts['strangers_are']}"
        few = [rate for rate in self.first.found.thresholds if rate * counts["strangers"] < 1]
        none = f"; of so few, none at {' and '.join(f'{100 * rate:g} %' for rate in few)}" if few else ""
        return [*notes, f"False alarms are counted on {strangers}{none}."]
