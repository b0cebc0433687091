"""Post-hoc adjustment: once trained, a network's logits lose τ·log of the class frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from oltr.console import console
from oltr.distributed import interleave_over_ranks
from oltr.metrics.labels import OPEN
from oltr.nn.network import Network
from oltr.nn.shifted_logits import shift_logits
from oltr.training.inference import forward_batches, on_host
from oltr.training.stage import Run

TAUS = tuple(step / 4 for step in range(-2, 9))  # −0.5 … 2


@dataclass(frozen=True)
class Adjustment:
    """What run.yaml keeps of it."""

    tau: float
    by: str  # validation, fixed, or none: without validation images
    gain: float | None = None  # of the best τ in mean class accuracy on validation images
    standard_error: float | None = None  # of that gain

    def __str__(self) -> str:
        if self.gain is None:
            how = "as in the settings" if self.by == "fixed" else "no validation images"
            return f"τ = {self.tau:g}, {how}"
        spread = f"{100 * self.gain:+.1f} ± {100 * (self.standard_error or 0):.1f} points"
        found = spread if self.tau else f"the best other has {spread}" if self.gain else "no other is better"
        return f"τ = {self.tau:g}, by accuracy on validation ({found})"


def adjust(network: Network, run: Run) -> Adjustment | None:
    """Shift the logits of a trained network as the run asks for; None where it does not."""
    if run.config.adjust == "none":
        return None
    frequencies = log_frequencies(run.method.train_counts)
    found = Adjustment(run.config.adjust_tau, "fixed")
    if run.config.adjust == "validation":
        found = _chosen(network, run, frequencies)
    if found.tau:
        shift_logits(network.head, (-found.tau * frequencies).to(run.device))
    console.say(f"post-hoc adjustment: {found}")
    return found


def log_frequencies(train_counts: Tensor) -> Tensor:
    """log n_c less its mean over the classes: K → K.

    The mean changes no answer; but a class that is added later, without a shift, stands as an average one.
    """
    logs = train_counts.clamp(min=1).double().log()
    return (logs - logs.mean()).float()


def best_tau(predictions: Tensor, labels: Tensor, taus: tuple[float, ...] = TAUS) -> Adjustment:
    """The τ of the best mean class accuracy, of equals the one nearest to 0: N×T, N.

    It has to be better than τ = 0 by more than a standard error, or else τ = 0 stays. The gain is Σ w d of
    paired differences d (−1, 0 or 1), with weights w such that classes count alike; its variance, where there
    is nothing to gain, is Σ w² d². A single image is therefore never enough.
    """
    predictions, labels = predictions[labels != OPEN], labels[labels != OPEN]
    _, classes, images = labels.unique(return_inverse=True, return_counts=True)
    weights = 1 / (len(images) * images[classes].double())
    right = (predictions == labels[:, None]).double()
    accuracies = [round(float(weights @ column), 9) for column in right.T]
    place = max(range(len(taus)), key=lambda i: (accuracies[i], -abs(taus[i]), taus[i]))
    difference = right[:, place] - right[:, taus.index(0.0)]
    gain = float(weights @ difference)
    error = math.sqrt(float(weights.square() @ difference.square()))
    better = gain > error + 1e-9
    return Adjustment(taus[place] if better else 0.0, "validation", round(gain, 6), round(error, 6))


def _chosen(network: Network, run: Run, frequencies: Tensor) -> Adjustment:
    images = run.images.get("val")
    if images is None or not (images.labels != OPEN).any():
        console.warn("no validation images to choose τ by: no post-hoc adjustment")
        return Adjustment(0.0, "none")
    outputs = forward_batches(
        network.to(run.device),
        images,
        run.config.data,
        run.device,
        precision=run.config.precision,
        workers=run.workers,
    )
    levels = frequencies.to(run.device)
    # The answers alone are kept: logits of many classes would not fit.
    said = (
        torch.stack([(output.logits.float() - tau * levels).argmax(dim=1) for tau in TAUS], dim=1)
        for output in outputs
    )
    mine = list(on_host(said, run.device))
    predictions = torch.cat(mine) if mine else torch.empty(0, len(TAUS), dtype=torch.int64)
    return best_tau(interleave_over_ranks(predictions), torch.from_numpy(images.labels))
