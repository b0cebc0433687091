"""Losses for long-tailed training, each as a function and as an `nn.Module`.

A module holds what belongs to the training set, such as the images per class, and its numbers; `forward`
takes logits or features (B×…) and labels (B). In a distributed run, losses over a whole batch use the batches
of all processes.
"""

from oltr.losses.agreement import agreement_loss
from oltr.losses.balanced_contrast import BalancedContrastLoss, balanced_contrast_loss
from oltr.losses.balanced_softmax import BalancedSoftmaxLoss, balanced_softmax_loss
from oltr.losses.centroids import DiscriminativeCentroidsLoss, discriminative_centroids_loss
from oltr.losses.class_weights import (
    ClassBalancedLoss,
    InverseFrequencyLoss,
    WeightedCrossEntropyLoss,
    class_balanced,
    inverse_frequency,
    weighted_cross_entropy,
)
from oltr.losses.consistency import consistency_loss
from oltr.losses.distillation import distillation_loss
from oltr.losses.focal import FocalLoss, focal_loss
from oltr.losses.large_margin import LargeMarginLoss, large_margin_loss
from oltr.losses.ldam import LDAMLoss, label_margins, ldam_loss
from oltr.losses.lifted import LiftedStructureLoss, lifted_structure_loss
from oltr.losses.mixed_labels import MixedLabels
from oltr.losses.range import RangeLoss, between_classes, within_classes
from oltr.losses.uniform import uniform_cross_entropy
from oltr.losses.whole_batch import whole_batch

__all__ = [
    "BalancedContrastLoss",
    "BalancedSoftmaxLoss",
    "ClassBalancedLoss",
    "DiscriminativeCentroidsLoss",
    "FocalLoss",
    "InverseFrequencyLoss",
    "LDAMLoss",
    "LargeMarginLoss",
    "LiftedStructureLoss",
    "MixedLabels",
    "RangeLoss",
    "WeightedCrossEntropyLoss",
    "agreement_loss",
    "balanced_contrast_loss",
    "balanced_softmax_loss",
    "between_classes",
    "class_balanced",
    "consistency_loss",
    "discriminative_centroids_loss",
    "distillation_loss",
    "focal_loss",
    "inverse_frequency",
    "label_margins",
    "large_margin_loss",
    "ldam_loss",
    "lifted_structure_loss",
    "uniform_cross_entropy",
    "weighted_cross_entropy",
    "whole_batch",
    "within_classes",
]
