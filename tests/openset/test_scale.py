import numpy as np
import pytest
import torch

from oltr.openset import SCORES
from tests.helpers.separable import outputs


@pytest.mark.parametrize(
    ("name", "dims", "largest"),
    [
        *[("scale", 1, 1), ("scale", 5, 1), ("scale", 12, 2), ("scale", 64, 10), ("scale", 512, 77)],
        *[("scale-70", 1, 1), ("scale-70", 12, 4), ("scale-70", 64, 19)],
    ],
)
def test_it_is_the_energy_of_a_scaled_feature_through_a_linear_head(name, dims, largest):
    random = torch.Generator().manual_seed(0)
    features = torch.randn(9, dims, generator=random).abs()
    weight = torch.randn(4, dims, generator=random) / dims
    expected = []
    for row in features.double().numpy():
        scale = np.exp(row.sum() / np.sort(row)[-largest:].sum())
        expected.append(np.log(np.exp(weight.double().numpy() @ (scale * row)).sum()))
    logits = features.double() @ weight.double().T
    found = SCORES[name]().value(features, logits)
    torch.testing.assert_close(found, torch.tensor(np.array(expected)), rtol=1e-5, atol=1e-5)


def test_a_feature_without_activations_leaves_the_logits_as_they_are():
    logits = torch.randn(3, 4)
    some = outputs(logits, features=-torch.rand(3, 8))
    torch.testing.assert_close(SCORES["scale"]().value(*some.inputs), logits.double().logsumexp(dim=1))


def test_in_parts():
    logits, features = torch.randn(5000, 3), torch.randn(5000, 6)
    whole = SCORES["scale"]().value(features, logits)
    torch.testing.assert_close(whole[4990:], SCORES["scale"]().value(features[4990:], logits[4990:]))
