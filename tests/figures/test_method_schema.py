"""The boxes of a network: shapes, what is absent and why, and parameters that add up to the network's own."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import torch

from oltr.figures.method_figure import method_figure
from oltr.figures.method_schema import method_schema
from oltr.methods import METHODS
from oltr.training.build import build_method, build_network
from tests.helpers.tiny import tiny_config

COUNTS = torch.tensor([120, 30, 30, 3])
PARTS = ("attention", "selector", "hallucinator", "memory", "reachability", "meta_embedding")


def schema(method="oltr", **settings):
    config = tiny_config(method)
    config = tiny_config(method, settings=config.settings | settings)
    network = build_network(config, build_method(config, COUNTS), config.num_stages)
    network.auxiliary = None  # as in a finished run
    return network, method_schema(network, method, config.backbone, config.data.image_size)


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def absent(found):
    return {name for name in PARTS if found.boxes[name].absent}


def test_the_boxes_of_oltr_by_hand():
    _, found = schema()
    boxes, dims = found.boxes, 256
    assert absent(found) == set()
    assert [boxes[name].shape for name in ("images", "backbone", "attention", "direct_feature")] == [
        "3×32×32",
        "256×2×2",
        "256×2×2",
        "256",
    ]
    assert boxes["memory"].shape == "4×256" and boxes["classifier"].shape == "4"
    assert boxes["memory"].parameters == boxes["classifier"].parameters == 4 * dims
    assert boxes["hallucinator"].parameters == 4 * dims + 4
    assert boxes["selector"].parameters == dims * dims + dims
    # θ, φ and g from C to C/2, out from C/2 to C, and a weight per channel for the spatial score.
    assert boxes["attention"].parameters == 3 * (dims * 128 + 128) + 128 * dims + dims + dims + 1
    assert boxes["meta_embedding"].note == "v_meta = (10/γ) (v_direct + e ⊗ v_memory)"


@pytest.mark.parametrize("method", METHODS)
def test_parameters_add_up_for_every_method(method):
    network, found = schema(method)
    total = sum(parameter.numel() for parameter in network.parameters())
    assert sum(box.parameters for box in found.boxes.values()) == found.parameters == total
    assert found.boxes["classifier"].shape == "4" and found.boxes["classifier"].note
    if method not in ("oltr", "oltr-paper"):
        assert absent(found) == set(PARTS)
        assert found.boxes["memory"].absent == f"not in {method}"


@pytest.mark.parametrize(
    ("settings", "gone", "formula"),
    [
        ({"selector": False}, {"selector"}, "v_meta = (10/γ) (v_direct + v_memory)"),
        ({"reachability": False}, {"reachability"}, "v_meta = v_direct + e ⊗ v_memory"),
        (
            {"memory": False, "selector": False},
            {"selector", "hallucinator"},
            "v_meta = (10/γ) v_direct",
        ),
        (
            {"memory": False, "selector": False, "reachability": False, "attention": "none"},
            set(PARTS) - {"meta_embedding"},
            "v_meta = v_direct",
        ),
    ],
)
def test_switches(settings, gone, formula):
    _, found = schema(**settings)
    assert absent(found) == gone and found.boxes["meta_embedding"].note == formula
    assert {found.boxes[name].absent for name in gone} == {"off in this run"}


def test_attention_of_another_kind():
    network, found = schema(attention="self", fc=7)
    box = found.boxes["attention"]
    assert box.title == "self-attention" and box.note == "f + SA(f)"
    assert box.shape == "256×2×2" and found.boxes["direct_feature"].shape == "7"
    assert found.boxes["direct_feature"].parameters == 256 * 7 + 7
    assert not network.backbone._forward_hooks  # nothing is left behind
    assert schema(attention="spatial")[1].boxes["attention"].note == "f + MA(f) ⊗ f"


def test_the_picture_says_what_is_there_and_what_is_not():
    _, plain = schema("plain")
    figure = method_figure(plain)
    said = words(figure)
    assert said.count("not in plain") == len(PARTS) and "one of 4 classes, or" in " ".join(said)
    assert f"plain, {plain.parameters / 1e6:.2f} million parameters" == figure.get_suptitle()
    dashed = [box for box in figure.axes[0].patches if box.get_linestyle() not in ("-", "solid")]
    assert len(dashed) == len(PARTS)
    _, whole = schema()
    figure = method_figure(whole)
    assert not any("not in" in text for text in words(figure)) and "4×256" in words(figure)
    figure.savefig(io.BytesIO())


def large(found):
    """The same boxes in a network with long names and numbers."""
    shapes = {
        "images": "3×448×448",
        "backbone": "2,048×14×14",
        "attention": "2,048×14×14",
        "memory": "8,142×2,048",
    }
    names = {"backbone": "vit_base_patch16_clip_224.openai_ft"}
    boxes = {
        name: replace(
            box, shape=shapes.get(name, "2,048"), note=names.get(name, box.note), parameters=98_765_432
        )
        for name, box in found.boxes.items()
    }
    return replace(found, boxes=boxes)


@pytest.mark.parametrize("size", [lambda found: found, large], ids=["small", "large"])
def test_words_stay_in_their_boxes_and_labels_between_them(size):
    figure = method_figure(size(schema()[1]))
    figure.canvas.draw()
    boxes = [patch.get_window_extent() for patch in figure.axes[0].patches]
    for text in filter(lambda text: text.get_text(), figure.axes[0].texts):
        place = text.get_window_extent()
        inside = any(box.x0 <= place.x0 and place.x1 <= box.x1 and box.y0 <= place.y0 for box in boxes)
        assert inside or not any(box.overlaps(place) for box in boxes), text.get_text()
        assert place.x0 >= 0 and place.x1 <= figure.bbox.x1
