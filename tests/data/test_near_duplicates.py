import itertools

import numpy as np
import pytest
from PIL import Image

from oltr.data import near_duplicates
from oltr.data.images import to_pixels
from oltr.data.looks import LOOK_SIZE, Look, look_at, similarity
from oltr.data.near_duplicates import DISTANCE, SIMILARITY, find_near_duplicates
from tests.helpers.scenes import copies, scene, textures


def look(picture):
    return look_at(to_pixels(picture, LOOK_SIZE))


def slow_pairs(looks):
    """Every pair compared, bit by bit."""
    found = set()
    for a, b in itertools.combinations(range(len(looks)), 2):
        if looks[a].plain or looks[b].plain or bin(looks[a].hash ^ looks[b].hash).count("1") > DISTANCE:
            continue
        one, other = (look.thumbnail.astype(float) for look in (looks[a], looks[b]))
        if np.corrcoef(one, other)[0, 1] >= SIMILARITY:
            found.add((a, b))
    return found


def test_the_hash_is_the_signs_of_the_lowest_frequencies():
    scipy_fft = pytest.importorskip("scipy.fft")
    pixels = to_pixels(scene(3), LOOK_SIZE)
    grey = pixels @ np.array([0.299, 0.587, 0.114])
    waves = scipy_fft.dctn(grey, norm="ortho")
    order = sorted(itertools.product(range(16), range(16)), key=lambda p: (p[0] + p[1], abs(p[0] - p[1]), p))[
        1:65
    ]
    values = np.array([waves[place] for place in order])
    strong = values > 0.01 * np.sqrt((values**2).sum())
    assert look_at(pixels).hash.bit_count() == strong.sum()


@pytest.mark.parametrize("kind", ["encoded", "smaller", "larger", "brighter", "darker", "cropped"])
def test_a_copy_is_found_among_others(kind):
    pictures = [scene(seed) for seed in range(30)]
    looks = [look(picture) for picture in pictures] + [look(copies(each)[kind]) for each in pictures]
    pairs = {(pair.first, pair.second) for pair in find_near_duplicates(looks).pairs()}
    assert pairs <= {(number, number + 30) for number in range(30)}
    assert len(pairs) >= (28 if kind == "cropped" else 30)


def test_different_pictures_are_no_duplicates():
    pictures = [*textures().values(), *(scene(seed) for seed in range(200))]
    found = find_near_duplicates([look(picture) for picture in pictures])
    assert found.pairs() == [] and len(set(found.clusters())) == len(pictures)


def test_a_texture_is_found_again():
    looks = [look(picture) for picture in textures().values()]
    again = [look(copies(picture)["encoded"]) for picture in textures().values()]
    pairs = {(pair.first, pair.second) for pair in find_near_duplicates([*looks, *again]).pairs()}
    assert pairs == {(number, number + len(looks)) for number in range(len(looks))}


def test_the_colour_tells_pictures_of_one_outline_apart():
    picture = np.array(scene(1))
    assert (
        find_near_duplicates([look(Image.fromarray(picture)), look(Image.fromarray(255 - picture))]).pairs()
        == []
    )
    red, blue = np.full((2, 40, 40, 3), 255, dtype=np.uint8)
    red[8:32, 8:32] = (220, 0, 0)
    blue[8:32, 8:32] = (0, 60, 220)
    assert find_near_duplicates([look(Image.fromarray(red)), look(Image.fromarray(blue))]).pairs() == []


def test_plain_pictures_are_no_cluster():
    colours = [Image.new("RGB", (20, 20), (shade, shade, 255 - shade)) for shade in range(0, 250, 10)]
    looks = [look(colour) for colour in colours]
    assert all(each.plain for each in looks) and not look(scene(0)).plain
    found = find_near_duplicates(looks)
    assert found.pairs() == [] and len(set(found.clusters())) == len(looks)


def test_the_search_finds_what_comparing_all_pairs_finds():
    rng = np.random.default_rng(0)
    base = [look(scene(seed)) for seed in range(20)]
    looks = []
    for each in base * 12:
        flips = rng.choice(64, size=rng.integers(0, 16), replace=False)
        noise = rng.normal(0, rng.choice([2, 25, 60]), each.thumbnail.shape)
        thumbnail = np.clip(each.thumbnail + noise, 0, 255).astype(np.uint8)
        looks.append(
            Look(each.hash ^ sum(1 << int(bit) for bit in flips), thumbnail, bool(rng.random() < 0.1))
        )
    expected = slow_pairs(looks)
    assert len(expected) > 100
    assert {(pair.first, pair.second) for pair in find_near_duplicates(looks).pairs()} == expected


def test_similarity_is_correlation():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (2, 5, 768), dtype=np.uint8)
    expected = [np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(similarity(a, b), expected, atol=1e-5)


def test_equal_looks_are_compared_once_and_listed_all(monkeypatch):
    looks = [look(scene(0))] * 4 + [look(copies(scene(0))["darker"])] + [look(scene(1))]
    found = find_near_duplicates(looks)
    assert {(pair.first, pair.second) for pair in found.pairs()} == set(itertools.combinations(range(5), 2))
    assert len(set(found.clusters()[:5])) == 1 and found.clusters()[5] != found.clusters()[0]
    monkeypatch.setattr(near_duplicates, "MOST_PAIRS", 3)
    assert len(find_near_duplicates(looks).pairs()) == 3


def test_too_many_pairs_are_said(monkeypatch):
    pictures = [look(each) for each in copies(scene(0)).values()]
    assert find_near_duplicates(pictures).complete
    monkeypatch.setattr(near_duplicates, "MOST_PAIRS", 3)
    assert not find_near_duplicates(pictures).complete
