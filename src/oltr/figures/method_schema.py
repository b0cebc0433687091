"""The boxes of the paper's method as a network has them: what leaves each, and how much it has learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from oltr.nn.attention import Attention
from oltr.nn.cosine_head import CosineHead
from oltr.nn.expert_head import ExpertHead
from oltr.nn.generated_head import GeneratedHead
from oltr.nn.heads import Head, LinearHead, MetaEmbeddingHead
from oltr.nn.memory_head import MemoryHead
from oltr.nn.meta_embedding import MetaEmbedding
from oltr.nn.network import Network
from oltr.nn.regressed_head import RegressedHead
from oltr.nn.scaled_head import ScaledHead

# A method's own kind of head says nothing here, and is drawn all the same.
CLASSIFIERS: dict[type[nn.Module], str] = {
    LinearHead: "linear",
    CosineHead: "cosine",
    MetaEmbeddingHead: "cosine",
    MemoryHead: "linear, beside class means",
    ExpertHead: "cosine, one per expert",
    GeneratedHead: "cosine, some rows generated",
    RegressedHead: "linear, some rows regressed",
    ScaledHead: "linear, learned scales",
}


@dataclass(frozen=True)
class Box:
    """A box between image and answer; without `absent` the network has it."""

    title: str
    note: str  # what it is or does in this network
    shape: str  # of what leaves it, without the batch
    parameters: int  # learnable numbers
    absent: str = ""  # why it is not there


@dataclass(frozen=True)
class MethodSchema:
    """The boxes of one network, by name, in the order of the paper's figure."""

    method: str
    boxes: dict[str, Box]
    parameters: int  # of the whole network, also the sum over the boxes


def method_schema(network: Network, method: str, backbone: str, image_size: int) -> MethodSchema:
    """Read off the network's own modules; the shapes are those of a blank image on its way through."""
    network.eval()
    with _shapes(network) as seen, torch.inference_mode():
        device = next(network.parameters()).device
        output = network(torch.zeros(1, 3, image_size, image_size, device=device))
    head, attention = network.head, network.attention
    meta = head.meta if isinstance(head, MetaEmbeddingHead) else None
    width, classes = f"{output.direct_feature.shape[1]:,}", f"{output.logits.shape[1]:,}"
    fc = network.direct_feature.fc
    boxes = {
        "images": Box("image", "", f"3×{image_size}×{image_size}", 0),
        "backbone": Box("backbone", backbone, seen["backbone"], _count(network.backbone)),
        "attention": Box(
            _attention_title(attention),
            _attention_note(attention),
            seen["backbone"],
            _count(attention),
            _absent(attention, meta, method),
        ),
        "direct_feature": Box(
            "direct feature",
            "average pooling" + ("" if fc is None else ", then a layer"),
            width,
            _count(network.direct_feature),
        ),
        **_meta_boxes(meta, method, width, classes),
        "classifier": Box("classifier", _classifier_note(head), classes, _count(head) - _count(meta)),
    }
    return MethodSchema(method, boxes, _count(network))


def _meta_boxes(meta: MetaEmbedding | None, method: str, width: str, classes: str) -> dict[str, Box]:
    """The dynamic meta-embedding and its parts."""
    selector, hallucinator, memory, calibrated = (
        (None, None, None, None)
        if meta is None
        else (
            meta.concept_selector,
            meta.hallucinator,
            meta.memory,
            meta.memory if meta.use_reachability else None,
        )
    )
    softmax = meta is not None and meta.coefficients == "softmax"
    return {
        "selector": Box(
            "concept selector", "e = tanh(T_sel(v_direct))", width, _count(selector),
            _absent(selector, meta, method),
        ),
        "hallucinator": Box(
            "hallucinator",
            f"v_memory = {'softmax(o)' if softmax else 'o'}ᵀ M\no = T_hal(v_direct)",
            width,
            _count(hallucinator),
            _absent(hallucinator, meta, method),
        ),
        "memory": Box(
            "memory M", "one centroid per class", f"{classes}×{width}", _count(memory),
            _absent(memory, meta, method),
        ),
        "reachability": Box(
            "reachability", "γ = distance to the nearest centroid", "1", 0, _absent(calibrated, meta, method)
        ),
        "meta_embedding": Box("meta-embedding", _formula(meta), width, 0, _absent(meta, meta, method)),
    }  # fmt: skip


def _classifier_note(head: Head) -> str:
    kind = CLASSIFIERS.get(type(head), "")
    if isinstance(head, ExpertHead) and head.scale is None:
        kind = "linear, one per expert"
    return f"{kind}, beside class means".lstrip(", ") if hasattr(head, "added_memory") else kind


def _formula(meta: MetaEmbedding | None) -> str:
    """v_meta with the parts that are switched on; with all of them where there is none."""
    if meta is None:
        return "v_meta = (1/γ) (v_direct + e ⊗ v_memory)"
    added = ""
    if meta.hallucinator is not None:
        added = " + v_memory" if meta.concept_selector is None else " + e ⊗ v_memory"
    scale = f"({meta.scale:g}/γ) " if meta.use_reachability else ""
    return f"v_meta = {scale}(v_direct{added})" if scale and added else f"v_meta = {scale}v_direct{added}"


def _absent(part: nn.Module | None, meta: MetaEmbedding | None, method: str) -> str:
    """Switched off, where the method could have it; else foreign to the method."""
    if part is not None:
        return ""
    return f"not in {method}" if meta is None else "off in this run"


def _attention_title(attention: Attention | None) -> str:
    if attention is None or (attention.self_attention is not None and attention.spatial is not None):
        return "modulated attention"
    return "spatial attention" if attention.self_attention is None else "self-attention"


def _attention_note(attention: Attention | None) -> str:
    titles = {
        "modulated attention": "f + MA(f) ⊗ SA(f)",
        "spatial attention": "f + MA(f) ⊗ f",
        "self-attention": "f + SA(f)",
    }
    return titles[_attention_title(attention)]


def _count(module: nn.Module | None) -> int:
    return 0 if module is None else sum(parameter.numel() for parameter in module.parameters())


@contextmanager
def _shapes(network: Network) -> Iterator[dict[str, str]]:
    """The shape of the backbone's map while the block runs, as text."""
    seen: dict[str, str] = {}

    def note(module: nn.Module, inputs: tuple[Tensor, ...], result: Tensor) -> None:
        seen["backbone"] = "×".join(f"{size:,}" for size in result.shape[1:])

    hook = network.backbone.register_forward_hook(note)
    try:
        yield seen
    finally:
        hook.remove()
