"""OpenMax: logits give way to an "unknown" where an image is far from its classes' training images."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from oltr.openset.moments import class_means
from oltr.openset.parts import AT_A_TIME, by_parts
from oltr.openset.scores import FittedScore, ScoreInfo, register
from oltr.openset.weibull import fit_tail, weibull_cdf

# α: likeliest classes that may give way. The paper has 10, of 1000 that overlap. Where classes stand apart,
# an image is far from all but its own, and ten logits given away would call every image unknown.
TOP = 2
SHARE = 20  # a tail is the largest twentieth of some distances,
LONGEST, SHORTEST = 20, 5  # at most 20 of a class's own and at least 5 of all classes' together
OWN_TAIL_FROM = 200  # correct images from which a class has a tail of its own
SMALLEST_SCALE = 1e-3  # of a tail: nearer logits are equal but for rounding


class Tails(NamedTuple):
    """Where the training images of each class lie, and how far from it its farthest ones."""

    means: Tensor  # K×K, mean logits of each class
    counts: Tensor  # K, images in that mean; infinite: it is taken for the true one
    begin: Tensor  # K, as are the others; infinite where nothing is known
    shape: Tensor
    scale: Tensor


@register
class OpenMax(FittedScore[Tails]):
    """The probability of "unknown" in a softmax over K + 1 logits: value, with its log-odds as the order.

    v'_k = v_k − m_k and v'_unknown = Σ m_k with m_k = (α − i)/α · W_k(‖v − μ_k‖) · max(v_k, 0) for the
    α likeliest classes, i = 0 the first of them, 0 for the others; v are the logits, μ_k the mean logits of
    the training images of class k that are classified correctly, W_k a Weibull distribution of their largest
    distances to it. A class with few such images borrows the tail of all classes' distances. The predicted
    class stays that of the largest logit.
    """

    name = "openmax"
    info = ScoreInfo(
        title="OpenMax",
        summary="The probability of an extra class, computed from distances to mean training logits",
        paper="Bendale and Boult, Towards Open Set Deep Networks, CVPR 2016",
        year=2016,
        changes="α = 2, because 10 suits only overlapping classes; Euclidean distances; classes with fewer "
        "than 200 correct images use a Weibull tail fitted to the distances of all classes; distances are "
        "corrected for the error of a mean over few images; negative logits are not revised; the predicted "
        "class is still the arg max of the logits",
    )
    higher_is_known = False
    default_threshold = 0.5
    limits = (0, 1)

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> Tails:
        classes = logits.shape[1]
        right = logits.argmax(dim=1) == labels
        means, counts = correct_means(logits, labels, right)
        measured = right & (counts[labels] > 1)
        distances = _to_true_mean(own_distances(logits, labels, means), counts[labels])[measured]
        owners = labels[measured]
        pooled = fit_tail(distances.numpy(), max(len(distances) // SHARE, SHORTEST), SMALLEST_SCALE)
        fits = [pooled] * classes
        for k in torch.nonzero(counts >= OWN_TAIL_FROM)[:, 0].tolist():
            own = distances[owners == k]
            fits[k] = fit_tail(own.numpy(), min(len(own) // SHARE, LONGEST), SMALLEST_SCALE)
        tails = torch.tensor(fits, dtype=torch.float64)
        if (mistaken := counts == 0).any():
            # A class that is always mistaken still has a place: the mean of all its images.
            every_mean, every_count = class_means(logits, labels, classes)
            means = torch.where(mistaken[:, None], every_mean, means)
            counts = torch.where(mistaken, every_count, counts)
            tails[counts == 0, 0] = torch.inf  # a class without images: nothing is known of distances
        return Tails(means, counts, *tails.unbind(1))

    def compare(self, features: Tensor, logits: Tensor, learned: Tails) -> Tensor:
        return by_parts(lambda part: log_odds(part, learned, TOP), logits)

    def __call__(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        return self._compared(features, logits)  # log-odds: many probabilities are exactly 1

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        return self(features, logits).sigmoid()


def correct_means(logits: Tensor, labels: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Mean logits of each class's correct images and how many these are: N×K, N, N → K×K, K."""
    classes = logits.shape[1]
    means, counts = class_means(logits, torch.where(right, labels, classes), classes + 1)
    return means[:classes], counts[:classes]


def own_distances(logits: Tensor, labels: Tensor, means: Tensor) -> Tensor:
    """‖v − μ_y‖: N×K, N, K×K → N."""
    parts = zip(logits.split(AT_A_TIME), labels.split(AT_A_TIME), strict=True)
    return torch.cat([(part.double() - means[own]).norm(dim=1) for part, own in parts])


def _to_true_mean(distances: Tensor, counts: Tensor) -> Tensor:
    """√(n/(n−1)) d, n images having made the mean: as far as from the true one, on average; both N."""
    return distances * (counts.double() / (counts.double() - 1).clamp(min=1)).sqrt()


def log_odds(logits: Tensor, tails: Tails, top: int, least: float = 0.0) -> Tensor:
    """v'_unknown − log Σ_k exp(v'_k), logits below `least` giving as if they were that: B×K → B."""
    top = min(top, logits.shape[1])
    largest, classes = logits.topk(top, dim=1)
    unknown, changed = logits.new_zeros(logits.shape[0]), logits.clone()
    for i in range(top):  # one at a time: B × α × K numbers would be too many
        k = classes[:, i]
        distances = (logits - tails.means[k]).norm(dim=1)
        # A new image is this much farther from a mean of n images than from the true one.
        distances = distances / (1 + 1 / tails.counts[k].clamp(min=1)).sqrt()
        far = weibull_cdf(distances, tails.begin[k], tails.shape[k], tails.scale[k])
        moved = (top - i) / top * far * largest[:, i].clamp(min=least)
        unknown += moved
        changed.scatter_add_(1, k[:, None], -moved[:, None])
    return unknown - changed.logsumexp(dim=1)
