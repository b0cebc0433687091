import math

import pytest
import torch

from oltr.methods import fslwf as module
from oltr.nn.heads import LinearHead
from tests.helpers.made_up import DIMS, first_network, make
from tests.nn.test_weight_generator import dot, generate, length

COUNTS = torch.tensor([90, 40, 20, 19, 5])
LABELS = [0, 0, 0, 3, 3, 1, 4, 4]


def example():
    method = make("fslwf", COUNTS)
    network = method.build_stage2(first_network(method))
    torch.manual_seed(1)
    method.on_stage_start(2, network, lambda: torch.rand(len(COUNTS), DIMS))
    return method, network.head.train(), network, torch.rand(len(LABELS), DIMS)


def episode_loss(head, features, poses):
    """Mean cross-entropy of the queries, where classes in `poses` have weights of their first two images."""
    middle, weight = head.middle.tolist(), head.weight.tolist()
    attended = [k < 3 and k not in poses for k in range(len(COUNTS))]
    z = []
    for feature in features.tolist():
        away = [x - m for x, m in zip(feature, middle, strict=True)]
        z.append([x / length(away) for x in away])
    supports = []
    for label in poses:
        images = [b for b, other in enumerate(LABELS) if other == label]
        mine = images[: min(2, len(images) - 1)]
        made = [generate(head.generator, z[b], head.weight.tolist(), attended) for b in mine]
        weight[label] = [sum(w[d] for w in made) / len(made) for d in range(DIMS)]
        supports += mine
    losses = []
    for b, label in enumerate(LABELS):
        if b not in supports:
            logits = [head.scale.item() * dot(z[b], w) / length(w) for w in weight]
            losses.append(math.log(sum(map(math.exp, logits))) - logits[label])
    return sum(losses) / len(losses)


@pytest.mark.parametrize("poses", [[0, 3, 4], [0], [4], []])
def test_the_loss_equals_a_loop_over_the_episode(poses, monkeypatch):
    method, head, network, features = example()
    draws = torch.tensor([0.1 if label in poses else 0.9 for label in LABELS])
    monkeypatch.setattr(module.torch, "rand", lambda *_, **__: draws)
    found = method.loss(2, network, head(features), torch.tensor(LABELS))
    assert set(found) == {"cross_entropy"}
    assert found["cross_entropy"].item() == pytest.approx(episode_loss(head, features, poses), rel=1e-4)


def test_which_classes_pose_is_drawn_anew_in_each_step():
    method, head, network, _ = example()
    labels = torch.arange(5).repeat_interleave(4)
    output = head(torch.rand(20, DIMS))
    torch.manual_seed(0)
    losses = {method.loss(2, network, output, labels)["cross_entropy"].item() for _ in range(20)}
    assert len(losses) > 5


def test_weights_start_as_the_directions_of_the_stage_1_rows():
    method = make("fslwf", COUNTS)
    first = first_network(method)
    head = method.build_stage2(first).head
    assert isinstance(first.head, LinearHead)
    for weight, row in zip(head.weight.tolist(), first.head.classifier.weight.tolist(), strict=True):
        torch.testing.assert_close(torch.tensor(weight), torch.tensor(row) / length(row))
    assert head.others.tolist() == [3, 4]
    assert head.scale.item() == head.generator.scale.item() == 10.0
