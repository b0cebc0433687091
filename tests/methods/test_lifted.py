"""The lifted method: stage 1 is the plain model's, stage 2 adds a loss on the directions of v_direct."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.nn.heads import Output
from oltr.recipes import resolve

LABELS = [0, 2, 1, 0, 2, 0]


def loss(stage, scale=1.0):
    """The terms for features that are `scale` times as long, and those features."""
    torch.manual_seed(0)
    method = METHODS["lifted"](resolve("glyphs", "lifted").settings, torch.tensor([50, 9, 3]), image_size=32)
    network = method.build_stage2(method.build_stage1(Backbone("resnet10_half", 32)))
    logits, features = torch.randn(6, 3), scale * torch.rand(6, 8)
    return method.loss(stage, network, Output(logits, features), torch.tensor(LABELS)), logits, features


def lifted_loop(features, margin=1.0):
    x = [[value / math.hypot(*row) for value in row] for row in features.tolist()]
    total, pairs = 0.0, 0
    for i in range(6):
        for j in range(i):
            if LABELS[i] == LABELS[j]:
                inner = 0.0
                for one in (i, j):
                    for k in range(6):
                        inner += math.exp(margin - math.dist(x[one], x[k])) * (LABELS[k] != LABELS[one])
                total += max(0.0, math.log(inner) + math.dist(x[i], x[j])) ** 2
                pairs += 1
    return total / (2 * pairs)


def test_stage_1_is_the_plain_models():
    terms, logits, _ = loss(1)
    assert terms.keys() == {"cross_entropy"}
    torch.testing.assert_close(terms["cross_entropy"], F.cross_entropy(logits, torch.tensor(LABELS)))
    assert METHODS["lifted"]({}, torch.tensor([5, 2]), 32).first_stage == "plain"


def test_stage_2_adds_a_tenth_of_the_loss_on_unit_features():
    terms, logits, features = loss(2)
    assert terms.keys() == {"cross_entropy", "lifted"}
    torch.testing.assert_close(terms["cross_entropy"], F.cross_entropy(logits, torch.tensor(LABELS)))
    assert terms["lifted"].item() == pytest.approx(0.1 * lifted_loop(features), rel=1e-4)
    assert resolve("glyphs", "lifted").stage2.sampler == "class-aware"


def test_the_length_of_the_features_changes_nothing():
    torch.testing.assert_close(loss(2)[0]["lifted"], loss(2, scale=1000.0)[0]["lifted"])
