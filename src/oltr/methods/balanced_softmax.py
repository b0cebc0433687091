"""A softmax that knows how long-tailed its training set is."""

from __future__ import annotations

from torch import Tensor

from oltr.losses.balanced_softmax import balanced_softmax_loss
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.backbone import Backbone
from oltr.nn.class_counts import counts_of, keep_counts
from oltr.nn.network import Network, Output


@METHODS.register("balanced-softmax")
class BalancedSoftmax(Method):
    """The plain model with log n_c added to the logits in the loss; what is evaluated are the bare logits."""

    info = MethodInfo(
        title="Balanced softmax",
        summary="Logits learn beside the classes' frequencies, and are used without them",
        paper="Ren et al., Balanced Meta-Softmax for Long-Tailed Visual Recognition, NeurIPS 2020 "
        "(the same loss: Menon et al., Long-Tail Learning via Logit Adjustment, ICLR 2021)",
        year=2020,
        changes="the balanced softmax alone, without the meta-learned sampler",
    )
    first_stage = "balanced-softmax"

    def build_stage1(self, backbone: Backbone) -> Network:
        return keep_counts(super().build_stage1(backbone), self.train_counts)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        logits, counts = output.logits.float(), counts_of(network)
        return {"cross_entropy": balanced_softmax_loss(logits, labels, counts)}
