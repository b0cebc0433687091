"""Your own photos: train, evaluate, predict, save.

    python examples/01_own_photos.py PHOTOS [RUN]

PHOTOS has one folder of images per class (at least two classes); images that belong to no class can be in
PHOTOS/unknown. RUN is the folder for the trained model, runs/photos by default.
Without arguments a few hundred rendered characters are used instead of photos, in a temporary folder: about
half a minute on one CPU core.
"""

import sys
import tempfile
from pathlib import Path

from oltr import Recognizer


def main(photos: Path, run: Path, **options) -> None:
    recognizer = Recognizer(unknown_rate=0.05, **options).fit(photos)
    print(recognizer.evaluate().table().text())

    # All images in the folder and its subfolders; `unknown` is True for rejected images.
    predictions = recognizer.predict(photos)
    strangest = predictions.sort_values("unknown_score", ascending=False).head(10)
    strangest = strangest.assign(path=[Path(path).relative_to(photos) for path in strangest["path"]])
    print("\nThe least familiar images:")
    print(strangest[["path", "label", "probability", "unknown", "second_label"]].to_string(index=False))

    recognizer.save(run)
    again = Recognizer.load(run)
    assert again.predict(photos).equals(predictions)
    predictions.to_csv(run / "predictions.csv", index=False)
    print(f"\nmodel and predictions in {run}")


def draw_photos(folder: Path) -> Path:
    """Twelve characters in class folders, 150 images down to 15, and four more under unknown/."""
    from PIL import Image

    from oltr.data.curate.glyph_drawing import Variety
    from oltr.data.curate.glyphs import make_glyphs

    easy = Variety(light_ink=0.0, contrast=(0.5, 0.8), texture=(0.0, 0.2), scratches=0)
    counts = {"largest": 150, "smallest": 15, "val_per_class": 0, "test_per_class": 0, "open_per_class": 10}
    glyphs = make_glyphs(known=12, open_classes=4, **counts, variety=easy)
    for pixels, path in zip(glyphs.images, glyphs.table["path"], strict=True):
        split, name, file = Path(path).parts
        home = folder / name if split == "train" else folder / "unknown" / name
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(home / file)
    return folder


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "runs/photos"))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            # Characters are small and must not be flipped; the recipe `glyphs` has suitable settings.
            home = Path(temporary)
            main(draw_photos(home / "photos"), home / "run", recipe="glyphs", epochs=(20, 10))
