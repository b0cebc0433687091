import torch

from oltr.nn.regressors import RecursiveRegressor
from tests.helpers.made_up import DIMS, first_network, make

COUNTS = torch.tensor([500, 200, 90, 17, 4, 1])


def example():
    method = make("metamodelnet", COUNTS)
    network = method.build_stage2(first_network(method))
    torch.manual_seed(1)
    method.on_stage_start(2, network, lambda: torch.rand(len(COUNTS), DIMS))
    return network.head.eval()


def test_there_is_a_block_for_1_2_4_and_up_to_64_images():
    head = example()
    assert isinstance(head.regressor, RecursiveRegressor)
    assert len(head.regressor.blocks) == 7 and 2**6 <= 100 < 2**7


def test_a_rare_class_passes_the_blocks_from_its_number_of_images_on():
    head, features = example(), torch.rand(3, DIMS)
    before = head(features).logits
    # Block 3 takes classifiers of 8 images to 16: classes with 4 images and with 1 pass it, with 17 not.
    torch.nn.init.normal_(head.regressor.blocks[3][2].weight)
    moved = (head(features).logits != before).any(dim=0)
    assert moved.tolist() == [False, False, False, False, True, True]


def test_untrained_it_is_the_classifier_by_class_means():
    head, features = example(), torch.rand(3, DIMS)
    offset = head.rows[:2, -1].mean()
    for k in (2, 3, 4, 5):
        away = head.class_means[k] - head.middle
        expected = head.length * ((features - head.middle) @ away / away.norm() + offset)
        torch.testing.assert_close(head(features).logits[:, k], expected)
