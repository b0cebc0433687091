import subprocess
import sys

import numpy as np
import pytest

from oltr.errors import UserError
from oltr.metrics.shots import shot_groups, shot_sizes


def test_edges_of_both_rules():
    counts = [0, 1, 19, 20, 21, 99, 100, 101, 1280]
    assert shot_groups(counts).tolist() == ["few"] * 3 + ["medium"] * 4 + ["many"] * 2
    assert shot_groups(counts, "released").tolist() == ["few"] * 4 + ["medium"] * 2 + ["many"] * 3


@pytest.mark.parametrize(("imbalance", "sizes"), [(100, (35, 35, 30)), (50, (41, 41, 18)), (10, (69, 31, 0))])
def test_cifar100_lt(imbalance, sizes):
    counts = [int(500 * imbalance ** (-c / 99)) for c in range(100)]
    assert tuple(shot_sizes(counts).values()) == sizes


def test_sizes_keep_their_order_and_empty_groups():
    assert list(shot_sizes(np.array([5])).items()) == [("many", 0), ("medium", 0), ("few", 1)]


def test_unknown_rule_is_answered_with_the_nearest():
    with pytest.raises(UserError, match="did you mean released"):
        shot_groups([1], "release")


@pytest.mark.parametrize("counts", [[[1, 2]], [0.5], 3])
def test_counts_must_be_a_list_of_whole_numbers(counts):
    with pytest.raises(UserError, match="whole number"):
        shot_groups(counts)


def test_needs_no_torch():
    command = "import sys, oltr.metrics.shots, oltr.report.compare; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command]).returncode == 0
