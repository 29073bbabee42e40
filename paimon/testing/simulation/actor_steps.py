"""One step of each role in the simulation, made of the public methods of a table.

Invariant: an error is passed on unchanged, except that a tag exists or does not exist, which other actors may cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Protocol

import pyarrow as pa

from paimon.domain.errors import AlreadyExists, NotFound, PaimonError
from paimon.domain.schema.changes import AddColumn
from paimon.domain.types.data_types import IntType
from paimon.scan import Scan
from paimon.table import Table
from paimon.testing.simulation.actions import Observation, TagChange, WorkResult
from paimon.testing.simulation.simulation_plan import ORPHAN_MIN_AGE_MILLIS, Role


class Worker(Protocol):
    """The actor that takes the step."""

    @property
    def name(self) -> str:
        """The name of the actor, which is its commit user."""
        ...

    @property
    def number(self) -> int:
        """The position of the actor in the plan, from 0."""
        ...

    @property
    def random(self) -> Random:
        """The source of the choices of this actor."""
        ...

    def build_rows(self, number: int) -> pa.Table:
        """Return the rows of the commit of this number, with row kinds in the column `kind`."""
        ...


ActorStep = Callable[[Table, Worker, int], WorkResult]
"""One step of an actor on a newly opened table, with the number of the step."""


def observe_state(scan: Scan, tag_name: str | None = None) -> Observation:
    """Read the state that a scan of the columns `id` and `version` returns.

    Parameters
    ----------
    scan : Scan
        A scan of the two columns.
    tag_name : str, optional
        The tag that the scan reads.

    Returns
    -------
    Observation
        The snapshot of the scan and the versions by key.
    """
    snapshot = scan.plan().snapshot
    rows = scan.to_arrow()
    versions = dict(zip(rows["id"].to_pylist(), rows["version"].to_pylist(), strict=True))
    return Observation(0 if snapshot is None else snapshot.id, versions, rows.num_rows - len(versions), tag_name)


def describe_commit(snapshot_ids: tuple[int, ...], lost: PaimonError | None) -> str:
    """Return the line of the trace for a commit."""
    return f"snapshots {snapshot_ids}{f', lost compaction: {lost}' if lost else ''}"


def _write_rows(table: Table, actor: Worker, number: int) -> WorkResult:
    result = table.write(actor.build_rows(number), kind_column="kind", commit_user=actor.name, identifier=number)
    return WorkResult(describe_commit(result.snapshot_ids, result.lost_compaction))


def _overwrite_table(table: Table, actor: Worker, number: int) -> WorkResult:
    rows = actor.build_rows(number).drop_columns(["kind"])
    result = table.overwrite(rows, {}, commit_user=f"{actor.name}.{number}")
    return WorkResult(f"snapshots {result.snapshot_ids}")


def _compact_table(table: Table, actor: Worker, number: int) -> WorkResult:
    full = actor.random.random() < 0.5
    result = table.compact(full=full)
    return WorkResult(f"{'full, ' if full else ''}snapshots {result.snapshot_ids}")


def _rescale_table(table: Table, actor: Worker, number: int) -> WorkResult:
    buckets = actor.random.randint(1, 3)
    result = table.rescale(buckets)
    return WorkResult(f"to {buckets} buckets, snapshots {result.snapshot_ids}")


def _expire_snapshots(table: Table, actor: Worker, number: int) -> WorkResult:
    retain_max = actor.random.randint(1, 3)
    now = table.engine.clock.now_millis()
    expired = table.maintain.expire_snapshots(retain_min=1, retain_max=retain_max, older_than=now)
    if table.options.get("changelog.num-retained.max"):
        table.maintain.expire_changelogs(retain_min=1, retain_max=retain_max, older_than=now)
    return WorkResult(f"{expired.snapshots} snapshots, {expired.files} files")


def _remove_orphan_files(table: Table, actor: Worker, number: int) -> WorkResult:
    removed = table.maintain.remove_orphans(timedelta(milliseconds=ORPHAN_MIN_AGE_MILLIS), dry_run=False)
    return WorkResult(f"{removed.num_rows} files {removed['path'].to_pylist()[:3]}")


def _change_tag(table: Table, actor: Worker, number: int) -> WorkResult:
    previous, name = f"{actor.name}-{number - 1}", f"{actor.name}-{number}"
    choice = actor.random.random()
    if number > 1 and choice < 0.4:
        try:
            files = table.tags.delete(previous)
        except NotFound as error:
            return WorkResult(str(error))
        return WorkResult(f"deleted {previous}, {files} files", tag_change=TagChange(previous))
    try:
        tag = table.tags.replace(previous) if number > 1 and choice < 0.6 else table.tags.create(name)
    except (NotFound, AlreadyExists) as error:
        return WorkResult(str(error))
    return WorkResult(f"{tag.name} names snapshot {tag.snapshot.id}", tag_change=TagChange(tag.name, tag.snapshot.id))


def _add_column(table: Table, actor: Worker, number: int) -> WorkResult:
    column = f"c{actor.number}_{number}"
    table.alter(AddColumn(column, IntType()))
    return WorkResult(f"column {column}")


def _read_state(table: Table, actor: Worker, number: int) -> WorkResult:
    tag_names = list(table.tags) if actor.random.random() < 0.3 else []
    tag_name = actor.random.choice(tag_names) if tag_names else None
    scan = table.scan(["id", "version"]) if tag_name is None else table.scan(["id", "version"], tag=tag_name)
    state = observe_state(scan, tag_name)
    source = f"snapshot {state.snapshot_id}{f' of {tag_name}' if tag_name else ''}"
    return WorkResult(f"{source} {sorted(state.versions.items())[:12]}", state)


STEP_OF_ROLE: Mapping[Role, ActorStep] = {
    Role.WRITER: _write_rows,
    Role.COMPACTOR: _compact_table,
    Role.RESCALER: _rescale_table,
    Role.EXPIRER: _expire_snapshots,
    Role.CLEANER: _remove_orphan_files,
    Role.TAGGER: _change_tag,
    Role.SCHEMA_CHANGER: _add_column,
    Role.READER: _read_state,
    Role.OVERWRITER: _overwrite_table,
}
"""The step of each role; a streaming writer has its own loop, because it keeps one writer for several commits."""
