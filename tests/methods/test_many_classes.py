"""Training when a batch × classes tensor would be too large: the same weights, and small tensors only."""

import pytest
import torch

from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.nn import blocks
from oltr.nn.backbone import Backbone
from oltr.recipes import resolve
from tests.helpers.created import Created

SIZE, BATCH = 32, 16


def build(name, classes):
    """The network of stage 2 with a memory, and its method."""
    torch.manual_seed(0)
    method = METHODS[name](resolve("glyphs", name).settings, torch.full((classes,), 5), SIZE)
    network = method.build_stage2(method.build_stage1(Backbone("resnet32_cifar", SIZE)))
    method.on_stage_start(2, network, lambda: torch.randn(classes, network.direct_feature.dims))
    return method, network.train()


def batch(classes, seed=0):
    random = torch.Generator().manual_seed(seed)
    images = torch.randn(BATCH, 3, SIZE, SIZE, generator=random)
    return images, torch.randint(0, classes, (BATCH,), generator=random).repeat_interleave(2)[:BATCH]


def total(method, network, images, labels):
    output = network(images)
    return torch.stack(list(method.loss(2, network, output, labels).values())).sum(), output


def trained(name, classes):
    """The state after one step, taken as the engine takes it; after more, rounding has grown."""
    method, network = build(name, classes)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    images, labels = batch(classes)
    loss, output = total(method, network, images, labels)
    loss.backward()
    optimizer.step()
    method.after_step(2, network, output, labels)
    return network.state_dict()


NEED_LOGITS = {
    "balanced-softmax",
    "cost-sensitive",
    "focal",
    "logit-adjusted",
    "oltr2",
}  # of a head that works in blocks


@pytest.mark.parametrize("name", sorted(set(METHODS) - NEED_LOGITS))
def test_training_in_blocks_gives_the_weights_of_training_whole(name, monkeypatch):
    whole = trained(name, classes=23)
    monkeypatch.setattr(blocks, "LARGEST", 5 * 64)
    in_blocks = trained(name, classes=23)
    for key, value in whole.items():
        torch.testing.assert_close(
            in_blocks[key], value, rtol=1e-4, atol=1e-5, msg=lambda m, k=key: f"{k}: {m}"
        )


@pytest.mark.parametrize("name", sorted(NEED_LOGITS))
def test_a_loss_that_needs_all_logits_is_refused(name, monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", 5 * 64)
    with pytest.raises(UserError, match="needs all logits"):
        trained(name, classes=23)


@pytest.mark.parametrize(("name", "gradients"), [("plain", 1), ("oltr", 3), ("oltr-paper", 11)])
def test_a_step_makes_only_gradients_larger_than_a_block(name, gradients, monkeypatch):
    classes, dims, block = 5000, 64, 300
    monkeypatch.setattr(blocks, "LARGEST", block * dims)
    method, network = build(name, classes)
    features, labels = torch.randn(BATCH, dims, requires_grad=True), batch(classes)[1]
    with Created() as created:
        output = network.head(features)
        torch.stack(list(method.loss(2, network, output, labels).values())).sum().backward()
        method.after_step(2, network, output, labels)
    large = created.above(block * dims)
    # The paper's centroids have gradients from five sources, which are added up in four steps.
    assert large == [(classes, dims)] * gradients


@pytest.mark.parametrize("largest", [2**25, 128])
@pytest.mark.parametrize("name", ["oltr", "oltr-paper"])
def test_a_compiler_takes_the_head_and_its_losses_in_one_graph_or_around_the_blocks(
    name, largest, monkeypatch
):
    monkeypatch.setattr(blocks, "LARGEST", largest)
    method, network = build(name, classes=23)
    images, labels = batch(23)
    with torch.no_grad():
        features = network.embed(images)

    def terms(features):
        return torch.stack(list(method.loss(2, network, network.head(features), labels).values()))

    compiled = torch.compile(terms, fullgraph=largest > 128, backend="aot_eager")
    found = []
    for function in (terms, compiled):
        network.zero_grad()
        value = function(features)
        value.sum().backward()
        found.append([value.detach(), *(p.grad for p in network.head.parameters())])
    for expected, same in zip(*found, strict=True):
        torch.testing.assert_close(same, expected, rtol=1e-4, atol=1e-6)
