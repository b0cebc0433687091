"""What a longtail sweep trains: one backbone, and on top of it, frozen, every method at every α."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oltr.config import StageConfig
from oltr.suites.plan import Run, plan_runs
from oltr.suites.suite_file import Suite, SuiteRow
from oltr.training.run_folder import RunFolder


@dataclass(frozen=True)
class Part:
    """A suite of its own inside the sweep: the runs on the set of one α, in a folder of their own."""

    alpha: float
    suite: Suite
    runs: list[Run]
    out: Path
    words: str


def plan_longtail(
    suite: Suite, seeds: int, epochs: Sequence[int], changes: Sequence[str], out: Path
) -> list[Part]:
    """First the part that trains the backbone, at the largest α; then one for each α, the smallest first."""
    alphas = sorted(set(suite.alphas))
    plain = dataclasses.replace(suite, rows=(SuiteRow("plain", "backbone"),))
    # Its classifier is thrown away, so that a second stage would be for nothing.
    whole = plan_runs(plain, seeds, epochs, (*changes, "stage2=null"))
    backbone = Part(alphas[-1], plain, whole, out / "backbone", f"the backbone, α = {alphas[-1]:g}")
    parts = [backbone]
    for alpha in alphas:
        frozen = [_frozen(run, backbone.out) for run in plan_runs(suite, seeds, epochs, changes)]
        parts.append(Part(alpha, suite, frozen, out / f"alpha-{alpha:g}", f"α = {alpha:g}"))
    return parts


def _frozen(run: Run, backbones: Path) -> Run:
    """The run on the backbone of its seed, which neither learns nor follows the statistics of its batches."""
    model = RunFolder(backbones / f"plain-{run.config.seed}").model.absolute()
    config, second = run.config, run.config.stage2
    return Run(
        run.method,
        run.changes,
        dataclasses.replace(
            config,
            weights=str(model),
            stage1=_without_backbone(config.stage1),
            stage2=None if second is None else _without_backbone(second),
        ),
    )


def _without_backbone(stage: StageConfig) -> StageConfig:
    roles = tuple(sorted({*stage.frozen, "backbone"}))
    return dataclasses.replace(stage, frozen=roles, freeze_statistics=True)
