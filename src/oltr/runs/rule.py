"""The one rejection rule of a run: chosen at the end of training, kept in run.yaml, used by every verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oltr.config import DecisionConfig, build
from oltr.console import console
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.openset import SCORES, RejectionRule
from oltr.openset.threshold import check_choice, settle_threshold
from oltr.recipes import load_recipe
from oltr.runs.outputs import OPEN

if TYPE_CHECKING:
    from oltr.config import RunConfig
    from oltr.runs.trained_run import TrainedRun

FALLBACK = "softmax"  # has a threshold of its own


def check_decision(config: RunConfig, has_validation: bool) -> None:
    """Say before training, rather than after it, that no threshold could be chosen."""
    wish = config.decision
    name = score_of(wish, config, has_validation)
    score = SCORES[name]
    check_choice(score, wish.threshold, wish.unknown_rate)
    if name == "reachability" and not config.settings.get("reachability"):
        raise UserError(f"The score is 'reachability', but {config.method} has none.", try_this="softmax")
    if wish.threshold is None and not has_validation and score.default_threshold is None:
        raise UserError(
            f"The score {name!r} has no default threshold.",
            "An unknown rate, met on validation images, would choose one, and there are none.",
            "a source with a val split, or the score softmax",
        )


def score_of(wish: DecisionConfig, config: RunConfig, has_validation: bool) -> str:
    """The score that was asked for or is the method's own; softmax where that needs validation images."""
    name = wish.score or own_score(config)
    measured = wish.threshold is not None or has_validation or SCORES[name].default_threshold is not None
    return name if wish.score or measured else FALLBACK


def own_score(config: RunConfig) -> str:
    """The score of the run's method, unless the user chooses another."""
    return METHODS[config.method].own_score(config.head_fitted)


def choose_rule(
    run: TrainedRun,
    score: str | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
) -> RejectionRule:
    """The rule that these wishes lead to on the run's validation images."""
    name = score or own_score(run.config)
    check_choice(SCORES[name], threshold, unknown_rate)  # before images are read for hours
    known = None
    if unknown_rate is not None and _has_validation(run):
        values = run.scored("val", name).values
        known = values[run.outputs["val"].labels != OPEN]
    return RejectionRule(name, settle_threshold(SCORES[name], known, threshold, unknown_rate), unknown_rate)


def wished_rule(run: TrainedRun) -> RejectionRule:
    """The rule that the run's configuration asks for.

    A rate that cannot be met, because there are no validation images, gives way to the score's default, or to
    softmax's.
    """
    wish = decision_of(run)
    has_validation = _has_validation(run)
    name = score_of(wish, run.config, has_validation)
    default = SCORES[name].default_threshold
    wants_rate = wish.threshold is None and wish.unknown_rate is not None
    if wants_rate and default is not None and not has_validation:
        note = f"no validation images: the {name} threshold is its default, {default}"
        console.warn(note)
        return RejectionRule(name, default, note=note)
    return choose_rule(run, name, wish.threshold, wish.unknown_rate)


def saved_rule(run: TrainedRun) -> RejectionRule:
    """The rule in run.yaml; runs of before version 0.2 have none, and get their recipe's.

    Where classes were added or removed since, the threshold is that which meets the rule's rate now.
    """
    saved = run.facts.get("decision") or {}
    if saved.get("threshold") is None:
        return wished_rule(run)
    rule = RejectionRule(**{key: saved[key] for key in _KEPT if key in saved})
    return rule if saved.get("classes", 0) == run.changes.version else settled_again(run, rule)


def settled_again(run: TrainedRun, rule: RejectionRule) -> RejectionRule:
    """The rule with the threshold that meets its rate for the classes known now; a given threshold stays.

    So does one that no validation image of these classes could choose again.
    """
    if rule.unknown_rate is None or not _has_validation(run):
        return rule
    return choose_rule(run, rule.score, None, rule.unknown_rate)


def _has_validation(run: TrainedRun) -> bool:
    """Whether there are validation images of classes known now; those of removed classes are left out."""
    return "val" in run.outputs and bool((run.outputs["val"].labels != OPEN).any())


def other_rule(
    run: TrainedRun,
    score: str | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
) -> RejectionRule:
    """The run's rule with what was given in its place; another score keeps the run's unknown rate."""
    if threshold is None and unknown_rate is None:
        if score in (None, run.rule.score):
            return run.rule
        unknown_rate = run.rule.unknown_rate
        if unknown_rate is None and SCORES[str(score)].default_threshold is None:
            unknown_rate = DecisionConfig().unknown_rate
    return choose_rule(run, score or run.rule.score, threshold, unknown_rate)


def decision_of(run: TrainedRun) -> DecisionConfig:
    """What the run was told, or what its recipe says now where run.yaml is older than the question."""
    saved = run.facts.get("decision") or {}
    if "unknown_rate" in saved and "threshold" not in saved:  # as `Recognizer.save` wrote it before 0.2
        return DecisionConfig(saved.get("score"), None, saved["unknown_rate"])
    if "decision" in run.facts["config"]:
        return run.config.decision
    try:
        return build(DecisionConfig, load_recipe(run.config.recipe).run.get("decision", {}))
    except UserError:  # a recipe file of the user's own that is no longer there
        return DecisionConfig()


def as_values(rule: RejectionRule) -> dict[str, Any]:
    """The rule as run.yaml keeps it."""
    found = {"score": rule.score, "threshold": rule.threshold, "unknown_rate": rule.unknown_rate}
    return found | ({"note": rule.note} if rule.note else {})


_KEPT = ("score", "threshold", "unknown_rate", "note")
