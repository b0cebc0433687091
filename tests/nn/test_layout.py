import pytest
import torch

from oltr.nn.layout import to_map


def test_a_map_stays_as_it_is():
    f = torch.randn(2, 6, 3, 4)
    assert to_map(f, 6, 0) is f


def test_a_channels_last_map_is_permuted():
    features = torch.randn(2, 3, 4, 6)
    f = to_map(features, 6, 0)
    assert f.shape == (2, 6, 3, 4)
    assert f[1, 5, 2, 3] == features[1, 2, 3, 5]


@pytest.mark.parametrize("prefix", [0, 1, 5])
def test_tokens_become_a_grid_without_the_prefix(prefix):
    features = torch.randn(2, prefix + 9, 6)
    f = to_map(features, 6, prefix)
    assert f.shape == (2, 6, 3, 3)
    for row in range(3):
        for column in range(3):
            assert torch.equal(f[:, :, row, column], features[:, prefix + 3 * row + column])


def test_a_class_token_that_is_not_declared_is_found():
    features = torch.randn(2, 1 + 16, 6)
    f = to_map(features, 6, 0)
    assert f.shape == (2, 6, 4, 4)
    assert torch.equal(f[:, :, 0, 0], features[:, 1])


def test_tokens_without_a_square_grid_become_one_column():
    features = torch.randn(2, 6, 5)
    f = to_map(features, 5, 0)
    assert f.shape == (2, 5, 6, 1)


def test_a_vector_is_a_map_of_one_position():
    assert to_map(torch.randn(2, 5), 5, 0).shape == (2, 5, 1, 1)
