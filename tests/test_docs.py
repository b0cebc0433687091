from pathlib import Path

import pytest

from oltr.methods import METHODS
from oltr.openset import SCORES

PAGE = (Path(__file__).parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")
INFOS = {name: registry[name].info for registry in (METHODS, SCORES) for name in registry}


@pytest.mark.parametrize("name", INFOS)
def test_the_page_of_methods_is_up_to_date(name):
    info = INFOS[name]
    row = f"| `{name}` | {info.summary} | {info.paper} | {info.changes or '–'} |"
    assert row in PAGE.splitlines(), "python benchmarks/render.py"
