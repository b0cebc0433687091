"""Runs on data to choose settings by: what each changed, how its validation accuracy went, how it ended.

    python benchmarks/validation_curves.py BASE RUN ... --out benchmarks/results/validation-curves.json

Each is a run folder; what is compared with is the first. `end` and `peak` are means over ten epochs of the
accuracy on the validation images, without flips: of the last ten, and of the best ten (the last of which is
`peak_epoch`). `test` and `auroc` are those of the run's report. A run that was stopped has its curve alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import torch
import yaml
from record import record

from oltr.training.run_folder import RunFolder, differences

GROUPS = ("many", "medium", "few", "overall")
WINDOW = 10  # epochs
OWN = ("recipe", "seed")  # of a configuration: no change of what is trained


def main() -> None:
    parser = argparse.ArgumentParser(description="Validation curves of runs on development data.")
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    folders = [RunFolder(path) for path in asked.runs]
    facts = [yaml.safe_load((folder.path / "run.yaml").read_text(encoding="utf-8")) for folder in folders]
    rows = [row(folder, fact, facts[0]) for folder, fact in zip(folders, facts, strict=True)]
    trained_on = {name: facts[0][name] for name in ("hardware", "versions", "data")}
    record(asked.out, rows, torch.device("cpu"), trained_on=trained_on, compared_with=folders[0].path.name)
    for each in rows:
        end = " ".join(f"{100 * each['end'][group]:5.1f}" for group in GROUPS)
        peak = f"{100 * each['peak']:.1f} at {each['peak_epoch']}"
        print(f"{each['run']:<24}{each['epochs']:>4}  end {end}  peak {peak}  {each.get('test', '')}")


def row(folder: RunFolder, facts: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """One run, as fractions."""
    config, usual = ({k: v for k, v in each["config"].items() if k not in OWN} for each in (facts, base))
    curve = pd.read_csv(folder.metrics)
    means = curve[list(GROUPS)].rolling(WINDOW).mean()
    best = int(means["overall"].idxmax())
    found: dict[str, Any] = {
        "run": folder.path.name,
        "changes": differences(usual, config),
        "seed": facts["config"]["seed"],
        "epochs": len(curve),
        "of_epochs": facts["config"]["stage1"]["epochs"],
        "end": {group: round(float(means[group].iloc[-1]), 4) for group in GROUPS},
        "peak": round(float(means["overall"].iloc[best]), 4),
        "peak_epoch": int(curve["epoch"].iloc[best]),
        "loss": round(fmean(curve["loss"].tail(WINDOW)), 4),
    }
    if folder.report.is_file():
        report = json.loads(folder.report.read_text(encoding="utf-8"))
        found["test"] = {group: round(report["closed"][group], 4) for group in GROUPS}
        found["auroc"] = round(report["open"]["auroc"], 4)
    return found


if __name__ == "__main__":
    main()
