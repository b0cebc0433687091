"""How much a memory of class means is to add to a trained classifier, by images that trained neither."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.nn.blocks import LARGEST

WIDEST = 4.0  # of b·c, in spreads of a·z: so much where the logits say nothing
SUREST = 100.0  # where every image is named rightly, the likelihood grows with sure logits for ever
CERTAIN = 2.0  # standard errors

Terms = Callable[[Tensor], tuple[Tensor, Tensor]]  # B×D features → logits and cosines, each B×K
Parts = Iterator[tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class Weighed:
    """What validation images say of a·z + b·c."""

    a: float  # of the logits; 1 where the memory stays out
    b: float  # of the cosines; 0 where they do not help for certain
    gain: float  # of the best a and b in log-likelihood, classes counting alike
    error: float  # its standard error, if there were nothing to gain


def weigh_memory(terms: Terms, features: Tensor, labels: Tensor) -> Weighed:
    """(a, b) at the minimum of mean −log softmax(a·z + b·c)[y] over a, b ≥ 0, classes counting alike.

    z are the logits, c the cosines with the memory. a is a temperature: without it b would also have to mend
    that the network is too sure, or not sure enough. The problem is convex in two numbers: few images
    suffice. b is 0 unless the log-likelihood gains by two standard errors over the best a alone.
    """
    problem = _Problem(terms, features, labels)
    alone = problem.minimum(np.array([1.0, 0.0]), with_memory=False)
    both = problem.minimum(alone, with_memory=True)
    difference = problem.losses(alone) - problem.losses(both)
    gain = float(problem.weights @ difference)
    error = math.sqrt(float(problem.weights.square() @ difference.square()))
    if gain <= CERTAIN * error + 1e-12:
        return Weighed(1.0, 0.0, gain, error)
    a, b = (torch.from_numpy(both) @ problem.mixed).tolist()
    return Weighed(a, b, gain, error)


class _Problem:
    """The loss of x = u z/σ_z + v (z/σ_z + 4 c/σ_c) over u, v ≥ 0; σ are spreads over classes.

    It is the one of a·z + b·c in other coordinates: the units of z and c do not matter, and b·c has at most
    four times the spread of a·z, even where z says nothing.
    """

    def __init__(self, terms: Terms, features: Tensor, labels: Tensor):
        self.terms, self.features, self.labels = terms, features, labels
        counts = labels.bincount().double()
        self.weights = 1 / (counts[labels] * (counts > 0).sum())
        self.mixed = torch.eye(2, dtype=torch.float64)  # a and b of u and of v
        spreads = [each.std(dim=2, correction=0).sum(dim=1) for each, _, _ in self.parts()]
        spread = torch.stack(spreads).sum(dim=0) / len(labels)
        z, c = spread.where(spread > 0, 1.0).tolist()
        self.mixed = torch.tensor([[1 / z, 0.0], [1 / z, WIDEST / c]], dtype=torch.float64)

    def minimum(self, start: np.ndarray, with_memory: bool) -> np.ndarray:
        """(u, v)."""
        from scipy.optimize import minimize  # not needed by those who only look at methods

        bounds = [(0, SUREST), (0, SUREST if with_memory else 0)]
        options = {"ftol": 1e-13, "gtol": 1e-8}
        found = minimize(self.loss, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
        return np.asarray(found.x)

    def loss(self, at: np.ndarray) -> tuple[float, np.ndarray]:
        """Σ w (log Σ_k e^{x_k} − x_y) and its gradient (2)."""
        loss, slope = 0.0, torch.zeros(2, dtype=torch.float64)
        for terms, own, w in self.parts():
            x = torch.einsum("i,ibk->bk", torch.from_numpy(at), terms)
            loss += float(w @ F.cross_entropy(x, own, reduction="none"))
            off = x.softmax(dim=1)
            off[torch.arange(len(own)), own] -= 1
            slope += torch.einsum("ibk,bk,b->i", terms, off, w)
        return loss, slope.numpy()

    def losses(self, at: np.ndarray) -> Tensor:
        """−log softmax(x)[y] of each image."""
        parts = (
            F.cross_entropy(torch.einsum("i,ibk->bk", torch.from_numpy(at), terms), own, reduction="none")
            for terms, own, _ in self.parts()
        )
        return torch.cat([*parts])

    def parts(self) -> Parts:
        """What u and v are of (2×B×K), labels and weights of so many images at a time that it fits."""
        size = max(LARGEST // (8 * self.terms(self.features[:1])[0].shape[1]), 1)
        sides = (each.split(size) for each in (self.features, self.labels, self.weights))
        for features, labels, weights in zip(*sides, strict=True):
            terms = torch.stack([term.double() for term in self.terms(features)])
            yield torch.einsum("ij,jbk->ibk", self.mixed, terms), labels, weights
