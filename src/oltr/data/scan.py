"""What lies in a folder: images, folders, files of kinds that are not read, links that lead out of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from oltr.data.heif import SUFFIXES as HEIF_SUFFIXES
from oltr.errors import UserError
from oltr.files import is_utf8
from oltr.wording import Caution, count, first_few

IMAGE_SUFFIXES = (
    *(".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm"),
    *HEIF_SUFFIXES,
)
# Notes beside images and files of the system, with hidden ones: nobody misses them.
SIDECARS = (".txt", ".json", ".xml", ".csv", ".md", ".yaml", ".yml", ".xmp", ".aae", ".db", ".ini")

Identity = tuple[int, int]  # of a folder, by whatever path it is reached


class Scan:
    """A look through a folder that counts what it passes over; each file is looked at once."""

    def __init__(self, root: str | Path):
        self.root, self.real_root = Path(root), os.path.realpath(root)
        self.other_files: Counter[str] = Counter()  # by suffix
        self.sidecars = 0
        self.links_out: set[str] = set()

    def subfolders(self, folder: Path) -> list[str]:
        """Sorted names of the folders in a folder; hidden ones are skipped."""
        with _entries(folder) as entries:
            return sorted(_utf8(entry.name, folder) for entry in entries if self._is_folder(entry))

    def loose_images(self, folder: Path) -> list[str]:
        """Sorted names of the images that lie in a folder itself."""
        with _entries(folder) as entries:
            files = [entry for entry in entries if not _is_directory(entry)]
            return sorted(_utf8(entry.name, folder) for entry in files if self._is_image(entry))

    def images(self, folder: Path) -> list[str]:
        """Sorted paths, relative to `folder`, of all images below it; hidden names are skipped."""
        above = [parent for parent in folder.parents if parent.is_relative_to(self.root)]
        return sorted(self._walk(folder, "", tuple(map(_identity, above))))

    def notes(self) -> list[str]:
        """What was not read, and what lies elsewhere."""
        kinds = [f"{number:,} {suffix}" for suffix, number in self.other_files.most_common()]
        parts = [first_few(kinds, 8)] if kinds else []
        parts += [count(self.sidecars, "sidecar file")] if self.sidecars else []
        notes = []
        if parts:
            text = f"Not read: {'; '.join(parts)}."
            notes.append(Caution(text) if kinds else text)
        if links := len(self.links_out):
            verb = "leads" if links == 1 else "lead"
            notes.append(f"{count(links, 'symbolic link')} {verb} out of the folder; images there are read.")
        return notes

    def _walk(self, folder: Path | str, prefix: str, above: tuple[Identity, ...]) -> Iterator[str]:
        """Images below a folder; a link back to a folder above (a loop) is not entered."""
        here = _identity(folder)
        if here in above:
            return
        with _entries(folder) as entries:
            for entry in entries:
                if self._is_folder(entry):
                    yield from self._walk(entry.path, f"{prefix}{_utf8(entry.name, folder)}/", (*above, here))
                elif not _is_directory(entry) and self._is_image(entry):
                    yield prefix + _utf8(entry.name, folder)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        found = not entry.name.startswith(".") and _is_directory(entry)
        if found:
            self._count_link(entry)
        return found

    def _is_image(self, entry: os.DirEntry[str]) -> bool:
        """Whether a file is one; others are counted."""
        suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 - a million names
        if entry.name.startswith(".") or suffix in SIDECARS:
            self.sidecars += 1
        elif suffix in IMAGE_SUFFIXES:
            self._count_link(entry)
            return True
        else:
            self.other_files[suffix or "without a suffix"] += 1
        return False

    def _count_link(self, entry: os.DirEntry[str]) -> None:
        if entry.is_symlink() and not Path(os.path.realpath(entry.path)).is_relative_to(self.real_root):
            self.links_out.add(entry.path)


def find_images(folder: Path) -> list[str]:
    """Sorted paths, relative to `folder`, of all images below it; hidden names are skipped."""
    return Scan(folder).images(folder)


def _entries(folder: str | Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    try:
        return os.scandir(folder)
    except OSError as error:
        raise UserError(f"The folder {folder} cannot be read: {error.strerror}.") from None


def _identity(folder: str | Path) -> Identity:
    status = Path(folder).stat()
    return status.st_dev, status.st_ino


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _utf8(name: str, folder: str | Path) -> str:
    if not is_utf8(name):
        raise UserError(f"A name in {folder} is not valid UTF-8: {name!a}.", try_this="rename it")
    return name
