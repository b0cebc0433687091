"""A batch as an episode, against a loop over its classes."""

import math

import pytest
import torch

from oltr.nn.episode import make_episode

LABELS = [3, 0, 3, 3, 1, 0, 3, 2, 2]
DRAWN = [True, False, False, True, True, True, True, True, False]  # class 0: its second image alone
CLASSES, DIMS = 6, 4


def parts(labels, drawn, supports):
    """Which classes pose, and the images of each that are its supports."""
    found = {}
    for label in set(labels):
        images = [b for b, other in enumerate(labels) if other == label]
        if drawn[images[0]] and len(images) > 1:
            found[label] = images[: min(supports, len(images) - 1)]
    return found


def example(supports=2):
    return make_episode(torch.tensor(LABELS), torch.tensor(DRAWN), supports)


@pytest.mark.parametrize("supports", [1, 2, 3, 9])
def test_the_parts_of_the_images_equal_a_loop(supports):
    episode, expected = example(supports), parts(LABELS, DRAWN, supports)
    assert sorted(expected) == [2, 3]  # class 0 is not drawn, class 1 has a single image
    assert episode.posing(CLASSES).nonzero()[:, 0].tolist() == sorted(expected)
    assert episode.poses.tolist() == [label in expected for label in LABELS]
    supporting = sorted(b for images in expected.values() for b in images)
    assert episode.support.nonzero()[:, 0].tolist() == supporting
    assert episode.row.nonzero()[:, 0].tolist() == sorted(images[0] for images in expected.values())
    for label, images in expected.items():
        assert episode.shots[LABELS.index(label)] == len(images)


def test_the_means_are_those_of_the_supports():
    x = torch.randn(len(LABELS), DIMS, dtype=torch.float64)
    expected = torch.zeros_like(x)
    for images in parts(LABELS, DRAWN, 2).values():
        for b in images:
            expected[images[0]] += x[b] / len(images)
    torch.testing.assert_close(example().means(x), expected)


def overwritten(logits, columns):
    """Column k of the logits becomes the column of the first image of class k, if that poses."""
    logits = [list(row) for row in logits]
    for label, images in parts(LABELS, DRAWN, 2).items():
        for b in range(len(logits)):
            logits[b][label] = columns[b][images[0]]
    return logits


def test_the_columns_of_posing_classes_are_overwritten_once():
    batch = len(LABELS)
    logits = torch.randn(batch, CLASSES, dtype=torch.float64, requires_grad=True)
    columns = torch.randn(batch, batch, dtype=torch.float64, requires_grad=True)
    found = example().overwrite(logits, columns)
    assert found.tolist() == overwritten(logits.tolist(), columns.tolist())
    assert torch.autograd.gradcheck(example().overwrite, (logits, columns))


def test_the_cross_entropy_is_the_mean_over_the_queries():
    logits = torch.randn(len(LABELS), CLASSES)
    supporting = [b for images in parts(LABELS, DRAWN, 2).values() for b in images]
    queries = [b for b in range(len(LABELS)) if b not in supporting]
    total = 0.0
    for b in queries:
        row = logits[b].tolist()
        total -= row[LABELS[b]] - math.log(sum(math.exp(x) for x in row))
    assert example().cross_entropy(logits).item() == pytest.approx(total / len(queries), rel=1e-5)


def test_with_one_image_of_each_class_none_poses():
    labels, logits = torch.arange(4), torch.randn(4, CLASSES)
    episode = make_episode(labels, torch.ones(4, dtype=torch.bool), 2)
    assert not episode.support.any() and not episode.row.any()
    assert torch.equal(episode.overwrite(logits, torch.randn(4, 4)), logits)
