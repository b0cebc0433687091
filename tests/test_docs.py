import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from oltr.data.pack import open_pack
from oltr.methods import METHODS
from oltr.openset import SCORES
from oltr.runs.train_run import train_run
from oltr.training.options import TrainOptions
from tests.helpers.served import served
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


@pytest.fixture(scope="module")
def service(pack, tmp_path_factory):
    """The address of a tiny run's service, and a folder with images to send."""
    opened, folder = open_pack(pack), tmp_path_factory.mktemp("served")
    config, options = tiny_config("plain", epochs=(1,)), TrainOptions(accelerator="cpu")
    train_run(config, opened.manifest, folder / "run", options, str(pack))
    (folder / "new").mkdir()
    for number, name in enumerate(["a", "b", *(f"new/{i}" for i in range(20))]):
        Image.fromarray(opened.images[number]).save(folder / f"{name}.jpg")
    with served(folder / "run") as address:
        yield address, folder


def serve_example(language: str, address: str) -> str:
    text = (DOCS / "serve.md").read_text(encoding="utf-8")
    (example,) = re.findall(rf"```{language}\n(.*?)```", text, re.S)
    assert "http://127.0.0.1:8000" in example
    return example.replace("http://127.0.0.1:8000", address)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("b2sum")), reason="needs curl and b2sum")
def test_the_calls_of_the_service_are_answered_as_they_are_written(service):
    address, folder = service
    strict = 'set -eu\nOLTR_TOKEN=\ncurl() { command curl --fail "$@"; echo; }\n'
    words = ["bash", "-c", strict + serve_example("bash", address)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    asked, kept, unknown, added, undone, deleted, state = done.stdout.split("\n")[:-1]
    assert [row["path"] for row in json.loads(asked)["predictions"]] == ["a.jpg", "b.jpg"]
    assert [row["name"] for row in json.loads(kept)["images"]] == ["site A/a.jpg"]
    assert json.loads(unknown)["total"] == len(json.loads(unknown)["images"]) <= 1
    assert json.loads(added)["name"] == "lynx" and json.loads(undone)["undone"] == json.loads(added)["action"]
    assert deleted == "" and json.loads(state)["images"]["total"] == 0


def test_the_client_of_the_service_runs_as_it_is_written(service, monkeypatch, capsys):
    address, folder = service
    monkeypatch.chdir(folder)
    exec(compile(serve_example("python", address), "docs/serve.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in printed[:20]} == {f"{i}.jpg" for i in range(20)}
    assert all(line.split()[1] in ("known", "unknown") for line in printed[:20])
    assert len(printed) == 20 + any(line.split()[1] == "unknown" for line in printed[:20])
