"""Model regression in steps, each of which doubles the images that a classifier seems to have seen."""

from __future__ import annotations

from torch import nn

from oltr.methods.base import METHODS, MethodInfo
from oltr.methods.model_regression import ModelRegression
from oltr.nn.regressors import RecursiveRegressor


@METHODS.register("metamodelnet")
class MetaModelNet(ModelRegression):
    """Model regression whose T is a chain of residual blocks, entered by a class at its number of images."""

    info = MethodInfo(
        title="MetaModelNet",
        summary="Residual blocks take a classifier from 1 to 2, 4 ... many images' worth",
        paper="Wang et al., Learning to Model the Tail, NeurIPS 2017",
        year=2017,
        changes="on features that stay fixed; few-shot classifiers are mean features; all blocks are learned "
        "together, without batch norm",
    )

    def regressor(self, dims: int) -> nn.Module:
        return RecursiveRegressor(dims, self.settings.levels)
