"""Tables shaped like the paper's, as fixed-width text and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from oltr.metrics.shots import rule_words
from oltr.runs.published_row import number_compared, published_source
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.runs.report import Report

MISSING = "–"
_SHOTS = ("many", "medium", "few")
_LOOKED_AT = (("closed", "few"), ("closed", "overall"), ("open", "f_measure"), ("open", "auroc"))


class _Column(NamedTuple):
    part: str  # "closed" or "open" in the report
    key: str
    title: str
    percent: bool = True


@dataclass(frozen=True)
class Table:
    """Columns in named groups, rows of ready-made cells whose first is the name, and notes under them."""

    title: str
    groups: Sequence[tuple[str, Sequence[str]]]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)

    def text(self) -> str:
        """Fixed width, groups apart by a bar; as wide as its longest names need."""
        columns = [column for _, names in self.groups for column in names]
        rows = [list(row) for row in self.rows]
        widths = [max(cell_len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]
        blocks, start = [], 0
        for title, names in self.groups:
            width = widths[start : start + len(names)]
            width[-1] += max(0, cell_len(title) - sum(width) - 2 * (len(names) - 1))
            blocks.append(width)
            start += len(names)

        def line(cells: Sequence[str]) -> str:
            remaining = iter(cells)
            parts = [[_pad(next(remaining), width, left=False) for width in block] for block in blocks]
            parts[0][0] = _pad(cells[0], blocks[0][0], left=True)
            return " │ ".join("  ".join(part) for part in parts).rstrip()

        inner = [sum(block) + 2 * (len(block) - 1) for block in blocks]
        titles = [title for title, _ in self.groups]
        lines = [self.title, ""] if self.title else []
        if any(titles):
            centred = [" " * ((width - cell_len(t)) // 2) + t for t, width in zip(titles, inner, strict=True)]
            parts = [_pad(title, width, left=True) for title, width in zip(centred, inner, strict=True)]
            lines.append(" │ ".join(parts).rstrip())
        lines += [line(columns), "─┼─".join("─" * width for width in inner), *(line(row) for row in rows)]
        for note in self.notes:
            room = max(sum(inner) + 3 * (len(inner) - 1), 72)
            lines += textwrap.wrap(note, room, break_long_words=False, break_on_hyphens=False)
        return "\n".join(lines)

    def markdown(self) -> str:
        """A Markdown table; a column's group stands before its name."""
        columns = [f"{title} {name}".strip() for title, names in self.groups for name in names]
        marks = [":--", *["--:"] * (len(columns) - 1)]
        lines = [f"**{_escape(self.title)}**", ""] if self.title else []
        lines += [_markdown_row(columns), f"|{'|'.join(marks)}|", *(_markdown_row(row) for row in self.rows)]
        for note in self.notes:
            lines += ["", _escape(note)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_markdown_(self) -> str:
        return self.markdown()


def comparison(reports: Mapping[str, Report], over: str | None = None) -> Table:
    """One row per run, closed and open as in the paper, the published row and the difference under it.

    Every run but the one named `over` is followed by its difference to that one.
    """
    columns, alone = _columns(reports), len(reports) == 1
    rows: list[list[str]] = []
    for name, report in reports.items():
        ours = [_number(report.data, column) for column in columns]
        label = name if report["method"] in name else f"{name} ({report['method']})"
        rows.append([label, *_cells(ours, columns)])
        if alone and _has_intervals(report):
            rows.append(["  ±", *_cells([_half_width(report.data, column) for column in columns], columns)])
        if over is not None and name != over:
            gaps = _gaps(ours, [_number(reports[over].data, column) for column in columns])
            rows.append([f"  over {over}", *_cells(gaps, columns, sign="+")])
        if _published(report):
            theirs = [_number(_published(report), column) for column in columns]
            if other := report.data.get("regrouped"):
                ours = [number_compared(report.data, column.part, column.key) for column in columns]
                rows.append([f"  groups {rule_words(other['rule'])}", *_cells(ours, columns)])
            rows.append(["  published", *_cells(theirs, columns)])
            rows.append(["  difference", *_cells(_gaps(ours, theirs), columns, sign="+")])
    groups = [("", ["method"])]
    for part in dict.fromkeys(column.part for column in columns):
        groups.append((part, [column.title for column in columns if column.part == part]))
    notes = [_legend(columns), *_untested_notes(reports), *_interval_notes(reports, columns)]
    notes += _open_notes(reports)
    if alone:
        notes += [words for report in reports.values() if (words := _probabilities(report))]
    notes += _other_notes(reports)
    return Table(_title(reports), groups, rows, notes)


def per_class(report: Report, worst: int = 10) -> Table:
    """The classes with the lowest closed-set accuracy, fewest training images first among equals."""
    tested = [entry for entry in report["per_class"] if entry["accuracy"] is not None]
    shown = sorted(tested, key=lambda entry: (entry["accuracy"], entry["train_count"]))[:worst]
    rows = [
        [entry["name"], str(entry["train_count"]), _percent(entry["accuracy"]), _percent(entry["f1"])]
        for entry in shown
    ]
    title = f"{report['method']}: the {len(shown)} of {len(tested)} classes with the lowest accuracy"
    return Table(title, [("", ["class", "training images", "accuracy", "F1"])], rows)


def _title(reports: Mapping[str, Report]) -> str:
    """The backbone and the sizes of the shot groups, as far as the runs share them."""
    parts = []
    backbones = {report["backbone"] for report in reports.values()}
    if len(backbones) == 1:
        parts.append(backbones.pop())
    sizes = {
        (report["num_classes"], *(report["shots"][group] for group in _SHOTS)) for report in reports.values()
    }
    if len(sizes) == 1:
        total, many, medium, few = sizes.pop()
        parts.append(f"{count(total, 'class')}: {many} many-, {medium} medium-, {few} few-shot")
    return ", ".join(parts)


def _legend(columns: Sequence[_Column]) -> str:
    keys = [column.key for column in columns]
    legend = "Percent, mean over classes"
    legend += "; unknown: open images called so" if "unknown_recall" in keys else ""
    return legend + ("; F 2019: as printed in the paper." if "f_measure_2019" in keys else ".")


def _interval_notes(reports: Mapping[str, Report], columns: Sequence[_Column]) -> list[str]:
    """What the row of intervals is; of several runs, the widest of the numbers most looked at."""
    told = "half of the 95 % interval over test images"
    if not all(map(_has_intervals, reports.values())):
        return []
    if len(reports) == 1:
        return [f"±: {told}."]
    widest = []
    for column in columns:
        halves = [half for each in reports.values() if (half := _half_width(each.data, column)) is not None]
        if halves and (column.part, column.key) in _LOOKED_AT:
            widest.append(f"{column.title} {_cells([max(halves)], [column])[0]}")
    return [f"± at most, {told}: {', '.join(widest)}."]


def _probabilities(report: Report) -> str:
    """Top-5, the share of images, and how far probabilities can be believed."""
    closed, found = report.closed, report.calibration
    if found is None or closed.micro is None:  # a report.json of before there were these
        return ""
    top5 = "" if closed.top5 is None else f"Top-5: {_percent(closed.top5)}. "
    words = f"{top5}Of all test images {_percent(closed.micro)} % are right. Calibration error"
    if found.temperature is None:
        return f"{words} {_percent(found.ece)} % (not calibrated: no validation images)."
    after = f"{_percent(found.calibrated_ece)} % after temperature {found.temperature:.3g}"
    return f"{words} {_percent(found.ece)} % ({after})."


def _untested_notes(reports: Mapping[str, Report]) -> list[str]:
    """How many classes the means are not over: one note when all agree, one per number otherwise."""
    runs_by_words = _runs_by(_untested, reports)
    if len(runs_by_words) == 1:
        return [words for words in runs_by_words if words]
    return [f"{', '.join(names)}: {words}" for words, names in runs_by_words.items() if words]


def _untested(report: Report) -> str:
    number = sum(entry["accuracy"] is None for entry in report["per_class"])
    verbs = ("has", "is") if number == 1 else ("have", "are")
    return f"{count(number, 'class')} {verbs[0]} no test image and {verbs[1]} in no mean." if number else ""


def _runs_by(tell: Callable[[Report], str], reports: Mapping[str, Report]) -> dict[str, list[str]]:
    """What is told of runs → the names of those it is told of."""
    runs: dict[str, list[str]] = {}
    for name, report in reports.items():
        runs.setdefault(tell(report), []).append(name)
    return runs


def _open_notes(reports: Mapping[str, Report]) -> list[str]:
    """Which score and threshold called images unknown: one note when all agree, one per kind otherwise."""
    runs_by_rule = _runs_by(_open_rule, reports)
    if len(runs_by_rule) == 1:
        return [f"Open: {rule}." for rule in runs_by_rule]
    return [f"Open ({', '.join(names)}): {rule}." for rule, names in runs_by_rule.items()]


def _open_rule(report: Report) -> str:
    if "open" not in report:
        return "not tested, there were no open images"
    part = report["open"]
    rule = f"score {part['score']}, threshold {part['threshold']:.4g}"
    if part.get("unknown_rate") is not None:
        rule += f" (rejects at most {_percent(part['unknown_rate'])} % of known validation images)"
    return rule


def _other_notes(reports: Mapping[str, Report]) -> list[str]:
    """Why rows may not compare, and where published rows come from."""
    notes = [f"{name}: {note}." for name, each in reports.items() if (note := each.data.get("note"))]
    counts = [{entry["name"]: entry["train_count"] for entry in r["per_class"]} for r in reports.values()]
    if any(set(each) != set(counts[0]) for each in counts):
        notes.append("Caution: these runs do not have the same classes, so their numbers do not compare.")
    elif any(each != counts[0] for each in counts):
        notes.append("Caution: these runs were trained on different numbers of images per class.")
    sources = {published_source(_published(report)): None for report in reports.values()}
    return notes + [f"Published: {source}." for source in sources if source]


def _columns(reports: Mapping[str, Report]) -> list[_Column]:
    """The paper's columns; no open ones when nothing is open, the 2019 F where a published row has it."""
    columns = [_Column("closed", key, key) for key in (*_SHOTS, "overall")]
    published = [_published(report).get("open") or {} for report in reports.values()]
    if not any(published) and all("open" not in report for report in reports.values()):
        return columns
    columns += [_Column("open", key, key) for key in _SHOTS]
    columns.append(_Column("open", "f_measure", "F", percent=False))
    if any("f_measure_2019" in row for row in published):
        columns.append(_Column("open", "f_measure_2019", "F 2019", percent=False))
    return [*columns, _Column("open", "unknown_recall", "unknown"), _Column("open", "auroc", "AUROC")]


def _published(report: Report) -> dict[str, Any]:
    """The published row, unless it is of another measurement (identification of faces)."""
    published = report.data.get("expect") or {}
    return published if {"closed", "open"} & published.keys() else {}


def _number(data: Mapping[str, Any], column: _Column) -> float | None:
    return (data.get(column.part) or {}).get(column.key)


def _has_intervals(report: Report) -> bool:
    return report.closed.interval is not None


def _half_width(data: Mapping[str, Any], column: _Column) -> float | None:
    within = ((data.get(column.part) or {}).get("interval") or {}).get(column.key)
    return None if within is None else (within[1] - within[0]) / 2


def _cells(values: Sequence[float | None], columns: Sequence[_Column], sign: str = "") -> list[str]:
    pairs = zip(values, columns, strict=True)
    return [_percent(value, sign) if column.percent else _fraction(value, sign) for value, column in pairs]


def _gaps(ours: Sequence[float | None], theirs: Sequence[float | None]) -> list[float | None]:
    return [None if a is None or b is None else a - b for a, b in zip(ours, theirs, strict=True)]


def _percent(value: float | None, sign: str = "") -> str:
    return MISSING if value is None else f"{100 * value:{sign}z.1f}"


def _fraction(value: float | None, sign: str = "") -> str:
    return MISSING if value is None else f"{value:{sign}z.3f}"


def _pad(cell: str, width: int, *, left: bool) -> str:
    space = " " * (width - cell_len(cell))  # str.ljust miscounts characters that fill two columns
    return cell + space if left else space + cell


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escape(cell).strip() for cell in cells)} |"
