"""Outputs of a whole split are those of its images one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.data.augment import Augment
from oltr.data.image_access import open_images
from oltr.data.pack import open_pack
from oltr.runs.collect import collect_outputs
from oltr.training.build import build_method, build_network
from tests.helpers.tiny import tiny_config

CPU = torch.device("cpu")


@pytest.mark.parametrize("method", ["plain", "oltr"])
@pytest.mark.parametrize("batch", [1, 5, 1000])  # more batches than are in flight, a short last one, one
def test_rows_are_those_of_single_images(method, batch, pack):
    manifest, config = open_pack(pack).manifest, tiny_config(method)
    made = build_method(config, torch.from_numpy(manifest.train_counts()))
    network = build_network(config, made, 2).eval()
    images, augment = open_images(manifest, ["test"], 32, 32, CPU)["test"], Augment(config.data)
    outputs = collect_outputs(network, images, config.data, CPU, batch_size=batch)
    assert outputs.labels.tolist() == images.labels.tolist() and len(outputs) % 5
    for row, pixels in enumerate(images.batches(np.arange(len(images))[:, None], CPU, 0)):
        with torch.no_grad():
            single = network(augment.evaluate(pixels))
        torch.testing.assert_close(outputs.logits[row], single.logits[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(outputs.features[row], single.direct_feature[0], atol=1e-4, rtol=1e-4)
        assert (outputs.reachability is None) == (single.reachability is None) == (method == "plain")
