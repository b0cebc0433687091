"""How a run came about, and the command lines that repeat it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from oltr.config import RunConfig, build
from oltr.errors import UserError
from oltr.recipes import merge
from oltr.report.page.load import PageRun
from oltr.training.configure import parse_change, recipe_config
from oltr.training.run_folder import plain_values
from oltr.wording import count

_OPTIONS = ("backbone", "weights", "seed")  # of `oltr train`; other settings are given with --set
_NAMES = ("method", "recipe")


@dataclass(frozen=True)
class Origin:
    """Commands, facts (name, value) and the whole configuration of a run."""

    name: str
    commands: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    configuration: str  # YAML
    note: str = ""


def origin(run: PageRun) -> Origin:
    """What run.yaml tells, and how to do it again."""
    kept, note = run.facts["config"], ""
    try:
        words, exact = _train_words(run)
    except UserError as problem:  # e.g. a recipe file that is gone
        words, exact = [], False
        note = f"{problem.what} "
    if not exact:
        note += "The recipe has changed since: only the configuration below is exact."
    commands = [_command(words)] if words else []
    commands.append(_command(_evaluate_words(run)))
    return Origin(run.name, tuple(commands), _facts(run), _yaml(kept, flow=None), note)


def settings_changed(base: Mapping[str, Any], run: Mapping[str, Any], place: str = "") -> list[str]:
    """What must be set to come from one configuration to the other, as NAME=VALUE of `--set`.

    >>> settings_changed({"seed": 0, "stage1": {"lr": 0.1}}, {"seed": 0, "stage1": {"lr": 1e-05}})
    ['stage1.lr=1.0e-05']
    """
    changes = []
    for key, value in run.items():
        before = base.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping) and key != "lr_milestones":
            changes += settings_changed(before, value, f"{place}{key}.")
        elif value != before:
            changes.append(f"{place}{key}={_yaml(value, flow=True)}")
    return changes


def _train_words(run: PageRun) -> tuple[list[str], bool]:
    """The words of `oltr train`, and whether they give the run's configuration again."""
    config = build(RunConfig, run.facts["config"])
    base, wanted = (
        plain_values(dataclasses.asdict(each))
        for each in (recipe_config(config.recipe, config.method), config)
    )
    words = ["oltr", "train", str(run.facts.get("source") or "SOURCE")]
    if run.facts.get("root"):
        words += ["--root", str(run.facts["root"])]
    words += ["--recipe", config.recipe, "--method", config.method]
    changed: dict[str, Any] = {}
    for name in _OPTIONS:
        if wanted[name] != base[name] and wanted[name] is not None:
            words += [f"--{name}", str(wanted[name])]
            changed[name] = wanted[name]
    listed = (*_OPTIONS, *_NAMES)
    rest = {key: value for key, value in wanted.items() if key not in listed}
    for change in settings_changed(base, rest):
        words += ["--set", change]
        changed = merge(changed, parse_change(change))
    words += ["--out", _again(run)]
    return words, recipe_config(config.recipe, config.method, changed) == config


def _evaluate_words(run: PageRun) -> list[str]:
    """The words of `oltr evaluate` that give the open numbers of report.json again, or else the page's."""
    words = ["oltr", "evaluate", _again(run)]
    part = run.kept.data.get("open") or run.report.data.get("open")
    if part:
        words += ["--score", part["score"]]
        if part.get("unknown_rate") is None:
            words += ["--threshold", repr(part["threshold"])]
        else:
            words += ["--unknown-rate", repr(part["unknown_rate"])]
    if run.loaded.shots != run.facts["config"]["shots"]:
        words += ["--shots", run.loaded.shots]
    return words


def _again(run: PageRun) -> str:
    """Another folder beside the run's own, which is taken."""
    return str(run.path.with_name(f"{run.path.name}-again")) if run.path.name else "again"


def _facts(run: PageRun) -> tuple[tuple[str, str], ...]:
    facts, images = run.facts, run.facts["data"]["images"]
    versions = ", ".join(f"{name} {version}" for name, version in (facts.get("versions") or {}).items())
    told = [
        ("method", f"{run.report['method']} on {run.report['backbone']}"),
        ("seed", str(facts["config"]["seed"])),
        ("training time", f"{facts['train_seconds']:,.0f} s"),
        ("hardware", str(facts.get("hardware") or "not recorded")),
        ("versions", versions or "not recorded"),
        ("source", str(facts.get("source") or "not recorded")),
        ("images", ", ".join(f"{split} {number:,}" for split, number in images.items())),
        ("classes", count(run.report["num_classes"], "class")),
        ("data fingerprint", facts["data"]["fingerprint"]),
    ]
    return tuple(told + ([("remark", str(facts["remark"]))] if facts.get("remark") else []))


def _yaml(value: Any, flow: bool | None) -> str:
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=10**6)
    return text.strip().removesuffix("...").strip()  # the mark after a bare value


def _command(words: Sequence[str]) -> str:
    """Quoted for a shell, an option to a line where there are many."""
    lines = [[word] for word in words[:1]]
    for word in words[1:]:
        if word.startswith("--"):
            lines.append([word])
        else:
            lines[-1].append(word)
    joined = [shlex.join(line) for line in lines]
    return " ".join(joined) if len(" ".join(joined)) < 90 else " \\\n    ".join(joined)
