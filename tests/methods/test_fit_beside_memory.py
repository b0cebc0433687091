"""The fit beside a memory: folds, memories without an image's own fold, and what it is good for."""

import numpy as np
import pytest
import torch
from sklearn.covariance import LedoitWolf

from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.methods.fit_beside_memory import fit_beside_memory
from oltr.methods.logit_adjusted import NEVER
from oltr.methods.other_folds import FOLDS, OtherFolds, folds
from oltr.nn import Backbone, MemoryHead, MultilevelBackbone, fit_linear
from oltr.nn.memory_head import ClassMeans
from oltr.runs.rule import own_score
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure


def drawn(counts, dims=6, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(counts)), counts)
    order = rng.permutation(len(labels))
    centres = np.random.default_rng(99).normal(size=(len(counts), dims))
    features = centres[labels] + spread * rng.normal(size=(len(labels), dims))
    return torch.from_numpy(features[order]).float(), torch.from_numpy(labels[order])


def memory_loop(features, labels):
    """cos(A(v − m), A(μ_k − m)) as a function of v, of whatever classes there are."""
    x, y = features.double().numpy(), labels.numpy()
    means = {k: x[y == k].mean(axis=0) for k in sorted(set(y))}
    residuals = np.stack([row - means[k] for row, k in zip(x, y, strict=True)])
    precision = np.linalg.inv(LedoitWolf(assume_centered=True).fit(residuals).covariance_)
    middle = x.mean(axis=0)

    def cosine(v, k):
        if k not in means:
            return 0.0
        a, b = v - middle, means[k] - middle
        return a @ precision @ b / np.sqrt((a @ precision @ a) * (b @ precision @ b))

    return cosine


def other_folds(features, labels, classes):
    return OtherFolds(features, labels, classes)(slice(None))


def test_a_fold_has_a_fifth_of_each_class_and_neighbours_stay_together():
    labels = torch.tensor([0, 1, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0])
    fold = folds(labels)
    assert fold[labels == 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert fold[labels == 1].tolist() == [0, 2] and fold[labels == 2].tolist() == [0]
    assert fold.max() < FOLDS


@pytest.mark.parametrize("counts", [[12, 7, 5], [10, 1, 4, 0]])
def test_an_image_meets_a_memory_of_the_other_folds(counts):
    features, labels = drawn(counts)
    fold, others = folds(labels), OtherFolds(features, labels, len(counts))
    found = others(slice(None))
    expected = np.zeros(found.shape)
    for i, v in enumerate(features.double().numpy()):
        rest = fold != fold[i]
        cosine = memory_loop(features[rest], labels[rest])
        expected[i] = [cosine(v, k) for k in range(len(counts))]
    alone = labels.bincount()[labels] == 1
    # The only image of a class is taken to agree with it as others do with theirs.
    expected[alone, labels[alone]] = expected[~alone, labels[~alone]].mean()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    torch.testing.assert_close(torch.cat([others(slice(0, 5)), others(slice(5, None))]), found)


def test_the_head_is_the_minimum_beside_these_cosines_and_answers_with_the_memory_of_all():
    features, labels = drawn([12, 7, 5])
    prior = torch.tensor([-0.5, -1.0, -1.5])
    fitted = fit_beside_memory(features, labels, prior, scale=3.0, decay=0.02, iterations=60)
    beside = prior + 3 * other_folds(features, labels, 3)
    weight, bias, loss = fit_linear(features, labels, beside, decay=0.02)
    torch.testing.assert_close(fitted.weight, weight)
    torch.testing.assert_close(fitted.bias, bias)
    assert fitted.loss == pytest.approx(loss)
    head = MemoryHead(6, 3, scale=3.0).requires_grad_(False)
    head.classifier.weight.copy_(fitted.weight)
    head.classifier.bias.copy_(fitted.bias)
    head.class_means.start_from(*fitted.memory)
    new, _ = drawn([4, 4, 4], seed=1)
    cosine = memory_loop(features, labels)
    expected = [[cosine(v, k) for k in range(3)] for v in new.double().numpy()]
    linear = new @ weight.T + bias
    np.testing.assert_allclose(head(new).logits, linear + 3 * torch.tensor(expected), atol=1e-4)


def test_few_images_in_many_dimensions_are_told_apart_better_with_the_memory():
    # A few directions have far more of everything than the others, which tell as much.
    counts, dims = [30, 20, 10, 4, 4], 40
    stretch = torch.ones(dims)
    stretch[:5] = 6.0
    features, labels = drawn(counts, dims)
    test, wanted = drawn([200] * len(counts), dims, seed=1)
    features, test = features * stretch, test * stretch
    prior = 1.25 * (torch.tensor(counts) / sum(counts)).log()

    def right(scale):
        fit = fit_beside_memory(features, labels, prior, scale=scale, decay=2.5e-3, iterations=60)
        memory = ClassMeans(len(counts), dims, scale)
        memory.start_from(*fit.memory)
        logits = test @ fit.weight.T + fit.bias + memory(test)
        return float((logits.argmax(dim=1) == wanted).float().mean())

    assert right(20.0) > right(0.0) + 0.01


def frozen(counts):
    torch.manual_seed(0)
    method = METHODS["oltr2"]({}, torch.tensor(counts), image_size=32)
    return method, method.build_stage1(MultilevelBackbone(Backbone("resnet10_half", 32)))


def test_oltr2_on_a_frozen_backbone_is_fitted():
    method, network = frozen([9, 4, 2])
    dims = network.backbone.channels
    features, labels = drawn([9, 4, 2], dims)
    loss = method.fit(network, features, labels)
    prior = 1.25 * (torch.tensor([9, 4, 2]) / 15).log()
    expected = fit_beside_memory(features, labels, prior, scale=20.0, decay=5e-3, iterations=60)
    assert loss == pytest.approx(expected.loss)
    assert torch.equal(network.head.classifier.weight, expected.weight)
    torch.testing.assert_close(network.head.class_means.means, expected.memory.means.float())
    assert method.own_score(True) == "scale-70" and method.own_score(False) == method.score


@pytest.mark.parametrize(
    ("changes", "score"),
    [
        (["stage2={epochs: 1, frozen: [backbone]}"], "scale-70"),
        (["stage1.frozen=[backbone]", "stage2=null"], "scale-70+spread-cosine"),  # by steps
        (["stage2=null"], "scale-70+spread-cosine"),
    ],
)
def test_the_score_of_a_fitted_head_is_that_of_a_memory_head_alone(changes, score):
    config = configure("cifar100-lt-100-modern", "oltr2", changes=changes)
    network = build_network(config, build_method(config, torch.full((4,), 5)), config.num_stages)
    assert isinstance(network.head, MemoryHead) == (score == "scale-70")
    assert own_score(config) == score


def test_a_class_without_training_images_is_never_the_answer():
    method, network = frozen([5, 0, 3])
    features, labels = drawn([5, 0, 3], network.backbone.channels)
    method.fit(network, features, labels)
    assert network.head.classifier.bias[1] == NEVER
    assert (network.head(torch.randn(50, network.backbone.channels)).logits.argmax(dim=1) != 1).all()


def test_a_single_image_of_each_class_will_do():
    method, network = frozen([1, 1])
    features, labels = drawn([1, 1], network.backbone.channels)
    assert np.isfinite(method.fit(network, features, labels))
    assert torch.equal(network.head(features).logits.argmax(dim=1), labels)


def test_a_cosine_classifier_on_a_frozen_backbone_is_refused():
    method = METHODS["oltr2"]({"classifier": "cosine"}, torch.tensor([5, 3]), image_size=32)
    with pytest.raises(UserError, match="frozen"):
        method.build_stage1(MultilevelBackbone(Backbone("resnet10_half", 32)))


@pytest.mark.parametrize("experts", [1, 2])
def test_after_training_the_head_is_fitted_to_the_frozen_backbone(experts):
    torch.manual_seed(0)
    method = METHODS["oltr2"]({"experts": experts}, torch.tensor([9, 4, 2]), image_size=32)
    trained = method.build_stage1(Backbone("resnet10_half", 32))
    assert method.build_stage2(trained) is trained  # goes on by steps
    method.backbone_frozen = True
    network = method.build_stage2(trained)
    features = network.embed(torch.randn(15, 3, 32, 32))
    assert network.backbone.net is trained.backbone.net
    assert isinstance(network.head, MemoryHead) and features.shape == (15, network.backbone.channels)
    assert method.fit(network, features.detach(), drawn([9, 4, 2], 1)[1]) is not None


def test_runs_that_differ_in_the_fit_alone_share_stage_1():
    def kind(**changes):
        return METHODS["oltr2"](changes, torch.tensor([3, 2]), image_size=32).first_stage

    assert kind() == kind(memory=10.0, tau=1.0, decay=0.1, iterations=5) != kind(contrast=1.0)
