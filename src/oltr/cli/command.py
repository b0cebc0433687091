"""A verb's function as its help should show it, and misspelt options named before anything else is tried."""

from __future__ import annotations

import difflib
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from oltr.errors import UserError

_WORDS = {Path: "PATH", int: "INT", float: "NUMBER", str: "TEXT"}


def dressed(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with plain metavars (PATH, not {None}|PATH) and without defaults that say nothing."""
    hints, signature = get_type_hints(function, include_extras=True), inspect.signature(function)
    for name, parameter in signature.parameters.items():
        for look in _looks(hints[name], parameter.default):
            hints[name] = Annotated[hints[name], look]

    def verb(*values: Any, **named: Any) -> Any:
        return function(*values, **named)

    verb.__name__, verb.__doc__, verb.__annotations__ = function.__name__, function.__doc__, hints
    shown = [parameter.replace(annotation=hints[name]) for name, parameter in signature.parameters.items()]
    verb.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return verb


def check_options(verb: str, function: Callable[..., Any], arguments: list[str]) -> None:
    """Refuse an empty argument, an option the verb does not have, and a list option without values.

    tyro alone would take the unknown option's value for the source and complain about that.
    """
    known, lists = _options(function)
    empty = {"", *(f"{name}=" for name in known)}
    if any(argument.strip() in empty for argument in arguments):
        raise UserError(
            f"`oltr {verb}` was given an empty argument.",
            "It may come from a shell variable that is not set.",
            f"oltr {verb} --help",
        )
    for position, argument in enumerate(arguments):
        name = argument.partition("=")[0].replace("_", "-")
        if name == "--":
            return  # what follows are names of files
        if not name.startswith("--"):
            continue
        if name not in known:
            near = difflib.get_close_matches(name[2:], [option[2:] for option in known], n=2)
            hint = f"did you mean {' or '.join(f'--{option}' for option in near)}?" if near else ""
            raise UserError(f"`oltr {verb}` has no option {name}.", try_this=hint or f"oltr {verb} --help")
        following = arguments[position + 1 : position + 2]
        if name in lists and "=" not in argument and (not following or following[0].startswith("--")):
            raise UserError(f"{name} has no value.", try_this=f"oltr {verb} --help")


def _looks(hint: Any, default: Any) -> list[Any]:
    """What tyro is to be told of a parameter beyond its type."""
    options = [part for part in get_args(hint)[1:] if hasattr(part, "metavar")] if _annotated(hint) else []
    positional = _annotated(hint) and tyro.conf.Positional in get_args(hint)
    given = next((part.metavar for part in options if part.metavar), None)
    looks = []
    if default is not inspect.Parameter.empty and (default is None or default is False or default == ()):
        looks.append(tyro.conf.arg(help_behavior_hint=""))
    plain = given or _word(hint)
    if plain and positional and default is None:
        looks.append(tyro.conf.arg(metavar=f"[{plain}]"))
    elif plain and not given:
        looks.append(tyro.conf.arg(metavar=plain))
    return looks


def _word(hint: Any) -> str | None:
    """How a value of this type is written in help; None: as tyro has it."""
    if _annotated(hint):
        return _word(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return _word(next(part for part in get_args(hint) if part is not type(None)))
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    return _WORDS.get(hint)


def _options(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """The verb's options as they are typed, and those of them that take several values at once."""
    known, lists = ["--help"], []
    for name, hint in get_type_hints(function, include_extras=True).items():
        extras = get_args(hint)[1:] if _annotated(hint) else ()
        if name == "return" or tyro.conf.Positional in extras:
            continue
        renamed = next((part.name for part in extras if getattr(part, "name", None)), name)
        known.append("--" + str(renamed).replace("_", "-"))
        if get_origin(get_args(hint)[0] if extras else hint) is tuple:
            lists.append(known[-1])
    return known, lists


def _annotated(hint: Any) -> bool:
    return get_origin(hint) is Annotated
