"""Features of images kept in a file, found again by the images' content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from oltr.console import console
from oltr.data.images import read_bytes
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.files import atomic_write

KEY = 16  # bytes of an image's digest


class FeatureCache:
    """One file per backbone, weights and view of the images; a row for each image that was ever seen.

    What cannot be read is taken as empty and written anew: the cache saves time and holds nothing else.
    """

    def __init__(self, path: Path, dims: int):
        self.path, self.dims, self.writable = path, dims, True
        self.rows: dict[bytes, int] = {}
        self.values = torch.empty(0, dims)
        try:
            kept = load_file(path)
            keys, values = kept["keys"].numpy(), kept["values"]
            if values.shape == (len(keys), dims) and keys.shape[1] == KEY:
                self.rows = {key.tobytes(): row for row, key in enumerate(keys)}
                self.values = values
        except (OSError, SafetensorError, KeyError, IndexError):
            pass

    def __contains__(self, key: bytes) -> bool:
        return key in self.rows

    def __getitem__(self, keys: Sequence[bytes]) -> Tensor:
        """The features of images that are all here, N×R."""
        return self.values[torch.tensor([self.rows[key] for key in keys], dtype=torch.int64)]

    def add(self, keys: Sequence[bytes], values: Tensor, write: bool = True) -> None:
        """Keep the features of further images."""
        self.rows |= {key: len(self.values) + number for number, key in enumerate(keys)}
        self.values = torch.cat([self.values, values])
        if write and self.writable:
            table = np.frombuffer(b"".join(self.rows), np.uint8).reshape(-1, KEY).copy()
            values = self.values[list(self.rows.values())]  # of equal images one row is kept
            try:
                with atomic_write(self.path) as part:
                    save_file({"keys": torch.from_numpy(table), "values": values}, part)
            except UserError as problem:
                self.writable = False
                console.warn(f"features are not kept for other runs: {problem.what}")


def cache_name(backbone: str, network: nn.Module, view: dict[str, Any]) -> str:
    """A file name that depends on all that the features do, apart from the images."""
    digest = hashlib.blake2b(json.dumps(view, sort_keys=True).encode(), digest_size=8)
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return f"{backbone.replace(':', '.').replace('/', '.')}-{digest.hexdigest()}.safetensors"


def image_keys(manifest: Manifest, rows: Sequence[int]) -> list[bytes] | None:
    """A digest of each image: of its file's bytes or its pixels in a pack; None for datasets."""
    if manifest.items is not None:
        return None
    if manifest.pack is not None:
        images = open_pack(manifest.pack).images
        return [_digest(np.ascontiguousarray(images[row]).tobytes()) for row in rows]
    paths = manifest.table["path"].to_numpy()

    def of_file(row: int) -> bytes:
        path = manifest.root / paths[row]
        try:
            return _digest(read_bytes(path))
        except OSError:  # told when it is decoded
            return _digest(str(path).encode())

    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(of_file, rows))


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=KEY).digest()
