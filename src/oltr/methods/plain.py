"""The plain model, and the same with class-aware sampling in its second stage."""

from __future__ import annotations

from oltr.methods.base import METHODS, Method, MethodInfo


@METHODS.register("plain")
class Plain(Method):
    """Backbone, linear classifier, cross-entropy, shuffled images."""

    info = MethodInfo(
        title="Plain model",
        summary="Backbone and linear classifier, cross-entropy on shuffled images",
        paper="He et al., Deep Residual Learning for Image Recognition, CVPR 2016",
        year=2016,
        changes="also trained through the second stage, so that every method has the same number of epochs",
    )


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
