"""One small file per score; importing this package fills the registry."""

from importlib import import_module
from pkgutil import iter_modules

from oltr.openset.scores import SCORES, FittedScore, Score, ScoreInfo

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["SCORES", "FittedScore", "Score", "ScoreInfo"]
