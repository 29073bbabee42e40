"""Changes of table options.

Law: an option that stored data depends on stays as it is once there is a snapshot; where options name a column,
they follow its new name. Source: `SchemaManager.checkAlterTableOption`, `applyRenameColumnsToOptions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.option import Kind
from paimon.domain.options.parse import parse_list
from paimon.domain.options.registry import OPTIONS, canonical_key
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.declare import stored_option
from paimon.domain.schema.rules.table_type import check_new_table_type

_KEYS_OF_SCHEMA = ("primary-key", "partition")
_SWITCHES = ("ignore-delete", "ignore-update-before")
"""May be turned on, never off again: deletes that were ignored are gone."""
_COLUMN_OPTIONS = (
    "rowkind.field", "record-level.time-field", "manifest-sort.partition-field",
    "partial-update.remove-record-on-sequence-group",
)  # fmt: skip
"""Options of another kind than NAMES that name columns."""


def set_to(options: Mapping[str, str], key: str, value: str) -> dict[str, str]:
    """The options with this one set."""
    if key in _KEYS_OF_SCHEMA:
        raise InvalidRequest(f"option {key!r} is fixed when a table is made", subject=key)
    changed = TableOptions.of({**options, key: value})
    if key == "type" and changed.table_type != TableOptions.of(options).table_type:
        check_new_table_type(changed)
    return {**options, key: stored_option(key, value)}


def check_option_changes(old: Mapping[str, str], new: Mapping[str, str], touched: Iterable[str]) -> None:
    """Refuse changes of the `touched` options that a table with snapshots cannot follow."""
    before, after = TableOptions.of(old), TableOptions.of(new)
    for key in touched:
        name = canonical_key(key)
        if before.get(name) == after.get(name):
            continue
        option = OPTIONS.get(name)
        if option is not None and option.immutable:
            raise _fixed(key, "once the table has a snapshot")
        if name == "bucket":
            _check_bucket(before, after, removes=key not in new)
        if name == "deletion-vectors.enabled" and not before.deletion_vectors_modifiable:
            raise _fixed(key, "once the table has a snapshot", "set 'deletion-vectors.modifiable' before")
        if name in _SWITCHES and (before.get(name) or "").strip().lower() == "true":
            raise _fixed(key, "from true to false")


def _check_bucket(before: TableOptions, after: TableOptions, removes: bool) -> None:
    if removes:
        raise _fixed("bucket", "by removing it")
    if -1 in (before.bucket, after.bucket):
        raise _fixed("bucket", "from or to -1")


def _fixed(key: str, when: str, hint: str | None = None) -> InvalidRequest:
    return InvalidRequest(f"option {key!r} cannot change {when}", subject=key, hint=hint)


def renamed_references(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """The options with `new` wherever they name the column `old`."""
    return {_renamed_key(k, old, new): _renamed_value(k, v, old, new) for k, v in options.items()}


def _renamed_key(key: str, old: str, new: str) -> str:
    if key.startswith("fields."):
        columns, dot, ending = key.removeprefix("fields.").rpartition(".")
        return f"fields.{_renamed_list(columns, old, new)}.{ending}" if dot else key
    if key.startswith("file-index."):
        kind, _, rest = key.removeprefix("file-index.").partition(".")
        column, dot, ending = rest.rpartition(".")
        return f"file-index.{kind}.{_renamed_list(column, old, new)}.{ending}" if dot else key
    return key


def _renamed_value(key: str, value: str, old: str, new: str) -> str:
    option = OPTIONS.get(canonical_key(key))
    lists = option is not None and option.kind is Kind.NAMES and not key.startswith("data-file.")
    groups = key.startswith("fields.") and key.endswith(".sequence-group")
    indexes = key.startswith("file-index.") and key.endswith(".columns")
    if lists or groups or indexes or key in _COLUMN_OPTIONS:
        return _renamed_list(value, old, new)
    return value


def _renamed_list(names: str, old: str, new: str) -> str:
    """The comma list with one name replaced, ``old[key]`` of map indexes too; untouched where it does not come."""
    if old not in (name.partition("[")[0] for name in parse_list(names)):
        return names
    parts = (name.partition("[") for name in parse_list(names))
    return ",".join((new if head == old else head) + bracket + tail for head, bracket, tail in parts)
