"""Each room of pieces exports what it holds."""

import importlib

import pytest

from tests.test_import import loaded_after

ROOMS = ["losses", "metrics", "nn", "samplers"]


@pytest.mark.parametrize("room", ROOMS)
def test_every_exported_name_is_there(room):
    module = importlib.import_module(f"oltr.{room}")
    assert module.__doc__ and len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_shot_groups_do_not_wait_for_torch():
    assert loaded_after("from oltr.metrics import shot_groups") == ["numpy"]
