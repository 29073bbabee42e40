"""The procedures of tables: each calls one method, and returns its result as rows.

Source: the names and the parameters are those of Java's procedures; a parameter without effect here does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.predicate.build import col
from paimon.domain.predicate.expression import Or, Predicate
from paimon.maintain import Maintain
from paimon.operations.compact.compact import CompactResult
from paimon.operations.expire.expire_snapshots import Expired
from paimon.operations.rescale.rescale import RescaleResult
from paimon.procedures.arguments import BOOLEAN, INTEGER, TEXT, TIME, Parameter, to_moment
from paimon.references import Branches, Consumers, Tags


class ProcedureTable(Protocol):
    """What procedures need of `paimon.table.Table`; see there."""

    @property
    def name(self) -> str:
        """``database.table``."""

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition columns."""

    @property
    def tags(self) -> Tags:
        """The tags."""

    @property
    def branches(self) -> Branches:
        """The branches."""

    @property
    def consumers(self) -> Consumers:
        """The consumers."""

    @property
    def maintain(self) -> Maintain:
        """Methods for expiry, orphan files, checks and rollback."""

    def with_options(self, options: Mapping[str, object]) -> Self:
        """Return the same table with dynamic options."""

    def compact(self, full: bool = False, where: str | Predicate | None = None) -> CompactResult:
        """Merge files."""

    def rescale(self, buckets: int, where: str | Predicate | None = None) -> RescaleResult:
        """Change the number of buckets."""

    def drop_partitions(self, *partitions: Mapping[str, object]) -> tuple[int, ...]:
        """Drop partitions."""


Arguments = Mapping[str, Any]
Run = Callable[[ProcedureTable, Arguments], pa.Table]


@frozen
class Procedure:
    """A procedure of a table."""

    # name after `sys.`
    name: str
    # what it does, in one sentence
    help: str
    parameters: tuple[Parameter, ...]
    run: Run


def _row(**values: object) -> pa.Table:
    return pa.table({name: [value] for name, value in values.items()})


def _names(column: str, names: Iterable[str]) -> pa.Table:
    return pa.table({column: pa.array(list(names), pa.string())})


def _first(ids: Sequence[int]) -> pa.Array:
    return pa.array([ids[0] if ids else None], pa.int64())


def _compact(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    strategy = arguments.get("compact_strategy", "full")
    if strategy not in ("full", "minor"):
        raise InvalidRequest(f"Compact strategy {strategy!r} is not known.", subject=strategy, hint="full or minor")
    if arguments.get("order_strategy", "none") != "none":
        raise Unsupported(f"order strategy {arguments['order_strategy']!r}", hint="leave out order_strategy")
    if arguments.get("order_by"):
        raise Unsupported("order_by of procedure 'compact'", hint="leave it out: compaction does not sort rows")
    options = parse_assignments(arguments.get("options", ""), "options")
    changed = table.with_options(options) if options else table
    where = arguments.get("where")
    if "partitions" in arguments:
        if where is not None:
            raise InvalidRequest("Both 'partitions' and 'where' are given.", subject="where", hint="give one of them")
        where = to_predicate(parse_partitions(arguments["partitions"]))
    done = changed.compact(strategy == "full", where)
    counts = {"buckets": done.buckets, "files_before": done.files_before, "files_after": done.files_after}
    return pa.table({"snapshot": _first(done.snapshot_ids), **{name: [n] for name, n in counts.items()}})


def _rescale(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    where = to_predicate(parse_partitions(arguments["partition"])) if "partition" in arguments else None
    done = table.rescale(arguments["bucket_num"], where)
    return pa.table({"snapshot": _first(done.snapshot_ids), "partitions": [done.partitions], "rows": [done.rows]})


def _expire(kind: str) -> Run:
    def run(table: ProcedureTable, arguments: Arguments) -> pa.Table:
        """Expire snapshots or decoupled changelogs."""
        given: dict[str, Any] = {name: arguments.get(name) for name in ("retain_min", "retain_max", "max_deletes")}
        older_than = to_moment(arguments.get("older_than"))
        if kind == "snapshots":
            done: Expired = table.maintain.expire_snapshots(older_than=older_than, **given)
        else:
            delete_all = arguments.get("delete_all", False)
            done = table.maintain.expire_changelogs(older_than=older_than, delete_all=delete_all, **given)
        return _row(expired=done.snapshots, files=done.files)

    return run


def _expire_tags(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    return _names("tag", table.maintain.expire_tags(to_moment(arguments.get("older_than"))))


def _expire_partitions(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    age, most = arguments.get("expiration_time"), arguments.get("max_expires")
    options = {key: arguments[name] for name, key in _PARTITION_TIMES.items() if name in arguments}
    changed = table.with_options(options) if options else table
    gone = changed.maintain.expire_partitions(age, max_partitions=most)
    return _names("partition", ("/".join(f"{key}={value}" for key, value in spec.items()) for spec in gone))


_PARTITION_TIMES = {
    "timestamp_formatter": "partition.timestamp-formatter",
    "timestamp_pattern": "partition.timestamp-pattern",
    "expire_strategy": "partition.expiration-strategy",
}
"""The options that parameters of `expire_partitions` set for one call."""


def _drop_partition(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    ids = table.drop_partitions(*parse_partitions(arguments["partitions"]))
    return pa.table({"snapshot": _first(ids)})


def _create_tag(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    retained = arguments.get("time_retained")
    tag = table.tags.create(arguments["tag"], arguments.get("snapshot_id"), time_retained=retained)
    return _row(tag=tag.name, snapshot=tag.snapshot.id)


def _create_tag_from(parameter: str, argument: str) -> Run:
    def run(table: ProcedureTable, arguments: Arguments) -> pa.Table:
        """Create a tag of the first snapshot that reaches a time or a watermark."""
        retained = arguments.get("time_retained")
        tag = table.tags.create(arguments["tag"], time_retained=retained, **{argument: arguments[parameter]})
        return _row(tag=tag.name, snapshot=tag.snapshot.id)

    return run


def _replace_tag(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    retained = arguments.get("time_retained")
    tag = table.tags.replace(arguments["tag"], arguments.get("snapshot_id"), time_retained=retained)
    return _row(tag=tag.name, snapshot=tag.snapshot.id)


def _rename_tag(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    tag = table.tags.rename(arguments["tag"], arguments["target_tag"])
    return _row(tag=tag.name, snapshot=tag.snapshot.id)


def _delete_tag(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    names = [name.strip() for name in arguments["tag"].split(",")]
    return pa.table({"tag": names, "files": [table.tags.delete(name) for name in names]})


def _create_branch(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    table.branches.create(arguments["branch"], arguments.get("tag"))
    return _row(branch=arguments["branch"])


def _delete_branch(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    table.branches.delete(arguments["branch"])
    return _row(branch=arguments["branch"])


def _rename_branch(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    table.branches.rename(arguments["branch"], arguments["target_branch"])
    return _row(branch=arguments["target_branch"])


def _fast_forward(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    return _row(snapshot=table.branches.fast_forward(arguments["branch"]))


def _rollback(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    """Roll back to a snapshot id, or to a tag; a version of digits is a snapshot unless a tag has this name."""
    given = arguments.get("snapshot_id")
    tag = arguments.get("tag")
    if "version" in arguments:
        version = arguments["version"]
        is_tag = version in table.tags or not version.isdecimal()
        given, tag = (given, version) if is_tag else (int(version), tag)
    done = table.maintain.rollback_to(given, tag=tag)
    return _row(snapshot=done.snapshot_id, deleted_snapshots=done.snapshots)


def _rollback_to_timestamp(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    done = table.maintain.rollback_to(timestamp=arguments["timestamp"])
    return _row(snapshot=done.snapshot_id, deleted_snapshots=done.snapshots)


def _remove_orphan_files(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    older_than = to_moment(arguments.get("older_than"))
    return table.maintain.remove_orphans(older_than, dry_run=arguments.get("dry_run", False))


def _fsck(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    return table.maintain.check(deep=arguments.get("deep", False)).to_arrow()


def _reset_consumer(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    name, following = arguments["consumer_id"], arguments.get("next_snapshot_id")
    if following is None:
        table.consumers.delete(name)
    else:
        table.consumers.reset(name, following)
    return pa.table({"consumer": [name], "next_snapshot": pa.array([following], pa.int64())})


def _clear_consumers(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    including = arguments.get("including_consumers", ".*")
    return _names("consumer", table.consumers.clear(including, arguments.get("excluding_consumers")))


def _expire_consumers(table: ProcedureTable, arguments: Arguments) -> pa.Table:
    return _names("consumer", table.consumers.expire(to_moment(arguments["older_than"])))


def parse_assignments(text: str, what: str) -> dict[str, str]:
    """Parse ``k=v,k2=v2``; values may be in single quotes. Errors name the text as `what`."""
    found: dict[str, str] = {}
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidRequest(f"Argument {what!r} has the part {part!r}.", subject=part, hint="write key=value")
        found[key.strip()] = value.strip().strip("'")
    return found


def parse_partitions(text: str) -> list[dict[str, str]]:
    """Parse partitions such as ``dt=2026-01-01,hour=1;dt=2026-01-02``."""
    found = [spec for part in text.split(";") if (spec := parse_assignments(part, "partitions"))]
    if not found:
        raise InvalidRequest("No partition is given.", subject="partitions", hint="write 'dt=2026-01-01;dt=2026-01-02'")
    return found


def to_predicate(partitions: Sequence[Mapping[str, str]]) -> Predicate:
    """Return the condition that selects partitions."""
    parts: list[Predicate] = []
    for spec in partitions:
        first, *others = [col(key) == value for key, value in spec.items()]
        for other in others:
            first = first & other
        parts.append(first)
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


_OLDER = Parameter("older_than", TIME, "a timestamp, or an age such as '7 d'")
_TAG = Parameter("tag", TEXT, "the name of the tag", required=True)
_RETAINED = Parameter("time_retained", TEXT, "the time to live of the tag, such as '30 d'")
_SNAPSHOT = Parameter("snapshot_id", INTEGER, "the id of a snapshot; by default the latest", other_name="snapshot")
_BRANCH = Parameter("branch", TEXT, "the name of the branch", required=True)
_PARTITIONS = "partitions such as 'dt=2026-01-01,hour=1;dt=2026-01-02'"
_LIMITS = (
    Parameter("retain_max", INTEGER, "the largest number to keep"),
    Parameter("retain_min", INTEGER, "the smallest number to keep"),
    _OLDER,
    Parameter("max_deletes", INTEGER, "the largest number to delete"),
)
TABLE_PROCEDURES: Sequence[Procedure] = (
    Procedure(
        "compact",
        "merge the files of a table; no row changes",
        (
            Parameter("partitions", TEXT, _PARTITIONS),
            Parameter("order_strategy", TEXT, "only 'none'"),
            Parameter("where", TEXT, "a condition on partition columns"),
            Parameter("options", TEXT, "table options for this call, such as 'num-levels=4'"),
            Parameter("compact_strategy", TEXT, "'full' (the default) or 'minor'"),
            Parameter("order_by", TEXT, "refused: compaction does not sort rows"),
        ),
        _compact,
    ),
    Procedure(
        "rescale",
        "rewrite partitions to another number of buckets",
        (
            Parameter("bucket_num", INTEGER, "the new number of buckets", required=True),
            Parameter("partition", TEXT, _PARTITIONS),
        ),
        _rescale,
    ),
    Procedure("expire_snapshots", "delete the oldest snapshots and their files", _LIMITS, _expire("snapshots")),
    Procedure(
        "expire_changelogs",
        "delete the oldest decoupled changelogs and their files",
        (*_LIMITS, Parameter("delete_all", BOOLEAN, "delete all of them")),
        _expire("changelogs"),
    ),
    Procedure(
        "expire_tags",
        "delete the tags whose time to live is over, and those created before a time",
        (_OLDER,),
        _expire_tags,
    ),
    Procedure(
        "expire_partitions",
        "drop the partitions that are older than an age",
        (
            Parameter("expiration_time", TEXT, "the age, such as '7 d'; by default the table's option"),
            Parameter("max_expires", INTEGER, "the largest number of partitions to drop"),
            Parameter("timestamp_formatter", TEXT, "the format of times in partitions, such as 'yyyy-MM-dd'"),
            Parameter("timestamp_pattern", TEXT, "how partition columns make a time, such as '$dt $hour:00:00'"),
            Parameter("expire_strategy", TEXT, "'values-time' or 'update-time'"),
        ),
        _expire_partitions,
    ),
    Procedure(
        "drop_partition",
        "drop partitions in one commit",
        (Parameter("partitions", TEXT, _PARTITIONS, required=True),),
        _drop_partition,
    ),
    Procedure("create_tag", "name a snapshot, which then does not expire", (_TAG, _SNAPSHOT, _RETAINED), _create_tag),
    Procedure(
        "create_tag_from_timestamp",
        "create a tag of the first snapshot at or after a time",
        (_TAG, Parameter("timestamp", TIME, "the time", required=True), _RETAINED),
        _create_tag_from("timestamp", "since"),
    ),
    Procedure(
        "create_tag_from_watermark",
        "create a tag of the first snapshot with at least a watermark",
        (_TAG, Parameter("watermark", INTEGER, "epoch milliseconds", required=True), _RETAINED),
        _create_tag_from("watermark", "watermark"),
    ),
    Procedure("replace_tag", "make a tag name another snapshot", (_TAG, _SNAPSHOT, _RETAINED), _replace_tag),
    Procedure(
        "rename_tag",
        "give a tag another name",
        (_TAG, Parameter("target_tag", TEXT, "the new name", required=True)),
        _rename_tag,
    ),
    Procedure(
        "delete_tag", "delete tags, separated by commas, and the files that only they need", (_TAG,), _delete_tag
    ),
    Procedure(
        "create_branch",
        "create a branch, from a tag or without rows",
        (_BRANCH, Parameter("tag", TEXT, "the tag whose state the branch starts with")),
        _create_branch,
    ),
    Procedure("delete_branch", "delete a branch", (_BRANCH,), _delete_branch),
    Procedure(
        "rename_branch",
        "give a branch another name",
        (_BRANCH, Parameter("target_branch", TEXT, "the new name", required=True)),
        _rename_branch,
    ),
    Procedure("fast_forward", "continue the table with the snapshots of a branch", (_BRANCH,), _fast_forward),
    Procedure(
        "rollback",
        "make an earlier state the latest; all snapshots and tags after it are removed",
        (
            Parameter("version", TEXT, "the id of a snapshot, or the name of a tag"),
            Parameter("snapshot_id", INTEGER, "the id of a snapshot"),
            Parameter("tag", TEXT, "the name of a tag"),
        ),
        _rollback,
    ),
    Procedure(
        "rollback_to_timestamp",
        "make the last snapshot at or before a time the latest",
        (Parameter("timestamp", TIME, "the time", required=True),),
        _rollback_to_timestamp,
    ),
    Procedure(
        "remove_orphan_files",
        "delete the files that no snapshot, tag or changelog references",
        (_OLDER, Parameter("dry_run", BOOLEAN, "only list the files")),
        _remove_orphan_files,
    ),
    Procedure(
        "fsck",
        "check that the table is complete, and report each fault",
        (Parameter("deep", BOOLEAN, "also read data files"),),
        _fsck,
    ),
    Procedure(
        "reset_consumer",
        "set the next snapshot of a consumer, or delete the consumer",
        (
            Parameter("consumer_id", TEXT, "the name of the consumer", required=True),
            Parameter("next_snapshot_id", INTEGER, "the next snapshot it reads; without it the consumer is deleted"),
        ),
        _reset_consumer,
    ),
    Procedure(
        "clear_consumers",
        "delete the consumers whose names match a regular expression",
        (
            Parameter("including_consumers", TEXT, "a regular expression; by default all"),
            Parameter("excluding_consumers", TEXT, "a regular expression"),
        ),
        _clear_consumers,
    ),
    Procedure(
        "expire_consumers",
        "delete the consumers without progress since a time",
        (Parameter("older_than", TIME, "a timestamp, or an age such as '7 d'", required=True),),
        _expire_consumers,
    ),
)
"""All procedures of tables."""
