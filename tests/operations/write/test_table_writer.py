"""TableWriter: the files contain the written rows in the right buckets, and uncommitted rows leave no files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commit_tables import engine_on

from paimon.adapters.formats.on_demand import FormatsOnDemand
from paimon.domain.bucket.bucket_rule import compute_bucket
from paimon.domain.commit.message import CommitMessage
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.row.binary_row import deserialize, serialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema, schema_to_json
from paimon.domain.stats.simple_stats import from_simple_stats
from paimon.domain.types.ddl import parse_columns
from paimon.operations.commit.commit import commit
from paimon.operations.data_files.write_data_files import FileLayout, RollingFiles
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns, to_entries
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.writer import TableWriter
from paimon.ports.engine import Engine, MemoryBudget
from paimon.ports.files import FileIO
from paimon.ports.formats import ReadRequest
from paimon.testing.faulty_files import Fault, FaultyFiles
from paimon.testing.memory_files import MemoryFiles

KINDS = ("+I", "-U", "+U", "-D")


def engine(files: FileIO | None = None) -> Engine:
    return evolve(engine_on(files or MemoryFiles()), formats=FormatsOnDemand(0))


def definition(
    columns: str, keys: Sequence[str] = (), partitions: Sequence[str] = (), options: dict[str, str] | None = None
) -> TableDefinition:
    fields = parse_columns(columns)
    schema = TableSchema(
        id=0, fields=fields, highest_field_id=max(f.id for f in fields), primary_keys=tuple(keys),
        partition_keys=tuple(partitions), options=options or {},
    )  # fmt: skip
    return TableDefinition("shop.orders", TablePaths("/lake/orders"), schema, TableOptions.of(schema.options))


def read_stored_rows(on: Engine, table: TableDefinition, message: CommitMessage) -> pa.Table:
    """The physical rows of a message's files, in the order of the files."""
    layout = FileLayout.of(table)
    tables = []
    for file in message.data.new_files:
        path = f"{message.bucket_path}/{file.file_name}"
        request = ReadRequest(path=path, fields=layout.fields)
        batches = list(on.format(layout.format_name).read(on.files.open(path), request))
        tables.append(pa.Table.from_batches(batches))
        assert tables[-1].num_rows == file.row_count
        status = on.files.status(path)
        assert status is not None and status.size == file.file_size
    return pa.concat_tables(tables)


def all_files(on: Engine, table: TableDefinition) -> list[str]:
    def walk(path: str) -> list[str]:
        found = on.files.list(path)
        return [p for s in found for p in (walk(s.path) if s.is_directory else [s.path])]

    return walk(table.location)


PK = definition("p STRING, k BIGINT NOT NULL, v STRING", ["p", "k"], ["p"], {"bucket": "3", "file.format": "avro"})
OPTIONS = st.sampled_from([{}, {"file.format": "parquet"}, {"write-buffer-spillable": "false"}])
RECORDS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.none() | st.text(max_size=20), st.sampled_from(KINDS)),
    max_size=25,
)


@given(st.lists(RECORDS, max_size=4), st.booleans(), OPTIONS)
@settings(max_examples=40)
def test_of_each_key_the_last_record_is_stored(writes, one_row_buffers, options):
    on, table = engine(), evolve(PK, options=PK.options.with_values(options))
    if one_row_buffers:
        on = evolve(on, memory=MemoryBudget(1))
    writer = TableWriter(TableContext(on, table), "me")
    arrived: dict[tuple[str, int], int] = {}
    last: dict[tuple[str, int], tuple[str | None, str, int]] = {}
    for records in writes:
        columns = zip(*records, strict=True) if records else [[], [], [], []]
        data = pa.table(
            dict(zip(["p", "k", "v", "op"], map(list, columns), strict=True)),
            pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string()), ("op", pa.string())]),
        )
        writer.write(data, "op")
        for p, k, v, op in records:
            bucket = compute_bucket([k], [f.type for f in table.schema.key_fields], 3)
            number = arrived.get((p, bucket), 0)
            arrived[p, bucket] = number + 1
            last[p, k] = (v, op, number)
    found = {}
    for message in writer.prepare_commit():
        (p,) = deserialize(message.partition, [f.type for f in table.schema.partition_fields])
        assert message.bucket_path == f"/lake/orders/p={p}/bucket-{message.bucket}"
        assert message.total_buckets == 3
        for row in read_stored_rows(on, table, message).to_pylist():
            assert row["_KEY_k"] == row["k"] and row["p"] == p
            assert compute_bucket([row["k"]], [f.type for f in table.schema.key_fields], 3) == message.bucket
            newer = (row["v"], KINDS[row["_VALUE_KIND"]], row["_SEQUENCE_NUMBER"])
            if (p, row["k"]) not in found or found[p, row["k"]][2] < newer[2]:
                found[p, row["k"]] = newer
        for file in message.data.new_files:
            check_metadata(on, table, message, file)
        if table.options.write_buffer_spillable:
            assert len(message.data.new_files) == 1
    assert found == last
    assert writer.prepare_commit() == []


def check_metadata(on, table, message, file):
    single = evolve(message, data=evolve(message.data, new_files=(file,)))
    rows = read_stored_rows(on, table, single).to_pylist()
    types = [f.type for f in table.schema.key_fields]
    assert [r["k"] for r in rows] == sorted({r["k"] for r in rows})
    assert file.min_key == serialize([rows[0]["k"]], types) and file.max_key == serialize([rows[-1]["k"]], types)
    numbers = [r["_SEQUENCE_NUMBER"] for r in rows]
    assert (file.min_sequence_number, file.max_sequence_number) == (min(numbers), max(numbers))
    assert file.delete_row_count == sum(r["_VALUE_KIND"] in (1, 3) for r in rows)
    (key,) = from_simple_stats(file.key_stats, types)
    assert (key.minimum, key.maximum, key.null_count) == (rows[0]["k"], rows[-1]["k"], 0)
    assert file.level == 0 and file.schema_id == 0 and file.creation_time_millis
    assert re.fullmatch(r"data-[0-9a-f-]{36}-\d+\.(avro|parquet)", file.file_name)


@given(st.lists(st.lists(st.tuples(st.none() | st.sampled_from("ab"), st.integers(0, 99)), max_size=20), max_size=3),
       st.sampled_from([-1, 2]))  # fmt: skip
@settings(max_examples=40)
def test_append_tables_preserve_every_row_in_order(writes, buckets):
    options = {"bucket": str(buckets), "file.format": "avro"} | ({"bucket-key": "n"} if buckets > 0 else {})
    on, table = engine(), definition("p STRING, n INT", (), ["p"], options)
    writer = TableWriter(TableContext(on, table), "me")
    for rows in writes:
        schema = pa.schema([("p", pa.string()), ("n", pa.int32())])
        writer.write(pa.table({"p": [p for p, _ in rows], "n": [n for _, n in rows]}, schema))
    written = [row for rows in writes for row in rows]
    seen = 0
    for message in writer.prepare_commit():
        (p,) = deserialize(message.partition, [f.type for f in table.schema.partition_fields])
        types = [table.schema.field_of("n").type]
        expected = [
            n for q, n in written if q == p and (buckets < 0 or compute_bucket([n], types, 2) == message.bucket)
        ]
        assert read_stored_rows(on, table, message)["n"].to_pylist() == expected
        assert message.total_buckets == buckets and (buckets > 0 or message.bucket == 0)
        (file,) = message.data.new_files
        assert (file.min_sequence_number, file.max_sequence_number) == (0, len(expected) - 1)
        seen += len(expected)
    assert seen == len(written)


def test_files_roll_at_their_target_size():
    on, table = engine(), definition("n INT, s STRING", options={"target-file-size": "10 kb", "file.format": "avro"})
    writer = TableWriter(TableContext(on, table), "me")
    rows = pa.table({"n": pa.array(range(9000), pa.int32()), "s": [f"{n * 7919 % 104729:x}" for n in range(9000)]})
    writer.write(rows)
    (message,) = writer.prepare_commit()
    files = message.data.new_files
    assert len(files) > 2 and all(f.file_size >= 10 * 1024 for f in files[:-1])
    assert read_stored_rows(on, table, message).equals(rows)
    for before, after in itertools.pairwise(files):
        assert after.min_sequence_number == before.max_sequence_number + 1
    numbered = re.compile(r"data-(.*)-(\d+)\.avro")
    names = [numbered.fullmatch(f.file_name).groups() for f in files]
    assert {uuid for uuid, _ in names} == {names[0][0]} and [int(n) for _, n in names] == list(range(len(files)))


def test_rows_that_fill_a_file_have_one_each():
    on, table = engine(), definition("n INT, s STRING", options={"target-file-size": "100 b"})
    writer = TableWriter(TableContext(on, table), "me")
    writer.write(pa.table({"n": pa.array(range(4), pa.int32()), "s": ["x" * 500] * 4}))
    (message,) = writer.prepare_commit()
    assert [f.row_count for f in message.data.new_files] == [1, 1, 1, 1]


def test_files_roll_at_a_number_of_rows():
    on, table = engine(), definition("n INT", options={"target-file-row-num": "4", "file.format": "avro"})
    writer = TableWriter(TableContext(on, table), "me")
    writer.write(pa.table({"n": pa.array(range(10), pa.int32())}))
    assert [f.row_count for f in writer.prepare_commit()[0].data.new_files] == [4, 4, 2]


def test_sequence_numbers_continue_after_a_commit():
    on, table = engine(), definition("k INT NOT NULL, v INT", ["k"], options={"bucket": "1", "file.format": "avro"})

    def ranges(**how: bool) -> list[tuple[int, int]]:
        writer = TableWriter(TableContext(on, table), "me", **how)
        found = []
        for _ in range(2):
            writer.write(pa.table({"k": pa.array([2, 1, 2], pa.int32()), "v": pa.array([1, 2, 3], pa.int32())}))
            (message,) = writer.prepare_commit()
            (file,) = message.data.new_files
            found.append((file.min_sequence_number, file.max_sequence_number))
            if not how:
                commit(TableContext(on, table), CommitRequest((message,), "me"))
        return found

    assert ranges() == [(1, 2), (4, 5)]
    assert ranges() == [(7, 8), (10, 11)]
    assert ranges(ignore_previous=True) == [(1, 2), (4, 5)]


def test_partitions_preserve_their_number_of_buckets():
    on = engine()
    two = definition("p INT NOT NULL, k INT NOT NULL", ["p", "k"], ["p"], {"bucket": "2", "file.format": "avro"})
    four = evolve(two, options=two.options.with_values({"bucket": "4"}))
    rows = pa.table({"p": pa.array([1], pa.int32()), "k": pa.array([1], pa.int32())})
    writer = TableWriter(TableContext(on, two), "me")
    writer.write(rows)
    commit(TableContext(on, two), CommitRequest(tuple(writer.prepare_commit()), "me"))
    with pytest.raises(InvalidRequest, match=r"p=1 of table 'shop\.orders' has 2 buckets, but option 'bucket' is 4"):
        TableWriter(TableContext(on, four), "me").write(rows)
    TableWriter(TableContext(on, four), "me", ignore_previous=True).write(rows)
    TableWriter(TableContext(on, four), "me").write(
        pa.table({"p": pa.array([2], pa.int32()), "k": pa.array([1], pa.int32())})
    )


@pytest.mark.parametrize("how", ["abort", "close"])
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_files_without_a_returned_message_are_removed(how, keys):
    on = evolve(engine(), memory=MemoryBudget(1))
    table = definition("k INT NOT NULL", keys, options={"bucket": "1", "bucket-key": "k", "file.format": "avro"})
    writer = TableWriter(TableContext(on, table), "me")
    rows = pa.table({"k": pa.array([1, 2], pa.int32())})
    writer.write(rows)
    (message,) = writer.prepare_commit()
    before = all_files(on, table)
    assert before == sorted(f"{message.bucket_path}/{f.file_name}" for f in message.data.new_files)
    writer.write(rows)
    getattr(writer, how)()
    assert all_files(on, table) == before
    assert writer.prepare_commit() == []


def kinds_stored(options, keys=("k",), kinds=("+I", "-U", "+U", "-D"), columns="k INT NOT NULL, op STRING"):
    on, table = engine(), definition(columns, keys, options={"bucket": "1", "file.format": "avro"} | options)
    writer = TableWriter(TableContext(on, table), "me")
    rows = pa.table({"k": pa.array(range(len(kinds)), pa.int32()), "op": list(kinds)})
    writer.write(rows, None if "op" in columns else "op")
    (message,) = writer.prepare_commit()
    table_rows = read_stored_rows(on, table, message)
    return table_rows["_VALUE_KIND"].to_pylist() if keys else table_rows["k"].to_pylist()


def test_row_kinds_are_read_from_the_configured_place():
    assert kinds_stored({"rowkind.field": "op"}) == [0, 1, 2, 3]
    assert kinds_stored({}) == [0, 0, 0, 0]
    assert kinds_stored({}, columns="k INT NOT NULL") == [0, 1, 2, 3]
    assert kinds_stored({"ignore-delete": "true"}, columns="k INT NOT NULL") == [0, 2]
    assert kinds_stored({"ignore-update-before": "true"}, columns="k INT NOT NULL") == [0, 2, 3]
    append = {"bucket": "-1", "ignore-delete": "true"}
    assert kinds_stored(append, keys=(), columns="k INT NOT NULL") == [0, 2]


@pytest.mark.parametrize(
    ("options", "keys", "kinds", "message"),
    [
        ({"bucket": "-1"}, (), ["+I", "-D"], "'shop.orders' has no primary key, so it does not accept -U and -D rows"),
        ({}, ("k",), ["+I", "x"], "column 'op' contains 'x', which is not a row kind"),
        ({}, ("k",), ["+I", None], "column 'op' contains None, which is not a row kind"),
    ],
)
def test_unsupported_row_kinds_are_refused(options, keys, kinds, message):
    with pytest.raises(InvalidRequest, match=message):
        kinds_stored(options, keys, kinds, columns="k INT NOT NULL")


def test_a_kind_column_that_is_missing_is_named():
    table = definition("k INT NOT NULL", ["k"], options={"bucket": "1"})
    with pytest.raises(InvalidRequest, match="Column 'op' with row kinds does not exist in the data"):
        TableWriter(TableContext(engine(), table), "me").write(pa.table({"k": pa.array([1], pa.int32())}), "op")


def test_keys_are_never_null():
    rows = pa.table({"k": pa.array([1, None], pa.int32())})
    table = definition("k INT", ["k"], options={"bucket": "1"})
    with pytest.raises(InvalidRequest, match=r"Primary key column 'k' of table .* contains nulls"):
        TableWriter(TableContext(engine(), table), "me").write(rows)
    nullable = evolve(table, options=table.options.with_values({"primary-key.nullable": "true"}))
    writer = TableWriter(TableContext(engine(), nullable), "me")
    writer.write(rows)
    (file,) = writer.prepare_commit()[0].data.new_files
    assert file.min_key == serialize([None], [f.type for f in table.schema.key_fields])


def test_thin_files_have_no_key_columns():
    options = {"bucket": "1", "data-file.thin-mode": "true", "file.format": "parquet"}
    on, table = engine(), definition("k STRING NOT NULL, v INT", ["k"], options=options)
    writer = TableWriter(TableContext(on, table), "me")
    writer.write(pa.table({"k": ["b" * 200, "a"], "v": pa.array([1, 2], pa.int32())}))
    (message,) = writer.prepare_commit()
    assert read_stored_rows(on, table, message).column_names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "k", "v"]
    (file,) = message.data.new_files
    types = [f.type for f in table.schema.key_fields]
    assert from_simple_stats(file.key_stats, types)[0].maximum == "b" * 127 + "c"
    assert from_simple_stats(file.value_stats, [f.type for f in table.schema.fields])[0].maximum == "b" * 127 + "c"
    assert deserialize(file.max_key, types) == ("b" * 200,)


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_the_memory_of_open_files_stays_within_the_budget(form):
    budget = 64 * 1024
    on = evolve(engine(), memory=MemoryBudget(budget))
    table = definition("p INT, v BIGINT", partitions=["p"], options={"file.format": form})
    writer = TableWriter(TableContext(on, table), "me")
    for step in range(10):
        rows = pa.table({"p": pa.array([i % 20 for i in range(2000)], pa.int32()), "v": [step] * 2000})
        writer.write(rows)
        files = [s.rolling for s in writer._buckets.states if s.rolling is not None]
        assert len(files) == 20 and sum(f.held_bytes for f in files) <= budget // 4
    messages = writer.prepare_commit()
    assert [[f.row_count for f in m.data.new_files] for m in messages] == [[1000]] * 20


def test_the_memory_of_open_dedicated_files_stays_within_the_budget() -> None:
    budget = 64 * 1024
    on = evolve(engine(), memory=MemoryBudget(budget))
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "vector.file.format": "parquet"}
    table = definition("p INT, v VECTOR<FLOAT, 32>", partitions=["p"], options=options)
    writer = TableWriter(TableContext(on, table), "me")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * (500 * 32), pa.float32()), 32)
    for _ in range(4):
        writer.write(pa.table({"p": pa.array([i % 20 for i in range(500)], pa.int32()), "v": vectors}))
        files = [d for s in writer._buckets.states if s.rolling is not None for d in s.rolling._dedicated]
        assert len(files) == 20 and sum(d.held_bytes for d in files) <= budget // 4
    messages = writer.prepare_commit()
    assert [[f.row_count for f in m.data.new_files] for m in messages] == [[100, 100]] * 20


def test_the_rows_of_an_open_file_stay_within_a_part_of_the_budget() -> None:
    budget = 4 << 20
    on = evolve(engine(), memory=MemoryBudget(budget))
    table = definition("k INT NOT NULL, v STRING", ["k"], options={"bucket": "1"})
    rolling = RollingFiles(on, FileLayout.of(table, level=5), "bucket-0")
    for start in range(0, 20_000, 1_000):
        keys = pa.array(range(start, start + 1_000), pa.int32())
        system = {"_SEQUENCE_NUMBER": [0] * 1_000, "_VALUE_KIND": pa.array([0] * 1_000, pa.int8())}
        texts = [f"{k:01000d}" for k in range(start, start + 1_000)]
        rolling.write(pa.table({"k": keys, "v": texts} | system))
        assert rolling.held_bytes <= budget // 8
    (file,) = rolling.close()
    assert file.row_count == 20_000, "a row group ends, not the file"


def test_the_write_buffer_leaves_memory_for_the_sort() -> None:
    table = definition("k INT NOT NULL", ["k"], options={"bucket": "1"})
    for budget, buffer in [(128, 32), (512, 224), (2048, 256)]:
        on = evolve(engine(), memory=MemoryBudget(budget << 20))
        assert TableWriter(TableContext(on, table), "me")._limit == buffer << 20


@pytest.mark.parametrize("write_only", ["true", "false"])
def test_a_state_that_expires_during_a_read_is_read_again(write_only: str) -> None:
    memory = MemoryFiles()
    faultless = engine(memory)
    table = evolve(PK, options=PK.options.with_values({"write-only": write_only}))
    faultless.files.put_if_absent(table.paths.schema(0), schema_to_json(table.schema))

    def write_value(on: Engine, value: str) -> None:
        writer = TableWriter(TableContext(on, table), value)
        writer.write(pa.table({"p": ["a"], "k": pa.array([1]), "v": [value]}))
        commit(TableContext(on, table), CommitRequest(tuple(writer.prepare_commit()), value))

    write_value(faultless, "first")
    first = latest_snapshot(TableContext(faultless, table))
    assert first is not None
    gone = [table.paths.manifest(n) for n in (first.base_manifest_list, first.delta_manifest_list)]
    expired: list[str] = []

    def expire(operation: str, path: str) -> Fault | None:
        if operation == "read" and path in gone and not expired:
            expired.append(path)
            write_value(faultless, "second")
            memory.delete([table.paths.snapshot(1), *gone])
        return None

    write_value(engine(FaultyFiles(memory, expire)), "third")
    assert expired
    last = latest_snapshot(TableContext(faultless, table))
    assert last is not None
    live = to_entries(
        read_live_columns(TableContext(faultless, table), read_data_manifests(TableContext(faultless, table), last))
    )
    assert sorted(e.file.min_sequence_number for e in live) == [0, 1, 2]
