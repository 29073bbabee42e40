"""Engines and catalogs on ports of one's own: a storage in SQLite, a file format by name, raw errors of adapters."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from own_format import ArrowFormat
from own_storage import SqliteFiles
from support.case_lists import mark_nightly

import paimon
from paimon.adapters.catalogs.filesystem import FileSystemCatalogStore
from paimon.domain.errors import CorruptTable, InvalidRequest, StorageError, Unsupported
from paimon.embed import BufferedOutput, make_catalog, make_engine
from paimon.ports.engine import Engine
from paimon.ports.files import Directories, FileIO, ManyFiles, PutOutcome
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


class PicklingExecutor:
    """Runs each task as another process does: after a trip through pickle."""

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any], discard: object = None) -> Iterator[Any]:
        for task in tasks:
            call, copy = pickle.loads(pickle.dumps((function, task)))
            yield call(copy)


def make_remote_engine(database: str) -> Engine:
    return make_engine(
        SqliteFiles(database),
        {"arrow": ArrowFormat()},
        executor=PicklingExecutor(),
        recipe=(make_remote_engine, (database,)),
    )


def test_tasks_of_an_engine_with_a_recipe_run_in_other_processes() -> None:
    lake = make_catalog(make_remote_engine(tempfile.mkdtemp() + "/lake.sqlite"), "/lake")
    lake.create_database("shop")
    items = lake.create_table("shop.items", "id INT, item STRING", primary_keys=["id"], options=KEYED)
    for item in ("cup", "pan"):
        items.write({"id": [1, 2, 3], "item": [item] * 3})
    assert items.compact(full=True).buckets == 2
    assert pickle.loads(pickle.dumps(items)).scan().to_arrow()["item"].to_pylist() == ["pan"] * 3


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


class BrokenSource:
    """A file whose reads, moves or ends fail, as those of a client of a network do."""

    def __init__(self, data: bytes, broken: str) -> None:
        self._data, self._broken, self.closed = pa.BufferReader(data), broken, False

    def __getattr__(self, name: str) -> Any:
        if name == self._broken:
            raise TimeoutError("no answer")
        return getattr(self._data, name)

    def close(self) -> None:
        self.closed = True
        if self._broken == "close":
            raise TimeoutError("no answer")


class BrokenSources(MemoryFiles):
    broken = ""

    def open(self, path: str) -> Any:
        data = super().open(path).read()
        return pa.PythonFile(BrokenSource(data, self.broken), "r") if self.broken else pa.BufferReader(data)


@pytest.mark.parametrize("broken", ["read", "seek"])
@pytest.mark.parametrize("format_name", mark_nightly(["parquet", "orc", "avro", "arrow"], ["parquet", "arrow"]))
def test_raw_errors_of_an_opened_file_name_the_storage(broken: str, format_name: str) -> None:
    files = BrokenSources()
    table = make_lake(files).create_table("shop.a", "id INT", options={"file.format": format_name})
    table.write({"id": [1]})
    files.broken = broken
    with pytest.raises(StorageError, match=r"data-.*BrokenSources raised TimeoutError: no answer"):
        table.scan().to_arrow()
    files.broken = "close"
    with suppress(StorageError):  # a file that is collected cannot raise
        assert table.scan().to_arrow()["id"].to_pylist() == [1]


class BrokenStore(FileSystemCatalogStore):
    def tables(self, database: str) -> Any:
        raise LookupError(database)


def test_raw_errors_of_a_catalog_name_it() -> None:
    engine = make_engine(MemoryFiles())
    catalog = make_catalog(engine, "/lake", BrokenStore(engine.files, "/lake"))
    catalog.create_database("shop")
    assert catalog.warehouse == "/lake"
    with pytest.raises(StorageError, match=r"catalog: BrokenStore raised LookupError: shop"):
        catalog.tables("shop")


class OverwritingFiles(MemoryFiles):
    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        self.replace(path, data)
        return PutOutcome.CREATED


class AnsweringFiles(MemoryFiles):
    def put_if_absent(self, path: str, data: bytes) -> Any:
        return super().put_if_absent(path, data) is PutOutcome.CREATED


class UnsortedFiles(MemoryFiles):
    def list(self, path: str) -> Any:
        return super().list(path)[::-1]


class SizelessFiles(MemoryFiles):
    def list(self, path: str) -> Any:
        return [evolve(status, size=-1) for status in super().list(path)]


WRONG_FILES = {
    OverwritingFiles: r"OverwritingFiles overwrites existing files.*'an existing file never changes'.*FileIOContract",
    AnsweringFiles: r"AnsweringFiles.put_if_absent returned True, which is not a PutOutcome",
    UnsortedFiles: r"UnsortedFiles.list returned entries without order.*ascending order of their names",
    SizelessFiles: r"SizelessFiles.list returned entries without order or size.*sizes in bytes",
}


@pytest.mark.filterwarnings("ignore:Table 'shop.a'. the rows are committed:RuntimeWarning")
@pytest.mark.parametrize("kind", WRONG_FILES)
def test_a_storage_that_breaks_its_contract_is_found_before_data_is_lost(kind: type[MemoryFiles]) -> None:
    files = kind()
    with pytest.raises(StorageError, match=WRONG_FILES[kind]):
        table = make_lake(files).create_table("shop.a", "id INT")
        table.write({"id": [1]})
        table.write({"id": [2]})
        table.maintain.expire_snapshots(retain_max=1, retain_min=1)
    assert not [path for path in files.contents if path.endswith(".trial")]


def test_a_right_storage_is_tried_once() -> None:
    puts: list[str] = []

    class Files(MemoryFiles):
        def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
            puts.append(path)
            return super().put_if_absent(path, data)

    table = make_lake(Files()).create_table("shop.a", "id INT")
    table.write({"id": [1]})
    table.write({"id": [2]})
    assert sum(path.endswith(".trial") for path in puts) == 2 < len(puts)
