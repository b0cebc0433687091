"""`oltr demo` over several seeds: its tables, its time and what it ran on.

python benchmarks/demo.py --seeds 0 1 2 --results benchmarks/results/demo.json
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def split_by_phase(out: Path, seconds: float) -> dict[str, float]:
    """Seconds of stage 1, which the methods share, of each one's stage 2, and of all the rest."""
    phases = {}
    for metrics in sorted(out.glob("*/metrics.csv")):
        with metrics.open() as file:
            rows = list(csv.DictReader(file))
        for stage in ("1", "2"):
            name = "stage 1" if stage == "1" else f"stage 2, {metrics.parent.name}"
            phases[name] = round(sum(float(row["seconds"]) for row in rows if row["stage"] == stage), 1)
    phases["drawing, start, evaluation"] = round(seconds - sum(phases.values()), 1)
    return phases


def main() -> None:
    """Run the demo once per seed and write the results."""
    from oltr.training.run_folder import hardware, versions

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--results", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    for seed in arguments.seeds:
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable,
                "-m",
                "oltr.cli.main",
                "demo",
                "--out",
                f"{folder}/demo",
                "--seed",
                str(seed),
            ]
            began = time.time()
            reports = json.loads(
                subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout
            )
            seconds = time.time() - began
            phases = split_by_phase(Path(folder) / "demo", seconds)
        for report in reports.values():
            del report["per_class"]
        rows.append({"seed": seed, "wall_seconds": round(seconds, 1), "phases": phases, "reports": reports})
        few = " → ".join(f"{reports[method]['closed']['few']:.3f}" for method in ("plain", "oltr"))
        f = " → ".join(f"{reports[method]['open']['f_measure']:.3f}" for method in ("plain", "oltr"))
        print(f"seed {seed}, {seconds:.0f} s: few {few}, F {f}", flush=True)
    results = {
        "benchmark": "demo.py",
        "date": time.strftime("%Y-%m-%d"),
        "hardware": hardware(),
        "versions": versions(),
        "rows": rows,
    }
    arguments.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
