"""Changes of table options.

Invariant: an option that stored data depends on does not change after the first snapshot. Where options name a column,
they follow its new name.
Source: `SchemaManager.checkAlterTableOption`, `applyRenameColumnsToOptions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.known_options import OPTIONS, canonical_key
from paimon.domain.options.option import Kind
from paimon.domain.options.parse import parse_list
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.declare import to_stored_option
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.rules.table_type import check_new_table_type
from paimon.domain.schema.table_schema import TableSchema

_KEYS_OF_SCHEMA = ("primary-key", "partition")
_SWITCHES = ("ignore-delete", "ignore-update-before")
"""Can change from false to true only, because ignored deletes are lost."""
_COLUMN_OPTIONS = (
    "rowkind.field", "record-level.time-field", "manifest-sort.partition-field",
    "partial-update.remove-record-on-sequence-group",
)  # fmt: skip
"""Options that name columns, although their kind is not NAMES."""

_PATH_OPTIONS = ("partition.default-name", "partition.legacy-name")
"""Options that the directories of partitions depend on."""
_MERGE_OPTIONS = frozenset({
    "changelog-producer", "deletion-vectors.enabled", "fields.default-aggregate-function", "ignore-delete",
    "ignore-update-before", "sequence.field", "sequence.field.sort-order",
})  # fmt: skip
_MERGE_ENDINGS = frozenset({
    "aggregate-function", "count-limit", "distinct", "ignore-retract", "list-agg-delimiter", "nested-key",
    "nested-key-null-strategy", "nested-sequence-field", "sequence-group", "ts-field",
})  # fmt: skip
"""Options, and endings of ``fields.<column>.<ending>``, that change how the stored rows of a key are merged."""


def set_option(options: Mapping[str, str], key: str, value: str) -> dict[str, str]:
    """Return the options with one set in its stored form; refuse fixed ones and unsupported table types."""
    if key in _KEYS_OF_SCHEMA:
        raise InvalidRequest(
            f"Option {key!r} cannot change after a table is created",
            subject=key,
            hint="create a new table with the keys, and write the rows to it",
        )
    changed = TableOptions.of({**options, key: value})
    if key == "type" and changed.table_type != TableOptions.of(options).table_type:
        check_new_table_type(changed)
    return {**options, key: to_stored_option(key, value)}


def check_option_changes(old: Mapping[str, str], new: Mapping[str, str], touched: Iterable[str]) -> None:
    """Refuse option changes that a table with snapshots cannot follow; `touched` are the keys set or removed."""
    before, after = TableOptions.of(old), TableOptions.of(new)
    for key in touched:
        name = canonical_key(key)
        if before.get(name) == after.get(name):
            continue
        option = OPTIONS.get(name)
        is_fixed = (option is not None and option.immutable) or name in _PATH_OPTIONS
        if is_fixed or _orders_files(name, before):
            raise _immutable_error(key, "once the table has a snapshot")
        if name == "bucket":
            _check_bucket(before, after, removes=key not in new)
        if name == "deletion-vectors.enabled" and not before.deletion_vectors_modifiable:
            raise _immutable_error(key, "once the table has a snapshot", "set 'deletion-vectors.modifiable' before")
        if name in _SWITCHES and (before.get(name) or "").strip().lower() == "true":
            raise _immutable_error(key, "from true to false")


def find_merge_changes(old: TableSchema, new: TableSchema, touched: Iterable[str]) -> list[str]:
    """Return the touched options that change how rows in files are merged; those of columns without rows do not."""
    before, after = TableOptions.of(old.options), TableOptions.of(new.options)
    if not old.primary_keys:
        mutable = {"deletion-vectors.enabled"}
        return [key for key in touched if canonical_key(key) in mutable and _differs(canonical_key(key), before, after)]
    hides = before.deletion_vectors_merge_on_read and not after.deletion_vectors_merge_on_read
    found = [key for key in touched if hides and canonical_key(key) == "deletion-vectors.merge-on-read"]
    names = [(key, canonical_key(key)) for key in touched]
    return found + [key for key, name in names if _is_merge_option(name, old) and _differs(name, before, after)]


def check_dynamic_changes(schema: TableSchema, options: TableOptions) -> None:
    """Refuse dynamic options by which stored rows would be read, or merged for good, in another way than stored."""
    stored = TableOptions.of(schema.options)
    for key in sorted({*stored.values, *options.values}):
        option = OPTIONS.get(key)
        is_fixed = option is not None and option.immutable and key not in (*_KEYS_OF_SCHEMA, "type")
        names_paths = bool(schema.partition_keys) and key in _PATH_OPTIONS
        merges = (
            key == "deletion-vectors.enabled"
            or _orders_files(key, stored)
            or (bool(schema.primary_keys) and _is_merge_option(key, schema))
        )
        if (is_fixed or names_paths or merges) and _differs(key, stored, options):
            raise InvalidRequest(
                f"Option {key!r} cannot change for one handle, because stored rows depend on it",
                subject=key,
                hint="change it with ALTER TABLE, or leave it out",
            )


def check_dynamic_branch(given: Mapping[str, str], branch: str) -> None:
    """Refuse a dynamic option that names another branch than that of the handle."""
    if given.get("branch", branch) != branch:
        hint = f"open the table under its name and $branch_{given['branch']}"
        raise InvalidRequest("Option 'branch' cannot change for one handle.", subject="branch", hint=hint)


def _orders_files(name: str, options: TableOptions) -> bool:
    """Return whether an option says how the files of a primary-key table are sorted."""
    return name == "clustering.columns" and options.pk_clustering_override


def _is_merge_option(name: str, schema: TableSchema) -> bool:
    columns, dot, ending = name.removeprefix("fields.").rpartition(".")
    if not name.startswith("fields.") or not dot:
        return name in _MERGE_OPTIONS
    has_rows = ending == "sequence-group" or any(column in schema.fields_by_name for column in parse_list(columns))
    return name in _MERGE_OPTIONS or (ending in _MERGE_ENDINGS and has_rows)


def _differs(name: str, before: TableOptions, after: TableOptions) -> bool:
    option = OPTIONS.get(name)
    default = "" if option is None or option.default is None else option.default
    old, new = ((options.get(name) or default).strip() for options in (before, after))
    if name == "changelog-producer" and {old.lower(), new.lower()} <= {"none", "input"}:
        return False  # files are merged alike, and `input` concerns new rows only
    return old.lower() != new.lower() if option is not None and option.kind is not Kind.NAMES else old != new


def _check_bucket(before: TableOptions, after: TableOptions, removes: bool) -> None:
    if removes:
        raise _immutable_error("bucket", "by removing it")
    if -1 in (before.bucket, after.bucket):
        raise _immutable_error("bucket", "from or to -1", "copy the rows into a new table with the other value")
    if before.bucket == POSTPONED:
        raise _immutable_error("bucket", "from -2, because postponed rows would stay hidden", "use a new table")


def _immutable_error(key: str, when: str, hint: str | None = None) -> InvalidRequest:
    return InvalidRequest(f"Option {key!r} cannot change {when}", subject=key, hint=hint)


def rename_references(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return a copy of the options with a column renamed in values and keys, such as ``fields.<column>.…``."""
    return {_rename_in_key(k, old, new): _rename_in_value(k, v, old, new) for k, v in options.items()}


def _rename_in_key(key: str, old: str, new: str) -> str:
    if key.startswith("fields."):
        columns, dot, ending = key.removeprefix("fields.").rpartition(".")
        return f"fields.{_rename_in_list(columns, old, new)}.{ending}" if dot else key
    if key.startswith("file-index."):
        kind, _, rest = key.removeprefix("file-index.").partition(".")
        column, dot, ending = rest.rpartition(".")
        return f"file-index.{kind}.{_rename_in_list(column, old, new)}.{ending}" if dot else key
    return key


def _rename_in_value(key: str, value: str, old: str, new: str) -> str:
    option = OPTIONS.get(canonical_key(key))
    lists = option is not None and option.kind is Kind.NAMES and not key.startswith("data-file.")
    groups = key.startswith("fields.") and key.endswith(".sequence-group")
    indexes = key.startswith("file-index.") and key.endswith(".columns")
    if lists or groups or indexes or key in _COLUMN_OPTIONS:
        return _rename_in_list(value, old, new)
    return value


def _rename_in_list(names: str, old: str, new: str) -> str:
    """Replace one name of a comma list, ``old[key]`` of map indexes too; other lists keep their text."""
    if old not in (name.partition("[")[0] for name in parse_list(names)):
        return names
    parts = (name.partition("[") for name in parse_list(names))
    return ",".join((new if head == old else head) + bracket + tail for head, bracket, tail in parts)
