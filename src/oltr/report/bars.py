"""A class distribution drawn in characters, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_LEVELS = " ▁▂▃▄▅▆▇█"


def distribution_bars(counts: Sequence[int] | np.ndarray, width: int = 60, height: int = 5) -> str:
    """Training images per class, largest class left, as a block of bars with the axis values.

    >>> print(distribution_bars([8, 4, 2, 1], width=4, height=1))
             8 ┤█▄▂▁
             0 ┼──── 4 classes, largest first
    """
    ordered = np.sort(np.asarray(counts))[::-1]
    if not len(ordered) or not ordered[0]:
        return "          (no training images)"
    groups = np.array_split(ordered, min(width, len(ordered)))
    # A class with any image at all shows at least the thinnest bar.
    bars = [
        max(float(group.mean()) / ordered[0] * height * 8, 1.0 if group.any() else 0.0) for group in groups
    ]
    lines = []
    for level in range(height - 1, -1, -1):
        axis = f"{ordered[0]:>10,}" if level == height - 1 else " " * 10
        cells = "".join(_LEVELS[int(np.clip(round(bar - 8 * level), 0, 8))] for bar in bars)
        lines.append(f"{axis} ┤{cells}".rstrip())
    lines.append(f"{0:>10} ┼{'─' * len(groups)} {len(ordered):,} classes, largest first")
    return "\n".join(lines)
