import re
from pathlib import Path

import pytest
from PIL import Image

from oltr.data.pack import open_pack
from oltr.methods import METHODS
from oltr.openset import SCORES
from oltr.runs.train_run import train_run
from oltr.training.options import TrainOptions
from tests.helpers.tiny import tiny_config

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "methods.md").read_text(encoding="utf-8")
INFOS = {name: registry[name].info for registry in (METHODS, SCORES) for name in registry}


@pytest.mark.parametrize("name", INFOS)
def test_the_page_of_methods_is_up_to_date(name):
    info = INFOS[name]
    row = f"| `{name}` | {info.summary} | {info.paper} | {info.changes or '–'} |"
    assert row in PAGE.splitlines(), "python benchmarks/render.py"


def test_the_example_of_explaining_runs_as_it_is_written(pack, tmp_path, monkeypatch):
    (example,) = re.findall(r"```python\n(.*?)```", (DOCS / "explain.md").read_text(encoding="utf-8"), re.S)
    opened, config = open_pack(pack), tiny_config("oltr", epochs=(1, 1))
    monkeypatch.chdir(tmp_path)
    options = TrainOptions(accelerator="cpu")
    train_run(config, opened.manifest, "runs/photos", options, str(pack))
    Image.fromarray(opened.images[0]).save("lynx.jpg")
    exec(compile(example, "docs/explain.md", "exec"), {})
    drawn = {"why", "attention", "infused", "activation"}
    assert {file.stem for file in tmp_path.glob("*.png")} == drawn
