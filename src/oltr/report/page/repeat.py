"""How a run came about, and the command lines that repeat it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from oltr.errors import UserError
from oltr.report.page.runs import MeasuredRun
from oltr.runs.rule import decision_of
from oltr.runs.trained_run import TrainedRun
from oltr.training.adjust import Adjustment
from oltr.training.command import train_command
from oltr.wording import count


@dataclass(frozen=True)
class Origin:
    """Commands, facts (name, value) and the whole configuration of a run."""

    name: str
    commands: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    configuration: str  # YAML
    note: str = ""


def origin(measured: MeasuredRun) -> Origin:
    """What run.yaml tells, and how to do it again."""
    run, note = measured.run, ""
    try:
        config = dataclasses.replace(run.folder.config(), decision=decision_of(run))
        source, root = str(run.facts.get("source") or "SOURCE"), run.facts.get("root")
        words, exact = train_command(config, source, root=root, out=_again(run))
    except UserError as problem:  # e.g. a recipe file that is gone
        words, exact = [], False
        note = f"{problem.what} "
    if not exact:
        note += "The recipe has changed since: only the configuration below is exact."
    commands = [_command(["oltr", *words])] if words else []
    commands.append(_command(_evaluate_words(run)))
    return Origin(run.name, tuple(commands), _facts(measured), _yaml(run.facts["config"], flow=None), note)


def _evaluate_words(run: TrainedRun) -> list[str]:
    """The words of `oltr evaluate` that give the page's open numbers again."""
    rule, words = run.rule, ["oltr", "evaluate", _again(run), "--score", run.rule.score]
    if rule.unknown_rate is None:
        words += ["--threshold", repr(rule.threshold)]
    else:
        words += ["--unknown-rate", repr(rule.unknown_rate)]
    if run.shots != run.facts["config"]["shots"]:
        words += ["--shots", run.shots]
    return words


def _again(run: TrainedRun) -> str:
    """Another folder beside the run's own, which is taken."""
    return str(run.path.with_name(f"{run.path.name}-again")) if run.path.name else "again"


def _facts(measured: MeasuredRun) -> tuple[tuple[str, str], ...]:
    facts, report = measured.run.facts, measured.report
    versions = ", ".join(f"{name} {version}" for name, version in (facts.get("versions") or {}).items())
    told = [
        ("method", f"{report.method} on {report.backbone}"),
        ("seed", str(facts["config"]["seed"])),
        ("training time", f"{facts['train_seconds']:,.0f} s"),
        ("hardware", str(facts.get("hardware") or "not recorded")),
        ("versions", versions or "not recorded"),
        ("source", str(facts.get("source") or "not recorded")),
        ("images", ", ".join(f"{split} {number:,}" for split, number in facts["data"]["images"].items())),
        ("classes", count(report.num_classes, "class")),
        ("data fingerprint", facts["data"]["fingerprint"]),
    ]
    if adjustment := facts.get("adjustment"):
        told.append(("post-hoc adjustment", str(Adjustment(**adjustment))))
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
