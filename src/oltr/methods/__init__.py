"""One small file per system; importing this package fills the registry."""

from importlib import import_module
from pkgutil import iter_modules

from oltr.methods.base import METHODS, Method, MethodInfo

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["METHODS", "Method", "MethodInfo"]
