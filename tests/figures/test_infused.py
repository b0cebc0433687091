"""Infused concepts: the entries by hand, the patches by hand, and both pictures."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.activation_averages import activation_averages_figure
from oltr.figures.infused_concepts import concepts_figure
from oltr.nn.heads import Output
from oltr.runs.explain.activations import Activations
from oltr.runs.explain.infused import Concepts, Infused, boxes, cut, infused
from oltr.runs.explain.training_sample import ActivationAverages

DIRECT = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
MEMORY = torch.tensor([[5.0, -8.0, 1.0, 2.0]])


def output(memory=MEMORY, selector=None) -> Output:
    return Output(None, DIRECT, memory_feature=memory, concept_selector=selector)


def strongest(cells, size=(4, 4)) -> Activations:
    """Neuron 0 was strongest at these cells, of as many images."""
    numbers = torch.arange(len(cells))[None]
    places = None if size == (1, 1) else torch.tensor([cells])
    return Activations(numbers.float(), numbers, places, numbers, numbers, size, len(cells))


def test_the_largest_entries_of_what_the_memory_adds():
    found = infused(output(selector=torch.tensor([[0.5, -0.5, 1.0, -1.0]])), top=2)
    assert found.neurons.tolist() == [[1, 0]]  # −0.5 · −8 = 4, 0.5 · 5 = 2.5
    assert found.amounts.tolist() == [[4.0, 2.5]] and found.direct.tolist() == [[2.0, 1.0]]


def test_without_a_selector_the_memory_feature_itself():
    found = infused(output())
    assert found.neurons.tolist() == [[0, 3, 2]] and found.amounts.tolist() == [[5.0, 2.0, 1.0]]
    assert infused(output(), top=9).neurons.shape == (1, 4)


def test_no_memory_is_said():
    with pytest.raises(UserError, match="infuses nothing"):
        infused(output(memory=None))


def test_squares_by_hand():
    # Cells of 8 px in 32: squares of 16 px around their centres, moved inside at the border.
    found = boxes(strongest([0, 5, 7, 15]), 0, 32)
    assert (found.side, found.whole) == (16, False) and found.images.tolist() == [0, 1, 2, 3]
    assert found.corners.tolist() == [[0, 0], [4, 4], [16, 4], [16, 16]]


def test_a_square_is_at_most_three_quarters_of_the_image():
    found = boxes(strongest([0, 1, 2, 3], (2, 2)), 0, 32)
    assert found.side == 24 and found.corners.tolist() == [[0, 0], [8, 0], [0, 8], [8, 8]]


def test_whole_images_where_the_place_is_not_known():
    found = boxes(strongest([0, 0], (1, 1)), 0, 32)
    assert found.whole and found.side == 32 and found.corners.tolist() == [[0, 0], [0, 0]]


def test_patches_are_cut_there():
    rows, columns = np.mgrid[:32, :32]
    picture = np.stack([rows, columns, rows], axis=2).astype(np.uint8)
    patches = cut(np.stack([picture, picture]), boxes(strongest([5, 7]), 0, 32))
    assert patches.shape == (2, 16, 16, 3)
    assert patches[1, 0, 0].tolist() == [4, 16, 4] and patches[1, -1, -1].tolist() == [19, 31, 19]


GIVEN = Infused(np.array([[7, 2]]), np.array([[1.5, 0.5]]), np.array([[-0.25, 3.0]]))
PICTURES = np.zeros((1, 32, 32, 3), dtype=np.uint8)


def words(figure) -> str:
    figure.savefig(io.BytesIO())
    inside = [t for axes in figure.axes for t in (axes.get_xlabel(), axes.get_title())]
    return "\n".join([figure.get_suptitle(), *inside, *(t.get_text() for a in figure.axes for t in a.texts)])


def test_the_picture_of_concepts():
    patches = {neuron: np.zeros((9, 24, 24, 3), dtype=np.uint8) for neuron in (7, 2)}
    figure = concepts_figure(PICTURES, Concepts(GIVEN, patches, False, "all 64 training images"), ["cat"])
    said = words(figure)
    assert len(figure.axes) == 3 and figure.axes[1].images[0].get_array().shape[:2] == (74, 74)
    for part in ("24 of 32 px", "all 64 training images", "cat", "neuron 7", "infused +1.5, direct −0.25"):
        assert part in said


def test_whole_images_are_said():
    patches = {neuron: np.zeros((4, 32, 32, 3), dtype=np.uint8) for neuron in (7, 2)}
    assert "whole: the place" in words(concepts_figure(PICTURES, Concepts(GIVEN, patches, True), ["cat"]))


def test_missing_patches_are_said_in_their_place():
    said = words(concepts_figure(PICTURES, Concepts(GIVEN, {}, True, missing="They are gone."), ["cat"]))
    assert "They are gone." in said and said.count("no patches") == 3 and "neuron 2" in said


def test_average_images():
    dark, light = np.full((1, 32, 32, 3), 100.0), np.full((1, 32, 32, 3), 110.0)
    averages = ActivationAverages(np.array([7]), dark, light, 50, "all 900 training images", 1.0)
    figure = activation_averages_figure(PICTURES, averages, ["cat"])
    said = words(figure)
    assert "50 images" in said and "neuron 7:\nleast" in said and "neuron 7:\nmost" in said
    shown = [axes.images[0].get_array() for axes in figure.axes[1:]]
    assert int(shown[0].max()) == 0 and int(shown[1].min()) == 255  # stretched alike


def test_averages_that_are_all_the_same_are_drawn():
    grey = np.full((1, 32, 32, 3), 100.0)
    words(
        activation_averages_figure(PICTURES, ActivationAverages(np.array([7]), grey, grey, 5, "x", 1.0), [""])
    )
