"""Every loss term of every method under every recipe reaches a weight that learns."""

import warnings

import pytest
import torch

from oltr.methods import METHODS
from oltr.recipes import recipe_names
from oltr.training.build import build_method, build_network
from oltr.training.configure import assemble
from oltr.training.frozen import freeze

COUNTS, LABELS = torch.tensor([9, 5, 4]), torch.tensor([0, 0, 1, 1, 2, 2, 0, 1])


@pytest.mark.parametrize("method_name", list(METHODS))
@pytest.mark.parametrize("recipe", recipe_names())
def test_each_term_has_a_gradient(recipe, method_name):
    frozen = recipe == "photos-frozen"
    if frozen and method_name == "experts":
        return  # refused: tests/nn/test_expert_stages.py
    own = {"backbone": "resnet10_half", "weights": None}
    config = assemble(recipe, method_name, own, image_size=32)
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for stage in range(1, config.num_stages + 1):
        method = build_method(config, COUNTS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no map to attend to in frozen features
            network = build_network(config, method, stage).train()
        freeze(network, config.stage(stage), 32)
        method.on_stage_start(stage, network, lambda net=network: torch.randn(3, net.direct_feature.dims))
        learning = [p for p in network.parameters() if p.requires_grad]
        for name, term in method.loss(stage, network, network(images), LABELS).items():
            gradients = torch.autograd.grad(term, learning, retain_graph=True, allow_unused=True)
            reached = any(g is not None and g.abs().sum() > 0 for g in gradients)
            assert reached, f"{name} in stage {stage} reaches no weight"
