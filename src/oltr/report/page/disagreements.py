"""Where a run's report.json says otherwise than what its outputs give now."""

from __future__ import annotations

from oltr.metrics.shots import GROUPS
from oltr.runs.report import Open, Report
from oltr.wording import count, first_few

ROUNDING = 0.0005  # half of the last digit that is shown
_SHOWN = {
    "closed": (*GROUPS, "overall"),
    "open": (*GROUPS, "f_measure", "f_measure_2019", "unknown_recall", "auroc"),
}


def disagreements(kept: Report, measured: Report) -> list[str]:
    """What report.json says otherwise, as far as it would show."""
    found = [
        f"{key} is {measured[key]!r}, not {kept[key]!r}"
        for key in ("method", "backbone")
        if kept[key] != measured[key]
    ]
    if kept["shots"] != measured["shots"]:
        found.append(f"its classes are {_sizes(measured)}, not {_sizes(kept)}")
    if classes_of(kept) != classes_of(measured):
        found.append("the names or training images of its classes differ")
    parts = list(_SHOWN)
    if kept.open and measured.open and _rule(kept.open) != _rule(measured.open):
        found.append(f"the rejection rule is {_rule(measured.open)}, not {_rule(kept.open)}")
        parts.remove("open")  # those numbers follow from the rule
    numbers = [
        f"{part}.{key}"
        for part in parts
        for key in _SHOWN[part]
        if _differ(_value(kept, part, key), _value(measured, part, key))
    ]
    if numbers:
        found.append(f"other values of {first_few(numbers)}")
    lines = sum(
        _differ(a.accuracy, b.accuracy) or _differ(a.f1, b.f1)
        for a, b in zip(kept.per_class, measured.per_class, strict=False)
    )
    return found + ([f"other values for {count(lines, 'class')}"] if lines else [])


def classes_of(report: Report) -> list[tuple[str, int]]:
    """Names and training images of the classes that were measured."""
    return [(line.name, line.train_count) for line in report.per_class]


def _sizes(report: Report) -> str:
    return ", ".join(f"{report['shots'][group]} {group}" for group in GROUPS)


def _rule(part: Open) -> str:
    return f"{part.score} at threshold {part.threshold:.4g}"


def _value(report: Report, part: str, key: str) -> float | None:
    return getattr(getattr(report, part), key, None)


def _differ(a: float | None, b: float | None) -> bool:
    return (a is None) != (b is None) if a is None or b is None else abs(a - b) > ROUNDING
