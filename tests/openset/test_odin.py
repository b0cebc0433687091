"""ODIN's changed images, one by one and by finite differences, and its score."""

import math

import pytest
import torch

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.openset import SCORES
from oltr.openset.odin import Odin, perturbed
from oltr.recipes import resolve
from tests.helpers.separable import outputs

SIZE, STD = 32, (0.2, 0.4, 0.5)


def network(name="oltr"):
    """A network in evaluation mode, in float64, whose attention and memory have something to say."""
    torch.manual_seed(0)
    counts = torch.tensor([9, 5, 2])
    method = METHODS[name](resolve("glyphs", name).settings, counts, SIZE)
    made = method.build_stage2(method.build_stage1(Backbone("resnet10_half", SIZE)))
    if name == "oltr":
        made.head.meta.memory.start_from(torch.rand(3, made.direct_feature.dims))
        torch.nn.init.normal_(made.attention.self_attention.out.weight)
    return made.double().eval()


def views(images=3):
    return torch.randn(images, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1)).double()


def logits_of(net):
    return lambda x: net(x).logits


def log_probabilities(net, x, temperature, k):
    """log softmax(logits / T)_k of each image, term by term."""
    found = []
    for row in net(x).logits.tolist():
        logits = [z / temperature for z in row]
        found.append(logits[k] - math.log(sum(math.exp(z) for z in logits)))
    return found


@pytest.mark.parametrize(("name", "temperature"), [("plain", 10.0), ("oltr", 1.0), ("oltr", 10.0)])
@torch.no_grad()
def test_pixels_move_towards_the_likeliest_class(name, temperature):
    net, x = network(name), views(2)
    moved = perturbed(logits_of(net), x, temperature, 0.01)
    assert ((moved - x).abs() - 0.01).abs().max() < 1e-9
    for image, k in enumerate(net(x).logits.argmax(dim=1).tolist()):
        places = torch.randint(3 * SIZE * SIZE, (10,), generator=torch.Generator().manual_seed(image))
        step = 1e-4 * torch.eye(3 * SIZE * SIZE)[places].view(-1, 3, SIZE, SIZE)
        up, down = (log_probabilities(net, x[image] + sign * step, temperature, k) for sign in (1, -1))
        signs = [math.copysign(1, above - below) for above, below in zip(up, down, strict=True)]
        ways = (moved - x)[image].view(-1)[places].sign().tolist()
        # In float32 the sign of a slope that is next to nothing may be lost.
        assert sum(sign == way for sign, way in zip(signs, ways, strict=True)) >= 9
        before, after = (log_probabilities(net, y[image : image + 1], temperature, k) for y in (x, moved))
        assert after > before


def test_the_gradient_goes_through_the_reachability(monkeypatch):
    net, x = network(), views()
    whole = perturbed(logits_of(net), x, 1.0, 0.01)
    memory = net.head.meta.memory
    reach = memory.reachability
    monkeypatch.setattr(memory, "reachability", lambda *given: reach(*given).detach())
    assert not torch.equal(perturbed(logits_of(net), x, 1.0, 0.01), whole)


def test_each_image_is_moved_by_itself_and_the_network_stays_as_it_was():
    net, x = network(), views()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    whole = perturbed(logits_of(net), x, 1000.0, 0.01)
    for image in range(3):
        alone = perturbed(logits_of(net), x[image : image + 1], 1000.0, 0.01)
        assert (alone[0] != whole[image]).double().mean() < 1e-3
    with torch.inference_mode():
        assert torch.equal(perturbed(logits_of(net), x + 0, 1000.0, 0.01), whole)
    assert not whole.requires_grad and all(p.grad is None for p in net.parameters())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_noise_is_told_in_pixels_from_0_to_1():
    net, x = network("plain"), views()
    moved = Odin(noise=0.002).change(logits_of(net), x, STD) - x
    for channel, std in enumerate(STD):
        assert moved[:, channel].abs().max().item() == pytest.approx(0.002 / std, rel=1e-5)


def test_without_noise_it_is_a_softmax_at_a_temperature():
    net, x = network(), views()
    assert torch.equal(Odin(noise=0.0).change(logits_of(net), x, STD), x)
    logits = 9 * torch.randn(5, 4)
    found = Odin(temperature=1000.0, noise=0.0).value(*outputs(logits).inputs)
    assert torch.equal(found, (logits.double() / 1000).softmax(dim=1).amax(dim=1))
    loop = []
    for row in logits.tolist():
        powers = [math.exp(z / 1000) for z in row]
        loop.append(max(powers) / sum(powers))
    torch.testing.assert_close(found, torch.tensor(loop).double())
    assert (SCORES["odin"]().temperature, SCORES["odin"]().noise) == (1000.0, 0.0014)
