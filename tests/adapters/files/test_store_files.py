"""Object stores with our own client, on an S3 server: the contract, secrets, and commits with lost replies."""

from __future__ import annotations

import http.client
import pickle
import socketserver
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from support.case_lists import mark_products
from support.s3_server import (
    BUCKET,
    Cut,
    cutting_replies,
    cutting_replies_by_rule,
    losing_replies,
    s3_server,
    serve_without_conditional_puts,
    storage_of,
)

import paimon
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.store_files import StoreFiles
from paimon.adapters.files.store_options import client_config, retry_config
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, StorageError
from paimon.ports.files import WHOLE_BYTES, FileIO, PutOutcome
from paimon.testing.contracts import FileIOContract, ManyFilesContract

SECRET = "hush-hush-hush"
DATA = b"0123456789" * 20_000


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as url:
        yield url


class TestStoreFiles(FileIOContract, ManyFilesContract):
    long_list = 40
    endpoint: str

    @pytest.fixture(autouse=True)
    def _served(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def make_files(self) -> tuple[FileIO, str]:
        root = f"s3://{BUCKET}/{uuid.uuid4()}/root"
        return StoreFiles(root, storage_of(self.endpoint)), root


def test_a_large_file_is_uploaded_in_parts(endpoint: str) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4()}"
    files = StoreFiles(root, storage_of(endpoint))
    with files.create(f"{root}/big") as output:
        for i in range(20):
            output.write(bytes([i]) * 1_000_000)
    assert files.status(f"{root}/big").size == 20_000_000
    opened = files.open(f"{root}/big")
    opened.seek(5_999_999)
    assert opened.read(2) == bytes([5, 6])
    assert opened.read_at(3, 19_999_999) == bytes([19])


@pytest.mark.parametrize("count", [0, 1, 20])
def test_files_written_together_are_complete(endpoint: str, count: int) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4()}"
    files = StoreFiles(root, storage_of(endpoint))
    wanted = {f"{root}/{i}": bytes([i]) * 1000 for i in range(count)}
    files.create_all(wanted)
    assert {path: files.read(path) for path in wanted} == wanted
    with pytest.raises(StorageError, match=r"s3://other/x: the path does not lie in s3://lake"):
        files.create_all({f"{root}/a": b"", "s3://other/x": b""})


def test_names_are_encoded_as_java_encodes_them(endpoint: str) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4()}"
    files = StoreFiles(root, storage_of(endpoint))
    for name in ("day=2026%2F11%2F21", "two words", "grün", "a+b=c&d"):
        files.replace(f"{root}/{name}/f", b"1")
        assert [s.path for s in files.list(f"{root}/{name}")] == [f"{root}/{name}/f"]
    assert [s.name for s in files.list(root)] == sorted(["day=2026%2F11%2F21", "two words", "grün", "a+b=c&d"])
    assert files.status(f"{root}/grün").is_directory


def test_table_on_a_store(endpoint: str) -> None:
    catalog = paimon.connect(f"s3://{BUCKET}/{uuid.uuid4()}", storage=storage_of(endpoint))
    catalog.create_database("shop")
    columns = "id BIGINT NOT NULL, day STRING NOT NULL, n INT"
    keys = {"primary_keys": ["id", "day"], "partition_keys": ["day"]}
    table = catalog.create_table("shop.orders", columns, **keys, options={"bucket": "2"})
    table.write([{"id": i, "day": f"d/{i % 2}", "n": i} for i in range(100)])
    table.write([{"id": i, "day": f"d/{i % 2}", "n": -i} for i in range(50)])
    rows = catalog.table("shop.orders").scan(where="n < 0").to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(1, 50))
    catalog.rename_table("shop.orders", "shop.old")
    assert catalog.table("shop.old").scan().count() == 100
    catalog.drop_table("shop.old")
    assert catalog.tables("shop") == []


def test_secrets_stay_here(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_of(endpoint)
    catalog = paimon.connect(f"s3://{BUCKET}/{uuid.uuid4()}", storage=storage)
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "a INT")
    table.write({"a": [1, 2]})
    travelled = pickle.dumps(table)
    scan = table.scan()
    texts = [repr(table), repr(table.engine), repr(table.engine.files), repr(scan.plan()), scan.explain()]
    assert SECRET.encode() not in travelled
    assert b"AKIDFORTESTS" not in travelled
    assert not any(SECRET in text for text in texts)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDFORTESTS")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert pickle.loads(travelled).scan().count() == 2


def given_storage() -> dict[str, object]:
    return {"key": "AKIDFORTESTS", "secret": SECRET}


def test_login_names_the_function_that_gives_credentials(endpoint: str) -> None:
    storage = {"endpoint_url": endpoint, "region": "us-east-1", "login": f"{__name__}:given_storage"}
    root = f"s3://{BUCKET}/{uuid.uuid4()}"
    paimon.connect(root, storage=storage).create_database("d")
    again = pickle.loads(pickle.dumps(paimon.connect(root, storage=storage).create_table("d.t", "a INT")))
    again.write({"a": [5]})
    assert again.scan().to_arrow()["a"].to_pylist() == [5]
    with pytest.raises(InvalidRequest, match="cannot be found"):
        paimon.connect(root, storage={"login": "no.such:thing"})


def test_errors_name_the_path_and_no_secret() -> None:
    root = f"s3://{BUCKET}/x"
    storage = {**storage_of("http://127.0.0.1:9"), "retry": None}
    files = StoreFiles(root, {**storage, "endpoint": f"http://127.0.0.1:9/{SECRET}"})
    with pytest.raises(StorageError) as caught:
        files._put_new("s3://other/key", b"")
    assert "s3://other/key" in str(caught.value)
    with pytest.raises(InvalidRequest, match=r"Storage option 'acess_key_id' is not known.*access_key_id"):
        client_config("s3", {"acess_key_id": "x"})
    with pytest.raises(InvalidRequest, match="carries credentials"):
        paimon.connect("s3://user:pass@lake/root")


@pytest.fixture
def hanging_up() -> Iterator[tuple[str, list[object]]]:
    """The endpoint of a server that closes each connection, and the requests that it received."""
    met: list[object] = []

    class HangingUp(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            met.append(self.rfile.readline())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HangingUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", met
        server.shutdown()


def test_the_storage_option_limits_the_retries_of_a_request(
    hanging_up: tuple[str, list[object]],
) -> None:
    endpoint, met = hanging_up
    files = StoreFiles(f"s3://{BUCKET}/x", {**storage_of(endpoint), "s3.max-retries": 2, "retry_timeout": "1 min"})
    for failing in (files.read, files.list, partial(files.replace, data=b"1")):
        met.clear()
        with pytest.raises(StorageError, match="after 2 retries"):
            failing(f"s3://{BUCKET}/x/f")
        assert len(met) == 3


def write_file(files: FileIO, path: str, size: int) -> int:
    with files.create(path) as output:
        for _ in range(size // 1_000_000):
            output.write(bytes(1_000_000))
    status = files.status(path)
    assert status is not None
    return status.size


def missing(read: Callable[[str], object], path: str) -> str:
    with pytest.raises(NotFound) as caught:
        read(path)
    return caught.value.kind


def read_in_parts(files: FileIO, path: str) -> tuple[int, bytes, bytes]:
    with files.open(path) as opened:
        return opened.size(), opened.read_at(3, 5), opened.read_at(3, opened.size() - 3)


def delete_and_check(files: FileIO, paths: Sequence[str]) -> list[bool]:
    files.delete(paths)
    return [files.status(path) is None for path in paths]


def put_twice(files: FileIO, path: str) -> tuple[bool, PutOutcome, bytes]:
    first = files.put_if_absent(path, b"1") in (PutOutcome.CREATED, PutOutcome.EXISTS)
    return first, files.put_if_absent(path, b"2"), files.read(path)


def replace_and_read(files: FileIO, path: str) -> bytes:
    files.replace(path, b"new")
    return files.read(path)


OPERATIONS: dict[str, tuple[Callable[[FileIO, str], object], object]] = {
    "read": (lambda files, root: files.read(f"{root}/f") == DATA, True),
    "read of a missing file": (lambda files, root: missing(files.read, f"{root}/none"), "file"),
    "open": (lambda files, root: read_in_parts(files, f"{root}/f"), (200_000, b"56789"[:3], b"789")),
    "open of a missing file": (lambda files, root: missing(files.open, f"{root}/none"), "file"),
    "open of an empty file": (lambda files, root: files.open(f"{root}/empty").read(), b""),
    "status of a file": (lambda files, root: files.status(f"{root}/f").size, 200_000),
    "status of a directory": (lambda files, root: files.status(f"{root}/d").is_directory, True),
    "status of nothing": (lambda files, root: files.status(f"{root}/none"), None),
    "list": (lambda files, root: [s.name for s in files.list(root)], ["d", "empty", "f"]),
    "list of nothing": (lambda files, root: list(files.list(f"{root}/none")), []),
    "delete of one": (lambda files, root: delete_and_check(files, [f"{root}/f"]), [True]),
    "delete of several": (
        lambda files, root: delete_and_check(files, [f"{root}/{n}" for n in ("f", "x", "d/g")]),
        [True] * 3,
    ),
    "replace": (lambda files, root: replace_and_read(files, f"{root}/f"), b"new"),
    "create": (lambda files, root: write_file(files, f"{root}/new", 1_000_000), 1_000_000),
    "create in parts": (lambda files, root: write_file(files, f"{root}/new", 20_000_000), 20_000_000),
    "put if absent": (lambda files, root: put_twice(files, f"{root}/new"), (True, PutOutcome.EXISTS, b"1")),
}
"""Each operation of a FileIO, and what it returns."""


def fill_root(endpoint: str) -> str:
    """The root of some files."""
    root = f"s3://{BUCKET}/{uuid.uuid4()}"
    files = StoreFiles(root, storage_of(endpoint))
    for name, data in {"f": DATA, "d/g": b"1", "empty": b""}.items():
        files.replace(f"{root}/{name}", data)
    return root


@pytest.mark.parametrize(
    ("operation", "place"),
    mark_products(
        OPERATIONS,
        [Cut.BEFORE, Cut.HEAD, Cut.BODY],
        always=[
            "read",
            "open",
            "status of a file",
            "list",
            "delete of several",
            "replace",
            "create in parts",
            "put if absent",
        ],
    ),
    ids=lambda value: str(value),
)
def test_every_operation_retries_cut_replies(endpoint: str, operation: str, place: Cut) -> None:
    """Lose the first two replies to each kind of command, and to the retried requests."""
    left = Counter(dict.fromkeys(("GET", "HEAD", "PUT", "POST", "DELETE"), 2))

    def cut(command: str) -> Cut:
        left[command] -= 1
        return place if left[command] >= 0 else Cut.NOWHERE

    root = fill_root(endpoint)
    run, expected = OPERATIONS[operation]
    with cutting_replies_by_rule(endpoint, cut) as lossy:
        assert run(StoreFiles(root, storage_of(lossy)), root) == expected
    assert min(left.values()) < 0


def test_a_retried_put_is_recognized_as_the_same_put(endpoint: str) -> None:
    """Lose the first reply to every put, so the second reply reports that the file exists."""
    step = Counter[str]()

    def cut(command: str) -> Cut:
        step[command] += 1
        return Cut.BEFORE if command == "PUT" and step[command] % 2 else Cut.NOWHERE

    with cutting_replies_by_rule(endpoint, cut) as lossy:
        catalog = paimon.connect(f"s3://{BUCKET}/{uuid.uuid4()}", storage=storage_of(lossy))
        catalog.create_database("d")
        table = catalog.create_table("d.t", "a INT")
        assert table.write({"a": [1]}).snapshot_ids == (1,)
        table.tags.create("old")
        assert table.tags.rename("old", "new").name == "new"
        assert list(table.tags) == ["new"]
        table.branches.create("b", tag="new")
        assert list(table.branches) == ["b"]


def test_a_listing_of_several_pages_retries_cut_replies(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")  # on a page; the server reads it for each request
    root = f"s3://{BUCKET}/{uuid.uuid4()}"
    names = [f"{number:04}" for number in range(95)]
    StoreFiles(root, storage_of(endpoint)).create_all({f"{root}/{name}": b"" for name in names})
    with cutting_replies(endpoint, 0.3) as lossy:
        assert [s.name for s in StoreFiles(root, storage_of(lossy)).list(root)] == names


def test_the_storage_option_limits_the_retries_after_cut_replies(endpoint: str) -> None:
    asked: Counter[str] = Counter()

    def cut(command: str) -> Cut:
        asked[command] += 1
        return Cut.BODY

    root = fill_root(endpoint)
    with cutting_replies_by_rule(endpoint, cut) as lossy:
        files = StoreFiles(root, {**storage_of(lossy), "max_retries": 2})
        with pytest.raises(StorageError, match="list response body"):
            files.list(root)
        assert asked == {"GET": 3}
        with pytest.raises(StorageError, match="body error"):
            files.delete([f"{root}/f"])
        assert asked == {"GET": 3, "POST": 3}


def test_a_refused_request_is_not_retried(endpoint: str) -> None:
    asked: Counter[str] = Counter()

    def cut(command: str) -> Cut:
        asked[command] += 1
        return Cut.NOWHERE

    with cutting_replies_by_rule(endpoint, cut) as counted:
        files = StoreFiles("s3://no-such-bucket/x", storage_of(counted))
        for failing in (files.list, files.status):
            asked.clear()
            with pytest.raises(StorageError, match="404"):
                failing("s3://no-such-bucket/x")
            assert max(asked.values()) == 1


def test_retry_limits_of_a_request_are_exact() -> None:
    assert retry_config({}) == {"max_retries": 20, "retry_timeout": timedelta(minutes=3)}
    assert retry_config({"fs.s3a.retry-timeout": "10 s", "max_retries": None})["retry_timeout"] == timedelta(seconds=10)
    wrong = [{"max_retries": "many"}, {"max_retries": -1}, {"retry_timeout": "2 d"}, {"retry_timeout": "9" * 19 + " d"}]
    for storage in wrong:
        with pytest.raises(InvalidRequest, match=rf"Option '{next(iter(storage))}' has the invalid value .*Give a"):
            paimon.connect(f"s3://{BUCKET}/x", storage=storage)


def test_missing_file_is_not_found(endpoint: str) -> None:
    files = StoreFiles(f"s3://{BUCKET}/x", storage_of(endpoint))
    for read in (files.read, files.open):
        with pytest.raises(NotFound):
            read(f"s3://{BUCKET}/x/none")
    assert files.status(f"s3://{BUCKET}/x/none") is None
    assert list(files.list(f"s3://{BUCKET}/x/none")) == []


def test_a_lost_reply_of_a_successful_put_is_recognized(endpoint: str) -> None:
    with losing_replies(endpoint, 0.5, seed=3) as lossy:
        files = StoreFiles(f"s3://{BUCKET}/x", storage_of(lossy))
        for i in range(20):
            path = f"s3://{BUCKET}/{uuid.uuid4()}/{i}"
            first = files.put_if_absent(path, b"1")
            assert first in (PutOutcome.CREATED, PutOutcome.EXISTS, PutOutcome.UNKNOWN)
            assert files.put_if_absent(path, b"2") is not PutOutcome.CREATED
            assert files.read(path) == b"1"


def test_a_store_without_conditional_puts_is_refused_for_several_writers(endpoint: str) -> None:
    with serve_without_conditional_puts(endpoint) as overwriting:
        root = f"s3://{BUCKET}/{uuid.uuid4()}"
        catalog = paimon.connect(root, storage=storage_of(overwriting))
        with pytest.raises(StorageError, match=r"a trial showed.*metastore='jdbc'.*'single-writer'"):
            catalog.create_database("d")
            catalog.create_table("d.t", "a INT")
        assert not list(StoreFiles(root, storage_of(endpoint)).list(f"{root}/d.db/t/schema"))


def test_one_writer_may_use_a_store_without_conditional_puts(endpoint: str) -> None:
    with serve_without_conditional_puts(endpoint) as overwriting:
        root = f"s3://{BUCKET}/{uuid.uuid4()}"
        catalog = paimon.connect(root, storage={**storage_of(overwriting), "single-writer": True})
        catalog.create_database("d")
        table = catalog.create_table("d.t", "a INT")
        assert table.write({"a": [1]}).snapshot_ids == (1,)
        path = f"{table.location}/snapshot/snapshot-1"
        assert table.engine.files.put_if_absent(path, b"") is PutOutcome.EXISTS
        assert table.write({"a": [2]}).snapshot_ids == (2,)
        assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2]


def test_the_lock_of_a_catalog_makes_a_store_without_conditional_puts_safe(endpoint: str, tmp_path: Path) -> None:
    with serve_without_conditional_puts(endpoint) as overwriting:
        root = f"s3://{BUCKET}/{uuid.uuid4()}"
        options = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/catalog.db", "storage": storage_of(overwriting)}
        catalog = paimon.connect(root, **options)
        catalog.create_database("d")
        catalog.create_table("d.t", "a INT")

        def write(number: int) -> None:
            paimon.connect(root, **options).table("d.t").write({"a": [number]})

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(write, range(6)))
        assert sorted(catalog.table("d.t").scan().to_arrow()["a"].to_pylist()) == list(range(6))


def test_a_trial_is_repeated_when_replies_are_lost(endpoint: str) -> None:
    with losing_replies(endpoint, 0.4, seed=5) as lossy:
        for _ in range(6):
            root = f"s3://{BUCKET}/{uuid.uuid4()}"
            files = StoreFiles(root, storage_of(lossy))
            assert files.put_if_absent(f"{root}/x", b"1") is not None
            assert files.read(f"{root}/x") == b"1"


@pytest.mark.parametrize("client", ["store", "fsspec"])
def test_a_file_too_large_for_metadata_is_refused(endpoint: str, client: str) -> None:
    place = uuid.uuid4()
    root = f"s3://{BUCKET}/{place}" if client == "store" else f"memory://{place}"
    files: FileIO = StoreFiles(root, storage_of(endpoint)) if client == "store" else FsspecFiles(root)
    sizes = {"none": 0, "few": 1000, "many": 1001}
    for name, size in sizes.items():
        files.replace(f"{root}/{name}", bytes(size))
    assert [len(files.read(f"{root}/{name}", 1000)) for name in ("none", "few")] == [0, 1000]
    with pytest.raises(CorruptTable, match=r"many: has 1001 bytes.*the limit of such a file is 1000 bytes"):
        files.read(f"{root}/many", 1000)
    assert len(files.read(f"{root}/many")) == 1001


def test_fsspec_asks_once_for_a_metadata_file_and_never_for_more_than_it_may_have() -> None:
    asked: list[tuple[str, object]] = []

    class Counted(MemoryFileSystem):
        def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
            asked.append((path, end))
            return super().cat_file(path, start, end, **options)

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            asked.append((path, "info"))
            return super().info(path, **options)

    files = FsspecFiles("memory://m")
    files._fs.unrepeated = Counted()
    files.replace("memory://m/f", b"data")
    asked.clear()
    assert files.read("memory://m/f") == b"data"
    assert asked == [("/m/f", WHOLE_BYTES + 1)]


def test_the_test_server_has_atomic_put_if_absent(endpoint: str) -> None:
    """Stress tests of many writers rely on put-if-absent. Without it, the server would cause their failures."""
    names = [f"once/{uuid.uuid4()}" for _ in range(30)]

    def put_if_absent_status(name: str) -> int:
        connection = http.client.HTTPConnection(endpoint.removeprefix("http://"))
        signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request"}
        connection.request("PUT", f"/{BUCKET}/{name}", b"x" * 1000, {"If-None-Match": "*", **signed})
        status = connection.getresponse().status
        connection.close()
        return status

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # the server's threads race between check and put
    try:
        with ThreadPoolExecutor(8) as pool:
            found = [sorted(pool.map(put_if_absent_status, [name] * 8)) for name in names]
    finally:
        sys.setswitchinterval(usual)
    assert found == [[200] + [412] * 7] * len(names)


def test_the_refusal_of_several_writers_is_no_commit_in_doubt(endpoint: str) -> None:
    with serve_without_conditional_puts(endpoint) as overwriting:
        root = f"s3://{BUCKET}/{uuid.uuid4()}"
        single_writer = paimon.connect(root, storage={**storage_of(overwriting), "single-writer": True})
        single_writer.create_database("d")
        table = single_writer.create_table("d.t", "a INT")
        table.write({"a": [1]})
        before = _below(f"{table.location}/manifest", endpoint)
        shared = paimon.open_table(table.location, storage=storage_of(overwriting))
        with pytest.raises(StorageError, match=r"a trial showed.*metastore='jdbc'.*'single-writer'"):
            shared.write({"a": [2]})
        assert [s.id for s in table.snapshots()] == [1]
        assert _below(f"{table.location}/manifest", endpoint) == before, "what was written for it is gone"
        assert table.write({"a": [3]}).snapshot_ids == (2,)


def _below(directory: str, endpoint: str) -> list[str]:
    return [status.name for status in StoreFiles(directory, storage_of(endpoint)).list(directory)]
