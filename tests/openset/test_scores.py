"""What holds for every score, and those that read cached outputs alone."""

import math
import pkgutil
import re
from importlib import import_module

import pytest
import torch

from oltr import openset
from oltr.errors import UserError
from oltr.metrics.detection import auroc
from oltr.openset import SCORES, FittedScore, Score, ScoreInfo
from oltr.runs.outputs import Outputs
from tests.helpers.separable import fitted, outputs, row, separable, strangers

NAMES = list(SCORES)
FITTED = [name for name in NAMES if issubclass(SCORES[name], FittedScore)]
COUNTS = [120, 40, 12, 3, 1]


def ready(name, training=None):
    """The score, fitted if it has to be."""
    return fitted(name, training or separable(COUNTS, seed=0)) if name in FITTED else SCORES[name]()


def test_every_score_of_the_package_is_registered_and_exported():
    names = [found.name for found in pkgutil.iter_modules(openset.__path__)]
    modules = [import_module(f"oltr.openset.{name}") for name in names]
    written = {
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type) and issubclass(thing, Score) and hasattr(thing, "name")
    }
    assert {"softmax", "openmax", "odin"} <= set(NAMES) == {score.name for score in written}
    assert all(getattr(openset, score.__name__) is score is SCORES[score.name] for score in written)
    assert {score.__name__ for score in written} <= set(openset.__all__)


def test_a_misspelt_name():
    with pytest.raises(UserError, match="did you mean softmax"):
        SCORES["softmx"]()


@pytest.mark.parametrize("name", NAMES)
def test_every_score_says_where_it_comes_from(name):
    score = SCORES[name]()
    assert score.name == name and isinstance(score.info, ScoreInfo)
    assert score.info.title and score.info.summary and str(score.info.year) in score.info.paper
    assert score.default_threshold == {"softmax": 0.1, "openmax": 0.5, "openmax-textbook": 0.5}.get(name)
    assert (score.needs == "training outputs") == (name in FITTED)
    assert (score.needs == "images") == bool(score.view) == (type(score).change is not Score.change)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "reachability"])
def test_every_score_ranks_strangers_behind_and_each_image_by_itself(name):
    # The textbook's OpenMax takes whatever is near a class of few images for unknown.
    score = ready(name, separable([200] * 5, seed=0) if name == "openmax-textbook" else None)
    known, unseen = separable([30] * 5, seed=1), strangers(150, 5, seed=2)
    assert auroc(score(*known.inputs), score(*unseen.inputs)) > 0.9
    values, turned = score.value(*known.inputs), score(*known.inputs)
    assert values.dtype == turned.dtype == torch.float64 and values.shape == (150,)
    # Turned or not, the order is one, and so is the side of a threshold.
    assert (turned[values.argsort(descending=score.higher_is_known)].diff() >= 0).all()
    for number in (0, 60, 149):
        torch.testing.assert_close(
            score.value(*row(known, number).inputs)[0], values[number], rtol=1e-9, atol=1e-12
        )
    assert score.value(*outputs(torch.zeros(0, 5), features=torch.zeros(0, 12)).inputs).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "reachability"])
def test_every_score_takes_half_precision_and_features_of_zeros(name, dtype):
    training = separable([40, 12, 5], seed=0)
    training.features[::19] = 0
    features, logits = (each.to(dtype) for each in training.inputs[:2])
    score = SCORES[name]().fit(features, logits, training.labels)
    values = score.value(features, logits)
    assert values.dtype == torch.float64 and values.isfinite().all()
    exact = SCORES[name]().fit(features.float(), logits.float(), training.labels)
    torch.testing.assert_close(values, exact.value(features.float(), logits.float()), rtol=1e-3, atol=1e-3)


def test_softmax_is_the_largest_probability():
    logits = torch.randn(9, 4)
    score = SCORES["softmax"]()
    expected = torch.tensor([max(float(z.exp() / row.exp().sum()) for z in row) for row in logits])
    torch.testing.assert_close(score.value(*outputs(logits).inputs).float(), expected)
    torch.testing.assert_close(score(*outputs(logits).inputs).float(), 1 - expected)
    assert score.higher_is_known


def test_softmax_keeps_the_order_of_very_sure_answers():
    sure = outputs(torch.tensor([[20.0, 0.0], [25.0, 0.0], [30.0, 0.0]]))
    assert sure.probabilities().amax(1).unique().numel() == 1  # float32 would lose it
    assert SCORES["softmax"]()(*sure.inputs).diff().lt(0).all()


def test_softmax_in_parts():
    logits = torch.randn(5000, 3)
    torch.testing.assert_close(
        SCORES["softmax"]().value(*outputs(logits).inputs),
        logits.double().softmax(1).amax(1),
        rtol=1e-6,
        atol=0,
    )


def test_energy_and_max_logit_equal_loops():
    logits = 10 * torch.randn(7, 5)
    energy = [math.log(sum(math.exp(z) for z in row)) for row in logits.tolist()]
    torch.testing.assert_close(
        SCORES["energy"]().value(*outputs(logits).inputs), torch.tensor(energy).double()
    )
    largest = [max(row) for row in logits.tolist()]
    assert SCORES["max-logit"]().value(*outputs(logits).inputs).tolist() == largest
    huge = outputs(torch.tensor([[1e4, 1e4]]))
    assert SCORES["energy"]().value(*huge.inputs).item() == pytest.approx(1e4 + math.log(2))


def test_reachability_is_known_when_low():
    score, far = SCORES["reachability"](), torch.tensor([1.0, 2.0, 3.0])
    some = Outputs(torch.zeros(3, 2), torch.zeros(3), torch.zeros(3, 2), reachability=far)
    assert score.value(*some.inputs).tolist() == score(*some.inputs).tolist() == [1.0, 2.0, 3.0]
    assert score.is_unknown(score.value(*some.inputs), 2.0).tolist() == [False, False, True]
    with pytest.raises(UserError, match="memory") as caught:
        score.value(*outputs(torch.zeros(3, 2)).inputs)
    assert "softmax" in caught.value.try_this


def test_an_image_on_the_threshold_is_known():
    assert SCORES["softmax"]().is_unknown(torch.tensor([0.1, 0.2, 0.3]), 0.2).tolist() == [True, False, False]


@pytest.mark.parametrize("name", FITTED)
def test_fitting_is_needed_and_returns_the_score_itself(name):
    training, score = separable(COUNTS, seed=0), SCORES[name]()
    with pytest.raises(UserError, match=re.escape(f"'{name}' has not been fitted")):
        score.value(*training.inputs)
    assert score.fit(training.features, training.logits, training.labels) is score
    first = score.value(*training.inputs)
    other = separable([9, 9, 9, 9, 9], seed=5)
    score.fit(other.features, other.logits, other.labels)
    assert not torch.equal(score.value(*training.inputs), first)
    torch.testing.assert_close(fitted(name, training).value(*training.inputs), first)


@pytest.mark.parametrize("name", FITTED)
def test_training_outputs_that_cannot_serve(name):
    for training, words in (
        (strangers(4, 3, seed=0), "no known class"),
        (outputs(torch.zeros(0, 3)), "There are none"),
        (outputs(torch.tensor([[torch.nan, 0.0]])), "diverged"),
        (outputs(torch.zeros(1, 2), features=torch.tensor([[torch.inf]])), "diverged"),
    ):
        with pytest.raises(UserError, match=words):
            fitted(name, training)


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize(
    "training",
    [
        separable([1, 1, 1, 1, 1], seed=0),  # one image per class
        separable([1, 0, 0, 0, 0], seed=0),  # one image
        separable([30, 30, 0, 5, 5], seed=0),  # a class without images
        separable([30, 30, 30, 5, 5], seed=0, height=-30.0),  # no image is classified correctly
        outputs(torch.ones(40, 5), torch.arange(40) % 5, torch.full((40, 12), 0.3)),  # constant
        outputs(torch.zeros(40, 5), torch.arange(40) % 5, torch.zeros(40, 12)),  # nothing
    ],
    ids=["one per class", "one image", "empty class", "never right", "constant", "zero"],
)
def test_scant_training_images_give_finite_scores(name, training):
    score = fitted(name, training)
    for some in (separable([4] * 5, seed=3), strangers(20, 5, seed=4), training):
        assert score.value(*some.inputs).isfinite().all() and score(*some.inputs).isfinite().all()
