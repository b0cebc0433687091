"""The search against float64 brute force: ties, duplicates, own identities, blocks, faiss."""

import numpy as np
import pytest
import torch

from oltr.identify import block_search, search
from oltr.identify.search import top_similarities
from tests.helpers.gpu import needs_gpu


def brute(queries, references, k, own=None, skip=None):
    """Every cosine in float64, sorted."""
    a, b = (x.double().numpy() for x in (queries, references))
    a, b = a / np.linalg.norm(a, axis=1, keepdims=True), b / np.linalg.norm(b, axis=1, keepdims=True)
    values = a @ b.T
    if own is not None:
        values[(own[0][:, None] == own[1]) & (own[1] >= 0)] = -np.inf
    if skip is not None:
        values[:, skip] = -np.inf
    values = np.concatenate([values, np.full((len(a), k), -np.inf)], axis=1)
    return -np.sort(-values, axis=1)[:, :k]


@pytest.fixture(params=["blocks", "faiss"])
def how(request, monkeypatch):
    if request.param == "faiss":
        pytest.importorskip("faiss")
    for place in ("cpu", "faiss"):
        monkeypatch.setitem(block_search.REFERENCES, place, 64)
    monkeypatch.setitem(block_search.QUERIES, "cpu", 7)
    return request.param


def made(queries, references, dims, seed=0):
    random = torch.Generator().manual_seed(seed)
    return (torch.randn(n, dims, generator=random) for n in (queries, references))


@pytest.mark.parametrize("k", [1, 5])
def test_as_brute_force(how, k):
    queries, references = made(30, 1000, 24)
    rng = np.random.default_rng(0)
    own = rng.integers(-1, 9, 30), rng.integers(-1, 9, 1000)
    skip = rng.random(1000) < 0.3
    for options in ({}, {"own": own}, {"skip": skip}, {"own": own, "skip": skip}):
        found = top_similarities(queries, references, k, search=how, **options)
        np.testing.assert_allclose(found, brute(queries, references, k, **options), atol=1e-14)


def test_more_near_ties_than_candidates_are_settled_in_float64(how):
    """Forty references that float32 products cannot tell apart."""
    queries, references = made(6, 400, 64)
    references = references.double()
    references[100:140] = queries[0].double() + 1e-9 * torch.randn(40, 64, dtype=torch.float64)
    references[200:240] = queries[1].double()
    found = top_similarities(queries, references, 5, search=how)
    np.testing.assert_allclose(found, brute(queries, references, 5), atol=1e-15, rtol=0)


def test_few_people_with_many_images_take_no_more_of_faiss(how, monkeypatch):
    """All references are of the queries' identities, and half of them of each query's own."""
    faiss, asked = pytest.importorskip("faiss"), []
    knn = faiss.knn
    monkeypatch.setattr(faiss, "knn", lambda q, r, k, **more: asked.append(k) or knn(q, r, k, **more))
    queries, references = made(6, 300, 8)
    own = np.arange(6) % 2, np.arange(300) % 2
    own[1][200:] = -1
    found = top_similarities(queries, references, 5, own=own, search=how)
    np.testing.assert_allclose(found, brute(queries, references, 5, own), atol=1e-14)
    assert all(k <= 5 + search.SPARE for k in asked) and bool(asked) == (how == "faiss")


def test_fewer_references_than_asked_for(how):
    queries, references = made(3, 4, 8)
    found = top_similarities(
        queries, references, 5, search=how, own=(np.zeros(3, int), np.array([0, 1, 0, -1]))
    )
    assert (np.isfinite(found).sum(axis=1) == 2).all()
    nothing = top_similarities(queries, references[:0], 2, search=how)
    assert nothing.shape == (3, 2) and (nothing == -np.inf).all()


def test_length_does_not_matter_and_zeros_are_similar_to_nothing():
    queries, references = made(5, 50, 8)
    scaled = references * torch.logspace(-6, 6, 50)[:, None]
    scaled[7] = 0
    references[7] = 0
    np.testing.assert_allclose(
        top_similarities(queries, scaled, 50), top_similarities(queries, references, 50), atol=1e-7
    )
    assert (top_similarities(queries, references[7:8], 1) == 0).all()


def test_low_precision_elsewhere_does_not_matter():
    queries, references = made(20, 300, 32)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        found = top_similarities(queries, references, 3)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    np.testing.assert_allclose(found, brute(queries, references, 3), atol=1e-14)


@needs_gpu
@pytest.mark.parametrize("on_host", [True, False])
def test_on_a_gpu_as_brute_force(on_host):
    queries, references = made(300, 50_000, 128)
    references[1000:1040] = queries[0]
    own = np.arange(300) % 50, np.arange(50_000) % 60 - 5
    device = torch.device("cuda")
    there = references if on_host else references.to(device)
    found = top_similarities(queries.to(there.device), there, 5, own=own, device=device)
    np.testing.assert_allclose(found, brute(queries, references, 5, own), atol=1e-14)
