"""Dynamic buckets: a key stays in its bucket over writes, processes, overwrites and compactions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from support.case_lists import mark_nightly

import paimon
from paimon.domain.bucket.hash_index import encode_hash_index
from paimon.domain.errors import CommitConflict, CorruptTable, InvalidRequest, Unsupported
from paimon.domain.maintenance.fault import FaultKind
from paimon.domain.row.binary_row import serialize
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.snapshot.snapshot import snapshot_to_json
from paimon.domain.types.data_types import BigIntType, VarCharType
from paimon.operations.buckets.bucket_assigner import BucketAssigner
from paimon.operations.commit.manifest_writer import ManifestWriter
from paimon.operations.metadata.manifests import read_index_manifest
from paimon.operations.table_context import TableContext
from paimon.ports.engine import MemoryBudget

KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
PARTITIONED = pa.schema([
    pa.field("k", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=False), ("v", pa.string()),
])  # fmt: skip


def make(catalog: paimon.Catalog, name: str = "t", partitioned: bool = False, **options: Any) -> paimon.Table:
    """A table without the option `bucket`; names of options are written with `_` for `-` and `__` for `.`."""
    named = {key.replace("__", ".").replace("_", "-"): str(value) for key, value in options.items()}
    schema, keys = (PARTITIONED, ["p", "k"]) if partitioned else (KEYED, ["k"])
    parts = ["p"] if partitioned else []
    return catalog.create_table(f"d.{name}", schema, primary_keys=keys, partition_keys=parts, options=named)


def rows(start: int, end: int, text: str = "", partition: str | None = None) -> pa.Table:
    columns: dict[str, Any] = {"k": range(start, end), "v": [f"{text}{k}" for k in range(start, end)]}
    return pa.table(columns if partition is None else {**columns, "p": [partition] * (end - start)})


def counts(table: paimon.Table) -> dict[int, int]:
    """The number of hashes of each bucket of a table without partitions, as its index manifest records it."""
    found = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    return {row["bucket"]: row["row_count"] for row in found if row["index_type"] == "HASH"}


def buckets_of_keys(table: paimon.Table) -> dict[tuple[Any, ...], set[int]]:
    """The buckets in whose files each key occurs."""
    found: dict[tuple[Any, ...], set[int]] = {}
    builder = table.new_read_builder()
    for split in builder.new_scan().plan().splits():
        for row in builder.new_read().to_arrow([split]).to_pylist():
            found.setdefault((row.get("p"), row["k"]), set()).add(split.bucket)
    return found


def state(table: paimon.Table) -> dict[int, str]:
    return {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def test_keys_fill_one_bucket_after_the_other(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=40)
    table.write(rows(0, 100))
    assert counts(table) == {0: 40, 1: 40, 2: 20}
    again = paimon.connect(catalog.warehouse).table("d.t")
    again.write(rows(50, 150, "new"))
    assert counts(again) == {0: 40, 1: 40, 2: 40, 3: 30}
    assert all(len(found) == 1 for found in buckets_of_keys(again).values())
    assert state(again) == {k: f"new{k}" if k >= 50 else str(k) for k in range(150)}
    assert {split.total_buckets for split in again.new_read_builder().new_scan().plan().splits()} == {-1}


def test_known_keys_write_no_index_file(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows(0, 10))
    before = set(Path(table.location, "index").iterdir())
    table.write(rows(0, 10, "new"))
    assert set(Path(table.location, "index").iterdir()) == before and counts(table) == {0: 10}


def test_max_buckets_limits_a_partition(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=2, dynamic_bucket__max_buckets=3)
    table.write(rows(0, 50))
    assert sorted(counts(table)) == [0, 1, 2] and sum(counts(table).values()) == 50
    unlimited = make(catalog, "u", dynamic_bucket__target_row_num=2)
    unlimited.write(rows(0, 50))
    assert len(counts(unlimited)) == 25
    with pytest.raises(InvalidRequest, match=r"dynamic-bucket\.max-buckets"):
        make(catalog, "w", dynamic_bucket__max_buckets=0).write(rows(0, 1))


def test_assigners_share_the_buckets_of_a_partition(catalog: paimon.Catalog) -> None:
    shared = {"dynamic_bucket__assigner_parallelism": 4, "dynamic_bucket__initial_buckets": 2}
    table = make(catalog, **shared)
    table.write(rows(0, 100))
    assert sorted(counts(table)) == [0, 1]
    four = make(catalog, "four", dynamic_bucket__assigner_parallelism=4)
    four.write(rows(0, 100))
    assert sorted(counts(four)) == [0, 1, 2, 3]
    one = make(catalog, "one", dynamic_bucket__initial_buckets=2)
    one.write(rows(0, 100))
    assert sorted(counts(one)) == [0]


def test_each_partition_has_buckets_of_its_own(catalog: paimon.Catalog) -> None:
    table = make(catalog, partitioned=True, dynamic_bucket__target_row_num=5)
    table.write(pa.concat_tables([rows(0, 7, partition="a"), rows(0, 12, partition="b")]))
    table.write(pa.concat_tables([rows(5, 9, partition="a"), rows(0, 12, partition="b")]))
    found = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    assert sorted((row["partition"], row["bucket"], row["row_count"]) for row in found) == [
        ("{a}", 0, 5), ("{a}", 1, 4), ("{b}", 0, 5), ("{b}", 1, 5), ("{b}", 2, 2)
    ]  # fmt: skip
    assert all(len(found) == 1 for found in buckets_of_keys(table).values())


def test_an_overwrite_starts_again(catalog: paimon.Catalog) -> None:
    table = make(catalog, partitioned=True, dynamic_bucket__target_row_num=5)
    table.write(pa.concat_tables([rows(0, 12, partition="a"), rows(0, 12, partition="b")]))
    table.overwrite(rows(11, 13, "new", "a"))
    found = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    assert sorted((row["partition"], row["bucket"], row["row_count"]) for row in found) == [
        ("{a}", 0, 2), ("{b}", 0, 5), ("{b}", 1, 5), ("{b}", 2, 2)
    ]  # fmt: skip
    table.overwrite(rows(0, 1, "new", "a"), {})
    found = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    assert [(row["partition"], row["bucket"], row["row_count"]) for row in found] == [("{a}", 0, 1)]
    assert table.scan().to_arrow().num_rows == 1


def test_a_refused_write_leaves_no_files(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(rows(0, 10))
        messages = writer.prepare_commit()
    assert len(list(Path(table.location, "index").iterdir())) == 1
    table.new_batch_write_builder().new_commit().abort(messages)
    assert list(Path(table.location, "index").iterdir()) == []


def test_a_stream_continues_from_its_last_index(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=10)
    builder = table.new_stream_write_builder("stream")
    writer, commit = builder.new_write(), builder.new_commit()
    for number in range(4):
        writer.write(rows(number * 8, number * 8 + 12, str(number)))
        commit.commit(number, writer.prepare_commit(number))
    writer.close()
    assert counts(table) == {0: 10, 1: 10, 2: 10, 3: 6}
    assert all(len(found) == 1 for found in buckets_of_keys(table).values())


@pytest.mark.parametrize("damage", [b"", b"12345", b"1234" * 5])
def test_a_damaged_index_file_is_named(catalog: paimon.Catalog, damage: bytes) -> None:
    table = make(catalog)
    table.write(rows(0, 10))
    (index,) = Path(table.location, "index").iterdir()
    index.write_bytes(damage)
    with pytest.raises(CorruptTable, match=index.name):
        table.write(rows(5, 20))
    index.unlink()
    with pytest.raises(CorruptTable, match=f"{index.name}.* is missing"):
        table.write(rows(5, 20))
    assert len(state(table)) == 10


def change_index_entry(table: paimon.Table, **changes: Any) -> tuple[str, paimon.Table]:
    """Change the only entry of the index manifest; return the new manifest, and the table opened again."""
    context = TableContext(table.engine, table.definition)
    snapshot = table.snapshots()[-1]
    assert snapshot.index_manifest is not None
    (entry,) = read_index_manifest(context, snapshot.index_manifest)
    name = ManifestWriter(context).write_index_manifest([evolve(entry, **changes)])
    changed = evolve(snapshot, index_manifest=name)
    Path(table.definition.paths.snapshot(snapshot.id)).write_bytes(snapshot_to_json(changed))
    again = paimon.open_table(table.location)
    assert isinstance(again, paimon.Table)
    return name, again


def test_an_index_file_of_unknown_type_refuses_writes(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    table.write(rows(0, 10))
    (index,) = Path(table.location, "index").iterdir()
    name, again = change_index_entry(table, index_type="HASH2")
    with pytest.raises(Unsupported, match=f"index type 'HASH2' of file '{index.name}' in .*{name}"):
        again.write(rows(5, 20))
    assert len(state(again)) == 10 and [s.id for s in again.snapshots()] == [1]
    assert [(fault.kind, name in fault.path) for fault in again.maintain.check().faults] == [
        (FaultKind.UNCHECKED, True)
    ]


@pytest.mark.parametrize("bucket", [-1, 32767])
def test_a_bucket_number_beyond_the_limit_is_named(catalog: paimon.Catalog, bucket: int) -> None:
    table = make(catalog)
    table.write(rows(0, 10))
    name, again = change_index_entry(table, bucket=bucket)
    with pytest.raises(CorruptTable, match=f"{name}.* names dynamic bucket {bucket}, but .* 0 to 32766"):
        again.write(rows(5, 20))
    assert len(state(again)) == 10


@pytest.mark.parametrize(("before", "after"), [(-1, 4), (4, -1)])
def test_an_option_cannot_change_between_fixed_and_dynamic_buckets(
    catalog: paimon.Catalog, before: int, after: int
) -> None:
    table = make(catalog, bucket=before)
    table.write(rows(0, 10))
    with pytest.raises(InvalidRequest, match=r"cannot change from or to -1\. Copy the rows into a new table"):
        table.set_options({"bucket": after})
    schema = Path(table.location, "schema", "schema-0")
    schema.write_text(re.sub(r'"bucket" *: *"-?\d+"', f'"bucket" : "{after}"', schema.read_text()))
    again = paimon.open_table(table.location)
    kind = "dynamic" if before == -1 else "4"
    with pytest.raises(InvalidRequest, match=f"has {kind} buckets, but .* is {after}.*Set 'bucket' to {before}"):
        again.write(rows(5, 20))
    assert len(state(again)) == 10


class RowsWithRival:
    """Rows that another writer is faster than: while they are read for the first time, it commits its own."""

    def __init__(self, data: pa.Table, other: Callable[[], object]) -> None:
        self.data = data
        self.others = [other]
        self.reads = 0

    def __len__(self) -> int:
        return self.data.num_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.reads += 1
        if self.others:
            self.others.pop()()
        return self.data.__arrow_c_stream__(requested_schema)


def assert_one_bucket_per_key(table: paimon.Table) -> None:
    assert all(len(found) == 1 for found in buckets_of_keys(table).values())


def test_a_write_is_assigned_again_after_another_writer_was_first(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=5)
    table.write(rows(0, 3))
    with table.new_batch_write_builder().new_write() as writer:
        writer.write(rows(100, 112))
        messages = writer.prepare_commit()
    table.write(rows(5, 15, "first"))
    with pytest.raises(CommitConflict, match="hash index"):
        table.new_batch_write_builder().new_commit().commit(messages)
    assert counts(table) == {0: 5, 1: 5, 2: 3}


def test_a_write_is_repeated_until_it_fits(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=5)
    data = RowsWithRival(rows(12, 18, "mine"), lambda: table.write(rows(2, 22, "first")))
    result = table.write([rows(0, 12, "mine"), data])
    assert data.reads == 2 and result.rows == 18
    assert state(table) == {k: f"mine{k}" if k < 18 else f"first{k}" for k in range(22)}
    assert sum(counts(table).values()) == 22
    assert_one_bucket_per_key(table)


def test_updates_and_deletes_are_repeated_until_they_fit(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=200, write_only="true")
    table.write(rows(0, 50))
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: [table.write(rows(k, k + 2)) for k in range(50, 90, 2)])
        for key in range(10):
            table.update({"v": "'new'"}, f"k = {key}")
            table.delete(f"k = {key + 10}")
        other.result()
    found = state(table)
    assert sorted(found) == [*range(10), *range(20, 90)] and {found[k] for k in range(10)} == {"new"}
    assert_one_bucket_per_key(table)


def test_rows_that_can_be_read_once_are_refused(catalog: paimon.Catalog) -> None:
    table = make(catalog)

    def read_once() -> Iterator[pa.Table]:
        yield rows(0, 10)
        table.write(rows(5, 15))

    with pytest.raises(CommitConflict, match="hash index"):
        table.write(read_once())
    assert sorted(state(table)) == list(range(5, 15)) and len(list(Path(table.location, "index").iterdir())) == 1


def test_updates_of_known_keys_do_not_conflict_with_new_keys_of_other_buckets(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=5, write_only="true")
    table.write(rows(0, 7))
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write(rows(0, 5, "new"))
        messages = writer.prepare_commit()
    table.write(rows(7, 20))
    assert builder.new_commit().commit(messages).snapshot_ids
    assert_one_bucket_per_key(table)


def test_an_overwrite_refuses_writers_of_the_former_index(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=5)
    table.write(rows(0, 12))
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write(rows(0, 12, "new"))
        messages = writer.prepare_commit()
    table.overwrite(rows(6, 12))
    with pytest.raises(CommitConflict, match="hash index"):
        builder.new_commit().commit(messages)


def test_two_writers_of_one_commit_are_refused(catalog: paimon.Catalog) -> None:
    table = make(catalog)
    builder = table.new_batch_write_builder()
    messages = []
    for start in (0, 5):
        with builder.new_write() as writer:
            writer.write(rows(start, start + 10))
            messages += writer.prepare_commit()
    with pytest.raises(InvalidRequest, match="two writers of this commit"):
        builder.new_commit().commit(messages)


def test_a_stream_reads_commits_of_other_writers(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=10)
    builder = table.new_stream_write_builder("stream")
    writer, commit = builder.new_write(), builder.new_commit()
    for number in range(3):
        writer.write(rows(number * 20, number * 20 + 15, str(number)))
        commit.commit(number, writer.prepare_commit(number))
        table.write(rows(number * 20 + 10, number * 20 + 25, "other"))
    writer.write(rows(100, 110))
    messages = writer.prepare_commit(3)
    table.write(rows(105, 115))
    with pytest.raises(CommitConflict, match="hash index"):
        commit.commit(3, messages)
    commit.inner.abort(messages, 3)
    writer.write(rows(100, 110, "again"))
    commit.commit(3, writer.prepare_commit(3))
    writer.close()
    assert_one_bucket_per_key(table)
    assert state(table)[105] == "again105" and len(state(table)) == sum(counts(table).values())


def test_two_commits_may_be_prepared_before_the_first_is_published(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=10)
    builder = table.new_stream_write_builder("stream")
    with builder.new_write() as writer:
        writer.write(rows(0, 15))
        first = writer.prepare_commit(0)
        writer.write(rows(10, 30))
        second = writer.prepare_commit(1)
    builder.new_commit().commit(0, first)
    builder.new_commit().commit(1, second)
    assert counts(table) == {0: 10, 1: 10, 2: 10}
    assert_one_bucket_per_key(table)


def test_hashes_of_unused_partitions_leave_the_memory(catalog: paimon.Catalog) -> None:
    table = make(catalog, partitioned=True, dynamic_bucket__target_row_num=100)
    table.write(pa.concat_tables([rows(0, 500, partition=p) for p in "abc"]))
    context = evolve(table.context, engine=evolve(table.context.engine, memory=MemoryBudget(16_000)))
    assigner = BucketAssigner(context, ignore_previous=False)
    found = {}
    for partition in [serialize([p], [VarCharType()]) for p in "abcabc"]:
        hashes = np.arange(600, dtype=np.int32)
        buckets = assigner.assign(partition, hashes).tolist()
        assert found.setdefault(partition, buckets) == buckets
        assert sum(s.buckets is not None for s in assigner._states.values()) <= 1
    prepared = assigner.prepare()
    assert sum(len(change.new) for change in prepared.changes.values()) > 3


def check(table: paimon.Table, deep: bool = True) -> dict[FaultKind, str]:
    return {fault.kind: fault.reason for fault in table.maintain.check(deep=deep).faults}


def rewrite_index(table: paimon.Table, bucket: int, hashes: list[int]) -> None:
    """Replace the hashes of one bucket without a change of their number."""
    found = table.system_table("table_indexes").scan().to_arrow().to_pylist()
    (name,) = [row["file_name"] for row in found if row["bucket"] == bucket]
    Path(table.location, "index", name).write_bytes(encode_hash_index(np.array(hashes, np.int32)))


def test_fsck_finds_faults_of_hash_indexes(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=5)
    table.write(rows(0, 12))
    assert check(table) == {}
    first = np.sort(hash_rows([pa.array(range(5), pa.int64())], [BigIntType()])).tolist()
    rewrite_index(table, 2, first[:2])
    found = check(table)
    assert found == {
        FaultKind.CONTENT: "shares 2 hashes with other buckets of its partition",
        FaultKind.PLACE: "has 2 rows whose key belongs in another bucket",
    }
    rewrite_index(table, 2, [7, 7])
    assert check(table)[FaultKind.CONTENT] == "has 1 hashes twice"
    rewrite_index(table, 2, [7, 8, 9])
    assert FaultKind.SIZE in check(table, deep=False)
    next(p for p in Path(table.location, "index").iterdir() if p.stat().st_size == 12).unlink()
    assert check(table).keys() == {FaultKind.MISSING}


def test_indexes_stay_while_a_snapshot_or_tag_needs_them(catalog: paimon.Catalog) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=10)
    for start in range(0, 24, 4):
        table.write(rows(start, start + 4))
        if start == 8:
            table.tags.create("kept")
    table.branches.create("side", tag="kept")
    before = {p.name for p in Path(table.location, "index").iterdir()}
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    after = {p.name for p in Path(table.location, "index").iterdir()}
    live = {row["file_name"] for row in table.system_table("table_indexes").scan().to_arrow().to_pylist()}
    assert live < after < before
    assert check(table) == {}
    side = catalog.table("d.t$branch_side")
    side.write(rows(10, 30, "side"))
    assert len(state(side)) == 30 and len(state(table)) == 24
    assert_one_bucket_per_key(side)
    orphan = Path(table.location, "index", "index-orphan-0")
    orphan.write_bytes(b"1234")
    os.utime(orphan, (0, 0))
    table.maintain.remove_orphans(dry_run=False)
    assert not orphan.exists() and {p.name for p in Path(table.location, "index").iterdir()} >= after
    table.maintain.rollback_to(tag="kept")
    table.write(rows(0, 20, "again"))
    assert state(table) == {k: f"again{k}" for k in range(20)}
    assert_one_bucket_per_key(table)
    assert check(table) == {}


@pytest.mark.parametrize("options", mark_nightly([{}, {"write_only": "true"}, {"deletion_vectors__enabled": "true"},
    {"merge_engine": "first-row"}, {"merge_engine": "partial-update"}, {"changelog_producer": "lookup"},
    {"changelog_producer": "full-compaction"}, {"file__format": "avro"}, {"ignore_delete": "true"},
    {"write_buffer_size": "1 kb"}], always=[{}, {"deletion_vectors__enabled": "true"},
    {"merge_engine": "partial-update"}, {"changelog_producer": "lookup"}]))  # fmt: skip
def test_options_of_merging_and_compaction(catalog: paimon.Catalog, options: dict[str, str]) -> None:
    table = make(catalog, dynamic_bucket__target_row_num=30, num_sorted_run__compaction_trigger=3, **options)
    for step in range(6):
        table.write(rows(step * 15, step * 15 + 50, str(step)))
    table.compact(full=True)
    first_wins = options.get("merge_engine") == "first-row"
    steps = {k: [step for step in range(6) if step * 15 <= k < step * 15 + 50] for k in range(125)}
    assert state(table) == {k: f"{min(s) if first_wins else max(s)}{k}" for k, s in steps.items()}
    assert_one_bucket_per_key(table)
    assert check(table) == {}
    kinds = pa.array(["-D"] * 20)
    if not first_wins and options.get("merge_engine") != "partial-update":
        table.write(rows(0, 20).append_column("op", kinds), kind_column="op")
        table.compact(full=True)
        assert len(state(table)) == (125 if options.get("ignore_delete") else 105)
        assert sum(counts(table).values()) == 125
