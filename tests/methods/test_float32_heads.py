"""Every head names the class in float32, whatever the backbone runs in."""

import pytest
import torch

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.recipes import resolve

COUNTS = torch.tensor([40, 20, 10, 5, 2])


@pytest.mark.parametrize("name", METHODS)
def test_logits_are_not_rounded_to_bfloat16(name):
    torch.manual_seed(0)
    method = METHODS[name](resolve("glyphs", name).settings, COUNTS, image_size=32)
    first = method.build_stage1(Backbone("resnet10_half", 32))
    for network in (first, method.build_stage2(first)):
        direct = torch.rand(4, network.direct_feature.dims).bfloat16()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            logits = network.eval().head(direct).logits
        with torch.no_grad():
            torch.testing.assert_close(logits, network.head(direct.float()).logits)
