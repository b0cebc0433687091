import math

import pytest
import torch

from oltr.nn.regressors import RecursiveRegressor, Regressor, level

DIMS = 4


@pytest.mark.parametrize("levels", [1, 3, 7])
def test_the_level_is_the_floor_of_the_logarithm(levels):
    shots = [1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 127, 128, 1280]
    expected = [min(int(math.log2(n)), levels - 1) for n in shots]
    assert level(torch.tensor(shots), levels).tolist() == expected
    assert level(torch.tensor([0]), levels).tolist() == [0]


def layer(linear, row):
    return [
        sum(w * x for w, x in zip(weights, row, strict=True)) + bias
        for weights, bias in zip(linear.weight.tolist(), linear.bias.tolist(), strict=True)
    ]


def two_layers(layers, row):
    """W_2 leaky(W_1 w + b_1) + b_2 for one row."""
    return layer(layers[2], [x if x > 0 else 0.01 * x for x in layer(layers[0], row)])


def test_the_regressor_equals_a_loop():
    regressor, rows = Regressor(DIMS), torch.randn(3, DIMS)
    expected = [two_layers(regressor.layers, row) for row in rows.tolist()]
    torch.testing.assert_close(regressor(rows, torch.tensor([1, 2, 9])), torch.tensor(expected))


def test_a_row_passes_the_blocks_from_its_level_on():
    torch.manual_seed(0)
    regressor = RecursiveRegressor(DIMS, levels=3)
    for parameter in regressor.parameters():
        torch.nn.init.normal_(parameter)
    shots, rows = [1, 2, 3, 4, 300], torch.randn(5, DIMS)
    expected = rows.tolist()
    for row, entry in zip(expected, [0, 1, 1, 2, 2], strict=True):
        for block in list(regressor.blocks)[entry:]:
            row[:] = [x + step for x, step in zip(row, two_layers(block, row), strict=True)]
    torch.testing.assert_close(regressor(rows, torch.tensor(shots)), torch.tensor(expected))


def test_the_chain_starts_as_the_identity_and_every_block_learns():
    regressor, rows = RecursiveRegressor(DIMS, levels=3), torch.randn(2, DIMS)
    found = regressor(rows, torch.tensor([1, 8]))
    assert torch.equal(found, rows)
    (found - 1).square().sum().backward()
    assert all(block[2].weight.grad.abs().sum() > 0 for block in regressor.blocks)


def test_there_may_be_no_rows():
    for regressor in (Regressor(DIMS), RecursiveRegressor(DIMS, 3)):
        assert regressor(torch.zeros(0, DIMS), torch.zeros(0).long()).shape == (0, DIMS)
