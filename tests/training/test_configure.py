"""What the command line says, laid over a recipe."""

import pytest
import yaml

from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.training.configure import configure


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


@pytest.mark.parametrize("method", list(METHODS))
def test_a_configuration_holds_all_settings_of_its_method(method):
    config = configure("glyphs", method)
    assert config.settings == METHODS[method].all_settings()
    assert yaml.safe_load(yaml.safe_dump(config.settings)) == config.settings


def test_settings_that_were_changed_are_stored_as_numbers():
    config = configure("glyphs", "range", changes=["settings.within_weight=5e-6", "settings.margin=3"])
    assert config.settings == METHODS["range"].all_settings() | {"within_weight": 5e-6, "margin": 3.0}
    with pytest.raises(UserError, match=r"settings\.largest is 0"):
        configure("glyphs", "range", changes=["settings.largest=0"])
