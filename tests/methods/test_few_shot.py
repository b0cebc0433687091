"""What the three methods that make classifiers of rare classes have in common, on made-up features."""

import pytest
import torch

from oltr.recipes import recipe_names, resolve
from tests.helpers.created import Created
from tests.helpers.made_up import COUNTS, DIMS, RARE, MadeUp, first_network, learn_first, learn_second, make

METHODS = pytest.mark.parametrize("name", ["fslwf", "model-regression", "metamodelnet"])
RATE = {"fslwf": 0.05, "model-regression": 0.01, "metamodelnet": 0.01}


def example(name, counts=COUNTS):
    """A method, its network of stage 2, features and labels of a batch."""
    method = make(name, counts)
    network = method.build_stage2(first_network(method))
    torch.manual_seed(1)
    method.on_stage_start(2, network, lambda: torch.rand(len(counts), DIMS))
    classes = torch.randperm(len(counts))[:4].repeat_interleave(3)
    return method, network, torch.rand(len(classes), DIMS), classes


def total(method, network, features, labels):
    output = network.head.train()(features)
    return torch.stack(list(method.loss(2, network, output, labels).values())).sum()


@METHODS
def test_a_3_shot_class_is_recognised_better_than_by_its_stage_1_row(name):
    data, method = MadeUp(seed=1), make(name)
    first = first_network(method)
    learn_first(first, data)
    rare, common = data.accuracy(first, RARE), data.accuracy(first, ~RARE)
    network = method.build_stage2(first)
    method.on_stage_start(2, network, data.class_means)
    unlearned = data.accuracy(network, RARE)
    losses = learn_second(method, network, data, RATE[name], steps=120)
    assert sum(losses[-20:]) < 0.9 * sum(losses[:20])
    assert data.accuracy(network, RARE) > max(rare + 0.3, unlearned + 0.1)
    assert data.accuracy(network, ~RARE) > common - 0.16  # over 16 orders of the batches, 0.04 to 0.14 less


@METHODS
def test_stage_1_is_the_plain_model(name):
    method, plain = make(name), make("plain")
    assert method.first_stage == plain.first_stage
    network = first_network(method)
    method.on_stage_start(1, network, lambda: pytest.fail("no pass over the training set is needed"))
    output, labels = network.head(torch.rand(4, DIMS)), torch.arange(4)
    assert method.loss(1, network, output, labels) == plain.loss(1, network, output, labels)


@METHODS
@pytest.mark.parametrize("recipe", recipe_names())
def test_the_features_that_the_class_means_stand_for_stay_as_they_are(name, recipe):
    stage = resolve(recipe, name).stage2
    assert stage.frozen == ("backbone",) and stage.freeze_statistics
    assert stage.sampler == "class-aware" and stage.images_per_class > 1


@METHODS
def test_logits_depend_on_all_that_learns(name):
    _, network, *_ = example(name)
    network.backbone.requires_grad_(False)
    assert network.idle_parameters(32) == []


@METHODS
def test_a_rebuilt_network_says_the_same(name):
    method, network, features, _ = example(name)
    again = method.build_stage2(first_network(method))
    again.load_state_dict(network.state_dict())
    assert torch.equal(network.head.eval()(features).logits, again.head.eval()(features).logits)


@METHODS
def test_a_step_is_one_graph_whatever_the_labels(name):
    method, network, features, labels = example(name)
    compiled = torch.compile(
        lambda features, labels: total(method, network, features, labels), fullgraph=True, backend="aot_eager"
    )
    for of in (labels, labels.flip(0), torch.arange(12)):
        found = []
        for function in (compiled, lambda *batch: total(method, network, *batch)):
            network.zero_grad()
            torch.manual_seed(2)
            loss = function(features, of)
            loss.backward()
            found.append([loss.detach(), *(p.grad for p in network.head.parameters())])
        for same, expected in zip(*found, strict=True):
            torch.testing.assert_close(same, expected, rtol=1e-4, atol=1e-6)


@METHODS
def test_nothing_of_size_batch_classes_features_is_made(name):
    classes = 500
    method, network, features, labels = example(name, torch.arange(1, classes + 1))
    with Created() as created:
        total(method, network, features, labels).backward()
    largest = max(classes * (DIMS + 1), len(labels) * classes)
    assert created.above(largest) == []


@METHODS
@pytest.mark.parametrize("counts", [[500] * 8, [4] * 8, [300] + [1] * 7])
def test_all_classes_may_be_common_or_none(name, counts):
    method, network, features, labels = example(name, torch.tensor(counts))
    total(method, network, features, labels).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.head.parameters())
    assert torch.isfinite(network.head.eval()(features).logits).all()
