import numpy as np
import pytest
import torch
from sklearn.metrics import auc, average_precision_score, roc_auc_score, roc_curve

from oltr.errors import UserError
from oltr.metrics import detection

# (known images, unknown images, distinct scores): many ties, none, tiny sides, all equal
SIZES = [
    (300, 200, 7),
    (300, 200, 10**9),
    (40, 20, 40),
    (1, 1, 2),
    (1, 1, 1),
    (2, 3, 2),
    (20, 1, 3),
    (1, 20, 3),
]
CASES = [(*size, seed) for size in SIZES for seed in range(3)]
MEASURES = [
    detection.auroc, detection.aupr_known, detection.aupr_unknown, detection.fpr95_known,
    detection.fpr95_unknown, detection.detection_error, detection.detection_error_min,
]  # fmt: skip


@pytest.fixture(params=CASES, ids=str)
def scores(request):
    known, unknown, distinct, seed = request.param
    random = np.random.default_rng(seed)
    draw = lambda n, shift: np.floor((random.random(n) + shift) * distinct) / distinct  # noqa: E731
    return torch.from_numpy(draw(known, 0.0)), torch.from_numpy(draw(unknown, 0.3))


def test_equals_the_loop(scores):
    known, unknown = (side.tolist() for side in scores)
    pairs = [(u > k) + 0.5 * (u == k) for k in known for u in unknown]
    assert detection.auroc(*scores) == pytest.approx(sum(pairs) / len(pairs), abs=1e-9)

    thresholds = [-np.inf, *sorted({*known, *unknown})]  # accepted as known: score <= threshold
    accepted = [(np.mean([k <= t for k in known]), np.mean([u <= t for u in unknown])) for t in thresholds]
    fpr_known = next(u for k, u in accepted if k >= 0.95)
    fpr_unknown = next(1 - k for k, u in reversed(accepted) if 1 - u >= 0.95 - 1e-12)
    assert detection.fpr95_known(*scores) == pytest.approx(fpr_known, abs=1e-9)
    assert detection.fpr95_unknown(*scores) == pytest.approx(fpr_unknown, abs=1e-9)
    assert detection.detection_error(*scores) == pytest.approx(0.025 + fpr_known / 2, abs=1e-9)
    least = min((1 - k) / 2 + u / 2 for k, u in accepted)
    assert detection.detection_error_min(*scores) == pytest.approx(least, abs=1e-9)

    area, found = 0.0, 0
    for t in reversed(thresholds[1:]):
        called, right = sum(k >= t for k in known), sum(u >= t for u in unknown)
        area += (right - found) / len(unknown) * right / (right + called)
        found = right
    assert detection.aupr_unknown(*scores) == pytest.approx(area, abs=1e-9)


def test_equals_scikit_learn(scores):
    known, unknown = (side.numpy() for side in scores)
    is_unknown = np.r_[np.zeros(len(known)), np.ones(len(unknown))]
    score = np.r_[known, unknown]
    assert detection.auroc(*scores) == pytest.approx(roc_auc_score(is_unknown, score), abs=1e-9)
    expected = average_precision_score(is_unknown, score)
    assert detection.aupr_unknown(*scores) == pytest.approx(expected, abs=1e-9)
    expected = average_precision_score(1 - is_unknown, -score)
    assert detection.aupr_known(*scores) == pytest.approx(expected, abs=1e-9)

    fpr, tpr, _ = roc_curve(is_unknown, score, drop_intermediate=False)
    assert detection.fpr95_unknown(*scores) == pytest.approx(fpr[tpr >= 0.95][0], abs=1e-9)
    assert detection.detection_error_min(*scores) == pytest.approx(
        (0.5 * (1 - tpr) + 0.5 * fpr).min(), abs=1e-9
    )
    fpr, tpr, _ = roc_curve(1 - is_unknown, -score, drop_intermediate=False)
    at_95 = fpr[tpr >= 0.95][0]
    assert detection.fpr95_known(*scores) == pytest.approx(at_95, abs=1e-9)
    assert detection.detection_error(*scores) == pytest.approx(0.5 * 0.05 + 0.5 * at_95, abs=1e-9)


def test_oscr_equals_the_area_under_its_curve(scores):
    known, unknown = scores
    correct = torch.rand(len(known), generator=torch.Generator().manual_seed(1)) < 0.6
    thresholds = [-np.inf, *torch.cat(scores).unique().tolist()]
    rate = [((known <= t) & correct).double().mean().item() for t in thresholds]
    false_positive_rate = [(unknown <= t).double().mean().item() for t in thresholds]
    assert detection.oscr(known, unknown, correct) == pytest.approx(auc(false_positive_rate, rate), abs=1e-9)
    everything_right = torch.ones(len(known), dtype=torch.bool)
    assert detection.oscr(known, unknown, everything_right) == pytest.approx(detection.auroc(known, unknown))
    assert detection.oscr(known, unknown, ~everything_right) == 0.0


def test_perfect_and_hopeless_scores():
    low, high = torch.zeros(30), torch.ones(10)
    assert [measure(low, high) for measure in MEASURES] == pytest.approx([1, 1, 1, 0, 0, 0.025, 0])
    assert [measure(high, low) for measure in MEASURES] == pytest.approx([0, 0.25, 0.75, 1, 1, 0.525, 0.5])


def test_exactly_95_percent_is_enough():
    known = torch.arange(20.0)  # the 19 lowest are 95 %
    assert detection.fpr95_known(known, torch.tensor([18.5, 20.0])) == 0.0
    assert detection.fpr95_known(known[:19], torch.tensor([17.5, 20.0])) == 0.5  # 18 of 19 are fewer


def test_infinite_scores_and_signed_zeros_have_an_order():
    assert detection.auroc(torch.tensor([-torch.inf, 0.0]), torch.tensor([torch.inf, -0.0])) == 0.875


@pytest.mark.parametrize("measure", [*MEASURES, lambda k, u: detection.oscr(k, u, torch.ones(len(k)).bool())])
def test_bad_scores_are_told(measure):
    fine, empty, broken = torch.tensor([0.5]), torch.tensor([]), torch.tensor([0.5, torch.nan])
    for known, unknown, message in [
        (empty, fine, "no known images"), (fine, empty, "no open images"),
        (broken, fine, "1 known images is NaN"), (fine, broken, "1 open images is NaN"),
    ]:  # fmt: skip
        with pytest.raises(UserError, match=message):
            measure(known, unknown)
