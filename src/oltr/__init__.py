"""Open long-tailed recognition: one recogniser for common, rare and unknown classes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oltr.errors import UserError
    from oltr.recognizer import Recognizer

__version__ = "0.1.0"
__all__ = ["Recognizer", "UserError", "__version__"]

# Loaded on first use, so that `import oltr` and `oltr --help` never wait for torch.
_HOMES = {"Recognizer": "oltr.recognizer", "UserError": "oltr.errors"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'oltr' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
