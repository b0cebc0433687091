"""A run's numbers measured anew from its outputs, and where its report.json says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from oltr.metrics.shots import GROUPS
from oltr.runs.evaluate_run import Prepared, make_report
from oltr.runs.outputs import Outputs
from oltr.runs.report import Report
from oltr.training.run_folder import RunFolder
from oltr.wording import count, first_few

ROUNDING = 0.0005  # half of the last digit that is shown
_SHOWN = {
    "closed": (*GROUPS, "overall"),
    "open": (*GROUPS, "f_measure", "f_measure_2019", "unknown_recall", "auroc"),
}


def remeasured(
    folder: RunFolder,
    kept: Report,
    outputs: Mapping[str, Outputs],
    ready: Prepared,
    threshold: float | None,
    shots: str,
) -> Report:
    """The report by that score and threshold; what is not measured stays as report.json has it."""
    data = make_report(folder, outputs, ready, threshold, shots=shots).data
    part, there = data.get("open"), kept.data.get("open")
    if part and there and part["score"] == there["score"]:  # of another score it chose another threshold
        part["unknown_rate"] = there.get("unknown_rate")
    return Report({**data, "expect": kept.data.get("expect") or {}})


def disagreements(kept: Report, measured: Report) -> list[str]:
    """What report.json says otherwise, as far as it would show."""
    found = [
        f"{key} is {measured[key]!r}, there {kept[key]!r}"
        for key in ("method", "backbone", "shots")
        if kept[key] != measured[key]
    ]
    there, here = kept["per_class"], measured["per_class"]
    named = [(line["name"], line["train_count"]) for line in there]
    if named != [(line["name"], line["train_count"]) for line in here]:
        found.append("the names or training images of its classes are others")
    numbers = [
        f"{part}.{key}"
        for part, keys in _SHOWN.items()
        for key in keys
        if _differ(_value(kept, part, key), _value(measured, part, key))
    ]
    if numbers:
        found.append(f"other numbers at {first_few(numbers)}")
    lines = sum(
        any(_differ(a[key], b[key]) for key in ("accuracy", "f1")) for a, b in zip(there, here, strict=True)
    )
    return found + ([f"other numbers of {count(lines, 'class')}"] if lines else [])


def _value(report: Report, part: str, key: str) -> float | None:
    return (report.data.get(part) or {}).get(key)


def _differ(a: float | None, b: float | None) -> bool:
    return (a is None) != (b is None) if a is None or b is None else abs(a - b) > ROUNDING
