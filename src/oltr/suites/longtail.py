"""The sweep over the imbalance of the training images: at every α all methods, on one frozen backbone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from oltr.config import StageConfig
from oltr.data.make_longtail import make_longtail
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.suites.run import Part, Run, plan_runs
from oltr.suites.suite_file import Suite, SuiteRow
from oltr.training.run_folder import RunFolder

SMALLEST = 5  # images of the smallest class, as in the paper's benchmarks


def plan_longtail(
    suite: Suite, seeds: int, epochs: Sequence[int], changes: Sequence[str], out: Path
) -> list[Part]:
    """First the part that trains the backbone, at the largest α; then one for each α, the smallest first."""
    alphas = sorted(set(suite.alphas))
    flattest = alphas[-1]
    plain = dataclasses.replace(suite, rows=(SuiteRow("plain", "backbone"),))
    # Its classifier is not used, so it needs no second stage.
    whole = plan_runs(plain, seeds, epochs, (*changes, "stage2=null"))
    title = f"the backbone, α = {flattest:g}"
    parts = [Part(plain, whole, out / "backbone", title, flattest, backbone=True)]
    for alpha in alphas:
        runs = [_frozen(run, parts[0].out) for run in plan_runs(suite, seeds, epochs, changes)]
        parts.append(Part(suite, runs, out / f"alpha-{alpha:g}", f"α = {alpha:g}", alpha))
    return parts


def _frozen(run: Run, backbones: Path) -> Run:
    """The run on the trained backbone of its seed, with weights and batch statistics frozen."""
    model = RunFolder(backbones / f"plain-{run.config.seed}").model.absolute()
    config, second = run.config, run.config.stage2
    frozen = dataclasses.replace(
        config,
        weights=str(model),
        stage1=_without_backbone(config.stage1),
        stage2=None if second is None else _without_backbone(second),
    )
    return Run(run.method, run.changes, frozen)


def _without_backbone(stage: StageConfig) -> StageConfig:
    roles = tuple(sorted({*stage.frozen, "backbone"}))
    return dataclasses.replace(stage, frozen=roles, freeze_statistics=True)


def longtail_sets(full: Manifest, alphas: Sequence[float]) -> dict[float, Manifest]:
    """α → its set, the smallest α first; largest and smallest class are of the same size in all sets.

    Every set is drawn from that of the largest α, in which no class is smaller: so val, test and open images
    are the same in all, and no image is trained on in one set and held out in another.
    """
    flattest = max(alphas)
    flat = make_longtail(full, alpha=flattest, smallest=SMALLEST)
    largest = int(flat.train_counts().max())
    sets = {
        alpha: make_longtail(flat, alpha=alpha, smallest=SMALLEST, largest=largest)
        for alpha in sorted({*alphas} - {flattest})
    }
    return {**sets, flattest: flat}


def save_set(full: Manifest, drawn: Manifest, folder: Path) -> str:
    """The set as a source in `folder`, written once: a manifest, or a pack of its own from a full pack."""
    path = folder / ("manifest.csv" if full.pack is None else "images.pack")
    if path.is_file():
        if read_source(path).fingerprint() != drawn.fingerprint():
            raise UserError(f"{path} was drawn from other data.", try_this="the old source, or another --out")
    elif full.pack is None:
        drawn.write(path)
    else:
        pack = open_pack(full.pack)
        rows = pd.Index(full.table["path"]).get_indexer(pd.Index(drawn.table["path"]))
        write_pack_from(drawn, (pack.images[row] for row in rows), pack.frame, path)
    return str(path)
