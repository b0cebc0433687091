"""Evaluation at another size than that of training: whether a network takes it, and whether it pays."""

from __future__ import annotations

import torch

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.features import Features
from oltr.distributed import rank
from oltr.errors import UserError
from oltr.nn.attention import SpatialAttention
from oltr.nn.network import Network
from oltr.training.build import build_method, build_network
from oltr.training.stage import Run
from oltr.training.validation import validate


@torch.no_grad()
def check_eval_size(config: RunConfig, train_counts: torch.Tensor) -> None:
    """Refuse an evaluation size that the run's network cannot work at, by one pass of a blank image."""
    size, trained = config.data.eval_size, config.data.image_size
    if size is None or size == trained:
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


def choose_eval_size(run: Run, network: Network) -> None:
    """Have the run evaluated at the size of training, unless eval_size is better on validation images."""
    data, val = run.config.data, run.images.get("val")
    if data.eval_size_by == "fixed" or data.eval_size is None or data.eval_size == data.image_size:
        return
    assert not isinstance(val, Features)  # of one size already
    size, why = data.image_size, "no validation images"
    if val is not None:
        trained, other = (_accuracy(run, network, each) for each in (data.image_size, data.eval_size))
        size = data.eval_size if other > trained else data.image_size
        why = f"validation accuracy {100 * trained:.1f} % at {data.image_size} px, "
        why += f"{100 * other:.1f} % at {data.eval_size} px"
    console.say(f"evaluated at {size} px: {why}")
    run.config = run.config.seen_at(size)
    if rank() == 0:
        run.folder.write(run.folder.run() | {"eval_size": size})


def _accuracy(run: Run, network: Network, size: int) -> float:
    seen, counts = run.config.seen_at(size), run.method.train_counts
    found = validate(network.to(run.device), run.images, seen, counts, run.device, run.workers)["overall"]
    assert found is not None
    return found
