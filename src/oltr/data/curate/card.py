"""`card.md`: what a curated set is, how it was made, and its facts beside the published ones."""

from __future__ import annotations

from typing import Any

from oltr.data.curate.benchmark import Curated
from oltr.data.stats import stats

MOST_LISTED = 10_000  # classes whose sizes are written out

FACTS = {
    "training images": ("images", "train"),
    "validation images": ("images", "val"),
    "test images": ("images", "test"),
    "open images": ("images", "open"),
    "classes": ("classes",),
    "largest class": ("max",),
    "smallest class": ("min",),
    "many-shot classes (> 100)": ("shots", "many"),
    "medium-shot classes (20–100)": ("shots", "medium"),
    "few-shot classes (< 20)": ("shots", "few"),
}


def card_mark(name: str) -> str:
    """The card's first line, by which a folder is known as a curation of this name."""
    return f"# {name}, curated by oltr"


def fact_rows(curated: Curated) -> list[tuple[str, int, int | None]]:
    """(fact, ours, published or None) for the screen and the card."""
    ours = stats(curated.manifest)
    return [(fact, _look_up(ours, keys), _look_up(curated.published, keys)) for fact, keys in FACTS.items()]


def card_text(curated: Curated, figure: str | None = None) -> str:
    """The card as Markdown; `figure` is the picture of the class distribution beside it."""
    manifest = curated.manifest
    counts = sorted(manifest.train_counts().tolist(), reverse=True)
    table = ["| fact | here | published |", "|---|---:|---:|"]
    for fact, ours, published in fact_rows(curated):
        table.append(f"| {fact} | {ours:,} | {'–' if published is None else f'{published:,}'} |")
    lines = [
        card_mark(curated.name),
        "",
        f"- Source: {curated.source}",
        f"- Seed: {'none, nothing is drawn at random' if curated.seed is None else curated.seed}",
        f"- Fingerprint: `{manifest.fingerprint()}`",
        "",
        "## Recipe",
        "",
        *(f"- {sentence}" for sentence in curated.recipe),
        "",
        "## Facts",
        "",
        *table,
        "",
        *(f"- {remark}" for remark in curated.remarks),
        *([""] if curated.remarks else []),
        "## Training images per class, largest first",
        "",
        *([f"![Training images per class]({figure})", ""] if figure else []),
        " ".join(map(str, counts)) if len(counts) <= MOST_LISTED else f"{counts[0]:,} to {counts[-1]:,}",
        "",
    ]
    if manifest.notes:
        lines += ["## Notes", "", *(f"- {note}" for note in manifest.notes), ""]
    return "\n".join(lines)


def _look_up(facts: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        facts = facts.get(key) if facts else None
    return facts
