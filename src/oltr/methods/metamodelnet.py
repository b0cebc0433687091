"""Model regression in steps, each from a classifier of k images to one of 2k."""

from __future__ import annotations

from torch import nn

from oltr.methods.base import METHODS, MethodInfo
from oltr.methods.model_regression import ModelRegression
from oltr.nn.regressors import RecursiveRegressor


@METHODS.register("metamodelnet")
class MetaModelNet(ModelRegression):
    """Model regression whose T is a chain of residual blocks, entered according to the number of images."""

    info = MethodInfo(
        title="MetaModelNet",
        summary="Residual blocks map a classifier learned from 1 image to one learned from 2, 4 ... many",
        paper="Wang et al., Learning to Model the Tail, NeurIPS 2017",
        year=2017,
        changes="on fixed features; few-shot classifiers are mean features; all blocks are trained together, "
        "without batch norm",
    )

    def regressor(self, dims: int) -> nn.Module:
        return RecursiveRegressor(dims, self.settings.levels)
