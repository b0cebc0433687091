"""Labels of ImageNet validation images without class folders, from the ground truth in its known forms."""

from __future__ import annotations

import re
from pathlib import Path

from oltr.data.lists import list_lines
from oltr.errors import UserError
from oltr.wording import count, first_few

WNID = re.compile(r"n\d{8}")


def flat_labels(images: list[str], root: Path, year: int, wnids: list[str]) -> dict[str, str]:
    """Image path → wnid for images called ILSVRC{year}_val_NUMBER that lie in one folder.

    Known forms of the ground truth: the development kit's ILSVRC{year}_validation_ground_truth.txt, a class
    number per line, with its meta.mat (or map_clsloc.txt), which says what the numbers mean; the same file
    with wnids instead of numbers; val.txt with `name number`, numbers in the order of the sorted `wnids`;
    LOC_val_solution.csv.
    """
    solution = _find(root, "LOC_val_solution.csv") if year == 2012 else None
    truth = _find(root, f"ILSVRC{year}_validation_ground_truth.txt") or _find(root, "val.txt")
    if solution is not None:
        by_name = _from_solution(solution)
        labels = {image: by_name.get(Path(image).stem, "") for image in images}
    elif truth is not None:
        labels = _from_truth(truth, images, root, year, wnids)
    else:
        raise UserError(
            f"{count(len(images), 'validation image')} without class folders, and no ground truth in {root}.",
            try_this=f"put the development kit's ILSVRC{year}_validation_ground_truth.txt and meta.mat there",
        )
    if unknown := [image for image in images if not labels.get(image)]:
        raise UserError(
            f"The ground truth in {root} lacks {count(len(unknown), 'image')}: {first_few(unknown)}."
        )
    return labels


def _from_solution(file: Path) -> dict[str, str]:
    """Lines such as `ILSVRC2012_val_00048981,n03995372 85 1 499 272`."""
    parted = (line.partition(",") for _, line in list_lines(file))
    return {name: " ".join(prediction.split()[:1]) for name, _, prediction in parted}


def _from_truth(file: Path, images: list[str], root: Path, year: int, wnids: list[str]) -> dict[str, str]:
    lines = [line.split() for _, line in list_lines(file)]
    if all(len(parts) == 2 for parts in lines):
        by_name = {Path(name).stem: label for name, label in lines}
        given = {image: by_name.get(Path(image).stem, "") for image in images}
        meaning = {str(number): wnid for number, wnid in enumerate(wnids)}
    else:
        given = {image: _line_of(image, [parts[0] for parts in lines]) for image in images}
        numbers = any(label and not WNID.fullmatch(label) for label in given.values())
        meaning = _class_numbers(root, year, file) if numbers else {}
    return {image: meaning.get(label, label) for image, label in given.items()}


def _line_of(image: str, labels: list[str]) -> str:
    """The label on the line that the image's number names."""
    number = re.search(r"(\d+)$", Path(image).stem)
    return labels[int(number[1]) - 1] if number and 0 < int(number[1]) <= len(labels) else ""


def _class_numbers(root: Path, year: int, truth: Path) -> dict[str, str]:
    """Class number of the development kit → wnid. The numbers do not follow the order of the wnids."""
    if meta := _find(root, "meta.mat"):
        from scipy.io import loadmat

        try:
            synsets = loadmat(meta, squeeze_me=True)["synsets"]
            return {str(n): str(w) for n, w in zip(synsets[f"ILSVRC{year}_ID"], synsets["WNID"], strict=True)}
        except Exception as error:  # a file that is no such table fails in many ways
            raise UserError(f"{meta} is not the meta.mat of ILSVRC{year}: {error}.") from None
    if table := _find(root, "map_clsloc.txt"):
        lines = [line.split() for _, line in list_lines(table)]
        return {parts[1]: parts[0] for parts in lines if len(parts) > 1}
    raise UserError(
        f"{truth.name} has class numbers, and nothing says which class each of them is.",
        "They do not follow the order of the class folders.",
        f"put meta.mat of the ILSVRC{year} development kit into {root}",
    )


def _find(root: Path, name: str) -> Path | None:
    """The file in the root, its val folder, a development kit beside them, or a folder above."""
    kits = sorted(path / "data" for path in root.glob("*devkit*"))
    for folder in (root, root / "val", *kits, root / "data", root.parent, root.parent.parent):
        if (folder / name).is_file():
            return folder / name
    return None
