"""What the options of the data source mean.

Law: Spark shows options in its plans and lower-cases their names. So none of them is a secret, what has a case of its
own travels as JSON, and an unknown name is refused with the nearest one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.options.registry import (
    ALIASES,
    CALLBACK_PREFIXES,
    FORMAT_PREFIXES,
    OPTIONS,
    TABLE_DEFAULT_PREFIX,
    canonical_key,
)
from paimon.domain.predicate.expression import Predicate
from paimon.domain.secrets import without_secrets
from paimon.engines import engine_for, open_with, place_of
from paimon.operations.read.time_travel import PinnedTable, pinned_at
from paimon.ports.engine import Engine
from paimon.scan import Scan
from paimon.system_table import SystemScan, SystemTable
from paimon.table import Table

PINNED = "pinned"
"""Set by `paimon.spark.read`: the snapshot and the schema that the data frame was made at."""

_WAREHOUSE = "warehouse"
_TRAVELS = {
    "snapshot": "scan.snapshot-id",
    "tag": "scan.tag-name",
    "versionasof": "scan.version",
    "timestampasof": "scan.timestamp",
}
_SHOWN = ("path", "snapshot", "tag", "versionAsOf", "timestampAsOf", "storage", "catalog", "table-options",
          "allowed-roots", "kind-column", "commit-user", "commit-identifier")  # fmt: skip
_OWN = {name.lower() for name in _SHOWN} | {PINNED}
_PREFIXES = ("fields.", "file-index.", TABLE_DEFAULT_PREFIX, *FORMAT_PREFIXES, *CALLBACK_PREFIXES)
_USE = (
    "make the table with paimon.connect(warehouse).create_table(…), read it by .load(path), write it by "
    "paimon.spark.write(df, path); in SQL: CREATE TEMPORARY VIEW v USING paimon OPTIONS (path '…')"
)


@frozen
class SourceOptions:
    """The options of one read or write.

    `storage` and `catalog` are those of `paimon.connect`, the latter with the path of its warehouse; secrets are in
    neither. `pinned` is a snapshot and a schema to read at.
    """

    path: str
    table_options: Mapping[str, str] = field(factory=dict)
    storage: Mapping[str, object] = field(factory=dict)
    catalog: Mapping[str, str] = field(factory=dict)
    allowed_roots: tuple[str, ...] = ()
    pinned: Mapping[str, Any] | None = None
    kind_column: str | None = None
    commit_user: str | None = None
    commit_identifier: int | None = None

    def open(self) -> Table | SystemTable:
        """The table, or system table, opened now."""
        catalog = dict(self.catalog)
        location = catalog.pop(_WAREHOUSE, place_of(self.path)[0])
        engine = engine_for(location, self.storage, catalog, self.allowed_roots)
        return open_with(engine, self.path, self.table_options, self.allowed_roots)

    def table(self) -> Table:
        """The table to write to."""
        opened = self.open()
        if not isinstance(opened, Table):
            raise InvalidRequest(f"{opened.name} is a system table, which nobody writes", subject=opened.name)
        return opened


@frozen(eq=False)
class Source:
    """What is read: a table or system table, perhaps at a state that was pinned before."""

    opened: Table | SystemTable
    pinned: Mapping[str, Any] | None = None

    def scan(self, columns: Sequence[str] | None = None, where: Predicate | None = None) -> Scan | SystemScan:
        """A lazy read."""
        if self.pinned is None or not isinstance(self.opened, Table):
            return self.opened.scan(columns, where)
        engine, definition = self.opened.engine, self.opened.definition
        state: PinnedTable = pinned_at(engine, definition, self.pinned["snapshot"], self.pinned["schema"])
        return Scan(engine, definition, columns=columns, where=where, pinned=state)


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options of the data source.

    Raises
    ------
    InvalidRequest
        An option that is unknown, secret or of a wrong form, more than one way of time travel, or no path.
    """
    given = {k.lower(): v for k, v in options.items()}
    path = given.get("path")
    if "provider" in given or not path:
        what = "Spark's catalog cannot hold Paimon tables" if "provider" in given or not given else "path is missing"
        raise InvalidRequest(f"{what}: Spark hands its options, keys and location to no Python source",
                             subject="path", hint=_USE)  # fmt: skip
    _check_names(given)
    identifier = given.get("commit-identifier")
    return SourceOptions(
        path=path,
        table_options=_table_options(given),
        storage=_open_mapping(given, "storage"),
        catalog={name: str(value) for name, value in _open_mapping(given, "catalog").items()},
        allowed_roots=_roots(given.get("allowed-roots", "")),
        pinned=_json(given[PINNED], PINNED) if PINNED in given else None,
        kind_column=given.get("kind-column"),
        commit_user=given.get("commit-user"),
        commit_identifier=None if identifier is None else _whole_number(identifier),
    )


def options_of(table: Table | SystemTable) -> dict[str, str]:
    """The options by which the data source opens the same table, on the same storage and under the same catalog.

    Raises
    ------
    Unsupported
        Its engine was not made by `paimon.connect` or `paimon.open_table`.
    """
    location, storage, catalog, roots = _recipe(table.engine)
    definition = table.definition
    stored = definition.schema.options
    dynamic = {k: v for k, v in definition.options.values.items() if stored.get(k) != v}
    if definition.branch != "main":
        dynamic["branch"] = definition.branch
    given: dict[str, Any] = {
        "storage": dict(storage),
        "catalog": {_WAREHOUSE: location, **catalog} if catalog or location != definition.location else {},
        "table-options": dynamic,
        "allowed-roots": list(dict.fromkeys((*roots, *definition.allowed_roots))),
    }
    return {name: _text(name, value) for name, value in given.items() if value}


def _recipe(engine: Engine) -> tuple[str, Mapping[str, object], Mapping[str, str], Sequence[str]]:
    if engine.recipe is None or engine.recipe[0] is not engine_for:
        hint = "open the table with paimon.connect or paimon.open_table"
        raise Unsupported("reading in Spark through an engine of your own", hint=hint)
    location, storage, catalog, roots = engine.recipe[1]
    return location, storage, catalog, roots


def _check_names(given: Mapping[str, str]) -> None:
    for name in given:
        if name not in _OWN and canonical_key(name) not in OPTIONS and not name.startswith(_PREFIXES):
            known = [*_SHOWN, *OPTIONS, *ALIASES]
            raise InvalidRequest(
                f"option {name!r} of the paimon source is unknown", subject=name, hint=did_you_mean(name, known)
            )


def _table_options(given: Mapping[str, str]) -> dict[str, str]:
    plain = {k: v for k, v in given.items() if k not in _OWN}
    plain |= {k: str(v) for k, v in _open_mapping(given, "table-options").items()}
    ways = [name for name in _TRAVELS if name in given]
    others = [key for key in _TRAVELS.values() if key in plain]
    if len(ways) + len(others) > 1:
        raise InvalidRequest(
            f"more than one way of time travel: {', '.join((*ways, *others))}", hint="give exactly one of them"
        )
    return plain | {_TRAVELS[name]: given[name] for name in ways}


def _open_mapping(given: Mapping[str, str], name: str) -> dict[str, Any]:
    """A mapping that is written as JSON and holds no secrets."""
    if name not in given:
        return {}
    found = _json(given[name], name)
    if not isinstance(found, dict):
        raise InvalidRequest(f"option {name!r} is no JSON object", subject=name, hint='write {"name": "value"}')
    open_ones = without_secrets(found)
    secret = sorted(key for key in found if found[key] != open_ones.get(key))
    if secret:
        hint = "give credentials by the environment of the processes, or by the function that the option login names"
        raise InvalidRequest(f"{name} option {secret[0]!r} is secret, and Spark shows options", subject=name, hint=hint)
    return found


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # its message would quote the text
        raise InvalidRequest(f"option {name!r} is no JSON", subject=name) from None


def _text(name: str, value: object) -> str:
    try:
        return json.dumps(value)
    except TypeError as error:
        hint = "give text, numbers, lists and mappings; what a process must make itself comes from the option login"
        raise InvalidRequest(f"{name} cannot be sent to Spark: {error}", subject=name, hint=hint) from None


def _roots(text: str) -> tuple[str, ...]:
    return tuple(_json(text, "allowed-roots")) if text.startswith("[") else tuple(r for r in text.split(",") if r)


def _whole_number(text: str) -> int:
    if not text.lstrip("-").isdecimal():
        raise InvalidRequest(f"commit-identifier {text!r} is not a whole number", subject="commit-identifier")
    return int(text)
