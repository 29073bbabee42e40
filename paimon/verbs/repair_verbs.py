"""The verbs that repair a table after files were lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from paimon.domain.markup import format_count
from paimon.operations.maintenance.missing_files import RemovedManifests, RepairedEarliestSnapshot
from paimon.verbs.verb import Column, Command, Confirmation, Flag, Parameter, Rows, Type, Verb, VerbTable, keep_rows


def remove_missing_files(table: VerbTable, dry_run: bool) -> pa.Table:
    """Drop the data files that do not exist from the newest state."""
    return table.maintain.remove_missing_files(dry_run=dry_run)


def remove_missing_manifests(table: VerbTable, dry_run: bool) -> RemovedManifests:
    """Drop the manifests that do not exist from the newest state."""
    return table.maintain.remove_missing_manifests(dry_run=dry_run)


def repair_earliest(table: VerbTable, snapshot_id: int) -> RepairedEarliestSnapshot:
    """Let the history begin at a snapshot that follows a gap."""
    return table.maintain.repair_earliest_snapshot(snapshot_id)


def _ask_files(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    if given["dry_run"]:
        return None
    lost = table.maintain.remove_missing_files()
    rows, files = sum(lost["rows"].to_pylist()), format_count(lost.num_rows, "file")
    return f"Drop {files} of {table.name} with {format_count(rows, 'row')}?" if lost.num_rows else None


def _ask_manifests(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    if given["dry_run"]:
        return None
    lost = table.maintain.remove_missing_manifests()
    if not lost.names:
        return None
    manifests, rows = format_count(len(lost.names), "manifest"), lost.lost_rows
    if rows < 0:
        return f"Drop {manifests} of {table.name}, so that {format_count(-rows, 'deleted row')} can be read again?"
    return f"Drop {manifests} of {table.name} with {format_count(rows, 'row')}?"


def _to_manifest_rows(done: RemovedManifests) -> Rows:
    return [{"manifest": name, "lost_rows": done.lost_rows, "snapshot": done.snapshot_id} for name in done.names]


def _to_earliest_rows(done: RepairedEarliestSnapshot) -> Rows:
    return [{"previous_earliest_snapshot_id": done.previous, "current_earliest_snapshot_id": done.current}]


_DRY_RUN = Parameter(
    "dry_run", Type.BOOLEAN, "only list what is lost",
    flag=Flag("--drop", help="drop what is lost (default: only list it)", value=False, otherwise=True),
)  # fmt: skip
REMOVE_UNEXISTING_FILES = Verb(
    "remove_unexisting_files", "drop the data files that do not exist from the newest state of a table",
    remove_missing_files, keep_rows,
    (_DRY_RUN,),
    (
        Column("path", pa.string()),
        Column("partition", pa.string()),
        Column("bucket", pa.int32()),
        Column("rows", pa.int64(), "records"),
    ),
    Command(
        "table drop-lost-files", "lake/d.db/orders",
        "list the data files that do not exist, or drop them from the newest state: their rows are lost",
        confirmation=Confirmation.ALWAYS, question=_ask_files, takes_options=False,
    ),
    method="Maintain.remove_missing_files",
)  # fmt: skip
REMOVE_UNEXISTING_MANIFESTS = Verb(
    "remove_unexisting_manifests", "drop the manifests that do not exist from the newest state of a table",
    remove_missing_manifests, _to_manifest_rows,
    (_DRY_RUN,),
    (Column("manifest", pa.string()), Column("lost_rows", pa.int64()), Column("snapshot", pa.int64())),
    Command(
        "table drop-lost-manifests", "lake/d.db/orders",
        "list the manifests that do not exist, or drop them from the newest state: the rows of their files are lost",
        confirmation=Confirmation.ALWAYS, question=_ask_manifests, takes_options=False,
    ),
    method="Maintain.remove_missing_manifests",
)  # fmt: skip
REPAIR_EARLIEST_SNAPSHOT = Verb(
    "repair_earliest_snapshot", "let the history of a table begin at a snapshot that follows a gap", repair_earliest,
    _to_earliest_rows,
    (
        Parameter(
            "snapshot_id", Type.INTEGER, "the first snapshot after the gap", required=True,
            flag=Flag("--snapshot", "ID"),
        ),
    ),
    (Column("previous_earliest_snapshot_id", pa.int64()), Column("current_earliest_snapshot_id", pa.int64())),
    Command(
        "table repair-earliest", "lake/d.db/orders --snapshot 1",
        "let the history begin at a snapshot that follows missing ones", takes_options=False,
    ),
    method="Maintain.repair_earliest_snapshot",
)  # fmt: skip
REPAIR_VERBS = (REMOVE_UNEXISTING_FILES, REMOVE_UNEXISTING_MANIFESTS, REPAIR_EARLIEST_SNAPSHOT)
