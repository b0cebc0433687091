"""`oltr weights`: which pretrained weights are at hand."""

from __future__ import annotations

from typing import Annotated, Any

import tyro

from oltr.cli.options import Json, print_json

USES = """
one of these             oltr train SOURCE --weights NAME
a file                   oltr train SOURCE --backbone NAME --weights FILE   (.safetensors, .pth)
the paper's own          oltr import FILE --out RUN   (a checkpoint of its released code, as a run)
timm's, downloaded       oltr train SOURCE --backbone NAME --weights pretrained
names that timm has      oltr weights --timm 'resnet*'"""


def weights(
    timm: Annotated[str | None, tyro.conf.arg(metavar="PATTERN")] = None, as_json: Json = False
) -> None:
    """The pretrained weights that training can start from: installed ones, and how to get others.

    Args:
        timm: list timm's networks that have weights to download and whose name is like this, e.g. 'resnet*'
    """
    if timm is not None:
        names = _timm_names(timm)
        if as_json:
            print_json({"timm": names})
        else:
            print("\n".join(names))
        return

    import dataclasses

    from oltr.packaged_weights import KNOWN, default_weights, install_command, packaged

    found, default = packaged(), default_weights()
    installed = {each.name for each in found}
    others = {each.name: install_command(each) for each in KNOWN if each.name not in installed}
    if as_json:
        listed = [dataclasses.asdict(each) | {"path": str(each.path)} for each in found]
        print_json({"packaged": listed, "default": default and default.name, "installable": others})
        return
    if found:
        head = ("name", "backbone", "ImageNet top-1", "MB", "licence", "package")
        rows = [
            (
                w.name,
                w.backbone,
                f"{w.top1:.1f} %" if w.top1 else "–",
                f"{w.size_mb:.1f}",
                w.license,
                w.package,
            )
            for w in found
        ]
        _print_table([head, *rows])
        print(f"default: {default.name if default else 'none'}")
    else:
        print("No package with pretrained weights is installed.")
    for name, command in others.items():
        print(f"{name:<24} {command}")
    print(USES)


def _timm_names(pattern: str) -> list[str]:
    import timm

    from oltr.registry import unknown_name

    names: list[str] = timm.list_pretrained(pattern)
    if not names:
        networks = {name.partition(".")[0] for name in timm.list_pretrained()}
        raise unknown_name("network of timm with weights", pattern, networks)
    return names


def _print_table(rows: list[tuple[Any, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
