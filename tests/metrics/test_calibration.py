"""Temperature, calibration error and likelihood against slow forms."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from oltr.metrics import expected_calibration_error, fit_temperature, negative_log_likelihood


def noisy(n=300, classes=7, scale=3.0, seed=0):
    """Logits that are surer than they are right."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=random)
    logits = torch.randn(n, classes, generator=random)
    logits[torch.arange(n), labels] += 1
    return scale * logits, labels


def slow_nll(logits, labels, temperature):
    total = 0.0
    for row, label in zip(logits.double().numpy() / temperature, labels.tolist(), strict=True):
        total += math.log(sum(math.exp(z - row[label]) for z in row))
    return total / len(labels)


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0, 30.0])
def test_the_temperature_has_the_least_likelihood_loss(scale):
    logits, labels = noisy(scale=scale)
    found = minimize_scalar(
        lambda t: slow_nll(logits, labels, math.exp(t)),
        bounds=(-3, 3.5),
        method="bounded",
        options={"xatol": 1e-8},
    )
    assert fit_temperature(logits, labels) == pytest.approx(min(math.exp(found.x), 20), rel=1e-4)
    assert fit_temperature(logits, labels) == fit_temperature(logits, labels)


def test_scaled_logits_give_a_scaled_temperature_and_the_same_likelihood():
    logits, labels = noisy(scale=1.0)
    once, twice = fit_temperature(logits, labels), fit_temperature(2 * logits, labels)
    assert twice == pytest.approx(2 * once, rel=1e-6)
    for temperature in (0.5, 1.0, once):
        assert negative_log_likelihood(logits, labels, temperature) == pytest.approx(
            slow_nll(logits, labels, temperature)
        )


def test_temperatures_stay_in_their_range():
    logits, _ = noisy()
    worst = logits.argmin(dim=1)  # always wrong: no temperature is hot enough
    assert fit_temperature(logits, worst) == pytest.approx(20, rel=1e-6)
    almost = logits.argmax(dim=1)
    almost[0] = logits[0].topk(2).indices[1]
    assert 0.05 <= fit_temperature(1e-3 * logits, almost) < 0.06


def test_images_that_do_not_tell_leave_it_at_one():
    logits, labels = noisy()
    assert fit_temperature(logits, logits.argmax(dim=1)) == 1  # all right
    assert fit_temperature(logits[:, :1], torch.zeros(300, dtype=torch.int64)) == 1
    assert fit_temperature(logits, torch.full((300,), -1)) == 1
    assert fit_temperature(logits[:0], labels[:0]) == 1


def test_open_images_are_left_out_and_blocks_do_not_show(monkeypatch):
    logits, labels = noisy()
    whole = fit_temperature(logits, labels)
    more, marked = torch.cat([logits, logits[:50]]), torch.cat([labels, torch.full((50,), -1)])
    assert fit_temperature(more, marked) == whole
    monkeypatch.setattr("oltr.metrics.calibration.AT_A_TIME", 7)
    assert fit_temperature(logits, labels) == pytest.approx(whole, rel=1e-9)


def test_it_mends_the_calibration_error():
    logits, labels = noisy(n=4000)
    fitted = fit_temperature(*noisy(n=1000, seed=1))
    before = expected_calibration_error(logits.softmax(dim=1), labels)
    after = expected_calibration_error((logits / fitted).softmax(dim=1), labels)
    assert before > 0.3 and after < 0.05
    sure, named = logits.softmax(dim=1).double().max(dim=1)
    order = np.argsort(sure.numpy(), kind="stable")
    bins = np.array_split(order, 4)  # 1000 each, no equal confidences
    slow = sum(abs(sure[b].sum() - (named == labels)[b].sum()) for b in bins) / 4000
    assert expected_calibration_error(logits.softmax(dim=1), labels, bins=4) == pytest.approx(float(slow))
