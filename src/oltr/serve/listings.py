"""What the API tells of a snapshot."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from typing import Any

from oltr.runs.action_text import action_text
from oltr.runs.predictions.rescore import Change, answer_of
from oltr.serve.examples import Examples
from oltr.serve.grouping import Grouper, Groups
from oltr.serve.marks import Status
from oltr.serve.snapshot import Snapshot
from oltr.serve.state import State

SHOWN = 6  # images of an action


def group_state(state: State) -> dict[str, Any]:
    """How far the clusters are."""
    return _how_far(state.grouper, state.grouper.groups, state.snapshot)


def _how_far(grouper: Grouper, groups: Groups, now: Snapshot) -> dict[str, Any]:
    return {"number": groups.number, "busy": grouper.busy, "waiting": groups.waiting(now)}


def image_list(
    now: Snapshot, status: Status | None, label: str | None, named: str | None, offset: int, limit: int
) -> dict[str, Any]:
    """Images, the newest first; `label`: whose answer is this class, or "unknown"."""
    found = [
        number
        for number in reversed(list(now.images))
        if (status is None or now.statuses[number] == status)
        and (label is None or answer_of(now.answers[number]) == label)
        and (named is None or (number in now.marks and now.marks[number].name == named))
    ]
    return {"total": len(found), "images": [now.record(number) for number in found[offset : offset + limit]]}


def unknown_list(now: Snapshot, groups: Groups, offset: int, limit: int) -> dict[str, Any]:
    """Images that wait for a name: those of the first clusters first, those of none last."""
    places, last = groups.places, len(now.images) + 1
    rank = {n: i for each in groups.clusters for i, n in enumerate(each.paths)}

    def order(number: str) -> tuple[int, int]:
        return (places[number].label_first, rank[number]) if number in places else (last, 0)

    found = sorted(now.unknown(), key=order)
    return {
        "total": len(found),
        "images": [
            now.record(number)
            | {
                "cluster": places[number].number if number in places else None,
                "label_first": places[number].label_first if number in places else None,
            }
            for number in found[offset : offset + limit]
        ],
    }


def cluster_list(state: State) -> dict[str, Any]:
    """Clusters of images that still wait."""
    groups, now = state.grouper.groups, state.snapshot  # once: both may be replaced meanwhile
    return _how_far(state.grouper, groups, now) | {
        "clusters": [
            {
                "number": each.number,
                "size": each.size,
                "novelty": each.novelty,
                "nearest": [vars(near) for near in each.nearest],
                "looks_known": each.looks_known,
                "label_first": each.label_first,
                "images": each.paths,
            }
            for each in groups.of(now)
        ]
    }


def class_list(now: Snapshot, examples: Examples) -> dict[str, Any]:
    """The classes known now."""
    named = Counter(mark.name for mark in now.marks.values())
    recognised = Counter(answer_of(row) for row in now.answers.values())
    return {
        "classes": [
            {
                "name": each["name"],
                "train_count": each["train_count"],
                "shots": each["shots"],
                "added": each.get("added", False),
                "named": named[each["name"]],
                "recognised": recognised[each["name"]],
                "examples": examples.addresses(each["name"]),
            }
            for each in now.run.classes
        ]
    }


def change_list(now: Snapshot, changes: Mapping[str, Change]) -> list[dict[str, Any]]:
    """Changed answers of images that are still there."""
    return [
        {
            "id": number,
            "name": now.images[number].name,
            "before": each.before,
            "after": each.after,
            "probability_before": each.probability_before,
            "probability_after": each.probability_after,
        }
        for number, each in changes.items()
        if number in now.images
    ]


def action_list(state: State) -> dict[str, Any]:
    """The history, newest first."""
    now, found = state.snapshot, []
    for action in reversed(state.run.history.actions(features=False)):
        ids = [image.kept.rpartition("/")[2].partition(".")[0] for image in action.images]
        found.append(
            {
                "id": action.id,
                "time": action.time,
                "kind": action.kind,
                "name": action.name,
                "details": action.details,
                "by": str(action.details.get("by", "")),
                "images": len(ids),
                "examples": [number for number in ids if number in now.images][:SHOWN],
                "undone_by": action.undone_by,
                "text": action_text(action),
            }
        )
    return {"actions": found}


def labels_csv(now: Snapshot) -> str:
    """Everything that people named, as a manifest."""
    with io.StringIO() as text:
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["path", "label", "split", "name", "time", "by"])
        for number, mark in now.marks.items():
            if mark.status == "named":
                name = now.images[number].name if number in now.images else ""
                path = (now.run.path / mark.kept).absolute()
                table.writerow([path, mark.name, "train", _plain(name), mark.time, _plain(mark.by)])
        return text.getvalue()


def _plain(text: str) -> str:
    """What people alone read, such that no spreadsheet takes it for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
