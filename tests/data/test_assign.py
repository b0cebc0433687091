import itertools
from collections import Counter

import numpy as np
import pytest

from oltr.data.assign import assign_groups


def missing(counts):
    return 100.0 * (not counts[0]) + 3.0 * sum(not each for each in counts[1:])


def slow_cost(labels, parts, shares):
    """The cost of a whole assignment, from its definition."""
    cost = 0.0
    for name in [*sorted(set(labels)), None]:
        own = [part for label, part in zip(labels, parts, strict=True) if name in (label, None)]
        counts = [own.count(part) for part in range(len(shares))]
        wanted = [share * len(own) for share in shares]
        cost += sum((a - b) ** 2 / (b * len(own)) for a, b in zip(counts, wanted, strict=True))
        cost += missing(counts)
    return cost


@pytest.mark.parametrize("seed", range(8))
def test_close_to_the_best_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    groups = [str(rng.integers(7)) for _ in range(40)]
    labels = [rng.choice(list("aaabbc")) for _ in range(40)]
    shares = (0.6, 0.2, 0.2)
    names = sorted(set(groups))
    costs = sorted(
        slow_cost(labels, [dict(zip(names, parts, strict=True))[group] for group in groups], shares)
        for parts in itertools.product(range(3), repeat=len(names))
    )
    ours = slow_cost(labels, assign_groups(labels, groups, shares, missing).tolist(), shares)
    assert ours <= costs[len(costs) // 100]  # among the best hundredth of them


def test_groups_stay_whole_and_shares_are_met():
    rng = np.random.default_rng(0)
    groups = [f"g{number}" for number in rng.integers(0, 200, 3000)]
    labels = [f"c{int(10 * value**2)}" for value in rng.random(3000)]
    parts = assign_groups(labels, groups, (0.6, 0.2, 0.2), missing)
    assert len({(group, part) for group, part in zip(groups, parts, strict=True)}) == len(set(groups))
    for name, size in Counter(labels).items():
        own = parts[np.array(labels) == name]
        np.testing.assert_allclose(np.bincount(own, minlength=3) / size, (0.6, 0.2, 0.2), atol=0.1)


def test_the_seed_alone_decides():
    rng = np.random.default_rng(0)
    groups = [f"g{number}" for number in rng.integers(0, 50, 300)]
    labels = [rng.choice(list("ab")) for _ in range(300)]
    order = rng.permutation(300)
    first = assign_groups(labels, groups, (0.5, 0.5), missing)
    mixed = assign_groups([labels[i] for i in order], [groups[i] for i in order], (0.5, 0.5), missing)
    assert (first[order] == mixed).all()
    assert (first != assign_groups(labels, groups, (0.5, 0.5), missing, seed=1)).any()
