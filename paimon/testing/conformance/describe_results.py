"""Describe the results of a run as text, JSON and HTML: the table of features, then each wrong example.

Invariant: an example names what is not a default only, and shows each row in one line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from attrs import frozen

from paimon.domain.markup import shorten_text
from paimon.domain.report import Grid, Lines, Report, format_report, format_report_card
from paimon.domain.row.values import to_array
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.text_layout import TextColumn
from paimon.domain.types.data_types import (
    NESTED_TYPES,
    BinaryType,
    CharType,
    DataField,
    DataType,
    VarBinaryType,
    VarCharType,
)
from paimon.domain.types.type_text import format_type
from paimon.testing.conformance.cases import AddColumn, Compact, Delete, Step, Write
from paimon.testing.conformance.run_cases import Mismatch, Result
from paimon.testing.strategies.tables import Row

_LONGEST_REASON = 100
_MOST_ROWS = 10
_STATUSES = ("right", "wrong", "refused", "stopped", "not run")


@frozen
class Run:
    """All results of an implementation, with its name and version, and the versions of what ran it."""

    name: str
    version: str
    versions: str
    results: tuple[Result, ...]
    # why the run was stopped before its end
    stopped: str | None = None

    def of_status(self, status: str) -> list[Result]:
        """Return the results of one status."""
        return [result for result in self.results if result.status == status]


def format_run(run: Run, form: str) -> str:
    """Format a run as ``text``, ``json`` or ``html``."""
    if form == "json":
        return _format_json(run)
    return _format_html(run) if form == "html" else format_report(_report(run))


def _format_html(run: Run) -> str:
    card = format_report_card(_report(run))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Conformance</title>\n<body>{card}</body></html>'
    )


def _format_json(run: Run) -> str:
    """Format a run as JSON: the versions, and for each cell its status, counts, and the example."""
    cells = [
        {
            "feature": r.feature,
            "writer": r.writer,
            "status": r.status,
            "examples": r.examples,
            "refused": r.refused,
            "reason": r.reason,
            "example": None if r.mismatch is None else _to_json(r.mismatch),
        }
        for r in run.results
    ]
    described = {"adapter": run.name, "version": run.version, "versions": run.versions, "stopped": run.stopped}
    return json.dumps(described | {"results": cells}, indent=1, ensure_ascii=False)


def _to_json(mismatch: Mismatch) -> dict[str, Any]:
    fields = mismatch.schema.fields
    return {
        "table": _describe_table(mismatch.schema),
        "steps": [f"{actor} {_describe_step(step, fields)}" for actor, step in mismatch.steps],
        "snapshot": mismatch.snapshot,
        "only_differences": mismatch.only_differences,
        "expected": _describe_rows(mismatch.expected, fields),
        "reads": {name: _describe_rows(rows, fields) for name, rows in mismatch.reads.items()},
    }


def _report(run: Run) -> Report:
    counts = Counter(result.status for result in run.results)
    features = list(dict.fromkeys(result.feature for result in run.results if result.status != "not run"))
    others = dict.fromkeys(result.feature for result in run.results if result.feature not in features)
    cells = {(r.feature, r.writer): r for r in run.results}
    numbers = {id(result): number for number, result in enumerate(run.of_status("wrong"), 1)}
    writers = list(dict.fromkeys(r.writer for r in run.results))
    columns = [TextColumn("feature", False, tuple(features))]
    for writer in writers:
        texts = tuple(_describe_cell(cells.get((feature, writer)), numbers) for feature in features)
        columns.append(TextColumn(writer, False, texts))
    facts = (
        *((("stopped", run.stopped),) if run.stopped else ()),
        ("versions", run.versions),
        ("cells", ", ".join(f"{counts[s]} {s}" for s in _STATUSES if counts[s])),
        ("examples", str(sum(result.examples for result in run.results))),
    )
    examples = [_describe_mismatch(numbers[id(result)], result) for result in run.of_status("wrong")]
    refusals = list(dict.fromkeys(f"{r.feature}, {r.writer}: {r.reason}" for r in run.of_status("refused")))
    parts: list[Grid | Lines | str] = [Lines(""), Grid(tuple(columns)), *map(Lines, examples)]
    if others:
        reason = "run was stopped" if run.stopped else "time ended"
        parts.append(Lines(f"\nNot run, because the {reason}: {', '.join(others)}"))
    if refusals:
        parts.append(Lines("\nRefused:\n" + "\n".join(f"  {shorten_text(text, 160)}" for text in refusals)))
    return Report(f"{run.name} {run.version}".strip(), "conformance", facts, tuple(parts))


def _describe_cell(result: Result | None, numbers: dict[int, int]) -> str:
    if result is None:
        return ""
    if result.status == "wrong":
        return f"wrong [{numbers[id(result)]}]"
    if result.status == "refused" and result.refused < result.examples:
        return f"refused {result.refused} of {result.examples}"
    return result.status


def _describe_mismatch(number: int, result: Result) -> str:
    mismatch = result.mismatch
    assert mismatch is not None
    fields = mismatch.schema.fields
    where = "" if mismatch.snapshot is None else f" at snapshot {mismatch.snapshot}"
    lines = [("table", _describe_table(mismatch.schema))]
    lines += [(actor, _describe_step(step, fields)) for actor, step in mismatch.steps]
    what, verb = ("missing", "adds") if mismatch.only_differences else ("expected", "reads")
    lines.append((f"{what}{where}", _join_rows(_describe_rows(mismatch.expected, fields))))
    for name, rows in mismatch.reads.items():
        label = name if isinstance(rows, str) else f"{name} {verb}"
        lines.append((label, _join_rows(_describe_rows(rows, fields))))
    width = max(len(label) for label, _ in lines)
    return "\n".join([f"\n[{number}] {result.feature}, {result.writer}", *(f"  {a:{width}}  {b}" for a, b in lines)])


def _join_rows(rows: Sequence[str] | str) -> str:
    if isinstance(rows, str):
        return rows
    more = f" and {len(rows) - _MOST_ROWS} more" if len(rows) > _MOST_ROWS else ""
    return " ".join(rows[:_MOST_ROWS]) + more if rows else "no rows"


def _describe_table(schema: TableSchema) -> str:
    texts = [f"{f.name} {format_type(f.type)}" for f in schema.fields]
    if schema.primary_keys:
        texts.append(f"PRIMARY KEY ({', '.join(schema.primary_keys)})")
    partitions = f" PARTITIONED BY ({', '.join(schema.partition_keys)})" if schema.partition_keys else ""
    options = "".join(f" {key}={value}" for key, value in schema.options.items())
    return f"({', '.join(texts)}){partitions}{options}"


def _describe_step(step: Step, fields: Sequence[DataField]) -> str:
    match step:
        case Write(rows=rows):
            return "writes " + _join_rows(_describe_rows(rows, fields))
        case Compact():
            return "compacts"
        case Delete(value=value):
            return f"deletes where k = {value}"
        case AddColumn():
            return f"adds column {fields[-1].name}"


def _describe_rows(rows: Sequence[Row] | str, fields: Sequence[DataField]) -> list[str] | str:
    """Describe rows as sorted texts; the text of an error stays as it is."""
    if isinstance(rows, str):
        return rows
    texts = (_format_value(value, f.type) for row in rows for value, f in zip(row, fields, strict=False))
    shown = [[next(texts) for _ in row] for row in rows]
    return sorted(f"({', '.join(row)})" for row in shown)


def _format_value(value: Any, data_type: DataType) -> str:
    if value is None:
        return "null"
    if isinstance(data_type, (*NESTED_TYPES, CharType, VarCharType)):
        return repr(value)
    if isinstance(data_type, BinaryType | VarBinaryType):
        return f"x'{value.hex()}'"
    return str(to_array([value], data_type).cast(pa.string())[0].as_py())


def describe_progress(results: Iterable[Result], count: int) -> str:
    """Describe the last result of a run in one line."""
    known = list(results)
    last = known[-1]
    reason = f": {last.reason[:_LONGEST_REASON]}" if last.status == "refused" else ""
    return f"{len(known)}/{count} {last.feature}, {last.writer}: {last.status}, {last.examples} examples{reason}"
