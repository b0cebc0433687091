"""Options that several verbs share, and printing of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import tyro

SOURCE = "a manifest, an image folder, a folder of list files, a pack, or package.module:dataset"

Source = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help=SOURCE)]
Run = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN", help="a run folder")]
Images = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="IMAGES [IMAGES ...]",
        help_behavior_hint="",
        help="files, folders, quoted globs, a table with a column `path`, a list (.txt), a pack, or -",
    ),
]
Json = Annotated[bool, tyro.conf.arg(name="json", help="print the result as JSON")]
Root = Annotated[Path | None, tyro.conf.arg(help="where relative paths of a manifest or of lists start")]
SkipBroken = Annotated[bool, tyro.conf.arg(help="leave out images that cannot be read, and name them")]
Score = Annotated[str | None, tyro.conf.arg(metavar="NAME")]
Epochs = Annotated[tuple[int, ...], tyro.conf.arg(metavar="N [N]")]
GroupBy = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="COLUMN",
        help="images that stay in one split: a column of the manifest, folder (inside class folders), or "
        "near-duplicates",
    ),
]
By = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="COLUMN")]


def print_json(value: Any) -> None:
    """A result for other programs, on standard output."""
    print(json.dumps(value, indent=1, ensure_ascii=False))
