"""`oltr methods` and `oltr recipes`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import tyro

from oltr.cli.options import Json, print_json


def methods(as_json: Json = False) -> None:
    """The methods, and the scores that call an image unknown."""
    import dataclasses

    from oltr.methods import METHODS
    from oltr.openset.scores import SCORES

    if as_json:
        infos = {name: dataclasses.asdict(METHODS[name].info) for name in METHODS}
        scores = {
            name: {"higher_is_known": score.higher_is_known, "threshold": score.default_threshold}
            for name, score in ((name, SCORES[name]) for name in SCORES)
        }
        print_json({"methods": infos, "scores": scores})
        return
    for name in METHODS:
        info = METHODS[name].info
        print(f"{name:<14} {info.summary}\n{'':<14} {info.paper}")
        if info.changes:
            print(f"{'':<14} here: {info.changes}")
    print("\nscores: " + ", ".join(SCORES))


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

    from oltr.recipes import load_recipe, recipe_names

    names = [name] if name else recipe_names()
    loaded = {entry: dataclasses.asdict(load_recipe(entry)) for entry in names}
    if as_json:
        print_json(loaded)
    elif name:
        text = yaml.safe_dump(loaded[name], sort_keys=False, default_flow_style=None, allow_unicode=True)
        print(text.rstrip())
    else:
        for entry, recipe in loaded.items():
            print(f"{entry:<16} {recipe['about']}")
