"""A model card: what a model is, learned from, is good for and is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oltr
from oltr.methods import METHODS
from oltr.packaged_weights import KNOWN, packaged
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.export.parity import Parity
    from oltr.runs.report import Closed, Open, Report
    from oltr.runs.trained_run import TrainedRun

MOST_NAMED = 200  # classes in the list
_NAMED = {"many": "many", "medium": "a medium number of", "few": "few"}

LIMITS = """\
- Every image is named after one of the classes below; whether it is one of them at all is what `unknown`
  says. A picture of something else is rejected only as often as the figures above tell.
- The figures hold for images like those it was measured on: other cameras, places or seasons can lower them.
- Probabilities say how likely a class is given that the image shows one of the classes;
  `calibrated_probability` is the one to believe.
- Pictures have to be turned upright (EXIF) and decoded to RGB before; see docs/export.md."""


def card_text(run: TrainedRun, file: str, checksum: str, parity: Parity) -> str:
    """The card as Markdown."""
    about, facts = METHODS[run.method].info, run.facts
    groups = {name: run.counts[run.groups == name].tolist() for name in ("many", "medium", "few")}
    images = facts["data"].get("images") or {}
    report = _report(run)
    parts = [
        f"# {run.name}",
        f'An image recogniser of {count(len(run.classes), "class")} that also says "unknown", '
        f"made with oltr {oltr.__version__}: `{file}` (SHA-256 `{checksum}`).",
        "## What it is",
        _table(
            {
                "Method": f"{run.method} ({about.paper})",
                "Backbone": run.config.backbone,
                "Starting weights": _weights(run),
                "Image size": f"{run.config.data.seen_size} px"
                + (", mean over the image and its mirror image" if run.config.data.test_flip else ""),
                "Input": "uint8 N × H × W × 3, upright RGB, any height and width",
                "Rejection rule": str(run.rule),
                "Temperature": "none" if run.temperature is None else f"{run.temperature:.4g}",
            }
        ),
        "## What it learned from",
        _table(
            {
                "Images": ", ".join(f"{number:,} {split}" for split, number in images.items()) or "unknown",
                "Fingerprint of the data": f"`{facts['data']['fingerprint']}`",
                "Training": f"{facts['train_seconds']:.0f} s on {facts.get('hardware', 'unknown hardware')}",
                **{
                    f"Classes with {_NAMED[name]} training images": f"{len(counts)}{_span(counts)}"
                    for name, counts in groups.items()
                },
            }
        ),
        "## How good it is",
        "No report: `oltr evaluate` on the run makes one." if report is None else _figures(report),
        "## Limits",
        LIMITS,
        "## The file gives the answers of the run",
        "\n".join(f"- {line[0].upper()}{line[1:]}." for line in parity.lines()),
        "## Classes",
        _classes(run),
    ]
    return "\n\n".join(parts) + "\n"


def _report(run: TrainedRun) -> Report | None:
    return run.report if run.folder.report.is_file() else None


def _weights(run: TrainedRun) -> str:
    """Where they come from, with their licence where it is known."""
    name = run.config.weights
    if name is None:
        return "none, trained from scratch"
    licences = {each.name: each.license for each in (*KNOWN, *packaged())}
    return f"{name}, licence {licences.get(name, 'unknown: ask where they came from')}"


def _span(counts: list[int]) -> str:
    return f" ({min(counts)} to {max(counts)} images each)" if counts else ""


def _figures(report: Report) -> str:
    rows = {
        "Accuracy of named images, mean over classes": _value(report.closed, "overall"),
        "– classes with many images": _value(report.closed, "many"),
        "– with a medium number": _value(report.closed, "medium"),
        "– with few": _value(report.closed, "few"),
    }
    if (found := report.open) is not None:
        rows |= {
            "Accuracy when images may be rejected": _value(found, "overall"),
            "Unknown images that are rejected": _value(found, "unknown_recall"),
            "AUROC of known against unknown images": _value(found, "auroc"),
            "Open-set F-measure": _value(found, "f_measure"),
        }
    if (calibration := report.calibration) is not None and calibration.calibrated_ece is not None:
        rows["Expected calibration error, calibrated"] = f"{100 * calibration.calibrated_ece:.1f} %"
    return _table({name: value for name, value in rows.items() if value}) + (
        "\n\nOn its own test and open images, 95 % intervals in brackets."
    )


def _value(numbers: Closed | Open, name: str) -> str:
    value, interval = getattr(numbers, name), (numbers.interval or {}).get(name)
    if value is None:
        return ""
    between = f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else ""
    return f"{100 * value:.1f} %{between}"


def _classes(run: TrainedRun) -> str:
    named = list(zip(run.class_names, run.counts, run.groups, strict=True))[:MOST_NAMED]
    rows = [f"| {_cell(name)} | {number:,} | {group} |" for name, number, group in named]
    more = len(run.classes) - len(named)
    rest = f"\n\nand {more:,} more, all in the file's metadata." if more else ""
    return "\n".join(["| class | training images | group |", "|---|---:|---|", *rows]) + rest


def _table(rows: dict[str, str]) -> str:
    return "\n".join(
        ["| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in rows.items())]
    )


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
