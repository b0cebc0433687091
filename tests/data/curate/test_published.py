"""Sets that are known by their facts."""

from oltr.data.curate.published import recognised


def facts(train, classes, largest, smallest):
    return {
        "images": {"train": train, "val": 1, "test": 1},
        "classes": classes,
        "max": largest,
        "min": smallest,
    }


def test_a_published_set_is_known_by_its_training_images():
    places = recognised(facts(62_500, 365, 4980, 5))
    assert places is not None and "184.5K" in places.remarks[0]
    assert recognised(facts(115_846, 1000, 1280, 5)).title == "ImageNet-LT"
    assert recognised(facts(115_847, 1000, 1280, 5)) is None
