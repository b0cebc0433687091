"""Every registered method is introduced, has default settings and is tested; what lacks is listed."""

from dataclasses import MISSING, dataclass
from pathlib import Path

import yaml

from oltr.methods import METHODS, MethodInfo
from oltr.recipes import HOME

TESTS = Path(__file__).parent
CONTRIBUTING = TESTS.parents[1] / "CONTRIBUTING.md"


def missing(name, method, recipes=HOME / "methods", tests=TESTS):
    """What `name` lacks, in words."""
    info, found = getattr(method, "info", None), []
    if not isinstance(info, MethodInfo):
        found.append("info")
    else:
        found += [f"info.{part}" for part in ("title", "summary", "paper") if not getattr(info, part)]
        if str(info.year) not in info.paper:
            found.append("its year in info.paper")
    fields = method.Settings.__dataclass_fields__.values()
    found += [
        f"a default of settings.{field.name}"
        for field in fields
        if field.default is field.default_factory is MISSING
    ]
    if (recipe := recipes / f"{name}.yaml").is_file():
        unknown = set(yaml.safe_load(recipe.read_text(encoding="utf-8"))) - {"stage1", "stage2"}
        found += [f"a place for {key} of its recipe" for key in sorted(unknown)]
    if not any(f'"{name}"' in file.read_text(encoding="utf-8") for file in tests.glob("test_*.py")):
        found.append(f'a test that names "{name}"')
    return [f"{name} lacks {thing}" for thing in found]


def test_no_method_lacks_its_info_its_recipe_or_its_test():
    lacking = [line for name in METHODS for line in missing(name, METHODS[name])]
    assert not lacking, "\n".join(lacking)


def test_what_a_method_lacks_is_listed(tmp_path):
    @dataclass
    class Numbers:
        required: float
        given: int = 3

    class Bare:
        Settings = Numbers

    class Undated(METHODS["plain"]):
        info = MethodInfo(title="", summary="of", paper="someone, somewhere", year=2001)

    (tmp_path / "undated.yaml").write_text("settings: {extra: 1}", encoding="utf-8")
    (tmp_path / "test_it.py").write_text('METHODS["undated"]', encoding="utf-8")
    assert missing("bare", Bare, tmp_path, tmp_path) == [
        "bare lacks info",
        "bare lacks a default of settings.required",
        'bare lacks a test that names "bare"',
    ]
    assert missing("undated", Undated, tmp_path, tmp_path) == [
        "undated lacks info.title",
        "undated lacks its year in info.paper",
        "undated lacks a place for settings of its recipe",
    ]


def test_the_walk_through_shows_files_as_they_are():
    root, text = CONTRIBUTING.parent, CONTRIBUTING.read_text(encoding="utf-8")
    shown = text.split("## Adding a method")[1].split("\n```")  # words, file, words, file, ...
    assert len(shown) == 7
    for words, block in zip(shown[0:6:2], shown[1:6:2], strict=True):
        path = words.strip().splitlines()[-1].split("`")[1]
        content = block.split("\n", 1)[1] + "\n"
        assert content == (root / path).read_text(encoding="utf-8"), path
