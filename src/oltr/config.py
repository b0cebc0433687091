"""Everything a run can be told, as frozen dataclasses; with the recipes, the only home of defaults."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, Union

from oltr.errors import UserError
from oltr.registry import unknown_name

C = TypeVar("C")


@dataclass(frozen=True)
class Frame:
    """How a picture becomes a square of pixels; a bare number in its place means stretched, bilinear."""

    size: int
    resize: str = "stretch"
    interpolation: str = "bilinear"


@dataclass(frozen=True)
class DataConfig:
    """How images reach the network."""

    image_size: int = 128  # what the network sees, in training at least
    stored_size: int = 146  # what is read from disk or pack, before cropping
    # crop: the middle of the picture, its shape kept; short-side: the same in whole pixels, as torchvision's
    # Resize and CenterCrop have it
    resize: Literal["stretch", "crop", "short-side"] = "stretch"
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    crop: Literal["resized", "random", "padded"] = "resized"
    smallest_crop: float = 0.08  # least share of the area that a "resized" crop keeps
    flip: bool = True
    jitter: float = 0.4  # brightness, contrast and saturation each by a factor in 1 ± jitter
    # Strong augmentation: the chance of each for an image.
    affine: float = 0.0  # a rotation (up to 30°), shear (0.3) or shift (0.2 of the side), one of five
    colour: float = 0.0  # one of the seven operations of data/colour.py
    erase: float = 0.0  # a square, 0.2 to 0.6 of the side, becomes the mean colour
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    eval_size: int | None = None  # outside training the centre crop is resized to this; none: image_size
    eval_size_by: Literal["fixed", "validation"] = "fixed"  # validation: only if better than image_size
    test_flip: bool = False  # a trained run's outputs are means over each image and its mirror image

    @property
    def seen_size(self) -> int:
        """The side of what the network sees outside training; image_size until validation has decided."""
        return self.eval_size if self.eval_size and self.eval_size_by == "fixed" else self.image_size

    @property
    def frame(self) -> Frame:
        """What an image file is decoded to."""
        return Frame(self.stored_size, self.resize, self.interpolation)


@dataclass(frozen=True)
class StageConfig:
    """One of the two stages: how long, on which batches, at which rates."""

    epochs: int = 30
    batch_size: int = 128  # over all devices together
    sampler: Literal["shuffle", "class-aware", "balanced"] = "shuffle"
    images_per_class: int = 4  # drawn per class by the class-aware sampler
    views: int = 1  # augmented views of each image in a step
    mix: Literal["none", "cutmix", "mixup"] = "none"  # the first view with that of a partner image
    mix_chance: float = 0.5  # that an image is mixed
    # batch: a random image of the same batch; balanced: an image of a class drawn uniformly
    mix_partner: Literal["batch", "balanced"] = "batch"
    mosaics: float = 0.0  # weight of the loss of mosaics, which are of no class; 0: none are made
    lr: float = 0.1  # backbone, attention and direct feature
    classifier_lr: float = 0.1
    memory_lr: float = 0.01
    layer_decay: float = 1.0  # the backbone's rate falls by this factor from each layer to the one before it
    optimizer: Literal["sgd", "adamw"] = "sgd"
    momentum: float = 0.9  # of SGD
    nesterov: bool = False  # the same, looking ahead
    weight_decay: float = 5e-4
    # What it acts on under SGD; matrices: not on biases, norms and other scales, as always under AdamW.
    weight_decay_on: Literal["all", "matrices"] = "all"
    schedule: Literal["step", "cosine"] = "step"
    lr_milestones: dict[int, float] = field(default_factory=dict)  # "step": from this epoch on, this factor
    warmup_epochs: int = 0  # linear, from the first epoch on
    lr_every: Literal["epoch", "step"] = "epoch"  # how often the schedule changes the rates
    ema: float = 0.0  # decay of the average of the weights over the steps, which is then kept; 0: none
    frozen: tuple[str, ...] = ()  # roles that do not learn
    freeze_statistics: bool = False  # of the frozen roles; else their batch norms still follow the data
    keep_statistics: bool = False  # the backbone's batch norms keep their statistics while its weights learn

    def lr_factor(self, epoch: int, step: int = 0, steps: int = 1) -> float:
        """The factor of the learning rates in `epoch` (from 0), or at one of its `steps` (from 0)."""
        at = epoch + step / steps
        if at < self.warmup_epochs:
            return (at + 1 / steps) / self.warmup_epochs
        if self.schedule == "cosine":
            done = (at - self.warmup_epochs) / max(self.epochs - self.warmup_epochs, 1)
            return 0.5 * (1 + math.cos(math.pi * done))
        passed = [milestone for milestone in self.lr_milestones if at >= milestone]
        return self.lr_milestones[max(passed)] if passed else 1.0

    def lasting(self, epochs: int) -> StageConfig:
        """The same stage in another number of epochs, its drops and warm-up moved in proportion."""
        ratio = epochs / max(self.epochs, 1)
        # In order, so that of drops that fall together the last holds; never before the first epoch has run.
        drops = {
            max(round(at * ratio), min(at, 1)): factor for at, factor in sorted(self.lr_milestones.items())
        }
        return dataclasses.replace(
            self, epochs=epochs, lr_milestones=drops, warmup_epochs=round(self.warmup_epochs * ratio)
        )


@dataclass(frozen=True)
class DecisionConfig:
    """By what an image is called unknown; the threshold follows at the end of training."""

    score: str | None = None  # the method's own unless given
    threshold: float | None = None  # a fixed one, instead of the rate
    unknown_rate: float | None = 0.05  # share of known validation images that may be rejected


@dataclass(frozen=True)
class DistillConfig:
    """A finished run that this one learns from, beside the labels."""

    teacher: str | None = None  # its folder; none: the labels alone
    share: float = 0.5  # of the loss
    temperature: float = 2.0  # T, by which both logits are divided


@dataclass(frozen=True)
class RunConfig:
    """A whole run; `run.yaml` holds one."""

    method: str = "oltr"
    backbone: str = "resnet10"
    weights: str | None = None  # a file, packaged ones, "pretrained" (downloads); none: from scratch
    recipe: str = "photos"
    # What of the backbone learns. none: features are computed once, before training, and kept.
    train_backbone: Literal["all", "last", "none"] = "all"
    settings: dict[str, Any] = field(default_factory=dict)  # all of the method's own numbers
    data: DataConfig = field(default_factory=DataConfig)
    stage1: StageConfig = field(default_factory=StageConfig)
    stage2: StageConfig | None = None
    decision: DecisionConfig = field(default_factory=DecisionConfig)
    distill: DistillConfig = field(default_factory=DistillConfig)
    keep: Literal["best", "last"] = "best"  # which epoch's weights stay: best on validation, or the last
    # After training τ·log(class frequency) is taken from the logits; validation: the τ that suits its images.
    adjust: Literal["none", "validation", "fixed"] = "none"
    adjust_tau: float = 1.0  # τ of "fixed"
    shots: Literal["standard", "released"] = "standard"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 where a GPU has it
    # The training step. auto: for larger images on a GPU; never: as written, not even as a CUDA graph.
    compile: Literal["auto", "always", "never"] = "auto"
    seed: int = 0

    def stage(self, number: int) -> StageConfig:
        """The configuration of stage 1 or 2."""
        stage = self.stage1 if number == 1 else self.stage2
        assert stage is not None
        return stage

    def has_teacher(self, number: int) -> bool:
        """Whether stage 1 or 2 learns from the teacher: where there is one, and the backbone learns."""
        return self.distill.teacher is not None and "backbone" not in self.stage(number).frozen

    @property
    def num_stages(self) -> int:
        return 1 if self.stage2 is None else 2

    def seen_at(self, size: int) -> RunConfig:
        """The run evaluated at `size`, whatever validation images would prefer."""
        return replace(self, data=replace(self.data, eval_size=size, eval_size_by="fixed"))

    @property
    def ends_frozen(self) -> bool:
        """Whether the backbone is frozen in the last stage."""
        return "backbone" in self.stage(self.num_stages).frozen

    @property
    def head_only(self) -> bool:
        """Whether all that is trained is a head on a frozen backbone: no stage 1 to share."""
        return self.num_stages == 1 and self.ends_frozen

    @property
    def head_fitted(self) -> bool:
        """Whether a method that can fit its head does so, not a linear probe trained by steps in stage 1."""
        return self.ends_frozen and (self.train_backbone == "none" or self.num_stages == 2)


def within(name: str, value: float, least: float, most: float = math.inf) -> None:
    """Refuse a number outside least..most, with its name and what is allowed."""
    if not (least <= value <= most and math.isfinite(value)):
        allowed = f"{least:g} or more" if math.isinf(most) else f"a value from {least:g} to {most:.10g}"
        raise UserError(f"{name} is {value}.", try_this=allowed)


def build(cls: type[C], values: Mapping[str, Any], where: str = "") -> C:
    """A dataclass from plain values, as YAML gives them; a wrong name or type is told with its place."""
    hints = typing.get_type_hints(cls)
    for name in values:
        if name not in hints:
            raise _unknown_setting(str(name), hints, values, where)
    parsed = {name: _fit(hints[name], value, f"{where}.{name}".lstrip(".")) for name, value in values.items()}
    needed = [each.name for each in dataclasses.fields(cls) if _has_no_default(each)]  # type: ignore[arg-type]
    if missing := [name for name in needed if name not in parsed]:
        raise UserError(f"{where or cls.__name__} is incomplete.", f"It needs {' and '.join(missing)}.")
    return cls(**parsed)


def _has_no_default(setting: dataclasses.Field[Any]) -> bool:
    return setting.default is dataclasses.MISSING and setting.default_factory is dataclasses.MISSING


def plain_values(value: Any) -> Any:
    """Tuples as lists, all the way down, as YAML gives them back."""
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(item) for item in value]
    return value


def _unknown_setting(name: str, hints: Mapping[str, Any], values: Mapping[str, Any], where: str) -> UserError:
    """The error for a name that is no setting; one that lies deeper (lr) is told by its whole name."""
    if where:
        return unknown_name(f"setting in {where}", name, hints)
    whole_names = {part: [part] for part in hints}
    for part, hint in hints.items():
        inner = next((a for a in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(a)), None)
        # A table without fixed names, such as the method's own settings, has those that it was given.
        keys = typing.get_type_hints(inner) if inner else values.get(part)
        for key in keys if isinstance(keys, Mapping) else ():
            whole_names.setdefault(key, []).append(f"{part}.{key}")
    near = [name] if name in whole_names else difflib.get_close_matches(name, whole_names, n=2)
    if not near:
        return unknown_name("setting", name, hints)
    meant = " or ".join(whole_name for last in near for whole_name in whole_names[last])
    return UserError(f"There is no setting called {name!r}.", try_this=f"did you mean {meant}?")


def _fit(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type `hint`, or a UserError that names the place, the value and what is allowed."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _fit(next(a for a in arguments if a is not type(None)), value, where)
    if origin is Literal:
        if value not in arguments:
            raise UserError(f"{where} is {value!r}.", try_this=f"one of: {', '.join(map(str, arguments))}")
        return value
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return build(typing.cast(type, hint), value, where)
    if origin is tuple and isinstance(value, (list, tuple)):
        if ... not in arguments and len(value) != len(arguments):
            raise UserError(f"{where} is {value!r}.", f"It should have {len(arguments)} entries.")
        return tuple(_fit(arguments[0], item, where) for item in value)
    if origin is dict and isinstance(value, Mapping):
        return {_fit(arguments[0], k, where): _fit(arguments[1], v, where) for k, v in value.items()}
    if hint is Any:
        return value
    if isinstance(hint, type) and isinstance(value, hint) and not _bool_for_number(hint, value):
        return value
    if hint is float and isinstance(value, (int, str)) and not isinstance(value, bool):
        try:
            return float(value)  # YAML reads 5e-4 as a string
        except ValueError:
            pass
    kind = getattr(hint, "__name__", str(hint))
    raise UserError(f"{where} is {value!r}.", f"It should be of type {kind}.")


def _bool_for_number(hint: Any, value: Any) -> bool:
    return hint is int and isinstance(value, bool)
