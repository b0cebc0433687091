"""A batch as a few-shot episode: some classes are treated as new, with a few support images."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.nn.class_rows import class_sums, first_of_class


class Episode(NamedTuple):
    """Support and query images of a batch; a class that poses as new has supports, all others are queries.

    Values of a class are in the row of its first image: shapes do not depend on the draw.
    """

    labels: Tensor  # B
    poses: Tensor  # B: the image's class poses
    row: Tensor  # B: the class poses and this is its first image
    support: Tensor  # B
    shots: Tensor  # B: supports of the image's class, if it poses

    def means(self, x: Tensor) -> Tensor:
        """Mean over the supports of each posing class, zeros in the rows that are no class's: B×D → B×D."""
        return class_sums(torch.where(self.support[:, None], x, 0), self.labels) / self.shots[:, None]

    def overwrite(self, logits: Tensor, columns: Tensor) -> Tensor:
        """Logits in which the classes that pose have the columns of their rows: B×K, B×B → B×K."""
        # One column per class, zeros from its other images: the sum does not depend on the order.
        placed = torch.zeros_like(logits).index_add(1, self.labels, torch.where(self.row, columns, 0))
        return torch.where(self.posing(logits.shape[1]), placed, logits)

    def posing(self, num_classes: int) -> Tensor:
        """Mask of the classes that pose: K."""
        return self.poses.new_zeros(num_classes).scatter(0, self.labels, self.poses)

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """Mean over the queries of −log softmax(logits)[label], in float32."""
        each = F.cross_entropy(logits.float(), self.labels, reduction="none")
        return torch.where(self.support, 0, each).sum() / (~self.support).sum()


def make_episode(labels: Tensor, drawn: Tensor, supports: int) -> Episode:
    """A class poses if its first image is drawn and it has another one: B, B → B each.

    Its first `supports` images are supports, fewer if no query would be left.
    """
    same = labels[:, None] == labels
    before, images = same.tril(-1).sum(dim=1), same.sum(dim=1)
    poses = (first_of_class(labels) & drawn[:, None]).any(dim=0) & (images > 1)
    shots = (images - 1).clamp(1, supports)
    return Episode(labels, poses, poses & (before == 0), poses & (before < shots), shots)
