"""What a trained network says of images: its output, or the mean over an image and its mirror image."""

from __future__ import annotations

from torch import Tensor

from oltr.config import DataConfig
from oltr.nn.extended_head import ExtendedHead
from oltr.nn.network import Network, Output


def forward_at_test(network: Network, views: Tensor, data: DataConfig) -> Output:
    """The network's output for views B×3×s×s; with `data.test_flip` each part is the mean of two passes.

    A frozen backbone takes the mean itself, of what is kept of an image. Classes that were added see the mean
    feature: answers are the same from an image and from what is kept of its outputs.
    """
    if not _flips(network, data):
        return network(views)
    head = network.head
    trained = head.head if isinstance(head, ExtendedHead) else head
    one, other = (trained(network.embed(each)) for each in (views, views.flip(3)))
    parts = (None if a is None or b is None else (a + b) / 2 for a, b in zip(one, other, strict=True))
    output = Output(*parts)  # type: ignore[arg-type]
    return head.extend(output) if isinstance(head, ExtendedHead) else output


def embed_at_test(network: Network, views: Tensor, data: DataConfig) -> Tensor:
    """The direct feature alone: B×3×s×s → B×D."""
    direct = network.embed(views)
    return (direct + network.embed(views.flip(3))) / 2 if _flips(network, data) else direct


def _flips(network: Network, data: DataConfig) -> bool:
    return data.test_flip and not network.backbone.mirrors
