"""Each row of the table of names in the how-to page: both sides run, and have the same result."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import paimon
import paimon.compat

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "move-from-pypaimon.md"
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("item", pa.string()), ("day", pa.string())])
PLAIN = pa.schema([("id", pa.int64()), ("item", pa.string())])
ROWS = [{"id": 1, "item": "pen", "day": "mon"}, {"id": 2, "item": "ink", "day": "tue"}]


@pytest.fixture
def names(tmp_path: Path) -> Iterator[dict[str, Any]]:
    paimon.compat.install()
    found = dict(globals()) | {"peer_place": str(tmp_path / "peer"), "own_place": str(tmp_path / "own")}
    found |= {"asyncio": asyncio, "partial": partial, "pc": pc}
    found["jdbc"] = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/c.db"}
    exec(START, found)
    yield found
    paimon.compat.uninstall()


START = """
from pypaimon import CatalogFactory, Schema
from pypaimon.catalog.catalog_exception import TableAlreadyExistException, TableNotExistException
from pypaimon.catalog.rest.property_change import PropertyChange
from pypaimon.common.options import CoreOptions
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import Move, SchemaChange
from pypaimon.table.data_evolution_merge_into import WhenMatched, WhenNotMatched, source_col
from pypaimon.table.file_store_table import FileStoreTable
from pypaimon.table.row.generic_row import GenericRow
from pypaimon.write.postpone_bucket import PostponeBucketPlan

peer = CatalogFactory.create({"warehouse": peer_place})
own = paimon.connect(own_place)
peer.create_database("d", True)
own.create_database("d", exist_ok=True)
peer.create_table("d.t", Schema.from_pyarrow_schema(COLUMNS, partition_keys=["day"]), True)
own.create_table("d.t", COLUMNS, partition_keys=["day"], exist_ok=True)
peer.create_table("d.e2", Schema.from_pyarrow_schema(PLAIN, options=EVOLVING), True)
own.create_table("d.e2", PLAIN, options=EVOLVING)
PE, TE = peer.get_table("d.e2"), own.table("d.e2")
TWO = pa.table({"id": [1, 2], "item": ["a", "b"]}, schema=PLAIN)
one_commit(PE, lambda w: w.write_arrow(TWO))
TE.write(TWO)
changed_peer, changed_own = partial(commit_change, PE), partial(commit_change, TE)
P, T = peer.get_table("d.t"), own.table("d.t")
one_commit(P, lambda w: w.write_arrow(pa.Table.from_pylist(ROWS, schema=COLUMNS)))
T.write(ROWS)
"""


def one_commit(table: Any, write: Any, builder: Any = None) -> Any:
    builder = table.new_batch_write_builder() if builder is None else builder
    writer, commit = builder.new_write(), builder.new_commit()
    write(writer)
    commit.commit(writer.prepare_commit())
    writer.close()
    return table


def read(table: Any, builder: Any = None) -> list[dict[str, Any]]:
    if isinstance(table, paimon.Table):
        return sorted(table.scan().to_arrow().to_pylist(), key=str)
    builder = table.new_read_builder() if builder is None else builder
    return sorted(builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist(), key=str)


def plans(table: Any) -> Any:
    return table.new_read_builder().new_scan().plan().splits()


SOURCE = pa.table({"id": [1, 2, 9], "item": ["x", "y", "new"]})
EVOLVING = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}


class Blocks:
    """What `write_ray` uses of a dataset of Ray."""

    def iter_batches(self, **options: object) -> Iterator[pa.Table]:
        yield pa.Table.from_pylist(ROWS, schema=COLUMNS)


def commit_change(table: Any, change: Any) -> list[dict[str, Any]]:
    builder = table.new_batch_write_builder()
    builder.new_commit().commit(change(builder.new_update()))
    return read(table)


def raised(call: Any, kind: type[Exception]) -> bool:
    with pytest.raises(kind):
        call()
    return True


async def follow(table: Any) -> int:
    async for plan in table.new_stream_read_builder().new_streaming_scan().stream():
        return int(table.new_stream_read_builder().new_read().to_arrow(plan.splits()).num_rows)
    return 0


def rows_of_page() -> list[tuple[str, str]]:
    text = PAGE.read_text("utf8").partition("## Names")[2].partition("The command line")[0]
    found = re.findall(r"^\| (`?.*?) \| (.*?) \|$", text, re.MULTILINE)
    return [pair for pair in found if pair[0] not in ("pypaimon", "---")]


CASES: dict[str, tuple[str, str]] = {
    "CatalogFactory.create": ("peer.warehouse == peer_place", "own.warehouse == own_place"),
    "catalog.list_databases()": ("peer.list_databases()", "own.databases()"),
    "catalog.create_database": (
        "peer.create_database('x', True), peer.drop_database('x'), peer.list_databases()",
        "own.create_database('x', exist_ok=True), own.drop_database('x'), own.databases()",
    ),
    "catalog.get_database(n).options": ("peer.get_database('d').options == {}", "'d' in own.databases()"),
    "catalog.alter_database": (
        "[j := CatalogFactory.create({**jdbc, 'warehouse': peer_place}), j.create_database('a', True, {'k': '1'}),"
        " j.alter_database('a', [PropertyChange.set_property('k', '2')]), j.get_database('a').options['k']][-1]",
        "[j := paimon.connect(own_place, **jdbc), j.create_database('b', properties={'k': '1'}),"
        " j.alter_database('b', {'k': '2'}, remove=['x']), j.database_properties('b')['k']][-1]",
    ),
    "catalog.get_table(name)": (
        "peer.get_table('d.t').field_names, peer.list_tables('d')",
        "own.table('d.t').arrow_schema.names, own.tables('d')",
    ),
    "FileStoreTable.from_path": (
        "FileStoreTable.from_path(P.table_path).field_names",
        "paimon.open_table(T.location).arrow_schema.names",
    ),
    "catalog.create_table": (
        "peer.create_table('d.c', Schema.from_pyarrow_schema(PLAIN), True), peer.list_tables('d')",
        "own.create_table('d.c', 'id BIGINT, item STRING', exist_ok=True) and None, own.tables('d')",
    ),
    "Schema.from_pyarrow_schema": (
        "[c.name for c in Schema.from_pyarrow_schema(PLAIN).fields]",
        "own.create_table('d.s', PLAIN).arrow_schema.names",
    ),
    "catalog.alter_table": (
        "peer.alter_table('d.t', [SchemaChange.add_column('n', AtomicType('INT'))]), peer.get_table('d.t').field_names",
        "T.alter('ADD COLUMN n INT') and None, own.table('d.t').arrow_schema.names",
    ),
    "Move.first": (
        "peer.alter_table('d.t', [SchemaChange.update_column_position(Move.first('item'))]),"
        " peer.get_table('d.t').field_names",
        "T.alter('ALTER COLUMN item FIRST') and None, own.table('d.t').arrow_schema.names",
    ),
    "catalog.rename_table": (
        "peer.create_table('d.a', Schema.from_pyarrow_schema(PLAIN), True), peer.rename_table('d.a', 'd.b'),"
        " peer.drop_table('d.b'), peer.list_tables('d')",
        "own.create_table('d.a', PLAIN) and None, own.rename_table('d.a', 'd.b') and None, own.drop_table('d.b'),"
        " own.tables('d')",
    ),
    "catalog.drop_partitions": (
        "[peer.drop_partitions('d.t', [{'day': 'mon'}]), read(P)][-1]",
        "[T.drop_partitions({'day': 'mon'}), read(T)][-1]",
    ),
    "catalog.list_partitions_paged": (
        "[p.spec for p in peer.list_partitions_paged('d.t').elements]",
        "[{'day': r['partition'].removeprefix('day=')} for r in"
        " T.system_table('partitions').scan().to_arrow().to_pylist()]",
    ),
    "commit.truncate_table()": (
        "[P.new_batch_write_builder().new_commit().truncate_table(), read(P)][-1]",
        "[T.overwrite([], {}), read(T)][-1]",
    ),
    "new_batch_write_builder()": (
        "read(one_commit(P, lambda w: w.write_pandas(pa.Table.from_pylist(ROWS, schema=COLUMNS).to_pandas())))",
        "[T.write(pa.Table.from_pylist(ROWS, schema=COLUMNS).to_pandas()), read(T)][-1]",
    ),
    "write_row": (
        "read(one_commit(P, lambda w: w.write_row(GenericRow([3, 'cap', 'mon'], P.fields))))",
        "[T.write([{'id': 3, 'item': 'cap', 'day': 'mon'}]), read(T)][-1]",
    ),
    "builder.overwrite": (
        "read(one_commit(P, lambda w: w.write_arrow(pa.Table.from_pylist(ROWS[:1], schema=COLUMNS)),"
        " P.new_batch_write_builder().overwrite({'day': 'mon'})))",
        "[T.overwrite(ROWS[:1], {'day': 'mon'}), read(T)][-1]",
    ),
    "new_postpone_fixed_bucket_write_builder()": (
        "[peer.create_table('d.p', Schema.from_pyarrow_schema(PLAIN, primary_keys=['id'], options={'bucket': '-2'})),"
        " t := peer.get_table('d.p'), one_commit(t, lambda w: w.write_arrow(pa.table({'id': [1], 'item': ['a']})),"
        " t.new_postpone_fixed_bucket_write_builder()), read(t)][-1]",
        "[t := own.create_table('d.p', PLAIN, primary_keys=['id'], options={'bucket': -2}),"
        " t.with_options({'postpone.batch-write-fixed-bucket': True}).write({'id': [1], 'item': ['a']}), read(t)][-1]",
    ),
    "with_bucket_plan": (
        "[peer.create_table('d.p', Schema.from_pyarrow_schema(PLAIN, primary_keys=['id'], options={'bucket': '-2'})),"
        " t := peer.get_table('d.p'), one_commit(t, lambda w: w.write_arrow(pa.table({'id': [1], 'item': ['a']})),"
        " t.new_postpone_fixed_bucket_write_builder().with_bucket_plan(PostponeBucketPlan({(): 3}))),"
        " t.new_read_builder().new_scan().plan().splits()[0].total_buckets][-1]",
        "[t := own.create_table('d.p', PLAIN, primary_keys=['id'], options={'bucket': -2,"
        " 'postpone.batch-write-fixed-bucket': True}), one_commit(t, lambda w: w.write({'id': [1], 'item': ['a']}),"
        " t.new_batch_write_builder().with_bucket_plan({(): 3})), t.scan().plan().splits[0].total_buckets][-1]",
    ),
    "with_write_type": (
        "read(one_commit(P, lambda w: w.with_write_type(['id', 'day'])"
        ".write_arrow(pa.table({'id': [4], 'day': ['mon']}))))",
        "[T.write({'id': [4], 'day': ['mon']}), read(T)][-1]",
    ),
    "new_stream_write_builder()": (
        "[b := P.new_stream_write_builder(), w := b.new_write(),"
        " w.write_arrow(pa.Table.from_pylist(ROWS, schema=COLUMNS)), b.new_commit().commit(w.prepare_commit(7), 7),"
        " read(P)][-1]",
        "[T.write(ROWS, commit_user='job', identifier=7), read(T)][-1]",
    ),
    "add_commit_callback": (
        "[seen := [], made := type('C', (), {'call': lambda s, c: seen.append(1), 'close': lambda s: None})(),"
        " b := P.new_batch_write_builder(), w := b.new_write(), w.write_arrow(pa.Table.from_pylist(ROWS,"
        " schema=COLUMNS)), c := b.new_commit(), c.add_commit_callback(made), c.commit(w.prepare_commit()), seen][-1]",
        "[seen := [], T.with_callbacks(lambda c: seen.append(1)).write(ROWS), seen][-1]",
    ),
    "new_update().update_by_predicate": (
        "[b := P.new_batch_write_builder(), u := b.new_update(), b.new_commit().commit(u.update_by_predicate("
        "u.new_predicate_builder().equal('id', 1), {'item': 'x'})), read(P)][-1]",
        "[T.update({'item': \"'x'\"}, 'id = 1'), read(T)][-1]",
    ),
    "new_update().delete_by_predicate": (
        "[b := P.new_batch_write_builder(), u := b.new_update(), b.new_commit().commit(u.delete_by_predicate("
        "u.new_predicate_builder().equal('id', 1))), read(P)][-1]",
        "[T.delete('id = 1'), read(T)][-1]",
    ),
    "upsert_by_arrow_with_key": (
        "[b := P.new_batch_write_builder(), b.new_commit().commit(b.new_update().upsert_by_arrow_with_key("
        "pa.Table.from_pylist([{**ROWS[0], 'item': 'y'}], schema=COLUMNS), ['id'])), read(P)][-1]",
        "[T.merge([{**ROWS[0], 'item': 'y'}], on=['id']).when_matched_update_all().when_not_matched_insert_all()"
        ".execute(), read(T)][-1]",
    ),
    "update_by_arrow_with_row_id": (
        "[peer.create_table('d.e', Schema.from_pyarrow_schema(PLAIN, options={'row-tracking.enabled': 'true',"
        " 'data-evolution.enabled': 'true'})), t := peer.get_table('d.e'), one_commit(t, lambda w: w.write_arrow("
        "pa.table({'id': [1], 'item': ['a']}))), b := t.new_batch_write_builder(), b.new_commit().commit(b.new_update()"
        ".update_by_arrow_with_row_id(pa.table({'_ROW_ID': [0], 'item': ['b']}))), read(t)][-1]",
        "[t := own.create_table('d.e', PLAIN, options={'row-tracking.enabled': True, 'data-evolution.enabled': True}),"
        " t.write({'id': [1], 'item': ['a']}), b := t.new_batch_write_builder(),"
        " b.new_commit().commit(b.new_update().update_by_row_id({'_ROW_ID': [0], 'item': ['b']})), read(t)][-1]",
    ),
    'update_by_predicate(p, {"a": function}': (
        "changed_peer(lambda u: u.update_by_predicate(None, {'item': lambda rows: pc.cast(rows['id'], 'string')},"
        " ['id']))",
        "changed_own(lambda u: u.update_by_function(lambda rows: {'item': pc.cast(rows['id'], 'string')}, ['id'],"
        " 'TRUE'))",
    ),
    "delete_by_row_id": (
        "changed_peer(lambda u: u.delete_by_row_id([0]))",
        "changed_own(lambda u: u.delete_by_row_id([0]))",
    ),
    "merge_into(rows": (
        "changed_peer(lambda u: u.merge_into(SOURCE, on=['id'], when_matched=[WhenMatched.update('*')]))",
        "changed_own(lambda u: u.merge(SOURCE, ['id']).when_matched_update_all().prepare_commit())",
    ),
    "WhenMatched.update(": (
        "changed_peer(lambda u: u.merge_into(SOURCE, on=['id'], when_matched=[WhenMatched.delete('s.item = \"x\"'"
        ".replace(chr(34), chr(39))), WhenMatched.update({'item': 's.item'})]))",
        "changed_own(lambda u: u.merge(SOURCE, ['id']).when_matched_delete(\"source.item = 'x'\")"
        ".when_matched_update({'item': 'source.item'}).prepare_commit())",
    ),
    "WhenNotMatched(": (
        "changed_peer(lambda u: u.merge_into(SOURCE, on=['id'], when_matched=[WhenMatched.update({'item':"
        " source_col('item')})], when_not_matched=[WhenNotMatched(insert='*')]))",
        "changed_own(lambda u: u.merge(SOURCE, ['id']).when_matched_update({'item': 'source.item'})"
        ".when_not_matched_insert_all().prepare_commit())",
    ),
    "write_ray(dataset)": (
        "[P.new_batch_write_builder().new_write().write_ray(Blocks()), read(P)][-1]",
        "[[T.write(batch) for batch in Blocks().iter_batches()], read(T)][-1]",
    ),
    "new_read_builder()": (
        "[b := P.new_read_builder(), read(P, b.with_filter(b.new_predicate_builder().equal('id', 1))"
        ".with_projection(['item']))][-1]",
        "T.scan(columns=['item'], where='id = 1').to_arrow().to_pylist()",
    ),
    "PredicateBuilder.equal": (
        "[b := P.new_read_builder(), c := b.new_predicate_builder(),"
        " read(P, b.with_filter(c.and_predicates([c.equal('id', 1), c.equal('item', 'pen')])))][-1]",
        "T.scan(where=(paimon.col('id') == 1) & (paimon.col('item') == 'pen')).to_arrow().to_pylist()",
    ),
    "to_arrow(splits)": (
        "[r := P.new_read_builder().new_read(), r.to_arrow(plans(P)).num_rows, len(r.to_pandas(plans(P))),"
        " r.to_arrow_batch_reader(plans(P)).read_all().num_rows][1:]",
        "T.scan().to_arrow().num_rows, len(T.scan().to_pandas()), sum(b.num_rows for b in T.scan().to_batches())",
    ),
    "to_duckdb(splits": (
        "P.new_read_builder().new_read().to_duckdb(plans(P), 't').execute('SELECT sum(id) FROM t').fetchone()[0]",
        "int(own.sql('SELECT sum(id) AS s FROM d.t').to_arrow().to_pylist()[0]['s'])",
    ),
    "to_iterator(splits)": (
        "sorted(r.get_field(0) for r in P.new_read_builder().new_read().to_iterator(plans(P)))",
        "sorted(row['id'] for batch in T.scan() for row in batch.to_pylist())",
    ),
    "to_ray(splits)": (
        "[hasattr(P.new_read_builder().new_read(), n) for n in ('to_ray', 'to_torch')]",
        "[hasattr(T.new_read_builder().new_read(), n) for n in ('to_ray', 'to_torch')]",
    ),
    "scan.with_shard": (
        "sum(s.row_count for i in range(2) for s in P.new_read_builder().new_scan().with_shard(i, 2).plan().splits())",
        "sum(s.row_count for i in range(2) for s in T.new_read_builder().new_scan().with_shard(i, 2).plan().splits())",
    ),
    "stream()": (
        "asyncio.run(follow(P)), sum(1 for _, p in zip(range(1),"
        " P.new_stream_read_builder().new_streaming_scan().stream_sync()))",
        "sum(b.num_rows for b in T.follow(idle_timeout=0)), 1",
    ),
    "new_stream_read_builder()": (
        "len(next(P.new_stream_read_builder().new_streaming_scan().stream_sync()).splits())",
        "len(next(T.new_stream_read_builder().new_scan()).splits())",
    ),
    "with_include_row_kind": (
        "[b := P.new_stream_read_builder().with_include_row_kind(True),"
        " b.new_read().to_arrow(next(b.new_streaming_scan().stream_sync()).splits())['_row_kind'].to_pylist()][-1]",
        "T.new_read_builder().with_row_kinds().new_read().to_arrow(plans(T))['rowkind'].to_pylist()",
    ),
    "with_consumer_id": (
        "[i := P.new_stream_read_builder().with_consumer_id('me').new_streaming_scan().stream_sync(), next(i),"
        " P.new_batch_write_builder().overwrite() and one_commit(P, lambda w: w.write_arrow(pa.Table.from_pylist(ROWS,"
        " schema=COLUMNS))), next(i), P.consumer_manager().consumers()][-1]",
        "[T.write(ROWS), f := T.follow(consumer_id='me', idle_timeout=0), list(f), f.acknowledge(2),"
        " {'me': T.consumers['me']}][-1]",
    ),
    'table.copy({"scan.tag-name"': (
        "[P.create_tag('g'), one_commit(P, lambda w: w.write_arrow(pa.Table.from_pylist(ROWS, schema=COLUMNS))),"
        " len(read(P.copy({'scan.tag-name': 'g'})))][-1]",
        "[T.tags.create('g'), T.write(ROWS), T.scan(tag='g').count()][-1]",
    ),
    'table.copy({"scan.snapshot-id"': ("len(read(P.copy({'scan.snapshot-id': '1'})))", "T.scan(snapshot=1).count()"),
    "table.create_tag": ("[P.create_tag('g'), P.list_tags()][-1]", "[T.tags.create('g'), list(T.tags)][-1]"),
    "table.delete_tag": (
        "[P.create_tag('g'), P.rename_tag('g', 'h'), P.replace_tag('h', 1), P.delete_tag('h'), P.list_tags()][-1]",
        "[T.tags.create('g'), T.tags.rename('g', 'h'), T.tags.replace('h', 1), T.tags.delete('h'), list(T.tags)][-1]",
    ),
    "catalog.create_branch": (
        "[P.create_tag('g'), peer.create_branch('d.t', 'b', 'g'), peer.list_branches('d.t')][-1]",
        "[T.tags.create('g'), T.branches.create('b', 'g'), list(T.branches)][-1]",
    ),
    "catalog.drop_branch": (
        "[P.create_tag('g'), peer.create_branch('d.t', 'b', 'g'), peer.rename_branch('d.t', 'b', 'c'),"
        " peer.fast_forward('d.t', 'c'), peer.drop_branch('d.t', 'c'), peer.list_branches('d.t')][-1]",
        "[T.tags.create('g'), T.branches.create('b', 'g'), T.branches.rename('b', 'c'), T.branches.fast_forward('c'),"
        " T.branches.delete('c'), list(T.branches)][-1]",
    ),
    "table.rollback_to": (
        "[one_commit(P, lambda w: w.write_arrow(pa.Table.from_pylist(ROWS, schema=COLUMNS))), P.rollback_to(1),"
        " len(read(P))][-1]",
        "[T.write(ROWS), T.maintain.rollback_to(1), T.scan().count()][-1]",
    ),
    "table.snapshot_manager().get_latest_snapshot()": (
        "P.snapshot_manager().get_latest_snapshot().id",
        "T.snapshot().id",
    ),
    "table.snapshot_manager().list_snapshots()": (
        "[s.id for s in P.snapshot_manager().list_snapshots()]",
        "[s.id for s in T.snapshots()]",
    ),
    "table.schema_manager.latest().fields": (
        "[f.name for f in P.schema_manager.latest().fields]",
        "[f.name for f in T.table_schema.fields]",
    ),
    "table.schema_manager.commit_changes": (
        "P.schema_manager.commit_changes([SchemaChange.set_option('write-only', 'true')]).options['write-only']",
        "T.alter(\"SET ('write-only' = 'true')\").options['write-only']",
    ),
    "read.parallelism": (
        "read(P.copy({'read.parallelism': '4'}))",
        "read(paimon.connect(own_place, threads=4).table('d.t'))",
    ),
    "table.consumer_manager()": ("P.consumer_manager().consumers()", "dict(T.consumers)"),
    "TableNotExistException": (
        "raised(lambda: peer.get_table('d.no'), TableNotExistException), raised(lambda: peer.create_table('d.t',"
        " Schema.from_pyarrow_schema(PLAIN), False), TableAlreadyExistException)",
        "raised(lambda: own.table('d.no'), paimon.NotFound), raised(lambda: own.create_table('d.t', PLAIN),"
        " paimon.AlreadyExists)",
    ),
    "CoreOptions.BUCKET.key()": (
        "CoreOptions.BUCKET.key(), P.copy({'target-file-size': '1 mb'}).options.target_file_size(False)",
        "'bucket', 1 << 20 if T.with_options({'target-file-size': '1 mb'}).options['target-file-size'] else 0",
    ),
    "SQLContext": ("len(read(P))", "own.sql('SELECT * FROM d.t').to_arrow().num_rows"),
}


def test_each_row_of_the_page_has_a_case() -> None:
    rows = [left for left, _ in rows_of_page()]
    assert len(rows) >= 50
    assert [left for left in rows if not any(key in left for key in CASES)] == []
    assert [key for key in CASES if not any(key in left for left in rows)] == []


@pytest.mark.parametrize("key", CASES)
def test_both_sides_of_a_row_have_the_same_result(key: str, names: dict[str, Any]) -> None:
    peer, own = CASES[key]
    assert listed(eval(peer, names)) == listed(eval(own, names))


def listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
