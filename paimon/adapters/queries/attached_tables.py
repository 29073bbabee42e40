"""The tables of a catalog, as query engines show them: what `duckdb_views` and `datafusion_catalog` share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Protocol

import pyarrow.dataset as ds

from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, PaimonWarning, Unsupported
from paimon.domain.extras import MissingExtra


class ReadableTable(Protocol):
    """A table whose rows are read through a dataset."""

    def to_dataset(self) -> ds.Dataset:
        """Return the rows of the newest snapshot."""


class ListedTables(Protocol):
    """A catalog."""

    def databases(self) -> list[str]:
        """Return the names of all databases."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all tables, each with its database."""

    def table(self, name: str) -> ReadableTable:
        """Open a table."""


def open_dataset(catalog: ListedTables, name: str) -> ds.Dataset | None:
    """Choose a snapshot of a table. None if it was dropped, or, with a warning, if it cannot be read."""
    try:
        return catalog.table(name).to_dataset()
    except NotFound:
        return None
    except (CorruptTable, InvalidRequest, MissingExtra, Unsupported) as error:
        what = f"Table {name!r} is not attached, because it cannot be opened: {error.message}"
        warnings.warn(what, PaimonWarning, stacklevel=2)
        return None
