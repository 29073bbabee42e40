"""A secret that the library receives is never printed: not in a repr, an error or its causes, a plan, or a pickle."""

from __future__ import annotations

import contextlib
import json
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import paimon
from paimon.adapters.catalogs.locking import Database
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.store_files import StoreFiles
from paimon.cli.main import main
from paimon.domain.errors import PaimonError
from paimon.domain.secrets import redact_secrets, remove_password, remove_secrets
from paimon.engines import engine_for
from paimon.spark.source import PaimonDataSource

SECRET = "s3cr3t+planted/7"
PLAIN = "s3cr3tplanted7"
NOWHERE = "127.0.0.1:9"
URIS = (
    f"postgresql://me:{PLAIN}@{NOWHERE}/db",
    f"jdbc:postgresql://{NOWHERE}/db?user=me&password={PLAIN}",
    f"postgresql://{NOWHERE}/db?user=me&password={PLAIN}&connect_timeout=1",
    f"mysql://me:{PLAIN}@{NOWHERE}/db",
    f"nosuch://me:{PLAIN}@{NOWHERE}/db",
    f"postgresql://me:{PLAIN}@{NOWHERE}:nine/db",
    f"jdbc:sqlite:/no/such/place/{{}}.db?password={PLAIN}",
    f"//me:{PLAIN}@x",
)


def describe_error(error: BaseException) -> str:
    """Return everything that a caller can see of an error: its text, fields, causes and traceback."""
    texts = traceback.format_exception(error) + [repr(error), repr(vars(error))]
    return "\n".join(text for text in texts)


def check_no_secret(*texts: object) -> None:
    for text in texts:
        for secret in (SECRET, PLAIN):
            encoded = text if isinstance(text, bytes) else str(text).encode()
            # (tracebacks quote lines of this test's source, which contain names of constants and no secret)
            assert secret.encode() not in encoded, encoded


def describe_failure(call: Callable[[], object]) -> str:
    with pytest.raises(PaimonError) as caught:
        call()
    return describe_error(caught.value)


@pytest.mark.parametrize("uri", URIS)
def test_of_a_database(tmp_path: Path, uri: str) -> None:
    for options in ({"uri": uri}, {"uri": uri, "jdbc_user": "me", "jdbc_password": SECRET}):
        database = Database(uri, "me", options.get("jdbc_password"))
        check_no_secret(repr(database), database.redacted_uri, pickle.dumps(database), remove_secrets(options))
        try:
            catalog = paimon.connect(tmp_path, metastore="jdbc", **options)
            check_no_secret(repr(catalog), repr(catalog.engine), pickle.dumps(catalog), repr(catalog.store))
            catalog.create_database("d")
        except PaimonError as error:
            check_no_secret(describe_error(error))


@pytest.mark.parametrize("name", ["secret", "token", "password", "s3.secret-key", "client_kwargs"])
@pytest.mark.parametrize("scheme", ["s3", "gs", "abfss", "memory", "sftp", "http", "nosuch"])
def test_of_a_storage(scheme: str, name: str) -> None:
    value = {"aws_secret_access_key": SECRET} if name == "client_kwargs" else SECRET
    storage = {name: value, "endpoint_url": f"http://me:{PLAIN}@{NOWHERE}/"}
    for make in (lambda: StoreFiles(f"{scheme}://b/x", storage), lambda: FsspecFiles(f"{scheme}://b/x", storage)):
        try:
            files = make()
        except (PaimonError, KeyError) as error:
            if not isinstance(error, KeyError):
                check_no_secret(describe_error(error))
            continue
        check_no_secret(repr(files))
        with pytest.raises(PaimonError) as caught:
            pickle.dumps(files)
        check_no_secret(describe_error(caught.value))
    check_no_secret(remove_secrets(storage))


@pytest.mark.parametrize(
    "location",
    [f"s3://me:{PLAIN}@b/x", f"sftp://me:{PLAIN}@h/x", f"s3://b/x?X-Amz-Signature={PLAIN}", f"http://:{PLAIN}@h/x"],
)
def test_of_a_location(location: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_no_secret(
        describe_failure(lambda: paimon.connect(location)), describe_failure(lambda: paimon.open_table(location))
    )
    for arguments in (["ls", location], ["cat", location], ["init", location], ["fsck", location, "--output", "json"]):
        with contextlib.suppress(SystemExit):
            assert main(arguments) == 1
        check_no_secret(*capsys.readouterr())


def test_of_options_of_a_table(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    for options in ({"s3.secret-key": SECRET}, {"fs.s3a.access.key": SECRET}, {"password": SECRET}):
        check_no_secret(describe_failure(lambda options=options: catalog.create_table("d.t", "k INT", options=options)))
    check_no_secret(describe_failure(lambda: paimon.connect(tmp_path, jdbc_password=SECRET)))
    check_no_secret(describe_failure(lambda: paimon.connect(tmp_path, secret_key=SECRET)))


def test_pickled_values() -> None:
    storage = {"token": SECRET, "nested": {"password": SECRET, "more": {"api_key": SECRET}}}
    engine = engine_for("memory://lake", {}, {})
    catalog = paimon.connect(f"memory://{PLAIN[::-1]}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options={"bucket": "1"})
    table.write([{"k": 1, "v": "a"}])
    check_no_secret(remove_secrets(storage), repr(engine), pickle.dumps(engine))
    scan = table.scan(where="k = 1")
    plan = scan.plan()
    check_no_secret(scan.explain(), repr(scan), repr(plan), pickle.dumps(plan.splits), repr(table), pickle.dumps(table))


@pytest.mark.parametrize(
    "options",
    [
        {"path": f"s3://me:{PLAIN}@b/x", "s3.secret-key": SECRET, "password": SECRET},
        {"path": f"s3://me:{PLAIN}@b/x"},
        {"path": "s3://b/x", "storage": json.dumps({"secret_access_key": SECRET})},
        {"path": "s3://b/x", "storage": json.dumps({"client_kwargs": {"password": SECRET}})},
        {"path": "s3://b/x", "storage": json.dumps({"endpoint": f"http://me:{PLAIN}@{NOWHERE}/"})},
        {"path": "s3://b/x", "storage": f"token={SECRET}"},
        {"path": "x", "catalog": json.dumps({"metastore": "jdbc", "uri": URIS[0], "jdbc.password": SECRET})},
    ],
)
def test_of_spark_tasks(options: dict[str, str]) -> None:
    source = PaimonDataSource(options)
    for call in (source.schema, lambda: source.reader(None), lambda: source.writer(None, False)):
        try:
            task = call()
        except PaimonError as error:
            check_no_secret(describe_error(error))
        else:
            check_no_secret(pickle.dumps(task), repr(task))


@pytest.mark.parametrize(
    "text",
    [f"cannot reach https://me:{PLAIN}@host/x", f"'postgresql://me:{SECRET}@host/x'", f"u://h/d?password={PLAIN}&a=1"]
    + [f"jdbc:mysql://h/d?a=1&user=me&password={PLAIN}", f"GET http://h/k?X-Amz-Signature={PLAIN}&X-Amz-Date=1"],
)
def test_of_texts(text: str) -> None:
    check_no_secret(redact_secrets(text, {}))
    if PLAIN in text:
        check_no_secret(remove_password(text))
