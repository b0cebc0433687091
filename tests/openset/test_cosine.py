import pytest
import torch

from tests.helpers.separable import fitted, separable, strangers


@pytest.mark.parametrize("counts", [[50, 20, 5], [3, 2, 1], [2, 0, 2]])
def test_it_is_the_largest_cosine_of_a_loop(counts):
    training, others = separable(counts, seed=0), strangers(8, len(counts), seed=1)
    x = training.features.double()
    means = [x[training.labels == k].mean(dim=0) for k in range(len(counts)) if counts[k]]
    rows = others.features.double()
    expected = [max(float(row @ m / row.norm() / m.norm()) for m in means) for row in rows]
    found = fitted("cosine", training).value(*others.inputs)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
