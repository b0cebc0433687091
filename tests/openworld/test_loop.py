"""The weekly loop on made-up features: what comes when, what is asked, and what it is worth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.methods.logit_adjusted import Settings
from oltr.nn.fit_linear import fit_linear
from oltr.openworld.loop import Material, simulate
from oltr.openworld.refit import LENGTH, refit
from oltr.openworld.strategies import STRATEGIES, everything
from oltr.openworld.stream import make_stream
from tests.helpers.blobs import blobs

KNOWN, NEW, WEEKS = 8, 10, 4


@pytest.fixture(scope="module")
def material() -> Material:
    pool = [blobs(KNOWN, 8, seed=3, apart=1.5), blobs(NEW, 30, seed=3, first=KNOWN, apart=1.5)]
    return Material(
        *blobs(KNOWN, 10, seed=1, apart=1.5),
        *blobs(KNOWN, 6, seed=2, apart=1.5),
        np.concatenate([features for features, _ in pool]),
        np.concatenate([labels for _, labels in pool]),
        KNOWN,
    )


@pytest.fixture(scope="module")
def stream(material):
    return make_stream(material.pool_labels, KNOWN, WEEKS, seed=0)


@pytest.fixture(scope="module")
def results(material, stream):
    space = material.metric()
    return {n: list(simulate(material, stream, s, 12, space)) for n, s in STRATEGIES.items()}


def test_weeks_hold_out_a_part_of_every_class_and_bring_the_rest(material, stream):
    labels = material.pool_labels
    assert not (stream.held_out & (stream.week >= 0)).any()
    never = np.flatnonzero(stream.first_week == WEEKS)
    assert len(never) == 2 and (never >= KNOWN).all()
    for name in range(KNOWN + NEW):
        mine = labels == name
        assert stream.held_out[mine].sum() == round(0.3 * mine.sum())
        weeks = stream.week[mine & ~stream.held_out]
        assert (weeks == -1).all() if name in never else (weeks >= max(stream.first_week[name], 0)).all()
    turned_up = stream.first_week[KNOWN:][stream.first_week[KNOWN:] < WEEKS]
    assert set(turned_up) == {0, 1, 2}


def test_the_same_seed_gives_the_same_weeks(material, stream):
    again = make_stream(material.pool_labels, KNOWN, WEEKS, seed=0)
    other = make_stream(material.pool_labels, KNOWN, WEEKS, seed=1)
    assert (again.week == stream.week).all() and (other.week != stream.week).any()


def test_labelling_everything_is_a_plain_refit(material, stream, results):
    last = results["everything"][-1]
    come = stream.week >= 0
    assert last.labels == last.arrived == come.sum()
    features = np.concatenate([material.train, material.pool[come]])
    classes, numbers = np.unique(
        np.concatenate([material.train_labels, material.pool_labels[come]]), return_inverse=True
    )
    counts = torch.from_numpy(np.bincount(numbers)).float()
    scaled = torch.from_numpy(features * LENGTH / np.sqrt((features**2).sum(axis=1).mean()))
    prior = Settings.tau * (counts / counts.sum()).log()
    weight, bias, _ = fit_linear(
        scaled, torch.from_numpy(numbers), prior, decay=Settings.decay, iterations=Settings.iterations
    )
    seen = stream.held_out & (stream.first_week[material.pool_labels] < WEEKS)
    given = torch.from_numpy(material.pool[seen] * LENGTH / np.sqrt((features**2).sum(axis=1).mean()))
    right = classes[(given @ weight.T + bias).argmax(dim=1).numpy()] == material.pool_labels[seen]
    assert last.accuracy_images == pytest.approx(right.mean())
    by_class = [right[material.pool_labels[seen] == name].mean() for name in classes]
    assert last.accuracy == pytest.approx(np.mean(by_class))


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "everything"])
def test_labels_are_spent_as_told(results, name):
    assert [week.labels for week in results[name]] == [12, 24, 36, 48]


def test_discovering_gets_nearly_everything_from_few_labels(results):
    ours, all_labels, random = (results[name][-1] for name in ("discover", "everything", "random"))
    assert ours.labels < all_labels.labels / 4
    assert ours.classes_named == ours.classes_seen == KNOWN + 8
    assert ours.accuracy >= all_labels.accuracy - 0.01
    assert ours.accuracy > random.accuracy
    assert ours.unknown_recall is not None and ours.unknown_recall > 0.5


def test_another_way_of_fitting_can_take_its_place(material, stream):
    calls = []

    def fit(features, labels, validation):
        calls.append(len(labels))
        return refit(features, labels, validation)

    list(simulate(material, stream, everything, 5, material.metric(), fit))
    assert len(calls) == 1 + WEEKS and calls == sorted(calls) and calls[0] == len(material.train)


def test_a_head_rejects_the_share_of_validation_images_it_was_told(material):
    head = refit(material.train, material.train_labels, material.validation, "energy", unknown_rate=0.25)
    assert head.rejects(material.validation).sum() == 12
    assert (head.predict(material.train) == material.train_labels).mean() > 0.95
