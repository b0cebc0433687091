"""The range method: stage 1 is the plain model's, stage 2 adds both parts of the range loss on v_direct."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.nn.heads import Output
from oltr.recipes import resolve

LABELS = [0, 2, 1, 0, 2, 0]


def loss(stage, **changes):
    torch.manual_seed(0)
    settings = resolve("glyphs", "range").settings | changes
    method = METHODS["range"](settings, torch.tensor([50, 9, 3]), image_size=32)
    network = method.build_stage2(method.build_stage1(Backbone("resnet10_half", 32)))
    logits, features = torch.randn(6, 3), torch.rand(6, 8)
    return method.loss(stage, network, Output(logits, features), torch.tensor(LABELS)), logits, features


def test_stage_1_is_the_plain_models():
    terms, logits, _ = loss(1)
    assert terms.keys() == {"cross_entropy"}
    torch.testing.assert_close(terms["cross_entropy"], F.cross_entropy(logits, torch.tensor(LABELS)))
    assert METHODS["range"]({}, torch.tensor([5, 2]), 32).first_stage == "plain"


def test_stage_2_adds_the_ranges_within_and_the_distance_between_classes():
    terms, logits, features = loss(2, within_weight=0.5, between_weight=0.25, margin=3.0)
    x = features.tolist()
    squares = sorted((math.dist(x[a], x[b]) ** 2 for a, b in ((0, 3), (0, 5), (3, 5))), reverse=True)
    within = 2 / (1 / squares[0] + 1 / squares[1]) + math.dist(x[1], x[4]) ** 2  # classes 0 and 2
    means = [[sum(values) / len(rows) for values in zip(*(x[r] for r in rows), strict=True)]
             for rows in ((0, 3, 5), (2,), (1, 4))]  # fmt: skip
    nearest = min(math.dist(means[a], means[b]) ** 2 for a, b in ((0, 1), (0, 2), (1, 2)))
    assert terms.keys() == {"cross_entropy", "within", "between"}
    torch.testing.assert_close(terms["cross_entropy"], F.cross_entropy(logits, torch.tensor(LABELS)))
    assert terms["within"].item() == pytest.approx(0.5 * within, rel=1e-5)
    assert terms["between"].item() == pytest.approx(0.25 * (3 - nearest), rel=1e-5)
    assert resolve("glyphs", "range").stage2.sampler == "class-aware"
