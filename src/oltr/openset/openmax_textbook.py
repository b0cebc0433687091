"""OpenMax as printed and released in 2016: a tail for each class, however few images it has."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oltr.openset.openmax import SMALLEST_SCALE, OpenMax, Tails, correct_means, log_odds, own_distances
from oltr.openset.parts import by_parts
from oltr.openset.scores import ScoreInfo, register
from oltr.openset.weibull import NO_TAIL, fit_whole_tail

TOP, TAIL = 10, 20  # α and η: likeliest classes that give way, distances of a tail


@register
class TextbookOpenMax(OpenMax):
    """The probability of "unknown" in a softmax over K + 1 logits, W_k of class k's own images alone.

    v'_k = v_k − m_k and v'_unknown = Σ m_k with m_k = (α − i)/α · W_k(‖v − μ_k‖) · v_k for the α = 10
    likeliest classes, i = 0 the first; W_k is fitted to the 20 largest distances of class k's correct
    training images to their mean, or to all where there are fewer. Of a single image the tail is a step at
    its distance, 0: whatever is elsewhere is unknown. A class without a correct image has no mean and gives
    nothing.
    """

    name = "openmax-textbook"
    info = ScoreInfo(
        title="OpenMax, as published",
        summary="OpenMax as published: a separate Weibull tail for each class, the top ten classes revised",
        paper="Bendale and Boult, Towards Open Set Deep Networks, CVPR 2016",
        year=2016,
        changes="Euclidean distances, as in the printed algorithm (the experiments add cosine distances); "
        "the predicted class is still the arg max of the logits",
    )

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> Tails:
        right = logits.argmax(dim=1) == labels
        means, counts = correct_means(logits, labels, right)
        distances, owners = own_distances(logits, labels, means)[right].numpy(), labels[right].numpy()
        fits = [NO_TAIL] * len(counts)
        for k in torch.nonzero(counts)[:, 0].tolist():
            fits[k] = fit_whole_tail(distances[owners == k], TAIL, SMALLEST_SCALE)
        tails = torch.tensor(fits, dtype=torch.float64)
        return Tails(means, torch.full(counts.shape, math.inf), *tails.unbind(1))

    def compare(self, features: Tensor, logits: Tensor, learned: Tails) -> Tensor:
        return by_parts(lambda part: log_odds(part, learned, TOP, -math.inf), logits)
