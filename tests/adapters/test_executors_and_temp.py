"""The contracts of Executor and TempStore on every adapter; Spark's executor has its class in `tests/spark`."""

from __future__ import annotations

import tempfile

import pytest

from paimon.adapters.executors.local import SerialExecutor, ThreadExecutor
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.errors import InvalidRequest, StorageError, TableReplaced
from paimon.ports.executor import Executor
from paimon.ports.temp import TempStore
from paimon.testing.contracts import ExecutorContract, TempStoreContract


class TestSerialExecutor(ExecutorContract):
    def make_executor(self) -> Executor:
        return SerialExecutor()


class TestThreads(ExecutorContract):
    def make_executor(self) -> Executor:
        return ThreadExecutor(4)


class TestOneThread(ExecutorContract):
    def make_executor(self) -> Executor:
        return ThreadExecutor(1)


class TestLocalTempStore(TempStoreContract):
    def make_store(self) -> TempStore:
        return LocalTempStore()


class TestUncompressedTempStore(TempStoreContract):
    def make_store(self) -> TempStore:
        return LocalTempStore(tempfile.mkdtemp(), compression=None)


def test_a_null_that_spark_refuses_is_an_error_of_the_request() -> None:
    spark = pytest.importorskip("paimon.adapters.executors.spark")
    text = "[NOT_NULL_ASSERT_VIOLATION] NULL value appeared in non-nullable field:\nIf the schema is inferred"
    error = spark.to_paimon_error(Exception(text))
    assert isinstance(error, InvalidRequest)
    assert str(error).endswith("NULL value appeared in non-nullable field.")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("\nModuleNotFoundError: No module named 'paimon'\n", InvalidRequest, "no version of this package"),
        ("\nImportError: cannot import name 'x' from 'paimon.a' (a.py)", InvalidRequest, "no version of this package"),
        (
            "[PYTHON_VERSION_MISMATCH] Python is 3.11, 3.12 here.",
            InvalidRequest,
            "no version of this package",
        ),
        ("[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008", StorageError, "the session stopped"),
        ("Job 3 cancelled because SparkContext was shut down", StorageError, "the session stopped"),
        ("Python worker failed to connect back.", StorageError, "did not start within the 10 s"),
        ("Unsupported: of another program", StorageError, "a task failed: Unsupported: of another program"),
        ("TableReplaced: Table '/t' was dropped and created again after it", TableReplaced, "Table '/t' was dropped"),
    ],
)
def test_other_versions_and_stopped_sessions_of_spark_are_named(text: str, kind: type[Exception], message: str) -> None:
    found = pytest.importorskip("paimon.adapters.executors.spark").to_paimon_error(Exception(text))
    assert type(found) is kind and message in str(found)


def test_internal_errors_of_spark_mean_a_stop_once_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = pytest.importorskip("paimon.adapters.executors.spark")
    monkeypatch.setattr(spark.SparkContext, "_active_spark_context", None)
    assert "the session stopped" in str(spark.find_stop("[INTERNAL_ERROR] Executed append failed."))
    assert spark.find_stop("[PATH_NOT_FOUND] Path does not exist") is None
