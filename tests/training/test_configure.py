"""What the command line says, laid over a recipe."""

from dataclasses import dataclass

import pytest

from oltr.errors import UserError
from oltr.methods import METHODS, Method, MethodInfo
from oltr.training.configure import configure, recipe_config


def test_the_stored_size_and_the_drops_follow_in_proportion():
    config = configure("imagenet-lt", "plain", image_size=112, epochs=(15,))
    usual = configure("imagenet-lt", "plain")
    assert config.data.stored_size == usual.data.stored_size // 2
    assert config.stage1.epochs == 15 and max(config.stage1.lr_milestones) < 15


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("data.stored_size=36", lambda config: config.data.stored_size == 36),
        ("stage1.lr_milestones={8: 0.1}", lambda config: config.stage1.lr_milestones == {8: 0.1}),
        ("stage1.epochs=7", lambda config: config.stage1.epochs == 7),
    ],
)
def test_what_is_set_by_name_stays(change, found):
    assert found(configure("imagenet-lt", "oltr", image_size=32, epochs=(10, 5), changes=[change]))


@dataclass(frozen=True)
class OwnSettings:
    smoothing: float = 0.1
    powers: tuple[float, ...] = (1.0, 2.0)
    width: int | None = None


class Own(Method):
    """A method from outside, without a file of numbers."""

    Settings = OwnSettings
    info = MethodInfo("Own", "A method of this test", "nobody", 2020)


OWN = f"{__name__}:Own"


def test_a_method_without_a_file_has_the_defaults_of_its_settings():
    config = configure("glyphs", OWN, changes=["settings.smoothing=5e-2"])
    assert config.method == OWN and METHODS[config.method] is Own
    assert config.settings == {"smoothing": 0.05, "powers": [1.0, 2.0], "width": None}
    assert config.stage2 == configure("glyphs", "plain").stage2


def test_all_numbers_of_a_method_are_part_of_the_run():
    for method in METHODS:
        config = configure("glyphs", method)
        names = set(METHODS[method].Settings.__dataclass_fields__)
        assert set(config.settings) == names and recipe_config("glyphs", method) == config


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("oltr-papr", (), r"no method called 'oltr-papr'.*did you mean oltr-paper"),
        (f"{__name__}:Mine", (), "no attribute 'Mine'"),
        (f"{__name__}:OwnSettings", (), "no subclass of oltr.methods.base.Method"),
        (OWN, ("settings.smoothng=1",), r"no setting in settings called 'smoothng'.*did you mean smoothing"),
        (OWN, ("smoothing=1",), r"did you mean settings\.smoothing"),
        (OWN, ("settings.smoothing=much",), "settings.smoothing is 'much'"),
    ],
)
def test_a_method_or_a_number_that_is_not_there_is_refused(method, changes, message):
    with pytest.raises(UserError, match=f"(?s){message}"):
        configure("glyphs", method, changes=changes)


def test_settings_that_were_changed_are_stored_as_numbers():
    config = configure("glyphs", "range", changes=["settings.within_weight=5e-6", "settings.margin=3"])
    assert config.settings == METHODS["range"].all_settings() | {"within_weight": 5e-6, "margin": 3.0}
    with pytest.raises(UserError, match=r"settings\.largest is 0"):
        configure("glyphs", "range", changes=["settings.largest=0"])
