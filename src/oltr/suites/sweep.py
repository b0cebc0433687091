"""A sweep over what finished runs say: thresholds, or the number of open classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oltr.console import Console
    from oltr.data.manifest import Manifest
    from oltr.figures.sweep_curves import Curve
    from oltr.suites.rows import Results

THRESHOLDS = 101  # from 0 to 1


def swept(results: Results, manifest: Manifest, console: Console) -> list[Curve]:
    """The curves of every row, from the cached outputs of its finished runs."""
    import numpy as np

    from oltr.figures.open_classes_sweep import open_classes_sweep
    from oltr.figures.sweep_curves import open_classes_curves, threshold_curves
    from oltr.figures.threshold_sweep import threshold_sweep
    from oltr.runs.evaluate_run import cached_outputs, prepared_score
    from oltr.training.run_folder import RunFolder

    sweep, curves = results.suite.sweep, []
    for wanted, row in zip(results.suite.rows, results.rows, strict=True):
        by_seed: dict[int, Any] = {}
        for run in results.runs:
            if not run.measures(wanted) or run.config.seed not in row.reports:
                continue
            folder = RunFolder(results.out / run.name)
            outputs = cached_outputs(folder)
            if sweep == "threshold":
                counts = [entry["train_count"] for entry in folder.classes()]
                steps = np.linspace(0, 1, THRESHOLDS)
                found: Any = threshold_sweep(outputs, counts, "softmax", steps, shots=run.config.shots)
            else:
                ready = prepared_score(folder, wanted.score, outputs, manifest, console)
                found = open_classes_sweep(
                    outputs,
                    manifest.rows("open")["label"].tolist(),
                    ready.score,
                    threshold=wanted.threshold,
                    unknown_rate=wanted.unknown_rate,
                    read=ready.outputs,
                )
            by_seed[run.config.seed] = found
        if by_seed:
            make = threshold_curves if sweep == "threshold" else open_classes_curves
            curves += make(row.label, by_seed)
    return curves
