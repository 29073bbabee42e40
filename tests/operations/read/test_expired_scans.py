"""A snapshot that expires while it is read ends each read with SnapshotExpired, whoever opens its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.case_lists import mark_products

import paimon
from paimon.domain.errors import CorruptTable, SnapshotExpired

VECTORS = {"deletion-vectors.enabled": "true"}
TABLES: dict[str, tuple[list[str], dict[str, str]]] = {
    "keyed": (["k"], {"bucket": "1"}),
    "keyed with vectors": (["k"], {"bucket": "1", **VECTORS}),
    "append": ([], {}),
    "append with vectors": ([], VECTORS),
    "dynamic": (["k"], {"bucket": "-1"}),
}
EXPIRED = r"Snapshot \d+ of table 'db\.t' expired while it was read"


class ExpiringFiles:
    """Files of which the first one with a name of some kind is deleted just before it is opened, by an expiry."""

    def __init__(self, inner: Any, prefix: str, expire: Callable[[], object]) -> None:
        self.inner = inner
        self.prefix = prefix
        self.waiting = [expire]

    def open(self, path: str) -> Any:
        self._expire_before(path)
        return self.inner.open(path)

    def read(self, path: str, limit: int | None = None) -> Any:
        self._expire_before(path)
        return self.inner.read(path) if limit is None else self.inner.read(path, limit)

    def _expire_before(self, path: str) -> None:
        if self.waiting and path.rpartition("/")[2].startswith(self.prefix):
            self.waiting.pop()()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def create(home: Path, kind: str) -> None:
    """Create a table, and a target of inserts."""
    catalog = paimon.connect(home)
    catalog.create_database("db")
    keys, options = TABLES[kind]
    table = catalog.create_table("db.t", "k INT NOT NULL, v INT", primary_keys=keys, options=options)
    catalog.create_table("db.copy", "k INT NOT NULL, v INT")
    for k in range(3):
        table.write([{"k": k, "v": k}])
    if VECTORS.items() <= options.items():
        table.delete("k = 1")


def replace_files(home: Path) -> None:
    """Replace all files of the table, and let all older snapshots expire."""
    table = paimon.connect(home).table("db.t")
    table.overwrite([{"k": 9, "v": 9}])
    table.write([{"k": 8, "v": 8}])
    table.compact(full=True)
    table.maintain.expire_snapshots(retain_min=1, retain_max=1)


def open_expiring(home: Path, prefix: str) -> tuple[paimon.Catalog, ExpiringFiles]:
    """Open the warehouse with an empty cache; the snapshots expire when the first file of the prefix is opened."""
    catalog = paimon.connect(home)
    files = ExpiringFiles(catalog.engine.files, prefix, lambda: replace_files(home))
    return evolve(catalog, engine=evolve(catalog.engine, files=files)), files


def read_by_builder(table: paimon.Table, read: str) -> object:
    builder = table.new_read_builder()
    return getattr(builder.new_read(), read)(builder.new_scan().plan().splits())


def run_sql(text: str) -> Callable[[paimon.Catalog], object]:
    return lambda catalog: catalog.sql(text).to_arrow()


def read_table(read: Callable[[paimon.Table], object]) -> Callable[[paimon.Catalog], object]:
    return lambda catalog: read(catalog.table("db.t"))


READS: dict[str, Callable[[paimon.Catalog], object]] = {
    "to_arrow": read_table(lambda t: t.scan().to_arrow()),
    "to_batches": read_table(lambda t: t.scan().to_batches().read_all()),
    "count": read_table(lambda t: t.scan(where="v >= 0").count()),
    "head": read_table(lambda t: t.scan().head()),
    "to_polars": read_table(lambda t: t.scan().to_polars()),
    "to_pandas": read_table(lambda t: t.scan().to_pandas()),
    "to_duckdb": read_table(lambda t: t.scan().to_duckdb()),
    "builder": read_table(lambda t: read_by_builder(t, "to_arrow")),
    "builder in batches": read_table(lambda t: list(read_by_builder(t, "to_batches"))),  # type: ignore[call-overload]
    "audit_log": lambda catalog: catalog.table("db.t$audit_log").scan().to_arrow(),
    "sql": run_sql("SELECT * FROM db.t"),
    "sql group": run_sql("SELECT v, count(*) FROM db.t WHERE v >= 0 GROUP BY v ORDER BY v LIMIT 2"),
    "sql twice": run_sql("WITH a AS (SELECT * FROM db.t) SELECT * FROM a JOIN a AS b ON a.k = b.k"),
    "sql insert": run_sql("INSERT INTO db.copy SELECT * FROM db.t"),
    "sql create": run_sql("CREATE TABLE db.made AS SELECT * FROM db.t"),
}


@pytest.mark.parametrize(("read", "kind", "prefix"), mark_products(READS, TABLES, ["data-", "manifest-"],
    always=["to_arrow", "count", "to_polars", "to_duckdb", "builder", "audit_log", "sql", "sql insert"]))  # fmt: skip
def test_each_read_reports_the_expiry(tmp_path: Path, read: str, kind: str, prefix: str) -> None:
    create(tmp_path, kind)
    catalog, files = open_expiring(tmp_path, prefix)
    with pytest.raises(SnapshotExpired, match=EXPIRED):
        READS[read](catalog)
    assert not files.waiting
    catalog = paimon.connect(tmp_path)
    assert catalog.tables("db") == ["copy", "t"] and not catalog.table("db.copy").scan().count()
    assert catalog.table("db.t").scan().count() == 2


@pytest.mark.parametrize("name", ["files", "partitions", "buckets", "manifests", "file_key_ranges"])
def test_system_tables_report_the_expiry(tmp_path: Path, name: str) -> None:
    create(tmp_path, "keyed")
    catalog, _ = open_expiring(tmp_path, "manifest-")
    with pytest.raises(SnapshotExpired, match=EXPIRED):
        catalog.sql(f"SELECT * FROM db.`t${name}`").to_arrow()
    assert paimon.connect(tmp_path).sql(f"SELECT * FROM db.`t${name}`").to_arrow().num_rows


def test_the_indexes_of_an_expired_snapshot_are_reported(tmp_path: Path) -> None:
    create(tmp_path, "dynamic")
    catalog, _ = open_expiring(tmp_path, "index-manifest-")
    with pytest.raises(SnapshotExpired, match=EXPIRED):
        catalog.sql("SELECT * FROM db.`t$table_indexes`").to_arrow()


@pytest.mark.parametrize(
    ("mode", "prefix"),
    [
        *((mode, prefix) for mode in ("changes", "delta", "diff") for prefix in ("data-", "manifest-")),
        ("changes", "changelog-"),
    ],
)
def test_incremental_reads_report_the_expiry(tmp_path: Path, mode: str, prefix: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    options = {"bucket": "1", "changelog-producer": "input" if prefix == "changelog-" else "none"}
    table = catalog.create_table("db.t", "k INT NOT NULL, v INT", primary_keys=["k"], options=options)
    for k in range(3):
        table.write([{"k": k, "v": k}])
    catalog, files = open_expiring(tmp_path, prefix)
    read = {"incremental-between": "1,3", "incremental-between-scan-mode": mode}
    with pytest.raises((SnapshotExpired, paimon.NotFound), match="expired"):
        if mode == "changes":
            catalog.table("db.t").changes(1, 3).to_arrow()
        else:
            catalog.table("db.t").with_options(read).scan().to_arrow()
    assert not files.waiting


def test_a_missing_file_of_the_newest_snapshot_is_damage(tmp_path: Path) -> None:
    create(tmp_path, "append")
    for path in tmp_path.rglob("data-*"):
        path.unlink()
    for read in ("to_arrow", "sql", "sql group"):
        with pytest.raises(CorruptTable, match="does not exist"):
            READS[read](paimon.connect(tmp_path))
