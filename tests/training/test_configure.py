"""What the command line says, laid over a recipe."""

import pytest

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
