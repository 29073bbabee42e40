"""The verbs that expire snapshots, changelogs, tags, partitions and consumers.

Invariant: the options of the table supply each limit that is not an argument. The terminal asks where an argument keeps
less than they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.maintenance.snapshot_expiry import Retention
from paimon.maintain import override_retention
from paimon.operations.expire.expire_snapshots import Expired
from paimon.references import age_millis, before_millis
from paimon.verbs.arguments import Time, to_moment
from paimon.verbs.verb import Column, Command, Confirmation, Flag, Parameter, Rows, Type, Verb, VerbTable

AGE_HELP = "an age such as '7 d', or a time such as '2026-01-31 23:59:59'"
DELETED = Column("deleted", pa.bool_(), in_call=False)


def expire_snapshots(
    table: VerbTable,
    retain_max: int | None,
    retain_min: int | None,
    older_than: Time,
    max_deletes: int | None,
    dry_run: bool,
) -> Expired:
    """Expire the oldest snapshots."""
    return table.maintain.expire_snapshots(
        retain_min=retain_min,
        retain_max=retain_max,
        older_than=to_moment(older_than),
        max_deletes=max_deletes,
        dry_run=dry_run,
    )


def expire_changelogs(
    table: VerbTable,
    retain_max: int | None,
    retain_min: int | None,
    older_than: Time,
    max_deletes: int | None,
    delete_all: bool,
    dry_run: bool,
) -> Expired:
    """Expire the oldest decoupled changelogs."""
    return table.maintain.expire_changelogs(
        retain_min=retain_min,
        retain_max=retain_max,
        older_than=to_moment(older_than),
        max_deletes=max_deletes,
        delete_all=delete_all,
        dry_run=dry_run,
    )


def expire_tags(table: VerbTable, older_than: Time) -> list[str]:
    """Delete the tags whose time to live is over, and those created before a time."""
    return table.maintain.expire_tags(to_moment(older_than))


def expire_partitions(
    table: VerbTable,
    age: str | None,
    max_partitions: int | None,
    timestamp_formatter: str | None,
    timestamp_pattern: str | None,
    expire_strategy: str | None,
) -> list[Mapping[str, str | None]]:
    """Drop the partitions that are older than an age; the last three arguments are table options for this call."""
    options = {
        "partition.timestamp-formatter": timestamp_formatter,
        "partition.timestamp-pattern": timestamp_pattern,
        "partition.expiration-strategy": expire_strategy,
    }
    given: dict[str, object] = {key: value for key, value in options.items() if value is not None}
    changed = table.with_options(given) if given else table
    return changed.maintain.expire_partitions(age, max_partitions=max_partitions)


def expire_consumers(table: VerbTable, older_than: Time) -> list[str]:
    """Delete the consumers without progress since a time."""
    return table.consumers.expire(to_moment(older_than))


def _ask_snapshots(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    own = Retention.of_snapshots(table.context.options)
    return None if given["dry_run"] else _ask_shorter(table, _is_shorter(table, own, given))


def _ask_changelogs(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    own = Retention.of_changelogs(table.context.options)
    if given["dry_run"]:
        return None
    return _ask_shorter(table, _is_shorter(table, own, given) or given["delete_all"])


def _ask_tags(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    if given["older_than"] is None:
        return None
    engine, retained = table.context.engine, table.context.options.tag_default_time_retained_millis
    age = engine.clock.now_millis() - before_millis(engine, to_moment(given["older_than"]))
    return _ask_shorter(table, retained is None or age < retained)


def _ask_partitions(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    if given["age"] is None:
        return None
    retained = table.context.options.partition_expiration_millis
    return _ask_shorter(table, retained is None or age_millis(given["age"]) < retained)


def _is_shorter(table: VerbTable, own: Retention, given: Mapping[str, Any]) -> bool:
    older_than = to_moment(given["older_than"])
    wanted = override_retention(table.context, own, given["retain_min"], given["retain_max"], older_than)
    return wanted.is_shorter_than(own)


def _ask_shorter(table: VerbTable, is_shorter: bool) -> str | None:
    return f"The arguments keep less than the options of {table.name}. Delete the rest?" if is_shorter else None


def _to_expired_rows(done: Expired) -> Rows:
    first, last = (done.first, done.until - 1) if done.snapshots else (None, None)
    reasons = [str(reason) for reason in done.retained_by]
    return [{"expired": done.snapshots, "first": first, "last": last, "files": done.files, "retained_by": reasons}]


def _to_partition_rows(dropped: Sequence[Mapping[str, str | None]]) -> Rows:
    return [{"partition": "/".join(f"{key}={value}" for key, value in spec.items())} for spec in dropped]


def to_tag_rows(names: Sequence[str]) -> Rows:
    """Return a row for each deleted tag."""
    return [{"tag": name, "deleted": True} for name in names]


def to_consumer_rows(names: Sequence[str]) -> Rows:
    """Return a row for each deleted consumer."""
    return [{"consumer": name, "deleted": True} for name in names]


def _expired_columns(noun: str) -> tuple[Column, ...]:
    ids = (Column(name, pa.int64(), in_call=False) for name in ("first", "last"))
    reasons = Column("retained_by", pa.list_(pa.string()), in_call=False)
    return (Column("expired", pa.int64(), noun), *ids, Column("files", pa.int64()), reasons)


_LIMITS = (
    Parameter(
        "retain_max", Type.INTEGER, "the largest number to keep",
        flag=Flag(metavar="N", help="keep at most this number, whatever their age"),
    ),
    Parameter(
        "retain_min", Type.INTEGER, "the smallest number to keep",
        flag=Flag(metavar="N", help="keep at least this number"),
    ),
    Parameter(
        "older_than", Type.TIME, "a timestamp, or an age such as '7 d'",
        flag=Flag(metavar="AGE", help=f"remove older ones: {AGE_HELP}"),
    ),
    Parameter(
        "max_deletes", Type.INTEGER, "the largest number to delete",
        flag=Flag(metavar="N", help="remove at most this number"),
    ),
)  # fmt: skip

EXPIRE_SNAPSHOTS = Verb(
    "expire_snapshots", "delete the oldest snapshots and their files", expire_snapshots,
    _to_expired_rows,
    (
        *_LIMITS,
        Parameter(
            "dry_run", Type.BOOLEAN, "show which snapshots would go; remove nothing", in_call=False, flag=Flag(),
        ),
    ),
    _expired_columns("snapshots"),
    Command(
        "expire snapshots", "lake/default.db/orders --retain-max 20",
        "remove the oldest snapshots, and the files that only they reference", confirmation=Confirmation.ON_TERMINAL,
        question=_ask_snapshots,
    ),
    method="Maintain.expire_snapshots", spark="expire_snapshots",
)  # fmt: skip
EXPIRE_CHANGELOGS = Verb(
    "expire_changelogs", "delete the oldest decoupled changelogs and their files", expire_changelogs,
    _to_expired_rows,
    (
        *_LIMITS,
        Parameter("delete_all", Type.BOOLEAN, "delete all of them", flag=Flag("--all", help="remove all changelogs")),
        Parameter(
            "dry_run", Type.BOOLEAN, "show which changelogs would go; remove nothing", in_call=False, flag=Flag(),
        ),
    ),
    _expired_columns("changelogs"),
    Command(
        "expire changelogs", "lake/default.db/orders --retain-max 20",
        "remove the oldest changelogs, and the files that only they reference", confirmation=Confirmation.ON_TERMINAL,
        question=_ask_changelogs,
    ),
    method="Maintain.expire_changelogs",
)  # fmt: skip
EXPIRE_TAGS = Verb(
    "expire_tags", "delete the tags whose time to live is over, and those created before a time", expire_tags,
    to_tag_rows,
    (
        Parameter(
            "older_than", Type.TIME, "a timestamp, or an age such as '7 d'",
            flag=Flag(metavar="AGE", help=f"also delete tags that were created earlier: {AGE_HELP}"),
        ),
    ),
    (Column("tag", pa.string()), DELETED),
    Command(
        "expire tags", "lake/default.db/orders", "delete the tags whose retention time is over",
        heading="expired tags", confirmation=Confirmation.ON_TERMINAL, question=_ask_tags,
    ),
    method="Maintain.expire_tags",
)  # fmt: skip
EXPIRE_PARTITIONS = Verb(
    "expire_partitions", "drop the partitions that are older than an age", expire_partitions, _to_partition_rows,
    (
        Parameter(
            "age", Type.TEXT, "the age, such as '7 d'; by default the table's option", java="expiration_time",
            flag=Flag(
                metavar="AGE", help="age, such as '365 d' (default: the table option partition.expiration-time)",
            ),
        ),
        Parameter(
            "max_partitions", Type.INTEGER, "the largest number of partitions to drop", java="max_expires",
            flag=Flag("--max", "N", "remove at most this number"),
        ),
        Parameter(
            "timestamp_formatter", Type.TEXT, "the format of times in partitions, such as 'yyyy-MM-dd'",
            in_method=False,
        ),
        Parameter(
            "timestamp_pattern", Type.TEXT, "how partition columns make a time, such as '$dt $hour:00:00'",
            in_method=False,
        ),
        Parameter("expire_strategy", Type.TEXT, "'values-time' or 'update-time'", in_method=False),
    ),
    (Column("partition", pa.string()),),
    Command(
        "expire partitions", "lake/default.db/orders --age '365 d'", heading="expired partitions",
        confirmation=Confirmation.ON_TERMINAL, question=_ask_partitions,
    ),
    method="Maintain.expire_partitions",
)  # fmt: skip
EXPIRE_CONSUMERS = Verb(
    "expire_consumers", "delete the consumers without progress since a time", expire_consumers, to_consumer_rows,
    (
        Parameter(
            "older_than", Type.TIME, "a timestamp, or an age such as '7 d'", required=True,
            flag=Flag(metavar="AGE", help=f"time since the last progress: {AGE_HELP}", is_positional=True),
        ),
    ),
    (Column("consumer", pa.string()), DELETED),
    Command(
        "consumer expire", "lake/default.db/orders '7 d'", "delete the consumers that made no progress for some time",
        heading="deleted consumers",
    ),
    method="Consumers.expire",
)  # fmt: skip
EXPIRY_VERBS = (EXPIRE_SNAPSHOTS, EXPIRE_CHANGELOGS, EXPIRE_TAGS, EXPIRE_PARTITIONS)
