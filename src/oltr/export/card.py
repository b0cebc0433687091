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
- Every image is assigned to one of the classes below; `unknown` says whether it belongs to any of them.
  Images of other classes are rejected only as often as the results above show.
- The results hold for images like the test images; with other cameras, places or seasons they can be worse.
- Probabilities say how likely a class is given that the image shows one of the classes;
  `calibrated_probability` is the more reliable one.
- Images have to be rotated upright (EXIF) and decoded to RGB first; see docs/export.md."""


def card_text(run: TrainedRun, file: str, checksum: str, parity: Parity) -> str:
    """The card as Markdown."""
    about, facts = METHODS[run.method].info, run.facts
    groups = {name: run.counts[run.groups == name].tolist() for name in ("many", "medium", "few")}
    images = facts["data"].get("images") or {}
    report = _report(run)
    parts = [
        f"# {run.name}",
        f'An image classifier for {count(len(run.classes), "class")} that can also answer "unknown", '
        f"made with oltr {oltr.__version__}: `{file}` (SHA-256 `{checksum}`).",
        "## Model",
        _table(
            {
                "Method": f"{run.method} ({about.paper})",
                "Backbone": run.config.backbone,
                "Pretrained weights": _weights(run),
                "Image size": f"{run.config.data.seen_size} px"
                + (", averaged over the image and its horizontal flip" if run.config.data.test_flip else ""),
                "Input": "uint8 N × H × W × 3, upright RGB, any height and width",
                "Rejection rule": str(run.rule),
                "Temperature": "none" if run.temperature is None else f"{run.temperature:.4g}",
            }
        ),
        "## Training data",
        _table(
            {
                "Images": ", ".join(f"{number:,} {split}" for split, number in images.items()) or "unknown",
                "Data fingerprint": f"`{facts['data']['fingerprint']}`",
                "Training": f"{facts['train_seconds']:.0f} s on {facts.get('hardware', 'unknown hardware')}",
                **{
                    f"Classes with {_NAMED[name]} training images": f"{len(counts)}{_span(counts)}"
                    for name, counts in groups.items()
                },
            }
        ),
        "## Evaluation",
        "No report: `oltr evaluate` on the run makes one." if report is None else _figures(report),
        "## Limitations",
        LIMITS,
        "## Comparison of the file with the run",
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
        "Closed-set accuracy, mean over classes": _value(report.closed, "overall"),
        "– classes with many images": _value(report.closed, "many"),
        "– with a medium number": _value(report.closed, "medium"),
        "– with few": _value(report.closed, "few"),
    }
    if (found := report.open) is not None:
        rows |= {
            "Open-set accuracy (images may be rejected)": _value(found, "overall"),
            "Unknown images rejected (recall)": _value(found, "unknown_recall"),
            "AUROC of known against unknown images": _value(found, "auroc"),
            "Open-set F-measure": _value(found, "f_measure"),
        }
    if (calibration := report.calibration) is not None and calibration.calibrated_ece is not None:
        rows["Calibration error (ECE) after temperature scaling"] = (
            f"{100 * calibration.calibrated_ece:.1f} %"
        )
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
