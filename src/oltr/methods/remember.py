"""A memory of class means beside the classifier of a trained network."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.methods.other_folds import every_class
from oltr.methods.weigh_memory import weigh_memory
from oltr.nn.added_memory import AddedMemory, add_memory
from oltr.nn.network import Network

RARE = 3.0  # images: the mean of so many has a cosine of √½ of what the true mean would have
NONE = "no memory beside the classifier"


def remember(
    network: Network, trained: tuple[Tensor, Tensor], validation: tuple[Tensor, Tensor], num_classes: int
) -> str:
    """From now on a·z_k + b · cos(A(v − m), A(μ_k − m)) · √(1 + 3/n_k); returns what was found, in words.

    Both pairs are direct features (N×D) and labels (N): A, m and μ_k are those of the training images, a and
    b suit the validation images. The mean of few images is noisy: its cosines are smaller by about that root.
    """
    if not all(bool(features.isfinite().all()) for features, _ in (trained, validation)):
        return f"{NONE}: there are NaN or infinite features"
    head, device = network.head, next(network.head.parameters()).device
    memory = AddedMemory(num_classes, network.direct_feature.dims)
    memory.start_from(*every_class(*trained, num_classes))
    counts = trained[1].bincount(minlength=num_classes)
    memory.weights.copy_(torch.where(counts > 0, (1 + RARE / counts.clamp(min=1)).sqrt(), 0))
    memory.to(device)
    network.eval()

    @torch.inference_mode()
    def terms(direct: Tensor) -> tuple[Tensor, Tensor]:
        direct = direct.to(device)
        return head(direct).logits.cpu(), memory(direct).cpu()

    found = weigh_memory(terms, *validation)
    spread = f"log-likelihood of validation images {found.gain:+.3f} ± {found.error:.3f}"
    if not found.b:
        return f"{NONE}: no clear gain ({spread})"
    memory.weights *= found.b
    memory.of_logits.fill_(found.a)
    add_memory(head, memory)
    return f"class means beside the classifier: {found.a:.3g} · logits + {found.b:.3g} · cosines ({spread})"
