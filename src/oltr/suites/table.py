"""The table of a suite: ours over several seeds, the published number and the difference under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oltr.metrics.shots import rule_words
from oltr.runs.published_row import published_source
from oltr.runs.tables import MISSING, Table
from oltr.suites.seeds import SeedRow

_TITLES = {
    "f_measure": "F",
    "f_measure_2019": "F 2019",
    "auroc": "AUROC",
    "aupr_known": "AUPR in",
    "aupr_unknown": "AUPR out",
    "fpr95_known": "FPR 95",
    "detection_error": "error",
    "detection_error_min": "least error",
    "rank1": "full test",
    "dir_0.01": "DIR 1 %",
    "dir_0.001": "DIR 0.1 %",
}
_PARTS = {"identify": "identification rate"}
_FRACTIONS = ("f_measure", "f_measure_2019")  # as the paper prints them; the rest in percent
_LEGENDS = {
    "f_measure_2019": "F 2019: as printed in the paper",
    "fpr95_known": "FPR 95: open images accepted with 95 % of the known",
    "detection_error": "error: ½ · 5 % + ½ · open images accepted with 95 % of the known",
    "dir_0.01": "DIR: nearest, and above a threshold that so many strangers are above",
    "detection_error_min": "least error: the smallest mean of both errors over all thresholds",
}


def suite_table(
    title: str, rows: Sequence[SeedRow], columns: Sequence[str], notes: Iterable[str] = ()
) -> Table:
    """One row per system, and where something was published two more; columns nobody has are left out."""
    shown = shown_columns(rows, columns)
    lines: list[list[str]] = []
    for row in rows:
        lines.append([_label(row), *(_ours(row, column) for column in shown)])
        theirs = [row.published_value(column) for column in shown]
        if any(value is not None for value in theirs):
            pairs = list(zip(shown, theirs, strict=True))
            if any("regrouped" in report.data for report in row.reports.values()):
                so_counted = [_cell(column, row.compared(column)) for column in shown]
                lines.append([f"  groups {rule_words(row.published['shots'])}", *so_counted])
            lines.append(["  published", *(_cell(column, value) for column, value in pairs)])
            gaps = [_cell(column, row.difference(column), sign="+") for column in shown]
            lines.append(["  difference", *gaps])
    groups: list[tuple[str, list[str]]] = [("", ["method"])]
    for part in dict.fromkeys(column.partition(".")[0] for column in shown):
        titles = [_title(column) for column in shown if column.startswith(f"{part}.")]
        groups.append((_PARTS.get(part, part), titles))
    return Table(title, groups, lines, [_legend(rows, shown), *notes, *_row_notes(rows)])


def shown_columns(rows: Sequence[SeedRow], columns: Sequence[str]) -> list[str]:
    """Those of the columns in which somebody has a number; all, if there is none at all."""
    found = [
        column
        for column in columns
        if any(row.values(column) or row.published_value(column) is not None for row in rows)
    ]
    found = found or list(columns)
    return found + [column for column in group_columns(rows) if column not in found]


def group_columns(rows: Sequence[SeedRow]) -> list[str]:
    """The groups that identified rows tell of, as columns."""
    reports = [report.data for row in rows for report in row.reports.values()]
    groups = [group for data in reports for group in data.get("identify", {}).get("groups", [])]
    return [f"identify.{group}" for group in dict.fromkeys(groups)]


def _row_notes(rows: Sequence[SeedRow]) -> list[str]:
    """How unknown images were told, where published rows come from, and why numbers are missing."""
    rules = {row.label: _rule(row) for row in rows if row.reports}
    notes = _grouped("Open", {label: rule for label, rule in rules.items() if rule})
    notes += _grouped("Published", {row.label: published_source(row.published) for row in rows})
    return notes + [
        f"{row.label}, seed {seed}, failed: {why.rstrip('.')}."
        for row in rows
        for seed, why in row.failures.items()
    ]


def _grouped(head: str, by_label: dict[str, str]) -> list[str]:
    """One note for all rows if they agree, else one for each thing there is to say."""
    labels: dict[str, list[str]] = {}
    for label, text in by_label.items():
        if text:
            labels.setdefault(text, []).append(label)
    if len(labels) == 1 and len(by_label) == len(next(iter(labels.values()))):
        return [f"{head}: {text}." for text in labels]
    return [f"{head} ({', '.join(names)}): {text}." for text, names in labels.items()]


def _rule(row: SeedRow) -> str:
    """Score, unless the label names it, and threshold; one that meets a rate differs from seed to seed."""
    part = next(iter(row.reports.values())).data.get("open")
    if not part:
        return ""
    words = [] if part["score"] in row.label.split() else [f"score {part['score']}"]
    tuned = {seed: report.data["open"].get("tuned") for seed, report in row.reports.items()}
    if len(set(tuned.values())) > 1:
        words += [f"{choice} (seed {seed})" for seed, choice in tuned.items()]
    elif "tuned" in part:
        words.append(part["tuned"])
    if part.get("unknown_rate") is None:
        words.append(f"threshold {part['threshold']:.4g}")
    else:
        words.append(f"at most {100 * part['unknown_rate']:.1f} % of known validation images rejected")
    return ", ".join(words)


def _label(row: SeedRow) -> str:
    """The row's name, and how much of it is there."""
    if len(row.reports) == len(row.seeds):
        return row.label
    if row.reports:
        return f"{row.label} ({len(row.reports)} of {len(row.seeds)} seeds)"
    return f"{row.label} ({'failed' if row.failures else 'not yet'})"


def _legend(rows: Sequence[SeedRow], columns: Sequence[str]) -> str:
    seeds = sorted({seed for row in rows for seed in row.reports})
    over = f", mean ± deviation over seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else ""
    said = [_LEGENDS[key] for column in columns if (key := column.partition(".")[2]) in _LEGENDS]
    what = "identified" if any(column.startswith("identify.") for column in columns) else "mean over classes"
    return "; ".join([f"Percent, {what}{over}", *said]) + "."


def _title(column: str) -> str:
    part, _, key = column.partition(".")
    if part == "identify" and key not in _TITLES:
        return f"rank {key[4:]}" if key[4:].isdigit() else key.replace(".", " ", 1)  # a group: "sex male"
    return _TITLES.get(key, key)


def _ours(row: SeedRow, column: str) -> str:
    deviation = row.deviation(column)
    spread = "" if deviation is None else f" ± {_cell(column, deviation)}"
    return _cell(column, row.mean(column)) + spread


def _cell(column: str, value: float | None, sign: str = "") -> str:
    if value is None:
        return MISSING
    if column.partition(".")[2] in _FRACTIONS:
        return f"{value:{sign}z.3f}"
    digits = 2 if column.startswith("identify.") else 1  # as the paper prints them
    return f"{100 * value:{sign}z.{digits}f}"
