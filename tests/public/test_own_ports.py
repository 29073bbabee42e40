"""Engines and catalogs on ports of one's own: a storage in SQLite, a file format by name, formats of packages."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from own_format import ArrowFormat
from own_storage import SqliteFiles

import paimon
from paimon.adapters import plugins
from paimon.domain.errors import CorruptTable, InvalidRequest, StorageError, Unsupported
from paimon.embed import BufferedOutput, make_catalog, make_engine
from paimon.ports.files import Directories, FileIO, ManyFiles
from paimon.ports.formats import FormatIO
from paimon.testing.contracts import CatalogStoreContract, FileIOContract, FormatIOContract, SnapshotCommitContract
from paimon.testing.memory_files import MemoryFiles

ARROW = {"file.format": "arrow"}
KEYED = {**ARROW, "bucket": "2"}


def make_sqlite() -> FileIO:
    return SqliteFiles(tempfile.mkdtemp() + "/lake.sqlite")


class TestSqliteFiles(FileIOContract):
    long_list = 30

    def make_files(self) -> tuple[FileIO, str]:
        return make_engine(make_sqlite()).files, "/root"


class TestSnapshotsInSqlite(SnapshotCommitContract):
    def make_commit(self) -> Any:
        engine = make_engine(make_sqlite())
        return engine.snapshots, engine.files, "/t"


class TestCatalogInSqlite(CatalogStoreContract):
    def make_store(self) -> Any:
        engine = make_engine(make_sqlite())
        return make_catalog(engine, "/lake").store, engine.files


class TestArrowFormat(FormatIOContract):
    def make_format(self) -> FormatIO:
        return make_engine(MemoryFiles(), {"arrow": ArrowFormat()}).format("arrow")


def make_lake(files: FileIO | None = None, **formats: FormatIO) -> paimon.Catalog:
    catalog = make_catalog(make_engine(files or MemoryFiles(), formats or {"arrow": ArrowFormat()}), "/lake")
    catalog.create_database("shop", exist_ok=True)
    return catalog


@pytest.mark.parametrize("options", [{}, {"merge-engine": "aggregation"}, {"deletion-vectors.enabled": "true"}])
def test_a_key_table_of_an_own_format_lives_as_any_other(options: dict[str, str]) -> None:
    catalog = make_lake(None if options else make_sqlite())
    orders = catalog.create_table(
        "shop.orders", "id INT, item STRING", primary_keys=["id"], options={**KEYED, **options}
    )
    orders.write({"id": [1, 2, 3], "item": ["cup", "pan", "pot"]})
    orders.tags.create("first")
    orders = orders.alter("ADD COLUMN price INT")
    orders.write({"id": [3, 4], "item": ["jug", "tin"], "price": [5, None]})
    if "merge-engine" not in options:
        orders.delete(where="id = 2")
    orders.compact(full=True)
    orders.branches.create("test", tag="first")
    orders.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert orders.maintain.check(deep=True).faults == ()
    rows = {row["id"]: (row["item"], row["price"]) for row in orders.scan().to_arrow().to_pylist()}
    assert rows == {1: ("cup", None), 3: ("jug", 5), 4: ("tin", None)} | (
        {2: ("pan", None)} if "merge-engine" in options else {}
    )
    assert orders.scan(tag="first").count() == catalog.table("shop.orders$branch_test").scan().count() == 3
    assert orders.scan(where="price = 5").to_arrow()["id"].to_pylist() == [3]
    paths = catalog.table("shop.orders$files").scan().to_arrow()["file_path"].to_pylist()
    assert {path.rpartition(".")[2] for path in paths} == {"arrow"}


@pytest.mark.parametrize("bucket", ["-1", "-2"])
def test_other_buckets_have_an_own_format(bucket: str) -> None:
    table = make_lake().create_table(
        "shop.t", "id INT, v INT", primary_keys=["id"], options={**ARROW, "bucket": bucket}
    )
    for value in (1, 2):
        table.write({"id": [1, 2], "v": [value, value]})
    table.compact(full=True)
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [{"id": 1, "v": 2}, {"id": 2, "v": 2}]


def test_the_engine_decides_which_formats_a_table_may_have() -> None:
    catalog = make_lake()
    with pytest.raises(InvalidRequest, match=r"'arow'.*Did you mean 'arrow'"):
        catalog.create_table("shop.a", "id INT", options={"file.format": "arow"})
    with pytest.raises(InvalidRequest, match=r"unknown"):
        catalog.create_table("shop.a", "id INT", options={"feather.x": "1"})
    table = catalog.create_table("shop.a", "id INT", options={"arrow.x": "1"})
    table = table.alter("SET ('file.format' = 'arrow')").with_options({"arrow.y": "2"})
    table.write({"id": [1]})
    only = make_catalog(evolve(catalog.engine, formats={"arrow": catalog.engine.format("arrow")}), "/lake")
    assert only.table("shop.a").scan().count() == 1
    with pytest.raises(Unsupported, match=r"'parquet'.*Known formats are arrow"):
        only.create_table("shop.b", "id INT")
    with pytest.raises(InvalidRequest, match=r"blob|arrow"):
        only.create_table("shop.b", "id INT", options={"file.format": "nothing"})


def test_a_table_whose_format_is_missing_names_it() -> None:
    files = MemoryFiles()
    make_lake(files).create_table("shop.a", "id INT", options=ARROW).write({"id": [1]})
    table = make_catalog(make_engine(files), "/lake").table("shop.a")
    for call in (
        lambda: table.scan().count() and table.scan().to_arrow(),
        lambda: table.write({"id": [2]}),
        lambda: table.alter("ADD COLUMN v INT"),
    ):
        with pytest.raises(Unsupported, match=r"file format 'arrow'.*install the package"):
            call()
    table.alter("SET ('file.format' = 'parquet')").write({"id": [2]})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("file.format", "arow"),
        ("changelog-file.format", "arow"),
        ("vector.file.format", "arow"),
        ("file.format.per.level", "0:parquet,1:arow"),
    ],
)
def test_unknown_formats_of_a_handle_are_refused_at_once(option: str, value: str) -> None:
    catalog = make_lake()
    table = catalog.create_table("shop.a", "id INT")
    assert table.with_options({option: value.replace("arow", "ARROW")}).scan().count() == 0
    for call in (
        lambda: table.with_options({option: value}),
        lambda: catalog.table("shop.a", {option: value}),
        lambda: catalog.create_table("shop.b", "id INT", options={option: value}),
        lambda: catalog.sql(f"SET 'paimon.{option}' = '{value}'"),
    ):
        with pytest.raises(InvalidRequest, match=rf"Option '{option}' is 'arow'.*Did you mean 'arrow'"):
            call()


def test_ports_and_names_of_formats_are_checked() -> None:
    with pytest.raises(InvalidRequest, match=r"Port 'executer'.*executor"):
        make_engine(MemoryFiles(), executer=None)
    with pytest.raises(InvalidRequest, match=r"'arrow' cannot have the name 'Feather'"):
        make_engine(MemoryFiles(), {"Feather": ArrowFormat()})


class BrokenFormat(ArrowFormat):
    def __init__(self, broken: str) -> None:
        self._broken = broken

    def read(self, *given: Any) -> Iterator[Any]:
        if self._broken == "read":
            raise KeyError("codec")
        yield from super().read(*given)

    def writer(self, *given: Any) -> Any:
        if self._broken == "writer":
            raise ZeroDivisionError("no block")
        return super().writer(*given)


def test_raw_errors_of_an_adapter_name_it() -> None:
    table = make_lake(arrow=BrokenFormat("writer")).create_table("shop.a", "id INT", options=ARROW)
    with pytest.raises(StorageError, match=r"BrokenFormat raised ZeroDivisionError: no block"):
        table.write({"id": [1]})
    table = make_lake(arrow=BrokenFormat("read")).create_table("shop.a", "id INT", options=ARROW)
    table.write({"id": [1]})
    with pytest.raises(CorruptTable, match=r"data-.*arrow.*BrokenFormat raised KeyError"):
        table.scan().to_arrow()


class BrokenFiles(MemoryFiles):
    def list(self, path: str) -> Any:
        raise TimeoutError("no answer")


class FullFiles(MemoryFiles):
    """A storage that takes no more data files."""

    is_full = False

    def create(self, path: str) -> Any:
        def publish(path: str, data: bytes) -> None:
            if self.is_full and "data-" in path:
                raise RuntimeError("quota")
            self.replace(path, data)

        return BufferedOutput(path, publish)


class _FullOutput(BufferedOutput):
    def write(self, data: bytes) -> int:
        raise StorageError("data-1", "the disk is full")


@pytest.mark.parametrize("format_name", ["parquet", "orc", "avro"])
def test_a_storage_that_fails_during_a_write_is_named(format_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()
    table = make_lake(files).create_table("shop.a", "id INT", options={"file.format": format_name})
    monkeypatch.setattr(files, "create", lambda path: _FullOutput(path, files.replace))
    with pytest.raises(StorageError, match="the disk is full"):
        table.write({"id": [1]})


def test_raw_errors_of_a_storage_name_it() -> None:
    engine = make_engine(BrokenFiles())
    with pytest.raises(StorageError, match=r"/lake.*BrokenFiles raised TimeoutError: no answer"):
        make_catalog(engine, "/lake").databases()
    lake = make_lake(full := FullFiles())
    full.is_full = True
    with pytest.raises(StorageError, match=r"data-.*FullFiles raised RuntimeError: quota"):
        lake.create_table("shop.a", "id INT").write({"id": [1]})
    assert not isinstance(engine.files, Directories | ManyFiles)
    local = paimon.connect(tempfile.mkdtemp()).engine.files
    assert isinstance(make_engine(local).files, Directories)
    assert isinstance(make_engine(local).files, ManyFiles)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install packages that offer a format of the name `arrow`, by their modules' text."""

    def install_packages(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
            metadata = tmp_path / f"{name}-1.0.dist-info"
            metadata.mkdir()
            (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (metadata / "entry_points.txt").write_text(f"[paimon.formats]\narrow = {name}:make\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        forget()

    def forget() -> None:
        for cached in (plugins._list_entry_points, plugins._load_format):
            cached.cache_clear()

    yield install_packages
    forget()
    for name in ("offers_arrow", "also_arrow"):
        sys.modules.pop(name, None)


OFFER = "from own_format import ArrowFormat as make\n"


def test_an_installed_package_adds_a_format(install: Callable[..., None], tmp_path: Path) -> None:
    install(offers_arrow=OFFER)
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    table = catalog.create_table("shop.a", "id INT", options={**ARROW, "arrow.x": "1"})
    table.write({"id": [1, 2]})
    assert paimon.open_table(tmp_path / "lake" / "shop.db" / "a").scan().count() == 2
    assert "arrow" in catalog.engine.file_formats and "blob" not in catalog.engine.file_formats
    assert {"parquet", "arrow"} <= set(catalog.engine.file_formats)


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        ({"offers_arrow": "import no_such_module\n"}, "of offers_arrow 1.0, which raised ModuleNotFoundError"),
        ({"offers_arrow": OFFER, "also_arrow": OFFER}, r"several packages \(also_arrow 1.0, offers_arrow 1.0\)"),
        ({"offers_arrow": "make = dict\n"}, "does not return a FormatIO with the identifier 'arrow'"),
        ({"offers_arrow": "other = 1\n"}, "of offers_arrow 1.0, which raised AttributeError"),
    ],
    ids=["raises at import", "two of one name", "another object", "no such name"],
)
def test_a_package_that_fails_is_named(install: Callable[..., None], packages: dict[str, str], message: str) -> None:
    install(**packages)
    catalog = make_lake(parquet=make_engine(MemoryFiles()).format("parquet"))
    catalog.create_table("shop.a", "id INT").write({"id": [1]})
    with pytest.raises(
        Unsupported, match=rf"file format 'arrow' {'' if 'several' not in message else 'of '}.*{message}"
    ):
        catalog.create_table("shop.b", "id INT", options=ARROW)


def test_a_damaged_list_of_a_package_is_named(install: Callable[..., None], tmp_path: Path) -> None:
    install(offers_arrow=OFFER)
    (tmp_path / "offers_arrow-1.0.dist-info" / "entry_points.txt").write_text("[paimon.formats]\narrow\n")
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    catalog.create_table("shop.a", "id INT").write({"id": [1]})
    with pytest.raises(Unsupported, match=r"installed packages, whose list raised TypeError.*entry_points\.txt"):
        catalog.create_table("shop.b", "id INT", options=ARROW)
