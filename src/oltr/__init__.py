"""Open long-tailed recognition: one recogniser for common, rare and unknown classes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oltr import losses, metrics, nn, openset, samplers
    from oltr.errors import UserError
    from oltr.recognizer import Recognizer
    from oltr.runs.report import Report
    from oltr.runs.trained_run import TrainedRun

__version__ = "0.2.0"
__all__ = [
    "Recognizer",
    "Report",
    "TrainedRun",
    "UserError",
    "__version__",
    "losses",
    "metrics",
    "nn",
    "openset",
    "samplers",
]

# Loaded on first use, so that `import oltr` and `oltr --help` never wait for torch.
_MODULES = {
    "Recognizer": "oltr.recognizer",
    "Report": "oltr.runs.report",
    "TrainedRun": "oltr.runs.trained_run",
    "UserError": "oltr.errors",
}
_ROOMS = ("losses", "metrics", "nn", "openset", "samplers")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"oltr.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'oltr' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
