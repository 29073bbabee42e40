"""Output in a notebook: short texts, cards, no internals after Tab. Displaying never fails, changes or reads much."""

from __future__ import annotations

import html.parser
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve

import paimon
from paimon.builders.stream_read_builder import StreamPlan
from paimon.display.listings import SnapshotList
from paimon.domain.errors import InvalidRequest
from paimon.domain.maintenance.snapshot_expiry import RetentionReason
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.table import Table
from paimon.testing.faulty_files import FaultyFiles

HOSTILE = "<script>alert('x')</script>"
VOID = {"br", "meta"}


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog: paimon.Catalog) -> Table:
    """A table of two snapshots with a hostile value, comment and property, and a secret option."""
    table = catalog.create_table(
        "shop.orders", "id BIGINT NOT NULL, day STRING NOT NULL, amount DECIMAL(10, 2), note STRING",
        primary_keys=["id", "day"], partition_keys=["day"], comment=HOSTILE, options={"bucket": 1},
    )  # fmt: skip
    for amount in ("9.99", "20.00"):
        rows = [{"id": i, "day": "x", "amount": amount, "note": HOSTILE if i else None} for i in range(30)]
        table.write(rows, properties={"job": HOSTILE, "access-token": "s3cr3tvalue"})
    return table


def create_displayed_objects(catalog: paimon.Catalog, table: Table) -> dict[str, Any]:
    reading, writing = table.new_read_builder(), table.new_batch_write_builder("me")
    filtered = reading.with_filter("amount > 10").with_projection(["id"]).with_limit(3)
    streaming = table.new_stream_write_builder("me")
    return {
        "catalog": catalog, "table": table, "snapshot": table.snapshot(),
        "scan": table.scan(where=paimon.col("amount") > 10, columns=["id", "note"], limit=5),
        "text-scan": table.scan(where="amount > 10", snapshot=1), "plan": table.scan().plan(),
        "read-builder": filtered, "table-scan": filtered.new_scan(), "scan-plan": filtered.new_scan().plan(),
        "table-read": filtered.new_read(), "batch-builder": writing.overwrite({"day": "x"}),
        "table-write": writing.new_write(), "table-commit": writing.new_commit(), "stream-builder": streaming,
        "stream-commit": streaming.new_commit(), "system-table": table.system_table("files"),
        "system-scan": table.system_table("files").scan(limit=1, where="level = 0"),
        "tags": table.tags, "branches": table.branches, "consumers": table.consumers, "changes": table.changes(),
        "merge": table.merge([{"id": 1, "day": "x"}], on=["id", "day"]).when_matched_delete(),
        "stream-plan": StreamPlan(1, filtered.new_scan().plan().splits()), "session": catalog.sql_session(),
        "stream-read": table.new_stream_read_builder().new_read(),
        "stream-scan": table.new_stream_read_builder().new_scan(),
    }  # fmt: skip


NAMES = ["catalog", "table", "snapshot", "scan", "text-scan", "plan", "read-builder", "table-scan", "scan-plan",
         "table-read", "batch-builder", "table-write", "table-commit", "stream-builder", "stream-commit",
         "system-table", "system-scan", "tags", "branches", "consumers", "changes", "merge", "stream-plan", "session",
         "stream-read", "stream-scan"]  # fmt: skip


class Outline(html.parser.HTMLParser):
    """The tags and texts of some HTML; a tag that is not closed in its place fails."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.titles: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.titles += [value for name, value in attrs if name == "title" and value]
        self.open += [tag] * (tag not in VOID)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("name", NAMES)
def test_texts_and_cards_are_short_and_well_formed(catalog: paimon.Catalog, orders: Table, name: str) -> None:
    displayed = create_displayed_objects(catalog, orders)[name]
    assert len(repr(displayed)) <= 300 and "\n" not in repr(displayed)
    outline = Outline(displayed._repr_html_())
    assert "script" not in outline.tags and "b" not in outline.tags
    assert len("".join(outline.texts)) < 6_000  # its style included
    assert "s3cr3tvalue" not in displayed._repr_html_() + repr(displayed)


def test_every_public_class_of_these_is_covered(catalog: paimon.Catalog, orders: Table) -> None:
    assert list(create_displayed_objects(catalog, orders)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_tab_offers_no_internals(catalog: paimon.Catalog, orders: Table, name: str) -> None:
    displayed = create_displayed_objects(catalog, orders)[name]
    offered = set(dir(displayed))
    assert not offered & {"engine", "definition", "recipe", "store", "pinned", "read_plan", "inner"}
    if name == "table":
        assert offered >= {"scan", "write", "name", "location", "options", "tags", "__class__"}
        assert displayed.definition is orders.definition  # hidden, but available
    if name == "read-builder":
        assert "table" not in offered and "with_filter" in offered


def test_the_table_shows_keys_partitions_options_snapshot_and_location(orders: Table) -> None:
    text = repr(orders)
    for part in ("'shop.orders'", "4 columns", "primary key (id, day)", "partitioned by (day)", "bucket=1"):
        assert part in text
    assert orders.location in text
    texts = Outline(orders._repr_html_()).texts
    assert {orders.location, "id, day", "day", "bucket = 1", "DECIMAL(10, 2)", "primary key, partition"} <= set(texts)
    assert any(part.startswith("2 · APPEND · 20") and "60 records (+30)" in part for part in texts)
    assert HOSTILE in texts  # the comment, as text


def test_a_scan_previews_its_rows(orders: Table) -> None:
    texts = Outline(orders.scan(columns=["id", "amount", "note"], where="id < 20")._repr_html_()).texts
    assert texts.count("20.00") == 10 and texts.count(HOSTILE) == 9 and texts.count("null") == 1
    assert "decimal128(10, 2)" in texts and any("first 10 rows" in part for part in texts)
    assert Outline(orders.scan(limit=3)._repr_html_()).texts.count("20.00") == 3
    assert "no rows" in Outline(orders.scan(where="id = 99")._repr_html_()).texts


def test_a_card_offers_more_rows_only_where_there_are_more(catalog: paimon.Catalog, orders: Table) -> None:
    scans = {orders.scan(): True, orders.scan(limit=10): False, orders.scan(limit=11): True}
    scans |= {orders.scan(where="id < 10"): False, orders.scan(where="id < 12"): True}
    results = {catalog.sql(f"SELECT id FROM shop.orders LIMIT {rows}"): rows > 20 for rows in (0, 19, 20, 21)}
    for shown, has_more in [*scans.items(), *results.items()]:
        texts = Outline(shown._repr_html_()).texts
        assert any("head(n) returns more" in part for part in texts) == has_more, shown


# Verbs and what they return.


def run_verbs(catalog: paimon.Catalog, table: Table) -> dict[str, tuple[Any, list[str]]]:
    """A result of each class that a verb returns, and texts on its card."""
    rows = [{"id": 1, "day": "x", "amount": "1.00", "note": "n"}]
    table.tags.create("kept", time_retained="1 d")
    merge = table.merge(pa.table({"id": [1], "day": ["x"]}), on=["id", "day"]).when_matched_delete()
    event = json.dumps({"op": "c", "before": None, "after": rows[0]})
    writer = table.new_batch_write_builder()
    with writer.new_write() as write:
        write.write(rows)
        messages = write.prepare_commit()
    return {
        "WriteResult": (table.write(rows), ["Write result", "snapshot ids", "3", "rows", "1"]),
        "CommitResult": (writer.new_commit().commit(messages), ["Commit result", "added rows"]),
        "MergeResult": (merge.execute(), ["Merge result", "deleted", "1", "inserted", "0"]),
        "CdcResult": (paimon.cdc([event], table, "debezium-json"), ["Cdc result", "events", "shop.orders"]),
        "CompactResult": (table.compact(full=True), ["Compact result", "files before", "files after"]),
        "RescaleResult": (table.rescale(2, dry_run=True), ["Rescale result", "partitions"]),
        "HealthReport": (table.maintain.check(), ["whole", "faults", "none"]),
        "CommitOutcome": (table.outcome("nobody", 1), ["Commit outcome", "open"]),
        "Tag": (table.tags["kept"], ["tag kept", "retained", "86,400 s"]),
        "Expired": (table.maintain.expire_snapshots(dry_run=True, retain_max=1, retain_min=1), ["Expired", "ids"]),
        "RolledBack": (table.maintain.rollback_to(tag="kept"), ["Rolled back", "snapshot id", "2"]),
    }


def test_each_result_of_a_verb_has_a_card_and_a_short_text(catalog: paimon.Catalog, orders: Table) -> None:
    for name, (result, expected) in run_verbs(catalog, orders).items():
        assert type(result).__name__ == name
        assert "\n" not in repr(result)
        texts = Outline(result._repr_html_()).texts
        assert set(expected) <= set(texts), name
    expired = evolve(orders.maintain.expire_snapshots(), retained_by=[RetentionReason("tag", HOSTILE, 1)])
    assert any(HOSTILE in text for text in Outline(expired._repr_html_()).texts)


def test_faults_are_listed_with_their_remedies(orders: Table) -> None:
    for file in Path(orders.location).rglob("data-*"):
        file.unlink()
    outline = Outline(orders.maintain.check()._repr_html_())
    assert {"not whole", "missing", "remedy"} <= set(outline.texts)
    assert any("restore the file from a backup" in title for title in outline.titles)


def test_system_tables_show_their_rows_and_offer_more_only_where_there_are(orders: Table) -> None:
    for day in range(12):
        orders.write([{"id": 1, "day": str(day), "amount": None, "note": None}])
    assert len(orders.snapshots()) == 14
    files = orders.with_options({"write-only": "true"}).system_table("snapshots")
    shown = {files: True, files.scan(): True, files.scan(limit=10): False, files.scan(where="snapshot_id > 9"): False}
    for displayed, has_more in shown.items():
        texts = Outline(displayed._repr_html_()).texts
        assert any("head(n) returns more" in part for part in texts) == has_more
        assert texts.count("APPEND") == (5 if "where" in repr(displayed) else 10)
    audit = Outline(orders.system_table("audit_log")._repr_html_()).texts
    assert {"shop.orders$audit_log", "+I"} <= set(audit)
    assert any("scan().head(n)" in part for part in audit)


def test_a_large_system_table_is_displayed_without_its_manifests(
    orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paimon.scan.PREVIEW_MANIFEST_BYTES", 1)
    assert any("too large for a preview" in part for part in Outline(orders.system_table("files")._repr_html_()).texts)
    assert "APPEND" in Outline(orders.system_table("snapshots")._repr_html_()).texts


def test_snapshots_and_tags_are_tables_on_cards_and_in_print(orders: Table) -> None:
    snapshots = orders.snapshots()
    assert isinstance(snapshots, list) and [s.id for s in snapshots] == [1, 2]
    for number in range(22):
        orders.tags.create(f"tag-{number:02}", 1)
    for listing, words in ((snapshots, "records added"), (orders.tags, "tag-19")):
        assert words in str(listing) and words in Outline(listing._repr_html_()).texts
        assert "APPEND" in str(listing) and "APPEND" in Outline(listing._repr_html_()).texts
    assert "and 2 more" in str(orders.tags) and "tag-20" not in str(orders.tags)
    many = SnapshotList(evolve(snapshots[0], id=number) for number in range(1, 31))
    assert "and 10 earlier" in str(many) and "\n      30  APPEND" in str(many) and "\n      10  APPEND" not in str(many)
    assert str(orders.branches).endswith("none")


def test_long_values_do_not_make_rows_high(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("shop.long", "id INT, text STRING, bytes BYTES")
    text = "a line of a text\n" * 200
    table.write([{"id": 1, "text": text, "bytes": b"\x00" * 5_000}])
    outline = Outline(table.scan()._repr_html_())
    cut = [part for part in outline.texts if part.startswith("a line of a text")]
    assert len(cut) == 1 and len(cut[0]) == 60 and "\n" not in cut[0]
    assert any(title.startswith("a line of a text\\na line") for title in outline.titles)
    assert all(len(title) <= 2_000 for title in outline.titles)


def test_plans_are_shown_with_their_lines(catalog: paimon.Catalog, orders: Table) -> None:
    plan = orders.scan(where="id > 3").explain()
    assert isinstance(plan, str) and repr(plan) == str(plan) and "\n  where:   id > 3\n" in plan
    explained = catalog.sql("EXPLAIN SELECT id FROM shop.orders WHERE id > 3")
    for displayed in (plan, explained):
        outline = Outline(displayed._repr_html_())  # type: ignore[attr-defined]
        assert "pre" in outline.tags and any("  where:   id > 3" in text for text in outline.texts)
    created = catalog.sql("CREATE DATABASE other")
    assert "Database 'other' is created." in Outline(created._repr_html_()).texts


def test_rows_are_printed(orders: Table, capsys: pytest.CaptureFixture[str]) -> None:
    orders.scan(columns=["id", "amount"], where="id < 2").show()
    orders.system_table("snapshots").scan(columns=["snapshot_id"]).show(1)
    assert capsys.readouterr().out.splitlines() == [
        "id  amount", "--  ------", " 0   20.00", " 1   20.00",
        "snapshot_id", "-----------", "          1", "…",
    ]  # fmt: skip


def test_a_preview_leaves_out_columns_in_the_middle(catalog: paimon.Catalog) -> None:
    wide = catalog.create_table("shop.wide", ", ".join(f"c{i} INT" for i in range(30)))
    wide.write([{f"c{i}": 100 + i for i in range(30)}])
    texts = Outline(wide.scan(where="c15 = 115")._repr_html_()).texts
    assert "109" in texts and "120" in texts and "110" not in texts and "119" not in texts
    assert any("10 columns in the middle left out" in part for part in texts)


def test_showing_a_scan_does_not_pin_it(orders: Table) -> None:
    scan = orders.scan()
    repr(scan), scan._repr_html_(), dir(scan)
    orders.write([{"id": 99, "day": "y", "amount": "1.00", "note": None}])
    assert scan.count() == 31


def test_a_large_table_is_displayed_without_planning(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paimon.scan.PREVIEW_MANIFEST_BYTES", 1)
    texts = Outline(orders.scan()._repr_html_()).texts
    assert any("head() reads the first rows" in part for part in texts) and "20.00" not in texts


def test_a_filter_is_not_searched_through_all_files(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paimon.scan.PREVIEW_FILTER_BYTES", 1)
    texts = Outline(orders.scan(where="id = 3")._repr_html_()).texts
    assert any("head() reads more files" in part for part in texts)
    assert "20.00" in Outline(orders.scan()._repr_html_()).texts  # without a filter, few files contain the first rows


def record_operations(table: Table) -> tuple[Table, list[tuple[str, str]]]:
    """The table over files that note each operation."""
    seen: list[tuple[str, str]] = []

    def note(operation: str, path: str) -> None:
        seen.append((operation, path))

    engine = evolve(table.engine, files=FaultyFiles(table.engine.files, note))
    return table.with_engine(engine), seen


def test_a_repr_reads_no_file_and_the_card_of_a_table_only_its_snapshot(orders: Table) -> None:
    table, seen = record_operations(orders)
    repr(table), repr(table.scan(where="id = 1")), repr(table.new_read_builder()), dir(table)
    repr(table.new_batch_write_builder())
    assert not seen
    table._repr_html_()
    assert seen and all("/snapshot" in path for _, path in seen)


def broken_ways() -> dict[str, Callable[[Path], None]]:
    def empty_snapshots(root: Path) -> None:
        for file in (root / "snapshot").iterdir():
            file.write_bytes(b"")

    def spoil_data(root: Path) -> None:
        for file in root.rglob("data-*"):
            file.write_bytes(b"\x00")

    def spoil_manifests(root: Path) -> None:
        for file in (root / "manifest").iterdir():
            file.write_bytes(b"\x00" * 40)

    return {"gone": shutil.rmtree, "snapshots": empty_snapshots, "data": spoil_data, "manifests": spoil_manifests}


@pytest.mark.parametrize("way", ["gone", "snapshots", "data", "manifests"])
def test_a_broken_table_is_displayed_with_the_reason(catalog: paimon.Catalog, orders: Table, way: str) -> None:
    broken_ways()[way](Path(orders.location))
    fresh = paimon.connect(catalog.warehouse)
    table = orders.with_engine(fresh.engine)
    for displayed in (table, table.scan(), table.scan(where="id = 1"), table.scan(columns=["nope"]), fresh):
        repr(displayed)
        Outline(displayed._repr_html_())
    scan = Outline(table.scan()._repr_html_()).texts
    assert any("cannot be read: " in part for part in scan)
    in_table = any("cannot be read: " in part for part in Outline(table._repr_html_()).texts)
    assert in_table == (way in ("gone", "snapshots"))


def test_an_invalid_scan_is_displayed_with_the_reason(orders: Table) -> None:
    assert any("nope" in part for part in Outline(orders.scan(where="nope = 1")._repr_html_()).texts)
    assert any("99" in part for part in Outline(orders.scan(snapshot=99)._repr_html_()).texts)


def test_passwords_and_secret_options_are_not_displayed(orders: Table) -> None:
    definition = orders.definition
    secret = evolve(
        definition,
        paths=evolve(definition.paths, root="s3://user:hunter22@bucket/orders"),
        options=definition.options.with_values({"fs.s3.secret-key": "hunter22"}),
    )
    table = evolve(orders, context=orders.context.with_table(secret))
    for text in (repr(table), table._repr_html_()):
        assert "hunter22" not in text and "bucket/orders" in text


def test_a_catalog_shows_databases_and_some_tables(catalog: paimon.Catalog, orders: Table) -> None:
    for i in range(20):
        catalog.create_table(f"shop.t{i:02}", "a INT")
    for i in range(12):
        catalog.create_database(f"then{i:02}")
    texts = Outline(catalog._repr_html_()).texts
    assert {"shop", "then00", "then06", "no tables", "and 5 more databases"} <= set(texts)
    assert "then07" not in texts
    assert any(part.startswith("21 tables: orders, t00") and part.endswith("and 9 more") for part in texts)
    assert repr(catalog) == f"Catalog({catalog.warehouse!r})"


def test_a_snapshot_with_an_invalid_time_is_displayed() -> None:
    snapshot = Snapshot(1, 0, "b", "d", "u", 1, CommitKind.APPEND, 2**63 - 1)
    assert str(2**63 - 1) in repr(snapshot)
    Outline(snapshot._repr_html_())


def test_head_reads_the_first_rows_and_no_more_files_than_it_needs(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("shop.log", "day INT, n INT", partition_keys=["day"])
    for day in range(5):
        table.write([{"day": day, "n": n} for n in range(4)])
    counting, seen = record_operations(table)
    scan = counting.scan()
    scan.plan()
    seen.clear()
    assert scan.head(3).num_rows == 3
    assert len({path for operation, path in seen if operation == "open"}) == 1
    assert scan.head().num_rows == 10 and scan.head(99).num_rows == 20
    assert scan.head(0).schema == scan.arrow_schema and scan.head(0).num_rows == 0
    assert table.scan(limit=2).head().num_rows == 2
    assert table.system_table("snapshots").scan().head(2).num_rows == 2
    with pytest.raises(InvalidRequest, match="not a number of rows"):
        scan.head(-1)


def test_batches_of_a_scan_can_be_iterated(orders: Table) -> None:
    scan = orders.scan()
    batches = list(scan)
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    assert pa.Table.from_batches(batches) == scan.to_arrow()
    assert isinstance(iter(scan), Iterator)
    assert sum(batch.num_rows for batch in orders.system_table("snapshots").scan()) == 2


def test_a_scan_is_still_written_as_one_stream(catalog: paimon.Catalog, orders: Table) -> None:
    copy = catalog.create_table("shop.copy", "id BIGINT, day STRING, amount DECIMAL(10, 2), note STRING")
    assert copy.write(orders.scan()).rows == 30


def test_arrow_tables_are_cards_while_the_extension_of_ipython_is_loaded(orders: Table) -> None:
    class Formatter(dict[type, Callable[[Any], str]]):
        def for_type(self, kind: type, function: Callable[[Any], str]) -> None:
            self[kind] = function

    html = Formatter()
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": html}))
    paimon.load_ipython_extension(shell)
    for rows, shown in ((orders.history(), "2 rows"), (orders.partitions(), "1 row"), (pa.table({}), "no rows")):
        assert shown in Outline(html[pa.Table](rows)).texts
    outline = Outline(html[pa.Table](orders.to_arrow()))
    assert "the first 10 rows, and 20 more" in outline.texts and "script" not in outline.tags
    paimon.unload_ipython_extension(shell)
    assert not html
