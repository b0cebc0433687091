"""The embedded data set: characters of many scripts, long-tailed and open, drawn when needed."""

from __future__ import annotations

import unicodedata
import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from oltr.console import Progress
from oltr.data.curate.glyph_drawing import DEFAULT_VARIETY, Variety, draw_glyph
from oltr.data.longtail import pareto_counts
from oltr.data.validate import SPLITS
from oltr.errors import UserError

# No two of these look alike in any font used, once size, position and a slight turn are ignored: of c/C,
# o/0/О and their kind one or none is here. The tests measure it; whoever adds a character runs them.
CHARACTERS = "".join(
    (
        "aABbCDdEefgHiJKkMmNPQRSTtVwXYZÆŒÞɮ",
        "2347",
        "αζηλμςψωΓΞΦ",
        "ДЖЙЛЦЧЩЫЭЮЯЂЉѢѪѮҚ",
        "ԳԶԷԹԽԾԿՀՁՃՄՇՊՎՔՖխչջֆև",
        "ადეკლრტფშჩჯჰ",
        "אבגדהלמעפצקרש",
        "بجدسطعفقكمنوي",
        "ຂຈຍຕຜມຣລສຫ",
        "&@#$%?€£§¶∑√∞≈≠±⊕∅♪☆",
    )
)

SMALLEST_SIZE = 16


@dataclass(frozen=True)
class GlyphSet:
    """Pictures (N × S × S × 3, uint8) and their table (path, label, split), row i for picture i."""

    images: np.ndarray
    table: pd.DataFrame


def make_glyphs(
    *,
    size: int = 32,
    seed: int = 0,
    known: int = 100,
    open_classes: int = 40,
    largest: int = 280,
    smallest: int = 5,
    alpha: float = 6.0,
    val_per_class: int = 10,
    test_per_class: int = 20,
    open_per_class: int = 20,
    variety: Variety = DEFAULT_VARIETY,
    progress: Progress | None = None,
) -> GlyphSet:
    """Draw the whole set: a long-tailed train split, balanced val and test, and classes never trained on."""
    if size < SMALLEST_SIZE:
        raise UserError(
            f"Pictures of {size} pixels are too small.",
            "The characters could no longer be told apart.",
            f"a size of {SMALLEST_SIZE} or more",
        )
    known_names, open_names = glyph_classes(known, open_classes, seed)
    per_class = {"val": val_per_class, "test": test_per_class, "open": open_per_class}
    for split, count in per_class.items():
        if count < 0:
            raise UserError(
                f"{count} images per class in split {split!r} is out of range.", try_this="0 or more"
            )
    plan = _plan(known_names, open_names, pareto_counts(known, largest, smallest, alpha), per_class)
    images = np.empty((len(plan), size, size, 3), dtype=np.uint8)
    characters = {class_name(character): character for character in CHARACTERS}
    for row, (split, name, index) in enumerate(plan):
        images[row] = draw_glyph(characters[name], size, _image_rng(seed, split, name, index), variety)
        if progress is not None:
            progress(row + 1, len(plan))
    return GlyphSet(images, _table(plan))


def glyph_classes(known: int = 100, open_classes: int = 40, seed: int = 0) -> tuple[list[str], list[str]]:
    """The names of the known classes, largest first, and of the open ones: a seeded draw across scripts."""
    if seed < 0:
        raise UserError(f"The seed {seed} is negative.", try_this="a seed of 0 or more")
    if known < 1 or open_classes < 0:
        raise UserError(
            f"{known} known and {open_classes} open classes make no data set.",
            try_this="at least one known class and no fewer than 0 open ones",
        )
    if known + open_classes > len(CHARACTERS):
        raise UserError(
            f"{known} known and {open_classes} open classes need {known + open_classes} characters.",
            f"There are {len(CHARACTERS)} that look clearly different.",
            f"known + open classes of {len(CHARACTERS)} or fewer",
        )
    order = np.random.default_rng(seed).permutation(len(CHARACTERS))
    names = [class_name(CHARACTERS[position]) for position in order]
    return names[:known], names[known : known + open_classes]


def class_name(character: str) -> str:
    """A readable name that is safe as a folder: `a` is latin-small-a."""
    words = unicodedata.name(character).lower().replace("-", " ").split()
    return "-".join(word for word in words if word not in ("letter", "sign"))


def _plan(
    known: list[str], open_names: list[str], train_counts: np.ndarray, per_class: dict[str, int]
) -> list[tuple[str, str, int]]:
    """(split, class, index) of every picture, in the order of the table."""
    plan: list[tuple[str, str, int]] = []
    for split in SPLITS:
        for position, name in enumerate(open_names if split == "open" else known):
            count = int(train_counts[position]) if split == "train" else per_class[split]
            plan.extend((split, name, index) for index in range(count))
    return plan


def _image_rng(seed: int, split: str, name: str, index: int) -> np.random.Generator:
    """A picture's own random numbers, so that it stays the same whatever else is drawn."""
    return np.random.default_rng([seed, SPLITS.index(split), zlib.crc32(name.encode()), index])


def _table(plan: list[tuple[str, str, int]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "path": [f"{split}/{name}/{index:05d}.png" for split, name, index in plan],
            "label": [name for _, name, _ in plan],
            "split": [split for split, _, _ in plan],
        }
    )
