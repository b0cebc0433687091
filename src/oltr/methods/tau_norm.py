"""τ-normalisation: classifier weights divided by a power of their lengths after training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.metrics.accuracy import mean, per_class_accuracy
from oltr.nn.blocked_softmax import lengths
from oltr.nn.blocks import LARGEST
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network


@dataclass(frozen=True)
class TauNormSettings:
    # 0: as trained, 1: all of one length; the one with the best validation accuracy is used.
    taus: tuple[float, ...] = tuple(step / 20 for step in range(21))
    tau: float = 0.7  # used where there are no validation images; ours

    def __post_init__(self) -> None:
        if not self.taus:
            raise UserError("settings.taus is empty.", try_this="at least one number from 0 to 1")


@METHODS.register("tau-norm")
class TauNorm(Method):
    """The plain model, whose classifier becomes w_c / ‖w_c‖^τ without a bias after training."""

    Settings = TauNormSettings
    info = MethodInfo(
        title="τ-normalisation",
        summary="The plain model, its classifier weights divided by a power of their norm",
        paper="Kang et al., Decoupling Representation and Classifier for Long-Tailed Recognition, ICLR 2020",
        year=2020,
        changes="τ is chosen by the mean accuracy over classes with validation images, in steps of 0.05",
    )

    @torch.no_grad()
    def after_training(self, network: Network, features: Callable[..., tuple[Tensor, Tensor] | None]) -> str:
        assert isinstance(network.head, LinearHead)
        classifier, embedded = network.head.classifier, features()
        tau = None if embedded is None else best_tau(*embedded, classifier.weight.cpu(), self.settings.taus)
        how = "by accuracy on the validation images"
        if tau is None:
            tau, how = self.settings.tau, "as in the settings"
            warnings.warn(f"There are no validation images to choose τ by: τ is {tau:g}, as in the settings.")
        classifier.weight /= lengths(classifier.weight)[:, None] ** tau
        classifier.bias.zero_()
        return f"τ = {tau:g}, {how}"


def best_tau(features: Tensor, labels: Tensor, weight: Tensor, taus: Sequence[float]) -> float | None:
    """The τ under which w_c·v / ‖w_c‖^τ has the best mean class accuracy, of equals the least: N×D, N, K×D.

    Classes without images do not count; None if no class has any.
    """
    taus, length, predictions = sorted(taus), lengths(weight), []
    for part in features.split(max(LARGEST // len(weight), 1)):
        logits = part @ weight.T
        predictions.append(torch.stack([(logits / length**tau).argmax(dim=1) for tau in taus]))
    accuracies = {
        tau: mean(per_class_accuracy(said, labels, len(weight)))
        for tau, said in zip(taus, torch.cat(predictions, dim=1), strict=True)
    }
    known = {tau: accuracy for tau, accuracy in accuracies.items() if accuracy is not None}
    return max(known, key=lambda tau: known[tau]) if known else None
