"""The contracts of Executor and TempStore on every adapter; Spark's executor has its class in `tests/spark`."""

from __future__ import annotations

import tempfile

from paimon.adapters.executors.local import SerialExecutor, ThreadExecutor
from paimon.adapters.temp.local import LocalTempStore
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
