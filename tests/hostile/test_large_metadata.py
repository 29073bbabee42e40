"""Reads of large valid metadata take time proportional to its size, and so do reads of metadata that only looks large.

The tests measure the CPU time of this process, so that a busy machine counts little.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.consistent_damage import avro_file, avro_records, update_recorded_sizes

import paimon
from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.errors import CorruptTable
from paimon.domain.schema.table_schema import schema_from_json
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import BigIntType, DataField
from paimon.operations.read.projection import resolve_paths, select_fields

SHARES = [0.25, pytest.param(1.0, marks=pytest.mark.nightly)]
"""Parts of the largest sizes. With quadratic time the smaller part exceeds its share of the time, too."""
COLUMNS = 200_000
ENTRIES = 300_000
TYPES = ("DECIMAL(10, 2) NOT NULL", "STRING", "BIGINT", "TIMESTAMP(3)")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.process_time()
    yield
    assert time.process_time() - started < seconds


@pytest.fixture
def root(tmp_path: Path) -> Path:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, v STRING", options={"write-only": "true"})
    table.write({"k": [1, 2, 3], "v": ["a", "b", "c"]})
    return tmp_path / "d.db" / "t"


def wide_schema(columns: int) -> bytes:
    added = [{"id": i, "name": f"column_{i}", "type": TYPES[i % 4]} for i in range(2, columns)]
    fields = [{"id": 0, "name": "k", "type": "INT"}, {"id": 1, "name": "v", "type": "STRING"}, *added]
    options = {f"fields.column_{i}.default-value": "1" for i in range(4, columns, 40)}
    members = {"version": 3, "id": 0, "fields": fields, "highestFieldId": columns, "options": options}
    return json.dumps({**members, "partitionKeys": [], "primaryKeys": [], "timeMillis": 0}, indent=2).encode()


@pytest.mark.nightly
@pytest.mark.slow("a schema at the limit of its size")
@pytest.mark.parametrize("share", SHARES)
def test_a_schema_of_200_000_columns(root: Path, share: float) -> None:
    columns = int(share * COLUMNS)
    data = wide_schema(columns)
    (root / "schema" / "schema-0").write_bytes(data.replace(b" NOT NULL", b""))
    with within(15 * share):
        schema = schema_from_json(data, "f")
    assert len(schema.names) == columns
    with within(25 * share):
        table = paimon.open_table(root)
        found = table.scan().to_arrow()
    assert (found.num_rows, found.num_columns) == (3, columns)
    with within(5 * share):
        assert table.scan(columns=["k", f"column_{columns - 1}"]).to_arrow().num_columns == 2


@pytest.mark.slow("compares two sizes")
def test_work_on_columns_grows_with_their_number() -> None:
    """Twice the columns take about twice the time. With quadratic time the larger table would take 64 times as long."""
    works: dict[str, Callable[[tuple[DataField, ...], list[str]], object]] = {
        "paths": resolve_paths,
        "wanted": select_fields,
        "conformed": lambda fields, names: conform_to_fields(_one_row(fields), fields, "t"),
    }
    for name, work in works.items():
        small = max(0.02, min(_seconds(work, 5_000) for _ in range(3)))  # the first time loads modules
        assert any(_seconds(work, 40_000) < 30 * small for _ in range(3)), name


def _one_row(fields: tuple[DataField, ...]) -> pa.Table:
    return pa.Table.from_arrays([pa.array([1], pa.int64())] * len(fields), schema=arrow_schema(fields))


def _seconds(work: Callable[[Any, Any], object], columns: int) -> float:
    fields = tuple(DataField(i, f"column_{i}", BigIntType()) for i in range(columns))
    names = [f.name for f in fields]
    started = time.process_time()
    work(fields, names)
    return time.process_time() - started


def one_list(root: Path) -> Path:
    return next(p for p in sorted(root.glob("manifest/manifest-list-*")) if avro_records(p.read_bytes())[1])


@pytest.mark.slow("a manifest at the limit of its size")
@pytest.mark.parametrize("share", SHARES)
def test_a_manifest_of_300_000_entries(root: Path, share: float) -> None:
    count = int(share * ENTRIES)
    path = next(p for p in root.glob("manifest/manifest-*") if "list" not in p.name)
    schema, (entry,) = avro_records(path.read_bytes())
    names = (f"data-{i:032x}-0.parquet" for i in range(count - 1))
    entries = [{**entry, "_FILE": {**entry["_FILE"], "_FILE_NAME": name}} for name in names]
    path.write_bytes(avro_file(schema, [entry, *entries]))
    list_path = one_list(root)
    schema, (meta,) = avro_records(list_path.read_bytes())
    list_path.write_bytes(avro_file(schema, [{**meta, "_NUM_ADDED_FILES": count}]))
    update_recorded_sizes(root)
    with within(15 * share):
        plan = paimon.open_table(root).scan().plan()
    assert sum(len(split.files) for split in plan.splits) == count
    with within(5 * share):
        assert not paimon.open_table(root).scan(where="k = 77").plan().splits


@pytest.mark.nightly
def test_a_list_that_names_one_manifest_100_000_times(root: Path) -> None:
    """Without the limit, each entry would read and decode the manifest again: 15 s for a list of some kilobytes."""
    path = one_list(root)
    schema, records = avro_records(path.read_bytes())
    path.write_bytes(avro_file(schema, records * 100_000))
    update_recorded_sizes(root)
    with within(6), pytest.raises(CorruptTable, match=r"names the manifest 'manifest-.*' twice") as caught:
        paimon.open_table(root).scan().to_arrow()
    assert caught.value.path == str(path)
