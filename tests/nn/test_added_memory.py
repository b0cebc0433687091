"""A memory added to the logits of a trained head, of any kind: against a loop, and saved with it."""

import numpy as np
import pytest
import torch

from oltr.nn.added_memory import AddedMemory, add_memory
from oltr.nn.cosine_head import CosineHead
from oltr.nn.expert_head import ExpertHead
from oltr.nn.heads import LinearHead
from oltr.nn.shifted_logits import shift_logits

HEADS = {
    "linear": lambda: LinearHead(4, 3),
    "cosine": lambda: CosineHead(4, 3, 16.0),
    "experts": lambda: ExpertHead(2, 2, 3, None),
}


def a_memory():
    memory = AddedMemory(3, 4)
    memory.start_from(
        torch.randn(4, 4), torch.randn(4), torch.tensor([[1.0, 2, 0, -1], [0, 0, 0, 0], [0, 1, 3, 1]])
    )
    memory.weights.copy_(torch.tensor([2.0, 5.0, 7.0]))
    memory.of_logits.fill_(0.5)
    return memory


@pytest.mark.parametrize("kind", HEADS)
def test_the_logits_gain_the_weighted_cosines(kind):
    torch.manual_seed(0)
    head, memory, direct = HEADS[kind]().eval(), a_memory(), 3 * torch.randn(6, 4)
    before = head(direct).logits.detach()
    add_memory(head, memory)
    found = head(direct)
    assert torch.equal(found.direct_feature, direct)
    for b, v in enumerate(direct.numpy()):
        seen = memory.whitening.numpy().T @ v - memory.centre.numpy()
        for k, mean in enumerate(memory.means.numpy()):
            lengths = np.linalg.norm(seen) * np.linalg.norm(mean)
            gain = memory.weights[k].item() * (seen @ mean / lengths if lengths else 0.0)
            assert found.logits[b, k].item() == pytest.approx(0.5 * before[b, k].item() + gain, abs=1e-4)


def test_it_is_saved_with_the_head_and_a_shift_comes_on_top():
    torch.manual_seed(0)
    head, other, direct = LinearHead(4, 3), LinearHead(4, 3), torch.randn(6, 4)
    names = set(head.state_dict())
    add_memory(head, a_memory())
    assert {name.split(".")[0] for name in set(head.state_dict()) - names} == {"added_memory"}
    add_memory(other, AddedMemory(3, 4))
    other.load_state_dict(head.state_dict())
    assert torch.equal(other(direct).logits, head(direct).logits)
    shift = torch.tensor([1.0, -2.0, 0.5])
    shift_logits(other, shift)
    torch.testing.assert_close(other(direct).logits, head(direct).logits + shift)
    assert isinstance(head, LinearHead)
