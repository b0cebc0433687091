import copy

import pytest
import torch

from oltr.nn.backbone import Backbone
from oltr.nn.classifier import CosineClassifier
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead, MetaEmbeddingHead
from oltr.nn.meta_embedding import MetaEmbedding
from oltr.nn.network import Network, build_attention
from tests.helpers.created import Created


def meta_head(dims, classes=5):
    meta = MetaEmbedding(
        classes, dims, memory=True, selector=True, reachability=True,
        coefficients="softmax", reachability_scale=10.0, constant_centroids=True,
    )  # fmt: skip
    meta.memory.start_from(torch.randn(classes, dims))
    return MetaEmbeddingHead(meta, CosineClassifier(dims, classes, 16.0, "released"))


def network(name="resnet10_half", size=32, kind="modulated", fc=None, head=meta_head):
    torch.manual_seed(0)
    backbone = Backbone(name, size)
    attention = build_attention(backbone, kind)
    direct_feature = DirectFeature(backbone.channels, fc)
    return Network(backbone, direct_feature, head(direct_feature.dims), attention)


def wake(attention):
    """Take the attention out of its start as the identity."""
    torch.nn.init.normal_(attention.self_attention.out.weight)


def test_the_boxes_follow_each_other_in_the_papers_order():
    net = network(fc=16).eval()
    wake(net.attention)
    images = torch.randn(2, 3, 32, 32)
    direct = net.direct_feature(net.attention(net.backbone(images)))
    parts = net.head.meta(direct)
    found = net(images)
    torch.testing.assert_close(found.direct_feature, direct)
    torch.testing.assert_close(found.logits, net.head.classifier(parts.meta_embedding))
    for name in ("meta_embedding", "reachability", "memory_feature", "concept_selector"):
        torch.testing.assert_close(getattr(found, name), getattr(parts, name))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("resnet10_half", 32),
        ("test_vit", 64),
        ("test_mambaout", 64),
        ("test_convnext", 64),
    ],
)
def test_attention_changes_the_output_of_any_layout_and_trains(name, size):
    net = network(name, size, head=lambda dims: LinearHead(dims, 5)).eval()
    images = torch.randn(2, 3, size, size)
    plain = Network(net.backbone, net.direct_feature, net.head)
    torch.testing.assert_close(net(images).logits, plain(images).logits)  # it starts as the identity
    wake(net.attention)
    assert not torch.allclose(net(images).logits, plain(images).logits, atol=1e-4)
    net(images).logits.square().sum().backward()
    assert net.attention.self_attention.theta.weight.grad.abs().sum() > 0
    assert net.attention.spatial.score.weight.grad.abs().sum() > 0


def test_a_copy_attends_with_its_own_weights():
    net = network().eval()
    images = torch.randn(2, 3, 32, 32)
    before = net(images).logits
    twin = copy.deepcopy(net)
    wake(net.attention)
    torch.testing.assert_close(twin(images).logits, before)
    assert not torch.allclose(net(images).logits, before)


def test_roles_cover_every_parameter_once():
    net = network(fc=16)
    roles = list(net.roles())
    assert sorted(id(p) for _, p in roles) == sorted(id(p) for p in net.parameters())
    by_role = {}
    for role, parameter in roles:
        by_role.setdefault(role, set()).add(parameter)
    assert set(by_role) == {"backbone", "attention", "direct_feature", "classifier", "memory"}
    assert by_role["memory"] == {net.head.meta.memory.centroids}
    assert by_role["backbone"] == set(net.backbone.parameters())
    assert by_role["attention"] == set(net.attention.parameters())
    assert net.head.meta.hallucinator.weight in by_role["classifier"]
    assert net.head.classifier.weight in by_role["classifier"]


def test_the_linear_head_is_a_linear_layer():
    torch.manual_seed(0)
    head, v = LinearHead(3, 2), torch.randn(4, 3)
    weight, bias = head.classifier.weight.tolist(), head.classifier.bias.tolist()
    expected = [
        [sum(w * x for w, x in zip(row, one, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
        for one in v.tolist()
    ]
    output = head(v)
    torch.testing.assert_close(output.logits, torch.tensor(expected))
    assert output.direct_feature is v
    assert output.meta_embedding is None and output.reachability is None


def test_under_bfloat16_the_head_works_in_float32():
    net = network(fc=16).eval()
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert net.direct_feature(net.backbone(images)).dtype == torch.bfloat16
        output = net(images)
    for value in output:
        assert value.dtype == torch.float32
    with torch.no_grad():
        exact = net.head(output.direct_feature)
    assert torch.equal(output.logits, exact.logits)


def test_attention_is_sized_for_the_map():
    backbone = Backbone("resnet10_half", 32)
    attention = build_attention(backbone, "modulated", "released")
    assert attention.spatial.score.weight.shape == (4, 4 * 256)
    assert build_attention(backbone, "none") is None


def test_without_a_map_attention_is_off_and_said():
    backbone = Backbone("test_convnext", 32)
    with pytest.warns(UserWarning, match="attention is off"):
        assert build_attention(backbone) is None


def test_embed_is_the_direct_feature_without_the_head():
    net = network(fc=16).eval()
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(net.embed(images), net(images).direct_feature)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("resnet10_half", 32),
        ("resnet32_cifar", 32),
        ("test_vit", 64),
        ("test_mambaout", 64),
        ("test_convnext", 64),
    ],
)
@pytest.mark.parametrize("head", [meta_head, lambda dims: LinearHead(dims, 5)])
def test_idle_parameters_are_those_without_a_gradient(name, size, head):
    net = network(name, size, head=head)
    frozen = next(net.backbone.parameters()).requires_grad_(False)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    idle = net.idle_parameters(size)
    assert net.training and all(p.grad is None for p in net.parameters())
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    net(torch.randn(2, 3, size, size)).logits.sum().backward()
    expected = [
        id(p)
        for role, p in net.roles()
        if p.grad is None and p is not frozen and role != "memory"  # its gradient is the loss's
    ]
    assert [id(p) for p in idle] == expected
    if name == "test_vit":
        assert not expected
    if name == "test_mambaout":
        assert expected


def test_looking_for_idle_parameters_makes_no_gradients():
    net = network("resnet32_cifar", head=lambda dims: meta_head(dims, classes=3000))
    with Created() as created:
        net.idle_parameters(32)
    assert not [shape for shape in created.shapes if shape in ((3000, 64), (64, 3000))]
