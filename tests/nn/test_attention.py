import math

import pytest
import torch

from oltr.nn.attention import Attention

KINDS = ["self", "spatial", "modulated"]
MAPS = [(3, 3), (2, 5), (1, 7), (4, 1)]


def softmax(scores):
    """exp(s_i) / Σ exp(s_j) of a list of numbers."""
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    return [power / sum(powers) for power in powers]


def project(layer, vector):
    """A layer at one position: W v + b, or W v."""
    rows = layer.weight.tolist()
    biases = [0.0] * len(rows) if layer.bias is None else layer.bias.tolist()
    return [
        sum(w * v for w, v in zip(row, vector, strict=True)) + b for row, b in zip(rows, biases, strict=True)
    ]


def self_attention_loop(layer, f):
    """SA(f): every position gathers g from all positions, weighted by softmax(θ·φ)."""
    channels, height, width = f.shape
    positions = [f[:, y, x].tolist() for y in range(height) for x in range(width)]
    theta, phi, g = ([project(part, p) for p in positions] for part in (layer.theta, layer.phi, layer.g))
    out = torch.zeros(channels, height * width, dtype=torch.float64)
    for i in range(len(positions)):
        weights = softmax([sum(a * b for a, b in zip(theta[i], other, strict=True)) for other in phi])
        gathered = [sum(w * g[j][c] for j, w in enumerate(weights)) for c in range(len(g[0]))]
        out[:, i] = torch.tensor(project(layer.out, gathered), dtype=torch.float64)
    return out.reshape(channels, height, width)


def spatial_loop(layer, f, form):
    """MA(f): one weight per position, all of them adding up to one."""
    _, height, width = f.shape
    if form == "pointwise":
        scores = [project(layer.score, f[:, y, x].tolist())[0] for y in range(height) for x in range(width)]
    else:
        linear, flat = layer.score, f.reshape(-1).tolist()
        scores = [
            sum(w * v for w, v in zip(row, flat, strict=True)) + b
            for row, b in zip(linear.weight.tolist(), linear.bias.tolist(), strict=True)
        ]
    return torch.tensor(softmax(scores), dtype=torch.float64).reshape(height, width)


def attention_loop(attention, f, form):
    """f + A(f) for one image, A as the kind says."""
    f = f.double()
    context = f if attention.self_attention is None else self_attention_loop(attention.self_attention, f)
    if attention.spatial is None:
        return f + context
    weights, out = spatial_loop(attention.spatial, f, form), f.clone()
    for y in range(f.shape[1]):
        for x in range(f.shape[2]):
            out[:, y, x] += weights[y, x] * context[:, y, x]
    return out


def stirred(attention):
    """The module with every weight random, the ones that start at zero too."""
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return attention


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("start", ["zero", "released"])
@pytest.mark.parametrize("form", ["pointwise", "released"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", MAPS)
def test_attention_equals_a_loop_over_positions(kind, form, start, size, dtype):
    torch.manual_seed(0)
    attention = stirred(Attention(5, size, kind, form, start)).to(dtype)
    f = torch.randn(2, 5, *size, dtype=dtype)
    found = attention(f)
    assert found.dtype == dtype
    expected = torch.stack([attention_loop(attention, image, form) for image in f])
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", ["pointwise", "released"])
@pytest.mark.parametrize("kind", ["self", "modulated"])
def test_attention_starts_as_the_identity_and_learns(kind, form):
    torch.manual_seed(0)
    attention = Attention(6, (3, 4), kind, form)
    f = torch.randn(2, 6, 3, 4)
    assert torch.equal(attention(f), f)
    optimizer = torch.optim.SGD(attention.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (attention(f) - 1).square().mean().backward()
        optimizer.step()
    assert not torch.allclose(attention(f), f)
    # Once the last layer has left zero every weight learns; a bias that moves all scores of a softmax
    # alike has no effect.
    silent = [n for n, p in attention.named_parameters() if not p.grad.abs().max() > 1e-12]
    assert set(silent) <= {"self_attention.phi.bias", "spatial.score.bias"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_any_form_takes_maps_of_every_size(kind):
    torch.manual_seed(0)
    attention = stirred(Attention(4, (7, 7), kind, "pointwise"))
    for size in ((7, 7), (1, 9), (12, 2), (1, 1)):
        f = torch.randn(1, 4, *size)
        torch.testing.assert_close(
            attention(f)[0].double(), attention_loop(attention, f[0], "pointwise"), rtol=1e-5, atol=1e-5
        )


def test_the_released_form_has_the_size_it_was_built_for():
    attention = Attention(4, (3, 3), "modulated", "released")
    assert attention.spatial.score.weight.shape == (9, 9 * 4)
    with pytest.raises(RuntimeError):
        attention(torch.randn(1, 4, 3, 4))


def test_spatial_weights_of_an_image_add_up_to_one():
    torch.manual_seed(0)
    spatial = Attention(4, (3, 5), "spatial").spatial
    weights = spatial(torch.randn(6, 4, 3, 5))
    assert weights.shape == (6, 1, 3, 5)
    torch.testing.assert_close(weights.sum(dim=(1, 2, 3)), torch.ones(6))


def test_one_image_does_not_see_another():
    torch.manual_seed(0)
    attention = stirred(Attention(4, (3, 3), "modulated"))
    f = torch.randn(2, 4, 3, 3)
    other = torch.stack([f[0], torch.randn(4, 3, 3)])
    torch.testing.assert_close(attention(f)[0], attention(other)[0])


def test_the_released_start_is_that_of_its_convolutions():
    torch.manual_seed(0)
    channels, inner = 512, 256
    layers = Attention(channels, (7, 7), "modulated", "released", "released").self_attention
    assert layers.out.bias is None
    for layer, outputs in ((layers.theta, inner), (layers.phi, inner), (layers.g, inner)):
        assert layer.weight.std().item() == pytest.approx(math.sqrt(2 / outputs), rel=0.01)
        assert layer.bias.count_nonzero() == 0
    assert layers.out.weight.std().item() == pytest.approx(math.sqrt(2 / channels), rel=0.01)


def test_the_released_start_has_twelve_times_the_affinity_and_changes_the_map():
    f = torch.rand(4, 64, 7, 7, generator=torch.Generator().manual_seed(1))

    def spread_and_share(start):
        spreads, shares = [], []
        for seed in range(20):
            torch.manual_seed(seed)
            attention = Attention(64, (7, 7), "modulated", "pointwise", start)
            layers, rows = attention.self_attention, f.flatten(2).transpose(1, 2)
            spreads.append((layers.theta(rows) @ layers.phi(rows).transpose(1, 2)).std().item())
            shares.append(((attention(f) - f).norm() / f.norm()).item())
        return sum(spreads) / len(spreads), min(shares), max(shares)

    ours, theirs = spread_and_share("zero"), spread_and_share("released")
    # sqrt(2 / (C/2)) against 1 / sqrt(3 C) in both factors; biases make up the rest.
    assert 9 < theirs[0] / ours[0] < 15
    assert ours[2] == 0 and theirs[1] > 0.01


def test_the_start_at_zero_draws_what_it_drew_before():
    torch.manual_seed(3)
    attention = Attention(6, (3, 3), "modulated", "released", "zero")
    torch.manual_seed(3)
    expected = [torch.nn.Linear(6, 3) for _ in range(3)]
    torch.nn.Linear(3, 6)
    expected.append(torch.nn.Linear(54, 9))
    layers = attention.self_attention
    drawn = layers.theta, layers.phi, layers.g, attention.spatial.score
    for found, layer in zip(drawn, expected, strict=True):
        assert torch.equal(found.weight, layer.weight) and torch.equal(found.bias, layer.bias)
    assert layers.out.bias.count_nonzero() == layers.out.weight.count_nonzero() == 0
