"""The rows that a table must contain after some steps, by the row-wise reference of merging and no file.

Invariant: records merge in the order of writing, so a table may be read at any time, and by any implementation.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.merge.merge_reference import merge
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import Record
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.kinds import KIND_TEXTS
from paimon.testing.conformance.cases import AddColumn, Case, Delete, Step, Write
from paimon.testing.model import Row as NamedRow
from paimon.testing.strategies.tables import Row


class ExpectedRows:
    """The rows of the table of a case, step by step."""

    def __init__(self, case: Case) -> None:
        self._schema = case.schema
        self._width = case.columns_at_first
        self._rows: list[NamedRow] = []
        # Merges of a case have all records of a key, and no levels.
        self._spec = evolve(MergeSpec.of(case.schema, TableOptions.of(case.schema.options)), lookup=False)

    def apply(self, step: Step) -> None:
        """Apply a step; a compaction changes no row."""
        if isinstance(step, Write):
            missing = dict.fromkeys(self._schema.names)
            names = self._schema.names[: self._width]
            self._rows += [missing | dict(zip(names, row, strict=True)) for row in step.rows]
        elif isinstance(step, Delete):
            self._rows = [row for row in self._rows if row["k"] != step.value]
        elif isinstance(step, AddColumn):
            self._width = len(self._schema.fields)

    def rows(self) -> list[Row]:
        """Return the visible rows, as internal values in the order of the columns."""
        rows = self._rows
        if self._schema.primary_keys:
            partitions: dict[str, list[Record]] = {}
            for sequence, row in enumerate(rows):
                record = Record(row, sequence, KIND_TEXTS.index(row.get("op", "+I")))
                partitions.setdefault(repr(row.get("p")), []).append(record)
            rows = [r.values for found in partitions.values() for r in merge(found, self._spec) if r.is_add]
        return [tuple(row[name] for name in self._schema.names[: self._width]) for row in rows]
