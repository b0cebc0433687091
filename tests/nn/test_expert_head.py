import math

import pytest
import torch

from oltr.nn.expert_head import ExpertHead

EXPERTS, CLASSES, DIMS, BATCH = 3, 5, 4, 6


def example():
    torch.manual_seed(0)
    head = ExpertHead(EXPERTS, DIMS, CLASSES, scale=30.0)
    return head, 10 * torch.randn(BATCH, EXPERTS * DIMS)


def cosine(a, b):
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def test_the_logits_equal_a_loop():
    head, direct = example()
    with torch.no_grad():
        head.weight *= 7  # its length says nothing
    each, output, weight = head.expert_logits(direct), head(direct), head.weight.tolist()
    assert each.shape == (EXPERTS, BATCH, CLASSES)
    for b, v in enumerate(direct.tolist()):
        for k in range(CLASSES):
            own = [30 * cosine(v[e * DIMS : (e + 1) * DIMS], weight[e][k]) for e in range(EXPERTS)]
            assert each[:, b, k].tolist() == pytest.approx(own, abs=1e-4)
            assert output.logits[b, k].item() == pytest.approx(sum(own) / EXPERTS, abs=1e-4)
    assert torch.equal(output.direct_feature, direct)


def test_each_expert_learns_from_its_own_features_alone():
    head, direct = example()
    direct.requires_grad_()
    (gradient,) = torch.autograd.grad(head.expert_logits(direct)[1].square().sum(), direct)
    parts = gradient.unflatten(1, (EXPERTS, DIMS)).abs().sum(dim=(0, 2))
    assert parts[1] > 0 and parts[0] == parts[2] == 0


def test_experts_start_apart_and_with_unit_weights():
    head, _ = example()
    torch.testing.assert_close(head.weight.norm(dim=2), torch.ones(EXPERTS, CLASSES))
    assert not torch.allclose(head.weight[0], head.weight[1])


def test_under_bfloat16_the_head_works_in_float32():
    head, direct = example()
    rounded = direct.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        output, each = head(rounded), head.expert_logits(rounded)
    assert output.logits.dtype == each.dtype == output.direct_feature.dtype == torch.float32
    torch.testing.assert_close(each, head.expert_logits(rounded.float()))
