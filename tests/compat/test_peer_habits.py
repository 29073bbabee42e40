"""What programs rely on without naming it: progress of streams, kinds of option values, files, closed catalogs."""

from __future__ import annotations

import pickle
import re
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon
import paimon.compat
from paimon.compat.commit_message import commit_errors
from paimon.domain.errors import BucketCountConflict, DeletionVectorConflict, HashIndexConflict, RowUpdateConflict

COLUMNS = pa.schema([("a", pa.int64()), ("p", pa.string())])


@pytest.fixture(autouse=True)
def alias() -> Iterator[None]:
    paimon.compat.install()
    yield
    paimon.compat.uninstall()


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    from pypaimon import CatalogFactory  # type: ignore[import-not-found]

    opened = CatalogFactory.create({"warehouse": str(tmp_path)})
    opened.create_database("d", True)
    return opened


@pytest.fixture
def table(catalog: Any) -> Any:
    from pypaimon import Schema

    catalog.create_table("d.t", Schema.from_pyarrow_schema(COLUMNS, partition_keys=["p"]), True)
    return catalog.get_table("d.t")


def write(table: Any, rows: dict[str, list[Any]], overwrite: dict[str, str] | None = None) -> None:
    builder = table.new_batch_write_builder()
    if overwrite is not None:
        builder = builder.overwrite(overwrite)
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.table(rows, schema=COLUMNS))
    commit.commit(writer.prepare_commit())
    writer.close()


def test_a_filtered_stream_has_a_plan_for_each_snapshot_that_adds_rows(table: Any) -> None:
    for number, name in enumerate("xyx"):
        write(table, {"a": [number], "p": [name]})
    write(table, {"a": [9], "p": ["x"]}, overwrite={"p": "x"})
    write(table, {"a": [4], "p": ["y"]})
    builder = table.new_stream_read_builder()
    scan = builder.with_filter(builder.new_predicate_builder().equal("p", "x")).new_streaming_scan()
    scan.next_snapshot_id = 1
    plans = scan.stream_sync()
    found = [next(plans) for _ in range(4)]  # a fifth one would wait for a snapshot
    assert [(plan.snapshot_id, len(plan.splits())) for plan in found] == [(1, 1), (2, 0), (3, 1), (5, 0)]


def test_a_plan_is_recorded_when_the_next_one_is_asked_for(table: Any) -> None:
    for number in range(3):
        write(table, {"a": [number], "p": ["x"]})
    scan = table.new_stream_read_builder().with_consumer_id("me").new_streaming_scan()
    scan.next_snapshot_id = 1
    consumers = table.consumer_manager()
    plans, seen = scan.stream_sync(), []
    for _ in range(3):
        next(plans)
        seen.append(consumers.consumers().get("me"))
    assert seen == [1, 2, 3]
    again = table.new_stream_read_builder().with_consumer_id("me").new_streaming_scan()
    assert next(again.stream_sync()).snapshot_id == 3


def test_consumers_that_protect_a_state_are_not_listed(table: Any) -> None:
    from pypaimon.consumer.consumer import Consumer  # type: ignore[import-not-found]

    write(table, {"a": [1], "p": ["x"]})
    next(table.new_stream_read_builder().with_consumer_id("me").new_streaming_scan().stream_sync())
    assert dict(table.inner.consumers) == {"me.state": 1}
    manager = table.consumer_manager()
    assert manager.consumers() == {} and manager.list_all_ids() == [] and manager.min_next_snapshot() is None
    manager.reset_consumer("far", Consumer(10))
    assert manager.consumers() == {"far": 10}
    with pytest.raises(ValueError, match="path separators"):
        manager.reset_consumer("../x", Consumer(1))


def test_options_have_the_kinds_of_values_of_pypaimon() -> None:
    from pypaimon.common.options.core_options import (  # type: ignore[import-not-found]
        ChangelogProducer,
        CoreOptions,
        ExternalPathStrategy,
        MergeEngine,
        SortOrder,
        StartupMode,
    )
    from pypaimon.common.options.options import Options  # type: ignore[import-not-found]

    options = CoreOptions(Options({"merge-engine": "first-row", "commit.timeout": "2 s", "sequence.field": "a, b"}))
    assert options.merge_engine() is MergeEngine.FIRST_ROW and options.changelog_producer() is ChangelogProducer.NONE
    assert options.data_file_external_paths_strategy() is ExternalPathStrategy.NONE
    assert (options.commit_timeout(), options.commit_min_retry_wait()) == (2000, 10)
    assert options.sequence_field() == ["a", "b"] and options.sequence_field_sort_order() is SortOrder.ASCENDING
    assert CoreOptions(Options({"scan.tag-name": "t"})).startup_mode() is StartupMode.FROM_SNAPSHOT
    assert CoreOptions.COMMIT_MAX_RETRY_WAIT.default_value() == timedelta(seconds=10)
    assert options.field_listagg_delimiter("a") == "," and options.file_format_per_level() == {}
    assert CoreOptions.from_dict({"file.format.per.level": "0:avro"}).file_format_per_level() == {"0": "avro"}


def test_constants_are_values_of_options(catalog: Any) -> None:
    from pypaimon import Schema
    from pypaimon.common.options.core_options import MergeEngine

    options = {"merge-engine": MergeEngine.PARTIAL_UPDATE, "bucket": "1"}
    catalog.create_table("d.k", Schema.from_pyarrow_schema(COLUMNS, primary_keys=["a"], options=options), True)
    table = catalog.get_table("d.k")
    assert table.inner.options["merge-engine"] == "partial-update"
    assert table.options.merge_engine() is MergeEngine.PARTIAL_UPDATE


def test_only_a_jdbc_catalog_has_properties_of_databases(catalog: Any, tmp_path: Path) -> None:
    from pypaimon import CatalogFactory

    assert catalog.get_database("d").options == {}
    place = tmp_path / "catalog.db"
    options = {"metastore": "jdbc", "uri": f"sqlite:///{place}", "warehouse": str(tmp_path / "jdbc")}
    with CatalogFactory.create(options) as other:
        with sqlite3.connect(place) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert "paimon_tables" in names
        other.create_database("d", True)
        assert other.get_database("d").options == {"location": f"{tmp_path}/jdbc/d.db"}
    with pytest.raises(sqlite3.ProgrammingError, match="is closed"):
        other.list_databases()


def test_a_conflict_is_a_runtime_error(table: Any) -> None:
    write(table, {"a": [1], "p": ["x"]})
    builder = table.new_batch_write_builder()
    message = builder.new_update().delete_by_predicate(builder.new_update().new_predicate_builder().equal("a", 1))
    assert message and not message[0].is_empty()
    with pytest.raises(RuntimeError, match="buckets, but the commit adds") as caught, commit_errors():
        raise paimon.CommitConflict("Partition has 1 buckets, but the commit adds files for 3.")
    assert "Total buckets" not in str(caught.value)
    assert isinstance(caught.value.__cause__, paimon.CommitConflict)


@pytest.mark.parametrize(
    ("conflict", "words"),
    [
        (BucketCountConflict("any text"), "Total buckets differ."),
        (DeletionVectorConflict("any text"), "Deletion vector index conflict"),
        (HashIndexConflict("any text"), "HASH index assignment conflict"),
        (
            RowUpdateConflict("any text"),
            "For Data Evolution table, multiple 'MERGE INTO' operations have encountered conflicts",
        ),
    ],
)
def test_words_that_programs_look_for_depend_on_the_kind_of_conflict(conflict: Exception, words: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(f"({words})")), commit_errors():
        raise conflict


def test_values_of_another_type_are_refused(table: Any) -> None:
    writer = table.new_batch_write_builder().new_write()
    with pytest.raises(ValueError, match="isn't consistent with table schema"):
        writer.write_arrow(pa.table({"a": pa.array([1], pa.int32()), "p": ["x"]}))
    writer.write_arrow(pa.table({"a": [1], "p": pa.array(["x"], pa.large_string())}))
    writer.close()


def test_options_that_cannot_change_are_refused_as_by_pypaimon(catalog: Any, table: Any) -> None:
    from pypaimon.schema.schema_change import SchemaChange  # type: ignore[import-not-found]

    catalog.alter_table("d.t", [SchemaChange.set_option("type", "table")])
    with pytest.raises(RuntimeError, match="Change 'type' is not supported yet"):
        catalog.alter_table("d.t", [SchemaChange.remove_option("type")])
    write(table, {"a": [1], "p": ["x"]})
    for change in (SchemaChange.remove_option("merge-engine"), SchemaChange.set_option("merge-engine", "deduplicate")):
        with pytest.raises(RuntimeError, match="Change 'merge-engine' is not supported yet"):
            catalog.alter_table("d.t", [change])


def test_an_empty_incremental_plan_names_its_last_snapshot(table: Any) -> None:
    write(table, {"a": [1], "p": ["x"]})
    latest = table.snapshot_manager().get_latest_snapshot()
    times = f"{latest.time_millis},{latest.time_millis + 1}"
    plan = table.copy({"incremental-between-timestamp": times}).new_read_builder().new_scan().plan()
    assert (plan.snapshot_id, plan.splits()) == (latest.id, [])


def test_tags_live_for_microseconds(table: Any) -> None:
    write(table, {"a": [1], "p": ["x"]})
    assert table.inner.tags.create("short", time_retained="500 micro").retained_seconds == 0.0005
    assert table.inner.tags.create("shorter", time_retained=timedelta(microseconds=1)).retained_seconds == 1e-6
    with pytest.raises(paimon.InvalidRequest, match="fractions of a microsecond"):
        table.inner.tags.create("shortest", time_retained="1 ns")


def test_files_are_read_and_written(table: Any, tmp_path: Path) -> None:
    files, root = table.file_io, str(tmp_path / "files")
    assert files.mkdirs(root) and files.is_dir(root)
    files.write_file(f"{root}/a.txt", "one")
    with pytest.raises(FileExistsError):
        files.write_file(f"{root}/a.txt", "two")
    files.write_file(f"{root}/a.txt", "two", overwrite=True)
    files.copy_file(f"{root}/a.txt", f"{root}/b/c.txt")
    with files.new_output_stream(f"{root}/d.txt") as stream:
        stream.write(b"0123456789")
    assert [(s.base_name, s.size) for s in files.list_status(root)] == [("a.txt", 3), ("b", None), ("d.txt", 10)]
    ranges = [(f"{root}/d.txt", 2, 3), None, (f"{root}/d.txt", 8, -1)]
    assert files.read_ranges_coalesced(ranges, 2) == [b"234", None, b"89"]
    assert files.rename(f"{root}/a.txt", f"{root}/e.txt") and not files.exists(f"{root}/a.txt")
    assert not files.rename(f"{root}/e.txt", f"{root}/d.txt") and not files.try_to_write_atomic(f"{root}/e.txt", "x")
    assert files.exists_batch([root, f"{root}/a.txt"]) == {root: True, f"{root}/a.txt": False}
    with pytest.raises(OSError, match="not empty"):
        files.delete(root)
    assert files.delete(root, recursive=True) and not files.delete(root)
    assert files.read_overwritten_file_utf8(f"{root}/a.txt") is None


def test_a_file_io_is_made_for_a_path(tmp_path: Path) -> None:
    from pypaimon.common.file_io import FileIO  # type: ignore[import-not-found]

    files = FileIO.get(str(tmp_path))
    files.overwrite_file_utf8(f"{tmp_path}/x", "text")
    assert files.read_file_range(f"{tmp_path}/x", 1, 2) == b"ex"
    assert files.parse_location("s3://b/k") == ("s3", "b", "b/k")


def test_managers_follow_branches_and_changelogs(catalog: Any, table: Any) -> None:
    from pypaimon.changelog.changelog import Changelog  # type: ignore[import-not-found]

    write(table, {"a": [1], "p": ["x"]})
    write(table, {"a": [2], "p": ["x"]})
    catalog.create_branch("d.t", "b")
    snapshots = table.snapshot_manager()
    assert snapshots.copy_with_branch("b").get_latest_snapshot() is None
    assert table.consumer_manager().with_branch("b").consumers() == {}
    found, following, skipped = snapshots.find_next_scannable(1, lambda snapshot: snapshot.id == 2)
    assert (found.id, following, skipped) == (2, 3, 1)
    assert snapshots.find_next_scannable(3, lambda snapshot: True) == (None, 3, 0)
    text = table.file_io.read_file_utf8(snapshots.get_snapshot_path(1))
    assert Changelog.from_json(text) == Changelog.from_snapshot(snapshots.get_snapshot_by_id(1))
    changelogs = table.changelog_manager()
    assert list(changelogs.changelogs()) == changelogs.safely_get_all_changelogs() == []
    table.file_io.write_file(changelogs.long_lived_changelog_path(1), text)
    assert [changelog.id for changelog in changelogs.changelogs()] == [1]
    assert changelogs.changelog(1) == changelogs.try_get_changelog(1)
    with pytest.raises(RuntimeError, match="Failed to read changelog"):
        changelogs.changelog(7)


def test_files_of_a_split_are_chosen(table: Any) -> None:
    write(table, {"a": [1], "p": ["x"]})
    write(table, {"a": [2], "p": ["x"]})
    builder = table.new_read_builder()
    (split,) = builder.new_scan().plan().splits()
    chosen = split.filter_file(lambda file: file.file_name == split.files[1].file_name)
    assert builder.new_read().to_arrow([chosen]).column("a").to_pylist() == [2]
    assert split.filter_file(lambda file: False) is None


def test_instants_and_schemas_have_a_json_form(table: Any) -> None:
    from pypaimon.schema.table_schema import TableSchema  # type: ignore[import-not-found]
    from pypaimon.table.instant import Instant  # type: ignore[import-not-found]

    for instant in (Instant.snapshot(3), Instant.tag("t")):
        assert Instant.from_dict(instant.to_dict()) == instant
    with pytest.raises(ValueError, match="Unknown instant type"):
        Instant.from_dict({})
    read = TableSchema.from_path(table.file_io, f"{table.table_path}/schema/schema-0")
    assert read.fields == table.fields
    with pytest.raises(RuntimeError, match="not found"):
        TableSchema.from_path(table.file_io, f"{table.table_path}/schema/schema-9")


def test_rows_of_data_evolution_tables_are_updated_by_their_ids(catalog: Any) -> None:
    from pypaimon import Schema

    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    catalog.create_table("d.e", Schema.from_pyarrow_schema(COLUMNS, options=options), True)
    table = catalog.get_table("d.e")
    write(table, {"a": [1, 2], "p": ["x", "y"]})

    def change(make: Any) -> list[tuple[Any, ...]]:
        builder = table.new_batch_write_builder()
        commit = builder.new_commit()
        commit.commit(make(builder.new_update()))
        reader = table.new_read_builder().with_projection(["_ROW_ID", "a", "p"])
        rows = reader.new_read().to_arrow(reader.new_scan().plan().splits()).sort_by("_ROW_ID")
        return [tuple(row.values())[1:] for row in rows.to_pylist()]

    by_id = pa.table({"_ROW_ID": [1], "p": ["Y"]})
    assert change(lambda u: u.with_update_type(["p"]).update_by_arrow_with_row_id(by_id)) == [(1, "x"), (2, "Y")]
    batches = [pa.table({"_ROW_ID": [number], "a": [number + 10]}) for number in range(2)]
    assert change(lambda u: u.update_by_arrow_batches_with_row_id(batches)) == [(10, "x"), (11, "Y")]
    rows = pa.table({"a": [11, 12], "p": ["k", "new"]}, schema=COLUMNS)
    assert change(lambda u: u.upsert_by_arrow_with_key(rows, ["a"])) == [(10, "x"), (11, "k"), (12, "new")]
    assert change(lambda u: u.upsert_by_key([{"a": 10, "p": "r"}], ["a"]))[0] == (10, "r")
    assert change(lambda u: u.update_by_predicate(u.new_predicate_builder().equal("a", 10), {"p": "q"}))[0] == (10, "q")

    def double(matched: pa.Table) -> pa.Array:
        return pa.array([f"{value * 2}" for value in matched["a"].to_pylist()])

    assert change(lambda u: u.update_by_predicate(None, {"p": double}, ["a"])) == [(10, "20"), (11, "22"), (12, "24")]

    def rewrite(update: Any) -> Any:
        part = update.with_read_projection(["a"]).new_shard_updator(0, 1)
        for batch in part.arrow_reader():
            part.update_by_arrow_batch(pa.record_batch({"p": [f"s{value}" for value in batch["a"].to_pylist()]}))
        return part.prepare_commit()

    assert change(rewrite) == [(10, "s10"), (11, "s11"), (12, "s12")]
    builder, late = table.new_batch_write_builder(), table.new_batch_write_builder()
    messages = late.new_update().update_by_arrow_with_row_id(pa.table({"_ROW_ID": [0], "a": [1]}))
    same = builder.new_update().update_by_arrow_with_row_id(pa.table({"_ROW_ID": [0], "a": [2]}))
    builder.new_commit().commit(same)
    with pytest.raises(RuntimeError, match="multiple 'MERGE INTO'"):
        late.new_commit().commit(messages)
    stream = table.new_stream_write_builder()
    for _ in range(2):  # a commit that is repeated changes nothing
        messages = stream.new_update().update_by_arrow_with_row_id(pa.table({"_ROW_ID": [0], "a": [0]}), 1)
        stream.new_commit().commit(messages, 1)
    assert change(lambda u: []) == [(0, "s10"), (11, "s11"), (12, "s12")]
    update = table.new_batch_write_builder().new_update()
    with pytest.raises(ValueError, match="delete requires 'deletion-vectors"):
        update.delete_by_row_id([1])
    with pytest.raises(ValueError, match="delete requires 'deletion-vectors"):
        update.delete_by_predicate(update.new_predicate_builder().equal("a", 0))
    with pytest.raises(ValueError, match="does not belong to any valid range"):
        update.update_by_arrow_with_row_id(pa.table({"_ROW_ID": [99], "a": [1]}))


def test_messages_name_the_first_row_of_files_with_some_columns(catalog: Any) -> None:
    from pypaimon import Schema

    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    columns = pa.schema([("a", pa.int64()), ("b", pa.string())])
    catalog.create_table("d.f", Schema.from_pyarrow_schema(columns, options=options), False)
    table = catalog.get_table("d.f")
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(pa.table({"a": [1, 2], "b": ["x", "y"]}))
    builder.new_commit().commit(writer.prepare_commit())
    builder = table.new_batch_write_builder()
    writer = builder.new_write().with_write_type(["b"])
    writer.write_arrow(pa.table({"b": ["X", "Y"]}))
    messages = writer.prepare_commit()
    messages[0].new_files[0].first_row_id = 0
    assert messages[0].new_files[0].first_row_id == 0 and messages[0].new_files[0].row_count == 2
    builder.new_commit().commit(pickle.loads(pickle.dumps(messages)))
    read = table.new_read_builder()
    assert read.new_read().to_arrow(read.new_scan().plan().splits()).to_pylist() == [
        {"a": 1, "b": "X"},
        {"a": 2, "b": "Y"},
    ]


def test_rows_of_data_evolution_tables_are_merged_and_deleted(catalog: Any) -> None:
    from pypaimon import Schema
    from pypaimon.table.data_evolution_merge_into import WhenMatched, WhenNotMatched, lit, source_col, target_col

    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}
    columns = pa.schema([("a", pa.int64()), ("b", pa.string())])
    catalog.create_table("d.m", Schema.from_pyarrow_schema(columns, options=options), False)
    table = catalog.get_table("d.m")
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    builder.new_commit().commit(writer.prepare_commit())
    builder = table.new_batch_write_builder()
    source = pa.table({"key": [1, 2, 9], "b": ["X", "gone", "new"]})
    messages = builder.new_update().merge_into(
        source,
        on={"a": "key"},
        when_matched=[WhenMatched.delete("s.b = 'gone'"), WhenMatched.update({"b": source_col("b")})],
        when_not_matched=[WhenNotMatched({"b": lit("s.b")})],
    )
    builder.new_commit().commit(messages)
    read = table.new_read_builder()
    rows = read.new_read().to_arrow(read.new_scan().plan().splits()).to_pylist()
    assert rows == [{"a": 1, "b": "X"}, {"a": 3, "b": "z"}, {"a": 9, "b": "s.b"}]
    stream = table.new_stream_write_builder()
    update = stream.new_update()
    stream.new_commit().commit(update.delete_by_row_id([0, 0], 1), 1)
    stream.new_commit().commit(update.delete_by_predicate(update.new_predicate_builder().equal("a", 9), 2), 2)
    assert read.new_read().to_arrow(read.new_scan().plan().splits()).to_pylist() == [{"a": 3, "b": "z"}]
    assert update.merge_into(source, on=["b"], when_matched=[WhenMatched.update({"a": target_col("a")})],
                             commit_identifier=3) == []  # fmt: skip
    batch = table.new_batch_write_builder().new_update()
    with pytest.raises(ValueError, match="multiple source rows"):
        twice = pa.table({"a": [3, 3], "b": ["p", "q"]})
        batch.merge_into(twice, on=["a"], when_matched=[WhenMatched.update("*")])
    with pytest.raises(ValueError, match="unknown target column"):
        batch.merge_into(twice, on=["a"], when_matched=[WhenMatched.update({"b.c": lit(1)})])
    messages = batch.merge_into(table, on=["_ROW_ID"], when_matched=[WhenMatched.update({"b": lit("q")})])
    builder.new_commit().commit(messages)
    assert read.new_read().to_arrow(read.new_scan().plan().splits()).to_pylist() == [{"a": 3, "b": "q"}]


def test_maps_are_given_as_pairs_and_as_dicts() -> None:
    from paimon.compat.update import to_map_columns
    from paimon.domain.types.arrow import fields_from_arrow

    kind = pa.map_(pa.string(), pa.int32())
    fields = fields_from_arrow(pa.schema([("m", kind), ("l", pa.list_(pa.list_(pa.string())))]))

    def to_maps(values: list[Any]) -> list[Any]:
        converted = to_map_columns(pa.table({"m": values, "l": [[["x"]]] * len(values)}), fields)
        assert pa.types.is_map(converted["m"].type) and pa.types.is_list(converted["l"].type)
        return list(converted["m"].to_pylist())

    assert to_maps([[["a", "1"], ["b", "2"]], None, []]) == [[("a", 1), ("b", 2)], None, []]
    assert to_maps([{"a": 1, "b": 2}, None, {"a": 3, "b": 4}]) == [[("a", 1), ("b", 2)], None, [("a", 3), ("b", 4)]]
    with pytest.raises(ValueError, match="no pairs"):
        to_maps([[["a", "1", "2"]]])
    with pytest.raises(ValueError, match="schema-less dict"):
        to_maps([{"a": 1}, {"b": 2}])


def test_rows_of_other_tables_have_no_ids_to_update_by(table: Any) -> None:
    update = table.new_batch_write_builder().new_update()
    for change in (
        lambda: update.update_by_arrow_with_row_id(pa.table({"_ROW_ID": [0]})),
        lambda: update.delete_by_row_id([0]),
        lambda: update.merge_into(pa.table({"a": [1]}), on=["a"]),
        lambda: table.new_stream_write_builder().new_update(),
    ):
        with pytest.raises(ValueError, match=r"= 'true'\. Otherwise, call"):
            change()
