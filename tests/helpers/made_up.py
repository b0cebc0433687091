"""Made-up features of common and 3-shot classes, and the stage 2 of a method on them alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.methods import METHODS, Method
from oltr.nn.backbone import Backbone
from oltr.nn.network import Network
from oltr.recipes import resolve
from oltr.samplers import class_aware

DIMS, IMAGE = 64, 32  # of resnet32_cifar
COUNTS = torch.tensor([120] * 30 + [3] * 6)
RARE = COUNTS < 20


class MadeUp:
    """Blobs that stand apart in 48 dimensions and say nothing in 16 loud ones: training features (N×D) and
    40 test features of each class.
    """

    def __init__(self, seed: int = 0):
        self.random = torch.Generator().manual_seed(seed)
        self.noise = torch.cat([torch.ones(48), torch.full((16,), 3.0)])
        self.centres = 0.7 * self._normal(len(COUNTS), DIMS) * (self.noise < 2)
        self.labels = torch.arange(len(COUNTS)).repeat_interleave(COUNTS)
        self.features = self._draw(self.labels)
        self.test_labels = torch.arange(len(COUNTS)).repeat_interleave(40)
        self.test_features = self._draw(self.test_labels)

    def class_means(self) -> Tensor:
        return torch.stack([self.features[self.labels == k].mean(dim=0) for k in range(len(COUNTS))])

    def accuracy(self, network: Network, classes: Tensor) -> float:
        """The share of the test features of these classes that the head names rightly."""
        with torch.no_grad():
            right = network.head.eval()(self.test_features).logits.argmax(dim=1) == self.test_labels
        return right[classes[self.test_labels]].float().mean().item()

    def _draw(self, labels: Tensor) -> Tensor:
        return F.relu(1 + self.centres[labels] + self.noise * self._normal(len(labels), DIMS))

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.random)


def make(name: str, counts: Tensor = COUNTS, **changes) -> Method:
    return METHODS[name](resolve("glyphs", name).settings | changes, counts, IMAGE)


def first_network(method: Method) -> Network:
    torch.manual_seed(0)
    return method.build_stage1(Backbone("resnet32_cifar", IMAGE))


def learn_first(network: Network, data: MadeUp) -> None:
    """Stage 1: the linear classifier on the long-tailed features as they are."""
    optimizer = torch.optim.SGD(network.head.parameters(), lr=0.05, momentum=0.9)
    for _ in range(150):
        optimizer.zero_grad()
        F.cross_entropy(network.head(data.features).logits, data.labels).backward()
        optimizer.step()


def learn_second(method: Method, network: Network, data: MadeUp, lr: float, steps: int = 80) -> list[float]:
    """Stage 2: class-aware batches of 4 images per class; the losses."""
    method.on_stage_start(2, network, data.class_means)
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(network.head.parameters(), lr=lr, momentum=0.9)
    order = class_aware(data.labels.numpy(), steps * 32, (0, 0), 4)
    losses = []
    for batch in order.reshape(steps, 32).astype(np.int64):
        features, labels = data.features[batch], data.labels[batch]
        optimizer.zero_grad()
        loss = torch.stack(
            list(method.loss(2, network, network.head.train()(features), labels).values())
        ).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
