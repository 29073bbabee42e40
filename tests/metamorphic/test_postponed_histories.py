"""Postponed buckets: a compaction returns the same rows as one write of all of them to fixed buckets.

Files are compared too: their levels, keys, numbers and kinds equal those of the writer of fixed buckets.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commit_tables import engine_on
from support.table_machine import KEY, VALUES

import paimon
from paimon.adapters.formats.on_demand import FormatsOnDemand
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.row.values import to_values
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import IntType, VarCharType
from paimon.operations.commit.base import CommitBase
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.operations.table_context import TableContext
from paimon.operations.write import compact_table
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.strategies import MergingTable, fields_of, merging_tables, to_arrow_table
from paimon.testing.strategies.histories import INSERT

BATCH = st.lists(st.tuples(st.fixed_dictionaries(KEY | VALUES), st.integers(0, 9)), min_size=1, max_size=6)
ROUNDS = st.lists(st.lists(BATCH, min_size=1, max_size=3), min_size=1, max_size=3)
"""What is written between two compactions, in commits."""


def create(made: MergingTable, name: str, options: dict[str, str]) -> paimon.Table:
    engine = evolve(engine_on(MemoryFiles()), formats=FormatsOnDemand(0))
    schema, paths = made.schema, TablePaths(f"/lake/{name}")
    values = {key: text for key, text in schema.options.items() if not key.startswith("write-buffer")} | options
    declaration = TableDeclaration(schema.fields, schema.primary_keys, schema.partition_keys, values)
    created = create_table(engine, paths, declaration)
    return paimon.Table(TableContext(engine, TableDefinition("db.t", paths, created, TableOptions.of(created.options))))


def to_rows(table: paimon.Table, made: MergingTable, batch: list[Any]) -> pa.Table:
    fields = table.table_schema.fields
    kinds = [KIND_TEXTS[made.kinds[number % len(made.kinds)]] for _, number in batch]
    data = to_arrow_table(fields, [tuple(row.get(f.name) for f in fields) for row, _ in batch])
    return data.append_column("op", pa.array(kinds, pa.string()))


def read_rows(table: paimon.Table) -> list[str]:
    found = table.scan().to_arrow()
    types = {f.name: f.type for f in table.table_schema.fields}
    columns = [to_values(found[name], types[name]) for name in found.column_names]
    return sorted(map(repr, zip(*columns, strict=True)))


def layout(table: paimon.Table) -> list[tuple[Any, ...]]:
    live = CommitBase(table.context, table.snapshot()).read_live_files(lambda _: True)
    return sorted(
        (e.partition, e.bucket, e.total_buckets, e.file.level, e.file.row_count, e.file.min_key, e.file.max_key,
         e.file.min_sequence_number, e.file.max_sequence_number, e.file.delete_row_count)
        for e in live
    )  # fmt: skip


def check_history(made: MergingTable, rounds: list[list[list[Any]]], full: bool) -> None:
    buckets = made.schema.options["bucket"]
    postponed = create(made, "postponed", {"bucket": "-2", "postpone.default-bucket-num": buckets})
    fixed = create(made, "fixed", {"write-only": "false"})
    for commits in rounds:
        before = read_rows(postponed) if postponed.snapshot() else []
        for batch in commits:
            postponed.write(to_rows(postponed, made, batch), kind_column="op")
        assert read_rows(postponed) == before
        fixed.write(pa.concat_tables([to_rows(fixed, made, batch) for batch in commits]), kind_column="op")
        postponed.compact()
        if full:
            fixed.compact(full=True)
            postponed.compact(full=True)
        assert read_rows(postponed) == read_rows(fixed)
        assert layout(postponed) == layout(fixed)
    report = postponed.maintain.check(deep=True)
    assert report.is_whole, str(report)


@settings(max_examples=20, deadline=None)
@given(made=merging_tables(), rounds=ROUNDS, full=st.booleans())
def test_compacted_rows_are_those_of_one_write(made: MergingTable, rounds: list[Any], full: bool) -> None:
    check_history(made, rounds, full)


@pytest.mark.parametrize("full", [False, True])
def test_rows_that_change_no_file_are_compacted(full: bool) -> None:
    """The keys of the last commit are found above level 0, and another bucket has other files."""
    types = [IntType(nullable=False), *[IntType()] * 4, VarCharType(9), VarCharType(9)]
    fields = fields_of(types, ["k", "s", "g", "a", "b", "p", "t"])
    options = {"bucket": "3", "merge-engine": "first-row", "file.format.per.level": "0:avro"}
    made = MergingTable(TableSchema(0, fields, len(fields) - 1, (), ("k",), options), (INSERT,))
    row = dict.fromkeys(("p", "s", "g", "a", "b", "t"))
    check_history(made, [[[(row | {"k": k}, 0) for k in keys]] for keys in ([0], [0, 1], [1], [1, 0], [2])], full)


def test_a_wrong_order_of_files_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact_table, "sort_postponed_files", lambda files, _: tuple(reversed(files)))
    types = [IntType(nullable=False), VarCharType(1, nullable=False), *[IntType()] * 4, VarCharType(9)]
    fields = fields_of(types, ["k", "p", "s", "g", "a", "b", "t"])
    made = MergingTable(TableSchema(0, fields, len(fields) - 1, (), ("k",), {"bucket": "1"}), (INSERT,))
    row = dict.fromkeys(("s", "g", "a", "b", "t")) | {"k": 1, "p": "a"}
    with pytest.raises(AssertionError):
        check_history(made, [[[(row, 0)], [(row | {"a": 1}, 0)]]], False)
