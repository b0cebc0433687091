import sys
from abc import ABC, abstractmethod

import pytest

from oltr.errors import UserError
from oltr.registry import Registry, unknown_name
from tests.helpers.installed import installed


class Colour(ABC):
    """What the registry of these tests holds."""

    @abstractmethod
    def paint(self):
        """Make something of it."""


class Light(Colour):
    wave = 500

    def paint(self):
        return "light"


OTHER = "not a colour"


def colours(group=None):
    registry = Registry("colour", group, Colour, {"wave": int})
    for name in ("red", "green", "light-blue"):
        registry.register(name)(name.upper())
    return registry


def test_what_was_registered_is_found_by_name_and_listed_in_order():
    registry = colours()
    assert registry["green"] == "GREEN"
    assert "red" in registry and "yellow" not in registry
    assert list(registry) == ["green", "light-blue", "red"]


def test_register_gives_the_object_back():
    @Registry("function").register("double")
    def double(x):
        return 2 * x

    assert double(4) == 8


def test_a_name_is_given_once():
    registry = colours()
    with pytest.raises(ValueError, match="colour 'red' is registered twice"):
        registry.register("red")("other")
    assert registry["red"] == "RED"


def test_a_misspelt_name_gets_the_nearest_ones():
    with pytest.raises(UserError, match=r"no colour called 'light_blue'") as caught:
        colours()["light_blue"]
    assert caught.value.try_this == "did you mean light-blue?"


def test_a_name_like_no_other_gets_the_list():
    error = unknown_name("colour", "xyzzy", ["red", "green"])
    assert error.try_this == "one of: green, red"


def test_an_error_shows_what_why_and_what_to_try():
    assert str(UserError("What.", "Why.", "this")) == "What.\nWhy.\nTry: this"
    assert str(UserError("What.")) == "What."


def test_a_class_is_found_by_its_module_and_name():
    assert colours()[f"{__name__}:Light"] is Light


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_package:Light", "There is no module no_such_package among the installed packages or in"),
        (f"{__name__}.deeper:Light", f"There is no module {__name__}.deeper"),
        (f"{__name__}:Lihgt", "test_registry.py) has no attribute 'Lihgt'"),
        (f"{__name__}:OTHER", f"It is no subclass of {__name__}.Colour."),
        (f"{__name__}:Colour", "It does not define paint."),
    ],
)
def test_a_class_that_is_not_there_or_no_colour_is_refused(name, said):
    with pytest.raises(UserError) as refused:
        colours()[name]
    assert name in refused.value.what and said in refused.value.why


def test_a_module_in_the_current_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "my_own_colours.py").write_text(
        f"from {__name__} import Light\nclass Mine(Light): pass\nclass Dark(Light): wave = 'none'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the folder is added to it
    assert colours()["my_own_colours:Mine"]().paint() == "light"
    with pytest.raises(UserError, match=r"(?s)Dark cannot be used as a colour.*`wave` is missing or no int"):
        colours()["my_own_colours:Dark"]


def test_a_module_that_fails_is_told_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "fails_at_once.py").write_text("\nimport a_package_that_nobody_has\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(UserError, match=r"ModuleNotFoundError: .*nobody_has.*fails_at_once.py, line 2"):
        colours()["fails_at_once:Light"]


MODULE = f"""
from {__name__} import Light
class Yellow(Light): pass
class Nothing: pass
"""


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Two packages: one with good and bad colours, one that cannot be imported."""
    names = {
        "yellow": "plugged_colours:Yellow",
        "nothing": "plugged_colours:Nothing",
        "gone": "plugged_colours:Gone",
        "red": "plugged_colours:Yellow",
    }
    installed(tmp_path, "paint-box", {"plugged_colours.py": MODULE}, {"test.colours": names})
    broken = {"broken_colours.py": "raise SystemExit('no licence')"}
    groups = {"test.colours": {"black": "broken_colours:Black", "yellow": "broken_colours:Other"}}
    installed(tmp_path, "tar-pit", broken, groups)
    monkeypatch.syspath_prepend(tmp_path)


def test_packages_add_to_a_registry_when_a_name_is_missing(plugins, capsys):
    registry = colours("test.colours")
    assert registry["red"] == "RED" and capsys.readouterr().err == ""  # nothing was loaded for it
    assert registry["yellow"]().paint() == "light"
    assert list(registry) == ["green", "light-blue", "red", "yellow"]
    assert registry["red"] == "RED"


def test_plugins_that_fail_are_left_out_and_told_once(plugins, capsys):
    registry = colours("test.colours")
    assert "yellow" in registry
    said = capsys.readouterr().err.splitlines()
    for name, package, why in [
        ("black", "tar-pit", "SystemExit: no licence"),
        ("gone", "paint-box", "AttributeError"),
        ("nothing", "paint-box", "It is no subclass of"),
        ("red", "paint-box", "There is another colour of that name."),
        ("yellow", "tar-pit", "SystemExit: no licence"),
    ]:
        (line,) = (line for line in said if f"'{name}' of {package}" in line)
        assert line.startswith("warning: the colour") and "is left out" in line and why in line
    assert len(said) == 5
    assert "violet" not in registry and list(registry)
    assert capsys.readouterr().err == ""


def test_a_plugin_that_failed_says_why_when_it_is_asked_for(plugins):
    registry = colours("test.colours")
    with pytest.raises(UserError, match=r"(?s)'black' of tar-pit .*cannot be loaded.*no licence"):
        registry["black"]
    with pytest.raises(UserError, match=r"(?s)'nothing' of paint-box.* cannot be used as a colour"):
        registry["nothing"]
    with pytest.raises(UserError, match="did you mean yellow"):
        registry["yelow"]


def test_a_plugin_that_registers_itself_is_no_second_one(tmp_path, monkeypatch, capsys):
    registry = colours("test.selves")
    monkeypatch.setattr(f"{__name__}.SELF", registry, raising=False)
    text = f"from {__name__} import SELF, Light\n@SELF.register('self')\nclass Self(Light): pass\n"
    installed(tmp_path, "self-made", {"self_made.py": text}, {"test.selves": {"self": "self_made:Self"}})
    monkeypatch.syspath_prepend(tmp_path)
    assert registry["self"].__name__ == "Self" and capsys.readouterr().err == ""
