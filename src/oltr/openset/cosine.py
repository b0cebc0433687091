"""The cosine to the nearest class mean."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from oltr.openset.moments import class_means
from oltr.openset.parts import by_parts
from oltr.openset.scores import FittedScore, ScoreInfo, register


@register
class Cosine(FittedScore[Tensor]):
    """max_k cos(v_direct, μ_k), μ_k the class means of the training images; high is familiar."""

    name = "cosine"
    info = ScoreInfo(
        title="Cosine to the nearest class mean",
        summary="The cosine similarity of the feature to the nearest class mean",
        paper="Techapanurak et al., Hyperparameter-Free Out-of-Distribution Detection Using Cosine "
        "Similarity, ACCV 2020",
        year=2020,
        changes="class means instead of the classifier's weights, so that it works with any network",
    )
    higher_is_known = True
    limits = (-1, 1)

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        means, counts = class_means(features, labels, logits.shape[1])
        return F.normalize(means[counts > 0], dim=1)

    def compare(self, features: Tensor, logits: Tensor, learned: Tensor) -> Tensor:
        return by_parts(lambda x: (F.normalize(x, dim=1) @ learned.T).amax(dim=1), features)
