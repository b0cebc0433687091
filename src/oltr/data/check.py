"""Open every image of a manifest and say what would stop or spoil training."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from oltr.data.alike import RESPLIT, Alike, alike_findings, find_alike
from oltr.data.finding import Finding
from oltr.data.groups import Groups, straddling
from oltr.data.manifest import Manifest
from oltr.data.opened import Row, open_all
from oltr.wording import count

SMALL_SIDE = 16  # pixels; below it there is hardly a shape to learn


@dataclass(frozen=True)
class CheckReport:
    """Problems (they stop or spoil training and its numbers) and warnings (legal, but look at them)."""

    images: int
    problems: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    near_duplicates: tuple[Alike, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything found, as plain lists and dicts."""

        def listed(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
            return [{"kind": f.kind, "message": f.message, "items": list(f.items)} for f in findings]

        return {
            "images": self.images,
            "problems": listed(self.problems),
            "warnings": listed(self.warnings),
            "near_duplicates": [pair.to_json() for pair in self.near_duplicates],
        }

    def lines(self) -> list[str]:
        """What to print."""
        lines = [f"problem: {finding}" for finding in self.problems]
        lines += [f"warning: {finding}" for finding in self.warnings]
        verdict = "no problems" if not self.problems else count(len(self.problems), "problem")
        return [
            *lines,
            f"{count(self.images, 'image')} opened: {verdict}, {count(len(self.warnings), 'warning')}.",
        ]


def check(
    manifest: Manifest,
    progress: Callable[[int, int], None] | None = None,
    groups: Groups | None = None,
) -> CheckReport:
    """Open every image and compare them; `progress(done, total)` is called now and then while opening.

    With `groups`, those that lie in more than one of train, val and test are told too.
    """
    rows = open_all(manifest, progress)
    readable = [row for row in rows if not row.failure]
    copies = _copies(readable)
    alike, complete = find_alike(readable)
    problems = [*_broken(rows), *_leaks(copies, manifest.split_made), *_torn_groups(manifest, groups)]
    problems += [*_empty(manifest, readable), *_lone(manifest)]
    warnings = [*_repeats(copies), *alike_findings(alike, complete, manifest.split_made), *_plain(readable)]
    warnings += [*_thin_classes(manifest, readable), *_small(readable)]
    return CheckReport(len(rows), tuple(problems), tuple(warnings), alike)


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


def _leaks(copies: list[list[Row]], split_made: bool) -> Iterator[Finding]:
    across = [group for group in copies if len({row.split for row in group}) > 1]
    if across:
        items = tuple(" = ".join(f"{row.path} ({row.split})" for row in group) for group in across)
        message = f"{count(len(across), 'image')} in more than one split"
        yield Finding("duplicates_across_splits", message, items, RESPLIT if split_made else "")


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


def _torn_groups(manifest: Manifest, groups: Groups | None) -> Iterator[Finding]:
    if groups is not None and (torn := straddling(manifest, groups)):
        items = tuple(f"{name} ({', '.join(splits)})" for name, splits in torn.items())
        message = f"{count(len(torn), 'group')} of {groups.by} in more than one of train, val and test"
        yield Finding("groups_across_splits", message, items)


def _plain(readable: list[Row]) -> Iterator[Finding]:
    if plain := [row.path for row in readable if row.look is not None and row.look.plain]:
        message = f"{count(len(plain), 'image')} of one plain colour, not compared with others"
        yield Finding("plain_images", message, tuple(plain))


def _small(readable: list[Row]) -> Iterator[Finding]:
    if small := [row.path for row in readable if row.side < SMALL_SIDE]:
        message = f"{count(len(small), 'image')} smaller than {SMALL_SIDE} pixels"
        yield Finding("small_images", message, tuple(small))


def _per_class(split: str, readable: list[Row]) -> Counter[str]:
    """Readable images of each class in a split."""
    return Counter(row.label for row in readable if row.split == split)
