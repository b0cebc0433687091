import pytest
import torch

from oltr.openset import SCORES, SumOfScores
from tests.helpers.separable import fitted, outputs, separable, strangers

SUMS = [name for name in SCORES if issubclass(SCORES[name], SumOfScores)]


def explicit(parts, training, units, some):
    """Each part fitted alone; means and deviations of `units` by NumPy."""
    total = 0
    for part in parts:
        score = part().fit(training.features, training.logits, training.labels)
        known = score(*units.inputs).numpy()
        total = total + (score(*some.inputs).numpy() - known.mean()) / known.std()
    return torch.from_numpy(total)


@pytest.mark.parametrize("name", SUMS)
def test_parts_are_added_in_the_units_of_known_images(name):
    training, val = separable([40, 20, 9], seed=0), separable([7, 7, 7], seed=1)
    others = strangers(30, 3, seed=2)
    score = fitted(name, training)
    parts = SCORES[name].parts
    torch.testing.assert_close(score.value(*others.inputs), explicit(parts, training, training, others))
    assert score.calibrate(val.features, val.logits) is score
    torch.testing.assert_close(score.value(*others.inputs), explicit(parts, training, val, others))
    values = score.value(*val.inputs)
    assert values.mean().abs() < 1e-9  # standardised there


def test_no_validation_image_or_images_all_alike():
    training, others = separable([40, 20, 9], seed=0), strangers(30, 3, seed=2)
    score = fitted("max-logit+cosine", training)
    before = score.value(*others.inputs)
    none = outputs(torch.zeros(0, 3), features=torch.zeros(0, 12))
    assert torch.equal(score.calibrate(none.features, none.logits).value(*others.inputs), before)
    score.calibrate(training.features[:1].repeat(5, 1), training.logits[:1].repeat(5, 1))
    assert score.value(*others.inputs).isfinite().all()
