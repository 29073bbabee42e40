"""Replay golden cases: the steps of a `case.json`, as calls of our tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import frozen

import paimon
from paimon.domain.commit.request import CommitRequest
from paimon.domain.paths import TablePaths
from paimon.domain.schema import changes
from paimon.domain.schema.table_schema import schema_from_json
from paimon.domain.types.type_text import type_from_json
from paimon.operations.commit.commit import commit
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.testing.conformance.golden import rows_to_arrow
from support.golden_input import KIND, read_input

USER = "replay"
NOTHING_TO_DO = ("compact", "compactManifests", "analyze", "expireSnapshots", "createTag", "deleteTag", "consumer")
"""Steps after which the latest rows are what they were."""

_COUNTED = ("write", "overwrite", "compact", "postponeCompact")


def number_steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The steps, each with the number of commits of a writer up to it: the identifier that Java's had."""
    number = 0
    for step in steps:
        number += step["op"] in _COUNTED
        yield number, step


@frozen
class Replay:
    """One case and our table of it; `compacting` runs inline and explicit compactions, as Java's did."""

    case: Path
    directory: Path
    compacting: bool = False

    def run(self) -> Replay:
        """Does all the steps; a write's identifier is its number."""
        self.create()
        steps = json.loads((self.case / "case.json").read_text("utf8"))["steps"]
        for number, step in number_steps(steps):
            if step["op"] == "compact" and self.compacting:
                self.table().compact(full=True)
            if step["op"] not in NOTHING_TO_DO:
                _STEPS[step["op"]](self, step, number)
        return self

    def table(self, options: Mapping[str, Any] | None = None) -> paimon.Table:
        """Our table as it is now."""
        text = {k: str(v) for k, v in (options or {}).items()}
        defaults = {} if self.compacting else {"write-only": "true"}
        table = paimon.open_table(self.directory, {**defaults, **text})
        assert isinstance(table, paimon.Table)
        return table

    def write(self, step: Mapping[str, Any], number: int) -> None:
        """One commit of rows with their kinds."""
        table = self.table(step.get("options"))
        rows = self._rows(table, step)
        kind_column = None if table.definition.options.rowkind_field else KIND
        data = rows if kind_column else rows.drop_columns([KIND])
        builder = table.new_stream_write_builder(step.get("user", USER))
        with builder.new_write() as writer:
            writer.write(data, kind_column)
            messages = writer.prepare_commit(number)
        builder.new_commit().commit(number, messages, step.get("watermark"))

    def overwrite(self, step: Mapping[str, Any], number: int) -> None:
        """The partitions of the rows are replaced, or (not dynamic) those that the step names."""
        table = self.table(step.get("options"))
        dynamic = table.options.get("dynamic-partition-overwrite", "true") == "true" and table.partition_keys
        rows = self._rows(table, step).drop_columns([KIND])
        table.overwrite(rows, None if dynamic else step.get("partition", {}), commit_user=f"overwrite-{number}")

    def drop(self, step: Mapping[str, Any], number: int) -> None:
        """Partitions without their rows; the whole table if no partition is named."""
        table = self.table()
        for partition in step.get("partitions", [{}]):
            commit(table.context, CommitRequest((), f"drop-{number}", overwrite=partition))

    def compact_postponed(self, step: Mapping[str, Any], number: int) -> None:
        """Move postponed rows to this number of real buckets."""
        self.table({"postpone.default-bucket-num": step["buckets"]}).compact()

    def alter(self, step: Mapping[str, Any], number: int) -> None:
        """One new schema."""
        self.table().alter(*(_change(change) for change in step["changes"]))

    def _rows(self, table: paimon.Table, step: Mapping[str, Any]) -> pa.Table:
        path = self.case / "input" / step["rowsFile"].rpartition("/")[2]
        rows = read_input(path)
        kinds = [row.get(KIND, "+I") for row in rows]
        return rows_to_arrow(rows, table.table_schema.fields).append_column(KIND, pa.array(kinds, pa.string()))

    def create(self) -> None:
        """The table of the case's first schema."""
        path = self.case / "table" / "schema" / "schema-0"
        first = schema_from_json(path.read_bytes(), str(path))
        catalog = paimon.connect(self.directory.parent)
        paths = TablePaths(str(self.directory))
        keys, parts = first.primary_keys, first.partition_keys
        declaration = TableDeclaration(first.fields, keys, parts, first.options, first.comment)
        create_table(catalog.engine, paths, declaration, allow_unknown_options=True)


_STEPS: Mapping[str, Callable[[Replay, Mapping[str, Any], int], None]] = {
    "write": Replay.write,
    "overwrite": Replay.overwrite,
    "dropPartitions": Replay.drop,
    "truncate": Replay.drop,
    "postponeCompact": Replay.compact_postponed,
    "alter": Replay.alter,
}


def _change(change: Mapping[str, Any]) -> changes.SchemaChange:
    path = change.get("path", change.get("name"))
    match change["change"]:
        case "addColumn":
            kind = type_from_json(change["type"], "case.json")
            return changes.AddColumn(path, kind, change.get("description"), _position(change))
        case "renameColumn":
            return changes.RenameColumn(path, change["to"])
        case "dropColumn":
            return changes.DropColumn(path)
        case "updateType":
            return changes.SetColumnType(path, type_from_json(change["type"], "case.json"))
        case "move":
            position = _position(change)
            assert position is not None
            return changes.MoveColumn(path, position)
        case "setOption":
            return changes.SetOption(change["key"], change["value"])
        case "removeOption":
            return changes.RemoveOption(change["key"])
        case "updateComment":
            return changes.SetColumnComment(path, change["comment"])
        case "tableComment":
            return changes.SetComment(change["comment"])
    raise AssertionError(f"no such change here: {change}")


def _position(change: Mapping[str, Any]) -> changes.Position | None:
    if change.get("first"):
        return changes.Position.first()
    return changes.Position.after(change["after"]) if "after" in change else None
