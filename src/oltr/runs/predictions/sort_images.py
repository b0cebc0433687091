"""Images copied or linked into a folder for each class, the unknown ones into `unknown`."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.console import console
from oltr.errors import UserError
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

UNKNOWN = "unknown"
LONGEST = 200  # bytes of a name; file systems have 255, and a number may follow


def sort_images(
    rows: Iterable[dict[str, Any]], folder: Path, classes: Sequence[str], link: bool, total: int
) -> int:
    """Put each image with an answer into its folder; how many. What is there already stays as it is.

    That images of an earlier sort lie in other folders, too, is told.
    """
    places, done, elsewhere = class_folders(classes), 0, 0
    before = _files_by_name(folder)
    with console.progress("sorting") as progress:
        for number, row in enumerate(rows, start=1):
            progress(number, total)
            if row["error"]:
                continue
            source = Path(row["path"])
            target = folder / (UNKNOWN if row["unknown"] else places[row["label"]])
            try:
                target.mkdir(parents=True, exist_ok=True)
                done += (_linked if link else _copied)(source, target)
                others = (there for there in before.get(source.name, ()) if there.parent != target)
                elsewhere += any(_same_image(source, there) for there in others)
            except FileNotFoundError:
                console.warn(f"{source} is gone and was not sorted")
            except OSError as problem:
                raise UserError(
                    f"{source} could not be put into {target}: {problem.strerror}.",
                    try_this="a folder with room that you may write to, then the same command again",
                ) from problem
    if elsewhere:
        console.warn(
            f"{count(elsewhere, 'image')} also in another folder of {folder}, from an earlier sort; "
            "a new folder has the answers of now alone"
        )
    return done


def check_sort_folder(folder: Path, run: TrainedRun) -> None:
    """Refuse the folder of the run's own images: answers must not become training images."""
    own = run.folder.run().get("source")
    if not own or not Path(own).is_dir():
        return
    here, images = folder.expanduser().resolve(), Path(own).resolve()
    if here == images or images in here.parents:
        raise UserError(
            f"--sort {folder} is in the folder that {run.name} was trained on.",
            "Answers would be taken for labels when it is trained again.",
            "a folder of its own",
        )


def class_folders(classes: Sequence[str]) -> dict[str, str]:
    """A folder's name for each class: its own where that is safe, never that of another one or `unknown`."""
    taken, folders = {UNKNOWN}, {}
    for name in classes:
        folder = plain = _safe(name)
        number = 2
        while folder.casefold() in taken:
            folder, number = f"{plain}_{number}", number + 1
        taken.add(folder.casefold())
        folders[name] = folder
    return folders


def _safe(name: str) -> str:
    """A class name without what means something to a file system."""
    plain = re.sub(r'[/\\:*?"<>|\x00-\x1f]', "_", name).strip(" .")
    return plain.encode()[:LONGEST].decode(errors="ignore") or "_"


def _files_by_name(folder: Path) -> dict[str, list[Path]]:
    """What lies in the folders of a folder, by name."""
    files: dict[str, list[Path]] = {}
    for file in folder.glob("*/*") if folder.is_dir() else ():
        files.setdefault(file.name, []).append(file)
    return files


def _same_image(source: Path, there: Path) -> bool:
    """Whether a file or link is the image; one that has gone since is not."""
    try:
        return there.samefile(source) or filecmp.cmp(source, there, shallow=False)
    except OSError:
        return False


def _copied(source: Path, folder: Path) -> int:
    target = _free_name(source, folder, lambda there: filecmp.cmp(source, there, shallow=False))
    if not target.exists():
        part = folder / f".{target.name}.part"  # of this name alone: a stopped copy is written over
        shutil.copy2(source, part)
        part.replace(target)
    return 1


def _linked(source: Path, folder: Path) -> int:
    real = source.absolute()
    real.stat()  # a link to nothing helps nobody
    target = _free_name(source, folder, lambda there: there.is_symlink() and there.readlink() == real)
    if not target.is_symlink():
        target.symlink_to(real)
    return 1


def _free_name(source: Path, folder: Path, is_it: Any) -> Path:
    """The image's own name, or with a number where another file has that; a file that is the image fits."""
    number, target = 2, folder / source.name
    while os.path.lexists(target) and not is_it(target):
        target, number = folder / f"{source.stem}_{number}{source.suffix}", number + 1
    return target
