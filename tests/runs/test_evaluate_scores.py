"""Reports by scores that are fitted, or that read other outputs than the predictions come from."""

import pytest

from oltr.errors import UserError
from oltr.openset import RejectionRule
from oltr.openset.odin import Odin
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs, scored_by
from tests.helpers.separable import fitted, separable, strangers

FACTS = (["a", "b", "c"], [50, 20, 5])
NAMES = {"method": "plain", "backbone": "resnet10"}


@pytest.fixture
def outputs():
    return {"test": separable([8, 8, 8], seed=2), "open": strangers(20, 3, seed=3)}


def test_predictions_and_decisions_come_from_their_own_outputs(outputs):
    score = Odin(temperature=1.0)
    read = {split: Outputs(-3 * part.logits, part.labels, part.features) for split, part in outputs.items()}
    scored = {split: scored_by(score, part) for split, part in read.items()}
    report = evaluate(outputs, *FACTS, RejectionRule("odin", 0.6), scored, **NAMES)
    closed = (outputs["test"].logits.argmax(dim=1) == outputs["test"].labels).double().mean()
    assert report.closed.overall == pytest.approx(float(closed)) and closed > 0.9
    caught = score.value(*read["open"].inputs) < 0.6
    assert report.open.unknown_recall == pytest.approx(float(caught.double().mean()))
    assert report.open.score == "odin"
    assert read["test"].logits.argmax(dim=1).ne(outputs["test"].labels).all()


def test_a_fitted_score_is_used_as_it_is(outputs):
    score = fitted("mahalanobis", separable([50, 20, 5], seed=0))
    scored = {split: scored_by(score, part) for split, part in outputs.items()}
    report = evaluate(outputs, *FACTS, RejectionRule("mahalanobis", 40.0), scored, **NAMES)
    assert report.open.auroc > 0.99 and report.open.score == "mahalanobis"
    caught = score.value(*outputs["open"].inputs) > 40
    assert report.open.unknown_recall == pytest.approx(float(caught.double().mean()))


def test_scores_that_are_not_ready(outputs):
    with pytest.raises(UserError, match="has not been fitted"):
        evaluate(outputs, *FACTS, RejectionRule("knn", 1.0), **NAMES)
    with pytest.raises(UserError, match="images that it has changed"):
        evaluate(outputs, *FACTS, RejectionRule("odin", 0.5), **NAMES)
