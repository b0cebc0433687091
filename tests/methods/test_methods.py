import math

import pytest
import torch
import yaml

from oltr.errors import UserError
from oltr.methods import METHODS, MethodInfo
from oltr.nn.backbone import Backbone
from oltr.recipes import HOME, resolve

CLASSES, SIZE = 5, 32
COUNTS = torch.tensor([40, 20, 10, 5, 2])


def make(name, **changes):
    settings = resolve("glyphs", name).settings | changes
    return METHODS[name](settings, COUNTS, SIZE)


def backbone():
    torch.manual_seed(0)
    return Backbone("resnet10_half", SIZE)


def batch(seed=0):
    random = torch.Generator().manual_seed(seed)
    images = torch.randn(6, 3, SIZE, SIZE, generator=random)
    return images, torch.tensor([0, 0, 1, 2, 3, 3])


def class_means(dims):
    return lambda: torch.randn(CLASSES, dims, generator=torch.Generator().manual_seed(1))


def step(method, stage, network):
    """One training step as the engine takes it; the named losses."""
    images, labels = batch()
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    output = network(images)
    assert output.logits.shape == (6, CLASSES)
    losses = method.loss(stage, network, output, labels)
    torch.stack(list(losses.values())).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name
    optimizer.step()
    method.after_step(stage, network, output, labels)
    assert all(torch.isfinite(loss) for loss in losses.values())
    assert all(torch.isfinite(value).all() for value in network.state_dict().values())
    return losses


def both_stages(method):
    """The networks of both stages after a step each, and the losses of the second."""
    first = method.build_stage1(backbone())
    method.on_stage_start(1, first, class_means(256))
    step(method, 1, first)
    second = method.build_stage2(first)
    method.on_stage_start(2, second, class_means(second.direct_feature.dims))
    losses = step(method, 2, second)
    step(method, 2, second)
    return first, second, losses


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_says_where_it_comes_from(name):
    info = METHODS[name].info
    assert isinstance(info, MethodInfo)
    assert info.title and info.summary and info.paper
    assert 1990 < info.year < 2100 and str(info.year) in info.paper


def test_every_recipe_of_a_method_belongs_to_one():
    assert {path.stem for path in (HOME / "methods").glob("*.yaml")} <= set(METHODS)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_setting_has_a_default_and_can_be_written_down(name):
    method = METHODS[name]
    settings = method.all_settings()
    assert set(settings) == set(method.Settings.__dataclass_fields__)
    assert method.check(yaml.safe_load(yaml.safe_dump(settings))) == method.Settings()


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_goes_through_both_stages(name):
    first, second, losses = both_stages(make(name))
    assert "cross_entropy" in losses
    assert ("centroids" in losses) == (name in ("oltr", "oltr-paper"))
    assert second.backbone.net is first.backbone.net


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_takes_a_loss_that_shrinks(name):
    method = make(name)
    first = method.build_stage1(backbone())
    network = method.build_stage2(first)
    images, labels = batch()
    network.eval()
    means = torch.stack([network(images).direct_feature[labels == k].mean(0) for k in range(4)])
    method.on_stage_start(2, network, lambda: torch.cat([means, means.mean(0, keepdim=True)]).detach() + 0.1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    values = []
    for _ in range(8):
        optimizer.zero_grad()
        output = network(images)
        loss = method.loss(2, network, output, labels)["cross_entropy"]
        loss.backward()
        optimizer.step()
        method.after_step(2, network, output, labels)
        values.append(loss.item())
    assert values[-1] < values[0]


def test_plain_is_cross_entropy_of_a_linear_classifier():
    method = make("plain")
    network = method.build_stage1(backbone()).eval()
    images, labels = batch()
    output = network(images)
    expected = 0.0
    for logits, label in zip(output.logits.tolist(), labels.tolist(), strict=True):
        expected -= logits[label] - math.log(sum(math.exp(x) for x in logits))
    found = method.loss(1, network, output, labels)
    assert set(found) == {"cross_entropy"}
    assert found["cross_entropy"].item() == pytest.approx(expected / len(labels), rel=1e-5)
    assert method.build_stage2(network) is network


SWITCHES = [
    {"attention": "none"},
    {"attention": "spatial"},
    {"attention": "self"},
    {"attention": "modulated"},
    {"attention_form": "released"},
    {"attention_start": "released"},
    {"attention": "spatial", "attention_form": "released"},
    {"fc": 16},
    {"fc": 256},
    {"memory": False},
    {"selector": False},
    {"reachability": False},
    {"memory": False, "reachability": False},
    {"memory": False, "selector": False, "reachability": False, "attention": "none"},
    {"coefficients": "raw"},
    {"coefficients": "softmax"},
    {"reachability_scale": 1.0},
    {"constant_centroids": False},
    {"constant_centroids": True},
    {"hallucinator_start": "random"},
    {"hallucinator_start": "classifier"},
    {"centroid_start": "mini-batches"},
    {"centroid_start": "class-means"},
    {"squash": "paper"},
    {"squash": "released"},
    {"logit_scale": 1.0},
    {"centroid_loss": "paper", "margin": 5.0, "centroid_weight": 0.1},
    {"centroid_loss": "released", "margin": 1e6, "centroid_weight": 0.01, "repel": 0.01},
]


@pytest.mark.parametrize("name", ["oltr", "oltr-paper"])
@pytest.mark.parametrize("changes", SWITCHES, ids=lambda c: ",".join(f"{k}={v}" for k, v in c.items()))
def test_every_switch_of_oltr_trains(name, changes):
    method = make(name, **changes)
    _, network, losses = both_stages(method)
    s = method.settings
    assert (network.attention is None) == (s.attention == "none")
    if network.attention is not None:
        assert (network.attention.self_attention is None) == (s.attention == "spatial")
        assert (network.attention.spatial is None) == (s.attention == "self")
    assert network.direct_feature.dims == (s.fc or 256)
    meta = network.head.meta
    assert (meta.memory is None) == (not s.memory and not s.reachability)
    assert (meta.hallucinator is None) == (not s.memory)
    assert (meta.concept_selector is None) == (not (s.memory and s.selector))
    assert ("centroids" in losses) == (s.memory or s.reachability)
    # Whatever is there learns: the second step has left no weight without a gradient.
    silent = [n for n, p in network.named_parameters() if p.grad is None]
    assert not silent


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("attention", "modulate"),
        ("squash", "papers"),
        ("centroid_start", "means"),
        ("fc", "wide"),
        ("memory", 1),
    ],
)
def test_a_wrong_setting_is_told_with_its_place(setting, value):
    with pytest.raises(UserError, match=rf"settings\.{setting} is {value!r}"):
        make("oltr", **{setting: value})


def test_an_unknown_setting_is_told():
    with pytest.raises(
        UserError, match=r"(?s)no setting in settings called 'selecter'.*did you mean selector"
    ):
        make("oltr", selecter=True)


def test_the_hallucinator_starts_as_the_stage_1_classifier():
    first = make("oltr").build_stage1(backbone())
    second = make("oltr").build_stage2(first)
    hallucinator = second.head.meta.hallucinator
    assert torch.equal(hallucinator.weight, first.head.classifier.weight)
    assert torch.equal(hallucinator.bias, first.head.classifier.bias)
    assert hallucinator.weight is not first.head.classifier.weight
    other = make("oltr", hallucinator_start="random").build_stage2(first)
    assert not torch.equal(other.head.meta.hallucinator.weight, first.head.classifier.weight)
    # A fresh layer of the same width leaves the shapes equal, as in the released ImageNet-LT set-up.
    same_width = make("oltr", fc=256).build_stage2(first)
    assert torch.equal(same_width.head.meta.hallucinator.weight, first.head.classifier.weight)


def test_the_memory_starts_from_the_class_means_or_from_the_mini_batches():
    means = torch.randn(CLASSES, 256)
    released = make("oltr")
    network = released.build_stage2(released.build_stage1(backbone()))
    released.on_stage_start(2, network, lambda: means)
    assert torch.equal(network.head.meta.memory.centroids, means)

    paper = make("oltr-paper")
    network = paper.build_stage2(paper.build_stage1(backbone())).eval()
    paper.on_stage_start(2, network, lambda: pytest.fail("no pass over the training set is needed"))
    images, labels = batch()
    output = network(images)
    paper.after_step(2, network, output, labels)
    memory = network.head.meta.memory
    assert memory.known.tolist() == [True, True, True, True, False]
    torch.testing.assert_close(memory.centroids[3], output.direct_feature[4:6].mean(0))


def test_oltr_adds_its_parts_to_the_cross_entropy():
    images, labels = batch()
    for name, loop in (("oltr", released_loss), ("oltr-paper", paper_loss)):
        method = make(name)
        network = method.build_stage2(method.build_stage1(backbone())).eval()
        network.head.meta.memory.start_from(torch.randn(CLASSES, 256))
        output = network(images)
        found = method.loss(2, network, output, labels)
        centroids = network.head.meta.memory.centroids.tolist()
        assert found["centroids"].item() == pytest.approx(loop(output, labels.tolist(), centroids), rel=1e-4)


def length(v):
    return math.sqrt(sum(x * x for x in v))


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def released_loss(output, labels, centroids):
    """0.01 · [(1/2B) Σ‖x−c_y‖² + 0.01 · max(0, 10 − (1/BK) Σ_{i≠y}‖x−c_i‖²)]"""
    own = other = 0.0
    for x, y in zip(output.direct_feature.tolist(), labels, strict=True):
        for i, c in enumerate(centroids):
            if i == y:
                own += length(minus(x, c)) ** 2
            else:
                other += length(minus(x, c)) ** 2
    batch_size = len(labels)
    return 0.01 * (own / (2 * batch_size) + 0.01 * max(0.0, 10 - other / (batch_size * len(centroids))))


def paper_loss(output, labels, centroids):
    """0.1 · mean of max(0, ‖v_meta−c_y‖ − Σ_{i≠y}‖v_meta−c_i‖ + 5)"""
    total = 0.0
    for v, y in zip(output.meta_embedding.tolist(), labels, strict=True):
        distances = [length(minus(v, c)) for c in centroids]
        total += max(0.0, 2 * distances[y] - sum(distances) + 5)
    return 0.1 * total / len(labels)


def linear(layer, v):
    return [sum(w * x for w, x in zip(row, v, strict=True)) + b
            for row, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)]  # fmt: skip


def head_loop(v, head, released):
    """The whole of the method after v_direct, for one image: its logits."""
    meta, centroids = head.meta, head.meta.memory.centroids.tolist()
    o = linear(meta.hallucinator, v)
    if released:
        powers = [math.exp(x) for x in o]
        o = [power / sum(powers) for power in powers]
    memory_feature = [sum(o[i] * centroids[i][d] for i in range(CLASSES)) for d in range(len(v))]
    e = [math.tanh(x) for x in linear(meta.concept_selector, v)]
    gamma = min(length(minus(v, c)) for c in centroids)
    scale = (10 if released else 1) / gamma
    v_meta = [scale * (v[d] + e[d] * memory_feature[d]) for d in range(len(v))]
    norm = length(v_meta)
    share = 1 / (1 + norm) if released else norm**2 / (1 + norm**2) / norm
    squashed = [share * x for x in v_meta]
    return [
        16 * sum(a * b for a, b in zip(squashed, w, strict=True)) / length(w)
        for w in head.classifier.weight.tolist()
    ]


@pytest.mark.parametrize("name", ["oltr", "oltr-paper"])
def test_the_logits_of_oltr_equal_a_loop_over_the_whole_head(name):
    method = make(name)
    network = method.build_stage2(method.build_stage1(backbone())).eval()
    network.head.meta.memory.start_from(torch.randn(CLASSES, 256, generator=torch.Generator().manual_seed(3)))
    images, _ = batch()
    output = network(images)
    direct = network.backbone(images).mean(dim=(2, 3))  # attention starts as the identity
    torch.testing.assert_close(output.direct_feature, direct, rtol=1e-5, atol=1e-6)
    expected = [head_loop(v, network.head, released=name == "oltr") for v in direct.tolist()]
    torch.testing.assert_close(output.logits, torch.tensor(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("metamodelnet", "levels", 0),
        ("model-regression", "supports", 0),
        ("fslwf", "supports", 0),
        ("fslwf", "posing", 1.5),
        ("ldam-drw", "beta", 1.0),
        ("experts", "experts", 0),
        ("experts", "temperature", 0.0),
        ("range", "largest", 0),
        ("focal", "gamma", -1.0),
    ],
)
def test_a_setting_out_of_range_is_told_before_any_work(name, setting, value):
    with pytest.raises(UserError, match=rf"settings\.{setting} is {value}"):
        make(name, **{setting: value})


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_moves_with_its_losses_and_learns_nothing_itself(name):
    method = make(name).to("meta")
    assert all(buffer.is_meta for buffer in method.buffers()) and not list(method.parameters())
    assert not method.train_counts.is_meta
    counted = {"balanced-softmax", "cost-sensitive", "experts", "ldam-drw", "logit-adjusted", "oltr2"}
    assert bool(list(method.buffers())) == (name in counted)
