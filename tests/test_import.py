import json
import subprocess
import sys

import pytest

import oltr

HEAVY = ["torch", "torchvision", "timm", "lightning", "sklearn", "scipy", "pandas", "matplotlib", "numpy"]


def loaded_after(statement):
    """Which heavy packages a fresh interpreter has loaded after one statement."""
    code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(set({HEAVY!r}) & set(sys.modules))))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "statement", ["import oltr", "from oltr import UserError", "import oltr.config", "import oltr.recipes"]
)
def test_importing_oltr_loads_nothing_heavy(statement):
    assert loaded_after(statement) == []


def test_public_names_are_there_and_others_are_not():
    from oltr.errors import UserError

    assert oltr.UserError is UserError
    assert oltr.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no attribute 'Recogniser'"):
        oltr.Recogniser  # noqa: B018


def test_the_package_is_a_command():
    command = [sys.executable, "-m", "oltr", "methosd"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "did you mean methods?" in done.stderr
