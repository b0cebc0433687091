"""Which names a class can be given."""

from __future__ import annotations

import json
import unicodedata

import pytest

from oltr import UserError
from oltr.openworld.add_class import add_class
from oltr.openworld.change_classes import remove_class, rename_class
from oltr.openworld.class_names import checked_new_name, known_class
from oltr.runs.predictions.sort_images import class_folders
from oltr.runs.trained_run import TrainedRun

NFD = unicodedata.normalize("NFD", "dög")


@pytest.fixture
def wild(folder) -> TrainedRun:
    """A run that was trained on classes with such names."""
    file = folder / "classes.json"
    classes = json.loads(file.read_text())
    for entry, name in zip(classes, ("red fox", NFD, "Lynx"), strict=False):
        entry["name"] = name
    file.write_text(json.dumps(classes))
    return TrainedRun(folder)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("red fox", "red fox"),
        ("Red Fox", "red fox"),
        (" red   fox ", "red fox"),
        ("dög", NFD),
        ("DÖG", NFD),
        ("lynx", "Lynx"),
        ("LYNX", "Lynx"),
    ],
)
def test_names_that_look_like_a_known_one(wild, name, taken):
    with pytest.raises(UserError) as told:
        checked_new_name(wild, name)
    assert f"knows a class {taken!r} already" in str(told.value) and "--more" in str(told.value)
    with pytest.raises(UserError) as told:
        checked_new_name(wild, name, renamed="white")
    assert repr(taken) in str(told.value) and "--more" not in str(told.value)


@pytest.mark.parametrize("name", ["unknown", "Unknown", " UNKNOWN ", "", " ", "a\tb", "a\u200bb", "\udcff"])
def test_names_that_are_none(wild, name):
    with pytest.raises(UserError, match="no name for a class"):
        checked_new_name(wild, name)


@pytest.mark.parametrize("name", ["red/fox", "red\\fox", ".hidden", "..", "fox, red", "redfox", "雪 豹", "-"])
def test_names_that_break_nothing(wild, name):
    assert checked_new_name(wild, name) == name
    folder = class_folders([name])[name]
    assert folder not in ("", ".", "..") and not set("/\\") & set(folder)


def test_a_name_is_kept_composed(wild, strangers):
    files = next(iter(strangers.values()))
    assert add_class(wild, unicodedata.normalize("NFD", " café "), files[:2]).name == "café"
    rename_class(wild, "white", unicodedata.normalize("NFD", "weiß-à"))
    assert {"café", "weiß-à"} <= set(TrainedRun(wild.path).class_names)


def test_a_known_class_is_found_in_either_form(wild, strangers):
    files = next(iter(strangers.values()))
    assert known_class(wild, "dög") == NFD
    add_class(wild, "dög", files[:2], more=True)
    assert wild.class_names[-1] == NFD and len(wild.class_names) == 6
    with pytest.raises(UserError, match="did you mean Lynx"):
        remove_class(wild, "LYNX")
    remove_class(wild, "dög")
    assert NFD not in wild.class_names


def test_a_class_can_get_another_spelling_of_its_own_name(wild):
    rename_class(wild, "Lynx", "lynx")
    assert "lynx" in wild.class_names and "Lynx" not in wild.class_names
    with pytest.raises(UserError, match="called 'lynx' already"):
        rename_class(wild, "lynx", "lynx ")
