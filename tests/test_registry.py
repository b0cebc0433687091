import pytest

from oltr.errors import UserError
from oltr.registry import Registry, unknown_name


def colours():
    registry = Registry("colour")
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
