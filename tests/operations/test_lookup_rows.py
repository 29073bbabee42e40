"""Point lookups: the rows that a scan returns for the keys, in the order of the keys, from few files."""

from __future__ import annotations

import io
import re
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import create_table

import paimon
from paimon.adapters.cache import LruCache
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, StorageError
from paimon.operations import lookup_rows
from paimon.operations.data_files import cached_blocks
from paimon.operations.data_files.cached_blocks import CachedBlockFiles
from paimon.table import Table

KEYED = "id BIGINT NOT NULL, day STRING NOT NULL, name STRING NOT NULL, v BIGINT, w STRING"
BLOOM = {
    "file-index.bloom-filter.columns": "id,name", "file-index.bloom-filter.id.items": "50",
    "file-index.bloom-filter.name.items": "50",
}  # fmt: skip
IN_FILES = {**BLOOM, "file-index.in-manifest-threshold": "1 b"}
IN_MANIFEST = {**BLOOM, "file-index.in-manifest-threshold": "1 mb"}
ENGINES: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "deletion vectors": {"deletion-vectors.enabled": "true", "write-only": "false"},
    "sequence field": {"sequence.field": "v"},
}


def make_table(options: Mapping[str, str], columns: str = KEYED, **layout: Any) -> Table:
    keys = layout.pop("primary_keys", ["id", "name"])
    given_options = {"bucket": "2", "write-only": "true", "write.missing-columns": "null", **options}
    return create_table(f"memory://{uuid.uuid4().hex}", columns, primary_keys=keys, options=given_options, **layout)


def row(number: int, value: int | None = None, kind: str = "+I") -> dict[str, Any]:
    return {"id": number % 7, "day": f"d{number % 2}", "name": f"n{number % 3}", "v": value, "w": str(value), "k": kind}


def select_by_scan(table: Table, keys: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    rows = {tuple(r[k] for k in table.primary_keys): r for r in table.to_arrow().to_pylist()}
    return [rows[key] for key in keys if key in rows]


@settings(max_examples=60)
@given(
    engine=st.sampled_from(list(ENGINES)),
    bucket=st.sampled_from(["1", "3", "-1"]),
    file_format=st.sampled_from(["parquet", "orc", "avro"]),
    indexes=st.sampled_from([{}, IN_FILES, IN_MANIFEST]),
    partitioned=st.booleans(),
    writes=st.lists(
        st.lists(st.tuples(st.integers(0, 41), st.integers(0, 9), st.sampled_from(["+I", "+I", "-D"])), max_size=12),
        min_size=1,
        max_size=4,
    ),
    asked=st.lists(st.integers(0, 60), max_size=12),
    compacts=st.booleans(),
)
def test_lookups_return_the_rows_of_a_scan(
    engine: str,
    bucket: str,
    file_format: str,
    indexes: Mapping[str, str],
    partitioned: bool,
    writes: list[list[tuple[int, int, str]]],
    asked: list[int],
    compacts: bool,
) -> None:
    options = {"bucket": bucket, "file.format": file_format, **indexes, **ENGINES[engine]}
    keys = ["name", "day", "id"] if partitioned else ["id", "name"]
    table = make_table(options, primary_keys=keys, partition_keys=["day"] if partitioned else [])
    for written in writes:
        allowed = [(n, v, "+I" if engine == "aggregation" else kind) for n, v, kind in written]
        if allowed:
            table.write([row(*one) for one in allowed], kind_column="k")
    if compacts:
        table.compact()
    wanted = [tuple(row(number)[key] for key in keys) for number in asked]
    assert table.lookup(wanted).to_pylist() == select_by_scan(table, wanted)


def test_missing_keys_are_left_out_or_rows_of_nulls_and_keys_repeat() -> None:
    table = make_table({}, "id BIGINT NOT NULL, v STRING NOT NULL", primary_keys=["id"])
    assert table.lookup([1]).num_rows == 0  # no snapshot
    table.write([{"id": i, "v": f"v{i}"} for i in range(9)])
    assert table.lookup([7, 99, 3, 7])["v"].to_pylist() == ["v7", "v3", "v7"]
    found = table.lookup([7, 99, 3, 7], ["v", "id"], keep_missing=True)
    assert found.to_pylist() == [
        {"v": "v7", "id": 7}, {"v": None, "id": None}, {"v": "v3", "id": 3}, {"v": "v7", "id": 7},
    ]  # fmt: skip
    assert found.schema.field("v").nullable
    assert table.lookup([]).schema == table.lookup([99]).schema == table.arrow_schema
    assert table.lookup([1, 2, 99], columns=[]).num_rows == 2


@pytest.mark.parametrize(
    "keys",
    [
        [(3, "n0"), (1, "n1")],
        [{"id": 3, "name": "n0"}, {"name": "n1", "id": 1}],
        {"name": ["n0", "n1"], "id": [3, 1]},
        pa.table({"name": pa.array(["n0", "n1"], pa.large_string()), "id": pa.array([3, 1], pa.int8())}),
        pa.record_batch({"id": [3, 1], "name": ["n0", "n1"]}),
    ],
)
def test_keys_have_many_forms(keys: Any) -> None:
    table = make_table({})
    table.write([{"id": i, "day": "d", "name": f"n{i % 3}", "v": i} for i in range(6)])
    assert table.lookup(keys, ["v"])["v"].to_pylist() == [3, 1]


def test_a_key_of_one_column_is_a_value() -> None:
    table = make_table({}, "id BIGINT NOT NULL, v INT", primary_keys=["id"])
    table.write([{"id": i, "v": -i} for i in range(6)])
    for keys in ([4, 2], (4, 2), [(4,), (2,)], pa.array([4, 2]), pa.chunked_array([[4], [2]])):
        assert table.lookup(keys, ["v"])["v"].to_pylist() == [-4, -2]
    assert table.lookup(range(2))["v"].to_pylist() == [0, -1]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([1], "1 is not a key"),
        ([(1, "a", 2)], "is not a key"),
        ([{"id": 1, "name": "a"}, (2, "b")], "is not a key"),
        ("abc", "are 'abc', not a list"),
        (5, "are 5, not a list"),
        ([(1, None)], "'name' is NOT NULL"),
        ([("x", "a")], "Column 'id'"),
        ([(1.5, "a")], "fraction"),
        ([{"id": 1}], "name STRING NOT NULL"),
        ([{"id": 1, "name": "a", "v": 3}], "no such column"),
        (object(), "cannot be converted"),
    ],
)
def test_wrong_keys_are_refused(keys: Any, message: str) -> None:
    table = make_table({})
    table.write([{"id": 1, "day": "d", "name": "a", "v": 1}])
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        table.lookup(keys)


def test_tables_and_columns_that_cannot_be_looked_up_are_refused() -> None:
    plain = create_table(f"memory://{uuid.uuid4().hex}", "id INT")
    with pytest.raises(InvalidRequest, match="no primary key"):
        plain.lookup([1])
    table = make_table({})
    with pytest.raises(InvalidRequest, match="does not exist"):
        table.lookup([(1, "a")], columns=["nam"])
    table.write([{"id": 1, "day": "d", "name": "a", "v": 1}])
    with pytest.raises(InvalidRequest, match="incremental read"):
        table.with_options({"incremental-between": "0,1"}).lookup([(1, "a")])


def test_lookups_travel_in_time_and_see_new_snapshots() -> None:
    table = make_table({}, "id BIGINT NOT NULL, v INT", primary_keys=["id"])
    for value in (1, 2):
        table.write([{"id": 1, "v": value}])
        assert table.lookup([1])["v"].to_pylist() == [value]
    table.tags.create("first", snapshot=1)
    assert table.lookup([1], snapshot=1)["v"].to_pylist() == [1]
    assert table.lookup([1], tag="first")["v"].to_pylist() == [1]
    renamed = table.rename_column("id", "key").add_column("z", "INT")
    renamed.write([{"key": 5, "v": 9, "z": 9}])
    assert renamed.lookup([5, 1]).to_pylist() == [{"key": 5, "v": 9, "z": 9}, {"key": 1, "v": 2, "z": None}]


def test_keys_of_floats_are_equal_as_the_format_orders_them() -> None:
    table = make_table(
        {"bucket": "1", "primary-key.allow-floating": "true"}, "id DOUBLE NOT NULL, v INT", primary_keys=["id"]
    )
    nan = float("nan")
    table.write([{"id": 0.0, "v": 1}, {"id": -0.0, "v": 2}, {"id": nan, "v": 3}])
    assert table.lookup([nan, -0.0, 0.0], ["v"])["v"].to_pylist() == [3, 2, 1]


def test_a_key_can_be_in_any_partition_if_it_lacks_the_partition_column(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table({"bucket": "-1"}, primary_keys=["id"], partition_keys=["day"])
    table.write([{"id": i, "day": f"d{i % 3}", "name": "n", "v": i} for i in range(9)])
    table.write([{"id": 4, "day": "d2", "name": "n", "v": 40}])
    sorted_keys = Mock(side_effect=lookup_rows.to_comparable_values)
    monkeypatch.setattr(lookup_rows, "to_comparable_values", sorted_keys)
    assert table.lookup([8, 4, 77], ["day", "v"]).to_pylist() == [{"day": "d2", "v": 8}, {"day": "d2", "v": 40}]
    assert sorted_keys.call_count == 3, "once for all partitions"


def test_partitions_with_other_numbers_of_buckets_are_found() -> None:
    table = make_table({"bucket": "2"}, primary_keys=["day", "id"], partition_keys=["day"])
    table.write([{"id": i, "day": day, "name": "n", "v": i} for i in range(8) for day in ("a", "b")])
    table.rescale(5, where="day = 'a'")
    keys = [(day, i) for i in range(8) for day in ("b", "a")]
    assert table.lookup(keys, ["v"])["v"].to_pylist() == [i for _, i in keys]


def test_a_fallback_branch_is_read() -> None:
    table = make_table({}, "day STRING NOT NULL, id INT NOT NULL", primary_keys=["day", "id"], partition_keys=["day"])
    table.branches.create("other")
    paimon.open_table(table.location, {"branch": "other"}).write(
        [{"day": day, "id": i} for day in "ab" for i in (1, 2)]
    )
    table.write([{"day": "a", "id": 1}])
    read = table.with_options({"scan.fallback-branch": "other"})
    found = read.lookup([("a", 1), ("a", 2), ("b", 2)])
    assert found.to_pylist() == [{"day": "a", "id": 1}, {"day": "b", "id": 2}]


class CountedFiles:
    """The files of an engine, with the paths of those that were opened."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.opened: list[str] = []

    def open(self, path: str) -> pa.NativeFile:
        self.opened.append(path.rpartition("/")[2])
        return self._files.open(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def count_files(table: Table) -> tuple[Table, CountedFiles]:
    files = CountedFiles(table.engine.files)
    return table.with_engine(evolve(table.engine, files=files)), files


@pytest.mark.parametrize("indexes", [IN_FILES, IN_MANIFEST])
def test_bloom_filters_of_overlapping_files_leave_one_file_and_are_read_once(indexes: Mapping[str, str]) -> None:
    options = {**indexes, "file-index.bloom-filter.id.fpp": "0.001", "bucket": "1"}
    table, files = count_files(make_table(options, primary_keys=["id"]))
    for write in range(8):
        table.write([{"id": i * 8 + write, "day": "d", "name": "n", "v": i} for i in range(50)])
    index_files = 8 if indexes is IN_FILES else 0
    assert table.lookup([83], ["v"])["v"].to_pylist() == [10]
    assert sum(name.endswith(".index") for name in files.opened) == index_files
    assert sum(name.endswith(".parquet") for name in files.opened) == 1
    files.opened.clear()
    assert table.lookup([84, 83, 8000], ["v"])["v"].to_pylist() == [10, 10]
    assert [name.rpartition(".")[2] for name in files.opened] == ["parquet", "parquet"]
    files.opened.clear()
    without = table.with_options({"file-index.read.enabled": "false"})
    assert without.lookup([83], ["v"])["v"].to_pylist() == [10]
    assert len(files.opened) == 8


def test_only_the_bucket_and_the_key_range_are_read() -> None:
    table, files = count_files(make_table({"bucket": "4"}, primary_keys=["id"]))
    for first in (0, 1000):
        table.write([{"id": first + i, "day": "d", "name": "n", "v": i} for i in range(100)])
    assert table.lookup([1017], ["v"])["v"].to_pylist() == [17]
    assert len(files.opened) == 1
    assert table.lookup([5000]).num_rows == 0
    assert len(files.opened) == 1


@pytest.fixture
def few_indexed_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(lookup_rows, "_MOST_INDEXED_FILES", 1)
    yield


def test_a_large_snapshot_is_planned_for_the_keys(few_indexed_files: None) -> None:
    table, files = count_files(make_table({"bucket": "2"}, primary_keys=["day", "id"], partition_keys=["day"]))
    for day in ("a", "b"):
        table.write([{"id": i, "day": day, "name": "n", "v": i} for i in range(20)])
    assert table.lookup([("b", 3), ("c", 3), ("b", 19)], ["v"])["v"].to_pylist() == [3, 19]
    assert len(files.opened) <= 2


def test_threads_share_one_table() -> None:
    table = make_table({**IN_FILES, "bucket": "2"}, "id BIGINT NOT NULL, name STRING NOT NULL, v INT")
    for write in range(4):
        table.write([{"id": i, "name": f"n{i % 5}", "v": i + write} for i in range(write, 80, 2)])
    expected = {r["id"]: r["v"] for r in table.to_arrow().to_pylist()}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: table.lookup([(i, f"n{i % 5}")])["v"].to_pylist(), range(80)))
    assert found == [[expected[i]] for i in range(80)]


def test_a_missing_index_file_is_named(tmp_path: Path) -> None:
    table = create_table(tmp_path, KEYED, primary_keys=["id"], options={**IN_FILES, "bucket": "1"})
    table.write([row(1)], kind_column="k")
    for path in tmp_path.rglob("*.index"):
        path.unlink()
    with pytest.raises(CorruptTable, match=r"\.index"):
        table.lookup([1])


class RemoteFiles(CountedFiles):
    """Files that look remote, and record the ranges that are read."""

    def open(self, path: str) -> pa.NativeFile:
        self.opened.append(path)
        return pa.PythonFile(RemoteInput(self._files.read(path), self.ranges), mode="r")

    def __init__(self, files: Any) -> None:
        super().__init__(files)
        self.ranges: list[int] = []


class RemoteInput(io.BytesIO):
    def __init__(self, data: bytes, ranges: list[int]) -> None:
        super().__init__(data)
        self._ranges = ranges

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self._ranges.append(len(found))
        return found


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_blocks_of_remote_files_are_requested_once(file_format: str) -> None:
    table = make_table({"bucket": "1", "file.format": file_format}, primary_keys=["id"])
    table.write([{"id": i, "day": "d", "name": f"{i}" * 50, "v": i} for i in range(20_000)])
    files = RemoteFiles(table.engine.files)
    table = table.with_engine(evolve(table.engine, files=files))
    assert table.lookup([17, 19_999], ["v"])["v"].to_pylist() == [17, 19_999]
    assert len(files.opened) == 1
    assert sum(files.ranges) > 0
    for _ in range(2):
        assert table.lookup([19_999, 17], ["v"])["v"].to_pylist() == [19_999, 17]
    assert len(files.opened) == 1
    table.engine.cache.drop(files.opened)
    assert table.lookup([4], ["v"])["v"].to_pylist() == [4]
    assert len(files.opened) == 2


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_remote_file_that_was_deleted_after_a_lookup_is_lost(
    file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_blocks, "_MOST_CACHED_BYTES", 0)
    table = make_table({"bucket": "1", "file.format": file_format}, primary_keys=["id"])
    table.write([{"id": 1, "day": "d", "name": "n", "v": 1}])
    files = RemoteFiles(table.engine.files)
    table = table.with_engine(evolve(table.engine, files=files))
    assert table.lookup([1], ["v"])["v"].to_pylist() == [1]
    files.delete(files.opened)
    with pytest.raises(CorruptTable, match="does not exist, but a manifest references it") as found:
        table.lookup([1])
    assert isinstance(found.value.__cause__, NotFound)
    with pytest.warns(RuntimeWarning, match=r"'scan\.ignore-lost-files'"):
        assert table.with_options({"scan.ignore-lost-files": "true"}).lookup([1]).num_rows == 0


def test_a_reply_that_is_too_short_is_a_storage_error() -> None:
    files = create_table(f"memory://{uuid.uuid4().hex}", "id INT").engine.files
    cached = CachedBlockFiles(RemoteFiles(files), LruCache())
    files.replace("memory://blocks/short", b"abc")
    cached.open("memory://blocks/short").close()
    files.replace("memory://blocks/short", b"ab")
    with cached.open("memory://blocks/short") as source, pytest.raises(StorageError, match="2 of 3 bytes at offset 0"):
        source.read()


@settings(max_examples=30)
@given(
    size=st.integers(0, 40),
    reads=st.lists(st.tuples(st.integers(0, 45), st.integers(0, 45)), max_size=6),
    most_cached=st.sampled_from([3, 100]),
)
def test_cached_blocks_have_the_bytes_of_the_file(size: int, reads: list[tuple[int, int]], most_cached: int) -> None:
    data = bytes(range(size))
    files = create_table(f"memory://{uuid.uuid4().hex}", "id INT").engine.files
    files.put_if_absent("memory://blocks/f", data)
    files.replace("memory://blocks/f", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_blocks, "_BLOCK_BYTES", 4)
        patch.setattr(cached_blocks, "_MOST_CACHED_BYTES", most_cached)
        cached = CachedBlockFiles(RemoteFiles(files), LruCache())
        for start, length in reads:
            with cached.open("memory://blocks/f") as source:
                assert source.size() == size
                assert source.read_at(length, start) == data[start : start + length]
