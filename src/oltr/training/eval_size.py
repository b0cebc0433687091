"""Whether a network takes images of another size than it is trained at, tried before training."""

from __future__ import annotations

import torch

from oltr.config import RunConfig
from oltr.errors import UserError
from oltr.nn.attention import SpatialAttention
from oltr.training.build import build_method, build_network


@torch.no_grad()
def check_eval_size(config: RunConfig, train_counts: torch.Tensor) -> None:
    """Refuse an evaluation size that the run's network cannot work at, by one pass of a blank image."""
    size, trained = config.data.seen_size, config.data.image_size
    if size == trained:
        return
    network = build_network(config, build_method(config, train_counts), config.num_stages).eval()
    what = f"data.eval_size is {size}, and this network takes images of {trained} px alone."
    back = f"--set data.eval_size={trained}"
    if any(isinstance(part, SpatialAttention) and part.whole_map for part in network.modules()):
        why = "Its spatial attention (attention_form: released) has one weight for each position of the map."
        raise UserError(what, why, f"{back}, or --set settings.attention_form=pointwise")
    try:
        network(torch.zeros(1, 3, size, size))
    except Exception as problem:  # networks raise various errors for a size
        why = f"{config.backbone} says: {' '.join(str(problem).split())[:200]}"
        raise UserError(what, why, f"{back}, or another --backbone") from problem
