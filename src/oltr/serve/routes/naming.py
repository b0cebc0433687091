"""Clusters and classes: what people name, and what comes of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from oltr.serve import schema
from oltr.serve.listings import action_list, change_list, class_list, cluster_list, group_state, labels_csv
from oltr.serve.routes.parts import FIRST_CHANGES, Serving
from oltr.serve.service import Service
from oltr.serve.state import Done

router = APIRouter(tags=["classes"])


@router.get("/clusters", response_model=schema.Clusters)
def clusters(service: Serving) -> dict[str, Any]:
    """Unknown images that look alike, what to label first at the top."""
    return cluster_list(service.state)


@router.post("/clusters", response_model=schema.GroupState, status_code=202)
def group_again(service: Serving) -> dict[str, Any]:
    """Group the unknown images anew; /state tells when it is done."""
    service.state.grouper.ask()
    return group_state(service.state)


@router.get("/classes", response_model=schema.Classes)
def classes(service: Serving) -> dict[str, Any]:
    """The classes that are known now."""
    return class_list(service.state.snapshot, service.examples)


@router.post("/add-class", response_model=schema.AddedClass)
def add_class(service: Serving, asked: schema.NewClass) -> dict[str, Any]:
    """Give images a name; the model knows the class, or knows it better, when this returns."""
    return _told(service, service.actions.add_class(asked.name, asked.images, asked.more, asked.by))


@router.post("/rename-class", response_model=schema.ChangedClass)
def rename_class(service: Serving, asked: schema.Renamed) -> dict[str, Any]:
    """Give a class another name."""
    return _told(service, service.actions.rename_class(asked.name, asked.to, asked.by))


@router.post("/remove-class", response_model=schema.ChangedClass)
def remove_class(service: Serving, asked: schema.Removed) -> dict[str, Any]:
    """Forget a class; images that people gave its name wait again."""
    return _told(service, service.actions.remove_class(asked.name, asked.by))


@router.post("/reject", response_model=schema.RejectedImages)
def reject(service: Serving, asked: schema.Rejected) -> dict[str, Any]:
    """Put images aside that are not worth a name."""
    return _told(service, service.actions.reject(asked.images, asked.by))


@router.post("/undo", response_model=schema.Undone)
def undo(service: Serving, asked: schema.Undo) -> dict[str, Any]:
    """Take back an action."""
    return _told(service, service.actions.undo(asked.action, asked.by))


@router.get("/history", response_model=schema.HistoryRecord)
def history(service: Serving) -> dict[str, Any]:
    """All actions, the newest first."""
    return action_list(service.state)


@router.get("/changes", response_model=schema.Changes)
def changes(service: Serving, action: Annotated[int, Query(ge=1, le=2**53)]) -> dict[str, Any]:
    """Which answers an action changed, of images that are kept now."""
    found = change_list(service.state.snapshot, service.state.changes(action))
    return {"action": action, "total": len(found), "changes": found}


@router.get(
    "/labels.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}, "description": "a manifest"}},
)
def labels(service: Serving) -> Response:
    """Everything that people named, as a manifest for `oltr train`."""
    headers = {"content-disposition": 'attachment; filename="labels.csv"'}
    return Response(labels_csv(service.state.snapshot), media_type="text/csv; charset=utf-8", headers=headers)


def _told(service: Service, done: Done) -> dict[str, Any]:
    found = change_list(service.state.snapshot, done.changes)
    facts = {"action": done.action, "changed": len(found), "changes": found[:FIRST_CHANGES]}
    return facts | done.facts
