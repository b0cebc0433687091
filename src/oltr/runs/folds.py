"""k-fold cross-validation: an ordinary run for each fold, and mean and spread of their numbers."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.folds import Folds
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.runs.report import Report
from oltr.runs.tables import MISSING, Table
from oltr.runs.train_run import train_run
from oltr.training.options import TrainOptions

CAUTION = (
    "Spread: standard deviation over the folds. They share training images, so it says how much the numbers "
    "depend on which images are tested, and is no confidence interval of independent runs."
)
_FRACTIONS = ("f_measure",)  # as the paper prints it; the rest in percent
_SHOWN = {
    "closed": {"many": "many", "medium": "medium", "few": "few", "overall": "overall"},
    "open": {"overall": "overall", "f_measure": "F", "unknown_recall": "unknown", "auroc": "AUROC"},
}


@dataclass(frozen=True)
class FoldReports:
    """The reports of all folds, by the name of their run folder."""

    reports: dict[str, Report]

    def values(self, part: str, key: str) -> list[float]:
        """One number, such as closed overall, of the folds that have it."""
        found = [(report.data.get(part) or {}).get(key) for report in self.reports.values()]
        return [value for value in found if isinstance(value, (int, float))]

    def summary(self) -> dict[str, dict[str, dict[str, float | int | None]]]:
        """Mean, spread and n of every closed and open number; no spread of a single value."""
        parts = {part: self._keys(part) for part in _SHOWN}
        return {part: {key: self._of(part, key) for key in keys} for part, keys in parts.items() if keys}

    def to_json(self) -> dict[str, Any]:
        """What folds.json holds, in fractions."""
        first = next(iter(self.reports.values()))
        folds = [
            {"run": name} | {part: report.data[part] for part in _SHOWN if part in report}
            for name, report in self.reports.items()
        ]
        return {
            "schema": 1,
            "method": first.method,
            "backbone": first.backbone,
            "num_classes": first.num_classes,
            **self.summary(),
            "folds": folds,
            "caution": CAUTION,
        }

    def table(self) -> Table:
        """A row for each fold, then mean and spread."""
        summary = self.summary()
        columns = [(part, key) for part in summary for key in _SHOWN[part]]
        rows = [
            [name, *(_cell(key, (report.data.get(part) or {}).get(key)) for part, key in columns)]
            for name, report in self.reports.items()
        ]
        for name in ("mean", "spread"):
            rows.append([name, *(_cell(key, summary[part][key][name]) for part, key in columns)])
        n = [str(summary[part][key]["n"]) for part, key in columns]
        groups = [("", ["fold"]), *((part, list(_SHOWN[part].values())) for part in summary)]
        first = next(iter(self.reports.values()))
        title = f"{first.method} on {first.backbone}, {len(self.reports)} folds"
        return Table(title, groups, [*rows, ["n", *n]], ["Percent, mean over classes.", CAUTION])

    def save(self, path: Path) -> None:
        """Write folds.json, atomically."""
        with atomic_write(path) as part:
            part.write_text(json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def _keys(self, part: str) -> list[str]:
        """Names of numbers, in the order of the reports."""
        entries = [report.data.get(part) or {} for report in self.reports.values()]
        numbers = (k for entry in entries for k, v in entry.items() if isinstance(v, (int, float)))
        return list(dict.fromkeys([*(key for key in _SHOWN[part] if any(entries)), *numbers]))

    def _of(self, part: str, key: str) -> dict[str, float | int | None]:
        values = self.values(part, key)
        return {
            "mean": statistics.fmean(values) if values else None,
            "spread": statistics.stdev(values) if len(values) > 1 else None,
            "n": len(values),
        }


def train_folds(
    config: RunConfig, folds: Folds, out: str | Path, options: TrainOptions, source: str = ""
) -> FoldReports:
    """Train every fold into OUT/fold-1 ..., and write OUT/folds.json; resumed, finished folds are kept."""
    out = Path(out)
    check_folds(out, options)
    reports: dict[str, Report] = {}
    for number, manifest in enumerate(folds.manifests, start=1):
        sizes = ", ".join(f"{split} {size:,}" for split, size in manifest.sizes().items())
        console.say(f"fold {number} of {len(folds.manifests)}: {sizes}")
        name = f"fold-{number}"
        report = train_run(config, manifest, out / name, options, source)
        assert report is not None  # every fold has test images, and there is one process
        reports[name] = report
    made = FoldReports(reports)
    made.save(out / "folds.json")
    return made


def check_folds(out: Path, options: TrainOptions) -> None:
    """Refuse what folds cannot be trained with, before any is."""
    if options.devices > 1 or options.nodes > 1:
        raise UserError("--folds trains on one device.", try_this="leave --devices and --nodes out")
    if options.stage1_from is not None:
        raise UserError("--stage1-from does not go with --folds.", "Each fold has other training images.")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file.", try_this="another --out")
    if not options.resume and out.is_dir() and any(out.iterdir()):
        has_folds = any(out.glob("fold-*"))
        raise UserError(
            f"{out} cannot take new folds.",
            "It holds folds already." if has_folds else "It is not empty.",
            "--resume to go on with them, or another --out" if has_folds else "another --out",
        )


def _cell(key: str, value: Any) -> str:
    if value is None:
        return MISSING
    return f"{value:.3f}" if key in _FRACTIONS else f"{100 * value:.1f}"
