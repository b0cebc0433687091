"""The plain model, and the same with class-aware sampling in its second stage."""

from __future__ import annotations

from dataclasses import dataclass

from oltr.methods.base import METHODS, Method, MethodInfo


@dataclass(frozen=True)
class PlainSettings:
    fc: int | None = None  # width of a layer before the classifier, as in the released stage 1 of Places-LT


@METHODS.register("plain")
class Plain(Method):
    """Backbone, linear classifier, cross-entropy, shuffled images."""

    Settings = PlainSettings
    info = MethodInfo(
        title="Plain model",
        summary="Backbone and linear classifier, cross-entropy on shuffled images",
        paper="He et al., Deep Residual Learning for Image Recognition, CVPR 2016",
        year=2016,
        changes="also trained through the second stage, so that every method has the same number of epochs",
    )

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"plain, fc {self.first_fc}" if self.first_fc else "plain"

    @property
    def first_fc(self) -> int | None:
        return self.settings.fc


@METHODS.register("class-aware")
class ClassAware(Method):
    """The plain model with class-aware batches in its second stage: the effect of re-sampling alone."""

    needs_stage2 = True
    info = MethodInfo(
        title="Class-aware sampling",
        summary="The plain model, then a second stage on class-balanced batches",
        paper="Shen et al., Relay Backpropagation for Effective Learning of Deep CNNs, ECCV 2016",
        year=2016,
        changes="only in the second stage; the paper leaves this baseline out",
    )
