import math

import pytest
import torch

from oltr.openset import SCORES
from tests.helpers.separable import outputs


@pytest.mark.parametrize("classes", [2, 7, 100, 150])
def test_it_is_the_sum_of_a_loop(classes):
    logits = 3 * torch.randn(6, classes, generator=torch.Generator().manual_seed(0))
    expected = []
    for row in logits.double().tolist():
        whole = sum(math.exp(z) for z in row)
        likeliest = sorted((math.exp(z) / whole for z in row), reverse=True)[:100]
        expected.append(sum(p**0.1 * (1 - p) ** 0.1 for p in likeliest))
    found = SCORES["gen"]().value(*outputs(logits).inputs)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_sure_answers_keep_their_order():
    sure = outputs(torch.tensor([[20.0, 0.0, 0.0], [60.0, 0.0, 0.0], [90.0, 0.0, 0.0]]))
    values = SCORES["gen"]().value(*sure.inputs)
    assert values.diff().lt(0).all() and values.isfinite().all()
