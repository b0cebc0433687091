import itertools
import math

import pytest
import torch

from oltr.nn import blocks
from oltr.nn.meta_embedding import MetaEmbedding, hallucinate

SWITCHES = list(itertools.product([True, False], repeat=3))


def build(
    memory, selector, reachability, coefficients="softmax", scale=10.0, constant=True, classes=6, dims=4
):
    torch.manual_seed(0)
    meta = MetaEmbedding(
        classes, dims, memory=memory, selector=selector, reachability=reachability,
        coefficients=coefficients, reachability_scale=scale, constant_centroids=constant,
    )  # fmt: skip
    if meta.memory is not None:
        meta.memory.start_from(torch.randn(classes, dims))
    return meta


def linear(layer, v):
    """W v + b as a list."""
    return [sum(w * x for w, x in zip(row, v, strict=True)) + b
            for row, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)]  # fmt: skip


def meta_loop(meta, v, coefficients, scale, selector, reachability, memory):
    """v_meta = (s/γ)(v + e ⊗ oᵀM) for one image, with what is switched off left out."""
    centroids = meta.memory.centroids.tolist() if meta.memory is not None else []
    out = list(v)
    if memory:
        o = linear(meta.hallucinator, v)
        if coefficients == "softmax":
            powers = [math.exp(x) for x in o]
            o = [power / sum(powers) for power in powers]
        e = [math.tanh(x) for x in linear(meta.concept_selector, v)] if selector else [1.0] * len(v)
        for d in range(len(v)):
            memory_feature = sum(o[i] * centroids[i][d] for i in range(len(centroids)))
            out[d] += e[d] * memory_feature
    if reachability:
        gamma = min(math.sqrt(sum((a - b) ** 2 for a, b in zip(v, c, strict=True))) for c in centroids)
        out = [scale / gamma * x for x in out]
    return out


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("coefficients", "scale"), [("softmax", 10.0), ("raw", 1.0)])
@pytest.mark.parametrize(("memory", "selector", "reachability"), SWITCHES)
def test_the_meta_embedding_equals_a_loop(memory, selector, reachability, coefficients, scale, dtype):
    meta = build(memory, selector, reachability, coefficients, scale).to(dtype)
    direct = torch.randn(5, 4, dtype=dtype)
    expected = [
        meta_loop(meta, v, coefficients, scale, selector, reachability, memory) for v in direct.tolist()
    ]
    parts = meta(direct)
    torch.testing.assert_close(
        parts.meta_embedding.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-5, atol=1e-5
    )
    assert (parts.memory_feature is not None) == memory
    assert (parts.concept_selector is not None) == (memory and selector)
    assert (parts.reachability is not None) == reachability


@pytest.mark.parametrize(("memory", "selector", "reachability"), SWITCHES)
def test_what_is_switched_off_has_no_weights(memory, selector, reachability):
    meta = build(memory, selector, reachability)
    names = {name.split(".")[0] for name, _ in meta.named_parameters()}
    expected = {
        "memory": memory or reachability,
        "hallucinator": memory,
        "concept_selector": memory and selector,
    }
    assert names == {name for name, there in expected.items() if there}


@pytest.mark.parametrize("constant", [True, False])
def test_the_centroids_learn_through_the_embedding_only_if_not_constant(constant):
    meta = build(True, True, True, constant=constant)
    direct = torch.randn(5, 4, requires_grad=True)
    meta(direct).meta_embedding.square().sum().backward()
    assert (meta.memory.centroids.grad is None) == constant
    for parameter in (direct, meta.hallucinator.weight, meta.concept_selector.weight):
        assert parameter.grad.abs().sum() > 0


def test_the_gradient_passes_through_gamma_to_the_direct_feature():
    meta = build(False, False, True, constant=True).double()
    direct = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: meta(v).meta_embedding, (direct,))


@pytest.mark.parametrize("limit", [1, 12, 2**25])
@pytest.mark.parametrize("batch", [3, 9])  # fewer and more than dimensions
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("form", ["softmax", "raw"])
def test_the_memory_feature_has_one_value_and_gradient_however_it_is_made(
    form, constant, batch, limit, monkeypatch
):
    meta = build(True, True, True).double()
    direct = torch.randn(batch, 4, dtype=torch.float64, requires_grad=True)
    centroids = meta.memory.centroids.detach() if constant else meta.memory.centroids
    inputs = [direct, *meta.hallucinator.parameters(), *([] if constant else [centroids])]
    o = meta.hallucinator(direct)
    expected = (o.softmax(dim=1) if form == "softmax" else o) @ centroids
    monkeypatch.setattr(blocks, "LARGEST", limit)
    found = hallucinate(direct, meta.hallucinator, centroids, form)
    torch.testing.assert_close(found, expected)
    for a, b in zip(
        torch.autograd.grad(found.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)
