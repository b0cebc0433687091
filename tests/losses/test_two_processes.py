"""Losses that look at a whole batch: two processes with half of it each find what one finds in all of it."""

import torch

from oltr.losses.class_weights import weighted_cross_entropy
from oltr.losses.lifted import LiftedStructureLoss
from oltr.losses.range import RangeLoss
from tests.helpers.processes import run_processes

LABELS = torch.tensor([0, 1, 0, 2, 0, 2, 1, 1])  # pairs in both halves and across them


def weighted(features, labels):
    return weighted_cross_entropy(features, labels, torch.tensor([0.1, 0.5, 2.4], dtype=features.dtype))


def lifted(features, labels):
    return LiftedStructureLoss()(features, labels)


def within(features, labels):
    return RangeLoss(within_weight=1.0).terms(features, labels)["within"]


def between(features, labels):
    return RangeLoss(between_weight=1.0).terms(features, labels)["between"]


def of_my_part(rank, world):
    """Each loss on this process's part of the batch, and the gradient of a weight in front of it."""
    images = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    part, found = slice(rank * 8 // world, (rank + 1) * 8 // world), {}
    for loss_of in (weighted, lifted, within, between):
        weight = torch.eye(3, dtype=torch.float64, requires_grad=True)
        loss = loss_of(images[part] @ weight, LABELS[part])
        loss.backward()
        found[loss_of.__name__] = {"loss": loss.detach(), "gradient": weight.grad}
    return found


def test_the_average_of_two_processes_is_what_one_finds(tmp_path):
    first, second = run_processes(of_my_part, tmp_path)
    for name, alone in of_my_part(0, 1).items():
        assert alone["gradient"].abs().sum() > 0
        for part, expected in alone.items():
            averaged = (first[name][part] + second[name][part]) / 2
            torch.testing.assert_close(averaged, expected, msg=lambda m, n=name, p=part: f"{n}, {p}: {m}")
