import numpy as np
import pytest

from oltr.data.longtail import exponential_counts, pareto_counts
from oltr.errors import UserError
from oltr.metrics.shots import shot_sizes


@pytest.mark.parametrize(
    ("imbalance", "total", "smallest", "groups"),
    [(100, 10_847, 5, (35, 35, 30)), (50, 12_608, 10, (41, 41, 18)), (10, 19_573, 50, (69, 31, 0))],
)
def test_exponential_gives_the_published_cifar_counts(imbalance, total, smallest, groups):
    counts = exponential_counts(100, 500, imbalance)
    assert (counts.sum(), counts[0], counts[-1]) == (total, 500, smallest)
    assert tuple(shot_sizes(counts).values()) == groups


def test_pareto_is_near_imagenet_lt():
    counts = pareto_counts(1000, 1280, 5)
    assert (counts[0], counts[-1]) == (1280, 5)
    assert counts.sum() == 112_235  # the released draw has 115,846
    assert (np.diff(counts) <= 0).all()


def test_pareto_at_the_settings_of_places_lt_is_near_the_papers_size():
    assert pareto_counts(365, 4980, 5).sum() == 197_294  # the paper says 184.5K, its lists hold 62,500


def test_a_heavier_tail_has_fewer_images():
    totals = [pareto_counts(200, 1000, 5, alpha).sum() for alpha in (1, 3, 6, 20)]
    assert totals == sorted(totals)


@pytest.mark.parametrize(
    "profile", [pareto_counts, lambda k, high, low: exponential_counts(k, high, high / low)]
)
def test_one_and_two_classes(profile):
    assert profile(1, 50, 5).tolist() == [50]
    assert profile(2, 50, 5).tolist() == [50, 5]


def test_senseless_sizes_are_refused():
    for bad in [(0, 10, 1), (5, 1, 10), (5, 10, 0)]:
        with pytest.raises(UserError):
            pareto_counts(*bad)
    for alpha in (0, -1, float("nan"), float("inf"), 1e-3, 1e300):
        with pytest.raises(UserError, match="Pareto alpha"):
            pareto_counts(5, 10, 1, alpha)
    with pytest.raises(UserError, match="imbalance"):
        exponential_counts(5, 10, 0.5)
