"""Rows for new classes: the minimum of what the docstring says, beside rows that stay."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from oltr.nn.extended_head import AddedRows, ExtendedHead, centred_unit
from oltr.nn.fit_rows import fit_rows
from oltr.nn.heads import LinearHead, Output
from oltr.nn.memory import Memory


def problem(seed: int = 0):
    random = torch.Generator().manual_seed(seed)
    centres = torch.randn(5, 8, generator=random)
    labels = torch.arange(5).repeat_interleave(6)
    features = centres[labels] + 0.5 * torch.randn(30, 8, generator=random)
    logits = features @ centres[:3].T
    weights = torch.rand(30, generator=random) + 0.5
    residuals = torch.randn(12, 8, generator=random)
    return features, logits, labels, weights, torch.tensor([-1.0, 0.5]), residuals


def slow_loss(weight, bias, features, logits, labels, weights, prior, residuals, decay, spread):
    """The docstring's sum, image by image."""
    total = torch.zeros((), dtype=torch.float64)
    for u, z, y, share in zip(features, logits, labels, weights / weights.sum(), strict=True):
        every = torch.cat([z, weight @ u + bias + prior]).double()
        total = total - share * F.log_softmax(every, dim=0)[y]
    sigma = float((residuals**2).mean())
    varies = sum(float((weight @ r).square().sum()) for r in residuals) / len(residuals)
    return float(total) + 0.5 * decay * (float((weight**2).sum()) + spread / sigma * varies)


def test_the_rows_are_at_the_minimum():
    given, settings = problem(), {"decay": 0.01, "spread": 0.5}
    weight, bias = fit_rows(*given, **settings)
    least = slow_loss(weight, bias, *given, **settings)
    random = torch.Generator().manual_seed(1)
    for size in (1e-2, 1e-1, 1.0):
        for _ in range(10):
            moved = weight + size * torch.randn(weight.shape, generator=random)
            shifted = bias + size * torch.randn(bias.shape, generator=random)
            assert slow_loss(moved, shifted, *given, **settings) > least


def test_what_varies_within_classes_is_not_answered_to():
    features, logits, labels, weights, prior, _ = problem()
    along = torch.zeros(4, 8)
    along[:, 0] = 1.0
    free, _ = fit_rows(features, logits, labels, weights, prior, along[:0])
    held, _ = fit_rows(features, logits, labels, weights, prior, along, spread=1e4)
    assert held[:, 0].abs().max() < 0.1 * free[:, 0].abs().max()


def test_an_extended_head_keeps_some_logits_and_adds_others():
    torch.manual_seed(0)
    head, v = LinearHead(4, 3).eval(), torch.randn(5, 4)
    weight, bias, centre = torch.randn(2, 4), torch.randn(2), torch.randn(4)
    rows = AddedRows(torch.tensor([2, 0]), weight, bias, centre)
    whole = ExtendedHead(head, rows).eval()(v)
    assert torch.equal(whole.logits[:, :2], head(v).logits[:, [2, 0]])
    for image in range(5):
        unit = 16 * (v[image] - centre) / (v[image] - centre).norm()
        assert torch.allclose(whole.logits[image, 2:], weight @ unit + bias, atol=1e-5)
    assert torch.allclose(centred_unit(v, centre).norm(dim=1), torch.full((5,), 16.0))


def test_reachability_is_the_distance_to_the_nearest_centroid_known_now():
    class Remembering(LinearHead):
        def forward(self, direct):
            return Output(self.classifier(direct), direct, reachability=torch.tensor([3.0, 0.5]))

    v = torch.tensor([[1.0, 0.0], [0.0, 9.0]])
    memory = Memory(2, 2)
    memory.start_from(torch.tensor([[1.0, 1.0], [0.0, 7.0]]))
    row = torch.arange(1), torch.zeros(1, 2), torch.zeros(1), torch.zeros(2)
    assert ExtendedHead(Remembering(2, 2), AddedRows(*row, memory))(v).reachability.tolist() == [1.0, 2.0]
    assert ExtendedHead(Remembering(2, 2), AddedRows(*row))(v).reachability.tolist() == [3.0, 0.5]
