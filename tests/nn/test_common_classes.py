import pytest
import torch

from oltr.nn.common_classes import common_classes


@pytest.mark.parametrize(
    ("counts", "common"),
    [
        ([9, 30, 20, 19], [1, 2]),
        ([20], [0]),
        ([4, 8, 6, 2], [1, 2]),  # none has 20: the larger half
        ([4, 8, 6, 2, 5], [1, 2, 4]),
        ([3], [0]),
    ],
)
def test_common_are_the_classes_with_enough_images_or_the_larger_half(counts, common):
    counts = torch.tensor(counts)
    assert common_classes(counts, least=20).nonzero()[:, 0].tolist() == common


def test_of_equal_classes_half_are_common():
    assert common_classes(torch.full((7,), 5), least=20).sum() == 4
