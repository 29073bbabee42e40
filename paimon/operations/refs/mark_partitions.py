"""Mark partitions as done, so that other systems know that they are complete.

Invariant: nothing is marked before all partitions are found and all actions are possible.

Source: `PartitionMarkDoneAction`, `SuccessFileMarkDoneAction`, `HttpReportMarkDoneAction`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from paimon.domain.errors import CorruptTable, InvalidRequest, StorageError, Unsupported
from paimon.domain.json_text import dump_json, load_object
from paimon.domain.partition.partition_text import format_partition_path
from paimon.domain.paths import join_path
from paimon.domain.row.binary_row import deserialize
from paimon.domain.secrets import remove_password
from paimon.operations.expire.expire_partitions import find_partitions
from paimon.operations.refs.tags import write_success_file
from paimon.operations.table_context import TableContext
from paimon.ports.callbacks import PartitionDoneCallback, PartitionDoneEvent

_ACTION = "partition.mark-done-action"
_CLASS, _URL = "partition.mark-done-action.custom.class", "partition.mark-done-action.http.url"
_SUCCESS_FILE = "success-file"
_Mark = Callable[[str, Mapping[str, object]], None]
"""Marks the partition of a directory, relative to the table, and of values."""


def mark_partitions_done(context: TableContext, specs: Sequence[Mapping[str, object]]) -> list[str]:
    """Mark partitions that match specs; NotFound for a spec, Unsupported for an action, marks nothing."""
    names = [name.strip() for name in (context.options.get(_ACTION) or _SUCCESS_FILE).split(",") if name.strip()]
    if not names:
        raise InvalidRequest(f"Option {_ACTION!r} names no action.", subject=_ACTION, hint="name one, or remove it")
    files: list[str] = []
    actions = [_prepare(context, name, files) for name in names]
    if not specs or not all(specs):
        raise InvalidRequest("No partition is given.", subject="partitions", hint="give values of partition columns")
    options, fields = context.options, context.schema.partition_fields
    for row in find_partitions(context, specs, "SHOW PARTITIONS lists all"):
        values = deserialize(row, [f.type for f in fields])
        default = options.partition_default_name, options.partition_legacy_name
        directory = format_partition_path(values, fields, *default)
        for mark in actions:
            mark(directory, dict(zip((f.name for f in fields), values, strict=True)))
    return files


def _prepare(context: TableContext, name: str, files: list[str]) -> _Mark:
    """Return the action of a name; the action of success files adds their paths to `files`."""
    match name:
        case "success-file":

            def write_file(directory: str, _: Mapping[str, object]) -> None:
                """Write the success file."""
                path = join_path(context.paths.root, directory, "_SUCCESS")
                write_success_file(context.engine, path)
                files.append(path)

            return write_file
        case "http-report":
            return _prepare_report(context)
        case "custom":
            return _prepare_custom(context)
        case "mark-event" | "done-partition":
            hint = "use success-file, http-report or custom"
            raise Unsupported(f"{_ACTION} = {name!r}, which needs a metastore", hint=hint)
        case _:
            raise Unsupported(f"{_ACTION} = {name!r}", hint="use success-file, http-report or custom")


def _prepare_custom(context: TableContext) -> _Mark:
    name = context.options.get(_CLASS)
    if not name:
        raise InvalidRequest(
            f"Option {_CLASS!r} is not set.",
            subject=_CLASS,
            hint="set it to the name that table.with_callbacks gives the callable",
        )
    callback = context.engine.callbacks.get(name)
    if callback is None:
        hint = f"register one with table.with_callbacks({{{name!r}: callable}})"
        raise Unsupported(f"{_ACTION} = 'custom' without a callable for {name!r}", hint=hint)
    call = cast(PartitionDoneCallback, callback)  # the option names it for this event
    return lambda directory, values: call(PartitionDoneEvent(context.table, directory, values))


def _prepare_report(context: TableContext) -> _Mark:
    url, sender = context.options.get(_URL), context.engine.reports
    if not url:
        raise InvalidRequest(f"Option {_URL!r} is not set.", subject=_URL, hint="set it to the URL of the server")
    if sender is None:
        hint = "set the field 'reports' of the engine"
        raise Unsupported("action http-report, because the engine has no report sender", hint=hint)

    def report(directory: str, _: Mapping[str, object]) -> None:
        """Send the report, as Java does, and check the response."""
        body = {
            "params": context.options.get("partition.mark-done-action.http.params"),
            "table": context.table.table_name,
            "path": context.table.location,
            "partition": f"{directory}/",
        }
        response = sender.post(url, dump_json(body))
        try:
            result = load_object(response, remove_password(url)).optional_text("result")
        except CorruptTable as error:
            raise StorageError(remove_password(url), "the server did not respond with a JSON object") from error
        if (result or "").upper() != "SUCCESS":
            raise StorageError(remove_password(url), f"the server refused the report of partition {directory!r}")

    return report
