"""The embedded glyph set: sizes, repeatability, and characters that are really there and really different."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np
import pytest
from PIL import Image, ImageFilter

from oltr.data.curate.glyph_drawing import FONTS, LUMA, fonts_with, glyph_mask
from oltr.data.curate.glyphs import CHARACTERS, GlyphSet, class_name, glyph_classes, make_glyphs
from oltr.data.longtail import pareto_counts
from oltr.errors import UserError

TINY = {
    "known": 6,
    "open_classes": 2,
    "largest": 12,
    "smallest": 3,
    "val_per_class": 2,
    "test_per_class": 3,
    "open_per_class": 4,
}
UPRIGHT = [font for font in FONTS if "Oblique" not in font]
LOOK_ALIKE = 0.88  # c/C, s/S, Α/A and the like reach .95 or more by the measure below
TURNS = (-16, -8, 0, 8, 16)
SIDE = 28
MARGIN = 3


@pytest.fixture(scope="module")
def tiny() -> GlyphSet:
    return make_glyphs(**TINY)


def test_counts_and_splits(tiny: GlyphSet) -> None:
    known, open_names = glyph_classes(6, 2, 0)
    counts = tiny.table.groupby("split").label.value_counts()
    assert [counts["train"][name] for name in known] == pareto_counts(6, 12, 3).tolist()
    for split, names, each in (("val", known, 2), ("test", known, 3), ("open", open_names, 4)):
        assert counts[split].to_dict() == dict.fromkeys(names, each)
    assert tiny.images.shape == (len(tiny.table), 32, 32, 3)
    assert tiny.images.dtype == np.uint8


def test_the_table_names_every_picture(tiny: GlyphSet) -> None:
    assert list(tiny.table.columns) == ["path", "label", "split"]
    assert tiny.table.path.is_unique
    for row in tiny.table.itertuples():
        assert re.fullmatch(rf"{row.split}/{re.escape(str(row.label))}/\d{{5}}\.png", str(row.path))


def test_the_default_set_has_many_medium_and_few_shot_classes() -> None:
    known, open_names = glyph_classes()
    assert (len(known), len(open_names)) == (100, 40)
    for names in (known[:11], known[11:66], known[66:]):
        scripts = {name.split("-")[0] for name in names}
        assert len(scripts) >= 4, "scripts are mixed across class sizes"


def test_known_and_open_never_meet() -> None:
    for seed in range(5):
        known, open_names = glyph_classes(100, 40, seed)
        assert len({*known, *open_names}) == 140


def test_class_names_are_unique_and_file_system_safe() -> None:
    names = [class_name(character) for character in CHARACTERS]
    assert len(set(names)) == len(CHARACTERS) == len(set(CHARACTERS))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    assert class_name("a") == "latin-small-a"


def test_same_seed_same_bytes(tiny: GlyphSet) -> None:
    again = make_glyphs(**TINY)
    np.testing.assert_array_equal(again.images, tiny.images)
    assert again.table.equals(tiny.table)
    other = make_glyphs(**TINY, seed=1)
    assert list(other.table.label.unique()) != list(tiny.table.label.unique())


def test_a_picture_does_not_depend_on_how_many_others_there_are(tiny: GlyphSet) -> None:
    more = make_glyphs(**{**TINY, "known": 8, "open_classes": 0, "largest": 20, "test_per_class": 5})
    row_of = {path: row for row, path in enumerate(more.table.path)}
    shared = [(row, row_of[path]) for row, path in enumerate(tiny.table.path) if path in row_of]
    assert len(shared) > 20
    for mine, theirs in shared:
        np.testing.assert_array_equal(tiny.images[mine], more.images[theirs])


def test_no_two_pictures_are_the_same(tiny: GlyphSet) -> None:
    assert len(np.unique(tiny.images.reshape(len(tiny.images), -1), axis=0)) == len(tiny.images)


@pytest.mark.parametrize("size", [16, 33, 64])
def test_any_size(size: int) -> None:
    made = make_glyphs(**TINY, size=size)
    assert made.images.shape[1:] == (size, size, 3)


def test_every_picture_shows_something() -> None:
    made = make_glyphs(**{**TINY, "known": len(CHARACTERS), "open_classes": 0})
    luma = (made.images @ LUMA).reshape(len(made.images), -1)
    spread = np.percentile(luma, 98, axis=1) - np.percentile(luma, 2, axis=1)
    assert spread.min() > 25


def test_progress_ends_at_the_total(tiny: GlyphSet) -> None:
    seen: list[tuple[int, int]] = []
    make_glyphs(**TINY, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(tiny.table), len(tiny.table))


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 15},
        {"seed": -1},
        {"known": 0},
        {"open_classes": -1},
        {"known": 100, "open_classes": 1000},
        {"largest": 3, "smallest": 5},
        {"smallest": 0},
        {"test_per_class": -1},
    ],
)
def test_bad_parameters_are_user_errors(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError):
        make_glyphs(**{**TINY, **wrong})


def test_every_character_is_in_several_fonts() -> None:
    assert min(len(fonts_with(character)) for character in CHARACTERS) >= 4


def test_no_character_is_drawn_as_the_box_of_a_missing_glyph() -> None:
    for font in FONTS:
        box = glyph_mask("\U0001f9ff", font, 48).tobytes()
        for character in CHARACTERS:
            if font in fonts_with(character):
                assert glyph_mask(character, font, 48).tobytes() != box, unicodedata.name(character)


def test_no_two_characters_look_alike() -> None:
    alike = _resemblance(CHARACTERS)
    pairs = np.argwhere(np.triu(alike, 1) >= LOOK_ALIKE)
    assert not len(pairs), [(CHARACTERS[i], CHARACTERS[j], round(float(alike[i, j]), 2)) for i, j in pairs]


def test_the_measure_knows_look_alikes() -> None:
    for pair in ("cC", "sS", "oО", "AΑ", "AА", "vV", "xX", "zZ", "0O", "EЕ", "pр"):
        assert _resemblance(pair)[0, 1] > LOOK_ALIKE, pair


def _resemblance(characters: str) -> np.ndarray:
    """The highest correlation of any two characters' shapes, over fonts, slight turns and aspect ratios."""
    straight = [_shapes(character, (0,), True) for character in characters]
    turned = [_shapes(character, TURNS, True) for character in characters]
    squared = [_shapes(character, (0,), False) for character in characters]
    return np.maximum(_highest(straight, turned), _highest(squared, squared))


def _highest(left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
    """The best match of each left group of shapes with each right group, either way round."""
    every = np.concatenate(left) @ np.concatenate(right).T
    rows = np.maximum.reduceat(every, _starts(left), axis=0)
    best = np.maximum.reduceat(rows, _starts(right), axis=1)
    return np.maximum(best, best.T)


def _starts(groups: list[np.ndarray]) -> np.ndarray:
    return np.cumsum([0, *(len(group) for group in groups[:-1])])


@lru_cache(maxsize=1024)
def _shapes(character: str, turns: tuple[int, ...], keep_aspect: bool) -> np.ndarray:
    """The character in each upright font and turn, scaled to one size, slightly blurred, as unit vectors."""
    fonts = [font for font in fonts_with(character) if font in UPRIGHT]
    masks = [glyph_mask(character, font, 48).rotate(turn, expand=True) for font in fonts for turn in turns]
    shapes = np.stack([_normalised(mask, keep_aspect) for mask in masks])
    shapes -= shapes.mean(axis=1, keepdims=True)
    return shapes / np.linalg.norm(shapes, axis=1, keepdims=True)


def _normalised(mask: Image.Image, keep_aspect: bool) -> np.ndarray:
    mask = mask.crop(mask.getbbox())
    longest = max(mask.size)
    width, height = (
        (max(1, round(SIDE * side / longest)) for side in mask.size) if keep_aspect else (SIDE, SIDE)
    )
    whole = SIDE + 2 * MARGIN
    canvas = Image.new("L", (whole, whole))
    corner = (whole - width) // 2, (whole - height) // 2
    canvas.paste(mask.resize((width, height), Image.Resampling.BOX), corner)
    return np.asarray(canvas.filter(ImageFilter.GaussianBlur(0.8)), dtype=np.float32).ravel()
