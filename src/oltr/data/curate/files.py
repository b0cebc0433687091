"""The image paths below a root, from a scan of the folder or from an index file."""

from __future__ import annotations

import os
from pathlib import Path

from oltr.console import Progress
from oltr.data.curate.benchmark import CurateOptions
from oltr.data.lists import list_lines
from oltr.data.scan import IMAGE_SUFFIXES, Scan
from oltr.errors import UserError
from oltr.wording import count, first_few

AT_A_TIME = 50_000  # lines of an index between two updates of the progress bar


def image_paths(options: CurateOptions, name: str, wanted: str, tops: tuple[str, ...] = ()) -> list[str]:
    """Sorted paths of all images relative to `options.root`; with an index no file is looked at.

    `tops` are the folders to look through, those that are there (all of the root where there are none);
    `wanted` says in words what the root should hold. What an earlier curation left in `options.out` is no
    part of it.
    """
    if options.index is not None:
        return read_index(options.index.expanduser(), options.root, options.progress)
    root = existing_root(options, name, wanted)
    below = [top for top in tops if (root / top).is_dir()]
    found = [path for top in below for path in scan(root, f"{top}/", options.progress)]
    if not below:
        found = scan(root, "", options.progress)
        out = options.out.expanduser().resolve()
        if out != root.resolve() and out.is_relative_to(root.resolve()):
            own = out.relative_to(root.resolve()).as_posix() + "/"
            found = [path for path in found if not path.startswith(own)]
    if not found:
        raise UserError(f"No images were found in {root}.", f"{name} is made from {wanted}.")
    return sorted(found)


def training_images(paths: list[str], train: tuple[str, ...], val: tuple[str, ...]) -> list[str]:
    """The images below the top folders called as in `train`; all where the root holds the class folders.

    A train or val folder further down is refused: validation images would be taken for training images.
    """
    inside = [path for path in paths if path.split("/", 1)[0] in train]
    if inside:
        return inside
    for path in paths:
        folders = path.split("/")[:-1]
        if found := next((name for name in folders if name in train + val), None):
            above = "/".join(folders[: folders.index(found)])
            raise UserError(
                f"The root has no {train[0]}/ at its top, but {found}/ holds images such as {path}.",
                "Training and validation images could not be told apart.",
                f"--root with its folder {above}" if above else f"{train[0]}/ with the training images",
            )
    return paths


def existing_root(options: CurateOptions, name: str, wanted: str) -> Path:
    """The root folder, which must be there."""
    if options.root is None:
        raise UserError(f"{name} is made from {wanted}.", try_this="--root with that folder")
    root = options.root.expanduser()
    if not root.is_dir():
        raise UserError(f"The folder {root} is not there.", f"{name} is made from {wanted}.")
    return root


def scan(root: Path, top: str, progress: Progress | None = None) -> list[str]:
    """Sorted paths of the images below root/top, relative to root; progress counts folders."""
    folder, look = root / top, Scan(root)
    inside = look.subfolders(folder)
    found = [top + name for name in look.loose_images(folder)]
    for done, name in enumerate(inside, start=1):
        found += [f"{top}{name}/{path}" for path in look.images(folder / name)]
        if progress is not None:
            progress(done, len(inside))
    return sorted(found)


def read_index(file: Path, root: Path | None = None, progress: Progress | None = None) -> list[str]:
    """Sorted image paths of an index, one relative path per line; lines that name other files are skipped."""
    lines = [line for _, line in list_lines(file, "index")]
    prefix = "" if root is None else f"{root.expanduser().absolute()}{os.sep}"
    paths: set[str] = set()
    for start in range(0, len(lines), AT_A_TIME):
        tidied = (_tidy(line, prefix) for line in lines[start : start + AT_A_TIME])
        paths.update(path for path in tidied if path.lower().endswith(IMAGE_SUFFIXES))
        if progress is not None:
            progress(min(start + AT_A_TIME, len(lines)), len(lines))
    if not paths:
        raise UserError(
            f"The index {file} names no images.", "It should have one relative path per line.", "find -type f"
        )
    if outside := sorted(path for path in paths if path.startswith(("/", "../")) or "/../" in path):
        raise UserError(
            f"The index {file} has {count(len(outside), 'path')} outside the root: {first_few(outside)}.",
            try_this="paths relative to --root",
        )
    return sorted(paths)


def _tidy(line: str, prefix: str) -> str:
    path = line
    if "\\" in path:
        path = path.replace("\\", "/")
    if prefix and path.startswith(prefix):
        path = path[len(prefix) :]
    if "//" in path or "/./" in path:
        path = os.path.normpath(path)
    return path[2:] if path.startswith("./") else path
