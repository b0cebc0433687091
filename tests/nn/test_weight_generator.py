import math

import pytest
import torch
from torch.nn import functional as F

from oltr.nn.weight_generator import WeightGenerator

CLASSES, DIMS, SUPPORTS = 5, 4, 3


def length(v):
    return math.sqrt(sum(x * x for x in v))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def example():
    """A generator none of whose parts is as it started, features, weights, and the classes attended to."""
    torch.manual_seed(0)
    weight = torch.randn(CLASSES, DIMS)
    generator = WeightGenerator(weight, 10.0).double()
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    z = F.normalize(torch.randn(SUPPORTS, DIMS), dim=1).double()
    return generator, z, weight.double(), torch.tensor([True, False, True, True, False])


def generate(generator, z, weight, attended):
    """φ_avg ⊙ z + φ_att ⊙ Σ_b softmax_b(scale · cos(φ_q z, k_b)) w_b / ‖w_b‖ for one support."""
    query = [dot(row, z) for row in generator.query.weight.tolist()]
    powers = {
        k: math.exp(generator.scale.item() * dot(query, key) / length(query) / length(key))
        for k, key in enumerate(generator.keys.tolist())
        if attended[k]
    }
    result = []
    for d in range(len(z)):
        memory = sum(p / sum(powers.values()) * weight[k][d] / length(weight[k]) for k, p in powers.items())
        result.append(generator.average[d].item() * z[d] + generator.attention[d].item() * memory)
    return result


def test_generated_weights_equal_a_loop():
    generator, z, weight, attended = example()
    expected = [generate(generator, row, weight.tolist(), attended.tolist()) for row in z.tolist()]
    torch.testing.assert_close(generator(z, weight, attended), torch.tensor(expected).double())


def test_a_class_that_is_not_attended_to_has_no_part_in_the_weights():
    generator, z, weight, attended = example()
    before = generator(z, weight, attended)
    weight[1], generator.keys.data[4] = 100.0, 100.0
    assert torch.equal(generator(z, weight, attended), before)
    weight[0] += 1
    assert not torch.equal(generator(z, weight, attended), before)


def test_where_no_class_may_be_attended_to_the_support_alone_counts():
    generator, z, weight, attended = example()
    found = generator(z, weight.requires_grad_(), torch.zeros_like(attended))
    torch.testing.assert_close(found, generator.average * z)
    found.sum().backward()
    for name, parameter in generator.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("part", ["average", "attention", "query.weight", "keys", "scale"])
def test_every_part_learns(part):
    generator, z, weight, attended = example()
    generator(z, weight, attended).square().sum().backward()
    assert generator.get_parameter(part).grad.abs().sum() > 0


def test_a_support_first_attends_to_the_class_it_resembles():
    weight = torch.eye(4)
    generator = WeightGenerator(weight, 10.0)
    found = generator(weight[2:3], weight, torch.ones(4, dtype=torch.bool))
    assert found.argmax() == 2 and found[0, 2] > 1.99
