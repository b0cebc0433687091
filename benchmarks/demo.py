"""`oltr demo` over several seeds: its tables, its time and what it ran on.

python benchmarks/demo.py --seeds 0 1 2 --results benchmarks/results/demo.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Run the demo once per seed and write the results."""
    from oltr.engine.run_folder import hardware, versions

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
            tables = json.loads(
                subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout
            )
            seconds = time.time() - began
        for reports in tables.values():
            for report in reports.values():
                del report["per_class"]
        rows.append({"seed": seed, "wall_seconds": round(seconds, 1), **tables})
        for name, reports in tables.items():
            few = " → ".join(f"{reports[method]['closed']['few']:.3f}" for method in ("plain", "oltr"))
            f = " → ".join(f"{reports[method]['open']['f_measure']:.3f}" for method in ("plain", "oltr"))
            print(f"seed {seed}, {seconds:.0f} s, {name}: few {few}, F {f}", flush=True)
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
