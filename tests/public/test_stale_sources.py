"""Rows that are computed from the table that they change: no change of another user is lost or overwritten."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.case_lists import mark_products

import paimon
from paimon.operations.commit import commit as commit_module

KEYED = {"bucket": 1}
Change = Callable[[paimon.Catalog, paimon.Table], object]


def make_table(catalog: paimon.Catalog, keyed: bool) -> paimon.Table:
    keys: dict[str, Any] = {"primary_keys": ["id"], "options": KEYED} if keyed else {}
    table = catalog.create_table("d.t", "id BIGINT NOT NULL, v BIGINT", **keys)
    table.write([{"id": i, "v": 10 * i} for i in (1, 2, 3)])
    return table


def run_before_publish(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Let another user act once, between the read of a change and its first attempt to commit."""
    waiting = [action]

    def publish(real: Any, *given: Any) -> Any:
        while waiting:
            waiting.pop()()
        return real(*given)

    for name in ("publish_change", "publish_in_group"):
        monkeypatch.setattr(commit_module, name, partial(publish, getattr(commit_module, name)))


def read(catalog: paimon.Catalog) -> list[tuple[int, int]]:
    rows = catalog.table("d.t").scan().to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in rows)


def merge_with(source: Any, table: paimon.Table) -> object:
    merge = table.merge(source, "target.id = source.id").when_matched_update({"v": "source.v + 1"})
    return merge.when_not_matched_insert_all().execute()


def overwrite_by_builder(table: paimon.Table, source: Any) -> object:
    builder = table.new_batch_write_builder().overwrite({})
    with builder.new_write() as writer:
        writer.write(source)
        return builder.new_commit().commit(writer.prepare_commit())


ADDS_ONE: dict[str, Change] = {
    "scan": lambda c, t: merge_with(t.scan(), t),
    "list": lambda c, t: merge_with([t.scan()], t),
    "query": lambda c, t: merge_with(c.sql("SELECT * FROM d.t"), t),
    "query over frame": lambda c, t: merge_with(c.sql("SELECT * FROM f", f=t.scan()), t),
    "audit log": lambda c, t: merge_with(c.table("d.t$audit_log").scan(["id", "v"]), t),
    "sql merge": lambda c, t: c.sql(
        "MERGE INTO d.t USING (SELECT * FROM d.t) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v + 1 "
        "WHEN NOT MATCHED THEN INSERT *"
    ),
    "sql subquery": lambda c, t: c.sql("UPDATE d.t SET v = v + 1 WHERE id IN (SELECT id FROM d.t WHERE v >= 0)"),
    "sql correlated": lambda c, t: c.sql("UPDATE d.t SET v = (SELECT s.v + 1 FROM d.t s WHERE s.id = t.id)"),
    "insert overwrite": lambda c, t: c.sql("INSERT OVERWRITE d.t SELECT id, v + 1 FROM d.t"),
    "overwrite of a query": lambda c, t: t.overwrite(c.sql("SELECT id, v + 1 AS v FROM d.t")),
}
KEYED_ADDS_ONE: dict[str, Change] = {
    "insert": lambda c, t: c.sql("INSERT INTO d.t SELECT id, v + 1 FROM d.t"),
    "insert over view": lambda c, t: c.sql(
        "CREATE TEMPORARY VIEW w AS SELECT * FROM d.t; INSERT INTO d.t SELECT id, v + 1 FROM w"
    ),
    "write of a query": lambda c, t: t.write(c.sql("SELECT id, v + 1 AS v FROM d.t")),
    "write of new columns": lambda c, t: t.write(c.sql("SELECT id, v + 1 AS v, 1 AS n FROM d.t"), merge_schema=True),
}


@pytest.mark.parametrize(
    ("name", "keyed"), [*mark_products(ADDS_ONE, [True, False]), *((name, True) for name in KEYED_ADDS_ONE)]
)
def test_a_source_that_reads_its_target_is_read_again(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, name: str, keyed: bool
) -> None:
    table = make_table(catalog, keyed)

    def act() -> None:
        other = catalog.table("d.t")
        other.update({"v": 100}, "id = 1")
        other.write([{"id": 4, "v": 400}], missing_columns="null")

    run_before_publish(monkeypatch, act)
    {**ADDS_ONE, **KEYED_ADDS_ONE}[name](catalog, table)
    assert read(catalog) == [(1, 101), (2, 21), (3, 31), (4, 401)]


REFUSED: dict[str, Change] = {
    "merge of batches": lambda c, t: merge_with(t.scan().to_batches(), t),
    "merge of an iterator": lambda c, t: merge_with(iter(t.scan()), t),
    "merge of splits": lambda c, t: merge_with(read_splits(t), t),
    "overwrite with batches": lambda c, t: t.overwrite(t.scan().to_batches()),
    "overwrite by a builder": lambda c, t: overwrite_by_builder(t, t.scan()),
    "overwrite without rows": lambda c, t: overwrite_by_builder(t, t.scan(where="v < 0")),
}


def read_splits(table: paimon.Table) -> Any:
    builder = table.new_read_builder()
    return builder.new_read().to_arrow_batch_reader(builder.new_scan().plan().splits())


@pytest.mark.parametrize(("name", "keyed"), mark_products(REFUSED, [True, False]))
def test_a_source_that_cannot_be_read_again_is_refused(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, name: str, keyed: bool
) -> None:
    table = make_table(catalog, keyed)
    run_before_publish(monkeypatch, lambda: catalog.table("d.t").write([{"id": 4, "v": 400}]))
    with pytest.raises(paimon.CommitConflict, match=r"snapshot 2 changed rows after snapshot 1"):
        REFUSED[name](catalog, table)
    assert read(catalog) == [(1, 10), (2, 20), (3, 30), (4, 400)]
    assert table.maintain.check(deep=True).faults == ()


@pytest.mark.parametrize("keyed", [True, False])
def test_an_old_reader_is_refused_before_any_race(catalog: paimon.Catalog, keyed: bool) -> None:
    table = make_table(catalog, keyed)
    old, scan = table.scan().to_batches(), table.scan()
    assert scan.count() == 3
    table.update({"v": 100}, "id = 1")
    with pytest.raises(paimon.CommitConflict):
        merge_with(old, table)
    merge_with(scan, table)
    assert read(catalog) == [(1, 101), (2, 21), (3, 31)]


@pytest.mark.parametrize("keyed", [True, False])
def test_a_chosen_snapshot_stays_old(catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, keyed: bool) -> None:
    table = make_table(catalog, keyed)
    table.tags.create("first")
    table.update({"v": 0}, "TRUE")
    run_before_publish(monkeypatch, lambda: catalog.table("d.t").update({"v": 5}, "id = 1"))
    table.overwrite(table.scan(tag="first"))
    assert read(catalog) == [(1, 10), (2, 20), (3, 30)]
    catalog.sql("INSERT OVERWRITE d.t SELECT id, v + 1 FROM d.t /*+ OPTIONS('scan.snapshot-id' = '1') */")
    assert read(catalog) == [(1, 11), (2, 21), (3, 31)]


def test_overwrites_of_partitions_that_they_read_lose_no_row(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.sql("CREATE TABLE d.t (id BIGINT, v BIGINT) PARTITIONED BY (v)")
    catalog.sql("INSERT INTO d.t VALUES (1, 1), (2, 2)")
    run_before_publish(monkeypatch, lambda: catalog.table("d.t").write([{"id": 5, "v": 1}]))
    catalog.sql("INSERT OVERWRITE d.t PARTITION (v = 1) SELECT id + 10 FROM d.t WHERE v = 1")
    assert read(catalog) == [(2, 2), (11, 1), (15, 1)]


def test_conditions_of_clauses_are_computed_again(catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(catalog, keyed=True)
    run_before_publish(monkeypatch, lambda: catalog.table("d.t").write([{"id": 3, "v": 1000}]))
    catalog.sql(
        "MERGE INTO d.t USING (SELECT 1 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM d.t)"
    )
    assert read(catalog) == [(1, 1000), (2, 20), (3, 1000)]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    "statement", ["DELETE FROM d.t WHERE v < (SELECT avg(v) FROM d.t)", "UPDATE d.t SET v = (SELECT max(v) FROM d.t)"]
)
def test_subqueries_of_statements_are_computed_again(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch, statement: str, keyed: bool
) -> None:
    make_table(catalog, keyed)
    run_before_publish(monkeypatch, lambda: catalog.table("d.t").write([{"id": 4, "v": 1000}]))
    catalog.sql(statement)
    deleted = statement.startswith("DELETE")
    assert read(catalog) == ([(4, 1000)] if deleted else [(i, 1000) for i in (1, 2, 3, 4)])
