import pytest
import torch
from safetensors.torch import save_file

from oltr.errors import UserError
from oltr.nn.backbone import Backbone, Card, backbone_card
from oltr.nn.resnet32_cifar import CifarBlock
from oltr.nn.weights import load_weights


@pytest.mark.parametrize(
    ("name", "size", "channels", "map_size"),
    [
        ("resnet10", 32, 512, (2, 2)),
        ("resnet10", 16, 512, (2, 2)),
        ("resnet10", 95, 512, (6, 6)),
        ("resnet10", 96, 512, (3, 3)),
        ("resnet10", 224, 512, (7, 7)),
        ("resnet10_half", 32, 256, (2, 2)),
        ("resnet10_half", 224, 256, (7, 7)),
        ("resnet32_cifar", 32, 64, (8, 8)),
        ("test_vit", 64, 64, (4, 4)),  # tokens
        ("test_vit", 48, 64, (3, 3)),
        ("test_mambaout", 64, 64, (2, 2)),  # channels last, as Swin
        ("test_convnext", 64, 64, (2, 2)),
        ("test_efficientnet", 64, 256, (2, 2)),
        ("resnet10t", 64, 512, (2, 2)),  # timm's own, whose name begins like ours
    ],
)
def test_every_layout_becomes_one_map(name, size, channels, map_size):
    backbone = Backbone(name, size).eval()
    assert (backbone.channels, backbone.map_size, backbone.has_map) == (channels, map_size, True)
    assert backbone(torch.randn(2, 3, size, size)).shape == (2, channels, *map_size)


def test_probing_leaves_the_statistics_and_the_mode_alone():
    backbone = Backbone("resnet10_half", 32)
    assert backbone.net.training
    backbone._probe(32)
    assert backbone.net.training
    assert all(int(value) == 0 for name, value in backbone.state_dict().items() if "num_batches" in name)


def test_the_tokens_of_a_vit_are_its_patches_without_the_class_token():
    torch.manual_seed(0)
    backbone, images = Backbone("test_vit", 64).eval(), torch.randn(1, 3, 64, 64)
    tokens = backbone.net.forward_features(images)
    found = backbone(images)
    assert tokens.shape[1] == 1 + 16
    for row in range(4):
        for column in range(4):
            assert torch.equal(found[0, :, row, column], tokens[0, 1 + 4 * row + column])


def test_a_channels_last_network_is_turned():
    torch.manual_seed(0)
    backbone, images = Backbone("test_mambaout", 96).eval(), torch.randn(1, 3, 96, 96)
    assert torch.equal(backbone(images), backbone.net.forward_features(images).permute(0, 3, 1, 2))


def test_a_network_whose_map_is_one_position_says_so():
    backbone = Backbone("test_convnext", 32)
    assert backbone.map_size == (1, 1) and not backbone.has_map


def test_stages_are_named_in_order():
    assert Backbone("resnet32_cifar", 32).stages == ["layer1", "layer2", "layer3"]


def test_resnet32_cifar_has_the_usual_weights():
    net = Backbone("resnet32_cifar", 32).net
    assert sum(p.numel() for p in net.parameters()) == 463_504  # 0.46M
    convolutions = [m for m in net.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(convolutions) == 31  # and the classifier makes 32


def test_resnet10_has_ten_layers():
    for name in ("resnet10", "resnet10_half"):
        net = Backbone(name, 32).net
        main = [n for n, m in net.named_modules() if isinstance(m, torch.nn.Conv2d) and "downsample" not in n]
        assert len(main) == 9  # and the classifier makes 10


@pytest.mark.parametrize("stride", [1, 2])
def test_the_cifar_shortcut_takes_every_second_pixel_and_adds_empty_channels(stride):
    torch.manual_seed(0)
    block = CifarBlock(4, 4 * stride, stride).eval()
    torch.nn.init.zeros_(block.bn2.weight)  # leaves relu(shortcut)
    x = torch.randn(2, 4, 6, 6)
    channels, side = 4 * stride, 6 // stride
    expected = torch.zeros(2, channels, side, side)
    before = (channels - 4) // 2
    for b in range(2):
        for c in range(4):
            for row in range(side):
                for column in range(side):
                    expected[b, before + c, row, column] = max(
                        float(x[b, c, stride * row, stride * column]), 0.0
                    )
    assert torch.equal(block(x), expected)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("resnet1O", "resnet10"),
        ("resnet32_cifr", "resnet32_cifar"),
        ("resnet18.a1_in2k", r"resnet18\.a1_in1k"),
    ],
)
def test_an_unknown_backbone_gets_a_suggestion(name, hint):
    with pytest.raises(UserError, match=f"(?s)no backbone called .*{name}.*did you mean .*{hint}"):
        Backbone(name, 32)


def test_a_size_that_the_network_refuses_is_one_message():
    with pytest.raises(
        UserError, match=r"test_vit gives no feature map for images of 50 px.\n.*divisible by"
    ):
        Backbone("test_vit", 50)


def test_pretrained_weights_that_do_not_exist_are_told():
    with pytest.raises(
        UserError, match=r"(?s)no pretrained weights for resnet10.*--backbone resnet50 --weights"
    ):
        Backbone("resnet10", 32, "pretrained")


@pytest.fixture
def trained():
    """A network whose weights are not those of a fresh one."""
    torch.manual_seed(7)
    return Backbone("test_convnext", 32).net.state_dict()


WRAPPINGS = {
    "bare.pth": lambda state: state,
    "lightning.ckpt": lambda state: {
        "epoch": 3,
        "state_dict": {f"backbone.{n}": v for n, v in state.items()},
    },
    "timm.pth": lambda state: {"model": state, "optimizer": {"lr": 0.1}},
    "parallel.pth": lambda state: {"state_dict": {f"module.{n}": v for n, v in state.items()}},
    "ours.pth": lambda state: {f"backbone.net.{n}": v for n, v in state.items()},
    "with_head.pth": lambda state: state | {"head.fc.weight": torch.zeros(1000, 64), "epoch": 3},
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_weight_files_of_many_kinds_are_read(name, trained, tmp_path):
    torch.save(WRAPPINGS[name](trained), tmp_path / name)
    backbone = Backbone("test_convnext", 32, str(tmp_path / name))
    assert all(torch.equal(value, trained[key]) for key, value in backbone.net.state_dict().items())


def test_safetensors_are_read(trained, tmp_path):
    path = tmp_path / "gewichte ä.safetensors"
    save_file({f"backbone.net.{name}": value for name, value in trained.items()}, path)
    backbone = Backbone("test_convnext", 32, str(path))
    assert all(torch.equal(value, trained[key]) for key, value in backbone.net.state_dict().items())


def test_missing_tensors_are_said_and_stay_as_they_were(trained, tmp_path):
    first, *rest = trained
    torch.save({name: trained[name] for name in rest}, tmp_path / "part.pth")
    net = Backbone("test_convnext", 32).net
    before = net.state_dict()[first].clone()
    with pytest.warns(UserWarning, match=f"1 of {len(trained)} backbone tensors are not in part.pth"):
        load_weights(net, tmp_path / "part.pth")
    assert torch.equal(net.state_dict()[first], before)
    assert torch.equal(net.state_dict()[rest[0]], trained[rest[0]])


def test_no_such_weight_file(tmp_path):
    with pytest.raises(UserError, match="no weight file"):
        Backbone("test_convnext", 32, str(tmp_path / "none.pth"))


@pytest.mark.parametrize("content", [torch.zeros(3), [1, 2, 3], {"state_dict": 3}, {"model": None}])
def test_a_file_that_holds_something_else(content, tmp_path):
    torch.save(content, tmp_path / "odd.pth")
    with pytest.raises(UserError, match=r"holds no named weights|does not fit this backbone"):
        Backbone("test_convnext", 32, str(tmp_path / "odd.pth"))


def test_weights_of_another_network_do_not_fit(trained, tmp_path):
    torch.save(trained, tmp_path / "convnext.pth")
    with pytest.raises(UserError, match=r"does not fit this backbone: 0 of \d+ tensors match"):
        Backbone("resnet32_cifar", 32, str(tmp_path / "convnext.pth"))


def test_an_unreachable_download_is_one_message(monkeypatch):
    def refuse(*arguments, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr("oltr.nn.backbone.timm.create_model", refuse)
    with pytest.raises(UserError, match="could not be downloaded"):
        Backbone("test_convnext", 32, "pretrained")


@pytest.mark.parametrize(
    ("name", "size", "crop"),
    [("tf_efficientnet_lite0", 224, 0.875), ("tf_efficientnet_lite2.in1k", 260, 0.89)],
)
def test_the_card_says_how_the_images_were_prepared(name, size, crop):
    half = (0.5, 0.5, 0.5)
    assert backbone_card(name) == Card(half, half, "bicubic", size, crop)


def test_the_card_of_other_networks():
    card = backbone_card("resnet50.a1_in1k")
    assert (card.mean, card.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert (card.input_size, card.crop_pct) == (224, 0.95)
    for ours in ("resnet10", "resnet10_half", "resnet32_cifar"):
        assert backbone_card(ours) is None
    with pytest.raises(UserError, match="no backbone called"):
        backbone_card("resnet_50")
