import math

import pytest
import torch

from oltr.nn.cosine_head import CosineHead


def test_the_logits_equal_a_loop():
    torch.manual_seed(0)
    head, direct = CosineHead(4, 3, scale=30.0), 5 * torch.randn(6, 4)
    output = head(direct)
    assert output.direct_feature is direct
    for b, v in enumerate(direct.tolist()):
        for k, w in enumerate(head.classifier.weight.tolist()):
            product = sum(x * y for x, y in zip(v, w, strict=True))
            expected = 30 * product / math.hypot(*v) / math.hypot(*w)
            assert output.logits[b, k].item() == pytest.approx(expected, abs=1e-4)


def test_cosines_are_as_exact_under_autocast():
    torch.manual_seed(0)
    head, direct = CosineHead(64, 5, scale=30.0), torch.randn(6, 64).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        logits = head(direct).logits
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, head(direct.float()).logits)


def test_a_feature_of_zeros_has_logits_of_zero_and_no_gradient_that_is_no_number():
    head, direct = CosineHead(4, 3, scale=30.0), torch.zeros(2, 4, requires_grad=True)
    output = head(direct)
    head.cross_entropy(output, torch.tensor([0, 1])).backward()
    assert torch.equal(output.logits, torch.zeros(2, 3))
    assert torch.isfinite(direct.grad).all() and torch.isfinite(head.classifier.weight.grad).all()
