"""An explanation in a few lines for the screen."""

from __future__ import annotations

from oltr.runs.explain.explanation import Explanation, Missing


def explanation_text(told: Explanation) -> str:
    """One line for each part; what is missing says why."""
    first, *others = told.candidates
    rest = "".join(f"; {each.name} {100 * each.probability:.1f} %" for each in others)
    named = f"unknown, likeliest {first.name}" if told.verdict.unknown else first.name
    lines = [f"{told.image}: {named} ({100 * first.probability:.1f} %{rest})", told.verdict.reason()]
    if isinstance(told.place, Missing):
        lines.append(f"scores: {told.place.why}")
    else:
        shares = [f"{100 * share:.0f} % of {kind}" for kind, share in told.place.less_familiar.items()]
        lines.append(f"less familiar: {', '.join(shares)} images")
    if isinstance(told.nearest, Missing):
        lines.append(f"nearest classes: {told.nearest.why}")
    else:
        pairs = zip(told.nearest.names, told.nearest.found.distances, strict=True)
        near = ", ".join(f"{name} {distance:.3g}" for name, distance in pairs)
        lines.append(f"nearest {told.nearest.found.of}: {near}")
    if isinstance(told.concepts, Missing):
        lines.append(f"infused: {told.concepts.why}")
    else:
        given = told.concepts.infused
        pairs = zip(given.neurons[0], given.amounts[0], strict=True)
        lines.append("infused: " + ", ".join(f"neuron {neuron} {amount:+.3g}" for neuron, amount in pairs))
        lines += [f"patches: {told.concepts.missing}"] if told.concepts.missing else []
    if isinstance(told.attention, Missing):
        lines.append(f"attention: {told.attention.why}")
    return "\n".join(lines)
