"""The split of data that have none, with all images of a group on one side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from oltr.data.assign import NEVER, assign_groups
from oltr.data.groups import KNOWN, Groups, find_groups, straddling
from oltr.data.manifest import Manifest
from oltr.data.split import MADE, TEST_SHARE, VAL_SHARE
from oltr.data.validate import natural_order
from oltr.errors import UserError
from oltr.wording import Caution, count, first_few

LARGE_GROUP = 0.2  # of all images: as many as a whole test split
SHARES = (1 - VAL_SHARE - TEST_SHARE, VAL_SHARE, TEST_SHARE)


def split_by_group(manifest: Manifest, by: str, seed: int = 0) -> Manifest:
    """The data with every group in one of train, val and test; a source's own splits are kept.

    Where these tear groups apart, that is refused. `by` is a column, `folder` or `near-duplicates`.
    """
    groups = find_groups(manifest, by)
    if manifest.split_made:
        return regrouped(manifest, groups, seed)
    if torn := straddling(manifest, groups):
        names = first_few(f"{name} ({', '.join(splits)})" for name, splits in torn.items())
        raise UserError(
            f"{count(len(torn), 'group')} of {by} in more than one split: {names}.",
            "The splits are the source's own, and they are kept.",
            "--folds 5, which pools them, or a source without splits",
        )
    note = f"The splits are the source's own; no group of {by} lies in more than one of train, val and test."
    return replace(manifest, notes=(*manifest.notes, note))


def regrouped(manifest: Manifest, groups: Groups, seed: int = 0) -> Manifest:
    """The known images split anew, about 60/20/20, group by group."""
    known = np.flatnonzero((manifest.table["split"] != "open").to_numpy())
    labels, names = manifest.table["label"].to_numpy()[known], groups.names[known]
    parts = assign_groups(labels, names, SHARES, _absence, seed)
    if not (parts == KNOWN.index("test")).any():
        raise UserError(
            f"No image can be set aside for testing when grouped by {groups.by}.",
            "Every group holds all images of one class or more, which training needs.",
            "another column to group by",
        )
    splits = manifest.table["split"].to_numpy(copy=True)
    splits[known] = np.array(KNOWN, dtype=object)[parts]
    sizes = np.bincount(parts, minlength=3) / len(parts)
    shares = ", ".join(f"{100 * size:.0f} % {split}" for size, split in zip(sizes, KNOWN, strict=True))
    number = len(np.unique(names))
    notes = [f"{MADE} by {groups.by}: {count(number, 'group')}, each in one split; {shares} (seed {seed})."]
    name, largest = Counter(names.tolist()).most_common(1)[0]
    if largest > LARGE_GROUP * len(names):
        share = 100 * largest / len(names)
        notes.append(Caution(f"One group, {name}, holds {share:.0f} % of the images, and stays whole."))
    if untested := natural_order(set(labels) - set(labels[parts == KNOWN.index("test")])):
        text = f"{count(len(untested), 'class')} without a test image, for want of a group to spare: "
        notes.append(Caution(f"{text}{first_few(untested)}."))
    return manifest.with_splits(splits, notes)


def _absence(counts: Sequence[int]) -> float:
    """A class must be trained; then it should be tested, then validated."""
    train, val, test = counts
    return NEVER * (not train) + 5.0 * (not val) + 10.0 * (not test)
