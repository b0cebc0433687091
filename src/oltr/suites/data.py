"""The images of a suite: its own drawing, the user's source, or long-tailed sets drawn from that."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from oltr.console import console
from oltr.data.manifest import Manifest
from oltr.data.pack import write_pack_from
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.suites.check import check_folder, check_sweep, measurable
from oltr.suites.identification import ask_suite
from oltr.suites.longtail import longtail_sets, save_set
from oltr.suites.measure import Measure
from oltr.suites.plan import Plan
from oltr.suites.run import Part
from oltr.training.train import check_trainable

GLYPHS_EACH = 280  # images drawn of every class: as many as the largest has in the embedded set


class Data(NamedTuple):
    """Where images are, and what is there."""

    source: str
    manifest: Manifest
    root: Path | None = None


@dataclass(frozen=True)
class Prepared:
    """The parts of a suite with their images, and what the table says about these."""

    whole: Data
    parts: list[tuple[Part, Data]]
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    measured_by: Measure | None = None  # on test and open images, unless given


def prepare(plan: Plan) -> Prepared:
    """Read the images and refuse what could not be trained, measured or written."""
    return _longtail(plan) if plan.suite.sweep == "longtail" else _table(plan)


def _table(plan: Plan) -> Prepared:
    """All runs on the images of the source; rows that cannot be measured there are left out."""
    suite, options, (part,) = plan.suite, plan.options, plan.parts
    made = f"The data of suite {suite.name} are made with:\n{suite.source.rstrip()}" if suite.source else ""
    source = options.source
    if source is None and suite.source is None and suite.recipe == "glyphs":
        source = str(draw_glyphs(plan.out, 0))
    if source is None:
        raise UserError(f"The suite {suite.name} needs --source.", made)
    if made and not Path(source).expanduser().exists():
        raise UserError(f"There is no file or folder {source}.", made)
    manifest = read_source(source, options.root)
    check_trainable(manifest)
    console.notes(manifest.notes)
    if suite.identify is not None:
        return _identified(plan, Data(source, manifest, options.root))
    check_sweep(suite, manifest)
    kept = measurable(suite, manifest)
    if left_out := len(suite.rows) - len(kept.rows):
        console.say(f"no open images in the source: {left_out} rows about scores are left out")
    measured = [run for run in part.runs if any(run.measures(row) for row in kept.rows)]
    needed = {each for run in measured for each in run.lineage}
    runs = [run for run in part.runs if run in needed]
    part, data = dataclasses.replace(part, suite=kept, runs=runs), Data(source, manifest, options.root)
    check_folder(part, manifest)
    return Prepared(data, [(part, data)])


def _identified(plan: Plan, data: Data) -> Prepared:
    """All runs on the images of the source, measured on other people's."""
    (part,) = plan.parts
    check_folder(part, data.manifest)
    asked = ask_suite(plan, part, data.source, data.manifest)
    facts = {"identify": asked.asked}
    return Prepared(data, [(part, data)], asked.notes, facts, asked)


def _longtail(plan: Plan) -> Prepared:
    """The runs of every α on a set of their own; validation and test images may come from training ones."""
    suite, source = plan.suite, plan.options.source
    if source is None and suite.recipe == "glyphs":
        source = str(draw_glyphs(plan.out, 0, each=GLYPHS_EACH))
    if source is None:
        raise UserError(
            f"The suite {suite.name} needs --source.",
            "Its training images are drawn from a whole set, one that is not long-tailed yet.",
            "--source with such a set, which has a split open too",
        )
    full = read_source(source, plan.options.root, flat="train")
    console.notes(full.notes)
    check_trainable(full)
    check_sweep(suite, full)
    check_folder(Part(suite, [], plan.out), full)
    drawn = longtail_sets(full, suite.alphas)
    measurable(suite, drawn[max(drawn)])
    images = {}
    for part in plan.parts[1:]:
        path = save_set(full, drawn[part.alpha], part.out)
        images[part.alpha] = Data(path, read_source(path))
    parts = [(part, images[part.alpha]) for part in plan.parts]
    for part, data in parts:
        check_folder(part, data.manifest)
    sizes = {alpha: data.manifest.sizes() for alpha, data in images.items()}
    numbers = ", ".join(f"{size['train']:,} at α = {alpha:g}" for alpha, size in sizes.items())
    notes = [
        f"The backbone is the plain model's, trained at α = {max(images):g}, frozen in all other runs.",
        f"Training images: {numbers}.",
    ]
    sets = [
        {"alpha": alpha, "images": sizes[alpha], "fingerprint": data.manifest.fingerprint()}
        for alpha, data in images.items()
    ]
    return Prepared(Data(source, full), parts, notes, {"sets": sets})


def draw_glyphs(out: Path, seed: int, each: int | None = None) -> Path:
    """The glyphs as a pack in `out`, long-tailed or `each` of every class, with a picture; drawn once."""
    from oltr.data.curate.glyphs import make_glyphs
    from oltr.figures.contact_sheet import contact_sheet

    path = out / (f"glyphs-{seed}.pack" if each is None else f"glyphs-{seed}-{each}-each.pack")
    if path.is_file():
        return path
    with console.progress("drawing glyphs") as progress:
        sizes: dict[str, Any] = {} if each is None else {"largest": each, "smallest": each}
        glyphs = make_glyphs(seed=seed, progress=progress, **sizes)
    some = glyphs.images[:: max(len(glyphs.images) // 200, 1)][:200]
    with atomic_write(out / "glyphs.png") as part:
        contact_sheet(some, columns=20).save(part, format="PNG")
    return write_pack_from(Manifest.build(glyphs.table, out), glyphs.images, glyphs.images.shape[1], path)
