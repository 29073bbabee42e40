"""Mistakes to plant into adapters: each is a small variant of a right one, which a case of the contract must find."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

import paimon
from paimon.adapters.files.local import LocalFiles
from paimon.testing import contracts
from paimon.testing.memory_files import MemoryFiles

Adapter = type[Any]


@frozen
class Mistake:
    """A wrong adapter: the contract, its case that fails, and the sentence of the port that the adapter breaks."""

    contract: type
    case: str
    promise: str
    make: Callable[..., object]


MISTAKES: dict[str, Mistake] = {}


def plant(contract: type, case: str, promise: str) -> Callable[[Adapter], Adapter]:
    """Register a class of wrong adapters under its name. `case` may be the begin of the name of a case."""
    [whole] = [name for name in dir(contract) if name == case] or [
        name for name in dir(contract) if name.startswith(case)
    ]

    def register(adapter: Adapter) -> Adapter:
        make = _MAKERS.get(contract, lambda made: made())
        assert adapter.__name__ not in MISTAKES
        MISTAKES[adapter.__name__] = Mistake(contract, whole, promise, lambda *given: make(adapter, *given))
        return adapter

    return register


def _in_directory(adapter: Adapter) -> object:
    return adapter(), os.path.join(tempfile.mkdtemp(), "root")


def _make_commit(adapter: Adapter) -> object:
    files = MemoryFiles()
    return adapter(files), files, "/t"


def _make_catalog(adapter: Adapter) -> object:
    files = LocalFiles()
    return adapter(files, os.path.join(tempfile.mkdtemp(), "lake")), files


def _make_row_files(adapter: Adapter) -> object:
    found: Any = paimon.connect("memory://row-files").engine.row_files
    made = adapter(found.open_storage, found.locate, found.formats)
    return made, Path(tempfile.mkdtemp()).resolve(), Path(tempfile.mkdtemp()).resolve()


_MAKERS: dict[type, Callable[..., object]] = {
    contracts.FileIOContract: _in_directory,
    contracts.DirectoriesContract: _in_directory,
    contracts.ManyFilesContract: _in_directory,
    contracts.DeferredFlushContract: _in_directory,
    contracts.RowFilesContract: _make_row_files,
    contracts.SnapshotCommitContract: _make_commit,
    contracts.CatalogStoreContract: _make_catalog,
    contracts.ObjectCacheContract: lambda adapter, max_bytes: adapter(max_bytes),
}
