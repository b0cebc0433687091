"""The container files agree with the package, as far as can be told without building them."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from oltr.cli.main import _guarded
from oltr.serve.guard import FREE

ROOT = Path(__file__).parents[1]
TEXT = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
STEPS = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and not line.startswith("#")]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICE = COMPOSE["services"]["oltr"]


def steps(kind: str) -> list[str]:
    return [rest for word, rest in STEPS if word == kind]


def filled(value: str) -> str:
    """A value of compose.yaml with its defaults."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def test_what_is_copied_is_there_and_sent_to_the_builder():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    sent = [line[1:] for line in lines if line.startswith("!")]
    copied = [name for step in steps("COPY") for name in step.split()[:-1]]
    assert lines[0] == "*" and sorted(copied) == sorted(sent)
    assert all((ROOT / name).exists() for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {project["readme"], *project["license-files"]} <= set(copied)
    (extras,) = re.findall(r"'\.\[(.*?)\]'", TEXT)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    # Secrets and runs stay outside.
    assert not any(fnmatch.fnmatch(name, pattern) for name in (".env", "runs") for pattern in sent)


COMMANDS = [json.loads(steps("CMD")[0]), [filled(word) for word in SERVICE["command"]]]


@pytest.mark.parametrize("words", COMMANDS)
def test_its_command_is_one_of_ours(words, monkeypatch, capsys):
    """It gets as far as to miss the run, past all options; without a token it is refused before."""
    assert json.loads(steps("ENTRYPOINT")[0]) == ["oltr"] and words[1] == "/runs/photos"
    words = [words[0], "/no such folder/photos", *words[2:]]
    monkeypatch.setenv("OLTR_TOKEN", "")
    assert _guarded(words) == 2 and "there is no token" in capsys.readouterr().err
    monkeypatch.setenv("OLTR_TOKEN", "a token that is long enough")
    assert _guarded(words) == 2
    assert re.search(r"error: [^\n]*/no such folder/photos", capsys.readouterr().err)


def test_all_speak_of_one_port():
    (health,) = steps("HEALTHCHECK")
    command = json.loads(health[health.index("[") :])
    assert steps("EXPOSE") == ["8000"] and "http://127.0.0.1:8000/health" in command[2]
    assert "/health" in FREE  # it has no token
    compile(command[2], "HEALTHCHECK", "exec")
    assert SERVICE["ports"] == ["127.0.0.1:8000:8000"] and "8000" in SERVICE["command"]


def test_it_runs_as_nobody_in_particular_and_writes_to_two_places():
    last_user = steps("USER")[-1]
    assert last_user != "root" and f"useradd --uid 1000 --create-home {last_user}" in TEXT
    assert filled(SERVICE["user"]) == "1000:1000" and SERVICE["read_only"]
    assert steps("VOLUME") == ["/runs"] and SERVICE["volumes"] == ["./runs:/runs"]
    assert "HOME=/tmp" in steps("ENV") and SERVICE["tmpfs"][0].startswith("/tmp:")


def test_no_token_and_no_address_is_written_down():
    files = [ROOT / name for name in ("Dockerfile", "compose.yaml", ".dockerignore")]
    found = [word for file in files for word in re.findall(r"https?://[^\s'\"]+", file.read_text())]
    assert found == ["http://127.0.0.1:8000/health"]
    assert SERVICE["environment"]["OLTR_TOKEN"].startswith("${OLTR_TOKEN:?")
    assert ".env" in (ROOT / ".gitignore").read_text().replace("/", "").split()
    for step in steps("RUN"):
        shlex.split(step)
