"""`oltr methods` and `oltr recipes`: what there is to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import tyro

from oltr.cli.options import Json, print_json

if TYPE_CHECKING:
    from oltr.methods import MethodInfo
    from oltr.openset import ScoreInfo


def methods(as_json: Json = False) -> None:
    """The methods, and the scores that call an image unknown."""
    import dataclasses

    from oltr.methods import METHODS
    from oltr.openset import SCORES

    scores = {name: SCORES[name] for name in SCORES}
    infos = {name: METHODS[name].info for name in METHODS}
    if as_json:
        details = {
            name: {
                "higher_is_known": score.higher_is_known,
                "threshold": score.default_threshold,
                "needs": score().needs,
                **dataclasses.asdict(score.info),
            }
            for name, score in scores.items()
        }
        described = {name: dataclasses.asdict(info) for name, info in infos.items()}
        print_json({"methods": described, "scores": details})
        return
    _tell(infos)
    print("\nscores: what tells unknown images, by --score NAME of `oltr train` and `oltr evaluate`")
    _tell({name: score.info for name, score in scores.items()})


def _tell(infos: Mapping[str, MethodInfo | ScoreInfo]) -> None:
    width = max(map(len, infos))
    for name, info in infos.items():
        print(f"{name:<{width}} {info.summary}\n{'':<{width}} {info.paper}")
        if info.changes:
            print(f"{'':<{width}} here: {info.changes}")


def recipes(
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None,
    as_json: Json = False,
) -> None:
    """The recipes, or one of them with its published rows.

    Args:
        name: show this one in full
    """
    import dataclasses

    import yaml

    from oltr.console import console
    from oltr.errors import UserError
    from oltr.recipes import load_recipe, recipe_names

    loaded = {}
    for entry in [name] if name else recipe_names():
        try:
            loaded[entry] = dataclasses.asdict(load_recipe(entry))
        except UserError as problem:
            if name:
                raise
            console.warn(f"the recipe {entry} is left out: {problem.what}")  # of a plug-in
    if as_json:
        print_json(loaded)
    elif name:
        text = yaml.safe_dump(loaded[name], sort_keys=False, default_flow_style=None, allow_unicode=True)
        print(text.rstrip())
    else:
        width = max(map(len, loaded))
        for entry, recipe in loaded.items():
            print(f"{entry:<{width}} {recipe['about']}")
