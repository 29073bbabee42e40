"""What an implementation under test supplies: two methods, its capabilities, and optional methods for some of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

import pyarrow as pa
from attrs import fields, frozen

from paimon.domain.errors import InvalidRequest, suggest_or
from paimon.testing.interleaving import catch_outcome
from paimon.testing.strategies.types import ATOMIC_TYPE_NAMES, TYPE_NAMES

KEY_TYPES = tuple(name for name in ATOMIC_TYPE_NAMES if name not in ("FLOAT", "DOUBLE"))
"""The types of primary keys and of partition columns."""
FILE_FORMATS = ("parquet", "orc", "avro")
BUCKET_MODES = ("fixed", "dynamic", "postponed", "unaware")
"""How rows get their bucket; ``unaware`` is an append table without buckets."""
MERGE_ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
FEATURES = (
    "partitions", "row-kinds", "sequence-field", "added-columns", "time-travel", "deletion-vectors",
    "write", "create", "compact", "delete",
)  # fmt: skip
"""Other capabilities. The last three need the method of the same name; without ``write`` only reads are tested."""
_METHODS = ("create", "compact", "delete")
_NEEDED_TYPES = {"row-kinds": "VARCHAR", "sequence-field": "INT", "added-columns": "INT", "delete": "INT"}


class Refused(Exception):
    """Raised by an adapter for a table that the implementation does not support, and says so.

    `NotImplementedError` means the same.
    """


@frozen
class TableUnderTest:
    """A table of a file system catalog, at ``{warehouse}/{database}.db/{name}``."""

    warehouse: str
    database: str
    name: str
    schema: pa.Schema
    primary_keys: tuple[str, ...]
    partition_keys: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def identifier(self) -> str:
        """The name in the catalog, such as ``kit.t1``."""
        return f"{self.database}.{self.name}"

    @property
    def location(self) -> str:
        """The directory of the table."""
        return f"{self.warehouse}/{self.database}.db/{self.name}"


@frozen
class Capabilities:
    """What an implementation supports: tables are drawn from this alone.

    Attributes
    ----------
    types, key_types, partition_types : tuple of str
        Names of types for values, for primary keys and for partition columns, such as ``"DECIMAL"``.
    file_formats, bucket_modes, merge_engines, features : tuple of str
        Some of the constants of the same names.
    """

    types: tuple[str, ...] = TYPE_NAMES
    key_types: tuple[str, ...] = ("INT", "BIGINT", "VARCHAR")
    partition_types: tuple[str, ...] = ("INT", "VARCHAR")
    file_formats: tuple[str, ...] = FILE_FORMATS
    bucket_modes: tuple[str, ...] = BUCKET_MODES
    merge_engines: tuple[str, ...] = MERGE_ENGINES
    features: tuple[str, ...] = FEATURES


class Implementation(Protocol):
    """An implementation of the format, as the kit uses it; a class without parameters of its constructor.

    With the feature ``create``, a method ``create(table)`` creates the table; else this library does. With ``compact``,
    ``compact(table)`` compacts it. With ``delete``, ``delete(table, column, value)`` deletes the rows whose column has
    this value, an integer.
    """

    capabilities: Capabilities

    def write(self, table: TableUnderTest, rows: pa.Table) -> None:
        """Append the rows, or upsert them by primary key, in one commit.

        Parameters
        ----------
        table : TableUnderTest
            An existing table.
        rows : pyarrow.Table
            Rows with the columns of the table at its newest schema.

        Raises
        ------
        Refused
            The implementation does not support the table.
        """
        ...

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        """Return all rows of the table, in any order.

        Parameters
        ----------
        table : TableUnderTest
            An existing table.
        snapshot : int or None
            The id of a snapshot; None for the newest. It is given with the feature ``time-travel`` only.

        Returns
        -------
        pyarrow.Table
            The columns of the table, with types that Arrow casts to those of `table.schema`.

        Raises
        ------
        Refused
            The implementation does not support the table.
        """
        ...


def load_implementation(name: str) -> Implementation:
    """Load and create the adapter ``module:Class``.

    Parameters
    ----------
    name : str
        The module and the class, separated by a colon.

    Returns
    -------
    Implementation
        The adapter, whose capabilities are known ones and have their methods.

    Raises
    ------
    InvalidRequest
        The adapter is missing, cannot be imported or created, or declares what it does not have.
    """
    module, _, class_name = name.partition(":")
    if not module or not class_name:
        raise _adapter_error(name, "is not of the form MODULE:CLASS")
    loaded = catch_outcome(lambda: importlib.import_module(module))
    if (
        isinstance(loaded, ModuleNotFoundError)
        and loaded.name is not None
        and f"{module}.".startswith(f"{loaded.name}.")
    ):
        raise _adapter_error(name, f"does not exist: no module {loaded.name!r}", "set PYTHONPATH to its folder")
    if isinstance(loaded, BaseException):
        raise _adapter_error(name, f"cannot be imported: {describe_error(loaded)}") from loaded
    if not hasattr(loaded, class_name):
        raise _adapter_error(name, f"does not exist: {module} has no {class_name}")
    adapter = catch_outcome(getattr(loaded, class_name))
    if isinstance(adapter, BaseException):
        raise _adapter_error(name, f"cannot be created: {describe_error(adapter)}") from adapter
    _check_implementation(name, adapter)
    return cast(Implementation, adapter)


def describe_error(error: BaseException) -> str:
    """Return the class and the first line of an error."""
    first_line = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first_line[:300]}"


def _check_implementation(name: str, adapter: Any) -> None:
    declared = getattr(adapter, "capabilities", None)
    if not isinstance(declared, Capabilities):
        raise _adapter_error(name, "has no attribute 'capabilities' of type Capabilities")
    known = {
        "types": TYPE_NAMES, "key_types": KEY_TYPES, "partition_types": KEY_TYPES, "file_formats": FILE_FORMATS,
        "bucket_modes": BUCKET_MODES, "merge_engines": MERGE_ENGINES, "features": FEATURES,
    }  # fmt: skip
    for attribute in fields(Capabilities):
        _check_names(name, attribute.name, getattr(declared, attribute.name), known[attribute.name])
    for needed_names in ("types", "file_formats", "bucket_modes"):
        if not getattr(declared, needed_names):
            raise _adapter_error(name, f"declares nothing in {needed_names!r}")
    if set(declared.bucket_modes) != {"unaware"} and not (declared.merge_engines and declared.key_types):
        raise _adapter_error(name, "declares buckets for primary keys without 'merge_engines' or 'key_types'")
    for feature, type_name in _NEEDED_TYPES.items():
        if feature in declared.features and type_name not in declared.types:
            raise _adapter_error(name, f"declares {feature!r} without the type {type_name!r}")
    needed = ["read", *(f for f in ("write", *_METHODS) if f in declared.features)]
    for method in needed:
        if not callable(getattr(adapter, method, None)):
            raise _adapter_error(name, f"declares {method!r}, and has no method '{method}'")


def _check_names(name: str, attribute: str, declared: Iterable[str], known: tuple[str, ...]) -> None:
    for value in declared:
        if value not in known:
            hint = suggest_or(value, known, f"use some of {', '.join(known)}")
            raise _adapter_error(name, f"declares the unknown capability {value!r} in '{attribute}'", hint)


def _adapter_error(name: str, text: str, hint: str | None = None) -> InvalidRequest:
    return InvalidRequest(f"Adapter {name!r} {text}", hint=hint)
