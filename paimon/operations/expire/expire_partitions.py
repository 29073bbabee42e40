"""Drop partitions, and expire those that are older than a configured time.

Invariant: one OVERWRITE commit removes the files of the partitions from the table; the files are deleted when the
snapshots that reference them expire.

Source: `PartitionExpire`, `FileStoreCommitImpl.dropPartitions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import evolve

from paimon.domain.commit.overwrite import partitions_of_spec
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.maintenance.partition_expiry import PartitionAge, PartitionRetention, expired_partitions
from paimon.domain.partition.partition_text import format_plain_text
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.commit import commit
from paimon.operations.metadata.manifests import read_data_manifests, read_live_columns
from paimon.operations.metadata.snapshots import find_snapshot, latest_snapshot
from paimon.operations.metadata.storage_time import to_local_millis
from paimon.operations.table_context import TableContext

_UNKNOWN = np.iinfo(np.int64).min


def expire_partitions(
    context: TableContext, commit_user: str, retention: PartitionRetention | None = None
) -> list[Mapping[str, str | None]]:
    """Drop the expired partitions, and return their values as text; a None value is the default partition.

    By default the options of the table define when partitions expire. Raises `InvalidRequest` if the table has no
    partitions, or nothing defines when they expire.
    """
    retention = retention or PartitionRetention.of(context.options)
    names = context.schema.partition_keys
    if not names:
        raise InvalidRequest(f"Table {context.table.table_name!r} has no partitions.", subject=context.table.table_name)
    if retention is None:
        raise InvalidRequest(
            f"Table {context.table.table_name!r} does not define when partitions expire.",
            subject="partition.expiration-time",
            hint="set this option, or give an age",
        )
    expired = find_expired_partitions(context, retention)
    size = context.options.partition_expiration_batch_size or len(expired)
    for start in range(0, len(expired), max(1, size)):
        _commit_drop(context, commit_user, (p.row for p in expired[start : start + size]))
    return [dict(zip(names, p.values, strict=True)) for p in expired]


def find_expired_partitions(context: TableContext, retention: PartitionRetention) -> list[PartitionAge]:
    """Return the partitions that `expire_partitions` would drop by some rules; nothing is changed."""
    now = to_local_millis(context.engine, context.engine.clock.now_millis())
    return expired_partitions(_read_ages(context), context.schema.partition_keys, retention, now)


def drop_partitions(
    context: TableContext, commit_user: str, specs: Sequence[Mapping[str, object]], *, missing_ok: bool = True
) -> tuple[int, ...]:
    """Drop the partitions that match one of the specs, in one commit, and return its snapshot id.

    The result is empty if no partition matches. A spec gives values of some or all partition columns. Without
    `missing_ok`, a spec without a match is `NotFound`.
    """
    if not specs or not all(specs):
        raise InvalidRequest("No partition is given.", subject="partitions", hint="to replace all rows, use overwrite")
    missing_hint = None if missing_ok else "SHOW PARTITIONS lists all; DROP IF EXISTS takes any"
    found = find_partitions(context, specs, missing_hint)
    return _commit_drop(context, commit_user, found) if found else ()


def find_partitions(
    context: TableContext, specs: Sequence[Mapping[str, object]], missing_hint: str | None = None
) -> list[bytes]:
    """Return the live partitions that match one of the specs; with a hint, a spec without a match is `NotFound`."""
    filters = [partitions_of_spec(context.table, spec) for spec in specs]
    rows = [p.row for p in _read_ages(context)]
    for spec, matches in zip(specs, filters, strict=True):
        if missing_hint is not None and not any(map(matches, rows)):
            name = "/".join(f"{column}={value}" for column, value in spec.items())
            raise NotFound("partition", name, hint=missing_hint)
    return [row for row in rows if any(matches(row) for matches in filters)]


def expire_partitions_if_due(context: TableContext, snapshot_id: int) -> None:
    """Expire partitions with a due commit: check times are multiples of the interval since the epoch."""
    interval = context.options.partition_expiration_check_interval_millis
    if PartitionRetention.of(context.options) is None or not context.schema.partition_keys:
        return
    this, before = (find_snapshot(context, i) for i in (snapshot_id, snapshot_id - 1))
    if this is None or before is None:
        return
    if interval <= 0 or this.time_millis // interval != before.time_millis // interval:
        expire_partitions(context, context.engine.ids.uuid())


def _commit_drop(context: TableContext, commit_user: str, rows: Iterable[bytes]) -> tuple[int, ...]:
    return commit(context, CommitRequest((), commit_user, partitions=frozenset(rows))).snapshot_ids


def _read_ages(context: TableContext) -> list[PartitionAge]:
    snapshot = latest_snapshot(context)
    if snapshot is None:
        return []
    live = read_live_columns(context, read_data_manifests(context, snapshot))
    newest = np.full(len(live.partition_rows), _UNKNOWN)
    np.maximum.at(newest, live.partitions, live.number("_CREATION_TIME", missing=_UNKNOWN))
    present = np.unique(live.partitions).tolist()
    fields = context.schema.partition_fields
    ages = []
    for position in present:
        row = live.partition_rows[position]
        values = deserialize(row, [f.type for f in fields])
        texts = tuple(None if v is None else format_plain_text(v, f.type) for v, f in zip(values, fields, strict=True))
        updated = int(newest[position])
        ages.append(PartitionAge(row, texts, None if updated == _UNKNOWN else updated))
    return ages


def to_partition_retention(
    table: TableDefinition, millis: int | None, at_most: int | None
) -> PartitionRetention | None:
    """Return the retention with another age or limit per call; None without any age."""
    options = {} if millis is None else {"partition.expiration-time": f"{millis} ms"}
    retention = PartitionRetention.of(table.options.with_values(options))
    return retention if retention is None or at_most is None else evolve(retention, at_most=at_most)
