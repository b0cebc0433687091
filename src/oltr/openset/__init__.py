"""Scores that tell unknown images, thresholds and the rejection rule; all on plain tensors.

score = Mahalanobis().fit(features, logits, labels)   # of the training images; N×D, N×K, N
unknown = score(features, logits)                      # N, higher is more unknown
"""

from oltr.openset.cosine import Cosine
from oltr.openset.energy import Energy
from oltr.openset.gen import GeneralizedEntropy
from oltr.openset.knn import NearestNeighbours
from oltr.openset.mahalanobis import Mahalanobis
from oltr.openset.max_logit import MaxLogit
from oltr.openset.odin import Odin
from oltr.openset.openmax import OpenMax
from oltr.openset.openmax_textbook import TextbookOpenMax
from oltr.openset.reachability import Reachability
from oltr.openset.rejection import RejectionRule
from oltr.openset.relative_mahalanobis import RelativeMahalanobis
from oltr.openset.rollup import fit_thresholds, roll_up
from oltr.openset.scale import Scale, Scale70
from oltr.openset.scores import SCORES, FittedScore, Score, ScoreInfo
from oltr.openset.softmax import Softmax
from oltr.openset.spread_cosine import SpreadCosine
from oltr.openset.sum_of_scores import (
    MaxLogitAndCosine,
    MaxLogitAndRelativeMahalanobis,
    MaxLogitAndUnitMahalanobis,
    ScaleAndSpreadCosine,
    ScaleAndWhitenedCosine,
    SumOfScores,
)
from oltr.openset.threshold import choose_threshold
from oltr.openset.unit_mahalanobis import UnitMahalanobis
from oltr.openset.vim import VirtualLogit
from oltr.openset.whitened_cosine import WhitenedCosine

__all__ = [
    "SCORES",
    "Cosine",
    "Energy",
    "FittedScore",
    "GeneralizedEntropy",
    "Mahalanobis",
    "MaxLogit",
    "MaxLogitAndCosine",
    "MaxLogitAndRelativeMahalanobis",
    "MaxLogitAndUnitMahalanobis",
    "NearestNeighbours",
    "Odin",
    "OpenMax",
    "Reachability",
    "RejectionRule",
    "RelativeMahalanobis",
    "Scale",
    "Scale70",
    "ScaleAndSpreadCosine",
    "ScaleAndWhitenedCosine",
    "Score",
    "ScoreInfo",
    "Softmax",
    "SpreadCosine",
    "SumOfScores",
    "TextbookOpenMax",
    "UnitMahalanobis",
    "VirtualLogit",
    "WhitenedCosine",
    "choose_threshold",
    "fit_thresholds",
    "roll_up",
]
