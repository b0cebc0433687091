"""The focal method: its loss with the default γ in both stages, and whose stage 1 it can share."""

import math

import pytest
import torch

from oltr.methods import METHODS
from oltr.nn.heads import Output


def make(**settings):
    return METHODS["focal"](settings, torch.tensor([50, 9, 3]), image_size=32)


@pytest.mark.parametrize("stage", [1, 2])
def test_the_loss_equals_a_loop(stage):
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 0])
    terms = make().loss(stage, None, Output(logits, torch.randn(4, 8)), labels)
    slow = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        p = math.exp(row[label]) / sum(math.exp(z) for z in row)
        slow -= (1 - p) * math.log(p) / 4
    assert terms.keys() == {"cross_entropy"}
    assert terms["cross_entropy"].item() == pytest.approx(slow, rel=1e-5)


def test_stage_1_is_shared_with_the_same_gamma_alone():
    assert make().first_stage == make().first_stage
    assert len({make().first_stage, make(gamma=2.0).first_stage, "plain"}) == 3
