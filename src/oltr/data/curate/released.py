"""A benchmark exactly as its authors released it: from list files, one `path label` per line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from oltr.data.curate.benchmark import Curated, CurateOptions
from oltr.data.curate.files import existing_root, read_index
from oltr.data.curate.published import Published
from oltr.data.lists import find_lists, list_rows
from oltr.data.manifest import Manifest
from oltr.data.validate import SPLITS, UNNAMED
from oltr.errors import UserError
from oltr.wording import Caution, count, first_few


def curate_lists(
    options: CurateOptions,
    name: str,
    source: str,
    wanted: str,
    published: Published,
    class_of: Callable[[str], str],
    elsewhere: Callable[[str], tuple[str, ...]],
) -> Curated:
    """Exactly the listed images; see `released_table` and `place` for the two functions."""
    options.allow(name, "root", "lists", "index", "open_root", "size")
    listed, class_notes = released_table(options, class_of)
    table, root, notes = place(listed, options, name, wanted, elsewhere)
    return Curated(
        name=name,
        manifest=Manifest.build(table, root, (*class_notes, *notes)),
        source=f"{source}, {options.root or options.index}",
        recipe=(f"Exactly the lists in {options.lists}.",),
        published=published.facts,
        remarks=published.remarks,
        pack_size=options.size or 256,
        pack_resize="short-side",
    )


def listed_files(folder: Path) -> dict[str, Path]:
    """The lists of a folder by split; there must be one."""
    folder = folder.expanduser()
    if not folder.is_dir():
        raise UserError(f"The folder of lists {folder} is not there.")
    lists = find_lists(folder)
    if not lists:
        raise UserError(
            f"{folder} holds no list.", "Lists are called *_train.txt, *_val.txt, *_test.txt, *_open.txt."
        )
    return lists


def released_table(
    options: CurateOptions, class_of: Callable[[str], str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The lists as rows path, label, split, and notes; `class_of` reads a class from a training path."""
    assert options.lists is not None
    rows: list[tuple[str, int, str]] = []
    for split, file in sorted(listed_files(options.lists).items(), key=lambda entry: SPLITS.index(entry[0])):
        rows += [(path, label, split if label >= 0 else "open") for path, label in list_rows(file, split)]
    names, notes = _class_names(rows, class_of)
    folders = {class_of(path) for path, _, split in rows if split == "open"}
    if clash := sorted(folders & set(names.values())):
        raise UserError(
            f"The lists have {count(len(clash), 'class')} both known and open: {first_few(clash)}.",
            "Open images must show what training never saw.",
        )
    columns = [(path, names.get(label, str(label)), split) for path, label, split in rows]
    table = pd.DataFrame(columns, columns=["path", "label", "split"])
    table.loc[table["split"] == "open", "label"] = UNNAMED
    return table, notes


def _class_names(
    rows: Sequence[tuple[str, int, str]], class_of: Callable[[str], str]
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Class number → folder name, and notes; the numbers stay where the two are not one to one."""
    pairs = {(label, class_of(path)) for path, label, split in rows if split in ("train", "val")}
    names = dict(pairs)
    numbers = {label for _, label, split in rows if split != "open"}
    if "" in names.values() or not numbers <= set(names):
        return {}, ()
    if not len(pairs) == len(names) == len(set(names.values())):
        text = f"{len(names):,} class numbers stand for {len(set(names.values())):,} folders in the lists"
        return {}, (Caution(f"{text}, not one for one: classes are called by their numbers."),)
    return names, ()


def place(
    table: pd.DataFrame,
    options: CurateOptions,
    name: str,
    wanted: str,
    elsewhere: Callable[[str], tuple[str, ...]] = lambda path: (),
) -> tuple[pd.DataFrame, Path, tuple[str, ...]]:
    """The table with paths that lead to files, the image root, and notes.

    Open images start at `open_root` where it is given. Listed files must be there; with an index, which
    stands for the files, those that it does not name are only noted. `elsewhere` gives the other places
    where a listed file may lie.
    """
    if table.empty:
        raise UserError(f"The lists in {options.lists} are empty.")
    table = table.copy()
    if options.open_root is not None:
        start = options.open_root.expanduser().absolute()
        is_open = table["split"] == "open"
        if not is_open.any():
            raise UserError(
                f"The lists in {options.lists} name no open images, so {options.open_root} is of no use.",
                try_this="a list *_open.txt among them, or leave --open-root out",
            )
        table.loc[is_open, "path"] = [str(start / path) for path in table.loc[is_open, "path"]]
    if options.index is not None:
        return table, options.image_root, _not_in_index(table, options)
    root = existing_root(options, name, wanted)
    table["path"] = _existing(root, list(table["path"]), elsewhere, options)
    return table, root, ()


def _not_in_index(table: pd.DataFrame, options: CurateOptions) -> tuple[str, ...]:
    assert options.index is not None
    known = set(read_index(options.index.expanduser(), options.root, options.progress))
    absent = [path for path in table["path"] if path not in known and not Path(path).is_absolute()]
    if not absent:
        return ()
    return (Caution(f"The index lacks {count(len(absent), 'listed file')}: {first_few(absent)}."),)


def _existing(
    root: Path, paths: list[str], elsewhere: Callable[[str], tuple[str, ...]], options: CurateOptions
) -> list[str]:
    found: list[str] = []
    absent: list[str] = []
    for done, path in enumerate(paths, start=1):
        here = (place for place in (path, *elsewhere(path)) if (root / place).is_file())
        place = next(here, None)
        if place is None:
            absent.append(path)
        else:
            found.append(place)
        if options.progress is not None:
            options.progress(done, len(paths))
    if absent:
        raise UserError(
            f"Not there: {len(absent):,} of {count(len(paths), 'listed file')}, {first_few(absent)}.",
            f"Looked in {root}" + (f" and {options.open_root}." if options.open_root is not None else "."),
            "--root (for open images: --open-root) with the folder that the listed paths start from, "
            "or --index FILE to curate without looking at files",
        )
    return found
