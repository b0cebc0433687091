"""The released centroid loss against a loop written from the formula, and over two processes."""

import pytest
import torch

from oltr.losses.centroids import discriminative_centroids_loss
from oltr.nn.memory import Memory
from tests.helpers.created import Created
from tests.helpers.processes import run_processes

CLASSES, DIMS, BATCH = 6, 4, 8
NUMBERS = {"weight": 0.05, "repel": 0.03}
MARGINS = {"open": 100.0, "closed": 0.5}  # of the hinge: the mean distance to other centroids lies between


def example(seed=0, dtype=torch.float64):
    """Features (B×D), labels with classes 0..4 some of them repeated, and centroids (K×D)."""
    random = torch.Generator().manual_seed(seed)
    direct = torch.randn(BATCH, DIMS, generator=random, dtype=dtype)
    labels = torch.tensor([0, 1, 0, 2, 0, 2, 3, 4])  # classes 0 and 2 stand in both halves
    centroids = torch.randn(CLASSES, DIMS, generator=random, dtype=dtype)
    return direct.requires_grad_(), labels, centroids.requires_grad_()


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def released_loop(direct, labels, centroids, weight, repel, margin):
    """PAPER.md, rows 5 and 6: the value, the features' gradient and the centroids' gradient."""
    x, y, c = direct.tolist(), labels.tolist(), centroids.tolist()
    batch, classes, dims = len(x), len(c), len(x[0])
    attract = sum(squared(x[b], c[y[b]]) for b in range(batch)) / (2 * batch)
    others = sum(squared(x[b], c[i]) for b in range(batch) for i in range(classes) if i != y[b])
    others /= batch * classes
    value = weight * (attract + repel * max(0.0, margin - others))

    is_open = 1.0 if margin > others else 0.0
    push = is_open * weight * repel * 2 / (batch * classes)
    to_features = [[0.0] * dims for _ in x]
    to_centroids = [[0.0] * dims for _ in c]
    for b in range(batch):
        n = y.count(y[b])
        for d in range(dims):
            to_features[b][d] += weight * (x[b][d] - c[y[b]][d]) / batch
            to_centroids[y[b]][d] += (c[y[b]][d] - x[b][d]) / ((1 + n) * batch)  # not times `weight`
            for i in range(classes):
                if i != y[b]:
                    to_features[b][d] -= push * (x[b][d] - c[i][d])
                    to_centroids[i][d] -= push * (c[i][d] - x[b][d])
    return value, torch.tensor(to_features).double(), torch.tensor(to_centroids).double()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("hinge", MARGINS)
def test_the_released_loss_and_its_gradients_equal_a_loop(hinge, dtype):
    direct, labels, centroids = example(dtype=dtype)
    numbers = {**NUMBERS, "margin": MARGINS[hinge]}
    loss = discriminative_centroids_loss(direct, labels, centroids, **numbers)
    value, to_features, to_centroids = released_loop(direct, labels, centroids, **numbers)
    loss.backward()
    assert loss.item() == pytest.approx(value, rel=1e-5)
    torch.testing.assert_close(direct.grad.double(), to_features, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(centroids.grad.double(), to_centroids, rtol=1e-5, atol=1e-7)


def test_the_pull_on_the_centroids_does_not_carry_the_weight():
    numbers = {"repel": 0.03, "margin": MARGINS["closed"]}
    gradients = []
    for weight in (0.01, 1.0):
        direct, labels, centroids = example()
        discriminative_centroids_loss(direct, labels, centroids, weight=weight, **numbers).backward()
        gradients.append((direct.grad, centroids.grad))
    torch.testing.assert_close(gradients[0][1], gradients[1][1])
    torch.testing.assert_close(gradients[0][0] * 100, gradients[1][0])
    assert gradients[0][1][5].abs().sum() == 0  # class 5 has no image, and the hinge is closed


def test_the_released_numbers_at_a_large_number_of_classes():
    torch.manual_seed(0)
    direct = torch.randn(16, 8, dtype=torch.float64, requires_grad=True)
    centroids = torch.randn(200, 8, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 200, (16,))
    for margin in (10.0, 30.0):
        direct.grad = centroids.grad = None
        numbers = {"weight": 0.01, "repel": 0.01, "margin": margin}
        loss = discriminative_centroids_loss(direct, labels, centroids, **numbers)
        loss.backward()
        value, to_features, to_centroids = released_loop(direct, labels, centroids, **numbers)
        assert loss.item() == pytest.approx(value, rel=1e-5)
        torch.testing.assert_close(direct.grad, to_features, rtol=1e-5, atol=1e-9)
        torch.testing.assert_close(centroids.grad, to_centroids, rtol=1e-5, atol=1e-9)


def test_the_released_loss_is_as_exact_under_autocast():
    direct, labels, centroids = example(dtype=torch.float32)
    far_direct, far_centroids = direct + 30, centroids + 30  # where bfloat16 would lose the distances
    numbers = {**NUMBERS, "margin": MARGINS["open"]}
    with torch.autocast("cpu", torch.bfloat16):
        loss = discriminative_centroids_loss(far_direct, labels, far_centroids, **numbers)
    value = released_loop(far_direct, labels, far_centroids, **numbers)[0]
    assert loss.item() == pytest.approx(value, rel=1e-4)


def test_the_distances_that_the_released_loss_sums_are_never_made():
    batch, classes, dims = 8, 1000, 16
    direct, centroids = torch.randn(batch, dims), torch.randn(classes, dims)
    direct.requires_grad_(), centroids.requires_grad_()
    labels = torch.randint(0, classes, (batch,))
    with Created() as created:
        discriminative_centroids_loss(direct, labels, centroids, **NUMBERS, margin=1e6).backward()
    assert created.above(batch * batch + batch * dims) == [(classes, dims)]  # the centroids' gradient


def part_of(rank, world, direct, labels):
    share = len(labels) // world
    return direct[rank * share : (rank + 1) * share], labels[rank * share : (rank + 1) * share]


def gradients_of_my_part(rank, world):
    """Loss values and gradients on this process's part of the batch, and the memory after gathering it."""
    found = {}
    for hinge, margin in MARGINS.items():
        direct, labels, centroids = example()
        loss = discriminative_centroids_loss(
            *part_of(rank, world, direct, labels), centroids, **NUMBERS, margin=margin
        )
        loss.backward()
        found[hinge] = {"loss": loss.detach(), "direct": direct.grad, "centroids": centroids.grad}
    # A margin that the two halves would answer differently, were each to look at itself alone.
    direct, labels, centroids = example()
    loss = discriminative_centroids_loss(
        *part_of(rank, world, direct, labels), centroids, **NUMBERS, margin=between_the_halves()
    )
    loss.backward()
    found["between"] = {"loss": loss.detach(), "direct": direct.grad, "centroids": centroids.grad}
    found["memory"] = gathered(lambda *batch: part_of(rank, world, *batch))
    return found


def mean_other(direct, labels, centroids):
    x, y, c = direct.tolist(), labels.tolist(), centroids.tolist()
    return sum(squared(x[b], c[i]) for b in range(len(x)) for i in range(len(c)) if i != y[b]) / (
        len(x) * len(c)
    )


def between_the_halves():
    """A margin on one side of the mean of the first half and on the other side of that of the second."""
    direct, labels, centroids = example()
    halves = [mean_other(*part_of(rank, 2, direct, labels), centroids) for rank in range(2)]
    return 0.7 * max(halves) + 0.3 * min(halves)


def gathered(part):
    """Centroids after two rounds of neighbourhood sampling."""
    memory = Memory(CLASSES, DIMS).double()
    for seed in (0, 1):
        direct, labels, _ = example(seed)
        memory.update_centroids(*part(direct, labels), rate=0.25)
    return {"centroids": memory.centroids.detach(), "known": memory.known}


def test_two_processes_give_the_gradients_and_the_memory_of_one(tmp_path):
    first, second = run_processes(gradients_of_my_part, tmp_path)
    for hinge, margin in {**MARGINS, "between": between_the_halves()}.items():
        direct, labels, centroids = example()
        loss = discriminative_centroids_loss(direct, labels, centroids, **NUMBERS, margin=margin)
        loss.backward()
        # Distributed training averages the gradients of the processes.
        one = {"loss": loss.detach(), "direct": direct.grad, "centroids": centroids.grad}
        for name, expected in one.items():
            averaged = (first[hinge][name] + second[hinge][name]) / 2
            torch.testing.assert_close(
                averaged, expected, rtol=1e-10, atol=1e-12, msg=lambda m, h=hinge, n=name: f"{h} {n}: {m}"
            )
    alone = gathered(lambda *batch: batch)
    for process in (first, second):
        torch.testing.assert_close(process["memory"]["centroids"], alone["centroids"])
        assert torch.equal(process["memory"]["known"], alone["known"])
