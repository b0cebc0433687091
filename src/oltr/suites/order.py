"""A call of `oltr suite` with every option settled, and what it writes and says in the end."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.cli.options import print_json

if TYPE_CHECKING:
    from oltr.console import Console
    from oltr.data.manifest import Manifest
    from oltr.figures.sweep_curves import Curve
    from oltr.suites.seeds import SeedRow
    from oltr.suites.suite_file import Suite


@dataclass(frozen=True)
class Order:
    """What is to be trained and measured, from what, where to and how."""

    table: Suite
    source: str | None
    root: Path | None
    out: Path  # for the runs
    epochs: tuple[int, ...]
    changes: tuple[str, ...]
    warning: str  # a note under the table, if there is anything to warn of
    jobs: int
    cpu: bool
    as_json: bool

    @property
    def into(self) -> Path:
        """Where the files go: --out, or a folder of the suite's name if --out holds another suite's table."""
        try:
            holder = json.loads((self.out / "suite.json").read_text(encoding="utf-8"))["suite"]
        except (OSError, ValueError, KeyError, TypeError):
            return self.out
        return self.out if holder == self.table.name else self.out / self.table.name

    def facts(self, source: str, manifest: Manifest, notes: Sequence[str] = ()) -> dict[str, Any]:
        """What was asked for, on which data, and what to know when reading the table."""
        said = [*self.table.notes, f"Recipe {self.table.recipe}."]
        if self.epochs:
            said.append(f"A quick look: --epochs {' '.join(map(str, self.epochs))} instead of the recipe's.")
        if self.changes:
            said.append(f"Changed in every run: {', '.join(self.changes)}.")
        return {
            "suite": self.table.name,
            "recipe": self.table.recipe,
            "epochs": list(self.epochs),
            "changes": list(self.changes),
            "date": time.strftime("%Y-%m-%d"),
            "source": source,
            "data": {"fingerprint": manifest.fingerprint(), "images": manifest.sizes()},
            "notes": [*said, *notes, *([self.warning] if self.warning else [])],
        }

    def write(self, table: Suite, rows: Sequence[SeedRow], facts: Mapping[str, Any]) -> tuple[str, Any]:
        """The table's files; its text, and what suite.json holds."""
        from oltr.suites.files import write_suite
        from oltr.suites.table import suite_table

        shown = suite_table(f"{table.name}: {table.about}", rows, table.columns, facts["notes"])
        return shown.text(), write_suite(self.into, shown, rows, table.columns, facts)

    def write_sweep(self, curves: Sequence[Curve], facts: Mapping[str, Any]) -> tuple[str, Any]:
        """The sweep's files; its table as text, and what sweep.json holds."""
        from oltr.suites.sweep_files import write_sweep
        from oltr.suites.sweep_table import sweep_table

        title, kind = f"{self.table.name}: {self.table.about}", str(self.table.sweep)
        facts = {**facts, "notes": [*_rule(self.table), *facts["notes"]]}
        shown = sweep_table(title, kind, curves, facts["notes"])
        return shown.text(), write_sweep(self.into, shown, kind, curves, facts)

    def tell(
        self, shown: str, everything: Any, failed: Sequence[str], console: Console, swept: bool = False
    ) -> int:
        """The result, where it is, and what failed; the exit code."""
        if self.as_json:
            print_json(everything)
        else:
            print(shown)
        from oltr.suites.files import BARS
        from oltr.suites.sweep_files import FILES

        drawn = [name for name in BARS if (self.into / name).is_file()]
        names = ["table.csv", "suite.json", *drawn, *(FILES if swept else ())]
        console.say(f"written: {self.into / 'table.md'}, {', '.join(names)}")
        for line in failed:
            console.warn(f"failed: {line}")
        return 1 if failed else 0


def _rule(table: Suite) -> list[str]:
    """How images are called unknown along the sweep, where it is not this that is swept."""
    if table.sweep == "threshold":
        return []
    rates = {row.unknown_rate for row in table.rows}
    rate = rates.pop() if len(rates) == 1 else None
    if rate is None:
        return ["Images are called unknown as in table.md."]
    return [f"The threshold calls at most {100 * rate:.1f} % of the known validation images unknown."]
