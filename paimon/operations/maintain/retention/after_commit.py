"""What a commit does besides: automatic tags, and what has expired.

Law: in Java's order: due tags, tags and partitions and consumers that have had their time, and at last snapshots and
changelogs. A table that is `write-only` leaves all this to others. What fails here never makes the commit a failure:
the answer says what it was. Source: `TableCommitImpl.maintain`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.retention.expiry import keeps_changelogs
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.maintain.refs.auto_tags import create_batch_tag, create_due_tags
from paimon.operations.maintain.refs.consumers import expire_consumers
from paimon.operations.maintain.refs.tags import expire_tags
from paimon.operations.maintain.retention.expire_changelogs import expire_changelogs
from paimon.operations.maintain.retention.expire_partitions import expire_partitions_in_turn
from paimon.operations.maintain.retention.expire_snapshots import expire_snapshots
from paimon.ports.engine import Engine


@frozen(eq=False)
class Upkeep:
    """What was done after a commit; `failure` is what kept the rest from being done."""

    tags: tuple[str, ...] = ()
    expired_snapshots: int = 0
    expired_changelogs: int = 0
    failure: PaimonError | None = None


def after_commit(engine: Engine, table: TableDefinition, snapshot_id: int, identifier: int) -> Upkeep:
    """The upkeep that follows a commit of this identifier; `snapshot_id` is the last snapshot that it made."""
    if table.options.write_only:
        return Upkeep()
    try:
        return _upkeep(engine, table, snapshot_id, identifier)
    except PaimonError as error:
        engine.observer.count("upkeep.failed", 1)
        return Upkeep(failure=error)


def _upkeep(engine: Engine, table: TableDefinition, snapshot_id: int, identifier: int) -> Upkeep:
    options = table.options
    made = create_due_tags(engine, table)
    if identifier == BATCH_COMMIT_IDENTIFIER:
        made += create_batch_tag(engine, table, snapshot_id)
    if options.tag_time_expire_enabled:
        expire_tags(engine, table)
    expire_partitions_in_turn(engine, table, snapshot_id)
    if options.consumer_expiration_millis is not None:
        expire_consumers(engine, table.paths, engine.clock.now_millis() - options.consumer_expiration_millis)
    snapshots = expire_snapshots(engine, table, known_latest=snapshot_id).snapshots
    changelogs = expire_changelogs(engine, table).snapshots if keeps_changelogs(options) else 0
    return Upkeep(tuple(made), snapshots, changelogs)
