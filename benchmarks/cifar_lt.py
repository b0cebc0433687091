"""CIFAR-100-LT: every method, equally long, several seeds, beside the published numbers.

    oltr data curate cifar100-lt --root CIFAR --open-root TINYIMAGENET --imbalance 100 --out c100
    oltr data pack c100 --size 32 --out c100.pack
    python benchmarks/cifar_lt.py c100.pack --recipe cifar100-lt-100 --seeds 0 1 2 --results FILE.json

Runs go on side by side (--jobs) and, called again with the same --runs, where they stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

CLOSED = ("many", "medium", "few", "overall")
OPEN = ("f_measure", "auroc", "fpr95_known", "unknown_recall")


@dataclass(frozen=True)
class Job:
    source: str
    recipe: str
    method: str
    seed: int
    out: Path
    stage1_from: Path | None  # whose stage 1 to wait for and take over
    epochs: tuple[int, ...]


def run(job: Job) -> dict:
    """One training run to its report, as a row."""
    import torch

    from oltr.data.sources import read_source
    from oltr.engine.configure import configure
    from oltr.engine.console import Console
    from oltr.engine.evaluate_run import cached_outputs, make_report
    from oltr.engine.options import FitOptions
    from oltr.engine.run_folder import RunFolder
    from oltr.engine.train_run import train_run

    torch.set_num_threads(1)
    row = {"method": job.method, "seed": job.seed}
    try:
        folder = RunFolder(job.out)
        shared = None if folder.last.is_file() else job.stage1_from  # under way, it needs no stage 1 any more
        while shared and not RunFolder(shared).stage_weights(1).is_file():
            time.sleep(1)
        config = configure(job.recipe, job.method, epochs=job.epochs, seed=job.seed)
        manifest = read_source(job.source)
        if not (folder.report.is_file() and folder.run()["finished"]):
            options = FitOptions(resume=True, stage1_from=shared)
            train_run(config, manifest, job.out, Console(quiet=True), options, Path(job.source).name)
        for name, rate in (("open_at_0.1", None), ("open_at_rate_0.05", 0.05)):
            report = make_report(folder, cached_outputs(folder), unknown_rate=rate)
            if "open" in report:
                row[name] = {key: report["open"][key] for key in OPEN}
        row |= {"closed": {key: report["closed"][key] for key in CLOSED}}
        row |= {"train_seconds": report["train_seconds"], "expect": report["expect"]}
    except Exception:
        row["error"] = traceback.format_exc()
    return row


def jobs(arguments: argparse.Namespace) -> list[Job]:
    """All runs; of the methods with a second stage, the first one of a seed trains stage 1 for the others."""
    from oltr.engine.configure import configure

    listed = []
    for seed in arguments.seeds:
        first: Path | None = None
        for method in arguments.methods:
            out = arguments.runs / f"{method}-{seed}"
            staged = configure(arguments.recipe, method).num_stages == 2
            taken = first if staged else None
            listed.append(
                Job(arguments.source, arguments.recipe, method, seed, out, taken, tuple(arguments.epochs))
            )
            if staged and first is None:
                first = out
    # Whoever trains a stage 1 goes first, so that nobody waits for a run that has no process yet.
    return sorted(listed, key=lambda job: job.stage1_from is not None)


def main() -> None:
    """Run what is missing, print a table, write the results."""
    from oltr.engine.run_folder import hardware, versions

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source")
    parser.add_argument("--recipe", default="cifar100-lt-100")
    parser.add_argument("--methods", nargs="+", default=["plain", "class-aware", "oltr", "oltr-paper"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", nargs="*", type=int, default=())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=Path, default=Path("runs/cifar-lt"))
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()

    began, listed = time.time(), jobs(arguments)
    with multiprocessing.get_context("spawn").Pool(
        min(arguments.jobs, len(listed)), maxtasksperchild=1
    ) as pool:
        rows = []
        for row in pool.imap_unordered(run, listed, chunksize=1):
            rows.append(row)
            print(
                json.dumps(row | {"done": f"{len(rows)}/{len(listed)}", "s": round(time.time() - began)}),
                flush=True,
            )
    rows.sort(key=lambda row: (arguments.methods.index(row["method"]), row["seed"]))
    print(f"\n{'method':<14}{'runs':>5}" + "".join(f"{key:>14}" for key in (*CLOSED, "F at 5 %", "AUROC")))
    for method in arguments.methods:
        good = [row for row in rows if row["method"] == method and "error" not in row]
        columns = [[row["closed"][key] for row in good] for key in CLOSED]
        columns += [
            [row["open_at_rate_0.05"][key] for row in good if "open_at_rate_0.05" in row] for key in OPEN[:2]
        ]
        print(f"{method:<14}{len(good):>5}" + "".join(f"{spread(values):>14}" for values in columns))
    if arguments.results:
        results = {
            "benchmark": "cifar_lt.py",
            "date": time.strftime("%Y-%m-%d"),
            "recipe": arguments.recipe,
            "hardware": hardware(),
            "versions": versions(),
            "runs_side_by_side": arguments.jobs,
            "note": "last epoch of each run; thresholds from validation images of known classes alone",
            "rows": rows,
        }
        arguments.results.write_text(json.dumps(results, indent=1) + "\n")


def spread(values: list[float]) -> str:
    """Mean ± standard deviation in percent."""
    if not values:
        return "–"
    deviation = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{deviation}"


if __name__ == "__main__":
    main()
