import math

import torch

from oltr.nn import blocks
from oltr.nn.episode import make_episode
from oltr.nn.generated_head import GeneratedHead
from tests.nn.test_weight_generator import dot, generate, length

CLASSES, DIMS, BATCH = 5, 4, 7
COMMON = torch.tensor([True, True, False, True, False])
LABELS = torch.tensor([0, 0, 3, 0, 4, 4, 1])


def example():
    torch.manual_seed(0)
    head = GeneratedHead(torch.randn(CLASSES, DIMS), COMMON, 10.0).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    head.start_from(torch.randn(CLASSES, DIMS).double() + 1)
    return head, torch.randn(BATCH, DIMS, dtype=torch.float64) + 1


def unit(head, v):
    moved = [x - m for x, m in zip(v, head.middle.tolist(), strict=True)]
    return [x / length(moved) for x in moved]


def score(head, v, weight):
    return head.scale.item() * dot(unit(head, v), weight) / length(weight)


def test_weights_start_as_unit_rows_and_the_middle_is_that_of_the_class_means():
    rows, means = torch.randn(CLASSES, DIMS), torch.randn(CLASSES, DIMS)
    head = GeneratedHead(rows, COMMON, 10.0)
    head.start_from(means)
    for found, row in zip(head.weight.tolist(), rows.tolist(), strict=True):
        torch.testing.assert_close(torch.tensor(found), torch.tensor([x / length(row) for x in row]))
    torch.testing.assert_close(head.middle, sum(means) / CLASSES)


def test_in_training_each_class_has_its_weight_and_in_evaluation_rare_ones_a_generated_one():
    head, direct = example()
    weight = head.weight.tolist()
    own = [[score(head, v, w) for w in weight] for v in direct.tolist()]
    torch.testing.assert_close(head.train()(direct).logits, torch.tensor(own).double())
    for k in (2, 4):
        support = unit(head, head.class_means[k].tolist())
        generated = generate(head.generator, support, weight, COMMON.tolist())
        for row, v in zip(own, direct.tolist(), strict=True):
            row[k] = score(head, v, generated)
    torch.testing.assert_close(head.eval()(direct).logits, torch.tensor(own).double())


def posed(head, direct, supports):
    """Classes 0 and 4 pose: none attends to them, their weights come from their first images."""
    weight, attended = head.weight.tolist(), [False, True, False, True, False]
    for label, images in supports.items():
        each = [
            generate(head.generator, unit(head, direct[b].tolist()), head.weight.tolist(), attended)
            for b in images
        ]
        weight[label] = [sum(w[d] for w in each) / len(each) for d in range(DIMS)]
    return [[score(head, v, w) for w in weight] for v in direct.tolist()]


def test_the_logits_of_an_episode_equal_a_loop():
    head, direct = example()
    drawn = torch.tensor([True, False, True, False, True, False, True])  # 1 and 3 have a single image
    episode = make_episode(LABELS, drawn, supports=2)
    found = head.pose(head.train()(direct), episode)
    logits = posed(head, direct, {0: [0, 1], 4: [4]})
    torch.testing.assert_close(found, torch.tensor(logits).double())
    loss = 0.0
    for b in (2, 3, 5, 6):
        loss -= (logits[b][LABELS[b]] - math.log(sum(map(math.exp, logits[b])))) / 4
    torch.testing.assert_close(episode.cross_entropy(found).item(), loss, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_an_episode_reaches_every_part():
    head, direct = example()
    episode = make_episode(LABELS, torch.ones(BATCH, dtype=torch.bool), supports=2)
    episode.cross_entropy(head.pose(head.train()(direct), episode)).backward()
    for name, parameter in head.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_rare_classes_are_generated_some_at_a_time(monkeypatch):
    head, direct = example()
    expected = head.eval()(direct).logits
    monkeypatch.setattr(blocks, "LARGEST", CLASSES)
    torch.testing.assert_close(head(direct).logits, expected)


def test_without_rare_classes_evaluation_is_training():
    head = GeneratedHead(torch.randn(CLASSES, DIMS), torch.ones(CLASSES, dtype=torch.bool), 10.0)
    head.start_from(torch.randn(CLASSES, DIMS))
    direct = torch.randn(BATCH, DIMS)
    assert torch.equal(head.eval()(direct).logits, head.train()(direct).logits)


def test_autocast_changes_nothing():
    head, direct = example()
    head, direct = head.float().eval(), direct.float()
    expected = head(direct).logits
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(head(direct).logits, expected)


def test_all_that_evaluation_needs_is_saved():
    head, direct = example()
    again = GeneratedHead(torch.randn(CLASSES, DIMS), COMMON, 1.0).double()
    again.load_state_dict(head.state_dict())
    assert torch.equal(again.eval()(direct).logits, head.eval()(direct).logits)
