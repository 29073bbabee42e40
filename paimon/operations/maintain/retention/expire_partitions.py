"""Dropping partitions, and those that have had their time.

Law: one OVERWRITE commit takes the files of the partitions out of the table; the files themselves go with the
snapshots that have them. Source: `PartitionExpire`, `FileStoreCommitImpl.dropPartitions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import evolve

from paimon.domain.commit.overwrite import partitions_of_spec
from paimon.domain.errors import InvalidRequest
from paimon.domain.maintenance.retention.partitions import PartitionAge, PartitionLife, expired_partitions
from paimon.domain.partition.text import plain_text
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.commit import CommitRequest, commit
from paimon.operations.maintain.zones import local_millis
from paimon.operations.read.manifests import data_manifests, live_columns
from paimon.operations.read.snapshots import find_snapshot, latest_snapshot
from paimon.ports.engine import Engine

_UNKNOWN = np.iinfo(np.int64).min


def expire_partitions(
    engine: Engine, table: TableDefinition, commit_user: str, life: PartitionLife | None = None
) -> list[Mapping[str, str | None]]:
    """Drop the partitions that have had their time, by the table's options or as `life` says; answers their values.

    Raises
    ------
    InvalidRequest
        The table has no partitions, or no option says how long they live.
    """
    life = life or PartitionLife.of(table.options)
    names = table.schema.partition_keys
    if not names:
        raise InvalidRequest(f"table {table.identifier} has no partitions", subject=table.identifier)
    if life is None:
        raise InvalidRequest(
            "nothing says when partitions expire", subject="partition.expiration-time", hint="set it, or give an age"
        )
    now = local_millis(engine, engine.clock.now_millis())
    gone = expired_partitions(_ages(engine, table), names, life, now)
    size = table.options.partition_expiration_batch_size or len(gone)
    for start in range(0, len(gone), max(1, size)):
        _drop(engine, table, commit_user, (p.row for p in gone[start : start + size]))
    return [dict(zip(names, p.values, strict=True)) for p in gone]


def drop_partitions(
    engine: Engine, table: TableDefinition, commit_user: str, specs: Sequence[Mapping[str, object]]
) -> tuple[int, ...]:
    """Drop the partitions that match one of the specs (some or all of the partition columns), in one commit.

    Returns
    -------
    tuple of int
        The snapshot made; none where no partition matches.
    """
    if not specs or not all(specs):
        raise InvalidRequest("no partition is named", subject="partitions", hint="overwrite or truncate drops all")
    filters = [partitions_of_spec(table, spec) for spec in specs]
    found = [p.row for p in _ages(engine, table) if any(meant(p.row) for meant in filters)]
    return _drop(engine, table, commit_user, found) if found else ()


def expire_partitions_in_turn(engine: Engine, table: TableDefinition, snapshot_id: int) -> None:
    """Expire partitions where the commit of this snapshot is the first since the last time to check.

    Nobody keeps a clock between commits: the times to check are the multiples of the interval since the epoch.
    """
    interval = table.options.partition_expiration_check_interval_millis
    if PartitionLife.of(table.options) is None or not table.schema.partition_keys:
        return
    this, before = (find_snapshot(engine, table.paths, i) for i in (snapshot_id, snapshot_id - 1))
    if this is None or before is None:
        return
    if interval <= 0 or this.time_millis // interval != before.time_millis // interval:
        expire_partitions(engine, table, engine.ids.uuid())


def _drop(engine: Engine, table: TableDefinition, commit_user: str, rows: Iterable[bytes]) -> tuple[int, ...]:
    return commit(engine, table, CommitRequest((), commit_user, partitions=frozenset(rows))).snapshot_ids


def _ages(engine: Engine, table: TableDefinition) -> list[PartitionAge]:
    snapshot = latest_snapshot(engine, table.paths)
    if snapshot is None:
        return []
    live = live_columns(engine, table, data_manifests(engine, table, snapshot))
    newest = np.full(len(live.partition_rows), _UNKNOWN)
    np.maximum.at(newest, live.partitions, live.number("_CREATION_TIME", missing=_UNKNOWN))
    present = np.unique(live.partitions).tolist()
    fields = table.schema.partition_fields
    ages = []
    for position in present:
        row = live.partition_rows[position]
        values = deserialize(row, [f.type for f in fields])
        texts = tuple(None if v is None else plain_text(v, f.type) for v, f in zip(values, fields, strict=True))
        updated = int(newest[position])
        ages.append(PartitionAge(row, texts, None if updated == _UNKNOWN else updated))
    return ages


def life_of(table: TableDefinition, millis: int | None, at_most: int | None) -> PartitionLife | None:
    """The table's rules, with another age or number; None where nothing says an age."""
    options = {} if millis is None else {"partition.expiration-time": f"{millis} ms"}
    life = PartitionLife.of(table.options.with_values(options))
    return life if life is None or at_most is None else evolve(life, at_most=at_most)
