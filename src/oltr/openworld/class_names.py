"""Names for classes: one spelling each, none that people would take for another one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from oltr.data.label_spelling import alike
from oltr.data.validate import UNNAMED
from oltr.errors import UserError
from oltr.registry import unknown_name
from oltr.runs.trained_run import TrainedRun

JOINERS = "\u200c\u200d"  # cannot be seen, but Persian and many Indian scripts need them within words


def as_kept(name: str) -> str:
    """A name as a run keeps it: composed (NFC), without blanks around it."""
    return unicodedata.normalize("NFC", name).strip()


def known_class(run: TrainedRun, name: str) -> str:
    """The run's class of that name, in the run's own Unicode form; refused where there is none."""
    if name in run.class_names:
        return name
    forms = {as_kept(known): known for known in run.class_names}
    if as_kept(name) in forms:
        return forms[as_kept(name)]
    if (meant := taken_name(name, run.class_names)) is not None:
        raise UserError(f"There is no class called {name!r}.", try_this=f"did you mean {meant}?")
    raise unknown_name("class", name, run.class_names)


def checked_new_name(run: TrainedRun, name: str, *, renamed: str | None = None) -> str:
    """A name for a new class, or for a class that is to be `renamed`, as it is kept.

    Refused where it cannot be told from a class that the run knows, or from the answer "unknown". Slashes,
    dots and commas are free: folders of `--sort` are named without them, and tables quote.
    """
    name = as_kept(name)
    if not name or not all(letter.isprintable() or _joins(name, i) for i, letter in enumerate(name)):
        why = "It has characters that cannot be seen." if name else "It is empty."
        raise UserError(f"{name!r} is no name for a class.", why, "a word for what the images show")
    if _seen(name) == alike(UNNAMED):
        raise UserError(
            f"{name!r} is no name for a class.",
            "It is the answer for an image of no class.",
            "a word for what the images show",
        )
    if name == renamed:
        raise UserError(f"The class is called {name!r} already.", try_this="another name")
    taken = taken_name(name, (known for known in run.class_names if known != renamed))
    if taken is None:
        return name
    hint = "another name" if renamed is not None else "--more to add images to it, or another name"
    if taken == name:
        raise UserError(f"The run knows a class {name!r} already.", try_this=hint)
    raise UserError(
        f"The run knows a class {taken!r} already.",
        f"{name!r} differs by case, blanks or Unicode form.",
        hint,
    )


def taken_name(name: str, names: Iterable[str]) -> str | None:
    """Which of the names is alike; the same one first."""
    found = [each for each in names if _seen(each) == _seen(name)]
    return next((each for each in found if each == name), found[0] if found else None)


def _joins(name: str, place: int) -> bool:
    """Whether a character is a joiner between two letters, or signs that belong to them."""
    around = name[place - 1 : place] + name[place + 1 : place + 2]
    return (
        name[place] in JOINERS
        and len(around) == 2
        and all(unicodedata.category(each)[0] in "LM" for each in around)
    )


def _seen(name: str) -> str:
    """Equal for names that look alike: joiners may not be visible."""
    return alike(name.translate(dict.fromkeys(map(ord, JOINERS))))
