"""predictions.csv, and the same rows as parquet or JSON."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import pandas as pd

from oltr.files import atomic_write
from oltr.runs.predictions.formats import Predictions

TOGETHER = 65536  # rows of parquet


def write_table(predictions: Predictions, out: Path) -> None:
    """By the ending of its name; what is a list or a mapping is JSON within CSV and parquet."""
    kinds = {".csv": _write_csv, ".parquet": _write_parquet, ".json": _write_json}
    with atomic_write(out) as part:
        kinds[out.suffix.lower()](predictions, part)


def _write_csv(predictions: Predictions, part: Path) -> None:
    with part.open("w", encoding="utf-8", newline="") as file:
        plain, quoted = (
            csv.writer(file, lineterminator="\n", quoting=q) for q in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )
        plain.writerow(predictions.columns)
        for rows in predictions.batches():
            # Python before 3.13 leaves a carriage return in a name unquoted, which then ends the line.
            odd = any("\r" in row[0] for row in rows)
            (quoted if odd else plain).writerows(rows)


def _write_parquet(predictions: Predictions, part: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = predictions.columns
    rows = itertools.chain.from_iterable(predictions.batches())
    kinds = {"object": pa.string(), "float64": pa.float64(), "boolean": pa.bool_()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(part, schema) as writer:
        while some := list(itertools.islice(rows, TOGETHER)):
            frame = pd.DataFrame(some, columns=list(columns)).astype(columns)
            writer.write_table(pa.Table.from_pandas(frame, schema, preserve_index=False))


def _write_json(predictions: Predictions, part: Path) -> None:
    with part.open("w", encoding="utf-8") as file:
        file.write("[")
        for number, row in enumerate(predictions.rows()):
            file.write((",\n" if number else "\n") + json.dumps(row, ensure_ascii=False))
        file.write("\n]\n")
