"""The verbs of tags, branches and consumers, and the rollback to a state that they or a snapshot keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.errors import NotFound, did_you_mean
from paimon.domain.partition.partition_text import format_utc
from paimon.domain.snapshot.snapshot import Tag
from paimon.operations.refs.rollback import RolledBack
from paimon.verbs.arguments import Time
from paimon.verbs.expiry_verbs import DELETED, EXPIRE_CONSUMERS, to_consumer_rows
from paimon.verbs.verb import Column, Command, Confirmation, Flag, Parameter, Rows, Type, Verb, VerbTable, keep_rows


def list_tags(table: VerbTable, prefix: str) -> list[Tag]:
    """List the tags whose names begin with a prefix."""
    return [tag for name, tag in table.tags.items() if name.startswith(prefix)]


def get_tag(table: VerbTable, name: str) -> list[Tag]:
    """Return one tag."""
    tags = table.tags
    if name not in tags:
        raise NotFound("tag", name, hint=did_you_mean(name, list(tags)) or "the table has no tags")
    return [tags[name]]


def create_tag(
    table: VerbTable,
    name: str,
    snapshot: int | None,
    exist_ok: bool,
    since: Time,
    watermark: int | None,
    time_retained: str | None,
) -> list[Tag]:
    """Create a tag of a snapshot, by default the latest."""
    return [
        table.tags.create(
            name, snapshot, since=since, watermark=watermark, time_retained=time_retained, exist_ok=exist_ok
        )
    ]


def create_tag_from_timestamp(table: VerbTable, name: str, since: Time, time_retained: str | None) -> list[Tag]:
    """Create a tag of the first snapshot at or after a time."""
    return [table.tags.create(name, since=since, time_retained=time_retained)]


def create_tag_from_watermark(table: VerbTable, name: str, watermark: int, time_retained: str | None) -> list[Tag]:
    """Create a tag of the first snapshot with at least a watermark."""
    return [table.tags.create(name, watermark=watermark, time_retained=time_retained)]


def replace_tag(table: VerbTable, name: str, snapshot: int | None, time_retained: str | None) -> list[Tag]:
    """Make a tag name another snapshot."""
    return [table.tags.replace(name, snapshot, time_retained=time_retained)]


def rename_tag(table: VerbTable, name: str, to: str) -> list[Tag]:
    """Give a tag another name."""
    return [table.tags.rename(name, to)]


def delete_tags(table: VerbTable, names: Sequence[str]) -> Rows:
    """Delete tags, and the files that only they need."""
    return [{"tag": name, "files": table.tags.delete(name)} for name in names]


def list_branches(table: VerbTable) -> Rows:
    """List all branches except main, with their latest snapshots."""
    return [
        {"branch": name, "snapshot": at.id if at else None, "records": at.total_record_count if at else None}
        for name, at in table.branches.items()
    ]


def create_branch(table: VerbTable, name: str, tag: str | None) -> Rows:
    """Create a branch, from a tag or without rows."""
    table.branches.create(name, tag)
    at = table.branches[name]
    return [{"branch": name, "snapshot": at.id if at else None}]


def rename_branch(table: VerbTable, name: str, to: str) -> Rows:
    """Give a branch another name."""
    table.branches.rename(name, to)
    return [{"branch": to}]


def delete_branch(table: VerbTable, name: str) -> Rows:
    """Delete a branch."""
    table.branches.delete(name)
    return [{"branch": name, "deleted": True}]


def fast_forward(table: VerbTable, name: str) -> Rows:
    """Continue the table with the snapshots of a branch."""
    return [{"branch": name, "snapshot": table.branches.fast_forward(name)}]


def list_consumers(table: VerbTable) -> Rows:
    """List the consumers with the snapshot that each reads next."""
    return [{"consumer": name, "next_snapshot": at} for name, at in table.consumers.items()]


def reset_consumer(table: VerbTable, name: str, next_snapshot: int | None) -> Rows:
    """Set the next snapshot of a consumer, or delete the consumer."""
    if next_snapshot is None:
        table.consumers.delete(name)
    else:
        table.consumers.reset(name, next_snapshot)
    return [{"consumer": name, "next_snapshot": next_snapshot}]


def delete_consumer(table: VerbTable, name: str) -> list[str]:
    """Delete a consumer; snapshots that it had not read can then expire."""
    table.consumers.delete(name)
    return [name]


def clear_consumers(table: VerbTable, including: str, excluding: str | None) -> list[str]:
    """Delete the consumers whose names match."""
    return table.consumers.clear(including, excluding)


def rollback(
    table: VerbTable,
    version: str | None,
    snapshot: int | None,
    tag: str | None,
    timestamp: Time,
    watermark: int | None,
) -> RolledBack:
    """Roll back to a snapshot id, a tag or a time; a version of digits is a snapshot unless a tag has this name."""
    if version is not None:
        is_tag = version in table.tags or not version.isdecimal()
        snapshot, tag = (snapshot, version) if is_tag else (int(version), tag)
    return table.maintain.rollback_to(snapshot, tag=tag, timestamp=timestamp, watermark=watermark)


def rollback_to_timestamp(table: VerbTable, timestamp: Time) -> RolledBack:
    """Roll back to the last snapshot at or before a time."""
    return table.maintain.rollback_to(timestamp=timestamp)


def rollback_to_watermark(table: VerbTable, watermark: int) -> RolledBack:
    """Roll back to the last snapshot whose watermark is at most a time."""
    return table.maintain.rollback_to(watermark=watermark)


def create_due_tags(table: VerbTable) -> Rows:
    """Create the tags that are due."""
    return [{"tag": name} for name in table.tags.create_due()]


def _ask_fast_forward(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    latest = table.snapshot()
    if latest is None:
        return None
    return (
        f"{table.name} is at snapshot {latest.id}. Fast-forward to branch {given['name']}? Later snapshots, "
        "changelogs and tags that are not in the branch are deleted, and this cannot be undone."
    )


def _ask_rollback(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    latest = table.snapshot()
    if latest is None:
        return None
    is_snapshot = given["snapshot"] is not None
    target = (
        f"snapshot {given['snapshot']}"
        if is_snapshot
        else given["tag"] or given["timestamp"] or f"watermark {given['watermark']}"
    )
    return (
        f"{table.name} is at snapshot {latest.id}. Roll back to {target}? Later snapshots, changelogs and tags are "
        "deleted, and this cannot be undone."
    )


def _name_of(noun: str, java: str) -> Parameter:
    flag = Flag(metavar="NAME", help=f"name of the {noun}", is_positional=True)
    return Parameter("name", Type.TEXT, f"the name of the {noun}", required=True, java=java, flag=flag)


def _new_name_of(noun: str) -> Parameter:
    flag = Flag(metavar="NEW", help=f"new name of the {noun}", is_positional=True)
    return Parameter("to", Type.TEXT, "the new name", required=True, java=f"target_{noun}", flag=flag)


def _to_tag_rows(tags: Sequence[Tag]) -> Rows:
    return [
        {
            "tag": tag.name,
            "snapshot": tag.snapshot.id,
            "time": format_utc(tag.snapshot.time_millis),
            "records": tag.snapshot.total_record_count,
            "created": tag.create_time,
            "lives_seconds": tag.retained_seconds,
        }
        for tag in tags
    ]


def _to_rollback_rows(done: RolledBack) -> Rows:
    counts = {"deleted_snapshots": done.snapshots, "changelogs": done.changelogs}
    return [{"snapshot": done.snapshot_id, **counts, "tags": ", ".join(done.tags)}]


_RETAIN = "retention time of the tag, such as '30 d' (default: the table option tag.default-time-retained, or no limit)"
_TAG = _name_of("tag", java="tag")
_TAG_SNAPSHOT = Parameter(
    "snapshot", Type.INTEGER, "the id of a snapshot; by default the latest", java="snapshot_id", spark="snapshot",
    flag=Flag("--snapshot-id --snapshot", "ID", "snapshot (default: the latest)"),
)  # fmt: skip
_RETAINED = Parameter(
    "time_retained", Type.TEXT, "the time to live of the tag, such as '30 d'", flag=Flag("--retain", "AGE", _RETAIN),
)  # fmt: skip
_BRANCH = _name_of("branch", java="branch")
_CONSUMER = _name_of("consumer", java="consumer_id")
_TAG_COLUMNS = (
    Column("tag", pa.string()),
    Column("snapshot", pa.int64()),
    Column("time", pa.string(), in_call=False),
    Column("records", pa.int64(), in_call=False),
    Column("created", pa.timestamp("ms"), in_call=False),
    Column("lives_seconds", pa.float64(), in_call=False),
)  # fmt: skip
TAG_VERBS = (
    Verb(
        "list_tags", "list the tags of a table", list_tags, _to_tag_rows,
        (
            Parameter(
                "prefix", Type.TEXT, "only tags whose names begin so", default="", in_call=False,
                flag=Flag("-p --prefix", "TEXT"),
            ),
        ),
        _TAG_COLUMNS, Command("tag list", "lake/default.db/orders --prefix year", heading="tags of {table}"),
        in_call=False,
    ),
    Verb(
        "get_tag", "print a tag", get_tag, _to_tag_rows,
        (_TAG,), _TAG_COLUMNS, Command("tag get", "lake/default.db/orders year-end"), in_call=False,
    ),
    Verb(
        "create_tag", "name a snapshot, which then does not expire", create_tag, _to_tag_rows,
        (
            _TAG,
            _TAG_SNAPSHOT,
            Parameter(
                "exist_ok", Type.BOOLEAN, "succeed if it exists already", in_call=False,
                flag=Flag("-i --ignore-if-exists"),
            ),
            Parameter(
                "since", Type.TIME, "take the first snapshot at or after this time instead", in_call=False,
                flag=Flag(metavar="TIME"),
            ),
            Parameter(
                "watermark", Type.INTEGER, "take the first snapshot with this watermark or a later one instead",
                in_call=False, flag=Flag(metavar="MILLIS"),
            ),
            _RETAINED,
        ),
        _TAG_COLUMNS,
        Command(
            "tag create", "lake/default.db/orders year-end --snapshot 12",
            "create a tag of a snapshot, which then does not expire",
        ),
        method="Tags.create",
    ),
    Verb(
        "create_tag_from_timestamp", "create a tag of the first snapshot at or after a time",
        create_tag_from_timestamp, _to_tag_rows,
        (_TAG, Parameter("since", Type.TIME, "the time", required=True, java="timestamp"), _RETAINED), _TAG_COLUMNS,
    ),
    Verb(
        "create_tag_from_watermark", "create a tag of the first snapshot with at least a watermark",
        create_tag_from_watermark, _to_tag_rows,
        (_TAG, Parameter("watermark", Type.INTEGER, "epoch milliseconds", required=True), _RETAINED), _TAG_COLUMNS,
    ),
    Verb(
        "replace_tag", "make a tag name another snapshot", replace_tag, _to_tag_rows,
        (_TAG, _TAG_SNAPSHOT, _RETAINED), _TAG_COLUMNS,
        Command(
            "tag replace", "lake/default.db/orders year-end --snapshot 12",
            "move a tag to another snapshot, with a new retention time",
        ),
        method="Tags.replace",
    ),
    Verb(
        "rename_tag", "give a tag another name", rename_tag, _to_tag_rows,
        (_TAG, _new_name_of("tag")), _TAG_COLUMNS,
        Command("tag rename", "lake/default.db/orders year-end 2026", "rename a tag"), method="Tags.rename",
    ),
    Verb(
        "trigger_tag_automatic_creation", "create the tags that are due by the options of the table", create_due_tags,
        keep_rows, (), (Column("tag", pa.string()),),
        Command(
            "tag create-due", "lake/default.db/orders",
            "create the tags that are due by the options tag.automatic-creation and tag.creation-*",
        ),
        method="Tags.create_due",
    ),
    Verb(
        "delete_tag", "delete tags, separated by commas, and the files that only they need", delete_tags, keep_rows,
        (
            Parameter(
                "names", Type.NAMES, "the name of the tag", required=True, java="tag", in_method=False,
                flag=Flag(metavar="NAME", help="name of the tag", is_positional=True),
            ),
        ),
        (Column("tag", pa.string()), Column("files", pa.int64(), "files deleted")),
        Command(
            "tag delete", "lake/default.db/orders year-end", "delete a tag, and the files that only it references",
        ),
    ),
)  # fmt: skip
BRANCH_VERBS = (
    Verb(
        "list_branches", "list all branches except main", list_branches, keep_rows,
        (),
        (Column("branch", pa.string()), Column("snapshot", pa.int64()), Column("records", pa.int64())),
        Command("branch list", "lake/default.db/orders", heading="branches of {table}"), in_call=False,
    ),
    Verb(
        "create_branch", "create a branch, from a tag or without rows", create_branch, keep_rows,
        (
            _BRANCH,
            Parameter(
                "tag", Type.TEXT, "the tag whose state the branch starts with",
                flag=Flag(
                    "-t --tag", "TAG",
                    "tag that the branch starts from (default: an empty branch with the schemas of the table)",
                ),
            ),
        ),
        (Column("branch", pa.string()), Column("snapshot", pa.int64(), in_call=False)),
        Command(
            "branch create", "lake/default.db/orders trial --tag year-end",
            "create a branch from a tag, or an empty branch; it is read and written as the table 'TABLE$branch_NAME'",
        ),
        method="Branches.create",
    ),
    Verb(
        "rename_branch", "give a branch another name", rename_branch, keep_rows,
        (_BRANCH, _new_name_of("branch")),
        (Column("branch", pa.string()),),
        Command("branch rename", "lake/default.db/orders trial try2", "rename a branch"), method="Branches.rename",
    ),
    Verb(
        "delete_branch", "delete a branch", delete_branch, keep_rows,
        (_BRANCH,),
        (Column("branch", pa.string()), DELETED),
        Command(
            "branch delete", "lake/default.db/orders trial",
            "delete a branch; files that only it references become orphan files",
        ),
        method="Branches.delete",
    ),
    Verb(
        "fast_forward", "continue the table with the snapshots of a branch", fast_forward, keep_rows,
        (_BRANCH,),
        (Column("branch", pa.string(), in_call=False), Column("snapshot", pa.int64())),
        Command(
            "branch fast-forward", "lake/default.db/orders trial",
            "replace the snapshots of a table after the common history by those of a branch",
            confirmation=Confirmation.ON_TERMINAL, question=_ask_fast_forward,
        ),
        method="Branches.fast_forward",
    ),
)  # fmt: skip
CONSUMER_VERBS = (
    Verb(
        "list_consumers", "list the consumers of a table", list_consumers, keep_rows,
        (),
        (Column("consumer", pa.string()), Column("next_snapshot", pa.int64())),
        Command("consumer list", "lake/default.db/orders", heading="consumers of {table}"), in_call=False,
    ),
    Verb(
        "reset_consumer", "set the next snapshot of a consumer, or delete the consumer", reset_consumer, keep_rows,
        (
            _CONSUMER,
            Parameter(
                "next_snapshot", Type.INTEGER, "the next snapshot it reads; without it the consumer is deleted",
                java="next_snapshot_id",
                flag=Flag(metavar="SNAPSHOT", help="snapshot that the consumer reads next", is_positional=True),
            ),
        ),
        (Column("consumer", pa.string()), Column("next_snapshot", pa.int64())),
        Command(
            "consumer reset", "lake/default.db/orders dashboard 12",
            "set the next snapshot of a consumer; create the consumer if it does not exist",
        ),
        method="Consumers.reset",
    ),
    Verb(
        "delete_consumer", "delete a consumer", delete_consumer, to_consumer_rows,
        (_CONSUMER,),
        (Column("consumer", pa.string()), DELETED), Command("consumer delete", "lake/default.db/orders dashboard"),
        in_call=False, method="Consumers.delete",
    ),
    Verb(
        "clear_consumers", "delete the consumers whose names match a regular expression", clear_consumers,
        to_consumer_rows,
        (
            Parameter(
                "including", Type.TEXT, "a regular expression; by default all", default=".*",
                java="including_consumers",
                flag=Flag(metavar="REGEX", help="delete consumers with these names (default: all)"),
            ),
            Parameter(
                "excluding", Type.TEXT, "a regular expression", java="excluding_consumers",
                flag=Flag(metavar="REGEX", help="keep consumers with these names"),
            ),
        ),
        (Column("consumer", pa.string()), DELETED),
        Command(
            "consumer clear", "lake/default.db/orders --including 'test-.*'",
            "delete the consumers whose names match", heading="deleted consumers",
        ),
        method="Consumers.clear",
    ),
    EXPIRE_CONSUMERS,
)  # fmt: skip
ROLLBACK = Verb(
    "rollback", "make an earlier state the latest; all snapshots and tags after it are removed", rollback,
    _to_rollback_rows,
    (
        Parameter("version", Type.TEXT, "the id of a snapshot, or the name of a tag", in_method=False),
        Parameter(
            "snapshot", Type.INTEGER, "the id of a snapshot", java="snapshot_id",
            flag=Flag(metavar="ID", help="a snapshot, which may exist only through a tag"),
        ),
        Parameter("tag", Type.TEXT, "the name of a tag", flag=Flag(metavar="NAME", help="the snapshot of a tag")),
        Parameter(
            "timestamp", Type.TIME, "the latest snapshot at or before this time", in_call=False,
            flag=Flag(metavar="TIME"),
        ),
        Parameter(
            "watermark", Type.INTEGER, "the latest snapshot with at most this watermark", in_call=False,
            flag=Flag(metavar="MILLIS"),
        ),
    ),
    (
        Column("snapshot", pa.int64()),
        Column("deleted_snapshots", pa.int64(), "snapshots forgotten"),
        Column("changelogs", pa.int64(), "changelogs forgotten", in_call=False),
        Column("tags", pa.string(), "tags forgotten", in_call=False),
    ),
    Command(
        "rollback", "lake/default.db/orders --tag year-end",
        "make an earlier snapshot the latest, and delete all later snapshots, changelogs and tags",
        exactly_one=("snapshot", "tag", "timestamp", "watermark"), confirmation=Confirmation.ALWAYS,
        question=_ask_rollback,
    ),
    method="Maintain.rollback_to",
)  # fmt: skip
ROLLBACK_TO_TIMESTAMP = Verb(
    "rollback_to_timestamp", "make the last snapshot at or before a time the latest", rollback_to_timestamp,
    _to_rollback_rows,
    (Parameter("timestamp", Type.TIME, "the time", required=True),), ROLLBACK.columns,
)  # fmt: skip
ROLLBACK_TO_WATERMARK = Verb(
    "rollback_to_watermark", "make the last snapshot with at most a watermark the latest", rollback_to_watermark,
    _to_rollback_rows,
    (Parameter("watermark", Type.INTEGER, "epoch milliseconds", required=True),), ROLLBACK.columns,
)  # fmt: skip
REFERENCE_VERBS = (
    *(*TAG_VERBS, *BRANCH_VERBS, *CONSUMER_VERBS),
    *(ROLLBACK, ROLLBACK_TO_TIMESTAMP, ROLLBACK_TO_WATERMARK),
)
