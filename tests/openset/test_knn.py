import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from oltr.openset import knn
from tests.helpers.separable import fitted, outputs, separable, strangers


def loop(training, features, k):
    """Every distance between unit vectors, sorted; the k-th."""
    found = []
    for x in features.double():
        distances = []
        for z in training.features.double():
            distances.append(float((x / x.norm() - z / z.norm()).norm()))
        found.append(sorted(distances)[k - 1])
    return torch.tensor(found).double()


@pytest.mark.parametrize(("counts", "k"), [([9, 6, 3], 3), ([4, 1], 1), ([60, 55], 50), ([0, 5, 8], 5)])
def test_it_is_the_kth_distance_of_a_loop_and_k_is_the_smallest_class(counts, k):
    training, others = separable(counts, seed=0), strangers(6, len(counts), seed=1)
    score = fitted("knn", training)
    assert score.learned.k == k
    torch.testing.assert_close(
        score.value(*others.inputs), loop(training, others.features, k), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(("queries", "neighbours"), [(1, 1), (3, 4), (7, 100), (100, 3)])
def test_blocks_of_any_size_give_the_same(monkeypatch, queries, neighbours):
    monkeypatch.setattr(knn, "QUERIES", queries)
    monkeypatch.setattr(knn, "NEIGHBOURS", neighbours)
    training, others = separable([20, 10, 5], seed=0), strangers(17, 3, seed=1)
    units = (part.features / part.features.norm(dim=1, keepdim=True) for part in (training, others))
    search = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(next(units))
    expected = torch.from_numpy(search.kneighbors(next(units))[0][:, 4]).double()
    torch.testing.assert_close(fitted("knn", training).value(*others.inputs), expected, rtol=1e-5, atol=1e-6)


def test_length_does_not_matter_and_a_training_image_is_at_home():
    training = separable([1, 1, 1], seed=0)
    score = fitted("knn", training)
    assert score.value(*training.inputs).max() < 1e-6
    longer = outputs(torch.zeros(3, 3), features=7 * training.features)
    assert score.value(*longer.inputs).max() < 1e-6
