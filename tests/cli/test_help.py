"""Help is quick, plain and complete; misspelt words are named with the nearest right one."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

from oltr.cli.main import VERBS

HEAVY = ("torch", "lightning", "pandas", "matplotlib", "numpy", "timm", "sklearn")
ALL_HELP = """
import sys
from oltr.cli.main import VERBS, _guarded
codes = [_guarded([*verb.split(), "--help"]) for verb in VERBS] + [_guarded([]), _guarded(["data"])]
assert codes == [0] * len(codes), codes
print("heavy:", [name for name in sys.argv[1:] if name in sys.modules])
"""


def test_help_imports_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", ALL_HELP, *HEAVY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_is_plain(oltr, verb):
    said = oltr(*verb.split(), "--help")
    assert said.code == 0 and said.err == ""
    assert f"usage: oltr {verb}" in said.out
    for ugly in ("None", "default: )", "default: False", "(repeatable)", "{None}"):
        assert ugly not in said.out


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_verbs_are_listed(oltr, words):
    said = oltr(*words)
    assert said.code == 0 and all(verb in said.out for verb in VERBS)


@pytest.mark.parametrize("words", [["data"], ["data", "--help"]])
def test_the_data_verbs_are_listed(oltr, words):
    said = oltr(*words)
    assert said.code == 0 and said.out.count("\n  data ") == 5 and "train " not in said.out.split("\n")[0]


@pytest.mark.parametrize("verb", ["methods", "recipes"])
def test_descriptions_stand_in_one_column(oltr, verb):
    listed = oltr(verb, "--json").out
    names = json.loads(listed) if verb == "recipes" else json.loads(listed)["methods"]
    lines = oltr(verb).out.splitlines()
    begins = {
        len(line) - len(line.removeprefix(name).lstrip())
        for name in names
        for line in lines
        if line.startswith(f"{name} ")
    }
    assert begins == {1 + max(map(len, names))}


def test_version(oltr):
    said = oltr("--version")
    assert said.code == 0 and said.out.startswith("oltr 0.")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("trian x", "did you mean train?"),
        ("dat check", "did you mean data?"),
        ("data chek x", "did you mean check"),
        ("check 'my photos' --json", "oltr data check 'my photos' --json"),
        ("frobnicate", "one of: add-class, compare, data, demo"),
        ("train photos --methd plain", "did you mean --method?"),
        ("train --methd=plain photos", "did you mean --method?"),
        ("evaluate runs/x --treshold 0.3", "did you mean --threshold?"),
        ("doctor --frobnicate", "Try: oltr doctor --help"),
        ("train photos --method olt", "did you mean oltr"),
        ("train photos --backbone resnet_50", "did you mean resnet50"),
        ("train photos --backbone qqqqqq", "in all)"),
        ("train photos --recipe glyph", "did you mean glyphs?"),
        ("recipes imagenet-l", "did you mean imagenet-lt"),
        ("data curate glyps --out x", "did you mean glyphs?"),
    ],
)
def test_misspelt(oltr, words, answer):
    oltr(*shlex.split(words)).refused(answer)


@pytest.mark.parametrize("words", ["predict", "train photos more", "train a --seed x", "data pack photos"])
def test_what_the_parser_refuses(oltr, words):
    said = oltr(*words.split())
    assert said.code == 2 and said.out == "" and "--help" in said.err and "Traceback" not in said.err


def test_a_reader_that_has_enough(tmp_path):
    command = f"{sys.executable} -m oltr.cli.main recipes --json | head -c 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")
