import torch

from oltr.nn.backbone import Backbone
from oltr.nn.class_counts import counts_of, keep_counts
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network

COUNTS = torch.tensor([40, 3, 1])


def network():
    backbone = Backbone("resnet10_half", 32)
    return Network(backbone, DirectFeature(backbone.channels), LinearHead(backbone.channels, 3))


def test_the_counts_are_saved_and_moved_with_the_network_and_not_learned():
    kept = keep_counts(network(), COUNTS)
    assert counts_of(kept).dtype == torch.float32 and counts_of(kept).tolist() == COUNTS.tolist()
    assert kept.state_dict()["head.train_counts"].tolist() == COUNTS.tolist()
    assert all("train_counts" not in name for name, _ in kept.named_parameters())
    assert counts_of(kept.to("meta")).is_meta


def test_a_network_built_for_the_same_classes_takes_them_over():
    other = keep_counts(network(), torch.ones(3))
    other.load_state_dict(keep_counts(network(), COUNTS).state_dict())
    assert counts_of(other).tolist() == COUNTS.tolist()
