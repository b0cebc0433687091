"""The plan of `oltr suite --dry-run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.cli.options import print_json

if TYPE_CHECKING:
    from oltr.suites.plan import Run


def tell_plan(parts: Sequence[tuple[Sequence[Run], Path]], out: Path, as_json: bool) -> None:
    """Each run with its epochs, its state, and where its stage 1 comes from; parts are runs in one folder."""
    from oltr.wording import count

    plan = [entry for runs, folder in parts for entry in _entries(runs, folder, out)]
    if as_json:
        print_json({"out": str(out), "runs": plan})
        return
    width = max(len(entry["run"]) for entry in plan)
    for entry in plan:
        epochs = " + ".join(map(str, entry["epochs"]))
        shared = f"stage 1 from {entry['stage1_from']}" if entry["stage1_from"] else "a stage 1 of its own"
        print(f"{entry['run']:<{width}}  {epochs:>9} epochs, {entry['state']}, {shared}")
    print(f"{count(len(plan), 'run')}, into {out}")


def _entries(runs: Sequence[Run], folder: Path, out: Path) -> list[dict[str, Any]]:
    from oltr.suites.plan import finished, stage1_givers
    from oltr.training.run_folder import RunFolder

    givers, plan = stage1_givers(runs, folder), []
    for run in runs:
        begun = RunFolder(folder / run.name).last.is_file()
        state = "finished" if finished(run, folder) else "goes on" if begun else "new"
        giver = givers[run]
        shared = None if giver is run else (folder / giver.name).relative_to(out).as_posix()
        stages = [run.config.stage(number).epochs for number in range(1, run.config.num_stages + 1)]
        name = (folder / run.name).relative_to(out).as_posix()
        plan.append({"run": name, "epochs": stages, "stage1_from": shared, "state": state})
    return plan
