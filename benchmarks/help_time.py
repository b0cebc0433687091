"""How long every verb's --help takes, from typing to prompt: the median of five.

    python benchmarks/help_time.py [--most 0.5] [--json FILE]

The exit code is 1 if a verb takes longer than --most seconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from oltr.cli.main import VERBS

REPEATS = 5


def seconds(words: list[str]) -> float:
    """Median wall time of one help, each in its own process; the first only warms the disk cache."""
    times = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        command = [sys.executable, "-m", "oltr.cli.main", *words, "--help"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def main() -> int:
    """Measure, print a table, and write it if asked."""
    parser = argparse.ArgumentParser(description="How long every verb's --help takes.")
    parser.add_argument(
        "--most", type=float, default=0.5, help="seconds that no verb may exceed (default: 0.5)"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args()
    rows = {f"oltr {verb}".strip(): seconds(verb.split()) for verb in ("", *VERBS)}
    for name, time_taken in rows.items():
        print(f"{name:<20} {time_taken:.3f} s{'  too slow' if time_taken > options.most else ''}")
    if options.json:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        result = {
            **machine,
            "repeats": REPEATS,
            "seconds": {name: round(taken, 4) for name, taken in rows.items()},
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(max(rows.values()) > options.most)


if __name__ == "__main__":
    sys.exit(main())
