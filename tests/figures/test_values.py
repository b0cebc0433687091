"""Names of scores on axes."""

import pytest

from oltr.figures.values import score_name


@pytest.mark.parametrize(
    ("score", "name"),
    [
        ("softmax", "maximum softmax probability (MSP)"),
        ("vim", "virtual-logit matching (ViM)"),
        ("scale-70", "SCALE, 70th percentile"),
        ("openmax", "OpenMax"),
        ("mahalanobis", "Mahalanobis distance"),
        ("max-logit+cosine", "maximum logit + cosine to the nearest class mean"),
    ],
)
def test_abbreviations_and_names_keep_their_capitals(score, name):
    assert score_name(score) == name
