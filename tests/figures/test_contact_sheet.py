"""Many small images on one picture, each where it belongs."""

from __future__ import annotations

import numpy as np
import pytest

from oltr.figures.contact_sheet import contact_sheet


@pytest.mark.parametrize(("count", "columns", "zoom"), [(1, 1, 1), (6, 3, 1), (7, 3, 2), (2, 20, 1)])
def test_each_image_lies_in_its_cell(count, columns, zoom):
    size = 4
    images = np.random.default_rng(0).integers(0, 256, (count, size, size, 3), dtype=np.uint8)
    sheet = np.asarray(contact_sheet(images, columns, zoom))
    rows = -(-count // columns)
    assert sheet.shape == ((rows * 5 - 1) * zoom, (columns * 5 - 1) * zoom, 3)
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        cell = sheet[row * 5 * zoom : (row * 5 + size) * zoom, column * 5 * zoom : (column * 5 + size) * zoom]
        assert np.array_equal(cell[::zoom, ::zoom], image)
        assert np.array_equal(cell, image.repeat(zoom, axis=0).repeat(zoom, axis=1))


def test_gaps_and_empty_cells_are_white():
    sheet = np.asarray(contact_sheet(np.zeros((3, 2, 2, 3), dtype=np.uint8), columns=2, zoom=1))
    assert (sheet[2] == 255).all() and (sheet[:, 2] == 255).all() and (sheet[3:, 3:] == 255).all()
    assert (sheet == 0).sum() == 3 * 2 * 2 * 3
