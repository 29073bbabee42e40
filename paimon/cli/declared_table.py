"""Read the declaration of a table from a JSON file: the form that pypaimon's terminal prints and takes.

Source: `Schema` of pypaimon, which has the members of a schema file of the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_json import type_from_json


@frozen(eq=False)
class DeclaredTable:
    """The declaration of a new table, as `create_table` takes it."""

    columns: str | pa.Schema
    primary_keys: Sequence[str] = ()
    partition_keys: Sequence[str] = ()
    options: Mapping[str, str] = {}
    comment: str | None = None


def read_declared_table(path: str) -> DeclaredTable:
    """Read the declaration of a table from a JSON file.

    Its members are ``fields``, ``primaryKeys``, ``partitionKeys``, ``options`` and ``comment``.
    """
    try:
        found = json.loads(Path(path).read_text("utf8"))
        columns = arrow_schema([_parse_field(number, field, path) for number, field in enumerate(found["fields"])])
        return DeclaredTable(
            columns,
            [str(name) for name in found.get("primaryKeys") or ()],
            [str(name) for name in found.get("partitionKeys") or ()],
            {str(key): str(value) for key, value in (found.get("options") or {}).items()},
            found.get("comment") or None,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, CorruptTable) as error:
        raise InvalidRequest(
            f"File {path!r} is no schema of a table: {error}",
            subject=path,
            hint='write {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}], "primaryKeys": ["id"]}',
        ) from error


def _parse_field(number: int, field: Mapping[str, Any], path: str) -> DataField:
    kind = type_from_json(field["type"], path)
    return DataField(int(field.get("id", number)), str(field["name"]), kind, field.get("description"))
