import pytest
import torch

from oltr.errors import UserError
from oltr.nn.backbone import Backbone
from oltr.nn.expert_stages import draw_again, give_experts
from oltr.nn.multilevel import MultilevelBackbone

EXPERTS = 3


def shared(name, size, pretrained=False):
    torch.manual_seed(0)
    backbone = Backbone(name, size)
    backbone.pretrained = pretrained
    give_experts(backbone, EXPERTS, size)
    return backbone


@pytest.mark.parametrize(
    ("name", "size", "channels", "side"),
    [
        ("resnet10_half", 32, 256, 2),
        ("resnet10", 64, 512, 4),
        ("resnet10", 96, 512, 3),
        ("resnet32_cifar", 32, 64, 8),
        ("test_resnet", 64, 96, 2),
        ("test_convnext", 64, 64, 2),
    ],
)
def test_a_backbone_gives_the_maps_of_all_experts_side_by_side(name, size, channels, side):
    backbone, images = shared(name, size).eval(), torch.randn(2, 3, size, size)
    assert (backbone.channels, backbone.map_size) == (EXPERTS * channels, (side, side))
    inputs = []
    stages = backbone.net.get_submodule(backbone.stages[-1])
    stages.register_forward_hook(lambda module, given, output: inputs.append(given[0]))
    f = backbone(images)
    assert f.shape == (2, EXPERTS * channels, side, side)
    for number, stage in enumerate(stages.experts):
        own = f[:, number * channels : (number + 1) * channels]
        torch.testing.assert_close(own, stage(inputs[0]))
    assert not torch.allclose(f[:, :channels], f[:, channels : 2 * channels])


def test_the_first_expert_is_the_stage_that_was_there():
    torch.manual_seed(0)
    alone = Backbone("resnet32_cifar", 32).eval()
    images = torch.randn(2, 3, 32, 32)
    together = shared("resnet32_cifar", 32).eval()
    torch.testing.assert_close(together(images)[:, :64], alone(images))


def test_each_expert_starts_from_other_weights_of_the_same_distribution():
    one, two, three = shared("resnet10_half", 32).net.layer4.experts
    for name, weight in one.named_parameters():
        for other in (two.get_parameter(name), three.get_parameter(name)):
            assert torch.equal(weight.flatten().sort().values, other.flatten().sort().values)
            assert torch.equal(weight, other) == (weight.ndim == 1)  # norms start alike
    assert not torch.equal(two[0].conv1.weight, three[0].conv1.weight)


def test_drawing_again_puts_every_entry_into_a_new_place():
    torch.manual_seed(0)
    layer = torch.nn.Linear(64, 64)
    before = layer.weight.detach().clone()
    draw_again(layer)
    correlation = torch.corrcoef(torch.stack([before.flatten(), layer.weight.detach().flatten()]))[0, 1]
    assert abs(correlation) < 0.1


def test_pretrained_experts_start_alike():
    one, two, three = shared("resnet10_half", 32, pretrained=True).net.layer4.experts
    for other in (two, three):
        for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(mine, theirs) and mine is not theirs


def test_a_backbone_knows_whether_it_is_pretrained(tmp_path):
    backbone = Backbone("resnet32_cifar", 32)
    torch.save(backbone.net.state_dict(), tmp_path / "weights.pth")
    assert not backbone.pretrained
    assert Backbone("resnet32_cifar", 32, str(tmp_path / "weights.pth")).pretrained


@pytest.mark.parametrize("name", ["test_efficientnet", "test_vit", "test_mambaout"])
def test_a_backbone_that_has_no_room_for_experts_is_told(name):
    with pytest.raises(UserError, match=r"cannot be shared by experts\.\n.*\n.*a ResNet"):
        shared(name, 64)


@pytest.mark.parametrize("stages", [[], [{"module": "bn1", "num_chs": 16}]])
def test_a_last_stage_without_layers_is_told(stages):
    backbone = Backbone("resnet32_cifar", 32)
    backbone.net.feature_info = stages
    with pytest.raises(UserError, match="no named last stage"):
        give_experts(backbone, EXPERTS, 32)


def test_a_frozen_backbone_is_refused():
    with pytest.raises(UserError, match="need a last stage that learns"):
        give_experts(MultilevelBackbone(Backbone("resnet10_half", 32)), 2, 32)
