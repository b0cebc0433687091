"""Options and result of curating a benchmark, and the registry of benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from oltr.console import Progress
from oltr.data.manifest import Manifest
from oltr.data.pack import check_size
from oltr.errors import UserError
from oltr.registry import Registry


@dataclass(frozen=True)
class CurateOptions:
    """What `oltr data curate NAME` was given; a benchmark refuses options that it has no use for."""

    out: Path
    root: Path | None = None  # the original images
    lists: Path | None = None  # released list files
    index: Path | None = None  # a list of paths instead of scanning
    order: Path | None = None  # classes from the largest to the smallest
    open_root: Path | None = None  # images of no known class
    imbalance: float | None = None  # of an exponential profile
    alpha: float | None = None  # of a Pareto profile
    size: int | None = None  # pixels a side
    seed: int = 0
    progress: Progress | None = None
    open_images: str | None = None  # how they are made from larger originals

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"The seed {self.seed} is negative.", try_this="a seed of 0 or more")
        if self.size is not None:
            check_size(self.size)

    @property
    def image_root(self) -> Path:
        """Where relative paths start: with an index alone at the out folder, until `--root` is given."""
        return (self.out if self.root is None else self.root).expanduser()

    def allow(self, name: str, *allowed: str) -> None:
        """Refuse a given option that benchmark `name` would silently ignore."""
        for option in fields(self):
            free = option.name in ("out", "seed", "progress", *allowed)
            if not free and getattr(self, option.name) is not None:
                flag = "--" + option.name.replace("_", "-")
                raise UserError(f"The benchmark {name} takes no {flag}.", try_this="leave it out")


@dataclass(frozen=True)
class Curated:
    """A curated set: its manifest, how it came about, and pictures still to be written."""

    name: str
    manifest: Manifest
    source: str  # where the images come from
    recipe: tuple[str, ...]  # how they were chosen, in sentences
    seed: int | None = None  # None where nothing is drawn at random
    published: Mapping[str, Any] = field(default_factory=dict)  # known facts, in the shape of `stats`
    remarks: tuple[str, ...] = ()  # on the comparison with the published facts
    pictures: Mapping[str, np.ndarray] = field(default_factory=dict)  # path in the out folder -> H × W × 3
    pack_size: int = 256  # pixels a side of a pack, unless asked otherwise
    pack_resize: str = "stretch"  # how its pictures become squares


CURATORS: Registry[Callable[[CurateOptions], Curated]] = Registry("benchmark")
