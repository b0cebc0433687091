"""How much a memory of class means is to add to a trained classifier, by images that trained neither."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

AT_A_TIME = 4096  # images: N×K logits are not kept
STEPS = 50
LARGEST = 100.0  # of a: where every image is named rightly, the likelihood grows with it for ever

Terms = Callable[[Tensor], tuple[Tensor, Tensor]]  # B×D features → logits and cosines, each B×K


@dataclass(frozen=True)
class Weighed:
    """What validation images say of s."""

    weight: float  # s; 0 where it does not help for certain
    gain: float  # of the best s ≥ 0 in log-likelihood, classes counting alike
    error: float  # its standard error, if there were nothing to gain


def weigh_memory(terms: Terms, features: Tensor, labels: Tensor) -> Weighed:
    """s = b/a at the minimum of mean −log softmax(a·z + b·c)[y] over a, b ≥ 0, classes counting alike.

    z are the logits, c the cosines with the memory. a is a temperature: without it s would also have to mend
    that the network is too sure, or not sure enough. The problem is convex in two numbers: few images
    suffice. s is 0 unless log-likelihood gains by more than a standard error over the best a alone.
    """
    counts = labels.bincount().double()
    weights = 1 / (counts[labels] * (counts > 0).sum())
    problem = _Problem(terms, features, labels, weights)
    alone = problem.minimum(with_memory=False)
    both = problem.minimum(with_memory=True)
    if float(both[1]) <= 0:
        return Weighed(0.0, 0.0, 0.0)
    difference = problem.losses(alone) - problem.losses(both)
    gain = float(weights @ difference)
    error = math.sqrt(float(weights.square() @ difference.square()))
    weight = float(both[1] / both[0]) if gain > error + 1e-12 else 0.0
    return Weighed(weight, gain, error)


@dataclass(frozen=True)
class _Problem:
    terms: Terms
    features: Tensor  # N×D
    labels: Tensor  # N
    weights: Tensor  # N float64

    def minimum(self, with_memory: bool) -> Tensor:
        """(a, b) by Newton's steps, halved where they lead uphill or out of a > 0."""
        at = torch.tensor([1.0, 0.0], dtype=torch.float64)
        loss, slope, bend = self.derivatives(at)
        for _ in range(STEPS):
            step = torch.zeros(2, dtype=torch.float64)
            if with_memory:
                ridge = 1e-12 * bend.diagonal().sum() * torch.eye(2, dtype=torch.float64)
                step = torch.linalg.lstsq(bend + ridge, slope[:, None]).solution[:, 0]
            elif float(bend[0, 0]) > 0:
                step[0] = slope[0] / bend[0, 0]
            share = 1.0
            while share > 1e-6:
                there = at - share * step
                if 0 < float(there[0]) <= LARGEST:
                    found = self.derivatives(there)
                    if float(found[0]) <= float(loss):
                        break
                share /= 2
            else:
                return at
            moved, at = float((there - at).abs().max()), there
            loss, slope, bend = found
            if moved < 1e-7:
                break
        return at

    def derivatives(self, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Σ w (log Σ_k e^{a z_k + b c_k} − a z_y − b c_y), its gradient (2) and Hessian (2×2)."""
        loss = torch.zeros((), dtype=torch.float64)
        slope, bend = torch.zeros(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
        for x, own, w in self._parts():  # 2×B×K, B, B
            joint = torch.einsum("i,ibk->bk", at, x)
            chosen = x.gather(2, own.expand(2, -1)[:, :, None])[:, :, 0]
            p = joint.softmax(dim=1)
            means = (p * x).sum(dim=2)  # of both terms under p
            loss += w @ (joint.logsumexp(dim=1) - at @ chosen)
            slope += (means - chosen) @ w
            centred = (x - means[:, :, None]) * (p * w[:, None]).sqrt()
            bend += torch.einsum("ibk,jbk->ij", centred, centred)
        return loss, slope, bend

    def losses(self, at: Tensor) -> Tensor:
        """−log softmax(a·z + b·c)[y] of each image."""
        found = []
        for x, own, _ in self._parts():
            joint = torch.einsum("i,ibk->bk", at, x)
            found.append(-joint.log_softmax(dim=1).gather(1, own[:, None])[:, 0])
        return torch.cat(found)

    def _parts(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Both terms (2×B×K), labels and weights of some images at a time."""
        sides = (each.split(AT_A_TIME) for each in (self.features, self.labels, self.weights))
        for features, labels, weights in zip(*sides, strict=True):
            yield torch.stack([term.double() for term in self.terms(features)]), labels, weights
