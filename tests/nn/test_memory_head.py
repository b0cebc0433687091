"""The linear classifier beside class means: its logits against a loop."""

import numpy as np
import torch

from oltr.nn import MemoryHead
from oltr.nn.shifted_logits import shift_logits


def example():
    torch.manual_seed(0)
    head = MemoryHead(4, 3, scale=5.0)
    whitening, centre, means = torch.randn(4, 4), torch.randn(4), torch.randn(3, 4)
    means[2] = 0
    head.class_means.start_from(whitening, centre, means)
    return head.requires_grad_(False), whitening, centre, means


def test_the_logits_equal_a_loop():
    head, whitening, centre, means = example()
    direct = 3 * torch.randn(6, 4)
    found = head(direct).logits
    weight, bias = head.classifier.weight.numpy(), head.classifier.bias.numpy()
    for b, v in enumerate(direct.numpy()):
        seen = whitening.numpy().T @ v - centre.numpy()
        for k, mean in enumerate(means.numpy()):
            lengths = np.linalg.norm(seen) * np.linalg.norm(mean)
            cosine = seen @ mean / lengths if lengths else 0.0
            np.testing.assert_allclose(found[b, k], weight[k] @ v + bias[k] + 5 * cosine, atol=1e-4)


def test_logits_are_as_exact_under_autocast():
    head, *_ = example()
    direct = torch.randn(6, 4).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        logits = head(direct).logits
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, head(direct.float()).logits)


def test_the_memory_is_saved_with_the_weights():
    head, *_ = example()
    other = MemoryHead(4, 3, scale=5.0)
    other.load_state_dict(head.state_dict())
    direct = torch.randn(6, 4)
    assert torch.equal(other(direct).logits, head(direct).logits)


def test_without_the_memory_the_logits_are_linear_and_shifted_if_the_head_is():
    head, *_ = example()
    direct, shift = torch.randn(6, 4), torch.tensor([1.0, -2.0, 0.5])
    torch.testing.assert_close(
        head.without_class_means(direct), head.classifier(direct), atol=1e-5, rtol=1e-5
    )
    shift_logits(head, shift)
    torch.testing.assert_close(
        head.without_class_means(direct), head.classifier(direct) + shift, atol=1e-5, rtol=1e-5
    )
