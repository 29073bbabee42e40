"""Installed packages add file formats, storages, catalogs and query engines; a faulty one is named with its version."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.case_lists import mark_products

import paimon
from paimon.adapters import plugins
from paimon.domain.errors import InvalidRequest, StorageError, Unsupported
from paimon.embed import make_catalog, make_engine
from paimon.testing.memory_files import MemoryFiles

ARROW = {"file.format": "arrow"}
FORMAT = "from own_format import ArrowFormat as make\n"
STORAGE = """
from own_storage import SqliteFiles

def make(location, options):
    assert options == {"timeout": 5}, f"secret {options['password']}"
    return SqliteFiles(DATABASE)
"""
CATALOG = """
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.domain.errors import InvalidRequest

def make(files, warehouse, options):
    if options != {"region": "x"}:
        raise InvalidRequest(f"the catalog has no {options}")
    return FileSystemCatalogStore(files, warehouse + "/inner")
"""
ENGINE = """
from paimon.adapters.queries.duckdb_queries import DuckDBQueries

class make(DuckDBQueries):
    def explain(self, sql, sources):
        raise KeyError("a type")
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install packages that offer something under one name, by their modules' text."""
    names = []

    def install_packages(entry: str = "formats] arrow", **texts: str) -> None:
        group, _, name = entry.partition("] ")
        for package, text in texts.items():
            names.append(package)
            (tmp_path / f"{package}.py").write_text(text.replace("DATABASE", repr(str(tmp_path / "lake.sqlite"))))
            metadata = tmp_path / f"{package}-1.0.dist-info"
            metadata.mkdir()
            (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
            (metadata / "entry_points.txt").write_text(f"[paimon.{group}]\n{name} = {package}:make\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        forget()

    def forget() -> None:
        importlib.invalidate_caches()
        for cached in (plugins.list_offers, plugins._load_format):
            cached.cache_clear()

    yield install_packages
    forget()
    for name in names:
        sys.modules.pop(name, None)


def write_and_read(catalog: paimon.Catalog, **options: str) -> None:
    catalog.create_database("shop")
    table = catalog.create_table("shop.a", "id INT", primary_keys=["id"], options=options)
    table.write({"id": [1, 2]})
    table.write({"id": [2, 3]})
    table.compact(full=True)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_package_adds_a_format(install: Install, tmp_path: Path) -> None:
    install(offers_arrow=FORMAT)
    catalog = paimon.connect(tmp_path / "lake")
    write_and_read(catalog, **ARROW, **{"arrow.x": "1"})
    assert paimon.open_table(tmp_path / "lake" / "shop.db" / "a").scan().count() == 3
    assert "arrow" in catalog.engine.file_formats and "blob" not in catalog.engine.file_formats
    assert {"parquet", "arrow"} <= set(catalog.engine.file_formats)


def test_a_package_adds_a_storage_by_its_scheme(install: Install, tmp_path: Path) -> None:
    install("storages] sqlite", offers_sqlite=STORAGE)
    catalog = paimon.connect("sqlite://lake", storage={"timeout": 5})
    write_and_read(catalog)
    assert not list(tmp_path.glob("lake/**"))
    table = pickle.loads(pickle.dumps(catalog.table("shop.a")))
    assert table.scan().count() == 3
    with pytest.raises(Unsupported, match=r"storage 'sqlite' of offers_sqlite 1.0.*AssertionError") as found:
        paimon.connect("sqlite://lake", storage={"password": "opensesame"})
    assert "opensesame" not in str(found.value) and found.value.__cause__ is None
    cold = paimon.connect(tmp_path / "warm", storage={"sqlite://cold": {"password": "opensesame"}})
    with pytest.raises(Unsupported, match="AssertionError"):  # the files of SQL get the options of their storage, too
        cold.sql("SELECT * FROM read_csv('sqlite://cold/in/a.csv')", allowed_files=["sqlite://cold/in"])
    roots = paimon.connect(
        tmp_path / "lake", storage={"sqlite://cold": {"timeout": 5}}, allowed_roots=["sqlite://cold"]
    )
    write_and_read(roots, **{"data-file.external-paths": "sqlite://cold/x",
                             "data-file.external-paths.strategy": "round-robin"})  # fmt: skip
    assert not list(tmp_path.glob("lake/**/data-*"))


OVERWRITING = """
from paimon.ports.files import PutOutcome
from paimon.testing.memory_files import MemoryFiles

class Files(MemoryFiles):
    def put_if_absent(self, path, data):
        self.replace(path, data)
        return PutOutcome.CREATED

def make(location, options, files=Files()):
    return files
"""


def test_a_lock_makes_a_storage_safe_that_overwrites(install: Install, tmp_path: Path) -> None:
    install("storages] plain", offers_plain=OVERWRITING)
    with pytest.raises(StorageError, match="Files overwrites existing files"):
        write_and_read(paimon.connect("plain://lake"))
    write_and_read(paimon.connect("plain://own", storage={"single-writer": True}))
    write_and_read(paimon.connect("plain://locked", metastore="jdbc", uri=f"sqlite:///{tmp_path}/catalog.sqlite"))


def test_a_package_adds_a_catalog(install: Install, tmp_path: Path) -> None:
    install("catalogs] hive", offers_hive=CATALOG)
    catalog = paimon.connect(tmp_path / "lake", metastore="hive", region="x", **{"table-default.bucket": "2"})
    write_and_read(pickle.loads(pickle.dumps(catalog)))
    assert (tmp_path / "lake" / "inner" / "shop.db" / "a" / "schema").is_dir()
    assert catalog.tables("shop") == ["a"]
    with pytest.raises(InvalidRequest, match=r"the catalog has no {'regoin': 'x'}"):
        paimon.connect(tmp_path / "lake", metastore="hive", regoin="x")
    with pytest.raises(InvalidRequest, match=r"'hiev' is not known.*hive"):
        paimon.connect(tmp_path / "lake", metastore="hiev")


def test_a_package_adds_a_query_engine(install: Install, tmp_path: Path) -> None:
    install("query_engines] quick", offers_quick=ENGINE)
    catalog = paimon.connect(tmp_path / "lake", query_engine="quick", memory_budget="64 mb")
    write_and_read(catalog)
    assert catalog.engine.queries.memory_bytes == 32 << 20
    assert catalog.sql("SELECT max(id) AS m FROM shop.a").to_arrow().to_pylist() == [{"m": 3}]
    with pytest.raises(StorageError, match=r"SQL query: make raised KeyError: 'a type'"):
        catalog.engine.queries.explain("SELECT 1", {})
    with pytest.raises(InvalidRequest, match=r"Query engine 'quik' is not known.*duckdb, quick"):
        paimon.connect(tmp_path / "lake", query_engine="quik")


CALLS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "formats] arrow": ("file format 'arrow'", lambda path: create_arrow_table(path)),
    "storages] sqlite": ("storage 'sqlite'", lambda path: paimon.connect("sqlite://lake")),
    "catalogs] hive": ("metastore 'hive'", lambda path: paimon.connect(path, metastore="hive")),
    "query_engines] quick": ("query engine 'quick'", lambda path: paimon.connect(path, query_engine="quick")),
}
FAULTS = {
    "raises at import": ({"faulty": "import no_such_module\n"}, "of faulty 1.0, which raised ModuleNotFoundError"),
    "ends the process": ({"faulty": "raise SystemExit(3)\n"}, "of faulty 1.0, which raised SystemExit: 3"),
    "no such name": ({"faulty": "other = 1\n"}, "of faulty 1.0, which raised AttributeError"),
    "another signature": ({"faulty": "def make(one, two, three, four): pass\n"}, "of faulty 1.0, which raised TypeErr"),
    "of another version": (
        {"faulty": "class Old:\n    identifier, read, run = 'arrow', 1, 2\ndef make(*given): return Old()\n"},
        "of faulty 1.0, whose Old lacks [a-z]",
    ),
    "two of one name": ({"faulty": FORMAT, "also": FORMAT}, r"of several packages \(also 1.0, faulty 1.0\)"),
}


def create_arrow_table(path: Path) -> None:
    catalog = make_catalog(make_engine(MemoryFiles()), "/lake")
    catalog.create_database("shop")
    catalog.create_table("shop.a", "id INT").write({"id": [1]})  # other tables do not mind
    catalog.create_table("shop.b", "id INT", options=ARROW)


@pytest.mark.parametrize(("fault", "entry"), mark_products(FAULTS, CALLS))
def test_a_faulty_package_is_named(install: Install, tmp_path: Path, entry: str, fault: str) -> None:
    packages, message = FAULTS[fault]
    install(entry, **packages)
    what, call = CALLS[entry]
    with pytest.raises(Unsupported) as found:
        call(tmp_path)
    assert re.search(f"{what} {message}", str(found.value)), str(found.value)
    assert found.value.hint and "\n" not in str(found.value)


def test_a_format_of_another_name_is_named(install: Install, tmp_path: Path) -> None:
    install("formats] feather", offers_feather=FORMAT)
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    with pytest.raises(Unsupported, match=r"'feather' of offers_feather 1\.0, whose identifier is 'arrow'"):
        catalog.create_table("shop.b", "id INT", options={"file.format": "feather"})


def test_what_no_package_offers_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"'nosuch://lake' cannot be opened.*install the package"):
        paimon.connect("nosuch://lake")
    with pytest.raises(Unsupported, match=r"metastore 'hive'.*filesystem, jdbc; packages.*paimon.catalogs"):
        paimon.connect(tmp_path, metastore="hive")


def test_a_damaged_list_of_a_package_is_named(install: Install, tmp_path: Path) -> None:
    install(offers_arrow=FORMAT)
    (tmp_path / "offers_arrow-1.0.dist-info" / "entry_points.txt").write_text("[paimon.formats]\narrow\n")
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    catalog.create_table("shop.a", "id INT").write({"id": [1]})
    with pytest.raises(Unsupported, match=r"installed packages, whose list raised TypeError.*entry_points\.txt"):
        catalog.create_table("shop.b", "id INT", options=ARROW)
