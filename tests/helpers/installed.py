"""Packages that look installed: modules in a folder, and beside them what pip would note of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Groups = Mapping[str, Mapping[str, str]]


def installed(folder: Path, package: str, files: Mapping[str, str], groups: Groups) -> Path:
    """Write `files` and the entry points (group → name → value) of a package into a folder for sys.path."""
    notes = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in names.items()) for group, names in groups.items()
    ]
    everything = {
        **files,
        f"{notes.name}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        f"{notes.name}/entry_points.txt": "\n".join(lines),
    }
    for name, text in everything.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
