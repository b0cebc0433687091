"""Open every image of a manifest and say what would stop or spoil training."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from oltr.data.images import NO_FILE, UnreadableImage, decode_image, read_bytes
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.wording import count, first_few

if TYPE_CHECKING:
    from oltr.data.items import Items

SMALL_SIDE = 16  # pixels; below it there is hardly a shape to learn
AT_A_TIME = 4096  # images handed to the threads at once, so that a million files cost no memory


@dataclass(frozen=True)
class Finding:
    """One kind of trouble, in words, and everything it concerns."""

    kind: str
    message: str
    items: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.message}: {first_few(self.items)}." if self.items else f"{self.message}."


@dataclass(frozen=True)
class CheckReport:
    """Problems (they stop or spoil training and its numbers) and warnings (legal, but look at them)."""

    images: int
    problems: tuple[Finding, ...]
    warnings: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        """Everything found, as plain lists and dicts."""

        def listed(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
            return [{"kind": f.kind, "message": f.message, "items": list(f.items)} for f in findings]

        return {"images": self.images, "problems": listed(self.problems), "warnings": listed(self.warnings)}

    def lines(self) -> list[str]:
        """What to print."""
        lines = [f"problem: {finding}" for finding in self.problems]
        lines += [f"warning: {finding}" for finding in self.warnings]
        verdict = "no problems" if not self.problems else count(len(self.problems), "problem")
        return [
            *lines,
            f"{count(self.images, 'image')} opened: {verdict}, {count(len(self.warnings), 'warning')}.",
        ]


class Row(NamedTuple):
    """One image of the manifest and what opening it told."""

    path: str
    label: str
    split: str
    failure: str = ""  # why it could not be read
    missing: bool = False
    content: bytes = b""  # a hash of its bytes
    side: int = 0  # its shorter side in pixels


def check(manifest: Manifest, progress: Callable[[int, int], None] | None = None) -> CheckReport:
    """Open every image; `progress(done, total)` is called now and then."""
    rows: list[Row] = []
    for row in _open_all(manifest):
        rows.append(row)
        if progress is not None and (len(rows) % 64 == 0 or len(rows) == len(manifest.table)):
            progress(len(rows), len(manifest.table))
    readable = [row for row in rows if not row.failure]
    copies = _copies(readable)
    problems = [*_broken(rows), *_leaks(copies), *_empty(manifest, readable), *_lone(manifest)]
    warnings = [*_repeats(copies), *_thin_classes(manifest, readable), *_small(readable)]
    return CheckReport(len(rows), tuple(problems), tuple(warnings))


def _open_all(manifest: Manifest) -> Iterator[Row]:
    table = manifest.table
    entries = [Row(*entry) for entry in zip(table["path"], table["label"], table["split"], strict=True)]
    if manifest.pack is not None:
        for row, image in zip(entries, open_pack(manifest.pack).images, strict=True):
            yield row._replace(content=_digest(image.tobytes()), side=len(image))
        return
    if manifest.items is not None:
        yield from (_opened_item(row, manifest.items) for row in entries)
        return
    with ThreadPoolExecutor() as threads:
        for start in range(0, len(entries), AT_A_TIME):
            yield from threads.map(
                lambda row: _opened(row, manifest.root), entries[start : start + AT_A_TIME]
            )


def _opened(row: Row, root: Path) -> Row:
    file = root / row.path
    try:
        content = read_bytes(file)
        _, size = decode_image(content, SMALL_SIDE, file)
    except FileNotFoundError:
        return row._replace(failure=NO_FILE, missing=True)
    except UnreadableImage as error:
        return row._replace(failure=error.reason)
    except OSError as error:
        return row._replace(failure=error.strerror or "it cannot be opened")
    return row._replace(content=_digest(content), side=min(size))


def _opened_item(row: Row, items: Items) -> Row:
    try:
        picture = items.picture(row.path)
        content = f"{picture.mode} {picture.size}".encode() + picture.tobytes()
    except UnreadableImage as error:
        return row._replace(failure=error.reason)
    return row._replace(content=_digest(content), side=min(picture.size))


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _copies(readable: list[Row]) -> list[list[Row]]:
    """Images with the same bytes, in groups of two or more."""
    groups: dict[bytes, list[Row]] = defaultdict(list)
    for row in readable:
        groups[row.content].append(row)
    return [group for group in groups.values() if len(group) > 1]


def _broken(rows: list[Row]) -> Iterator[Finding]:
    if missing := [row.path for row in rows if row.missing]:
        hint = " (is the image root right?)" if len(missing) == len(rows) else ""
        yield Finding("missing", f"{count(len(missing), 'file')} not there{hint}", tuple(missing))
    if broken := [f"{row.path} ({row.failure})" for row in rows if row.failure and not row.missing]:
        yield Finding("unreadable", f"{count(len(broken), 'unreadable file')}", tuple(broken))


def _leaks(copies: list[list[Row]]) -> Iterator[Finding]:
    across = [group for group in copies if len({row.split for row in group}) > 1]
    if across:
        items = tuple(" = ".join(f"{row.path} ({row.split})" for row in group) for group in across)
        yield Finding(
            "duplicates_across_splits", f"{count(len(across), 'image')} in more than one split", items
        )


def _repeats(copies: list[list[Row]]) -> Iterator[Finding]:
    within = [group for group in copies if len({row.split for row in group}) == 1]
    if within:
        items = tuple(" = ".join(row.path for row in group) for group in within)
        message = f"{count(len(within), 'image')} more than once in a split"
        yield Finding("duplicates_within_split", message, items)
    if torn := [group for group in copies if len({row.label for row in group}) > 1]:
        items = tuple(" = ".join(f"{row.path} ({row.label})" for row in group) for group in torn)
        yield Finding("conflicting_labels", f"{count(len(torn), 'image')} under two labels", items)


def _empty(manifest: Manifest, readable: list[Row]) -> Iterator[Finding]:
    trained = _per_class("train", readable)
    empty = [name for name in manifest.classes if not trained[name]]
    if empty and manifest.sizes()["train"]:
        yield Finding("empty_classes", f"{count(len(empty), 'class')} without a training image", tuple(empty))


def _lone(manifest: Manifest) -> Iterator[Finding]:
    # Without a train split the set is for evaluation, where one class will do.
    if manifest.sizes()["train"] and len(manifest.classes) == 1:
        message = "There is only one class, and recognition needs at least two"
        yield Finding("one_class", message, manifest.classes)


def _thin_classes(manifest: Manifest, readable: list[Row]) -> Iterator[Finding]:
    trained, tested = _per_class("train", readable), _per_class("test", readable)
    if not trained:
        message = "There are no training images: the set can be evaluated on, not trained on"
        yield Finding("no_train_images", message)
    if single := [name for name in manifest.classes if trained[name] == 1]:
        message = f"{count(len(single), 'class')} with a single training image"
        yield Finding("single_image_classes", message, tuple(single))
    if not tested:
        yield Finding("no_test_images", "There are no test images: nothing can be measured")
    elif untested := [name for name in manifest.classes if not tested[name]]:
        message = f"{count(len(untested), 'class')} without a test image"
        yield Finding("untested_classes", message, tuple(untested))


def _small(readable: list[Row]) -> Iterator[Finding]:
    if small := [row.path for row in readable if row.side < SMALL_SIDE]:
        message = f"{count(len(small), 'image')} smaller than {SMALL_SIDE} pixels"
        yield Finding("small_images", message, tuple(small))


def _per_class(split: str, readable: list[Row]) -> Counter[str]:
    """Readable images of each class in a split."""
    return Counter(row.label for row in readable if row.split == split)
