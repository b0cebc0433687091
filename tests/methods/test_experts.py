"""Diverse experts: the loss against loops, and a network that a run writes and reads back."""

import math

import pytest
import torch

from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.methods.experts import divergence
from oltr.nn.backbone import Backbone
from oltr.recipes import resolve
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from oltr.training.train import train
from tests.helpers.tiny import tiny_config

COUNTS, EXPERTS = [40, 20, 10, 5, 2], 3
LABELS = torch.tensor([0, 0, 1, 2, 3, 4])


def make(**changes):
    settings = resolve("cifar100-lt-100", "experts").settings | changes
    return METHODS["experts"](settings, torch.tensor(COUNTS), image_size=32)


def example(name="resnet32_cifar", **changes):
    torch.manual_seed(0)
    method = make(**changes)
    return method, method.build_stage1(Backbone(name, 32)), torch.randn(6, 3, 32, 32)


def softmax(logits):
    powers = [math.exp(z - max(logits)) for z in logits]
    return [power / sum(powers) for power in powers]


def divergence_loop(logits):
    total = 0.0
    for b in range(logits.shape[1]):
        p = [softmax(expert[b]) for expert in logits.tolist()]
        mean = [sum(column) / len(p) for column in zip(*p, strict=True)]
        total += sum(x * math.log(x / m) for row in p for x, m in zip(row, mean, strict=True))
    return total / (logits.shape[0] * logits.shape[1])


def test_the_divergence_equals_a_loop_and_has_its_gradient():
    logits = 3 * torch.randn(EXPERTS, 4, 5, dtype=torch.float64, requires_grad=True)
    assert divergence(logits).item() == pytest.approx(divergence_loop(logits), rel=1e-9)
    assert torch.autograd.gradcheck(divergence, (logits,))


def test_the_divergence_is_zero_for_equal_experts_and_never_above_the_log_of_their_number():
    alike = torch.randn(1, 4, 5).expand(EXPERTS, 4, 5)
    assert divergence(alike).item() == pytest.approx(0, abs=1e-6)
    apart = (1000 * torch.eye(EXPERTS, 5)[:, None]).requires_grad_()
    bound = divergence(apart)
    assert bound.item() == pytest.approx(math.log(EXPERTS))
    bound.backward()
    assert torch.isfinite(apart.grad).all()


def test_the_loss_equals_a_loop():
    method, network, images = example(diversity=0.3, temperature=2.0)
    output = network.eval()(images)
    each = network.head.expert_logits(output.direct_feature).double()
    torch.testing.assert_close(output.logits.double(), sum(each) / EXPERTS)
    cross_entropy = 0.0
    for expert in each.tolist():
        for logits, label in zip(expert, LABELS.tolist(), strict=True):
            adjusted = [z + math.log(n) for z, n in zip(logits, COUNTS, strict=True)]
            cross_entropy -= math.log(softmax(adjusted)[label]) / (EXPERTS * len(LABELS))
    terms = method.loss(1, network, output, LABELS)
    assert set(terms) == {"cross_entropy", "diversity"}
    assert terms["cross_entropy"].item() == pytest.approx(cross_entropy, rel=1e-4)
    assert terms["diversity"].item() == pytest.approx(-0.3 * divergence_loop(each / 2), rel=1e-4)


def test_every_weight_learns_and_experts_grow_apart():
    apart = []
    for diversity in (0.0, 0.9):
        method, network, images = example(diversity=diversity)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
        for _ in range(6):
            optimizer.zero_grad()
            output = network(images)
            sum(method.loss(1, network, output, LABELS).values()).backward()
            optimizer.step()
        assert all(p.grad.abs().sum() > 0 for p in network.parameters())
        apart.append(divergence(network.head.expert_logits(network(images).direct_feature)).item())
    assert apart[1] > apart[0]


def test_the_second_stage_goes_on_and_only_equal_experts_share_the_first():
    method, network, _ = example()
    assert method.build_stage2(network) is network
    plain = METHODS["plain"]({}, torch.tensor(COUNTS), image_size=32)
    stages = {other.first_stage for other in (plain, method, make(experts=2), make(diversity=0.0))}
    assert len(stages) == 4 and make().first_stage == method.first_stage
    with pytest.raises(UserError, match=r"settings\.experts is 0"):
        make(experts=0)


def test_a_compiler_takes_the_head_and_its_loss_in_one_graph():
    method, network, images = example()
    with torch.no_grad():
        features = network.embed(images)

    def terms(features):
        return torch.stack(list(method.loss(1, network, network.head(features), LABELS).values()))

    found = []
    for function in (terms, torch.compile(terms, fullgraph=True, backend="aot_eager")):
        network.zero_grad()
        value = function(features)
        value.sum().backward()
        found.append((value.detach(), network.head.weight.grad))
    for expected, same in zip(*found, strict=True):
        torch.testing.assert_close(same, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("backbone", ["resnet10_half", "test_convnext"])
def test_a_run_is_read_back(pack, tmp_path, backbone):
    config = tiny_config("experts", epochs=(1, 1), backbone=backbone)
    network, *_ = train(config, open_pack(pack).manifest, tmp_path / "run", TrainOptions())
    images = torch.randn(2, 3, 32, 32)
    again = TrainedRun(tmp_path / "run").network.cpu()
    torch.testing.assert_close(again(images).logits, network.cpu().eval()(images).logits)
