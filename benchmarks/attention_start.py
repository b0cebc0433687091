"""OLTR trained from both starts of its attention: accuracy, open detection, and how much attention is left.

    python benchmarks/attention_start.py c100.pack --out benchmarks/results/attention-start.json
    python benchmarks/attention_start.py glyphs.pack --recipe glyphs --seeds 3 --at-once 1

Both starts share the stage 1 of their seed, so that they differ in stage 2 alone. `share` is the norm of what
attention adds over the norm of the map that it adds to, the mean over the test images, after training;
`share_at_start` is the same before the first step of stage 2.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from record import record

from oltr.data.augment import Augment
from oltr.nn.network import Network
from oltr.runs.own_data import open_for
from oltr.runs.trained_run import TrainedRun
from oltr.training.build import build_method, build_network, build_stage2
from oltr.training.run_folder import RunFolder

STARTS = ("zero", "released")
CLOSED, OPEN = ("many", "medium", "few", "overall"), ("f_measure", "auroc")


def train(source: Path, recipe: str, start: str, seed: int, folder: Path, extra: list[str]) -> None:
    """One run in a process of its own; the second start begins with the stage 1 of the first."""
    out, first = folder / f"{start}-{seed}", folder / f"{STARTS[0]}-{seed}"
    command = [sys.executable, "-m", "oltr.cli.main", "train", str(source), "--recipe", recipe]
    command += ["--method", "oltr", "--seed", str(seed), "--out", str(out)]
    command += ["--set", f"settings.attention_start={start}", *extra]
    command += [] if out == first else ["--stage1-from", str(first)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measured(folder: Path, source: Path, start: str, seed: int) -> dict[str, Any]:
    """A row: what report.json says, and the share of attention."""
    run = TrainedRun(folder / f"{start}-{seed}", source)
    report = json.loads((run.path / "report.json").read_text())
    return {
        "start": start,
        "seed": seed,
        **{f"closed_{name}": report["closed"][name] for name in CLOSED},
        **{f"open_{name}": report.get("open", {}).get(name) for name in OPEN},
        "share_at_start": share(run, first_network(run, RunFolder(folder / f"{STARTS[0]}-{seed}"))),
        "share": share(run, run.network),
    }


def first_network(run: TrainedRun, shared: RunFolder) -> Network:
    """The network with which stage 2 began."""
    method = build_method(run.config, torch.from_numpy(run.counts))
    first = build_network(run.config, method, 1)
    first.load_state_dict(shared.load_weights(shared.stage_weights(1)))
    return build_stage2(run.config, method, first).to(run.device).eval()


@torch.no_grad()
def share(run: TrainedRun, network: Network) -> float:
    """‖A(f)‖ / ‖f‖, the mean over the test images."""
    images, augment = open_for(run, run.manifest, ["test"])["test"], Augment(run.config.data, run.device)
    batches = [range(at, min(at + 500, len(images))) for at in range(0, len(images), 500)]
    found = []
    for pixels in images.batches(batches, run.device, 0):
        f = network.backbone(augment.evaluate(pixels))
        added = network.attention(f) - f
        found.append(added.flatten(1).norm(dim=1) / f.flatten(1).norm(dim=1))
    return torch.cat(found).mean().item()


def main() -> None:
    """Train, measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="OLTR from both starts of its attention.")
    parser.add_argument("source", type=Path)
    parser.add_argument("--recipe", default="cifar100-lt-100")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0 on")
    parser.add_argument("--at-once", type=int, default=3, help="trainings side by side")
    parser.add_argument("--epochs", nargs="+", default=[])
    parser.add_argument("--runs", type=Path, help="where the runs stay; nowhere without")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    extra, rows = (["--epochs", *arguments.epochs] if arguments.epochs else []), []
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(arguments.at_once) as pool:
        folder = arguments.runs or Path(temporary)
        for start in STARTS:
            waiting = [
                pool.submit(train, arguments.source, arguments.recipe, start, seed, folder, extra)
                for seed in range(arguments.seeds)
            ]
            for seed, done in enumerate(waiting):
                done.result()
                rows.append(measured(folder, arguments.source, start, seed))
                record(arguments.out, rows, recipe=arguments.recipe, source=arguments.source.name)
    numbers = [name for name in rows[0] if name not in ("start", "seed")]
    print(f"{'start':<10}" + "".join(f"{name:>17}" for name in numbers))
    for start in STARTS:
        columns = [[row[name] for row in rows if row["start"] == start] for name in numbers]
        cells = [
            "–" if None in c else f"{statistics.mean(c):.4f}±{statistics.pstdev(c):.4f}" for c in columns
        ]
        print(f"{start:<10}" + "".join(f"{cell:>17}" for cell in cells))


if __name__ == "__main__":
    main()
