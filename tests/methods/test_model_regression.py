import math

import pytest
import torch

from oltr.methods import model_regression as module
from oltr.methods.model_regression import as_of, draw_shots
from tests.helpers.made_up import DIMS, first_network, make

COUNTS = torch.tensor([200, 300, 150, 50, 6])
LABELS = [0, 0, 0, 4, 4, 1, 2, 2]
SUPPORTS = {0: [0, 1], 4: [3], 2: [6]}  # the classes with two images or more, and their first two at most
DRAWS = torch.tensor([0.5, 0.0, 0.0, 0.99, 0.0, 0.0, 0.3, 0.0])
SHOTS = {0: 8, 4: 2, 2: 4}  # 2^⌊draw · (highest level + 1)⌋; the highest with 2 · 2^i images: 6, 1 and 6


def example(name):
    method = make(name, COUNTS, cross_entropy_weight=0.5)
    network = method.build_stage2(first_network(method))
    torch.manual_seed(1)
    method.on_stage_start(2, network, lambda: torch.rand(len(COUNTS), DIMS))
    with torch.no_grad():
        for parameter in network.head.parameters():  # the blocks of metamodelnet start at zero
            parameter += 0.02 * torch.randn_like(parameter)
    return method, network, torch.rand(len(LABELS), DIMS)


def score(head, row, feature):
    return head.length * (row[:-1] @ (feature - head.middle) + row[-1])


def loops(head, features):
    """Both terms, class by class."""
    rows = [head.rows[k] if k < 3 else head.regress(head.class_means[[k]], COUNTS[[k]])[0] for k in range(5)]
    errors = []
    for label, images in SUPPORTS.items():
        mean = sum(features[b] for b in images) / len(images)
        centre = head.class_means[label]
        mean = centre + math.sqrt(len(images) / SHOTS[label]) * (mean - centre)
        rows[label] = head.regress(mean[None], torch.tensor([SHOTS[label]]))[0]
        if label < 3:
            errors.append(sum((rows[label] - head.rows[label]) ** 2))
    queries = [b for b in range(len(LABELS)) if not any(b in images for images in SUPPORTS.values())]
    assert queries == [2, 4, 5, 7]
    losses = []
    for b in queries:
        logits = [score(head, row, features[b]).item() for row in rows]
        losses.append(math.log(sum(map(math.exp, logits))) - logits[LABELS[b]])
    return 0.5 * sum(losses) / len(losses), sum(errors).item() / len(errors)


@pytest.mark.parametrize("name", ["model-regression", "metamodelnet"])
def test_the_loss_equals_a_loop(name, monkeypatch):
    method, network, features = example(name)
    head = network.head.train()
    monkeypatch.setattr(module.torch, "rand", lambda *_, **__: DRAWS)
    found = method.loss(2, network, head(features), torch.tensor(LABELS))
    cross_entropy, regression = loops(head, features)
    assert set(found) == {"cross_entropy", "regression"}
    assert found["cross_entropy"].item() == pytest.approx(cross_entropy, rel=1e-4)
    assert found["regression"].item() == pytest.approx(regression, rel=1e-4)


@pytest.mark.parametrize("name", ["model-regression", "metamodelnet"])
@pytest.mark.parametrize("term", ["cross_entropy", "regression"])
def test_each_term_teaches_the_regressor(name, term):
    method, network, features = example(name)
    method.loss(2, network, network.head.train()(features), torch.tensor(LABELS))[term].backward()
    assert sum(parameter.grad.abs().sum() for parameter in network.head.parameters()) > 0


def test_a_batch_without_a_common_class_has_nothing_to_regress_to():
    method, network, features = example("model-regression")
    labels = torch.tensor([3, 3, 3, 3, 4, 4, 4, 4])
    assert method.loss(2, network, network.head.train()(features), labels)["regression"] == 0


def test_shots_are_powers_of_two_of_which_a_class_has_twice_as_many():
    torch.manual_seed(0)
    for count, allowed in ((1, {1}), (3, {1}), (4, {1, 2}), (19, {1, 2, 4, 8}), (900, {1, 2, 4, 8, 16})):
        drawn = draw_shots(torch.full((400,), count), levels=5)
        assert set(drawn.tolist()) == allowed


def test_means_of_two_images_get_the_spread_of_means_of_more_or_fewer():
    torch.manual_seed(0)
    centre, pairs = torch.tensor([[3.0, -1.0]]), torch.randn(20_000, 2, 2) + torch.tensor([3.0, -1.0])
    for shots in (1, 2, 8, 32):
        n = torch.full((20_000,), shots)
        found = as_of(n, pairs.mean(dim=1), torch.full_like(n, 2), centre.expand(20_000, 2))
        torch.testing.assert_close(found.mean(dim=0), centre[0], rtol=0, atol=0.03)
        torch.testing.assert_close(found.var(dim=0), torch.full((2,), 1 / shots), rtol=0.05, atol=0)


def test_many_shot_classes_keep_their_rows_and_without_any_the_larger_half_does():
    method = make("model-regression", COUNTS)
    assert method.build_stage2(first_network(method)).head.others.tolist() == [3, 4]
    method = make("model-regression", torch.tensor([5, 90, 30, 100]))
    assert method.build_stage2(first_network(method)).head.others.tolist() == [0, 2]
