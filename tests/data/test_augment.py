import math

import numpy as np
import pytest
import torch

from oltr.config import DataConfig
from oltr.data.augment import Augment, crop_boxes, draw_views, draws_per_view, jitter
from oltr.samplers import generator
from tests.helpers.gpu import needs_gpu

UNIT = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}  # leaves the pixels as they are, in 0..1
STILL = {"flip": False, "jitter": 0.0, **UNIT}


def pictures(number=6, size=12, seed=0):
    random = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (number, 3, size, size), generator=random, dtype=torch.uint8)


def train(config, images, key=(0,)):
    return Augment(config).train(images, draw_views(generator(*key), len(images)))


def draws_of(number, key=(0,)):
    return draw_views(generator(*key), number).numpy()


@pytest.mark.parametrize(("stored", "size"), [(12, 8), (13, 8), (8, 8)])
def test_evaluation_is_the_normalised_centre_crop(stored, size):
    config = DataConfig(image_size=size, stored_size=stored)
    images = pictures(size=stored)
    found = Augment(config).evaluate(images)
    start = (stored - size) // 2
    expected = torch.zeros(len(images), 3, size, size)
    for b in range(len(images)):
        for c in range(3):
            for y in range(size):
                for x in range(size):
                    value = int(images[b, c, start + y, start + x]) / 255
                    expected[b, c, y, x] = (value - config.mean[c]) / config.std[c]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seen", [10, 6, 8])
def test_the_evaluation_size_is_the_centre_crop_resized_bilinearly(seen):
    images = pictures(number=2)
    found = Augment(DataConfig(image_size=8, stored_size=12, eval_size=seen, **UNIT)).evaluate(images)
    crop = images[:, :, 2:10, 2:10].double() / 255
    expected = torch.zeros(2, 3, seen, seen)
    for y in range(seen):
        for x in range(seen):
            # The centre of a pixel, in pixels of the crop; beyond the outermost centres they hold.
            at = [min(max((place + 0.5) * 8 / seen - 0.5, 0), 7) for place in (y, x)]
            (top, left), (down, right) = (int(at[0]), int(at[1])), (at[0] % 1, at[1] % 1)
            below, beside = min(top + 1, 7), min(left + 1, 7)
            upper = (1 - right) * crop[:, :, top, left] + right * crop[:, :, top, beside]
            lower = (1 - right) * crop[:, :, below, left] + right * crop[:, :, below, beside]
            expected[:, :, y, x] = (1 - down) * upper + down * lower
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("crop", ["random", "padded"])
def test_a_crop_is_a_slice_of_each_image_at_its_own_place(crop):
    images = pictures(number=40)
    found = train(DataConfig(image_size=8, stored_size=12, crop=crop, **STILL), images)
    draws, places = draws_of(40), set()
    for b, image in enumerate(images.float() / 255):
        if crop == "padded":
            padded = torch.zeros(3, 14, 14)  # 8 // 8 pixels of black on each side
            padded[:, 1:13, 1:13] = image
            image = padded
        room = image.shape[1] - 8 + 1
        top, left = int(draws[b, 0] * room), int(draws[b, 1] * room)
        places.add((top, left))
        assert torch.equal(found[b], image[:, top : top + 8, left : left + 8])
    assert {top for top, _ in places} == {left for _, left in places} == set(range(room))


def test_a_random_crop_of_an_image_of_that_size_is_the_image():
    images = pictures(size=8)
    assert torch.equal(
        train(DataConfig(image_size=8, stored_size=8, crop="random", **STILL), images), images / 255
    )


def test_a_flip_mirrors_about_half_of_the_images():
    images = pictures(number=60, size=8)
    config = DataConfig(image_size=8, stored_size=8, crop="random", **(STILL | {"flip": True}))
    found, draws, mirrored = train(config, images), draws_of(60), 0
    for b, image in enumerate(images / 255):
        if draws[b, 4] < 0.5:
            mirrored += 1
            image = torch.stack([image[:, :, 7 - x] for x in range(8)], dim=2)
        assert torch.equal(found[b], image)
    assert 15 < mirrored < 45


def jitter_loop(image, factors, order):
    """Brightness, contrast and saturation as torchvision's functional forms, one after the other."""

    def grey(picture):
        return 0.299 * picture[0] + 0.587 * picture[1] + 0.114 * picture[2]

    def blend(picture, other, factor):
        return (factor * picture + (1 - factor) * other).clamp(0, 1)

    for kind in order:
        factor = float(factors[kind])
        if kind == 0:
            image = blend(image, torch.zeros_like(image), factor)
        elif kind == 1:
            image = blend(image, grey(image).mean() * torch.ones_like(image), factor)
        else:
            image = blend(image, grey(image).expand(3, -1, -1), factor)
    return image


def test_jitter_equals_a_loop_over_images_in_the_drawn_order():
    images = pictures(number=40, size=8)
    config = DataConfig(image_size=8, stored_size=8, crop="random", **(STILL | {"jitter": 0.4}))
    found, draws, orders = train(config, images), draws_of(40), set()
    for b, image in enumerate(images / 255):
        factors = [1 + 0.4 * (2 * draw - 1) for draw in draws[b, 5:8]]
        assert all(0.6 <= factor <= 1.4 for factor in factors)
        order = sorted(range(3), key=lambda kind, b=b: draws[b, 8 + kind])
        orders.add(tuple(order))
        torch.testing.assert_close(found[b], jitter_loop(image, factors, order), rtol=1e-5, atol=1e-5)
    assert len(orders) == 6


def test_jitter_equals_torchvision():
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    image, factors = pictures(number=1, size=8)[0] / 255, (0.7, 1.3, 0.6)
    steps = (functional.adjust_brightness, functional.adjust_contrast, functional.adjust_saturation)
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        expected = image
        for kind in order:
            expected = steps[kind](expected, factors[kind])
        found = jitter(image[None], torch.tensor([factors]), torch.tensor([order]))[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)  # torchvision rounds the grey weights


def coordinates(size):
    """Pictures whose red says the column and whose green the row, both from 0 to 255 across the picture."""
    ramp = torch.arange(size, dtype=torch.float32) * 255 / (size - 1)
    return torch.stack([ramp.expand(size, size), ramp[:, None].expand(size, size), torch.zeros(size, size)])


def box_loop(row, side, smallest):
    """torchvision's rule on one image's draws: left, top, width, height."""
    tries = [row[:2], *row[16:].reshape(9, 2)]
    width = height = side  # where none of the ten fits
    for area, shape in tries:
        pixels = side * side * (smallest + (1 - smallest) * area)
        ratio = math.exp(math.log(3 / 4) + shape * (math.log(4 / 3) - math.log(3 / 4)))
        across, down = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < across <= side and 0 < down <= side:
            width, height = across, down
            break
    return [int(row[2] * (side - width + 1)), int(row[3] * (side - height + 1)), width, height]


@pytest.mark.parametrize(("side", "smallest"), [(256, 0.08), (52, 0.3), (146, 0.97), (3, 0.08)])
def test_a_box_is_the_first_of_ten_tries_that_fits(side, smallest):
    draws = draws_of(400)
    boxes = crop_boxes(torch.from_numpy(draws), side, smallest)
    expected = [box_loop(row.astype(np.float64), side, smallest) for row in draws]
    close = (boxes - torch.tensor(expected)).abs()
    assert close.max() <= 1 and close.bool().any(dim=1).sum() <= 2  # float32 rounds a half elsewhere
    assert (boxes == boxes.round()).all() and boxes.min() >= 0 and boxes[:, 2:].min() >= 1
    assert (boxes[:, :2] + boxes[:, 2:]).max() <= side


@pytest.mark.parametrize("smallest", [0.08, 0.3, 0.9])
def test_areas_shapes_and_places_are_distributed_as_in_torchvision(smallest):
    transforms = pytest.importorskip("torchvision.transforms.v2")
    side, number = 256, 8000
    picture = torch.empty(3, side, side)
    torch.manual_seed(0)
    theirs = torch.tensor(
        [
            transforms.RandomResizedCrop.get_params(picture, [smallest, 1.0], [3 / 4, 4 / 3])
            for _ in range(number)
        ]
    )[:, [1, 0, 3, 2]].double()
    ours = crop_boxes(torch.from_numpy(draws_of(number)), side, smallest).double()
    for measure in (
        lambda box: box[:, 2] * box[:, 3] / side**2,
        lambda box: torch.log(box[:, 2] / box[:, 3]),
        lambda box: box[:, 0] / side,
        lambda box: (box[:, 1] + box[:, 3]) / side,
    ):
        one, other = measure(ours), measure(theirs)
        error = 5 * float(one.std()) * math.sqrt(2 / number)  # five deviations of the difference of means
        assert float(one.mean()) == pytest.approx(float(other.mean()), abs=error)
        deciles = torch.arange(1, 10, dtype=torch.float64) / 10
        torch.testing.assert_close(
            one.quantile(deciles), other.quantile(deciles), rtol=0, atol=4 * float(one.std()) / 50 + 1 / side
        )
    if smallest == 0.08:  # crops made to fit by cutting them off have 0.534
        assert float((ours[:, 2] * ours[:, 3]).mean()) / side**2 == pytest.approx(0.480, abs=0.01)


def test_a_resized_crop_shows_its_box():
    size, number, smallest = 52, 300, 0.1  # 52: the ramp has whole numbers
    images = coordinates(size).to(torch.uint8).expand(number, -1, -1, -1)
    config = DataConfig(image_size=16, stored_size=size, crop="resized", smallest_crop=smallest, **STILL)
    found = train(config, images)
    boxes = crop_boxes(torch.from_numpy(draws_of(number)), size, smallest)
    for view, (left, top, width, height) in zip(found, boxes.tolist(), strict=True):
        for step in (3, 8, 12):  # inner pixels: the outermost may mix in the mirrored edge
            x, y = left + width * (step + 0.5) / 16, top + height * (step + 0.5) / 16
            # Pixels to the ramp's 0..1, whose ends are the centres of the outermost pixels.
            assert float(view[0, 8, step]) == pytest.approx((x - 0.5) / (size - 1), abs=0.006)
            assert float(view[1, step, 8]) == pytest.approx((y - 0.5) / (size - 1), abs=0.006)
    assert found.min() >= 0 and found.max() <= 1
    assert boxes[:, 2:].min() < 20 and boxes[:, 2:].max() == size and boxes[:, 0].max() > 15


def test_the_draws_of_old_are_the_first_sixteen():
    """So that flips, jitter and the other crops stay as they were."""
    assert torch.equal(
        draw_views(generator(3), 5)[:, :16], torch.from_numpy(generator(3).random((5, 16), dtype=np.float32))
    )


def test_strong_augmentation_draws_more_numbers_after_the_others():
    assert draws_per_view(DataConfig()) == 34 == draw_views(generator(3), 5).shape[1]
    for option in ("affine", "colour", "erase"):
        assert draws_per_view(DataConfig(**{option: 0.1})) == 42
    longer = draw_views(generator(3), 5, 42)
    assert longer.shape == (5, 42) and torch.equal(longer[:, :34], draw_views(generator(3), 5))
    assert len(longer[:, 34:].unique()) == 40  # and none of them told twice


@pytest.mark.parametrize("crop", ["resized", "random", "padded"])
def test_longer_rows_leave_an_ordinary_view_as_it_is(crop):
    config, images = DataConfig(image_size=8, stored_size=12, crop=crop), pictures()
    views = [Augment(config).train(images, draw_views(generator(3), 6, numbers)) for numbers in (34, 42)]
    assert torch.equal(*views)


def test_a_resized_crop_of_everything_is_the_image():
    images = pictures(size=8)
    config = DataConfig(image_size=8, stored_size=8, crop="resized", smallest_crop=1.0, **STILL)
    middle = torch.full((len(images), 34), 0.5)  # asks for the whole area and a square
    found = Augment(config).train(images, middle)
    torch.testing.assert_close(found, images / 255, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("crop", ["resized", "random", "padded"])
@pytest.mark.parametrize("strong", [{}, {"affine": 0.6, "colour": 0.8, "erase": 0.5}])
def test_an_image_gets_the_same_view_however_the_batch_is_shared(crop, strong):
    config, images = DataConfig(image_size=8, stored_size=12, crop=crop, **strong), pictures(number=8)
    augment = Augment(config)
    draws = draw_views(generator(5, 1), 8, draws_per_view(config))
    whole = augment.train(images, draws)
    parts = [augment.train(images[part], draws[part]) for part in (slice(0, 4), slice(4, 8))]
    assert torch.equal(torch.cat(parts), whole)
    assert whole.shape == (8, 3, 8, 8) and whole.dtype == torch.float32


@pytest.mark.parametrize("crop", ["resized", "random", "padded"])
def test_the_same_key_gives_the_same_views_and_another_key_others(crop):
    config, images = DataConfig(image_size=8, stored_size=12, crop=crop), pictures()
    assert torch.equal(train(config, images, (1, 2)), train(config, images, (1, 2)))
    assert not torch.equal(train(config, images, (1, 2)), train(config, images, (1, 3)))


def test_the_views_are_normalised():
    config = DataConfig(image_size=8, stored_size=8, crop="random", flip=False, jitter=0.0)
    images = pictures(size=8)
    mean, std = torch.tensor(config.mean).view(3, 1, 1), torch.tensor(config.std).view(3, 1, 1)
    torch.testing.assert_close(train(config, images), (images / 255 - mean) / std)


@needs_gpu
@pytest.mark.parametrize("crop", ["resized", "random", "padded"])
def test_strong_views_on_a_gpu_are_those_of_the_cpu_and_can_be_recorded_as_a_graph(crop):
    config = DataConfig(image_size=32, stored_size=36, crop=crop, affine=0.6, colour=0.8, erase=0.5)
    images, draws = pictures(number=64, size=36), draw_views(generator(5, 1), 64, draws_per_view(config))
    expected = Augment(config).train(images, draws)
    augment, pixels, numbers = Augment(config, "cuda"), images.cuda(), draws.cuda()
    torch.testing.assert_close(augment.train(pixels, numbers).cpu(), expected, rtol=0, atol=1e-3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        views = augment.train(pixels, numbers)
    graph.replay()
    torch.testing.assert_close(views.cpu(), expected, rtol=0, atol=1e-3)
