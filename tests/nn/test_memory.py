import math

import pytest
import torch

from oltr.nn import blocks
from oltr.nn.memory import NEAREST_POSSIBLE, Memory, squared_distances


def distance(a, b):
    """‖a − b‖₂ of two lists."""
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def filled(num_classes=6, dims=4, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    memory = Memory(num_classes, dims).to(dtype)
    memory.start_from(torch.randn(num_classes, dims, dtype=dtype))
    return memory


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_squared_distances_equal_a_loop(dtype):
    torch.manual_seed(0)
    x, centroids = torch.randn(5, 7, dtype=dtype), torch.randn(4, 7, dtype=dtype)
    expected = [[distance(a, c) ** 2 for c in centroids.tolist()] for a in x.tolist()]
    torch.testing.assert_close(
        squared_distances(x, centroids).double(), torch.tensor(expected).double(), rtol=1e-5, atol=1e-5
    )


def test_squared_distances_are_never_negative_nor_lose_precision_under_autocast():
    torch.manual_seed(0)
    x = torch.randn(5, 64) + 10
    assert (squared_distances(x, x) >= 0).all()
    with torch.autocast("cpu", torch.bfloat16):
        low = squared_distances(x, x + 0.1)
    assert torch.equal(low, squared_distances(x, x + 0.1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_reachability_is_the_distance_to_the_nearest_centroid(dtype):
    memory = filled(dtype=dtype)
    direct = torch.randn(9, 4, dtype=dtype)
    expected = [min(distance(v, c) for c in memory.centroids.tolist()) for v in direct.tolist()]
    found = memory.reachability(direct, constant=True)
    torch.testing.assert_close(
        found.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("constant", [True, False])
def test_the_gradient_of_reachability_reaches_the_feature_and_the_centroids_only_if_not_constant(constant):
    memory = filled()
    direct = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    memory.reachability(direct, constant).sum().backward()
    to_feature, to_centroids = torch.zeros(9, 4).double(), torch.zeros(6, 4).double()
    for b, v in enumerate(direct.tolist()):
        distances = [distance(v, c) for c in memory.centroids.tolist()]
        nearest = distances.index(min(distances))
        for d in range(4):
            slope = (v[d] - memory.centroids[nearest, d].item()) / distances[nearest]
            to_feature[b, d] += slope
            to_centroids[nearest, d] -= slope
    torch.testing.assert_close(direct.grad, to_feature, rtol=1e-5, atol=1e-8)
    if constant:
        assert memory.centroids.grad is None
    else:
        torch.testing.assert_close(memory.centroids.grad, to_centroids, rtol=1e-5, atol=1e-8)


def test_a_class_without_images_is_never_the_nearest():
    memory = Memory(3, 2)
    memory.update_centroids(torch.tensor([[5.0, 5.0], [9.0, 9.0]]), torch.tensor([0, 2]), rate=0.1)
    assert memory.known.tolist() == [True, False, True]
    # Class 1 still stands at the origin, right beside this image.
    found = memory.reachability(torch.tensor([[0.1, 0.0]]), constant=True)
    torch.testing.assert_close(found, torch.tensor([distance([0.1, 0.0], [5.0, 5.0])]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1, 4, 5, 12])  # classes in a block
@pytest.mark.parametrize("known", [range(12), range(4, 8), [11], [0, 5, 9]])
def test_the_nearest_is_found_block_by_block(known, size, dtype, monkeypatch):
    memory = filled(num_classes=12, dtype=dtype)
    memory.known.fill_(False)[list(known)] = True
    direct = torch.randn(9, 4, dtype=dtype) * 2
    expected = [
        min(known, key=lambda k, v=v: distance(v, memory.centroids[k].tolist())) for v in direct.tolist()
    ]
    assert memory.nearest(direct).tolist() == expected
    monkeypatch.setattr(blocks, "LARGEST", size * 9)
    assert memory.nearest(direct).tolist() == expected


def test_before_the_first_image_reachability_is_finite():
    assert torch.isfinite(Memory(3, 2).reachability(torch.randn(4, 2), constant=False)).all()


@pytest.mark.parametrize("constant", [True, False])
def test_an_image_on_a_centroid_has_a_finite_inverse_and_gradient(constant):
    memory = filled(dtype=torch.float32)
    direct = memory.centroids.detach()[:2].clone().requires_grad_()
    gamma = memory.reachability(direct, constant)
    torch.testing.assert_close(gamma, torch.full((2,), NEAREST_POSSIBLE))
    (10 / gamma).sum().backward()
    assert torch.isfinite(direct.grad).all()
    assert constant or torch.isfinite(memory.centroids.grad).all()


def test_start_from_takes_the_class_means_and_knows_all_classes():
    memory, means = Memory(4, 3), torch.arange(12.0).reshape(4, 3)
    memory.start_from(means)
    means.zero_()
    assert memory.centroids.tolist() == torch.arange(12.0).reshape(4, 3).tolist()
    assert memory.known.all()
    assert memory.centroids.requires_grad


def test_gather_moves_each_centroid_towards_the_mean_of_its_group():
    torch.manual_seed(0)
    memory = Memory(5, 3)
    centroids = [[0.0] * 3 for _ in range(5)]
    seen = set()
    for _ in range(4):
        direct, labels = torch.randn(7, 3), torch.randint(0, 4, (7,))
        memory.update_centroids(direct, labels, rate=0.25)
        for label in range(5):
            group = [v for v, own in zip(direct.tolist(), labels.tolist(), strict=True) if own == label]
            if not group:
                continue
            rate = 0.25 if label in seen else 1.0
            for d in range(3):
                mean = sum(v[d] for v in group) / len(group)
                centroids[label][d] += rate * (mean - centroids[label][d])
            seen.add(label)
        torch.testing.assert_close(memory.centroids.detach(), torch.tensor(centroids), rtol=1e-5, atol=1e-6)
    assert memory.known.tolist() == [label in seen for label in range(5)]
    assert not memory.known[4]


def test_what_the_memory_knows_is_saved_with_it():
    memory, copy = Memory(3, 2), Memory(3, 2)
    memory.update_centroids(torch.ones(1, 2), torch.tensor([1]), rate=0.1)
    copy.load_state_dict(memory.state_dict())
    assert copy.known.tolist() == [False, True, False]
    assert torch.equal(copy.centroids, memory.centroids)
