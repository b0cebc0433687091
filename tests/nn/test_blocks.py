import pytest

from oltr.nn import blocks
from oltr.nn.blocks import class_blocks, in_one_piece


@pytest.mark.parametrize("batch", [1, 5, 128])
@pytest.mark.parametrize("num_classes", [1, 10, 11, 12, 97])
@pytest.mark.parametrize("limit", [1, 40, 600, 2**25])
def test_blocks_cover_every_class_once_and_stay_small(batch, num_classes, limit, monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", limit)
    found = class_blocks(batch, num_classes, dims=8)
    assert [k for block in found for k in range(block.start, block.stop)] == list(range(num_classes))
    if in_one_piece(batch, num_classes):
        assert len(found) == 1
    else:
        assert all(n == 1 or n * max(batch, 8) <= limit for n in (b.stop - b.start for b in found))


def test_the_papers_sets_are_made_whole_and_a_million_classes_in_blocks():
    assert in_one_piece(128, 1000) and in_one_piece(128, 74_500)
    assert not in_one_piece(128, 1_000_000)
    assert len(class_blocks(128, 1_000_000, 512)) == 16
