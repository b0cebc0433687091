"""Reports by scores that are given as objects, or that read other outputs than the predictions come from."""

import pytest
import torch

from oltr.errors import UserError
from oltr.openset import SCORES
from oltr.openset.odin import Odin
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs
from tests.helpers.separable import separable, strangers

FACTS = (["a", "b", "c"], [50, 20, 5])
NAMES = {"method": "plain", "backbone": "resnet10"}


@pytest.fixture
def outputs():
    splits = {"val": separable([9, 9, 9], seed=1), "test": separable([8, 8, 8], seed=2)}
    return {**splits, "open": strangers(20, 3, seed=3)}


def test_predictions_and_decisions_come_from_their_own_outputs(outputs):
    score = Odin(temperature=1.0)
    read = {split: Outputs(-3 * part.logits, part.labels, part.features) for split, part in outputs.items()}
    report = evaluate(outputs, *FACTS, **NAMES, score=score, read=read, unknown_rate=0.2)
    closed = (outputs["test"].logits.argmax(dim=1) == outputs["test"].labels).double().mean()
    assert report["closed"]["overall"] == pytest.approx(float(closed)) and closed > 0.9
    values = score.value(read["val"]).sort().values
    assert report["open"]["threshold"] == pytest.approx(float(values[int(0.2 * 27)]))
    caught = score.value(read["open"]) < report["open"]["threshold"]
    assert report["open"]["unknown_recall"] == pytest.approx(float(caught.double().mean()))
    assert report["open"]["score"] == "odin"
    assert read["test"].logits.argmax(dim=1).ne(outputs["test"].labels).all()


def test_a_fitted_score_is_used_as_it_is(outputs):
    fitted = SCORES["mahalanobis"].fit(separable([50, 20, 5], seed=0))
    report = evaluate(outputs, *FACTS, **NAMES, score=fitted, threshold=40.0)
    assert report["open"]["auroc"] > 0.99 and report["open"]["score"] == "mahalanobis"
    caught = fitted.value(outputs["open"]) > 40
    assert report["open"]["unknown_recall"] == pytest.approx(float(caught.double().mean()))


def test_scores_that_are_not_ready(outputs):
    with pytest.raises(UserError, match="has not seen the training images"):
        evaluate(outputs, *FACTS, **NAMES, score="knn", unknown_rate=0.1)
    with pytest.raises(UserError, match="images that it has changed"):
        evaluate(outputs, *FACTS, **NAMES, score="odin", unknown_rate=0.1)
    assert torch.equal(outputs["open"].labels, torch.full((20,), -1))
