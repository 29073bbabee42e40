"""Read a Paimon table without the library: an independent reader, written from `docs/specification` alone.

In the folder `examples`:

    python -m reader.reader PATH [--snapshot ID | --tag NAME] [--branch NAME]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from reader.data_files import arrow_type, read_file
from reader.metadata import (
    Branch,
    Json,
    Refused,
    decode_row,
    live_entries,
    partition_path,
    read_records,
    read_vector,
)

Integers = np.ndarray[Any, Any]

SYSTEM = [
    {"id": 2147483646, "name": "_SEQUENCE_NUMBER", "type": "BIGINT"},
    {"id": 2147483645, "name": "_VALUE_KIND", "type": "TINYINT"},
]
IGNORE_DELETE = [f"{engine}ignore-delete" for engine in ("", "deduplicate.", "partial-update.", "first-row.")]
REFUSED = ("chain-table.enabled", "postpone.merge-on-read", "sequence.snapshot-ordering", "scan.primary-branch")


def read_table(
    path: str | Path, snapshot: int | None = None, tag: str | None = None, branch: str | None = None
) -> pa.Table:
    """Return the rows of a table: of the newest snapshot, of one by its number, or of a tag."""
    own = Branch(Path(path), branch)
    newest = own.read("schema", "schema-")
    if newest is None:
        raise Refused(f"no table at {path}" + (f", or no branch {branch}" if branch else ""))
    options = newest["options"]
    found = own.read("tag", "tag-", tag) if tag else own.read("snapshot", "snapshot-", snapshot)
    is_old = found is not None and (snapshot is not None or tag is not None)
    schema = own.read("schema", "schema-", found["schemaId"]) if is_old else newest
    tables, partitions = read_snapshot(own, found, schema, options, set())
    other = options.get("scan.fallback-branch")
    if other and branch is None:
        fallback = Branch(own.root, other)
        newest, found = (
            fallback.read("schema", "schema-"),
            find_snapshot(fallback, found["timeMillis"] if is_old else None),
        )
        tables += read_snapshot(fallback, found, newest, newest["options"], partitions)[0]
    empty = pa.schema([(field["name"], arrow_type(field["type"])) for field in schema["fields"]]).empty_table()
    return pa.concat_tables([empty, *tables])


def find_snapshot(branch: Branch, time_millis: int | None) -> Json | None:
    """Return the newest snapshot that is not later than a time."""
    found = branch.read("snapshot", "snapshot-")
    while found is not None and time_millis is not None and found["timeMillis"] > time_millis:
        found = branch.read("snapshot", "snapshot-", found["id"] - 1) if found["id"] > 1 else None
    return found


def read_snapshot(
    branch: Branch, snapshot: Json | None, schema: Json, options: Json, without: set[bytes]
) -> tuple[list[pa.Table], set[bytes]]:
    """Return the rows of each bucket but those of some partitions, and all partitions that have files."""
    refused = [name for name in REFUSED if options.get(name, "false") != "false"]
    refused += [name for name in options if name.endswith(".default-value")]
    if refused or options.get("type", "table") not in ("table", "materialized-table"):
        raise Refused(f"option {refused[0] if refused else 'type'}")
    entries = [] if snapshot is None else live_entries(branch, snapshot)
    hides = bool(schema["primaryKeys"]) and (
        (is_set(options, "deletion-vectors.enabled") and not is_set(options, "deletion-vectors.merge-on-read"))
        or options.get("merge-engine") == "first-row"
    )
    buckets: dict[tuple[bytes, int], list[Json]] = {}
    for entry in entries:
        key, file = (entry["_PARTITION"], entry["_BUCKET"]), entry["_FILE"]
        if key[0] not in without and key[1] >= 0 and not (hides and file["_LEVEL"] == 0):
            buckets.setdefault(key, []).append(file)
    reader = BucketReader(branch, snapshot, schema, options)
    return [reader.read(*key, files) for key, files in buckets.items()], {entry["_PARTITION"] for entry in entries}


def is_set(options: Json, *names: str) -> bool:
    """Return whether one of these options is true."""
    return any(options.get(name, "false").lower() == "true" for name in names)


class BucketReader:
    """Reads the rows of buckets of one snapshot."""

    def __init__(self, branch: Branch, snapshot: Json | None, schema: Json, options: Json) -> None:
        self.branch, self.schema, self.options = branch, schema, options
        self.schemas: dict[int, Json] = {}
        self.vectors: dict[str, tuple[Json, int]] = {}
        name = snapshot and snapshot.get("indexManifest")
        for entry in read_records(branch.root / "manifest" / name, 1) if name else []:
            if entry["_INDEX_TYPE"] == "DELETION_VECTORS":
                self.vectors |= {vector["f0"]: (entry, vector["f1"]) for vector in entry["_DELETIONS_VECTORS_RANGES"]}

    def read(self, partition: bytes, number: int, files: list[Json]) -> pa.Table:
        """Return the rows of a bucket, merged if the table has a primary key."""
        keys, types = self.schema["partitionKeys"], {field["name"]: field["type"] for field in self.schema["fields"]}
        values = decode_row(partition, [types[key] for key in keys])
        folder = self.branch.root / self.options.get("data-file.path-directory", "")
        folder = folder / partition_path(self.schema, self.options, values) / f"bucket-{number}"
        wanted = [field for field in self.schema["fields"] if field["name"] not in keys]
        if self.schema["primaryKeys"]:
            stored = [self.read_one(folder, file, [*wanted, *SYSTEM], file) for file in files]
            rows = merge(pa.concat_tables(stored), self.schema, self.options)
        else:
            groups = group_by_row_id(files) if is_set(self.options, "data-evolution.enabled") else [[f] for f in files]
            rows = pa.concat_tables([self.join(folder, group, wanted) for group in groups])
        for key, value in zip(keys, values, strict=True):
            rows = rows.append_column(key, repeat(value, rows.num_rows, arrow_type(types[key])))
        return rows.select(list(types))

    def read_one(self, folder: Path, file: Json, wanted: list[Json], marked: Json) -> pa.Table:
        """Return the rows of a file that the deletion vector of the file `marked` leaves."""
        path = Path(file.get("_EXTERNAL_PATH") or folder / file["_FILE_NAME"])
        table = read_file(path, [*self.load_schema(file["_SCHEMA_ID"])["fields"], *SYSTEM], wanted)
        if self.schema["primaryKeys"]:
            table = table.append_column("_LEVEL", repeat(file["_LEVEL"], table.num_rows, pa.int32()))
        if marked["_FILE_NAME"] not in self.vectors:
            return table
        entry, start = self.vectors[marked["_FILE_NAME"]]
        home = folder if is_set(self.options, "index-file-in-data-file-dir") else self.branch.root / "index"
        data = Path(entry.get("_EXTERNAL_PATH") or home / entry["_FILE_NAME"]).read_bytes()
        live = np.ones(table.num_rows, bool)
        live[read_vector(data, start)] = False
        return table.filter(pa.array(live))

    def load_schema(self, number: int) -> Json:
        """Return a schema of the branch."""
        if number not in self.schemas:
            self.schemas[number] = self.branch.read("schema", "schema-", number)
        return self.schemas[number]

    def join(self, folder: Path, files: list[Json], wanted: list[Json]) -> pa.Table:
        """Return the rows of files that have columns of the same rows; the newest is first."""
        columns: dict[str, Any] = {}
        for file in files:
            ids = {field["name"]: field["id"] for field in self.load_schema(file["_SCHEMA_ID"])["fields"]}
            written = {ids[name] for name in file.get("_WRITE_COLS") or ids if name in ids}
            mine = [field for field in wanted if field["id"] in written and field["name"] not in columns]
            table = self.read_one(folder, file, mine, files[-1])
            columns |= {name: table[name] for name in table.column_names}
        count = len(next(iter(columns.values())))
        return pa.table({f["name"]: columns.get(f["name"], pa.nulls(count, arrow_type(f["type"]))) for f in wanted})


def group_by_row_id(files: Iterable[Json]) -> list[list[Json]]:
    """Return the files with the same row ids, the newest first; a file without row ids is alone."""
    groups: dict[object, list[Json]] = {}
    for file in sorted(files, key=lambda file: -file["_MAX_SEQUENCE_NUMBER"]):
        first = file["_FIRST_ROW_ID"]
        groups.setdefault(file["_FILE_NAME"] if first is None else first, []).append(file)
    return list(groups.values())


def repeat(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    """Return a column with a value of a binary row."""
    if pa.types.is_timestamp(kind) and value is not None:
        value = value // {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
    raw = (pa.int32() if kind.bit_width == 32 else pa.int64()) if pa.types.is_temporal(kind) else kind
    return pa.repeat(pa.scalar(value, raw), count).cast(kind)


# Merging: rows are sorted by key and age, and each column of a result comes from one row


def merge(rows: pa.Table, schema: Json, options: Json) -> pa.Table:
    """Return one row for each key, without retracts."""
    fields = [field["name"] for field in schema["fields"] if field["name"] not in schema["partitionKeys"]]
    engine = options.get("merge-engine", "deduplicate")
    ranks = np.stack([rank(rows[key], "ascending") for key in schema["primaryKeys"] if key in fields], 1)
    groups = np.unique(ranks, axis=0, return_inverse=True)[1].reshape(-1)
    kinds, levels = (np.asarray(rows[name]) for name in ("_VALUE_KIND", "_LEVEL"))
    adds = (kinds == 0) | (kinds == 2)
    sequence = [name.strip() for name in options.get("sequence.field", "").split(",") if name.strip()]
    ages = [rank(rows[name], options.get("sequence.field.sort-order", "ascending")) for name in sequence]
    order = np.lexsort((adds, np.asarray(rows["_SEQUENCE_NUMBER"]), *reversed(ages), groups))
    needs_lookup = options.get("changelog-producer") == "lookup" or engine == "first-row"
    if needs_lookup or is_set(options, "force-lookup", "deletion-vectors.enabled"):
        lowest = np.full(len(groups), 1 << 30)
        np.minimum.at(lowest, groups, np.where(levels > 0, levels, 1 << 30))
        order = order[((levels <= 0) | (levels == lowest[groups]))[order]]
    if is_set(options, *IGNORE_DELETE):
        order = order[adds[order]]
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1)) if len(order) else [0]
    found = [order[start:end] for start, end in pairwise(starts)]
    if engine == "first-row":
        found = [group[:1] for group in found]
    elif engine == "deduplicate":
        found = [group[-1:] for group in found]
    elif any(option.endswith(".sequence-group") for option in options):
        raise Refused("sequence groups")
    elif engine not in ("partial-update", "aggregation"):
        raise Refused(f"merge engine {engine}")
    elif not all(adds[group].all() for group in found if len(group) > 1):
        raise Refused(f"retracts with merge engine {engine}")
    found = [group for group in found if adds[group[-1]]]
    settled = {*schema["primaryKeys"], *sequence, *(fields if engine in ("deduplicate", "first-row") else ())}
    return pa.table({name: merge_column(rows[name], found, choose(name, settled, options)) for name in fields})


def rank(column: pa.ChunkedArray, direction: str) -> Integers:
    """Return numbers with the order of the values, nulls first in both directions."""
    values = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    dense = pc.RankOptions([("", direction, "at_start")], tiebreaker="dense")
    return np.asarray(pc.rank(values.combine_chunks(), options=dense)).astype(np.int64)


def choose(name: str, settled: set[str], options: Json) -> str:
    """Return the aggregate function of a column."""
    default = options.get("fields.default-aggregate-function", "last_non_null_value")
    return "last_value" if name in settled else str(options.get(f"fields.{name}.aggregate-function", default))


def merge_column(column: pa.ChunkedArray, groups: list[Integers], function: str) -> pa.Array:
    """Return the aggregate of each group of rows, which are in the order of merging."""
    values, known = column.combine_chunks(), np.asarray(column.is_valid())
    if function not in ("last_value", "first_value"):
        groups = [group[known[group]] for group in groups]
    if function == "sum":
        sums = [pc.sum(values.take(pa.array(group, pa.int64()))).as_py() for group in groups]
        return pa.array(sums, values.type)
    if function in ("max", "min"):
        ranks = rank(column, "ascending")
        groups = [group[np.argsort(ranks[group] * (1 if function == "max" else -1))] for group in groups]
    elif function not in ("last_value", "last_non_null_value", "first_value", "first_non_null_value"):
        raise Refused(f"aggregate function {function}")
    place = 0 if function.startswith("first") else -1
    return values.take(pa.array([int(group[place]) if len(group) else None for group in groups], pa.int64()))


def main() -> None:
    """Print the rows of a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--snapshot", type=int)
    parser.add_argument("--tag")
    parser.add_argument("--branch")
    for row in read_table(**vars(parser.parse_args())).to_pylist():
        print(row)


if __name__ == "__main__":
    main()
