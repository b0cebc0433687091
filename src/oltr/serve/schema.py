"""The shapes of requests and answers, as OpenAPI tells them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from oltr.serve.marks import Status

Id = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]  # of an image: digest of its content
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Person = Annotated[str, StringConstraints(max_length=80)]
Ids = Annotated[list[Id], Field(min_length=1, max_length=100_000)]
ActionNumber = Annotated[int, Field(ge=1, le=2**53)]


class Asked(BaseModel):
    """A request; what it has beyond these fields is refused."""

    model_config = ConfigDict(extra="forbid")

    by: Person = Field("", description="who asks; the history keeps it")


class NewClass(Asked):
    name: Name
    images: Ids
    more: bool = Field(False, description="further images of a class that is known")


class Rejected(Asked):
    images: Ids


class Renamed(Asked):
    name: Name
    to: Name


class Removed(Asked):
    name: Name


class Undo(Asked):
    action: ActionNumber | None = Field(None, description="the last that holds unless given")


class Login(BaseModel):
    token: str = Field(max_length=1000)


class Answer(BaseModel):
    """What the run says of an image, as in predictions.csv."""

    label: str | None = Field(None, description="the likeliest class, also of an unknown image")
    probability: float | None = None
    calibrated_probability: float | None = None
    unknown: bool | None = None
    unknown_score: float | None = Field(None, description="higher is more unknown")
    reachability: float | None = None
    second_label: str | None = None
    second_probability: float | None = None
    top5: dict[str, float] = {}
    error: str = ""


class Prediction(Answer):
    path: str = Field(description="the file's name, as it was sent")


class Predictions(BaseModel):
    model: str
    predictions: list[Prediction]


class ImageRecord(Answer):
    """An image that is kept."""

    id: Id
    name: str
    time: str
    bytes: int
    status: Status
    named: str | None = Field(description="the class that a person gave it")
    action: int | None = Field(description="the action that named or rejected it")


class FailedImage(BaseModel):
    name: str
    error: str


class KeptImages(BaseModel):
    images: list[ImageRecord | FailedImage]
    again: int = Field(description="images that were there already")


class ImageList(BaseModel):
    total: int
    images: list[ImageRecord]


class UnknownImage(ImageRecord):
    cluster: int | None
    label_first: int | None = Field(description="where its cluster stands in the order of labelling")


class UnknownList(BaseModel):
    total: int
    images: list[UnknownImage]


class Deleted(BaseModel):
    deleted: int


class NearClass(BaseModel):
    name: str
    similarity: float
    share: float


class ClusterRecord(BaseModel):
    number: int
    size: int
    novelty: float
    nearest: list[NearClass]
    looks_known: str = Field(description="the known class that it may be; empty where none is so near")
    label_first: int
    images: list[Id] = Field(description="from the middle outwards")


class GroupState(BaseModel):
    number: int
    busy: bool
    waiting: int = Field(description="unknown images that are in no cluster yet")


class Clusters(GroupState):
    clusters: list[ClusterRecord]


class ClassRecord(BaseModel):
    name: str
    train_count: int
    shots: Literal["many", "medium", "few"]
    added: bool
    named: int = Field(description="images that people gave this name")
    recognised: int = Field(description="kept images that get this answer now")
    examples: list[str] = Field(description="addresses of pictures")


class Classes(BaseModel):
    classes: list[ClassRecord]


class ChangeRecord(BaseModel):
    id: Id
    name: str
    before: str
    after: str
    probability_before: float | None
    probability_after: float | None


class Changed(BaseModel):
    """What came of an action."""

    action: int
    changed: int
    changes: list[ChangeRecord] = Field(description="the first of them; GET /changes has all")


class Warned(BaseModel):
    text: str
    images: list[Id]


class AddedClass(Changed):
    name: str
    images: int
    warnings: list[Warned] = Field(description="images that do not agree, with the evidence")


class ChangedClass(Changed):
    name: str


class RejectedImages(Changed):
    images: int


class Undone(Changed):
    undone: int
    kind: str
    name: str


class Changes(BaseModel):
    action: int
    total: int
    changes: list[ChangeRecord]


class ActionRecord(BaseModel):
    id: int
    time: str
    kind: Literal["add", "remove", "rename", "reject", "undo"]
    name: str
    details: dict[str, Any]
    by: str
    images: int
    examples: list[Id] = Field(description="some of its images that are still kept")
    undone_by: int | None
    text: str


class HistoryRecord(BaseModel):
    actions: list[ActionRecord]


class LimitsRecord(BaseModel):
    image_bytes: int
    image_pixels: int
    request_bytes: int
    images: int


class StateRecord(BaseModel):
    run: str
    path: str
    model: str
    method: str
    classes: int
    last_action: int
    revision: int
    images: dict[str, int]
    bytes: int
    cap: int
    limits: LimitsRecord
    clusters: GroupState
    token: bool


class Health(BaseModel):
    status: Literal["ok"]
    model: str
    version: str


class Problem(BaseModel):
    """Why a request was refused."""

    error: str
    why: str = ""
    try_: str = Field("", alias="try")
    conflicts: list[dict[str, Any]] = []
