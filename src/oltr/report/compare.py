"""The reports of several run folders, each under a name that tells it from the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from oltr.errors import UserError
from oltr.runs.report import Report


def load_reports(run_folders: Iterable[str | Path]) -> dict[str, Report]:
    """Name → report in the order given; the name is the folder's, with as many parents as keep it unique."""
    folders = list(dict.fromkeys(Path(folder).resolve() for folder in run_folders))
    if not folders:
        raise UserError("No run folder was given.", try_this="oltr compare runs/a runs/b")
    return {name: _load(folder) for name, folder in zip(_names(folders), folders, strict=True)}


def _names(folders: list[Path]) -> list[str]:
    """The shortest ends of the paths that are all different; a folder whose own name is unique keeps it."""
    depth = dict.fromkeys(folders, 1)
    while True:
        names = {folder: str(Path(*folder.parts[-depth[folder] :])) for folder in folders}
        taken = list(names.values())
        equal = [folder for folder in folders if taken.count(names[folder]) > 1]
        if not equal:
            return taken
        for folder in equal:
            depth[folder] += 1


def _load(folder: Path) -> Report:
    if not folder.exists():
        raise UserError(f"There is no run folder {folder}.", try_this="the --out folder of oltr train")
    if (folder / "report.json").is_file():
        return Report.load(folder / "report.json")
    if (folder / "run.yaml").is_file():
        raise _no_report(folder)
    inside = sorted(str(path.parent) for path in folder.glob("*/report.json")) if folder.is_dir() else []
    raise UserError(
        f"{folder} is not a run folder.",
        "It holds neither report.json nor run.yaml.",
        f"the runs inside it: {' '.join(inside)}" if inside else "the --out folder of oltr train",
    )


def _no_report(folder: Path) -> UserError:
    """What to do about a run without a report."""
    from oltr.runs.trained_run import TrainedRun  # loads torch

    _ = TrainedRun(folder).outputs["test"]  # says what is missing of a run that was not tested
    return UserError(f"The run {folder} has no report.json.", try_this=f"oltr evaluate {folder}")
