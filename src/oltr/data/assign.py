"""Whole groups of images dealt to parts of given shares, every class spread as its size wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

MOST_PASSES = 20
MOST_STARTS, GROUPS_IN_ALL = 40, 10_000  # few groups are dealt in many orders, many groups in one
NEVER = 1e6  # the cost of what must not be, if it can be helped

# Images of a class in each part → the cost of the parts that have none, whatever the others have.
Absence = Callable[[Sequence[int]], float]


def assign_groups(
    labels: Iterable[str], groups: Iterable[str], shares: Sequence[float], absence: Absence, seed: int = 0
) -> np.ndarray:
    """The part of each image (n,), the same for all of a group.

    Large groups first, each to the part where it costs least; then groups move as long as that helps. Other
    orders are tried too, and the best result is kept. The cost of a class is Σ (images − wanted)² / (wanted ·
    size) over the parts, plus its `absence`; all images together count as one more class.
    """
    groups = list(groups)
    sizes: dict[str, Counter[str | None]] = {}
    totals: Counter[str | None] = Counter()
    for label, group in zip(labels, groups, strict=True):
        held = sizes.setdefault(group, Counter())
        for name in (label, None):  # None: all images
            held[name] += 1
            totals[name] += 1
    rng, names = np.random.default_rng(seed), sorted(sizes)
    best, least = {}, np.inf
    for start in range(min(MOST_STARTS, 1 + GROUPS_IN_ALL // len(names))):
        drawn = [names[place] for place in rng.permutation(len(names))]
        if start == 0:
            drawn.sort(key=lambda name: -sizes[name][None])
        part, cost = _settle(drawn, sizes, _Dealt(totals, shares, absence))
        if cost < least - 1e-9:
            best, least = part, cost
    return np.array([best[group] for group in groups], dtype=np.int64)


def _settle(
    order: Sequence[str], sizes: Mapping[str, Counter[str | None]], dealt: _Dealt
) -> tuple[dict[str, int], float]:
    """The part of each group, placed in this order and moved until no move helps, and what it costs."""
    part = {name: dealt.place(sizes[name]) for name in order}
    for _ in range(MOST_PASSES):
        before = dict(part)
        for name in order:
            dealt.take(sizes[name], part[name])
            part[name] = dealt.place(sizes[name], part[name])
        if part == before:
            break
    return part, dealt.cost()


class _Dealt:
    """Images of each class in each part so far, and what one more group would cost."""

    def __init__(self, totals: Counter[str | None], shares: Sequence[float], absence: Absence):
        self.totals, self.shares, self.absence = totals, shares, absence
        self.counts = {name: [0] * len(shares) for name in totals}

    def place(self, held: Counter[str | None], at: int = 0) -> int:
        """Put a group where it costs least, at `at` among equals; returns the part."""
        costs = [self._cost(held, part) for part in range(len(self.shares))]
        best = min(range(len(costs)), key=lambda part: (costs[part], part))
        best = at if costs[at] <= costs[best] + 1e-9 else best
        for name, number in held.items():
            self.counts[name][best] += number
        return best

    def take(self, held: Counter[str | None], part: int) -> None:
        """Take a group out of its part."""
        for name, number in held.items():
            self.counts[name][part] -= number

    def cost(self) -> float:
        """What all classes cost now."""
        return sum(
            self.absence(counts)
            + sum(
                (have / total - share) ** 2 / share for have, share in zip(counts, self.shares, strict=True)
            )
            for counts, total in ((self.counts[name], self.totals[name]) for name in self.totals)
        )

    def _cost(self, held: Counter[str | None], part: int) -> float:
        """What the group adds to the cost of its classes in that part."""
        cost = 0.0
        for name, number in held.items():
            counts, total = self.counts[name], self.totals[name]
            wanted = self.shares[part] * total
            cost += number * (2 * counts[part] + number - 2 * wanted) / (wanted * total)
            if not counts[part]:  # only then does a part cease to be empty
                before = self.absence(counts)
                counts[part] = number
                cost += self.absence(counts) - before
                counts[part] = 0
        return cost
