"""Outputs and features of a whole split are those of its images one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.data.augment import Augment
from oltr.data.image_access import open_images
from oltr.data.pack import open_pack
from oltr.distributed import interleave_over_ranks
from oltr.training.build import build_method, build_network
from oltr.training.inference import class_means, embed_images, forward_batches, on_host
from tests.helpers.processes import run_processes
from tests.helpers.tiny import tiny_config, tiny_pack

CPU = torch.device("cpu")


def example(pack, method="oltr", split="test"):
    manifest, config = open_pack(pack).manifest, tiny_config(method)
    made = build_method(config, torch.from_numpy(manifest.train_counts()))
    network = build_network(config, made, 2)
    return network, open_images(manifest, [split], 32, 32, CPU)[split], config.data


def single_outputs(network, images, data):
    augment = Augment(data)
    network.eval()
    for pixels in images.batches(np.arange(len(images))[:, None], CPU, 0):
        with torch.no_grad():
            yield network(augment.evaluate(pixels))


@pytest.mark.parametrize("method", ["plain", "oltr"])
@pytest.mark.parametrize("batch", [1, 5, 1000])  # more batches than are in flight, a last one cut short, one
def test_outputs_are_those_of_single_images(method, batch, pack):
    network, images, data = example(pack, method)
    outputs = list(forward_batches(network, images, data, CPU, precision="auto", batch_size=batch))
    logits = torch.cat([output.logits for output in outputs])
    assert len(outputs) == -(-len(images) // batch) and len(images) % 5
    for row, single in zip(logits, single_outputs(network, images, data), strict=True):
        torch.testing.assert_close(row, single.logits[0], atol=1e-4, rtol=1e-4)
    assert (outputs[0].reachability is None) == (method == "plain")


def test_between_two_batches_gradients_are_possible(pack):
    network, images, data = example(pack)
    for _ in forward_batches(network, images, data, CPU, precision="auto", batch_size=10):
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    assert not network.training


def test_views_may_be_changed_and_progress_is_told(pack):
    network, images, data = example(pack)
    told = []
    outputs = forward_batches(
        network,
        images,
        data,
        CPU,
        precision="auto",
        batch_size=10,
        progress=lambda done, total: told.append((done, total)),
        change=lambda network, views: torch.zeros_like(views),
    )
    logits = torch.cat([output.logits for output in outputs])
    torch.testing.assert_close(logits, logits[:1].expand_as(logits))
    assert told == [(10, 24), (20, 24), (24, 24)]


@pytest.mark.parametrize("batch", [1, 5, 1000])
def test_features_are_those_of_single_images_and_labels_in_order(pack, batch):
    network, images, data = example(pack)
    features, labels = embed_images(network, images, data, CPU, precision="auto", batch_size=batch)
    assert labels.tolist() == images.labels.tolist() and features.dtype == torch.float32
    for row, single in zip(features, single_outputs(network, images, data), strict=True):
        torch.testing.assert_close(row, single.direct_feature[0], atol=1e-4, rtol=1e-4)
    assert not features.is_inference()  # whoever gets them may learn from them


def test_class_means_against_a_loop(pack):
    network, images, data = example(pack, split="train")
    network.train()
    means = class_means(network, images, data, CPU, 6, precision="auto")
    assert network.training
    features = torch.cat([single.direct_feature for single in single_outputs(network, images, data)])
    for number in range(6):
        expected = features[torch.from_numpy(images.labels == number)].mean(dim=0)
        torch.testing.assert_close(means[number], expected, atol=1e-4, rtol=1e-4)


def test_nested_tensors_reach_the_host_in_order():
    batches = [(torch.full((2,), float(n)), {"n": torch.tensor(n)}, None) for n in range(11)]
    received = list(on_host(iter(batches), CPU))
    assert [int(batch[1]["n"]) for batch in received] == list(range(11))
    assert all(batch[0].tolist() == [n, n] and batch[2] is None for n, batch in enumerate(received))


def interleave_in_process(rank, world_size):
    return [
        interleave_over_ranks(torch.arange(rank, total, world_size).float()[:, None])
        if total > rank
        else interleave_over_ranks(torch.empty(0))
        for total in (1, 2, 5)
    ]


def test_rows_of_all_processes_are_put_in_order_even_if_one_has_none(tmp_path):
    for whole in run_processes(interleave_in_process, tmp_path):
        assert [rows.tolist() for rows in whole] == [
            [[float(n)] for n in range(total)] for total in (1, 2, 5)
        ]


def embed_in_process(rank, world_size):
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        pack = tiny_pack(Path(folder))
        results = []
        for split in ("test", "open"):
            network, images, data = example(pack, split=split)
            results += embed_images(network, images, data, CPU, precision="auto", batch_size=5)
    return results


def test_two_processes_share_the_work_and_have_all_of_it(pack, tmp_path):
    first, second = run_processes(embed_in_process, tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    for split, (features, labels) in (("test", first[:2]), ("open", first[2:])):
        network, images, data = example(pack, split=split)
        alone, answers = embed_images(network, images, data, CPU, precision="auto")
        assert torch.equal(labels, answers)
        torch.testing.assert_close(features, alone, atol=1e-4, rtol=1e-4)
